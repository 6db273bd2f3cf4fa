%% The runtime as it is built for other systems, in a real node: with ucontext for the switch of
%% stacks, and without tasks at all. Each is built here, from the same sources (c_src/switch.mk).
-module(fairnif_switch_SUITE).

-export([all/0, groups/0, suite/0, init_per_suite/1, end_per_suite/1,
         init_per_group/2, end_per_group/2]).
-export([info_says_how_stacks_are_switched/1,
         every_body_gives_the_same_answers/1,
         with_ucontext_calls_pause_and_continue/1,
         without_tasks_every_call_runs_on_a_dirty_scheduler/1,
         a_killed_call_ends_and_releases_everything/1]).
%% In the peer.
-export([wrong_answers/0, calls/0, kill_calls/0]).

suite() ->
    [{timetrap, {minutes, 15}}].

all() ->
    [{group, ucontext}, {group, none}].

groups() ->
    Both = [info_says_how_stacks_are_switched,
            every_body_gives_the_same_answers,
            a_killed_call_ends_and_releases_everything],
    [{ucontext, [], [with_ucontext_calls_pause_and_continue | Both]},
     {none, [], [without_tasks_every_call_runs_on_a_dirty_scheduler | Both]}].

init_per_suite(Config) ->
    ok = fairnif_test:build(),
    Config.

end_per_suite(_Config) ->
    ok.

%% An application fairnif of its own, with the modules at hand and another library.
init_per_group(Switch, Config) ->
    Dir = filename:join([proplists:get_value(priv_dir, Config), Switch, "fairnif"]),
    Ebin = filename:join(Dir, "ebin"),
    [ok = filelib:ensure_dir(filename:join([Dir, Sub, "x"])) || Sub <- ["ebin", "priv"]],
    [{ok, _} = file:copy(File, filename:join(Ebin, filename:basename(File)))
     || File <- filelib:wildcard(filename:join(filename:dirname(code:which(fairnif)), "*"))],
    Library = filename:join([Dir, "priv", "fairnif.so"]),
    Output = os:cmd(lists:flatten(
                      io_lib:format("make -C '~ts' FAIRNIF_SWITCH=~ts BUILD='~ts/obj' ~s"
                                    "LIBRARY='~ts' ERTS_INCLUDE_DIR='~ts/usr/include' 2>&1",
                                    [filename:join(fairnif_test:source_dir(), "../c_src"), Switch,
                                     Dir, quickly(Switch), Library, code:root_dir()]))),
    case filelib:is_regular(Library) of
        true -> [{switch, Switch}, {ebin, Ebin} | Config];
        false -> error({make, Output})
    end.

%% What is switched is built as users build it.
quickly(ucontext) -> "";
quickly(none) -> "OPTIMISE= ".

end_per_group(_Switch, Config) ->
    Config.

%% -- tests -------------------------------------------------------------------

info_says_how_stacks_are_switched(Config) ->
    Switch = proplists:get_value(switch, Config),
    in_peer(Config, fun(Peer) ->
        #{stack_switch := Switch, stack_guard := Guard} = call(Peer, fairnif, info, []),
        true = (Guard =:= none) =:= (Switch =:= none)
    end).

every_body_gives_the_same_answers(Config) ->
    in_peer(Config, fun(Peer) ->
        [begin
             ok = call(Peer, fairnif, debug, [#{pause_every_tick => Pause}]),
             {Pause, []} = {Pause, call(Peer, ?MODULE, wrong_answers, [])}
         end || Pause <- [false, true]]
    end).

with_ucontext_calls_pause_and_continue(Config) ->
    in_peer(Config, fun(Peer) ->
        ok = call(Peer, fairnif, debug, [#{pause_every_tick => true}]),
        Calls = call(Peer, ?MODULE, calls, []),
        [normal, yielding, dirty_cpu, dirty_io, yielding_dirty, auto] = [M || {M, _, _} <- Calls],
        [20 = Yields || {Mode, Yields, _} <- Calls,
                        lists:member(Mode, [yielding, yielding_dirty, auto])]
    end).

without_tasks_every_call_runs_on_a_dirty_scheduler(Config) ->
    in_peer(Config, fun(Peer) ->
        ok = call(Peer, fairnif, debug, [#{pause_every_tick => true}]),
        [{Mode, 0, true} = {Mode, Yields, DirtyNs > 0}
         || {Mode, Yields, DirtyNs} <- call(Peer, ?MODULE, calls, [])]
    end).

a_killed_call_ends_and_releases_everything(Config) ->
    in_peer(Config, fun(Peer) -> ok = call(Peer, ?MODULE, kill_calls, []) end).

%% -- in the peer -------------------------------------------------------------

%% What depends on where a body runs is no case for a runtime without tasks.
wrong_answers() ->
    #{stack_switch := Switch} = fairnif:info(),
    [Wrong || {Body, _, _} = Case <- fairnif_test_cases:all(),
              Switch =/= none orelse not lists:member(Body, [move, call, blocking]),
              Mode <- fairnif_test_nif:modes(),
              Wrong <- [fairnif_test_cases:check(Case, Mode)], Wrong =/= ok].

%% A call in each mode: how often it paused, its time on dirty schedulers.
calls() ->
    [begin
         {hello} = fairnif_test_nif:run(echo, Mode, [{hello}]),
         #{yields := Yields, dirty_ns := DirtyNs} =
             fairnif:info({fairnif_test_nif, fairnif_test_nif:name(echo, Mode), 1}),
         {Mode, Yields, DirtyNs}
     end || Mode <- fairnif_test_nif:modes()].

%% The caller of a FAIR_NORMAL call on a normal scheduler cannot be killed meanwhile.
kill_calls() ->
    #{stack_switch := Switch} = fairnif:info(),
    [begin
         Slot = fairnif_test_probe:new_slot(),
         {Pid, Monitor} = spawn_monitor(
                            fun() -> fairnif_test_nif:run(spin, Mode, [Slot, 20000000, []]) end),
         %% One that is killed before its body has begun never begins.
         Begun = fun() -> maps:get(begun, fairnif_test_probe:slot(Slot)) =:= 1 end,
         ok = fairnif_test:eventually(Begun),
         timer:sleep(10),
         exit(Pid, kill),
         killed = fairnif_test:down(Monitor),
         ok = fairnif_test:eventually(fun() -> fairnif:tasks() =:= [] end),
         Info = fun() -> fairnif:info({fairnif_test_nif, fairnif_test_nif:name(spin, Mode), 3}) end,
         ok = fairnif_test:eventually(fun() -> maps:get(cancels, Info()) =:= 1 end),
         Ended = fun() -> maps:with([ended, defers, disorder], fairnif_test_probe:slot(Slot)) end,
         ok = fairnif_test:eventually(
                fun() -> Ended() =:= #{ended => 1, defers => 3, disorder => 0} end)
     end || Mode <- fairnif_test_nif:modes(), Mode =/= normal orelse Switch =:= none],
    ok.

%% -- helpers -----------------------------------------------------------------

in_peer(Config, Fun) ->
    Peer = fairnif_test:peer(["-pa", proplists:get_value(ebin, Config)]),
    try Fun(Peer) after fairnif_test:stop(Peer) end.

call(Peer, Module, Function, Args) ->
    fairnif_test:call(Peer, Module, Function, Args).
