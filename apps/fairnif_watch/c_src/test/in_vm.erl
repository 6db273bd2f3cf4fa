%% What outside/vm.h reads of this VM, from another process (in_vm_dump), is what the VM says of
%% itself. main/1 prints a line for each check that failed, and the totals, as the C tests do.
-module(in_vm).

-export([main/1, known/1]).

-define(LIMIT_MS, 240_000).

%% Who looks is not where scheduler 1 is blocked.
main([Dir]) ->
    ok = in_vm_block:load(filename:join(Dir, "in_vm_block")),
    put(reader, filename:join(Dir, "in_vm_dump")),
    Tests = [fun all_is_shown/0, fun all_processes/0, fun a_known_one/0, fun long_queue/0,
             fun suspended/0, fun on_a_scheduler/0, fun dirty_pool/0, fun run_queue/0,
             fun while_it_works/0, fun bits_flip/0],
    Results = [run(Test) || Test <- Tests],
    Failed = length([failed || failed <- Results]),
    io:format("outside the VM of OTP ~s: ~b passed, ~b failed~n",
              [erlang:system_info(otp_release), length(Results) - Failed, Failed]),
    halt(min(Failed, 1)).

run(Test) ->
    try Test() of
        _ -> passed
    catch
        Class:Reason:Stack ->
            {name, Name} = erlang:fun_info(Test, name),
            io:format("FAILED ~s: ~p:~p~n~p~n", [Name, Class, Reason, Stack]),
            failed
    end.

all_is_shown() ->
    [] = [Left || Left <- look(), element(1, Left) =:= not_shown].

