%% Port drivers that put work off: answers, order, ends, and what is left behind.
%%
%% The driver under test counts what it does in a file that outlives it.
-module(fairnif_driver_tests).
-include_lib("eunit/include/eunit.hrl").

-export([halt_with/1, beside/2, migrate/0]).

-import(fairnif_test_driver, [control/3, open/0, open/1, owner/0, order/1, order/4, journal/1,
                              stopped/1, flushed/0, is_loaded/1, dir/0, mapped/0, fds/0,
                              counters_file/0, new_counters/0, new_counters_in_place/0,
                              counters/0, count/1, hold/0, release/0]).

-define(DRIVER, "fairnif_test_driver").
%% Where work is done, as fairdrv.h numbers it; 3, for outputv and call: at once.
-define(NORMAL, 0).
-define(CPU, 1).
-define(IO, 2).
-define(AT_ONCE, 3).
%% The commands of its control.
-define(ECHO, 0).
-define(WORK, 1).
-define(SCHEDULE, 2).
-define(JOURNAL, 3).
-define(BIG, 4).
-define(ERROR, 5).
-define(FAIL, 6).
-define(FAILURE, 7).
-define(TIMER, 8).
-define(BUSY, 9).
-define(LISTS, 10).
-define(TWICE, 11).
-define(QUEUE, 12).

driver_test_() ->
    {setup, fun setup/0, fun cleanup/1,
     [{timeout, 60, {Title, {spawn, fun() -> in_order(Test) end}}} || {Title, Test} <- tests()]}.

tests() ->
    [{"what is put off is answered as what is not, wherever it runs", fun answers/0},
     {"a call's term comes back, wherever it runs", fun calls/0},
     {"large answers come back whole", fun large_answers/0},
     {"a driver that puts nothing off answers as to erlang:port_control/3", fun plain/0},
     {"what erlang:port_control/3 refuses is badarg here", fun badargs/0},
     {"an answer that is an error is badarg", fun errors/0},
     {"erlang:port_control/3 gets badarg for what is put off, and nothing is begun", fun direct/0},
     {"a thousand callbacks run in the order in which they were scheduled", fun order/0},
     {"what an outputv puts off is done before the next outputv", fun order_of_commands/0},
     {"a timer that fires while work is under way comes behind it", fun timer_in_order/0},
     {"the answer is found behind 100,000 other messages, which stay", fun mailbox/0},
     {"a port by its registered name is as good as the port", fun by_name/0},
     {"a pause at every tick changes no answer", fun pauses/0},
     {"senders wait while much is put off, and nothing is lost", fun busy/0},
     {"a port that the author says is busy stays so until he says otherwise", fun author_busy/0},
     {"a callback that answers a negative number closes the port", fun callback_fails/0},
     {"a callback may close its port itself", fun callback_closes/0},
     {"an open_port that the driver refuses leaves nothing", fun refused/0},
     {"the owner's death ends the port, at every stage of its work", fun owner_dies/0},
     {"the caller's death ends his request, at every stage", fun caller_dies/0},
     {"a port that closes answers waiting callers with badarg, and no message more", fun closes/0},
     {"a library stays mapped while its callback runs, and is unmapped then", fun unload/0},
     {"a driver that is loaded again while its callback runs continues as it is", fun reload/0},
     {"a driver loaded without fairnif_driver:load/2 works, but puts nothing off", fun unbound/0},
     {"ports opened before the hand-over stay without it", fun bound_late/0},
     {"a driver for another interface, or none, is refused and not left loaded", fun wrong/0},
     {"ports work, and are answered, when the module is purged and reloaded", fun reloaded/0},
     {"a library that a runtime of another version refuses says so", fun other_runtime/0},
     {"at most as many callbacks for processors run at once as there are dirty schedulers",
      fun gate/0},
     {"callers, owners and ports that come and go leave nothing behind", fun storm/0},
     {"halt does not wait for a callback", fun halts/0},
     {"work that is paused continues on another thread when its scheduler goes offline",
      fun migrates/0},
     {"work put off lets an Erlang process run on the only scheduler", fun shares/0}].

