%% The matrix of Bennett's talk: how much later than it could the last of many native calls is done,
%% by the way they run, their length and their number.
%%
%% Each mode has a node of its own; after a cell that failed or took too long it gets a new one, and
%% the next cell follows.
-module(fairnif_exp_matrix).

-behaviour(fairnif_experiment).

-export([experiment/0]).

-import(fairnif_exp, [about/1, now_ms/0, shown/2, time/1]).

-define(PLAN, fairnif_exp_matrix_plan).
%% What a cell may take: this many times its prediction, and this.
%% Large, as it is only against what never ends: a busy machine shall not fail.
-define(TIMES, 10).
-define(LIMIT_MS, 30000).
%% All defaults, but room for many processes on many cores.
-define(FLAGS, ["+P", "2000000"]).
%% What a call of spinwork takes alone is measured with this one: the shortest of some, as whatever
%% else the machine does only adds.
-define(ALONE_US, 5000).
-define(ALONE_RUNS, 5).
-define(SETTLE_MS, 20).

%% @doc Measures the cells of `scale' (quick: some seconds; normal: about five minutes; full:
%% hours).  A cell that fails or takes longer than ten times its prediction and the option
%% `limit_ms' says so, and the others continue.
-spec experiment() -> fairnif_experiment:experiment().
experiment() ->
    #{name => matrix, needs => [fairnif_exp:spinsleep()],
      description =>
          "modes x durations x calls per scheduler: how long the last one waits (Bennett's talk)",
      %% One per mode and duration.
      steps => fun(Opts) -> length(groups(?PLAN:cells(maps:get(scale, Opts, normal)))) end,
      measure => fun measure/3, peer => fun peer/1, format => fun format/1}.

%% ---- running ----

measure(Scale, Opts, Step) ->
    Cells = ?PLAN:cells(Scale),
    Start = now_ms(),
    {Groups, State} = lists:mapfoldl(
                        fun group/2,
                        #{step => Step, peer => none, left => ?PLAN:cost_ms(Cells),
                          limit => maps:get(limit_ms, Opts, ?LIMIT_MS), others => []},
                        groups(Cells)),
    Rows = lists:append(Groups),
    #{others := Others} = done(State),
    #{ok => [] =:= [S || #{status := S} <- Rows, S =/= measured, S =/= skipped],
      scale => Scale, predicted_ms => ?PLAN:cost_ms(Cells), took_ms => now_ms() - Start,
      flags => list_to_binary(lists:join($\s, ?FLAGS)), others => Others,
      units => <<"elapsed, extra in ns; extra: of the median run">>,
      published => [#{mode => M, duration_us => Us,     % for JSON: null is none
                      extra_s => [case S of none -> null; _ -> S end || S <- P]}
                    || {M, Us} <- lists:usort([{M, Us} || #{mode := M, duration_us := Us} <- Rows]),
                       P <- [?PLAN:published(M, Us)], P =/= undefined],
      rows => Rows}.

%% The cells of one mode and duration, in the order of the plan.
groups([]) ->
    [];
