%% What native code leaves to others, by its mode and the length of its slices:
%% of one scheduler to a busy Erlang process, and how late a sleeper is while
%% there are as many endless callers as schedulers.
%%
%% Each figure has a node of its own.
-module(fairnif_exp_share).

-behaviour(fairnif_experiment).

-export([about/0, steps/1, run/1, format/1]).

-define(PEER, fairnif_exp_share_peer).
-define(LENGTHS_US, [1000, 200, 100, 50, 25]).
%% A node that gives way answers in that time after its work, on a busy machine
%% too.
-define(PATIENCE_MS, 60000).

%% What slices that are each charged in full were found to leave before the first
%% line of fairnif was written: OTP 25, 2 cores, the same neighbours.
published() ->
    #{{by_hand, 1000} => "3 to 7 %", {by_hand, 200} => "12 to 24 %",
      {by_hand, 100} => "21 to 39 %", {by_hand, 50} => "34 to 57 %",
      {by_hand, 25} => "48 to 73 %"}.

%% In the order of the table.
modes(quick) ->
    [M || {Mode, _} = M <- modes(normal),
          lists:member(Mode, [erlang, plain, {by_hand, 1000}, {by_hand, 25}, {yielding, 25},
                              auto])];
modes(_) ->
    [{idle, "nothing"}, {erlang, "Erlang work"}, {plain, "plain NIF"}, {dirty, "dirty NIF"}]
        ++ [{{by_hand, Us}, "sliced by hand"} || Us <- ?LENGTHS_US]
        ++ [{by_hand_dirty, "sliced by hand, dirty"}]
        ++ [{{yielding, Us}, "fair, yielding"} || Us <- ?LENGTHS_US]
        ++ [{auto, "fair, auto"}, {yielding_dirty, "fair, yielding dirty"}].

%% Options of fairnif_lab_share and of fairnif_lab_delay; patience: beside the
%% plain NIF, of which no answer is expected, ms.
scale(quick) ->
    #{mixes => [sort], share => #{time_ms => 150, alone_ms => 50},
      delay => #{time_ms => 150}, patience => 2000};
scale(normal) ->
    #{mixes => fairnif_lab_share:mixes(), share => #{time_ms => 350, alone_ms => 100},
      delay => #{time_ms => 1200}, patience => 4000};
scale(full) ->
    #{mixes => fairnif_lab_share:mixes(), share => #{time_ms => 3000, alone_ms => 1000},
      delay => #{time_ms => 20000}, patience => 5000}.

%% @doc Its name, and one line for the list of experiments.
-spec about() -> fairnif_experiment:about().
about() ->
    #{name => share,
      description => "what each mode and slice length leaves to Erlang neighbours and sleepers"}.

%% @doc One per mode and length.
-spec steps(fairnif_experiment:options()) -> pos_integer().
steps(Opts) ->
    length(modes(fairnif_exp:scale(Opts))).

