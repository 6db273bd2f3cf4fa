%% What needs time, for `make soak': mixed load for SOAK_SECONDS, SOAK_KILLS kills, SOAK_TASKS tasks
%% at once. The defaults are small, for `make test'.
%%
%% The storms run in one node, in rounds. After each round nothing of a task is left
%% (fairnif_test_storm sees to that), and one line says how it stands; over all rounds the node's
%% resident memory does not grow.
-module(fairnif_soak_SUITE).

-export([all/0, suite/0, init_per_suite/1, end_per_suite/1]).
-export([a_long_storm_leaves_nothing/1,
         kills_at_any_moment_in_any_state_leave_nothing/1,
         a_long_storm_of_waits_leaves_nothing/1,
         very_many_suspended_tasks_take_little_memory_and_leave_none/1,
         very_many_idle_native_processes_take_little_memory/1]).

%% Seconds; and growth that is none: a share of what is resident, and bytes at least.
-define(ROUND, 20).
%% Upgrades in a round: few, since the VM keeps 12 to 25 KB of each module that it loads (OTP 25; as
%% much of one without a NIF), which is not the growth that is looked for. fairnif_storm_SUITE has
%% as many as there is time for.
-define(UPGRADES, 2).
-define(GROWTH, 0.05).
-define(GROWTH_AT_LEAST, (16 * 1024 * 1024)).

suite() ->
    [{timetrap, {seconds, 900 + max(3 * seconds(), kills() div 50)}}].

all() ->
    fairnif_test:cases(?MODULE).

init_per_suite(Config) ->
    ok = fairnif_test:build(),
    Config.

end_per_suite(_Config) ->
    ok.

a_long_storm_leaves_nothing(_) ->
    in_peer(fun(Peer) -> rounds(fun(Left) -> blow(Peer, Left) end, Peer, "s", seconds()) end).

kills_at_any_moment_in_any_state_leave_nothing(_) ->
    in_peer(fun(Peer) -> rounds(fun(Left) -> kill(Peer, Left) end, Peer, "kills", kills()) end).

a_long_storm_of_waits_leaves_nothing(_) ->
    in_peer(fun(Peer) -> rounds(fun(Left) -> waits(Peer, Left) end, Peer, "s", seconds()) end).

very_many_suspended_tasks_take_little_memory_and_leave_none(_) ->
    Tasks = fairnif_test:env_number("SOAK_TASKS", 4000),
    {comment, Comment} = fairnif_scale_SUITE:suspended(Tasks),
    say("~s", [Comment]),
    {comment, Comment}.

very_many_idle_native_processes_take_little_memory(_) ->
    {comment, Comment} = fairnif_process_SUITE:idle(fairnif_test:env_number("SOAK_TASKS", 4000)),
    say("~s", [Comment]),
    {comment, Comment}.

blow(Peer, Left) ->
    Seconds = min(?ROUND, Left),
    Seen = fairnif_test:call(Peer, fairnif_test_storm, blow, [Seconds, ?UPGRADES]),
    {Seconds, maps:with([ends, upgrades], Seen)}.

waits(Peer, Left) ->
    Seconds = min(?ROUND, Left),
    {Seconds, fairnif_test:call(Peer, fairnif_test_await, storm, [Seconds])}.

kill(Peer, Left) ->
    %% The storm ends with as many calls as it runs at once, so a round is at least that.
    #{kills := Kills} = Seen =
        fairnif_test:call(Peer, fairnif_test_storm, kill, [max(1000, Left), ?ROUND, ?UPGRADES]),
    {Kills, maps:with([states, upgrades], Seen)}.

%% Rounds until `Total' is done. The first one warms the node up, and is not counted.
rounds(Round, Peer, Unit, Total) ->
    _ = Round(1),
    Begin = resident(Peer),
    T0 = erlang:monotonic_time(millisecond),
    say("0 of ~b ~s; ~b MiB resident", [Total, Unit, mib(Begin)]),
    {Done, Samples} = rounds(Round, Peer, Unit, Total, T0, 0, []),
    Ms = max(1, erlang:monotonic_time(millisecond) - T0),
    Summary = io_lib:format("~b ~s in ~b s, ~b a second; resident at the begin ~b MiB, "
                            "at the end ~b MiB; ~s",
                            [Done, Unit, Ms div 1000, Done * 1000 div Ms, mib(Begin),
                             mib(hd(Samples)), flat(lists:reverse(Samples))]),
    say("~s", [Summary]),
    {comment, lists:flatten(Summary)}.

rounds(_Round, _Peer, _Unit, Total, _T0, Done, Samples) when Done >= Total ->
    {Done, Samples};
rounds(Round, Peer, Unit, Total, T0, Done, Samples) ->
    {More, Seen} = Round(Total - Done),
    Resident = resident(Peer),
    Ms = max(1, erlang:monotonic_time(millisecond) - T0),
    say("~b of ~b ~s, ~b a second; ~b MiB resident; ~0p",
        [Done + More, Total, Unit, (Done + More) * 1000 div Ms, mib(Resident), Seen]),
    rounds(Round, Peer, Unit, Total, T0, Done + More, [Resident | Samples]).

%% The last third of the rounds against the first, by their medians; the first tenth still warms up.
flat(Samples) when length(Samples) < 9 ->
    "too few rounds to judge growth";
flat(Samples) ->
    {_, Warm} = lists:split(length(Samples) div 10, Samples),
    Third = length(Warm) div 3,
    First = median(lists:sublist(Warm, Third)),
    Last = median(lists:nthtail(length(Warm) - Third, Warm)),
    Last - First =< max(?GROWTH_AT_LEAST, ?GROWTH * First)
        orelse error({resident_memory_grows, Samples}),
    io_lib:format("median of the first third ~b MiB, of the last ~b MiB",
                  [mib(First), mib(Last)]).

median(Samples) ->
    lists:nth((length(Samples) + 1) div 2, lists:sort(Samples)).

resident(Peer) ->
    fairnif_test:call(Peer, fairnif_test_storm, resident, []).

mib(Bytes) ->
    Bytes div (1024 * 1024).

in_peer(Fun) ->
    Peer = fairnif_test:peer(["+S", "2:2", "+SDio", "4", "+P", "100000"], [fairnif_test_waits]),
    Result = Fun(Peer),
    fairnif_test:stop(Peer),
    Result.

%% To the log, and, where a person waits for hours, to the terminal.
say(Format, Args) ->
    ct:log(Format, Args),
    case os:getenv("SOAK_SECONDS") of
        false -> ok;
        _ -> io:format(user, "soak: " ++ Format ++ "~n", Args)
    end.

seconds() ->
    fairnif_test:env_number("SOAK_SECONDS", 3).

kills() ->
    fairnif_test:env_number("SOAK_KILLS", 2000).
