%% Bodies that use thread-local variables across a change of threads, wrongly and rightly: what each
%% does and answers is said in fairnif_test_threadlocal.c.
-module(fairnif_test_threadlocal).

-compile([export_all, nowarn_export_all]).

-on_load(init/0).

-define(NIF, erlang:nif_error(not_loaded)).

init() ->
    fairnif:loaded(erlang:load_nif(fairnif_test:library(?MODULE), fairnif:load_info())).

keeps_address() -> ?NIF.
keeps_address_ticking() -> ?NIF.
compiler_keeps_errno() -> ?NIF.
compiler_keeps_variable() -> ?NIF.
compiler_keeps_getter() -> ?NIF.
compiler_keeps_self() -> ?NIF.
state_in_thread() -> ?NIF.
asks_again() -> ?NIF.
asks_again_for_errno() -> ?NIF.
state_in_task() -> ?NIF.
state_on_stack() -> ?NIF.
called(_Units, _Us) -> ?NIF.
regions(_N, _Us) -> ?NIF.

%% @doc N calls of keeps_address_ticking/0, while the second of two schedulers is taken away and
%% given back: the answer of the first that is moved to the other one by that.
moved_by_schedulers(N) ->
    2 = erlang:system_flag(schedulers_online, 1),
    Calls = [spawn_monitor(fun() -> exit({answer, keeps_address_ticking()}) end)
             || _ <- lists:seq(1, N)],
    until_moved(Calls, 1000).

until_moved(Calls, Times) when Times > 0 ->
    _ = erlang:system_flag(schedulers_online, 1 + Times rem 2),
    receive
        {'DOWN', _, process, Pid, {answer, Answer}} ->
            [exit(Other, kill) || {Other, _} <- Calls, Other =/= Pid],
            Answer
    after 10 ->
        until_moved(Calls, Times - 1)
    end.

%% @doc Calls called/2 until it was run in place and elsewhere, N times at most: how often each. All
%% must be right.
called_until_both(N) ->
    called_until_both(N, 0, 0).

called_until_both(N, InPlace, Elsewhere) when N =:= 0; InPlace > 0, Elsewhere > 0 ->
    {InPlace, Elsewhere};
called_until_both(N, InPlace, Elsewhere) ->
    case called(1, 0) of
        {Thread, Thread, 1} -> called_until_both(N - 1, InPlace + 1, Elsewhere);
        {_, _, 1} -> called_until_both(N - 1, InPlace, Elsewhere + 1)
    end.

%% @doc Calls regions/2 in one process more than there are dirty CPU schedulers, so that they give
%% way to each other: {Calls, Changes, Right}, the last two of all calls.
regions_side_by_side(N, Us) ->
    Calls = [spawn_monitor(fun() -> exit({answer, regions(N, Us)}) end)
             || _ <- lists:seq(0, erlang:system_info(dirty_cpu_schedulers_online))],
    Answers = [receive {'DOWN', Monitor, process, _, {answer, Answer}} -> Answer end
               || {_, Monitor} <- Calls],
    {length(Calls), lists:sum([C || {C, _} <- Answers]), lists:sum([R || {_, R} <- Answers])}.
