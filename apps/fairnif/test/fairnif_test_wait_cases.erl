%% What fairnif_wait_SUITE does in a node of its own: each function is one case, and fails or
%% answers what is to be shown.
-module(fairnif_test_wait_cases).

-export([every_mode/0, deadlines/0, busy/0, same_number/0, closed/0, owner_dies/0,
         garbage/0, used/0, dropped/0, killed/1, mailbox/1, both/0, races/1, reloaded/0, purged/0,
         no_descriptors/0, left/1, shown/0, until_halt/1, threaded/0, mass/1]).
%% For other processes of these.
-export([count_fds/0]).

-define(T, fairnif_test_wait).
-define(READ, 1).
-define(WRITE, 2).
-define(EBADF, -9).
-define(EBUSY, -16).
-define(EINVAL, -22).
-define(EMFILE, -24).

%% -- answers -----------------------------------------------------------------

every_mode() ->
    [begin
         {A, B} = ?T:pair(),
         Wait = fun(Events, Ms) -> ?T:Mode(A, Events, Ms) end,
         0 = Wait(?READ, 0),
         ?WRITE = Wait(?WRITE, 0),
         ?WRITE = Wait(?READ bor ?WRITE, -1),
         ?EINVAL = Wait(0, 0),
         ?EINVAL = Wait(4, 0),
         ?EBADF = ?T:Mode(-7, ?READ, 0),
         ?EBADF = ?T:Mode(99999, ?READ, 10),
         0 = Wait(?READ, 20),
         ?READ = later(fun() -> ?T:put(B, <<"x">>) end, fun() -> Wait(?READ, -1) end),
         ?READ bor ?WRITE = Wait(?READ bor ?WRITE, -1),
         _ = ?T:drain(A),
         _ = ?T:fill(A),
         0 = Wait(?WRITE, 20),
         ?WRITE = later(fun() -> ?T:drain(B) end, fun() -> Wait(?WRITE, 5000) end),
         _ = ?T:fill(A),
         %% A hang-up is everything that was asked for: the next read or write says what it is.
         ?READ bor ?WRITE = later(fun() -> ?T:close_fd(B) end,
                                  fun() -> Wait(?READ bor ?WRITE, 5000) end),
         0 = ?T:close_fd(A)
     end || Mode <- ?T:modes()],
    Term = {some, ["term", 1.5, self()]},
    [begin
         E1 = ?T:event(0),
         E2 = ?T:event(0),
         Answer = later(fun() -> ?T:add(E1, 1), timer:sleep(20), ?T:add(E2, 1) end,
                        fun() -> ?T:Function(E1, E2, Term) end),
         {?READ, ?READ, Term, Term} = Answer,
         close([E1, E2])
     end || Function <- [waits_in_turn, waits_in_turn_threaded]],
    no_messages().

deadlines() ->
    E = ?T:event(0),
    T = ?T:term(?T:event(0)),
    [begin
         {Us, 0} = timer:tc(fun() -> ?T:wait(Fd, ?READ, Ms) end),
         true = Us >= Ms * 1000
     end || Ms <- [1, 5, 20, 100], Fd <- [E, T, -1], _ <- [1, 2, 3], Fd =/= -1],
    [begin
         {Us, 3} = timer:tc(fun() -> ?T:Sleeps(3, Ms) end),
         true = Us >= 3 * Ms * 1000
     end || Ms <- [0, 1, 20], Sleeps <- [sleeps, sleeps_threaded]],
    %% The end of one wait has nothing to do with the next.
    0 = ?T:wait(T, ?READ, 10),
    ?READ = later(fun() -> ?T:add(?T:number(T), 1) end, fun() -> ?T:wait(T, ?READ, -1) end),
    no_messages().

%% -- one task at a time --------------------------------------------------------

busy() ->
    {A, _B} = ?T:pair(),
    T = ?T:term(A),
    _ = ?T:fill(A),
    [begin
         Waits = waits(fun() -> ?T:wait(Fd, ?READ, -1) end),
         [?EBUSY = ?T:Mode(Other, Events, Ms)
          || Mode <- ?T:modes(), Other <- [A, T], Events <- [?READ, ?READ bor ?WRITE],
             Ms <- [-1, 1000]],
         0 = ?T:wait(A, ?WRITE, 20),
         0 = ?T:wait(T, ?WRITE, 20),
         kill(Waits),
         0 = eventually(fun() -> ?T:wait(T, ?READ bor ?WRITE, 10) end, ?EBUSY),
         0 = ?T:wait(A, ?READ bor ?WRITE, 10)
     end || Fd <- [A, T]],
    no_messages().

