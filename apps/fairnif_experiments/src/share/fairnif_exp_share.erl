%% What native code leaves to others, by its mode and the length of its slices: of one scheduler to
%% a busy Erlang process, and how late a sleeper is while there are as many endless callers as
%% schedulers.
%%
%% Each figure has a node of its own.
-module(fairnif_exp_share).

-behaviour(fairnif_experiment).

-export([experiment/0]).

-import(fairnif_exp, [in_peer/3, range/2]).

%% A node that yields answers in that time after its work, on a busy machine too.
-define(PATIENCE_MS, 60000).
%% One call.
-define(CALL_US, 50000).

%% In the order of the table: the mode (`by_hand': sliced by its author, each slice charged in
%% full, whatever its length; `yielding': a fair function with slices of that length, charged for
%% its time), its title, the length of its slices, us, and what slices that are each charged in
%% full were found to leave before the first line of fairnif was written: OTP 25, 2 cores, the same
%% neighbours.
modes() ->
    [{idle, "nothing", undefined, undefined}, {erlang, "Erlang work", undefined, undefined},
     {plain, "plain NIF", undefined, undefined}, {dirty, "dirty NIF", undefined, undefined}]
        ++ [{by_hand, "sliced by hand", Us, Published}
            || {Us, Published} <- [{1000, <<"3 to 7 %">>}, {200, <<"12 to 24 %">>},
                                   {100, <<"21 to 39 %">>}, {50, <<"34 to 57 %">>},
                                   {25, <<"48 to 73 %">>}]]
        ++ [{by_hand_dirty, "sliced by hand, dirty", 1000, undefined}]
        ++ [{yielding, "fair, yielding", Us, undefined} || Us <- [1000, 200, 100, 50, 25]]
        ++ [{auto, "fair, auto", chosen, undefined},
            {yielding_dirty, "fair, yielding dirty", chosen, undefined}].

modes(quick) ->
    [M || {Mode, _, Us, _} = M <- modes(),
          lists:member({Mode, Us}, [{erlang, undefined}, {plain, undefined}, {by_hand, 1000},
                                    {by_hand, 25}, {yielding, 25}, {auto, chosen}])];
modes(_) ->
    modes().

%% Options of fairnif_check_share and of fairnif_check_delay; patience: beside the plain NIF, of
%% which no answer is expected, ms.
scale(quick) ->
    #{mixes => [sort], share => #{time_ms => 150, alone_ms => 50},
      delay => #{time_ms => 150}, patience => 2000};
scale(normal) ->
    #{mixes => fairnif_check_share:mixes(), share => #{time_ms => 350, alone_ms => 100},
      delay => #{time_ms => 1200}, patience => 4000};
scale(full) ->
    #{mixes => fairnif_check_share:mixes(), share => #{time_ms => 3000, alone_ms => 1000},
      delay => #{time_ms => 20000}, patience => 5000}.