setup() ->
    ok = fairnif_test:build(),
    ok = fairnif_test_driver:build(),
    ok = fairnif_driver:load(dir(), ?DRIVER),
    ok = erl_ddll:unload(?DRIVER),
    new_counters().

cleanup(_) ->
    os:unsetenv("FAIRNIF_TEST_COUNTERS"),
    file:delete(counters_file()).

%% Each test begins with the driver newly loaded, by itself, and ends with nothing left.
in_order(Test) ->
    process_flag(trap_exit, true),
    new_counters_in_place(),
    ok = fairnif_driver:load(dir(), ?DRIVER),
    Fds = fds(),
    try Test() after release() end,
    fairnif_test:eventually(fun fairnif_test_driver:no_jobs/0),
    [try port_close(P) catch error:badarg -> closed end
     || P <- erlang:ports(), {name, ?DRIVER ++ _} <- [erlang:port_info(P, name)]],
    garbage_collect(),
    fairnif_test:eventually(fun fairnif_test_driver:nothing_left/0),
    ?assertEqual(0, count(overlaps)),
    ?assertEqual(count(begun), count(ended)),
    fairnif_test:eventually(fun() -> fds() =< Fds orelse {fds(), Fds} end),
    _ = erl_ddll:unload(?DRIVER),
    fairnif_test:eventually(fun() -> maps:get(libraries, fairnif_driver:counts()) =:= 0 end),
    ?assertEqual([], flushed()).

%% -- answers -----------------------------------------------------------------

answers() ->
    Port = open(),
    Caller = [{?NORMAL, 0}, {?CPU, 1}, {?IO, 1}],
    [?assertEqual({Where, <<Dirty>>}, {Where, control(Port, ?WORK, order(Where))})
     || {Where, Dirty} <- Caller],
    %% There, and back to a normal scheduler.
    ?assertEqual(<<0>>, control(Port, ?TWICE, order(?CPU))),
    Lists = open(?DRIVER),
    [?assertEqual({Where, [Dirty]}, {Where, control(Lists, ?WORK, order(Where))})
     || {Where, Dirty} <- Caller].

calls() ->
    Port = open(),
    Terms = [a, "list", {1.5, <<1:7>>, self()}, #{make_ref() => Port}, lists:seq(1, 10000),
             binary:copy(<<"x">>, 100000)],
    [?assertEqual(Term, fairnif_driver:call(Port, Where, Term))
     || Term <- Terms, Where <- [?NORMAL, ?CPU, ?IO, ?AT_ONCE]].

large_answers() ->
    Sizes = [0, 1, 63, 64, 65, 1000000],
    Binary = open(),
    List = open(?DRIVER),
    [begin
         ?assertEqual(binary:copy(<<"x">>, N), control(Binary, ?BIG, order(Where, 0, 0, N))),
         ?assertEqual(lists:duplicate(N, $x), control(List, ?LISTS, order(Where, 0, 0, N)))
     end || N <- Sizes, Where <- [?NORMAL, ?CPU]].

plain() ->
    ok = erl_ddll:load(dir(), "fairnif_test_driver_plain"),
    Plain = open_port({spawn_driver, "fairnif_test_driver_plain"}, []),
    ?assertEqual(<<"ab">>, control(Plain, ?ECHO, ["a", <<"b">>])),
    ?assertError(badarg, control(Plain, 1, "")),
    true = port_close(Plain),
    ok = erl_ddll:unload("fairnif_test_driver_plain"),
    Port = open(),
    [?assertEqual(Data, control(Port, ?ECHO, Data))
     || Size <- [0, 1, 64, 65, 100000], Data <- [binary:copy(<<"x">>, Size)]].

