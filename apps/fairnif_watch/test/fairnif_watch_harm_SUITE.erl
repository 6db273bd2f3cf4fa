%% What the watch must not do to its node: fill its memory, stand still, or end it.
%%
%% Each in a peer, with the watchdog alone; its events go to a process there.
-module(fairnif_watch_harm_SUITE).

-export([all/0, suite/0, init_per_suite/1, end_per_suite/1]).
-export([nothing_piles_up_while_it_cannot_be_read/1,
         standard_error_without_a_reader_does_not_stop_the_watch/1,
         a_node_survives_the_watchs_code_being_loaded_again_and_purged/1,
         purged_while_it_runs_the_watch_ends_all_the_same/1,
         a_watchdog_that_is_killed_takes_its_thread_with_it/1,
         nothing_is_left_after_a_hundred_starts_and_stops_not_the_library_either/1,
         a_node_halts_while_the_thread_is_at_work/1]).
%% In the peer.
-export([start/1, seen/0, blocked/2, ticks/0, reload/0, purged/0, killed/0, restarts/1, halts/1]).

-define(NIF, fairnif_watch_block_nif).

suite() ->
    [{timetrap, {minutes, 15}}].

all() ->
    fairnif_test:cases(?MODULE) -- [start, restarts, halts].

init_per_suite(Config) ->
    ok = fairnif_watch_test:build(),
    Config.

end_per_suite(_Config) ->
    ok.