%% @doc Measures all; a bit over a minute, `full' five.
-spec experiment() -> fairnif_experiment:experiment().
experiment() ->
    #{name => share, needs => [fairnif_exp:spinsleep()],
      description => "what each mode and slice length leaves to Erlang neighbours and sleepers",
      steps => fun(Opts) -> length(modes(maps:get(scale, Opts, normal))) end,
      measure => fun measure/3, peer => fun peer/1, format => fun format/1}.

measure(Name, _, Step) ->
    Rows = [begin
                Step([Title, [io_lib:format(", slices of ~b us", [Us]) || is_integer(Us)]]),
                row(Mode, scale(Name))
            end || {_, Title, Us, _} = Mode <- modes(Name)],
    fairnif_exp:result([Part || #{parts := Parts} <- Rows, Part <- Parts],
                       #{units => <<"share: 1 is all; delay in ns; slices in us">>,
                         rows => [maps:remove(parts, R) || R <- Rows]}).

row({Mode, Title, Us, Published}, Scale) ->
    Share = share(Mode, Us, Scale),
    Delay = delay(Mode, Us, Scale),
    %% What the runtime chose, only a node of its own says.
    Slice = case Us of
                chosen -> in_peer([], {?MODULE, {slice_us, Mode}}, ?PATIENCE_MS);
                undefined -> #{value => undefined};
                _ -> #{value => float(Us)}
            end,
    #{mode => Mode, title => list_to_binary(Title), slice_us => maps:get(value, Slice, undefined),
      published => Published, share => Share, delay => Delay, parts => [Share, Delay, Slice]}.

share(idle, _, _) ->
    #{};
share(Mode, Us, #{mixes := Mixes, share := Opts}) ->
    case in_peer(fairnif_check_share:flags(), {?MODULE, {shares, Mode, Us, Mixes, Opts}},
                 ?PATIENCE_MS) of
        #{value := Results} = Row -> (maps:remove(value, Row))#{neighbours => Results};
        Failed -> Failed
    end.

delay(Mode, Us, #{delay := #{time_ms := TimeMs} = Opts, patience := Patience}) ->
    %% What it does to a node is what is to be shown.
    MayTimeOut = Mode =:= plain,
    PatienceMs = case MayTimeOut of true -> Patience; false -> ?PATIENCE_MS end,
    Row = in_peer([], {?MODULE, {delay, Mode, Us, Opts}}, TimeMs + PatienceMs),
    (maps:merge(maps:remove(value, Row), maps:get(value, Row, #{})))#{may_time_out => MayTimeOut}.

%% ---- in the peers ----

%% What the mode leaves to a neighbour of each mix; how late a sleeper is beside endless callers,
%% as many as there are schedulers: no answer where they leave no scheduler to anybody; what the
%% runtime chose.
peer({shares, Mode, Us, Mixes, Opts}) ->
    prepare(Mode, Us),
    try [case fairnif_check_share:measure(fun() -> call(Mode, Us) end, Opts#{mix => Mix}) of
             {ok, Result} -> Result;
             {error, _} = Error -> throw(Error)
         end || Mix <- Mixes]
    catch
        throw:{error, _} = Error -> Error
    end;
peer({delay, idle, _, Opts}) ->
    fairnif_check_delay:measure(Opts);
peer({delay, Mode, Us, Opts}) ->
    prepare(Mode, Us),
    fairnif_check_delay:beside([fun() -> fairnif_exp:forever(fun() -> call(Mode, Us) end) end
                              || _ <- lists:seq(1, erlang:system_info(schedulers_online))], Opts);
peer({slice_us, Mode}) ->
    Key = case Mode of auto -> slice_ns; yielding_dirty -> dirty_slice_ns end,
    maps:get(Key, fairnif:info()) / 1000.

%% Everything is loaded, and set, before anything is measured.
prepare(Mode, Us) ->
    _ = code:ensure_loaded(fairnif_exp:spinsleep()),
    _ = fairnif:calibrate(),
    case Mode of
        yielding ->
            ok = application:set_env(fairnif, slice_us, Us),
            ok = fairnif:configure();
        _ ->
            ok = fairnif_exp_nif:sliced(1, 1)
    end.

call(erlang, _) -> fairnif_check_share:work(sort);
call(plain, _) -> spin(spinwork);
call(dirty, _) -> spin(spinwork_dirty);
call(by_hand, Us) -> fairnif_exp_nif:sliced(Us, max(1, ?CALL_US div Us));
call(by_hand_dirty, _) -> spin(spinwork_timeslice_dirty);
call(yielding, _) -> spin(spinwork_fair_yield);
call(auto, _) -> spin(spinwork_fair);
call(yielding_dirty, _) -> spin(spinwork_fair_dirty_yield).

spin(Form) -> fairnif_exp:spin(Form, ?CALL_US).

%% ---- the table ----

format(#{rows := Rows}) ->
    [fairnif_exp:table(
       [{"beside", left, {title, text}}, {"slices of", right, {slice_us, us}},
        {"CPU left to\na neighbour", right, {share, fun left/1}},
        {"published", right, {published, text}},
        {"a sleeper is\nlate: p50", right, {[late, p50], ns}},
        {"p99", right, {[late, p99], ns}}, {"most", right, {[late, max], ns}}],
       [R#{late => case Delay of
                       #{error := Error} -> #{max => string:slice(Error, 0, 30)};
                       _ -> Delay
                   end} || #{delay := Delay} = R <- Rows]),
     "CPU left: of one scheduler, to one that sorts, one that updates maps, one that builds "
     "binaries\n(--quick: that sorts); what a dirty scheduler leaves depends on idle cores.  "
     "Sleeper: of 1 ms, beside\nas many endless callers as schedulers; timers have ticks of a "
     "millisecond.  By hand: each slice is\ncharged in full; fair: for its time.\n",
     fairnif_exp:footnotes(fun(#{label := Label}) -> Label end,
                           [(maps:get(Part, R))#{label => label(R, Part)}
                            || R <- Rows, Part <- [share, delay]]),
     conclusion([[S || #{mode := M, slice_us := Us, share := #{neighbours := _} = S} <- Rows,
                       M =:= Mode, Mode =/= by_hand orelse Us == 1000]
                 || Mode <- [plain, by_hand, auto]])].

left(#{error := _}) -> "failed";
left(#{neighbours := Neighbours}) -> range(percent, [S || #{share := S} <- Neighbours]);
left(_) -> "-".

label(#{title := Title, slice_us := Us}, Part) ->
    [Title, [[", ", fairnif_exp:shown(us, Us)] || Us =/= undefined], " (", atom_to_list(Part), ")"].

%% Written from the figures.
conclusion([[_], [_], [_]] = Shares) ->
    io_lib:format("~nWhat to see: a plain NIF leaves a neighbour ~ts of the scheduler, one "
                  "that yields every~nmillisecond, as the documentation has it, ~ts, "
                  "a fair one ~ts.~n", [left(S) || [S] <- Shares]);
conclusion(_) ->
    "".