badargs() ->
    Port = open(),
    [?assertError(badarg, control(P, Command, Data))
     || {P, Command, Data} <- [{self(), 0, ""}, {no_such_port, 0, ""}, {Port, -1, ""},
                               {Port, 1 bsl 32, ""}, {Port, 0, a}, {Port, 0, [a]}, {Port, 99, ""},
                               {make_ref(), 0, ""}, {"port", 0, ""}]],
    true = port_close(Port),
    ?assertError(badarg, control(Port, ?ECHO, "")),
    ?assertError(badarg, control(Port, ?WORK, order(?CPU))),
    ?assertError(badarg, fairnif_driver:call(Port, ?CPU, a)),
    try control(Port, 1, <<"a">>) of
        Answered -> error({answered, Answered})
    catch error:badarg:Stack -> [{_, _, [Port, 1, <<"a">>], _} | _] = Stack
    end.

errors() ->
    Port = open(),
    [?assertError(badarg, control(Port, ?ERROR, order(Where))) || Where <- [?NORMAL, ?CPU, ?IO]],
    ?assertEqual(<<1>>, control(Port, ?WORK, order(?CPU))).

direct() ->
    Port = open(),
    ?assertError(badarg, erlang:port_control(Port, ?WORK, order(?CPU))),
    ?assertError(badarg, erlang:port_call(Port, ?CPU, a)),
    ?assertEqual(0, count(begun)),
    ?assertEqual(<<"ok">>, erlang:port_control(Port, ?SCHEDULE, order(?CPU, 60000, 0, 1))),
    ?assertError(badarg, erlang:port_control(Port, ?JOURNAL, "")),
    release(),
    ?assertEqual([1], journal(Port)),
    ?assertEqual(<<1:32/little>>, erlang:port_control(Port, ?JOURNAL, "")).

by_name() ->
    Port = open(),
    true = register(fairnif_test_port, Port),
    ?assertEqual(<<1>>, control(fairnif_test_port, ?WORK, order(?CPU))),
    ?assertEqual(a, fairnif_driver:call(fairnif_test_port, ?CPU, a)).

