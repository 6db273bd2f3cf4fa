%% How late an idle scheduler wakes up beside several kinds of load, with several settings of how
%% long schedulers spin before they sleep.
%%
%% A scheduler that has nothing to do spins, and yields its processor to the operating system once
%% in a hundred turns. A kernel may let a thread that yields wait until all others have run: then
%% a process is due, nothing is blocked, and nothing on the node says why it is late. So each row
%% says how long schedulers waited for a processor (schedstat), how often they yielded, and how late
%% they were where sched_yield does nothing.
%%
%% Each figure has a node of its own.
-module(fairnif_exp_wakeup).

-behaviour(fairnif_experiment).

-export([experiment/0]).

-import(fairnif_exp, [find/2, shown/2]).

-define(PATIENCE_MS, 60000).
-define(CALL_US, 300000).
-define(SETTLE_MS, 100).
%% Of each load, for each scheduler.
-define(LOADS, 4).
%% 0.6 processors. Of two versions of control groups, the first that can be written to.
-define(GROUPS, [{"/sys/fs/cgroup/cpu", [{"cpu.cfs_period_us", "100000"},
                                         {"cpu.cfs_quota_us", "60000"}]},
                 {"/sys/fs/cgroup", [{"cpu.max", "60000 100000"}]}]).

loads() ->
    [{idle, "nothing"}, {erlang, "Erlang processes"}, {auto, "fair calls, AUTO"},
     {dirty, "dirty NIFs"}, {threaded, "fair calls, THREADED"},
     {session, "programs, the same session"}, {program, "programs, another session"},
     {quota, "light work, 0.6 processors"}].

%% How long the schedulers of all three kinds spin.
waits() ->
    [{default, []}, {very_short, spin("very_short")}, {none, spin("none")}].

spin(How) ->
    lists:append([[Flag, How] || Flag <- ["+sbwt", "+sbwtdcpu", "+sbwtdio"]]).

scale(quick) ->
    {200, [{L, W} || L <- [idle, dirty, threaded], W <- [default, none]]};
scale(normal) ->
    {600, rows()};
scale(full) ->
    {5000, rows()}.

rows() ->
    [{L, W} || {L, _} <- loads(), {W, _} <- waits()].

