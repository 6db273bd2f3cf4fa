%% A task may go on on another thread after a tick. What that does to code that uses thread-local
%% variables, errno among them: the bad bodies are shown to be wrong, the remedies to be right. The
%% bodies are in fairnif_test_threadlocal.c.
-module(fairnif_threadlocal_SUITE).

-export([suite/0, all/0, init_per_suite/1, end_per_suite/1]).
-export([an_address_kept_across_a_move_is_another_threads/1,
         an_address_kept_across_ticks_is_another_threads/1,
         the_compiler_keeps_the_address_of_errno/1,
         the_compiler_keeps_the_address_of_a_thread_local_variable/1,
         the_compiler_keeps_what_a_function_that_is_only_not_inlined_answers/1,
         the_compiler_keeps_pthread_self/1,
         what_was_stored_stays_with_the_thread/1,
         asking_again_in_a_function_that_hides_what_it_asks_gives_this_threads/1,
         state_of_the_task_goes_with_the_task/1,
         a_function_in_fair_call_has_one_thread_from_begin_to_end/1,
         between_two_ticks_the_thread_is_the_same/1]).

suite() ->
    [{timetrap, {minutes, 2}}].

all() ->
    [an_address_kept_across_a_move_is_another_threads,
     an_address_kept_across_ticks_is_another_threads,
     the_compiler_keeps_the_address_of_errno,
     the_compiler_keeps_the_address_of_a_thread_local_variable,
     the_compiler_keeps_what_a_function_that_is_only_not_inlined_answers,
     the_compiler_keeps_pthread_self,
     what_was_stored_stays_with_the_thread,
     asking_again_in_a_function_that_hides_what_it_asks_gives_this_threads,
     state_of_the_task_goes_with_the_task,
     a_function_in_fair_call_has_one_thread_from_begin_to_end,
     between_two_ticks_the_thread_is_the_same].

-define(EBADF, 9).

%% Two schedulers of each kind, on any machine.
init_per_suite(Config) ->
    ok = fairnif_test:build(),
    Config.

end_per_suite(_Config) ->
    ok.

%% -- the hazard --------------------------------------------------------------

an_address_kept_across_a_move_is_another_threads(_) ->
    {Before, Here, Seen} = in_peer(keeps_address, []),
    true = Before =/= Here,
    {Before, Before} = {Seen, Before}.

%% With nothing but ticks, from one normal scheduler to another.
an_address_kept_across_ticks_is_another_threads(_) ->
    {Before, Here, Seen} = in_peer(moved_by_schedulers, [2]),
    true = Before =/= Here,
    {Before, Before} = {Seen, Before}.

%% -- the hazard that cannot be read in the source ----------------------------
%% Another compiler may do otherwise: then the disassembly says so, and the body is right.

the_compiler_keeps_the_address_of_errno(_) ->
    {Before, Here, Errno} = in_peer(compiler_keeps_errno, []),
    true = Before =/= Here,
    kept_or_asked("errno_twice", "__errno_location", Errno =:= ?EBADF).

the_compiler_keeps_the_address_of_a_thread_local_variable(_) ->
    {Before, Here, Seen} = in_peer(compiler_keeps_variable, []),
    true = Before =/= Here,
    kept_or_asked("owner_twice", "__tls_get_addr", Seen =:= Here).

the_compiler_keeps_what_a_function_that_is_only_not_inlined_answers(_) ->
    {Before, Here, Seen} = in_peer(compiler_keeps_getter, []),
    true = Before =/= Here,
    kept_or_asked("getter_twice", "owner_not_inlined", Seen =:= Here).

the_compiler_keeps_pthread_self(_) ->
    {Before, Here, Same} = in_peer(compiler_keeps_self, []),
    true = Before =/= Here,
    kept_or_asked("self_twice", "pthread_self", Same =:= 0).

%% Function calls Asks once or never: the address is kept, and what the body sees is wrong. Twice:
%% right.
kept_or_asked(Function, Asks, Right) ->
    case calls(Function, Asks) of
        {skip, _} = Skip when Right -> Skip;
        {skip, _} -> {comment, Function ++ " is wrong; no objdump to show why"};
        N when N < 2, not Right -> {comment, io_lib:format("asked ~b times for 2", [N])};
        N when N >= 2, Right -> {comment, "this compiler keeps nothing"};
        N -> error({Function, {calls, N}, {right, Right}})
    end.

calls(Function, Callee) ->
    case os:find_executable("objdump") of
        false ->
            {skip, "objdump is not installed"};
        _ ->
            Library = fairnif_test:library(fairnif_test_threadlocal) ++ ".so",
            Text = os:cmd("objdump -d --disassemble=" ++ Function ++ " '" ++ Library ++ "'"),
            ct:log("~ts", [Text]),
            %% No such function: the compiler (gcc 14) knew its answer and dropped it.
            case re:run(Text, "(call|jmp) .*<" ++ Callee, [global]) of
                {match, Calls} -> length(Calls);
                nomatch -> 0
            end
    end.

%% The address was asked for anew, and is the right one: the new thread's variable does not hold
%% what was stored into the old one's.
what_was_stored_stays_with_the_thread(_) ->
    {Before, Here, Seen} = in_peer(state_in_thread, []),
    true = Before =/= Here,
    true = Seen =/= -1.

%% -- remedies ----------------------------------------------------------------

asking_again_in_a_function_that_hides_what_it_asks_gives_this_threads(_) ->
    with_peer(
      fun(Peer) ->
              {Before, Here, Here} = call(Peer, asks_again, []),
              true = Before =/= Here,
              {Before1, Here1, ?EBADF} = call(Peer, asks_again_for_errno, []),
              true = Before1 =/= Here1
      end),
    ok.

state_of_the_task_goes_with_the_task(_) ->
    with_peer(
      fun(Peer) ->
              [begin
                   {Before, Here, -1} = call(Peer, Body, []),
                   true = Before =/= Here
               end || Body <- [state_in_task, state_on_stack]]
      end),
    ok.

%% On a dirty scheduler while its cost is not known or high, in place when it is known to be short.
a_function_in_fair_call_has_one_thread_from_begin_to_end(_) ->
    {InPlace, Elsewhere} = with_peer(fun(Peer) -> call(Peer, called_until_both, [10000]) end),
    true = InPlace > 0 andalso Elsewhere > 0,
    {comment, io_lib:format("~b right in place, ~b elsewhere", [InPlace, Elsewhere])}.

%% In FAIR_DIRTY_CPU, on dirty schedulers that are all taken, so that the bodies give way at their
%% ticks and go on on another thread; what stands between two ticks is right.
between_two_ticks_the_thread_is_the_same(_) ->
    {Calls, Changes, Right} = in_peer(regions_side_by_side, [200, 1000]),
    {Calls, Right} = {Right div 200, Calls * 200},
    true = Changes > 0,
    {comment, io_lib:format("~b regions, all right; ~b changes of thread", [Right, Changes])}.

%% -- a node ------------------------------------------------------------------

in_peer(Body, Args) ->
    with_peer(fun(Peer) -> call(Peer, Body, Args) end).

with_peer(Fun) ->
    Peer = fairnif_test:peer(["+S", "2:2", "+SDcpu", "2:2"], [fairnif_test_threadlocal]),
    try Fun(Peer)
    after fairnif_test:stop(Peer)
    end.

call(Peer, Function, Args) ->
    fairnif_test:call(Peer, fairnif_test_threadlocal, Function, Args).