pauses() ->
    ok = fairnif:debug(#{pause_every_tick => true}),
    try
        Port = open(),
        [?assertEqual({Where, <<(min(Where, 1))>>},
                      {Where, control(Port, ?WORK, order(Where, 2, 1, 0))})
         || Where <- [?NORMAL, ?CPU, ?IO]]
    after
        fairnif:debug(#{pause_every_tick => false})
    end.

mailbox() ->
    Port = open(),
    Others = [{other, N} || N <- lists:seq(1, 100000)],
    [self() ! Other || Other <- Others],
    [?assertEqual(<<1>>, control(Port, ?WORK, order(?CPU))) || _ <- lists:seq(1, 100)],
    ?assertEqual(Others, flushed()).

%% -- order -------------------------------------------------------------------

order() ->
    Port = open(),
    Numbers = lists:seq(1, 1000),
    [?assertEqual(<<"ok">>, control(Port, ?SCHEDULE, order(N rem 3, 0, 1, N))) || N <- Numbers],
    ?assertEqual(Numbers, journal(Port)).

order_of_commands() ->
    Port = open(),
    Numbers = lists:seq(1, 1000),
    [true = port_command(Port, [order(N rem 4, 0, 0, N), binary:copy(<<"b">>, N)])
     || N <- Numbers],
    ?assertEqual(Numbers, journal(Port)).

%% All over again where a busy machine was late: with the work, or with the timer.
timer_in_order() ->
    fairnif_test:retry(5, fun() -> hold(), timer_in_order(open()) end).

timer_in_order(Port) ->
    {Us, _} = timer:tc(fun() ->
                               control(Port, ?TIMER, order(?AT_ONCE, 50, 0, 0)),
                               control(Port, ?SCHEDULE, order(?IO, 60000, 0, 1))
                       end),
    timer:sleep(100),
    release(),
    case journal(Port) of
        [1, 16#FFFFFFFF] -> ok;
        Seen when Us >= 50000; Seen =:= [1] -> {Us, Seen}
    end.

busy() ->
    Port = open(),
    control(Port, ?SCHEDULE, order(?IO, 60000, 0, 0)),
    Sender = spawn_link(fun() ->
                                [port_command(Port, order(?AT_ONCE, 0, 0, N))
                                 || N <- lists:seq(1, 500)]
                        end),
    fairnif_test:eventually(fun() -> process_info(Sender, status) =:= {status, suspended} end),
    release(),
    receive {'EXIT', Sender, normal} -> ok end,
    ?assertEqual(lists:seq(0, 500), journal(Port)).

author_busy() ->
    Port = open(),
    control(Port, ?BUSY, order(1)),
    control(Port, ?WORK, order(?CPU)),
    ?assertNot(port_command(Port, order(?AT_ONCE, 0, 0, 1), [nosuspend])),
    control(Port, ?BUSY, order(0)),
    ?assert(port_command(Port, order(?AT_ONCE, 0, 0, 2), [nosuspend])),
    ?assertEqual([0, 2], journal(Port)).

%% -- ends --------------------------------------------------------------------

callback_fails() ->
    [begin
         Port = open(),
         control(Port, ?SCHEDULE, order(?IO, 20, 0, 0)),
         control(Port, ?FAIL, order(Where)),
         receive {'EXIT', Port, Reason} -> ?assertEqual(callback_failed, Reason) end
     end || Where <- [?NORMAL, ?CPU, ?IO]],
    stopped(3).

callback_closes() ->
    Port = open(),
    control(Port, ?FAILURE, order(?NORMAL)),
    receive {'EXIT', Port, Reason} -> ?assertEqual(failure, Reason) end,
    stopped(1).

refused() ->
    ?assertError(badarg, open("fairnif_test_driver refuse")),
    ?assertMatch(#{ports := 0}, fairnif_driver:counts()),
    ?assertEqual(0, count(stops)).

%% What waits is not begun; what runs learns it from its tick, or, if it has none, is let run.
owner_dies() ->
    [begin
         new_counters_in_place(),
         {Owner, Port} = owner(),
         control(Port, ?QUEUE, order(Where, 60000, Ticks, 1)),
         timer:sleep(After),
         exit(Owner, kill),
         fairnif_test:eventually(fun() -> erlang:port_info(Port) =:= undefined end),
         Ticks =:= 0 andalso release(),
         fairnif_test:eventually(fun() -> count(freed) =:= 4 orelse counters() end),
         stopped(1),
         ?assert(count(begun) =< 1),
         ?assertEqual(4 - count(begun), count(cancelled)),
         Ticks =:= 1 andalso ?assertEqual(count(begun), count(notified)),
         ?assertEqual(1, count(closings))
     end || {Where, Ticks} <- [{?NORMAL, 1}, {?CPU, 1}, {?CPU, 0}, {?IO, 1}, {?IO, 0}],
            After <- [0, 20]].

caller_dies() ->
    Port = open(),
    [begin
         new_counters_in_place(),
         control(Port, ?SCHEDULE, order(?IO, Before, 1, 1)),
         Order = order(Where, 20000, 1, 2),
         {Caller, Monitor} = spawn_monitor(fun() -> control(Port, ?WORK, Order) end),
         %% With nothing before it the caller's work has begun; else it waits.
         fairnif_test:eventually(
           fun() ->
                   case Before of
                       0 -> count(begun) =:= 2;
                       _ -> maps:get(jobs, fairnif_driver:counts()) =:= 2
                   end
           end),
         timer:sleep(20),
         exit(Caller, kill),
         ?assertEqual(killed, fairnif_test:down(Monitor)),
         garbage_collect(),
         fairnif_test:eventually(fun() -> maps:get(requests, fairnif_driver:counts()) =:= 0 end),
         Before =:= 0 orelse release(),
         %% The port is free again long before the work would have been done.
         {Us, <<0>>} = timer:tc(fun() -> control(Port, ?WORK, order(?NORMAL)) end),
         ?assert(Us < 10000000),
         ?assertEqual(case Before of 0 -> 3; _ -> 2 end, count(begun)),
         ?assertEqual(count(begun) - 2, count(notified))
     end || Where <- [?NORMAL, ?CPU, ?IO], Before <- [0, 60000]].

closes() ->
    [begin
         hold(),
         Port = open(),
         control(Port, ?SCHEDULE, order(?IO, Before, 1, 1)),
         Self = self(),
         Order = order(Where, 60000, Ticks, 2),
         Callers = [spawn_link(fun() ->
                                       Answer = try control(Port, ?WORK, Order)
                                                catch error:Why -> {error, Why} end,
                                       Time = erlang:monotonic_time(millisecond),
                                       Self ! {self(), Time, Answer, flushed()}
                               end) || _ <- lists:seq(1, 5)],
         timer:sleep(40),
         true = port_close(Port),
         Closed = erlang:monotonic_time(millisecond),
         [receive
              {Caller, Time, Answer, Rest} ->
                  ?assertMatch({_, _, {error, badarg}},
                               {{Where, Ticks, Before}, Time - Closed, Answer}),
                  ?assertEqual([], Rest)
          after 240000 ->
                  error(waits)
          end || Caller <- Callers],
         [receive {'EXIT', Caller, normal} -> ok end || Caller <- Callers],
         release(),
         fairnif_test:eventually(fun fairnif_test_driver:no_jobs/0)
     end || Where <- [?NORMAL, ?CPU, ?IO], Before <- [0, 60000], Ticks <- [1, 0],
            {Where, Ticks} =/= {?NORMAL, 0}].

%% -- the library -------------------------------------------------------------

unload() ->
    Port = open(),
    control(Port, ?SCHEDULE, order(?IO, 60000, 0, 1)),
    fairnif_test:eventually(fun() -> count(begun) =:= 1 end),
    {ok, pending_driver, _} = erl_ddll:try_unload(?DRIVER, [{monitor, pending_driver}, kill_ports]),
    receive {'EXIT', Port, _} -> ok end,
    receive {'DOWN', _, driver, fairnif_test_driver, unloaded} -> ok end,
    ?assert(mapped()),
    ?assertEqual({0, 0}, {count(stops), count(finishes)}),
    release(),
    fairnif_test:eventually(fun() -> not mapped() end),
    ?assertEqual({1, 1, 1}, {count(ended), count(stops), count(finishes)}).

reload() ->
    Port = open(),
    control(Port, ?SCHEDULE, order(?IO, 60000, 0, 1)),
    fairnif_test:eventually(fun() -> count(begun) =:= 1 end),
    {ok, pending_driver, _} = erl_ddll:try_unload(?DRIVER, [{monitor, pending_driver}, kill_ports]),
    receive {'EXIT', Port, _} -> ok end,
    receive {'DOWN', _, driver, fairnif_test_driver, unloaded} -> ok end,
    ok = fairnif_driver:load(dir(), ?DRIVER),
    Again = open(),
    ?assertEqual(<<1>>, control(Again, ?WORK, order(?CPU))),
    ?assertEqual({1, 0}, {count(inits), count(finishes)}),
    release(),
    fairnif_test:eventually(fun() -> count(stops) =:= 1 end),
    ?assertEqual(<<1>>, control(Again, ?WORK, order(?IO))),
    true = port_close(Again),
    receive {'EXIT', Again, normal} -> ok end,
    ok = erl_ddll:unload(?DRIVER),
    fairnif_test:eventually(fun() -> not mapped() end),
    ?assertEqual({1, 1}, {count(inits), count(finishes)}).

unbound() ->
    ok = erl_ddll:unload(?DRIVER),
    fairnif_test:eventually(fun() -> not mapped() end),
    ok = erl_ddll:load(dir(), ?DRIVER),
    without_runtime(open()),
    ?assertMatch(#{libraries := 0}, fairnif_driver:counts()).

without_runtime(Port) ->
    ?assertEqual(<<"echo">>, control(Port, ?ECHO, "echo")),
    ?assertEqual(<<"error">>, control(Port, ?SCHEDULE, order(?CPU))),
    ?assertError(badarg, control(Port, ?WORK, order(?CPU))),
    ?assertError(badarg, fairnif_driver:call(Port, ?CPU, a)),
    ?assertEqual(a, fairnif_driver:call(Port, ?AT_ONCE, a)),
    port_command(Port, order(?AT_ONCE, 0, 0, 7)),
    ?assertEqual([7], journal(Port)).

bound_late() ->
    ok = erl_ddll:unload(?DRIVER),
    fairnif_test:eventually(fun() -> not mapped() end),
    ok = erl_ddll:load(dir(), ?DRIVER),
    Early = open(),
    ok = fairnif_driver:load(dir(), ?DRIVER),
    Late = open(),
    without_runtime(Early),
    ?assertEqual(<<1>>, control(Late, ?WORK, order(?CPU))),
    true = port_close(Early),
    receive {'EXIT', Early, normal} -> ok end,
    true = port_close(Late),
    receive {'EXIT', Late, normal} -> ok end,
    stopped(2),
    ok = erl_ddll:unload(?DRIVER).

wrong() ->
    [begin
         ?assertMatch({Name, {error, Why}}, {Name, fairnif_driver:load(dir(), Name)}),
         fairnif_test:eventually(fun() -> not is_loaded(Name) end)
     end || {Name, Why} <- [{"fairnif_test_driver_other", {interface, {99, 0}, {1, 0}}},
                            {"fairnif_test_driver_plain", no_fair_driver}]],
    ?assertMatch({error, _}, fairnif_driver:load(dir(), "no_such_driver")),
    %% Once more, by the same process: erl_ddll counts.
    ?assertEqual(ok, fairnif_driver:load(dir(), fairnif_test_driver)),
    ok = erl_ddll:unload(?DRIVER).

%% Loaded as an upgrade, and after it was not there at all: the library is the same, and its ports.
reloaded() ->
    Port = open(),
    [begin
         Before = maps:with([ports, libraries], fairnif_driver:counts()),
         control(Port, ?SCHEDULE, order(?IO, 100, 0, N)),
         _ = code:purge(fairnif_driver),
         Gone andalso begin true = code:delete(fairnif_driver), _ = code:purge(fairnif_driver) end,
         {module, fairnif_driver} = code:load_file(fairnif_driver),
         %% The call that finds the new copy without the library.
         ?assertEqual(<<1>>, control(Port, ?WORK, order(?CPU))),
         ?assertEqual(Before, maps:with([ports, libraries], fairnif_driver:counts()))
     end || {N, Gone} <- [{1, false}, {2, true}, {3, false}]],
    ?assertEqual([1, 0, 2, 0, 3, 0], journal(Port)).

%% The same Erlang code beside a library that was built with the next version of fairnif_private.h.
other_runtime() ->
    Other = filename:join(dir(), "other_private"),
    Ebin = filename:join(Other, "ebin"),
    Here = filename:dirname(code:which(fairnif_driver)),
    ok = filelib:ensure_path(Ebin),
    {ok, _} = file:copy(filename:join(Here, "fairnif_driver.beam"),
                        filename:join(Ebin, "fairnif_driver.beam")),
    Command = lists:join($ , ["erl", "-noshell", "-pa", Ebin | fairnif_test:erl_args()]),
    Output = os:cmd(lists:flatten(Command) ++ " -eval 'R = try fairnif_driver:counts() "
                    "catch error:E -> E end, io:format(\"~nresult: ~0p~n\", [R])' "
                    "-s erlang halt 2>&1"),
    [?assertMatch({_, _, [_ | _]}, {Word, Output, string:find(Output, Word)})
     || Word <- ["result: {fairnif_driver,{load,", "4703",
                 "built with fairnif_private.h of version 99.2, the loaded runtime has 1.2"]].

%% -- many --------------------------------------------------------------------

gate() ->
    N = erlang:system_info(dirty_cpu_schedulers_online),
    Ports = [open() || _ <- lists:seq(1, 3 * N)],
    %% Each works until its port is closed, so that they meet however late this process is.
    [control(Port, ?SCHEDULE, order(?CPU, 60000, 1, 1)) || Port <- Ports],
    fairnif_test:eventually(fun() -> count(begun) =:= N orelse counters() end),
    ?assertEqual([], [Now || _ <- lists:seq(1, 50),
                             Now <- [begin timer:sleep(1), count(begun) - count(ended) end],
                             Now > N]),
    %% Those that wait there are taken away with their ports.
    [true = port_close(Port) || Port <- Ports],
    stopped(3 * N),
    ?assertEqual(3 * N, count(notified) + count(cancelled)).

storm() ->
    Ports = erlang:system_info(port_count),
    Self = self(),
    [spawn_link(fun() -> storm(50), Self ! done end) || _ <- lists:seq(1, 8)],
    [receive done -> ok end || _ <- lists:seq(1, 8)],
    [receive {'EXIT', _, normal} -> ok end || _ <- lists:seq(1, 8)],
    fairnif_test:eventually(fun fairnif_test_driver:nothing_left/0),
    ?assertEqual(count(starts), count(stops)),
    fairnif_test:eventually(fun() -> erlang:system_info(port_count) =< Ports end).

storm(0) ->
    ok;
storm(N) ->
    process_flag(trap_exit, true),
    {Owner, Port} = owner(),
    Call = fun() -> try storm_call(Port, rand:uniform(6)) catch error:_ -> closed end end,
    Callers = [spawn_link(Call) || _ <- lists:seq(1, 6)],
    Victim = lists:nth(rand:uniform(6), Callers),
    timer:sleep(rand:uniform(6) - 1),
    exit(Victim, kill),
    timer:sleep(rand:uniform(4) - 1),
    exit(Owner, kill),
    [receive {'EXIT', Caller, _} -> ok after 240000 -> error(waits) end || Caller <- Callers],
    storm(N - 1).

storm_call(Port, 4) -> [port_command(Port, order(N rem 4, 0, 1, N)) || N <- lists:seq(1, 100)];
storm_call(Port, 5) -> [control(Port, ?SCHEDULE, order(rand:uniform(3) - 1, rand:uniform(3), 1, 0))
                        || _ <- lists:seq(1, 10)];
storm_call(Port, 6) -> fairnif_driver:call(Port, rand:uniform(3) - 1, {a, Port});
storm_call(Port, N) -> control(Port, ?WORK, order(N - 1, rand:uniform(5), 1, 0)).

%% -- other nodes -------------------------------------------------------------

halts() ->
    Without = lists:min([halt_ms(none) || _ <- lists:seq(1, 2)]),
    [fairnif_test:retry(3, fun() ->
                                   Ms = halt_ms(Where),
                                   case Ms < Without + 1000 of
                                       true -> ok;
                                       false -> {Where, Ms, without, Without}
                                   end
                           end) || Where <- [?NORMAL, ?CPU, ?IO]].

halt_ms(Where) ->
    Args = ["+S", "2:2", "-noshell"] ++ fairnif_test:erl_args() ++ fairnif_test_driver:erl_args()
        ++ ["-run", ?MODULE_STRING, "halt_with", lists:concat([Where])],
    Port = open_port({spawn_executable, os:find_executable("erl")},
                     [{args, Args}, {line, 1000}, exit_status, stderr_to_stdout,
                      {env, [{"FAIRNIF_TEST_COUNTERS", false}]}]),
    receive {Port, {data, {eol, "halting"}}} -> ok;
            {Port, Other} -> error(Other)
    after 240000 -> error(no_start) end,
    Begin = erlang:monotonic_time(millisecond),
    receive {Port, {exit_status, Status}} -> ?assertEqual(0, Status)
    after 240000 -> error(no_end) end,
    receive {'EXIT', Port, _} -> ok end,
    erlang:monotonic_time(millisecond) - Begin.

%% In a node of its own. halt/0 flushes, and closes every port.
halt_with([Where]) ->
    ok = fairnif_driver:load(dir(), ?DRIVER),
    Where =:= "none" orelse
        begin
            Port = open(),
            %% The second is taken when the first is done, and runs at the halt.
            Order = order(list_to_integer(Where), 2000, 1, 0),
            control(Port, ?SCHEDULE, Order),
            control(Port, ?SCHEDULE, Order),
            timer:sleep(50)
        end,
    erlang:display_string("halting\n"),
    erlang:halt(0).

%% What an Erlang process gets done in 300 ms beside work of 300 ms: nothing where that holds the
%% only scheduler.
migrates() ->
    Peer = fairnif_test:peer(["+S", "2:2"] ++ fairnif_test_driver:erl_args()),
    fairnif_test:call(Peer, ?MODULE, migrate, []),
    fairnif_test:stop(Peer),
    ?assertEqual(count(begun), count(ended)),
    ?assertEqual(0, count(overlaps)),
    ?assert(count(moved) >= 1).

%% The owner is bound to the scheduler that goes offline, but the VM may have the port elsewhere:
%% so it goes more than once; all over again where a busy machine did it too late.
migrate() ->
    ok = fairnif_driver:load(dir(), ?DRIVER),
    Self = self(),
    Owner = spawn_opt(fun() -> Self ! {self(), open()}, receive stop -> ok end end,
                      [{scheduler, 2}]),
    Port = receive {Owner, P} -> P end,
    migrate(Port, 10),
    exit(Owner, kill).

migrate(Port, Attempts) ->
    control(Port, ?SCHEDULE, order(?NORMAL, 500, 1, 0)),
    [begin
         timer:sleep(50),
         erlang:system_flag(schedulers_online, Online)
     end || Online <- [1, 2, 1, 2]],
    [0 | _] = journal(Port),
    count(moved) > 0 orelse Attempts =:= 1 orelse migrate(Port, Attempts - 1).

shares() ->
    Peer = fairnif_test:peer(["+S", "1:1"] ++ fairnif_test_driver:erl_args()),
    Beside = fun(Where, Ticks) -> fairnif_test:call(Peer, ?MODULE, beside, [Where, Ticks]) end,
    fairnif_test:retry(4, fun() ->
                                  Plain = Beside(?NORMAL, 0),
                                  Fair = [Beside(Where, 1) || Where <- [?NORMAL, ?CPU, ?IO]],
                                  case lists:min(Fair) > 4 * Plain of
                                      true -> ok;
                                      false -> {Plain, Fair}
                                  end
                          end),
    fairnif_test:stop(Peer).

beside(Where, Ticks) ->
    ok = fairnif_driver:load(dir(), ?DRIVER),
    Port = open(),
    Count = counters:new(1, []),
    Worker = spawn(fun() -> count_up(Count) end),
    control(Port, ?SCHEDULE, order(Where, 300, Ticks, 0)),
    [0] = journal(Port),
    exit(Worker, kill),
    port_close(Port),
    counters:get(Count, 1).

count_up(Count) ->
    counters:add(Count, 1, 1),
    count_up(Count).
