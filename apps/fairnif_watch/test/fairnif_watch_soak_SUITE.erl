%% A clean node stays without a finding under heavy ordinary load, and watching it takes no more and
%% more memory: for WATCH_SECONDS, seconds in `make test', an hour in `make soak'.
%%
%% A finding that says somebody blocked a scheduler is a false alarm here. What says that dirty
%% schedulers were all taken, or that the machine gave too little time, may be true of this load on
%% a busy machine: such are counted in the comment and not judged.
-module(fairnif_watch_soak_SUITE).
-tests(alone).

-export([all/0, suite/0, init_per_suite/1, end_per_suite/1]).
-export([heavy_ordinary_load_is_no_finding/1]).

-define(SECONDS, 30).
%% Growth that is none: bytes at least, and a share of what is resident.
-define(GROWTH_AT_LEAST, (24 * 1024 * 1024)).
-define(GROWTH, 0.1).
%% Seconds of load between two looks at memory.
-define(ROUND, 10).

suite() ->
    [{timetrap, {seconds, 240 + 2 * seconds()}}].

all() ->
    [heavy_ordinary_load_is_no_finding].

init_per_suite(Config) ->
    ok = fairnif_watch_test:build(),
    Config.

end_per_suite(_Config) ->
    ok.

heavy_ordinary_load_is_no_finding(_) ->
    Name = "fairnif_watch_" ++ os:getpid(),
    Flags = fun(N) -> ["-sname", Name ++ N, "-setcookie", Name, "+S", "2:2"] end,
    Echo = fairnif_watch_test:peer(Flags("_echo")),
    Peer = fairnif_watch_test:peer(Flags("_load")),
    EchoNode = fairnif_watch_test:call(Echo, fairnif_watch_test_load, echo, []),
    pong = fairnif_watch_test:call(Peer, net_adm, ping, [EchoNode]),
    case fairnif_watch_test:call(Peer, fairnif_watch_test_block, start, [#{}]) of
        ok -> ok;
        {ok, _} -> ok
    end,
    _ = round(Peer, EchoNode, 2),               % warms up
    Rounds = [round(Peer, EchoNode, ?ROUND) || _ <- lists:seq(1, max(1, seconds() div ?ROUND))],
    Findings = fairnif_watch_test:call(Peer, fairnif_watch_test_block, seen, []),
    Report = fairnif_watch_test:call(Peer, fairnif_watch, report, []),
    Units = lists:foldl(fun({_, U}, Sum) ->
                                maps:merge_with(fun(_, A, B) -> A + B end, U, Sum)
                        end, #{}, Rounds),
    Resident = [R || {R, _} <- Rounds],
    [fairnif_watch_test:stop(P) || P <- [Peer, Echo]],
    ct:log("units ~tp~nresident ~tp~ncounters ~tp~nfindings ~tp",
           [Units, Resident, maps:get(counters, Report), Findings]),
    [] = [Load || {Load, 0} <- maps:to_list(Units)],
    ok = flat(Resident),
    case [F || F <- Findings, not true(F)] of
        [] -> ok;
        False -> error({false_alarms, False})
    end,
    {comment, lists:flatten(
                io_lib:format("~b s; findings by detector: ~0p; holds that were none: ~b, "
                              "stolen: ~b; resident ~b to ~b MiB",
                              [seconds(), counts([D || #{detector := D} <- Findings]),
                               counter(pardoned, Report), counter(stolen, Report),
                               mib(lists:min(Resident)), mib(lists:max(Resident))]))}.

counter(Name, #{counters := Counters}) ->
    maps:get(Name, Counters).

round(Peer, Echo, Seconds) ->
    Units = fairnif_watch_test:call(Peer, fairnif_watch_test_load, run, [1000 * Seconds, Echo],
                                    1000 * Seconds + 120000),
    {fairnif_watch_test:call(Peer, fairnif_watch_test, resident, []), Units}.

%% Two dirty CPU schedulers, which collections of garbage and slices of fairnif functions share with
%% one plain job, are taken now and then: true where the finding has them all busy and a queue.
true(#{detector := Detector}) ->
    lists:member(Detector, [starved, dirty_cpu_saturated, dirty_io_saturated]).

counts(Names) ->
    lists:foldl(fun(N, Map) -> maps:update_with(N, fun(I) -> I + 1 end, 1, Map) end, #{}, Names).

%% The last third of the rounds against the first. Fewer rounds than these say nothing: the load
%% itself warms up.
flat(Resident) when length(Resident) < 9 ->
    ok;
flat(Resident) ->
    Third = length(Resident) div 3,
    First = median(lists:sublist(Resident, Third)),
    Last = median(lists:nthtail(length(Resident) - Third, Resident)),
    case Last - First =< max(?GROWTH_AT_LEAST, ?GROWTH * First) of
        true -> ok;
        false -> error({resident_memory_grows, Resident})
    end.

median(Samples) ->
    lists:nth((length(Samples) + 1) div 2, lists:sort(Samples)).

mib(Bytes) ->
    Bytes div (1024 * 1024).

seconds() ->
    fairnif_watch_test:env_number("WATCH_SECONDS", ?SECONDS).
