%% What the NIF answers, wherever it pauses, and that a killed call leaves nothing.
-module(my_nif_tests).

-include_lib("eunit/include/eunit.hrl").

it_counts_what_erlang_counts_test() ->
    [?assertEqual(model(B, $a), my_nif:count(B, $a)) || B <- inputs()].

%% The debug build, which `make test' tests as well, reports an argument that was kept across a
%% pause. Not all that must not be kept is seen: docs/guide/hazards.md of fairnif.
a_pause_at_every_tick_changes_nothing_test() ->
    ok = fairnif:debug(#{pause_every_tick => true, check_terms => true}),
    try
        [?assertEqual(model(B, $a), my_nif:count(B, $a)) || B <- inputs()],
        #{rule_violations := Misuses} = fairnif:info({my_nif, {{nif}}, 2}),
        ?assertEqual(0, Misuses)
    after
        ok = fairnif:debug(#{pause_every_tick => false, check_terms => false})
    end.

anything_else_is_badarg_test() ->
    [?assertError(badarg, my_nif:count(B, C))
     || {B, C} <- [{a, $a}, {<<"a">>, -1}, {<<"a">>, 256}, {<<1:7>>, 1}]].

a_killed_caller_leaves_no_call_behind_test() ->
    B = binary:copy(<<"banana">>, 1000000),
    {Pid, Monitor} = spawn_monitor(fun() -> forever(B) end),
    ?assert(within_ms(10000, fun() -> calls_of(Pid) =/= [] end)),
    exit(Pid, kill),
    receive {'DOWN', Monitor, process, Pid, killed} -> ok end,
    ?assert(within_ms(10000, fun() -> calls_of(Pid) =:= [] end)).

inputs() ->
    [<<>>, <<"banana">>, binary:copy(<<"banana">>, 100000)].

model(Binary, Byte) ->
    length([C || <<C>> <= Binary, C =:= Byte]).

forever(Binary) ->
    _ = my_nif:count(Binary, $a),
    forever(Binary).

calls_of(Pid) ->
    [Task || #{owner := Owner} = Task <- fairnif:tasks(), Owner =:= Pid].

within_ms(Ms, Fun) ->
    Fun() orelse (Ms > 0 andalso begin timer:sleep(1), within_ms(Ms - 1, Fun) end).
