%% What fairnif_wait_SUITE does in a node of its own: each function is one case, and fails or
%% answers what is to be shown.
-module(fairnif_test_wait_cases).

-export([killed/1, races/1, reloaded/0, purged/0, no_descriptors/0, threaded/0, mass/1]).

-define(T, fairnif_test_wait).
-define(READ, 1).
-define(EBADF, -9).
-define(EMFILE, -24).

%% -- callers die ---------------------------------------------------------------

%% N processes wait for descriptors of every kind, alone or in turn, and are killed at any moment,
%% some of them when an event comes.
killed(N) ->
    Fds = count_fds(),
    T = ?T:term(?T:event(0)),
    Shared = ?T:number(T),
    lists:foreach(fun(I) -> kill_one(I, T, Shared) end, lists:seq(1, N)),
    fairnif_test:eventually(fun() -> [] =:= fairnif:tasks() end),
    _ = ?T:drain(Shared),
    0 = ?T:wait(T, ?READ bor 0, 10),
    ?READ = later(fun() -> ?T:add(Shared, 1) end, fun() -> ?T:wait(T, ?READ, -1) end),
    true = ?T:shut(T),
    fairnif_test:eventually(fun() -> count_fds() =< Fds end),
    no_messages().

kill_one(I, T, Shared) ->
    Mode = lists:nth(1 + I rem 6, ?T:modes()),
    Fd = case I rem 3 of 0 -> T; 1 -> Shared; 2 -> ?T:event(0) end,
    {Pid, Down} = spawn_monitor(
                    fun() ->
                            _ = ?T:Mode(Fd, ?READ, 1 + I rem 7),
                            ?T:Mode(Fd, 1 + I rem 3, -1)
                    end),
    case I rem 5 of
        0 -> ok;
        1 -> erlang:yield();
        2 -> timer:sleep(I rem 4);
        3 when is_integer(Fd) -> _ = ?T:add(Fd, 1), ok;
        _ -> _ = ?T:add(Shared, 1), ok
    end,
    exit(Pid, kill),
    _ = fairnif_test:down(Down),
    is_integer(Fd) andalso Fd =/= Shared andalso close([Fd]).

%% -- races ----------------------------------------------------------------------

