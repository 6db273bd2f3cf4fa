%% What the VM charges a process for a call: Erlang, native code that says nothing about the time it
%% used, and native code that says it.
%%
%% Everything runs in one peer, one call after the other in a process of its own; a charge is
%% counted, not timed, so a busy machine hardly moves it.
-module(fairnif_exp_reductions).

-behaviour(fairnif_experiment).

-export([experiment/0]).
%% What is called in Erlang.
-export([echo/1, replies/1, work/1]).

-define(REPLIES, 1000).
%% So large that no collection, which is charged too, comes between.
-define(HEAP_WORDS, 1000000).
%% Nothing here lasts longer than a second or two, even behind other programs.
-define(LIMIT_MS, 60000).

%% In the order of the table: key, what it is, the call, what was published: compiled, and from a
%% shell, whose evaluator's own work is in the figures.
rows(Us) ->
    Spinsleep = fairnif_exp:spinsleep(),
    Time = fairnif_exp:shown(us, Us),
    [{echo, "Erlang: echo", {?MODULE, echo, [hello]}, 1, 400},
     {replies, "Erlang: receive 1,000 replies", {?MODULE, replies, [?REPLIES]}, 1001, 1400},
     {work, ["Erlang: work for ", Time], {?MODULE, work, [Us]}, undefined, undefined},
     {nif_echo, "NIF: echo", {Spinsleep, echo, [hello]}, undefined, 200},
     {nif_spin, ["NIF: spins ", Time], {Spinsleep, spinsleep, [Us]}, undefined, 200},
     {nif_consume, "NIF: consume_timeslice(100)", {fairnif_exp_nif, consume, [100]},
      undefined, 4200},
     {nif_sliced, ["NIF: slices of 1 ms, each 100 %, ", Time],
      {fairnif_exp_nif, sliced, [1000, max(1, Us div 1000)]}, undefined, undefined},
     {nif_dirty, ["dirty NIF: spins ", Time], {Spinsleep, spinsleep_dirty, [Us]},
      undefined, undefined},
     {nif_fair, ["fair NIF: spins ", Time], {Spinsleep, spinsleep_fair_yield, [Us]},
      undefined, undefined}].

%% How long those spin that spin, in us; the median of that many.
scale(quick) -> {50000, 1};
scale(normal) -> {1000000, 3};
scale(full) -> {1000000, 11}.

%% @doc Charges each call, compiled and evaluated; half a minute, since five of them last a second.
-spec experiment() -> fairnif_experiment:experiment().
experiment() ->
    #{name => reductions, needs => [fairnif_exp:spinsleep()],
      description => "what an echo, replies, a spinning NIF and a sliced one are charged",
      steps => length(rows(0)), measure => fun measure/3, peer => fun charged/1,
      format => fun format/1}.

measure(Scale, _, Step) ->
    {Us, Repeats} = scale(Scale),
    Measure = fun(Peer) -> #{rows => [row(Row, Peer, Repeats, Step) || Row <- rows(Us)]} end,
    case fairnif_exp:failing([], Measure) of
        #{rows := Rows} ->
            fairnif_exp:result(Rows, #{rows => Rows, spin_us => Us, units => <<"reductions">>});
        #{error := Error} ->
            throw({failed, Error})
    end.

row({Key, Title, Call, OfCompiled, OfShell}, Peer, Repeats, Step) ->
    Step(Title),
    Row = try [[fairnif_exp:ask(Peer, {?MODULE, {How, Call}}, ?LIMIT_MS)
                || _ <- lists:seq(1, Repeats)] || How <- [compiled, evaluated]] of
              [Compiled, Evaluated] ->
                  #{compiled => round(fairnif_check_stats:median(Compiled)),
                    evaluated => round(fairnif_check_stats:median(Evaluated)),
                    compiled_samples => Compiled, evaluated_samples => Evaluated}
          catch
              throw:{failed, Text} -> #{error => Text}
          end,
    Row#{key => Key, title => fairnif_exp:text(Title),
         published => #{compiled => OfCompiled, shell => OfShell}}.

%% ---- in the peer ----