%% A task waits for its duplicate; the owner closes the descriptor, and its number is soon
%% another's.
same_number() ->
    {A, B} = ?T:pair(),
    Waits = waits(fun() -> ?T:wait(A, ?READ, -1) end),
    0 = ?T:close_fd(A),
    {A, C} = ?T:pair(),
    0 = ?T:wait(A, ?READ, 10),
    ?READ = later(fun() -> ?T:put(C, <<"x">>) end, fun() -> ?T:wait(A, ?READ, -1) end),
    {waits, _, Monitor} = Waits,
    1 = ?T:put(B, <<"y">>),
    {answer, ?READ} = fairnif_test:down(Monitor, 5000),
    ok.

%% -- closing -------------------------------------------------------------------

closed() ->
    Fds = count_fds(),
    [begin
         T = ?T:term(?T:event(0)),
         N = ?T:number(T),
         Waits = [waits(fun() -> ?T:Mode(T, Events, Ms) end) || Events <- [?READ], Ms <- [Ms0]],
         true = ?T:shut(T),
         [{answer, ?EBADF} = fairnif_test:down(Monitor, 5000) || {waits, _, Monitor} <- Waits],
         false = ?T:shut(T),
         closed = ?T:number(T),
         closed = ?T:wait(T, ?READ, 0),
         closed_soon(N)
     end || Mode <- ?T:modes(), Ms0 <- [-1, 60000]],
    Fds = count_fds(),
    %% A reader and a writer.
    {A, B} = ?T:pair(),
    _ = ?T:fill(A),
    T2 = ?T:term(A),
    Both = [waits(fun() -> ?T:wait(T2, Events, -1) end) || Events <- [?READ, ?WRITE]],
    true = ?T:shut(T2),
    [{answer, ?EBADF} = fairnif_test:down(Monitor, 5000) || {waits, _, Monitor} <- Both],
    close([B]),
    no_messages().

owner_dies() ->
    Self = self(),
    [begin
         {Owner, OwnerDown} = spawn_monitor(fun() ->
                                                    Self ! {term, ?T:term(?T:event(0))},
                                                    receive never -> ok end
                                            end),
         T = receive {term, Term} -> Term end,
         N = ?T:number(T),
         Waits = [waits(fun() -> ?T:wait(T, ?READ, -1) end) || Used],
         exit(Owner, kill),
         killed = fairnif_test:down(OwnerDown, 5000),
         [{answer, ?EBADF} = fairnif_test:down(Monitor, 5000) || {waits, _, Monitor} <- Waits],
         closed_soon(N),
         closed = ?T:number(T)
     end || Used <- [false, true]],
    none = ?T:term(99999),
    T2 = ?T:term(?T:event(0)),
    none = ?T:term(?T:number(T2)),
    no_messages().

garbage() ->
    Fds = count_fds(),
    Self = self(),
    {_, Down} = spawn_monitor(
                  fun() ->
                          [?T:term(?T:event(0)) || _ <- lists:seq(1, 100)],
                          erlang:garbage_collect(),
                          Self ! collected,
                          receive go -> ok end
                  end),
    receive collected -> ok end,
    fairnif_test:eventually(fun() -> Fds =:= count_fds() end),
    erlang:demonitor(Down),
    ok.

used() ->
    T = ?T:term(?T:event(1)),
    N = ?T:number(T),
    %% Shut, -EBADF, not got again, and open to the end of the task.
    {1, ?EBADF, 0, 0} = ?T:shut_used(T),
    closed_soon(N).

%% -- who waits dies ------------------------------------------------------------

%% The pending value is garbage: nobody awaits it.
dropped() ->
    Fds = count_fds(),
    E = ?T:event(0),
    [begin
         {Pid, Down} = spawn_monitor(
                         fun() ->
                                 Pending = ?T:Nif(E, ?READ, -1),
                                 fairnif_pending = element(1, Pending)
                         end),
         _ = Pid,
         normal = fairnif_test:down(Down, 5000)
     end || Nif <- [nif_wait, nif_wait_dirty_io, nif_wait_threaded], _ <- lists:seq(1, 20)],
    close([E]),
    fairnif_test:eventually(fun() -> {Fds, []} =:= {count_fds(), fairnif:tasks()} end),
    {Fds, []} = {count_fds(), fairnif:tasks()},
    ok.

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
    fairnif_test:eventually(fun() -> Fds =:= count_fds() end),
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
    _ = fairnif_test:down(Down, 5000),
    is_integer(Fd) andalso Fd =/= Shared andalso close([Fd]).

%% -- the mailbox ---------------------------------------------------------------

mailbox(N) ->
    [self() ! {number, I} || I <- lists:seq(1, N)],
    E = ?T:event(0),
    [begin
         ?READ = later(fun() -> ?T:add(E, 1) end, fun() -> ?T:wait(E, ?READ, Ms) end),
         _ = ?T:drain(E),
         0 = ?T:wait(E, ?READ, 5)
     end || Ms <- [-1, 5000], _ <- [1, 2, 3]],
    {messages, Messages} = process_info(self(), messages),
    Messages = [{number, I} || I <- lists:seq(1, N)],
    ok.