groups([#{mode := Mode, duration_us := Us} | _] = Cells) ->
    {Group, Rest} = lists:splitwith(fun(#{mode := M, duration_us := D}) ->
                                            {M, D} =:= {Mode, Us}
                                    end, Cells),
    [Group | groups(Rest)].

group([#{mode := Mode, duration_us := Us} | _] = Group, #{step := Step, left := Left} = State0) ->
    Cost = ?PLAN:cost_ms(Group),
    Step([title(Mode), ", ", time(Us), ": ", about(Cost), " of ", about(Left), " left"]),
    {Measured, State} = lists:mapfoldl(fun cell/2, same_mode(Mode, State0), Group),
    {Measured, State#{left := Left - Cost}}.

%% A peer of another mode is of no further use.
same_mode(Mode, #{peer := #{mode := Mode}} = State) -> State;
same_mode(Mode, State) -> (done(State))#{mode => Mode}.

%% Ends a peer that still answers, and asks it first what others computed.
done(#{peer := #{node := Node, mode := Mode, clock := Clock}, others := Others} = State) ->
    Row = #{mode => Mode,
            others => fairnif_check_machine:others(Clock, fairnif_check_peer:cpu_clock(Node))},
    drop(State#{others := Others ++ [Row]});
done(State) ->
    State.

drop(#{peer := #{node := Node}} = State) ->
    fairnif_check_peer:stop(Node),
    State#{peer := none}.

cell(#{skipped := Why} = Cell, State) when Why =/= undefined ->
    {Cell#{status => skipped}, State};
cell(Cell, #{peer := none, mode := Mode} = State) ->
    case start(Mode) of
        {ok, Peer} -> cell(Cell, State#{peer := Peer});
        {error, Why} -> {failed(Cell, Why), State}
    end;
cell(#{form := Form, duration_us := Us, multiple := Multiple, runs := Runs,
       predicted_ms := Ms} = Cell,
     #{peer := #{node := Node} = Peer, limit := LimitMs} = State) ->
    Limit = ?TIMES * Ms + LimitMs,
    try [pass(Node, {Form, Us, Multiple}, Limit) || _ <- lists:seq(1, Runs)] of
        Elapsed -> {measured(Cell, Peer, Elapsed), State}
    catch
        throw:timeout -> {Cell#{status => timeout, limit_ms => Limit}, drop(State)};
        throw:{ended, Why} -> {failed(Cell, Why), drop(State)}
    end.

start(Mode) ->
    case fairnif_check_peer:start(?FLAGS) of
        {ok, Node} ->
            try fairnif_exp:ask(Node, {?MODULE, prepare}, ?LIMIT_MS) of
                Prepared -> {ok, Prepared#{node => Node, mode => Mode,
                                           clock => fairnif_check_peer:cpu_clock(Node)}}
            catch
                throw:{failed, Text} -> fairnif_check_peer:stop(Node), {error, Text}
            end;
        {error, Reason} ->
            {error, fairnif_check_peer:format_error(Reason)}
    end.

pass(Node, Request, Limit) ->
    case fairnif_check_peer:call(Node, {fairnif_experiment, peer, [?MODULE, Request]}, Limit) of
        {ok, {ok, Ns}} -> Ns;
        {ok, {error, Reason}} ->
            throw({ended, io_lib:format("a call ended with ~0tP", [Reason, 8])});
        {error, {timeout, _}} -> throw(timeout);
        {error, Reason} -> throw({ended, fairnif_check_peer:format_error(Reason)})
    end.

measured(#{multiple := Multiple} = Cell, #{schedulers := Schedulers, work_scale := Scale},
         Elapsed) ->
    Cell#{status => measured, processes => Multiple * Schedulers, work_scale => Scale,
          elapsed => Elapsed, extra => fairnif_check_stats:median(Elapsed) - least(Cell, Scale)}.

%% What it takes at least, in ns: calls that wait for a deadline can all do so at once; work is
%% shared by as many cores as there are schedulers.  Scale: what a microsecond of work took alone in
%% that node.
least(#{job := spinsleep, duration_us := Us}, _) ->
    1000 * Us;
least(#{job := spinwork, duration_us := Us, multiple := Multiple}, Scale) ->
    round(1000 * Us * Multiple * Scale).

failed(Cell, Why) ->
    Cell#{status => failed, why => fairnif_exp:text(Why)}.

%% ---- in the peers ----

%% Loads the example and measures its unit of work in this node: how many microseconds a
%% microsecond of `spinwork' takes when nothing else runs.  It is counted in steps whose number was
%% measured when the library was loaded.
peer(prepare) ->
    Took = [fairnif_exp:spin(spinwork, ?ALONE_US) || _ <- lists:seq(1, ?ALONE_RUNS)],
    #{schedulers => erlang:system_info(schedulers_online),
      work_scale => lists:min(Took) / ?ALONE_US};
%% Multiple x schedulers_online processes call Form with Us once each: nanoseconds from the first
%% start to the last end.  An error when a call fails.
peer({Form, Us, Multiple}) ->
    %% What the cell before has left behind shall not count.
    erlang:garbage_collect(),
    timer:sleep(?SETTLE_MS),
    Callers = [spawn_monitor(fun() -> exit({took, timed(Form, Us)}) end)
               || _ <- lists:seq(1, Multiple * erlang:system_info(schedulers_online))],
    %% All are started before this process competes with the first of them.
    process_flag(priority, high),
    _ = [Pid ! go || {Pid, _} <- Callers],
    Ends = [receive {'DOWN', Monitor, process, Pid, Reason} -> Reason end
            || {Pid, Monitor} <- Callers],
    case [End || End <- Ends, not is_tuple(End) orelse element(1, End) =/= took] of
        [] ->
            {Starts, Stops} = lists:unzip([Times || {took, Times} <- Ends]),
            {ok, lists:max(Stops) - lists:min(Starts)};
        [Reason | _] ->
            {error, Reason}
    end.

timed(Form, Us) ->
    receive go -> ok end,
    Start = erlang:monotonic_time(nanosecond),
    _ = fairnif_exp:spin(Form, Us),
    {Start, erlang:monotonic_time(nanosecond)}.

%% ---- the tables ----

format(#{rows := Rows, scale := Scale, others := Others}) ->
    Schedulers = lists:max([0 | [P div M || #{processes := P, multiple := M} <- Rows]]),
    Skipped = [S || #{skipped := S} <- Rows],
    [[table(Us, [R || #{duration_us := D} = R <- Rows, D =:= Us])
      || Us <- lists:usort([Us || #{duration_us := Us} <- Rows])],
     io_lib:format(
       "Last end less first start, less the duration of a call (spinsleep: spins until a deadline) "
       "or less~nduration x calls / cores (spinwork: a fixed amount of work, its duration taken as "
       "it was alone).~n1x is one call for each of ~b schedulers.  The talk: Andrew Bennett, "
       "\"Well-Behaved Native~nImplemented Functions for Elixir\", 2017, his machine, spinsleep; - "
       "is none.  His yielding form gave way~nonce in a call.~n", [Schedulers]),
     [["(100 s): left out, predicted to take so long; more than a cell may in the scale ",
       atom_to_list(Scale), ".\n"] || lists:member(cell, Skipped)],
     [["(left out): all together would take longer than the scale ", atom_to_list(Scale),
       " may; a larger one has it.\n"] || lists:member(total, Skipped)],
     ["> : no answer within the time limit.\n"
      || lists:member(timeout, [S || #{status := S} <- Rows])],
     [["Failed: ", atom_to_list(Form), ", ", time(Us), ", ", shown(count, M), "x: ", Why, $\n]
      || #{status := failed, form := Form, duration_us := Us, multiple := M, why := Why} <- Rows],
     fairnif_exp:doubt(", ", [title(M) || #{mode := M, others := O} <- Others,
                                          fairnif_exp:doubted(O)]),
     conclusion([R || #{status := measured, job := spinsleep} = R <- Rows])].

table(Us, Rows) ->
    Multiples = lists:usort([M || #{multiple := M} <- Rows]),
    fairnif_exp:table(
      [{["calls of ", time(Us)], left, {job, text}}, {"mode", left, {title, text}}]
      ++ [{[shown(count, M), "x"], right, {M, fun text/1}} || M <- Multiples]
      ++ [{"the talk: 1x, 10x,\n100x, 1000x, 10000x", right, {talk, text}}],
      [maps:from_list([{M, R} || #{job := J, mode := Mo, multiple := M} = R <- Rows,
                                 {J, Mo} =:= {Job, Mode}]
                      ++ [{job, Job}, {title, Title}, {talk, talk(Job, Mode, Us)}])
       || Job <- [spinsleep, spinwork], {Mode, Title, _, _} <- ?PLAN:modes(),
          fairnif_exp:find(#{job => Job, mode => Mode}, Rows) =/= none]).

%% How bad a time is shall be seen before it is read.
text(#{status := measured, extra := Ns}) ->
    Heat = hd([H || {From, H} <- [{1.0e10, $█}, {1.0e9, $▓}, {1.0e8, $▒}, {1.0e7, $░}],
                    Ns >= From, fairnif_check_table:style() =:= unicode] ++ [none]),
    [[[Heat, $\s] || Heat =/= none], shown(ns, Ns)];
text(#{status := failed}) -> "failed";
text(#{status := timeout, limit_ms := Ms}) -> ["> ", about(Ms)];
text(#{status := skipped, skipped := cell, predicted_ms := Ms}) -> ["(", time(1000 * Ms), ")"];
text(#{status := skipped, skipped := total}) -> "(left out)".

talk(spinsleep, Mode, Us) ->
    case ?PLAN:published(Mode, Us) of
        undefined -> "";
        Seconds -> lists:join("/", [case S of
                                        none -> "-";
                                        _ when S >= 120 -> [integer_to_list(S div 60), "m"];
                                        _ -> [integer_to_list(S), "s"]
                                    end || S <- Seconds])
    end;
talk(spinwork, _, _) ->
    "".

title(Mode) ->
    {_, Title, _, _} = lists:keyfind(Mode, 1, ?PLAN:modes()),
    Title.

%% Written from the figures, so that it cannot say what they do not: the cell of spinsleep in which
%% plain NIFs were latest, and what others made of it.
conclusion(Rows) ->
    case lists:sort([{Extra, Us, M, P} || #{mode := normal, extra := Extra, duration_us := Us,
                                            multiple := M, processes := P} <- Rows]) of
        [] ->
            "";
        Plain ->
            {_, Us, M, Processes} = lists:last(Plain),
            io_lib:format(
              "~nWhat to see: ~s calls of ~s that only wait for a deadline could all be done at "
              "once.~nThe last one is late by~n~tsWork has to be done by someone: what a form of "
              "spinwork adds is what the form costs.~n",
              [shown(count, Processes), time(Us),
               [io_lib:format("~9s  ~ts~n", [shown(ns, Extra), title(Mode)])
                || #{mode := Mode, extra := Extra, duration_us := D, multiple := X} <- Rows,
                   D =:= Us, X =:= M]])
    end.
