-module(fairnif_check_nif_tests).

-include_lib("eunit/include/eunit.hrl").

%% What runs in the peer.
-export([without_the_module/0, beside_a_newer_module/0]).

-define(N, fairnif_check_nif).
-define(SOON_MS, 10000).

the_times_of_a_thread_increase_and_its_number_is_a_thread_of_this_node_test() ->
    {M0, _, _, Thread} = ?N:thread_times(),
    {M1, Cpu, Waited, _} = ?N:thread_times(),
    ?assert(M1 >= M0),
    ?assert(Cpu > 0),
    ?assert(Waited >= 0),
    ?assert(filelib:is_dir("/proc/self/task/" ++ integer_to_list(Thread))).

now_is_the_time_of_the_vm_on_all_kinds_of_schedulers_test_() ->
    [fun() ->
             Before = erlang:monotonic_time(nanosecond),
             Now = ?N:Function(),
             ?assert(Before =< Now),
             ?assert(Now =< erlang:monotonic_time(nanosecond))
     end || Function <- [now, now_dirty_cpu, now_dirty_io]].

%% ---- the sentinel ----

a_sentinel_tells_when_its_owner_has_exited_and_not_before_test() ->
    Owner = owner(key, fun() -> receive done -> ok end end),
    ?assertEqual(nothing, notified(key, 50)),
    Before = ?N:now(),
    Owner ! done,
    ?assert(notified(key, ?SOON_MS) >= Before).

any_term_is_a_key_test_() ->
    [fun() ->
             _ = owner(Key, fun() -> ok end),
             ?assert(is_integer(notified(Key, ?SOON_MS)))
     end || Key <- [make_ref(), {self(), binary:copy(<<"long">>, 100)}, #{a => [1.5]}]].

two_holders_are_one_sentinel_test() ->
    Me = self(),
    Second = spawn(fun() -> receive Term -> receive done -> Me ! Term end end end),
    _ = owner_of(key, fun(Term) -> Second ! Term, Me ! passed end),
    receive passed -> ok end,
    ?assertEqual(nothing, notified(key, 50)),
    exit(Second, kill),
    ?assert(is_integer(notified(key, ?SOON_MS))).

a_killed_owner_in_a_dirty_nif_is_reported_when_the_nif_has_returned_test_() ->
    {timeout, 60, fun() -> fairnif_check_repeat:until_it_holds(fun() ->
        %% What it left is freed by a normal scheduler, by any of them, which must wake to do so.
        Ticks = [spawn_opt(fun tick/0, [link, fairnif_check_machine:bound_to(N)])
                 || N <- lists:seq(1, erlang:system_info(schedulers_online))],
        Owner = owner(key, fun() -> erts_debug:dirty_cpu(wait, 500) end),
        Monitor = monitor(process, Owner),
        timer:sleep(100),
        Killed = ?N:now(),
        exit(Owner, kill),
        receive {'DOWN', Monitor, process, _, killed} -> ok end,
        Gone = notified(key, ?SOON_MS),
        [begin unlink(Tick), exit(Tick, kill) end || Tick <- Ticks],
        ?assert(Gone - Killed > 200000000)
    end) end}.

a_dead_process_to_notify_is_no_error_test() ->
    Dead = spawn(fun() -> ok end),
    Monitor = monitor(process, Dead),
    receive {'DOWN', Monitor, process, _, _} -> ok end,
    _ = spawn(fun() -> ?N:sentinel(Dead, key) end),
    ?assertEqual(nothing, notified(key, 50)).

who_is_no_process_of_this_node_is_badarg_test_() ->
    [?_assertError(badarg, ?N:sentinel(To, key)) || To <- [me, 1, make_ref(), []]].

%% ---- purge and upgrade: the destructor's code stays while there is something to destroy ----

a_sentinel_outlives_its_module_test_() ->
    in_peer(without_the_module).

a_sentinel_outlives_the_version_that_made_it_test_() ->
    in_peer(beside_a_newer_module).

in_peer(Function) ->
    {timeout, 60, fun() ->
        ?assertEqual({ok, ok}, fairnif_check_peer:run([], {?MODULE, Function, []}, 30000)) end}.

%% ---- in the peer ----

without_the_module() ->
    Owner = owner(key, fun() -> receive done -> ok end end),
    true = code:delete(?N),
    false = code:purge(?N),
    false = code:is_loaded(?N),
    true = mapped(),
    Owner ! done,
    notified_at_all().

beside_a_newer_module() ->
    Old = owner(old, fun() -> receive done -> ok end end),
    {module, ?N} = code:load_file(?N),
    false = code:purge(?N),
    New = owner(new, fun() -> receive done -> ok end end),
    {module, ?N} = code:load_file(?N),
    false = code:purge(?N),
    [Owner ! done || Owner <- [Old, New]],
    true = is_integer(notified(old, ?SOON_MS)),
    true = is_integer(notified(new, ?SOON_MS)),
    ok.

notified_at_all() ->
    case notified(key, ?SOON_MS) of
        Ns when is_integer(Ns) -> ok
    end.

mapped() ->
    {ok, Maps} = file:read_file("/proc/self/maps"),
    binary:match(Maps, <<"fairnif_check_nif.so">>) =/= nomatch.

%% A process with a sentinel, which tells this one.
owner(Key, Fun) ->
    owner_of(Key, fun(_) -> Fun() end).

owner_of(Key, Fun) ->
    Me = self(),
    Owner = spawn(fun() ->
                          Term = ?N:sentinel(Me, Key),
                          Me ! {self(), has_it},
                          _ = Fun(Term),
                          %% Kept until here.
                          true = is_reference(Term)
                  end),
    receive {Owner, has_it} -> Owner end.

notified(Key, Ms) ->
    receive {sentinel, Key, Ns} -> Ns after Ms -> nothing end.

tick() ->
    receive after 1 -> tick() end.