%% Both directions become ready at once: two messages, of which await takes one.
both() ->
    {A, B} = ?T:pair(),
    T = ?T:term(A),
    [begin
         _ = ?T:fill(A),
         _ = ?T:drain(A),
         {waits, _, Monitor} = waits(fun() ->
                                             Answer = ?T:Mode(Fd, ?READ bor ?WRITE, -1),
                                             {Answer, process_info(self(), message_queue_len)}
                                     end),
         1 = ?T:put(B, <<"x">>),
         _ = ?T:drain(B),
         {answer, {Ready, {_, 0}}} = fairnif_test:down(Monitor, 5000),
         true = Ready band ?READ > 0
     end || Fd <- [A, T], Mode <- ?T:modes(), _ <- lists:seq(1, 20)],
    ok.

%% Events, time-outs and closing come at about the same time.
races(N) ->
    Fds = count_fds(),
    Answers = [race(I) || I <- lists:seq(1, N)],
    no_messages(),
    fairnif_test:eventually(fun() -> Fds =:= count_fds() end),
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
    _ = fairnif_test:down(Down, 5000),
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

%% The module fairnif is loaded anew while processes wait in its code.
reloaded() ->
    E = ?T:event(0),
    T = ?T:term(E),
    Waits = [waits(fun() -> ?T:Mode(T, ?READ, -1) end) || Mode <- [wait]]
        ++ [waits(fun() ->
                          ?T:take(?T:event(1), 1),
                          ?T:wait_threaded(?T:event(0), ?READ, 3000)
                  end)],
    false = code:purge(fairnif),
    {module, fairnif} = code:load_file(fairnif),
    0 = length(fairnif:tasks()) - 2,
    _ = ?T:add(E, 1),
    [{answer, ?READ}, {answer, 0}] =
        [fairnif_test:down(Monitor, 10000) || {waits, _, Monitor} <- Waits],
    %% Descriptors of before are known to what is loaded now.
    E = ?T:number(T),
    ?READ = ?T:wait(T, ?READ, -1),
    true = ?T:shut(T),
    closed_soon(E).

%% The library is upgraded and purged while its bodies wait: they go on in the old code.
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
    [{answer, ?READ} = fairnif_test:down(Monitor, 5000) || {waits, _, Monitor} <- Waits],
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

%% Descriptors and KiB that N waits and N terms leave behind.
left(N) ->
    _ = some(N div 10),
    Fds = count_fds(),
    Before = resident(),
    _ = some(N),
    fairnif_test:eventually(fun() -> Fds =:= count_fds() end),
    [] = fairnif:tasks(),
    (resident() - Before) div 1024.

some(N) ->
    E = ?T:event(0),
    [begin
         T = ?T:term(?T:event(0)),
         0 = ?T:wait(T, ?READ, 1),
         0 = ?T:wait(E, ?READ bor 0, 1),
         _ = ?T:add(E, 1),
         ?READ = ?T:wait(E, ?READ, -1),
         _ = ?T:drain(E),
         true = ?T:shut(T)
     end || _ <- lists:seq(1, N)],
    close([E]),
    erlang:garbage_collect().

shown() ->
    E = ?T:event(0),
    Waits = waits(fun() -> ?T:wait(E, ?READ, -1) end),
    {waits, Pid, _} = Waits,
    [#{owner := Pid, state := waiting, where := descriptor, function := {?T, nif_wait, 3}}] =
        fairnif:tasks(),
    kill(Waits).

until_halt(N) ->
    _ = [waits(fun() -> ?T:wait(?T:event(0), ?READ, -1) end) || _ <- lists:seq(1, N)],
    _ = waits(fun() -> ?T:wait_threaded(?T:term(?T:event(0)), ?READ, -1) end),
    ok.

%% One thread of the pool has many bodies that wait.
threaded() ->
    ok = application:set_env(fairnif, threads, 1),
    ok = fairnif:configure(),
    Fds = [?T:event(0) || _ <- lists:seq(1, 200)],
    Waits = [waits(fun() -> ?T:take_threaded(Fd, 3) end) || Fd <- Fds],
    fairnif_test:eventually(fun() -> #{threads_busy := B} = fairnif:info(), B =:= 0 end),
    [?T:add(Fd, 1) || _ <- [1, 2, 3], Fd <- Fds],
    [{answer, 3} = fairnif_test:down(Monitor, 10000) || {waits, _, Monitor} <- Waits],
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
    fairnif_test:eventually(fun() -> waiting() =:= N end, 120000),
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
    [normal = fairnif_test:down(Monitor, 60000) || Monitor <- Monitors],
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
    killed = fairnif_test:down(Monitor, 5000),
    ok.

%% Fun's value; Event happens meanwhile.
later(Event, Fun) ->
    {_, Monitor} = spawn_monitor(fun() -> timer:sleep(20), Event() end),
    Value = Fun(),
    normal = fairnif_test:down(Monitor, 5000),
    Value.

eventually(Fun, Not) ->
    case Fun() of
        Not -> timer:sleep(5), eventually(Fun, Not);
        Value -> Value
    end.

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
