%% What the watch must not do to its node: fill its memory, stand still, or end it.
%%
%% Each in a peer, with the watchdog alone; its events go to a process there.
-module(fairnif_watch_harm_SUITE).

-export([all/0, suite/0, init_per_suite/1, end_per_suite/1]).
-export([nothing_piles_up_while_nobody_can_read_it/1,
         standard_error_that_nobody_reads_does_not_stop_the_watch/1,
         a_node_survives_the_watchs_code_being_loaded_again_and_purged/1,
         a_watchdog_that_is_killed_takes_its_thread_with_it/1]).
%% In the peer.
-export([start/1, seen/0, blocked/2, ticks/0, reload/0, killed/0]).

-define(NIF, fairnif_watch_block_nif).

suite() ->
    [{timetrap, {minutes, 3}}].

all() ->
    [nothing_piles_up_while_nobody_can_read_it,
     standard_error_that_nobody_reads_does_not_stop_the_watch,
     a_node_survives_the_watchs_code_being_loaded_again_and_purged,
     a_watchdog_that_is_killed_takes_its_thread_with_it].

init_per_suite(Config) ->
    ok = fairnif_watch_test:build(),
    Config.

end_per_suite(_Config) ->
    ok.

%% Ten seconds are ten reports more than at 10 ms and at 100 ms.
nothing_piles_up_while_nobody_can_read_it(_) ->
    fairnif_watch_test:retry(
      3,
      fun() ->
              Peer = peer(#{}, #{}),
              {_, Id} = call(Peer, blocked, [deep, 10000]),
              Events = call(Peer, seen, []),
              fairnif_watch_test:stop(Peer),
              case [E || E = #{event := held, id := I} <- Events, I =:= Id] of
                  Held when length(Held) =< 3 -> {ok, length(Held)};
                  Held -> {told, length(Held), times}
              end
      end).

standard_error_that_nobody_reads_does_not_stop_the_watch(_) ->
    %% A pipe that is full, and never empty because its reader is the node itself.
    Script = "exec 3<>\"$0\"; rm \"$0\"; head -c 65536 /dev/zero >&3; exec erl \"$@\" 2>&3",
    Fifo = filename:join("/tmp", "fairnif-watch-" ++ os:getpid() ++ "-fifo"),
    [] = os:cmd("mkfifo " ++ Fifo),
    Peer = peer(#{emergency_ms => 100},
                #{exec => {os:find_executable("sh"), ["-c", Script, Fifo]}}),
    _ = call(Peer, blocked, [spin, 1500]),
    {Before, #{emergencies := Emergencies}} = {call(Peer, ticks, []), counters(Peer)},
    true = Emergencies > 0,
    fairnif_watch_test:eventually(fun() -> call(Peer, ticks, []) > Before end, 10000),
    fairnif_watch_test:stop(Peer).

a_node_survives_the_watchs_code_being_loaded_again_and_purged(_) ->
    Peer = peer(#{}, #{}),
    _ = call(Peer, blocked, [spin, 100]),
    [ok = call(Peer, reload, []) || _ <- lists:seq(1, 3)],
    _ = call(Peer, blocked, [spin, 100]),
    true = fairnif_watch_test:call(Peer, erlang, is_alive, []) =:= false,
    fairnif_watch_test:stop(Peer).

a_watchdog_that_is_killed_takes_its_thread_with_it(_) ->
    Peer = peer(#{}, #{}),
    [ok = call(Peer, killed, []) || _ <- lists:seq(1, 5)],
    fairnif_watch_test:stop(Peer).

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

%% How long it was, and the id that it was told by.
blocked(Way, Ms) ->
    {Since, Until, _} = ?NIF:Way(Ms),
    fairnif_watch_test:eventually(fun() -> released(Ms) =/= [] end, 10000),
    [#{id := Id} | _] = released(Ms),
    {Until - Since, Id}.

released(Ms) ->
    [E || #{event := released, held_ns := Ns} = E <- seen(), Ns > Ms * 1000 * 800].

ticks() ->
    maps:get(ticks, fairnif_watch_watchdog:counters()).

%% As a release upgrade, or somebody at a shell.
reload() ->
    Watchdog = whereis(fairnif_watch_watchdog),
    {module, _} = code:load_file(fairnif_watch_native),
    timer:sleep(100),
    _ = exit(Watchdog, kill),
    fairnif_watch_test:eventually(fun() -> whereis(fairnif_watch_watchdog) =:= undefined end,
                                  10000),
    erlang:garbage_collect(whereis(?MODULE)),
    _ = code:purge(fairnif_watch_native),
    ask(again).

killed() ->
    exit(whereis(fairnif_watch_watchdog), kill),
    fairnif_watch_test:eventually(fun() -> whereis(fairnif_watch_watchdog) =:= undefined end,
                                  10000),
    ok = ask(again),
    1 = length([T || {_, "fairnif_watch"} = T <- threads()]),
    ok.

threads() ->
    {ok, Tids} = file:list_dir("/proc/self/task"),
    [{Tid, string:trim(binary_to_list(Name))}
     || Tid <- Tids, {ok, Name} <- [file:read_file(["/proc/self/task/", Tid, "/comm"])]].