%% @doc Measures all; a bit over a minute, `full' ten.
-spec experiment() -> fairnif_experiment:experiment().
experiment() ->
    #{name => wakeup, needs => [fairnif_exp:spinsleep()],
      description => "how late an idle scheduler wakes up beside dirty jobs, threads, programs",
      steps => fun(Opts) -> length(element(2, scale(maps:get(scale, Opts, normal)))) end,
      measure => fun measure/3, peer => fun peer/1, format => fun format/1}.

measure(Scale, _, Step) ->
    {TimeMs, Cells} = scale(Scale),
    Rows = [begin
                Title = proplists:get_value(Load, loads()),
                Step([Title, ", busy waiting: ", atom_to_list(Wait)]),
                #{load => Load, title => list_to_binary(Title), busy_wait => Wait,
                  real => in_node(Load, Wait, [], TimeMs),
                  %% Erlang's share says nothing there.
                  control => in_node(Load, Wait, [{"FAIRNIF_EXP_NO_YIELD", "1"}], TimeMs)}
            end || {Load, Wait} <- Cells],
    fairnif_exp:result([maps:get(Part, R) || R <- Rows, Part <- [real, control]],
                       #{units => <<"late in ns; waits: 1 is all; yields and work a second">>,
                         kernel => fairnif_exp:text(string:trim(os:cmd("uname -sr"))),
                         rows => Rows}).

%% Preloaded: fairnif_exp_yield.c.
in_node(Load, Wait, Env, TimeMs) ->
    Library = filename:join(code:priv_dir(fairnif_experiments), "fairnif_exp_yield.so"),
    in_group(Load, fun(Enter) ->
        fairnif_exp:failing(proplists:get_value(Wait, waits()),
                            #{env => [{"LD_PRELOAD", Library} | Env]},
                            fun(Peer) -> asked(Peer, Load, Enter, TimeMs) end)
    end).

asked(Peer, Load, Enter, TimeMs) ->
    Enter(fairnif_exp:ask(Peer, {os, getpid, []}, ?PATIENCE_MS)) =:= ok
        orelse throw({failed, "the node could not be put into the control group"}),
    Before = fairnif_check_peer:cpu_clock(Peer),
    Row = fairnif_exp:ask(Peer, {?MODULE, {late, Load, TimeMs}}, 2 * TimeMs + ?PATIENCE_MS),
    Others = fairnif_check_machine:others(Before, fairnif_check_peer:cpu_clock(Peer)),
    %% Its programs are others to the machine.
    Row#{others => case lists:member(Load, [session, program]) of
                       true -> undefined;
                       false -> Others
                   end}.

%% Fun gets what puts a process into the group.
in_group(quota, Fun) ->
    Name = "fairnif_exp_" ++ os:getpid(),
    case [{filename:join(Root, Name), Limits} || {Root, Limits} <- ?GROUPS,
                                                 file:make_dir(filename:join(Root, Name)) =:= ok] of
        [{Group, Limits} | _] = Made ->
            Write = fun({File, Text}) -> file:write_file(filename:join(Group, File), Text) end,
            try lists:usort([Write(L) || L <- Limits]) of
                [ok] -> Fun(fun(Pid) -> Write({"cgroup.procs", Pid}) end);
                _ -> no_group()
            after
                [file:del_dir(Dir) || {Dir, _} <- Made]
            end;
        [] ->
            no_group()
    end;
in_group(_, Fun) ->
    Fun(fun(_) -> ok end).

no_group() ->
    #{left_out => <<"no control group with a quota can be made here">>}.

%% ---- in the peers ----

peer({late, Load, TimeMs}) ->
    _ = code:ensure_loaded(fairnif_exp:spinsleep()),
    _ = fairnif_exp_nif:yields(),
    _ = fairnif:calibrate(),
    ok = load(Load, erlang:system_info(schedulers_online)),
    timer:sleep(?SETTLE_MS),
    {From, Waited, Yields} = clocks(),
    Late = fairnif_check_delay:measure(#{time_ms => TimeMs}),
    {Until, WaitedThen, YieldsThen} = clocks(),
    Ns = Until - From,
    Late#{waits => (WaitedThen - Waited) / Ns / erlang:system_info(schedulers_online),
          yields => (YieldsThen - Yields) * 1.0e9 / Ns,
          work => fairnif_exp:work(TimeMs) * 1000 / TimeMs}.

load(idle, _) ->
    ok;
load(Load, Schedulers) when Load =:= session; Load =:= program ->
    Own = case Load of session -> 0; program -> 1 end,
    lists:foreach(fun(_) -> ok = fairnif_exp_nif:burn(Own) end, lists:seq(1, Schedulers));
load(quota, _) ->
    List = [erlang:phash2(N) || N <- lists:seq(1, 500)],
    lists:foreach(fun(_) -> spawn(fun() -> fairnif_exp:forever(fun() -> light(List) end) end) end,
                  lists:seq(1, 6));
load(Load, Schedulers) ->
    lists:foreach(fun(_) -> spawn(fun() -> fairnif_exp:forever(call(Load)) end) end,
                  lists:seq(1, ?LOADS * Schedulers)).

light(List) ->
    _ = lists:sort(List),
    timer:sleep(2).

call(auto) -> fun() -> fairnif_exp:spin(spinwork_fair, ?CALL_US) end;
call(dirty) -> fun() -> fairnif_exp:spin(spinwork_dirty, ?CALL_US) end;
call(threaded) -> fun() -> fairnif_exp:spin(spinwork_threaded, ?CALL_US) end;
call(erlang) -> fun() -> fairnif_check_share:work(sort) end.

%% Ns, what the normal schedulers waited for a processor so far, and how often threads yielded.
clocks() ->
    Waits = [binary_to_integer(hd(tl(binary:split(Stat, <<" ">>, [global]))))
             || Task <- filelib:wildcard("/proc/self/task/*"),
                {ok, Name} <- [file:read_file(Task ++ "/comm")],
                {scheduler, _} <- [fairnif_exp_http_watch:kind(Name)],
                {ok, Stat} <- [file:read_file(Task ++ "/schedstat")]],
    {erlang:monotonic_time(nanosecond), lists:sum(Waits), fairnif_exp_nif:yields()}.

%% ---- the table ----

format(#{rows := Rows, kernel := Kernel}) ->
    [fairnif_exp:table(
       [{"beside", left, {title, text}}, {"busy waiting", left, {busy_wait, text}},
        {"a sleeper is\nlate: p50", right, {[real, p50], ns}},
        {"p99", right, {[real, p99], ns}}, {"most", right, {[real, max], ns}},
        {"schedulers wait\nfor a processor", right, {[real, waits], percent}},
        {"sched_yield\na second", right, {[real, yields], count}},
        {"p99 where that\ndoes nothing", right, {[control, p99], ns}},
        {"Erlang work,\nof idle", right, {share, percent}}],
       [R#{share => share(R, Rows)} || R <- Rows]),
     io_lib:format("Kernel: ~ts.  Sleeper: of 1 ms, beside ~b endless loads for each scheduler "
                   "(or a program);\ntimers have ticks of a millisecond.  Erlang work: a process "
                   "for each scheduler.  Late\nwake-ups come and go from run to run.\n",
                   [Kernel, ?LOADS]),
     fairnif_exp:footnotes(
       fun(#{label := Label}) -> Label end,
       [(maps:get(Part, R))#{label => [Title, ", ", atom_to_list(Wait),
                                       [" (control)" || Part =:= control]]}
        || #{title := Title, busy_wait := Wait} = R <- Rows, Part <- [real, control]]),
     [["Left out: ", Title, ": ", Why, "\n"]
      || #{title := Title, busy_wait := default, real := #{left_out := Why}} <- Rows],
     conclusion([P99 || {Load, Wait} <- [{dirty, default}, {dirty, none}, {idle, default}],
                        #{load := L, busy_wait := W, real := #{p99 := P99}} <- Rows,
                        {L, W} =:= {Load, Wait}])].

share(#{load := Load, busy_wait := Wait, real := #{work := Work}}, Rows) when Load =/= idle ->
    case find(#{load => idle, busy_wait => Wait}, Rows) of
        #{real := #{work := Idle}} when Idle > 0 -> Work / Idle;
        _ -> undefined
    end;
share(_, _) ->
    undefined.

%% Written from the figures.
conclusion([Dirty, Quiet, Idle]) ->
    io_lib:format("~nWhat to see: beside dirty NIFs one sleeper in a hundred is late by ~ts with "
                  "the default flags,~nby ~ts where no scheduler spins; on an idle node by ~ts.~n",
                  [shown(ns, Ns) || Ns <- [Dirty, Quiet, Idle]]);
conclusion(_) ->
    "".