%% @doc Measures all; a bit over a minute, `full' five.
-spec run(fairnif_experiment:options()) -> fairnif_experiment:outcome().
run(Opts) ->
    fairnif_exp:needs([fairnif_exp:spinsleep()], fun() -> measured(Opts) end).

measured(Opts) ->
    Progress = fairnif_exp:progress(Opts),
    Name = fairnif_exp:scale(Opts),
    Rows = [begin
                fairnif_lab_progress:step(Progress, [Title, length_of(Mode)]),
                row(Mode, Title, scale(Name))
            end || {Mode, Title} <- modes(Name)],
    fairnif_lab_progress:stop(Progress),
    {ok, fairnif_exp:result(
           [Part || #{parts := Parts} <- Rows, Part <- Parts],
           #{units => <<"share: 1 is all; delay in ns; slices in us">>,
             rows => [maps:remove(parts, R) || R <- Rows]})}.

%% ---- running ----

row(Mode, Title, Scale) ->
    Share = share(Mode, Scale),
    Delay = delay(Mode, Scale),
    Slice = slice(Mode),
    {Kind, _} = kind(Mode),
    #{mode => Kind, title => list_to_binary(Title), slice_us => maps:get(value, Slice, undefined),
      published => case published() of
                       #{Mode := Text} -> list_to_binary(Text);
                       _ -> undefined
                   end,
      share => Share, delay => Delay, parts => [Share, Delay, Slice]}.

%% What the runtime chose, only a node of its own says.
slice(Mode) when Mode =:= auto; Mode =:= yielding_dirty ->
    fairnif_exp:in_peer([], {?PEER, slice_us, [Mode]}, ?PATIENCE_MS);
slice(Mode) ->
    #{value => ?PEER:slice_us(Mode)}.

%% The file of samples knows no tuples.
kind({Kind, Us}) -> {Kind, Us};
kind(Kind) -> {Kind, undefined}.

share(idle, _) ->
    #{};
share(Mode, #{mixes := Mixes, share := Opts}) ->
    value(fairnif_exp:in_peer(fairnif_lab_share:flags(), {?PEER, shares, [Mode, Mixes, Opts]},
                              ?PATIENCE_MS)).

delay(Mode, #{delay := #{time_ms := TimeMs} = Opts, patience := Patience}) ->
    %% What it does to a node is what is to be shown.
    MayTimeOut = Mode =:= plain,
    PatienceMs = case MayTimeOut of true -> Patience; false -> ?PATIENCE_MS end,
    Row = fairnif_exp:in_peer([], {?PEER, delay, [Mode, Opts]}, TimeMs + PatienceMs),
    (value(Row))#{may_time_out => MayTimeOut}.

value(#{value := Results} = Row) when is_list(Results) ->
    (maps:remove(value, Row))#{neighbours => Results};
value(#{value := #{} = Result} = Row) ->
    maps:merge(maps:remove(value, Row), Result);
value(Row) ->
    Row.

%% ---- the table ----

%% @doc The table and what to see in it.
-spec format(fairnif_experiment:result()) -> unicode:chardata().
format(#{rows := Rows}) ->
    [fairnif_lab_table:render(
       [{"beside", left}, {"slices of", right}, {"CPU left to\na neighbour", right},
        {"published", right}, {"a sleeper is\nlate: p50", right}, {"p99", right}, {"most", right}],
       [cells(R) || R <- Rows]),
     "CPU left: of one scheduler, to one that sorts, one that updates maps, one that builds "
     "binaries\n(--quick: that sorts); what a dirty scheduler leaves depends on idle cores.  "
     "Sleeper: of 1 ms, beside\nas many endless callers as schedulers; timers have ticks of a "
     "millisecond.  By hand: each slice is\ncharged in full; fair: for its time.\n",
     fairnif_exp:footnotes(fun(#{label := Label}) -> Label end,
                           [(maps:get(Part, R))#{label => label(R, Part)}
                            || R <- Rows, Part <- [share, delay]]),
     conclusion(Rows)].

cells(#{title := Title, slice_us := Us, share := Share, delay := Delay} = Row) ->
    [Title, case Us of
                undefined -> "-";
                _ -> fairnif_lab_table:duration(Us * 1000)
            end,
     left(Share), case Row of
                      #{published := Text} when is_binary(Text) -> Text;
                      _ -> "-"
                  end
     | late(Delay)].

left(#{error := _}) -> "failed";
left(#{neighbours := Neighbours}) ->
    Shares = [S || #{share := S} <- Neighbours],
    case [fairnif_lab_table:percent(F(Shares)) || F <- [fun lists:min/1, fun lists:max/1]] of
        [Same, Same] -> Same;
        [Least, Most] -> [Least, " to ", Most]
    end;
left(_) -> "-".

late(#{error := Error}) -> ["-", "-", string:slice(Error, 0, 30)];
late(#{p50 := P50, p99 := P99, max := Max}) ->
    [fairnif_lab_table:duration(Ns) || Ns <- [P50, P99, Max]].

label(#{title := Title, slice_us := undefined}, Part) ->
    io_lib:format("~ts (~s)", [Title, Part]);
label(#{title := Title, slice_us := Us}, Part) ->
    io_lib:format("~ts, ~ts (~s)", [Title, fairnif_lab_table:duration(Us * 1000), Part]).

length_of({_, Us}) -> io_lib:format(", slices of ~b us", [Us]);
length_of(_) -> "".

%% Written from the figures.
conclusion(Rows) ->
    Find = fun(Mode, Us) ->
                   [S || #{mode := M, slice_us := U, share := #{neighbours := _} = S} <- Rows,
                         M =:= Mode, Us =:= any orelse U == Us]
           end,
    case {Find(by_hand, 1000), Find(auto, any), Find(plain, any)} of
        {[ByHand], [Auto], [Plain]} ->
            io_lib:format("~nWhat to see: a plain NIF leaves a neighbour ~ts of the scheduler, one "
                          "that yields every~nmillisecond, as the documentation has it, ~ts, "
                          "a fair one ~ts.~n",
                          [left(S) || S <- [Plain, ByHand, Auto]]);
        _ ->
            ""
    end.