%% The reductions that a fresh process is charged for a call of one or two arguments.  `compiled':
%% the call alone, what the looks at the count cost taken off.  `evaluated': with them, and all that
%% erl_eval does meanwhile, as a user sees who types `{reductions, R0} = ..., CALL,
%% {reductions, R1} = ...' and subtracts.
charged({compiled, Call}) ->
    in_process(Call, fun() -> compiled(Call) end) - in_process(none, fun() -> compiled(none) end);
charged({evaluated, {M, F, Args} = Call}) ->
    %% The rest of a time slice is all that a NIF can say it used: so the slice is a new one.
    Source = io_lib:format("erlang:yield(), {reductions, R0} = process_info(self(), reductions), "
                           "~s:~s(~s), {reductions, R1} = process_info(self(), reductions), "
                           "R1 - R0.",
                           [M, F, lists:join(", ", [io_lib:format("~0p", [A]) || A <- Args])]),
    {ok, Tokens, _} = erl_scan:string(lists:flatten(Source)),
    {ok, Exprs} = erl_parse:parse_exprs(Tokens),
    in_process(Call, fun() ->
                             {value, Charged, _} = erl_eval:exprs(Exprs, erl_eval:new_bindings()),
                             Charged
                     end).

%% Nothing between the looks but the call.
-define(CHARGED(Call), begin
                           {reductions, R0} = process_info(self(), reductions),
                           _ = Call,
                           {reductions, R1} = process_info(self(), reductions),
                           R1 - R0
                       end).

compiled(none) -> ?CHARGED(ok);
compiled({M, F, [A]}) -> ?CHARGED(M:F(A));
compiled({M, F, [A, B]}) -> ?CHARGED(M:F(A, B)).

%% Modules are loaded, and messages there, before anything is charged.
in_process(Call, Fun) ->
    _ = [code:ensure_loaded(M) || M <- [erl_eval | [element(1, Call) || Call =/= none]]],
    fairnif_check_machine:apart([{min_heap_size, ?HEAP_WORDS}],
                              fun() -> prepare(Call), erlang:yield(), Fun() end).

prepare({?MODULE, replies, [N]}) ->
    Me = self(),
    {Pid, Monitor} = spawn_monitor(fun() -> [Me ! {reply, I} || I <- lists:seq(1, N)] end),
    %% Behind all messages of the same sender; looking for it has moved them to where the next
    %% receive finds them.
    receive {'DOWN', Monitor, process, Pid, normal} -> ok end;
prepare(_) ->
    ok.

%% @doc Its argument.
-spec echo(T) -> T.
echo(Term) -> Term.

%% @doc Receives that many messages that are there already.
-spec replies(non_neg_integer()) -> ok.
replies(0) -> ok;
replies(N) -> receive {reply, _} -> replies(N - 1) end.

%% @doc Ordinary Erlang work until that many microseconds of the wall's time are over.
-spec work(non_neg_integer()) -> ok.
work(Us) -> work_until(erlang:monotonic_time(microsecond) + Us).

work_until(Until) ->
    _ = fairnif_check_share:work(sort),
    case erlang:monotonic_time(microsecond) < Until of
        true -> work_until(Until);
        false -> ok
    end.

%% ---- the table ----

format(#{rows := Rows}) ->
    [fairnif_exp:table(
       [{"call", left, {title, text}}, {"compiled", right, {compiled, count}},
        {"published,\ncompiled", right, {[published, compiled], count}},
        {"evaluated", right, {evaluated, count}},
        {"published,\nin a shell", right,
         {[published, shell], fun(N) -> ["~", fairnif_exp:shown(count, N)] end}}], Rows),
     "Reductions; a turn is 4,000.  Compiled: the call alone.  Evaluated: with what "
     "erl_eval does\nmeanwhile; a shell adds hundreds of its own, so the published "
     "figures are not those of the calls.\nA VM with the JIT "
     "charges the return from an Erlang function as well.\n",
     fairnif_exp:footnotes(fun(#{title := Title}) -> Title end, Rows),
     conclusion(maps:from_list([{K, C} || #{key := K, compiled := C} <- Rows]))].

conclusion(#{nif_spin := Spin, nif_sliced := Sliced, nif_fair := Fair, work := Work}) ->
    io_lib:format(
      "~nWhat to see: for the same time Erlang work is charged ~ts, a NIF that says "
      "nothing ~ts,~none that says after each millisecond that its slice is used up "
      "~ts, a fair one ~ts.~n",
      [fairnif_exp:shown(count, N) || N <- [Work, Spin, Sliced, Fair]]);
conclusion(_) ->
    "".