%% Events, time-outs and closing come at about the same time.
races(N) ->
    Fds = count_fds(),
    Answers = [race(I) || I <- lists:seq(1, N)],
    no_messages(),
    fairnif_test:eventually(fun() -> count_fds() =< Fds end),
    [] = Answers -- [A || A <- Answers, lists:member(A, [0, 1, 2, 3, ?EBADF, closed])],
    lists:foldl(fun(A, M) -> maps:update_with(A, fun(C) -> C + 1 end, 1, M) end, #{}, Answers).

race(I) ->
    {A, B} = ?T:pair(),
    _ = ?T:fill(A),
    T = ?T:term(A),
    Mode = lists:nth(1 + I rem 6, ?T:modes()),
    Fd = case I rem 2 of 0 -> T; 1 -> A end,
    {Other, Down} = spawn_monitor(
                      fun() ->
                              sleep_us(I * 37 rem 3000),
                              case I rem 3 of
                                  0 -> ?T:put(B, <<"x">>), ?T:drain(B);
                                  1 -> ?T:shut(T);
                                  2 -> ?T:drain(B), ?T:put(B, <<"x">>)
                              end
                      end),
    Answer = ?T:Mode(Fd, 1 + I div 3 rem 3, 1 + I rem 2),
    _ = fairnif_test:down(Down),
    _ = Other,
    _ = ?T:shut(T),
    close([B]),
    {message_queue_len, 0} = process_info(self(), message_queue_len),
    Answer.

sleep_us(Us) ->
    yield_until(erlang:monotonic_time(microsecond) + Us).

yield_until(Time) ->
    erlang:yield(),
    erlang:monotonic_time(microsecond) >= Time orelse yield_until(Time).

%% -- code ----------------------------------------------------------------------

%% The module fairnif is loaded again while processes wait in its code.
reloaded() ->
    E = ?T:event(0),
    T = ?T:term(E),
    Waits = [waits(fun() -> ?T:Mode(T, ?READ, -1) end) || Mode <- [wait]]
        ++ [waits(fun() ->
                          ?T:take(?T:event(1), 1),
                          ?T:wait_threaded(?T:event(0), ?READ, 1000)
                  end)],
    false = code:purge(fairnif),
    {module, fairnif} = code:load_file(fairnif),
    0 = length(fairnif:tasks()) - 2,
    _ = ?T:add(E, 1),
    [{answer, ?READ}, {answer, 0}] =
        [fairnif_test:down(Monitor) || {waits, _, Monitor} <- Waits],
    %% Descriptors of before are known to what is loaded now.
    E = ?T:number(T),
    ?READ = ?T:wait(T, ?READ, -1),
    true = ?T:shut(T),
    closed_soon(E).

%% The library is upgraded and purged while its bodies wait: they continue in the old code.
purged() ->
    1 = ?T:version(),
    Old = fairnif_test:library(?T) ++ ".so",
    true = is_mapped(Old),
    E = ?T:event(0),
    T = ?T:term(?T:event(0)),
    Waits = [waits(fun() -> ?T:Mode(Fd, ?READ, -1) end)
             || {Mode, Fd} <- [{wait, E}, {wait_threaded, T}]],
    Dead = [waits(fun() -> ?T:wait(?T:event(0), ?READ, -1) end) || _ <- lists:seq(1, 10)],
    ok = application:set_env(fairnif_test, wait_library, fairnif_test_wait_2),
    {module, ?T} = code:load_file(?T),
    2 = ?T:version(),
    false = code:purge(?T),
    lists:foreach(fun kill/1, Dead),
    true = is_mapped(Old),
    _ = ?T:add(E, 1),
    _ = ?T:add(?T:number(T), 1),
    [{answer, ?READ} = fairnif_test:down(Monitor) || {waits, _, Monitor} <- Waits],
    fairnif_test:eventually(fun() -> not is_mapped(Old) end).

is_mapped(File) ->
    {ok, Maps} = file:read_file("/proc/self/maps"),
    binary:match(Maps, iolist_to_binary(filename:basename(File))) =/= nomatch.

%% -- limits --------------------------------------------------------------------

no_descriptors() ->
    E = ?T:event(0),
    T = ?T:term(?T:event(0)),
    0 = ?T:wait(T, ?READ, 10),
    Full = use_up([]),
    [begin
         ?EMFILE = ?T:Mode(E, ?READ, 1000),
         0 = ?T:Mode(T, ?READ, 10)
     end || Mode <- ?T:modes()],
    close(Full),
    0 = ?T:wait(E, ?READ, 10).

use_up(Fds) ->
    case ?T:event(0) of
        ?EMFILE -> Fds;
        Fd when Fd >= 0 -> use_up([Fd | Fds])
    end.

%% One thread of the pool has many bodies that wait.
threaded() ->
    ok = application:set_env(fairnif, threads, 1),
    ok = fairnif:configure(),
    Fds = [?T:event(0) || _ <- lists:seq(1, 200)],
    Waits = [waits(fun() -> ?T:take_threaded(Fd, 3) end) || Fd <- Fds],
    fairnif_test:eventually(fun() -> #{threads_busy := B} = fairnif:info(), B =:= 0 end),
    [?T:add(Fd, 1) || _ <- [1, 2, 3], Fd <- Fds],
    [{answer, 3} = fairnif_test:down(Monitor) || {waits, _, Monitor} <- Waits],
    close(Fds),
    #{threads_started := 1} = fairnif:info(),
    ok.

%% -- very many -----------------------------------------------------------------

%% N tasks wait at once, each for an eventfd of its own that has a term: two descriptors for each
%% would be more than many systems give to one process. What they take, and what holds them.
mass(N) ->
    _ = fairnif:info(),
    Fds = [?T:event(0) || _ <- lists:seq(1, N)],
    Terms = [?T:term(Fd) || Fd <- Fds],
    [] = [none || none <- Terms],
    %% The first of everything is not counted.
    Warm = waits(fun() -> ?T:take(hd(Terms), 1) end),
    kill(Warm),
    erlang:garbage_collect(),
    Before = resident(),
    Pids = [spawn(fun() -> ?T:take(Term, 1) end) || Term <- Terms],
    fairnif_test:eventually(fun() -> waiting() =:= N end),
    Resident = resident() - Before,
    erlang:system_flag(scheduler_wall_time, true),
    Wall = erlang:statistics(scheduler_wall_time),
    {CpuBefore, _} = erlang:statistics(runtime),
    timer:sleep(1000),
    {CpuAfter, _} = erlang:statistics(runtime),
    Busy = busy_percent(Wall, erlang:statistics(scheduler_wall_time)),
    #{threads_busy := Threads, jobs_queued := Queued} = fairnif:info(),
    Monitors = [monitor(process, Pid) || Pid <- Pids],
    Begin = erlang:monotonic_time(microsecond),
    [?T:add(Fd, 1) || Fd <- Fds],
    [normal = fairnif_test:down(Monitor) || Monitor <- Monitors],
    Us = erlang:monotonic_time(microsecond) - Begin,
    [] = fairnif:tasks(),
    true = lists:all(fun(T) -> ?T:shut(T) end, Terms),
    #{bytes_each => Resident div N, threads_busy => Threads, jobs_queued => Queued,
      schedulers_busy_percent => Busy, cpu_ms_of_one_second => CpuAfter - CpuBefore,
      woken_us_each => Us / N}.

waiting() ->
    length([1 || #{state := waiting, where := descriptor} <- fairnif:tasks()]).

%% Of all normal schedulers together.
busy_percent(Before, After) ->
    Normal = erlang:system_info(schedulers),
    {Active, Total} =
        lists:foldl(fun({{Id, A0, T0}, {Id, A1, T1}}, {A, T}) when Id =< Normal ->
                            {A + A1 - A0, T + T1 - T0};
                       (_, Sum) ->
                            Sum
                    end, {0, 0}, lists:zip(lists:sort(Before), lists:sort(After))),
    100 * Active / Total.

resident() ->
    {ok, Text} = file:read_file("/proc/self/statm"),
    [_, Pages | _] = string:lexemes(Text, " "),
    binary_to_integer(Pages) * 4096.

%% -- processes that wait -------------------------------------------------------

%% A process that runs Fun, when its task waits.
waits(Fun) ->
    {Pid, Monitor} = spawn_monitor(fun() -> exit({answer, Fun()}) end),
    fairnif_test:eventually(fun() -> is_waiting(Pid) end),
    {waits, Pid, Monitor}.

is_waiting(Pid) ->
    process_info(Pid, status) =:= {status, waiting}
        andalso [] =/= [1 || #{owner := Owner, state := waiting} <- fairnif:tasks(), Owner =:= Pid].

kill({waits, Pid, Monitor}) ->
    exit(Pid, kill),
    killed = fairnif_test:down(Monitor),
    ok.

%% Fun's value; Event happens meanwhile.
later(Event, Fun) ->
    {_, Monitor} = spawn_monitor(fun() -> timer:sleep(20), Event() end),
    Value = Fun(),
    normal = fairnif_test:down(Monitor),
    Value.

no_messages() ->
    {messages, []} = process_info(self(), messages),
    ok.

count_fds() ->
    {ok, Names} = file:list_dir("/proc/self/fd"),
    length(Names).

closed_soon(Number) ->
    Link = "/proc/self/fd/" ++ integer_to_list(Number),
    fairnif_test:eventually(fun() -> element(1, file:read_link(Link)) =:= error end).

close(Fds) ->
    [0 = ?T:close_fd(Fd) || Fd <- Fds],
    ok.