%% All that neither run nor change meanwhile.
all_processes() ->
    until(fun() ->
                  Before = infos(),
                  {_, Seen} = seen(),
                  After = infos(),
                  Same = [Pid || {Pid, Info} <- maps:to_list(Before),
                                 same(Info, maps:get(Pid, After, none))],
                  Wrong = [Difference
                           || Pid <- Same,
                              Difference <- differences(Pid, maps:get(Pid, Before),
                                                        maps:get(Pid, After),
                                                        maps:get(Pid, Seen, #{}))],
                  case length(Same) > 25 of
                      true -> Wrong;
                      false -> {too_few, length(Same)}
                  end
          end, []).

infos() ->
    Keys = [registered_name, heap_size, total_heap_size, message_queue_len, reductions, status,
            initial_call, current_function, current_stacktrace],
    maps:from_list([{Pid, maps:from_list(Info)}
                    || Pid <- erlang:processes(), Pid =/= self(), Info <- [process_info(Pid, Keys)],
                       Info =/= undefined]).

%% To be asked costs reductions.
same(_, none) -> false;
same(Before, After) -> maps:remove(reductions, Before) =:= maps:remove(reductions, After).

differences(Pid, Before, After, Seen) ->
    #{reductions := From} = Before,
    #{reductions := To} = After,
    Name = case Before of #{registered_name := []} -> none; #{registered_name := N} -> N end,
    Keys = [heap_size, message_queue_len, status, initial_call, current_function],
    [{Pid, Key, maps:get(Key, Before), maps:get(Key, Seen, none)}
     || Key <- Keys, maps:get(Key, Before) =/= maps:get(Key, Seen, none)]
        ++ [{Pid, name, Name} || Name =/= maps:get(registered_name, Seen, none)]
        ++ [{Pid, reductions, From, maps:get(reductions, Seen, none), To}
            || not between(From, maps:get(reductions, Seen, none), To)]
        ++ [{Pid, total_heap_size, maps:get(both_heaps, Seen, none)}
            || not between(maps:get(heap_size, Before), maps:get(both_heaps, Seen, none),
                           maps:get(total_heap_size, Before))]
        ++ [{Pid, stack, calls(Before), maps:get(stack, Seen, none)}
            || not lists:prefix(calls(Before), maps:get(stack, Seen, []))].

between(From, N, To) -> is_integer(N) andalso From =< N andalso N =< To.

calls(#{current_stacktrace := []}) -> [];
calls(#{current_stacktrace := [_ | Calls]}) -> [{M, F, A} || {M, F, A, _} <- Calls].

%% Of it everything is known.
a_known_one() ->
    Pid = spawn_opt(fun() ->
                            true = register('it\'s known', self()),
                            garbage_collect(),
                            [known([x])]
                    end, [{min_heap_size, 5000}]),
    [Pid ! N || N <- lists:seq(1, 5)],
    until(fun() -> maps:with([registered_name, message_queue_len, current_function, status, stack],
                             process(Pid))
          end,
          #{registered_name => 'it\'s known', message_queue_len => 5, status => waiting,
            current_function => {?MODULE, known, 1},
            stack => [{?MODULE, '-a_known_one/0-fun-0-', 0}]}),
    {heap_size, Size} = process_info(Pid, heap_size),
    #{heap_size := Size} = process(Pid),
    true = Size >= 5000,
    exit(Pid, kill).

known(State) ->
    receive {none, _} -> ok end,
    [State].

%% More than are counted.
long_queue() ->
    Pid = spawn(fun() -> known([]) end),
    [Pid ! {N, N} || N <- lists:seq(1, 30_000)],
    until(fun() -> maps:get(message_queue_len, process(Pid), none) end, 30_000),
    exit(Pid, kill).

suspended() ->
    Pid = spawn(fun() -> known([]) end),
    erlang:suspend_process(Pid),
    until(fun() -> maps:get(status, process(Pid)) end, suspended),
    exit(Pid, kill).

%% In a NIF. Where it was scheduled out last says nothing of where it is.
on_a_scheduler() ->
    Pid = spawn_opt(fun() -> naps(300) end, [{scheduler, 1}]),
    until(fun() ->
                  {Rest, #{Pid := #{status := Status} = Seen}} = seen(),
                  {[P || {running, normal, 1, P} <- Rest], Status,
                   maps:is_key(current_function, Seen), maps:get(called, Seen, none)}
          end,
          {[Pid], running, false, {in_vm_block, nap, 1}}),
    exit(Pid, kill).

%% Killed, it ends between two.
naps(Ms) ->
    again(fun() -> in_vm_block:nap(Ms), erlang:yield() end).

again(Fun) ->
    Fun(),
    again(Fun).

%% Two have the two threads, and three wait for them in the order in which they came.
dirty_pool() ->
    2 = erlang:system_info(dirty_io_schedulers),
    Nap = fun() -> in_vm_block:nap_dirty(3000) end,
    Run = [spawn(Nap), spawn(Nap)],
    until(fun() -> lists:sort(running(dirty_io)) end, Run),
    Wait = [begin
                Pid = spawn(Nap),
                until(fun() -> [L || {queue, dirty_io, _, L, _} <- element(1, seen())] end, [N]),
                Pid
            end || N <- [1, 2, 3]],
    {Rest, Seen} = seen(),
    [Wait] = [Pids || {queue, dirty_io, 0, 3, Pids} <- Rest],
    [0] = [N || {queue, dirty_cpu, 0, N, _} <- Rest],
    [{running, normal}, {running, normal}, {runnable, dirty_io}, {runnable, dirty_io},
     {runnable, dirty_io}] =
        [{Status, Dirty} || Pid <- Run ++ Wait,
                            #{status := Status, dirty := Dirty} <- [maps:get(Pid, Seen)]],
    [exit(Pid, kill) || Pid <- Run ++ Wait].

%% Bound to a scheduler that is blocked.
run_queue() ->
    On1 = [{scheduler, 1}],
    Nap = spawn_opt(fun() -> naps(3000) end, On1),
    until(fun() -> running(normal) end, [Nap]),
    Wait = [spawn_opt(fun() -> ok end, On1) || _ <- lists:seq(1, 4)],
    until(fun() ->
                  {Rest, _} = seen(),
                  [Wait -- Pids || {queue, normal, 1, N, Pids} <- Rest, N >= 4]
          end, [[]]),
    exit(Nap, kill).

%% All is read while processes run, collect, come and go: what is shown is right nonetheless.
while_it_works() ->
    Known = spawn(fun() -> register(in_vm_known, self()), known([]) end),
    Busy = [spawn(fun() -> again(fun churn/0) end) || _ <- lists:seq(1, 20)],
    Shown = [begin
                 {Rest, Seen} = seen(),
                 #{registered_name := in_vm_known, current_function := {?MODULE, known, 1},
                   message_queue_len := 0} = maps:get(Known, Seen),
                 [] =:= [Left || Left <- Rest, element(1, Left) =:= not_shown]
             end || _ <- lists:seq(1, 20)],
    [] = [Shown || length([true || true <- Shown]) < 15],
    [exit(Pid, kill) || Pid <- [Known | Busy]].

churn() ->
    Self = self(),
    Pids = [spawn(fun() -> Self ! {self(), lists:seq(1, N * 50)} end) || N <- lists:seq(1, 20)],
    [receive {Pid, List} -> length(List) end || Pid <- Pids].

%% Neither a crash nor an endless loop, and no complaint of a sanitizer.
bits_flip() ->
    [begin
         [{flipped, 24, Learned, Processes}] = look(["flip", integer_to_list(Seed), "24"]),
         true = Learned > 0 andalso Processes > 0
     end || Seed <- lists:seq(1, 5)].

%% -- the reader ----------------------------------------------------------------------------------

%% Scheduler 2 runs who looks.
running(Type) ->
    {Rest, _} = seen(),
    [Pid || {running, T, N, Pid} <- Rest, T =:= Type, {Type, N} =/= {normal, 2}].

process(Pid) ->
    {_, Seen} = seen(),
    maps:get(Pid, Seen, #{}).

%% What is no process, and processes.
seen() ->
    {Processes, Rest} = lists:partition(fun(Term) -> element(1, Term) =:= process end, look()),
    {[pids(Term) || Term <- Rest],
     maps:from_list([{list_to_pid(Pid), Seen} || {process, Pid, Seen} <- Processes])}.

pids({running, Type, N, Pid}) -> {running, Type, N, list_to_pid(Pid)};
pids({queue, Type, N, Length, Pids}) ->
    {queue, Type, N, Length, [list_to_pid(Pid) || Pid <- Pids]};
pids(Term) -> Term.

look() -> look([]).

look(Args) ->
    Port = open_port({spawn_executable, get(reader)},
                     [{args, [os:getpid() | Args]}, exit_status, binary, stderr_to_stdout]),
    Text = collect(Port, []),
    {ok, Tokens, _} = erl_scan:string(binary_to_list(Text)),
    terms(Tokens, []).

collect(Port, Parts) ->
    receive
        {Port, {data, Part}} -> collect(Port, [Part | Parts]);
        {Port, {exit_status, 0}} -> iolist_to_binary(lists:reverse(Parts));
        {Port, {exit_status, Status}} ->
            error({reader, Status, iolist_to_binary(lists:reverse(Parts))})
    after ?LIMIT_MS -> error({reader, late})
    end.

terms([], Terms) -> lists:reverse(Terms);
terms(Tokens, Terms) ->
    {Form, [Dot | Rest]} = lists:splitwith(fun(Token) -> element(1, Token) =/= dot end, Tokens),
    {ok, Term} = erl_parse:parse_term(Form ++ [Dot]),
    terms(Rest, [Term | Terms]).

until(Fun, Wanted) ->
    until(Fun, Wanted, erlang:monotonic_time(millisecond) + ?LIMIT_MS).

until(Fun, Wanted, End) ->
    case Fun() of
        Wanted -> ok;
        Other ->
            erlang:monotonic_time(millisecond) < End orelse error({wanted, Wanted, is, Other}),
            receive after 50 -> until(Fun, Wanted, End) end
    end.