%% Ten seconds are ten reports more than at 10 ms and at 100 ms.
nothing_piles_up_while_it_cannot_be_read(_) ->
    fairnif_test:retry(
      3,
      fun() ->
              Peer = peer(#{}, #{}),
              {_, Id} = call(Peer, blocked, [deep, 10000]),
              Events = call(Peer, seen, []),
              fairnif_watch_test:stop(Peer),
              case [E || E = #{event := blocked, id := I} <- Events, I =:= Id] of
                  Blocked when length(Blocked) =< 3 -> {ok, length(Blocked)};
                  Blocked -> {reported, length(Blocked), times}
              end
      end).

standard_error_without_a_reader_does_not_stop_the_watch(_) ->
    %% A pipe that is full, and never empty because its reader is the node itself.
    Script = "exec 3<>\"$0\"; rm \"$0\"; head -c 65536 /dev/zero >&3; exec erl \"$@\" 2>&3",
    Fifo = filename:join("/tmp", "fairnif-watch-" ++ os:getpid() ++ "-fifo"),
    [] = os:cmd("mkfifo " ++ Fifo),
    Peer = peer(#{emergency_ms => 100},
                #{exec => {os:find_executable("sh"), ["-c", Script, Fifo]}}),
    _ = call(Peer, blocked, [spin, 1500]),
    {Before, #{emergencies := Emergencies}} = {call(Peer, ticks, []), counters(Peer)},
    true = Emergencies > 0,
    fairnif_test:eventually(fun() -> call(Peer, ticks, []) > Before end),
    fairnif_watch_test:stop(Peer).

a_node_survives_the_watchs_code_being_loaded_again_and_purged(_) ->
    Peer = peer(#{}, #{}),
    [begin
         {_, _, _} = fairnif_watch_test:call(Peer, ?NIF, spin, [200]),
         ok = call(Peer, reload, []),
         %% And is watched by the native part again.
         fairnif_test:eventually(fun() -> call(Peer, ticks, []) > 0 end)
     end || _ <- lists:seq(1, 3)],
    fairnif_watch_test:stop(Peer).

purged_while_it_runs_the_watch_ends_all_the_same(_) ->
    Peer = peer(#{}, #{}),
    ok = call(Peer, purged, []),
    fairnif_watch_test:stop(Peer).

a_watchdog_that_is_killed_takes_its_thread_with_it(_) ->
    Peer = peer(#{}, #{}),
    [ok = call(Peer, killed, []) || _ <- lists:seq(1, 5)],
    fairnif_watch_test:stop(Peer).

nothing_is_left_after_a_hundred_starts_and_stops_not_the_library_either(_) ->
    Peer = fairnif_watch_test:peer([]),
    {Fds0, Threads0, Processes0, Memory0} = call(Peer, restarts, [10]),
    {Fds, Threads, Processes, Memory} = call(Peer, restarts, [100]),
    {Fds0, Threads0} = {Fds, Threads},
    {true, _} = {Processes =< Processes0 + 2, {Processes0, Processes}},
    {true, _} = {Memory =< Memory0 + 4 * 1024 * 1024, {Memory0, Memory}},
    fairnif_watch_test:stop(Peer).

%% Each way twice.
a_node_halts_while_the_thread_is_at_work(_) ->
    [{How, "status 7\n"} =
         {How, os:cmd(lists:flatten(lists:join(" ", ["erl", "-noinput"]
                                               ++ fairnif_watch_test:erl_args()
                                               ++ ["-s", atom_to_list(?MODULE), "halts", How,
                                                   "2>&1; echo status $?"])))}
     || _ <- [1, 2], How <- ["halt", "stop", "flush"]].

peer(Config, Options) ->
    Peer = fairnif_watch_test:peer(["+S", "1:1", "+SDio", "2"], Options),
    ok = call(Peer, start, [Config]),
    Peer.

call(Peer, Function, Args) ->
    fairnif_watch_test:call(Peer, ?MODULE, Function, Args).

counters(Peer) ->
    fairnif_watch_test:call(Peer, fairnif_watch_watchdog, counters, []).

%% -- in the peer -------------------------------------------------------------

start(Config) ->
    {module, _} = code:ensure_loaded(?NIF),
    Me = self(),
    _ = spawn(fun() ->
                      _ = process_flag(trap_exit, true),
                      true = register(?MODULE, self()),
                      ok = begin_watch(Config),
                      Me ! started,
                      own(Config, [])
              end),
    receive started -> ok end.

begin_watch(Config) ->
    {ok, _} = fairnif_watch_watchdog:start_link(#{owner => self(), config => Config}),
    ok.

%% Reads only when asked.
own(Config, Seen) ->
    receive
        {From, again} ->
            From ! {?MODULE, begin_watch(Config)},
            own(Config, Seen);
        {From, seen} ->
            All = Seen ++ messages(),
            From ! {?MODULE, All},
            own(Config, All)
    end.

messages() ->
    receive {fairnif_watch, Event} -> [Event | messages()] after 0 -> [] end.

ask(What) ->
    ?MODULE ! {self(), What},
    receive {?MODULE, Answer} -> Answer end.

seen() ->
    ask(seen).

%% How long it was, and the id that it was reported by.
blocked(Way, Ms) ->
    {Since, Until, _} = ?NIF:Way(Ms),
    fairnif_test:eventually(fun() -> unblocked(Ms) =/= [] end),
    [#{id := Id} | _] = unblocked(Ms),
    {Until - Since, Id}.

unblocked(Ms) ->
    [E || #{event := unblocked, blocked_ns := Ns} = E <- seen(), Ns > Ms * 1000 * 800].

ticks() ->
    maps:get(ticks, fairnif_watch_watchdog:counters(), 0).

%% As a release upgrade, or a user at a shell.
reload() ->
    Watchdog = whereis(fairnif_watch_watchdog),
    {module, _} = code:load_file(fairnif_watch_native),
    timer:sleep(100),
    _ = exit(Watchdog, kill),
    fairnif_test:eventually(fun() -> whereis(fairnif_watch_watchdog) =:= undefined end),
    erlang:garbage_collect(whereis(?MODULE)),
    _ = code:purge(fairnif_watch_native),
    ask(again).

%% And it can be started again.
purged() ->
    ok = logger:set_primary_config(level, none),    % the responders' last words
    true = code:delete(fairnif_watch_native),
    _ = code:purge(fairnif_watch_native),
    _ = ?NIF:spin(50),
    ok = fairnif_watch_watchdog:stop(),
    gone(),
    _ = code:purge(fairnif_watch_native),
    ask(again).

killed() ->
    exit(whereis(fairnif_watch_watchdog), kill),
    gone(),
    ok = ask(again),
    1 = watch_threads(),
    ok.

%% The thread, and the responders.
gone() ->
    fairnif_test:eventually(
      fun() ->
              [garbage_collect(Pid) || Pid <- processes()],
              {watch_threads(), responders()} =:= {0, []} orelse {threads(), responders()}
      end).

responders() ->
    [Pid || Pid <- processes(), {current_function, {fairnif_watch_responder, _, _}}
                                    <- [process_info(Pid, current_function)]].

restarts(0) ->
    garbage_collect(),
    {ok, Fds} = file:list_dir("/proc/self/fd"),
    {length(Fds), length(threads()), length(processes()), erlang:memory(total)};
restarts(N) ->
    {ok, Pid} = fairnif_watch_watchdog:start_link(#{owner => self(), config => #{}}),
    timer:sleep(5),
    unlink(Pid),
    ok = fairnif_watch_watchdog:stop(),
    _ = messages(),
    true = code:delete(fairnif_watch_native),
    false = code:purge(fairnif_watch_native),
    %% A process has ended before the VM frees its heap, and with it the library's last term.
    fairnif_test:eventually(fun() -> not mapped("/fairnif_watch.so") end),
    restarts(N - 1).

mapped(Library) ->
    {ok, Maps} = file:read_file("/proc/self/maps"),
    binary:match(Maps, list_to_binary(Library)) =/= nomatch.

%% For `erl -s'.
halts([How]) ->
    spawn(fun() ->
                  {ok, _} = fairnif_watch_watchdog:start_link(
                              #{owner => self(), config => #{period_ms => 1, sample_hz => 1000}}),
                  spawn(fun() -> ?NIF:spin(100) end),
                  spawn(fun() -> ?NIF:sleep_dirty_io(100) end),
                  timer:sleep(30),
                  case How of
                      halt -> halt(7, [{flush, false}]);
                      flush -> halt(7);
                      stop -> init:stop(7)
                  end
          end).

watch_threads() ->
    length([T || {_, "fairnif_watch"} = T <- threads()]).

threads() ->
    {ok, Tids} = file:list_dir("/proc/self/task"),
    [{Tid, string:trim(binary_to_list(Name))}
     || Tid <- Tids, {ok, Name} <- [file:read_file(["/proc/self/task/", Tid, "/comm"])]].
