%% Loading the runtime never waits, and survives its caller; the fair slice is measured once, in a
%% process of its own.  Each test in a fresh node with one dirty CPU scheduler, which a plain NIF
%% blocks: so the measurement can't end before the test wants it to.
-module(fairnif_loading_tests).

-include_lib("eunit/include/eunit.hrl").

-export([load_ms/0, killed_loader/0, many_loaders/1, half_loaded/0, again/0, early_call/1,
         reloads/1]).

loading_test_() ->
    ok = fairnif_test:build(),
    {timeout, 120,
     [{"a library compiled for interface 3.0 does what it did",
       fun fairnif_test_interface_3:check/0},
      {"the runtime is loaded and usable while all dirty CPU schedulers are busy",
       fun usable_at_once/0},
      {"its loader may be killed, and so may the process that measures", fun killed/0},
      {"what a loader that was killed left undone is done by the next call", fun half_done/0},
      {"fifty that load at once measure once", fun once/0},
      {"the module is loaded again while the process measures", fun reloaded/0},
      {"application:stop does not end the process that measures", fun application_stop/0},
      {"a library that is loaded again and again makes no atoms", fun atoms/0},
      {"a call made right after the load may be long and raise", {timeout, 60, fun early/0}}]}.

usable_at_once() ->
    Peer = peer([]),
    Ms = fairnif_test:call(Peer, ?MODULE, load_ms, []),
    ?debugFmt("loaded in ~.1f ms beside a full dirty CPU pool", [Ms]),
    Info = fairnif_test:call(Peer, fairnif, info, []),
    ?assertMatch(#{slice_ns := 25000, calibration := #{measured := false, slice_ns := 25000,
                                                       turn_ns := 25000}}, Info),
    ok = fairnif_test:call(Peer, fairnif, configure, []),
    ok = fairnif_test:call(Peer, application, start, [fairnif]),
    open(Peer),
    #{calibration := #{slice_ns := Slice, turn_ns := Fair, dirty_round_trip_ns := Trip,
                       mix := Mix}} =
        measured(Peer),
    ?assertEqual(4, length(Mix)),
    fairnif_test:eventually(
      fun() ->
              maps:with([slice_ns, turn_ns, dirty_round_trip_ns],
                        fairnif_test:call(Peer, fairnif, info, []))
                  =:= #{slice_ns => Slice, turn_ns => Fair, dirty_round_trip_ns => Trip}
      end),
    fairnif_test:stop(Peer).

killed() ->
    Peer = peer([]),
    ok = fairnif_test:call(Peer, ?MODULE, killed_loader, []),
    #{calibration := #{measured := false}} = fairnif_test:call(Peer, fairnif, info, []),
    Pid = measures(Peer),
    true = fairnif_test:call(Peer, erlang, exit, [Pid, kill]),
    fairnif_test:eventually(fun() -> measures(Peer) =:= undefined end),
    ok = fairnif_test:call(Peer, fairnif, configure, []),
    fairnif_test:eventually(fun() -> is_pid(measures(Peer)) end),
    open(Peer),
    _ = measured(Peer),
    fairnif_test:stop(Peer).

half_done() ->
    Peer = peer(["-fairnif", "slice_us", "77", "threads", "3"]),
    ok = fairnif_test:call(Peer, ?MODULE, half_loaded, []),
    #{slice_ns := 77000, threads := 3} = fairnif_test:call(Peer, fairnif, info, []),
    open(Peer),
    #{slice_ns := 77000} = measured(Peer),
    fairnif_test:stop(Peer).

once() ->
    Peer = peer([]),
    1 = fairnif_test:call(Peer, ?MODULE, many_loaders, [50]),
    fairnif_test:stop(Peer).

reloaded() ->
    Peer = peer([]),
    ok = fairnif_test:call(Peer, ?MODULE, again, []),
    #{calibration := #{measured := false}} = fairnif_test:call(Peer, fairnif, info, []),
    open(Peer),
    _ = measured(Peer),
    fairnif_test:stop(Peer).

application_stop() ->
    Peer = peer([]),
    ok = fairnif_test:call(Peer, application, start, [fairnif]),
    fairnif_test:eventually(fun() -> is_pid(measures(Peer)) end),
    Pid = measures(Peer),
    ok = fairnif_test:call(Peer, application, stop, [fairnif]),
    ?assertEqual(Pid, measures(Peer)),
    open(Peer),
    _ = measured(Peer),
    fairnif_test:stop(Peer).

%% Both as an upgrade and after a delete.
atoms() ->
    Peer = peer([]),
    open(Peer),
    Before = fairnif_test:call(Peer, ?MODULE, reloads, [3]),
    ?assertEqual(Before, fairnif_test:call(Peer, ?MODULE, reloads, [20])),
    fairnif_test:stop(Peer).

%% What is freed in this node is unmapped: to read it ends the node.
early() ->
    [begin
         Peer = peer(["+MRsbct", "1", "+MMmcs", "0"]),
         open(Peer),
         badarg = fairnif_test:call(Peer, ?MODULE, early_call, [Mode]),
         fairnif_test:stop(Peer)
     end || Mode <- [yielding, dirty_io]].

%% -- in the peer ---------------------------------------------------------------

load_ms() ->
    {Us, _} = timer:tc(fairnif, load_info, []),
    Us / 1000.

%% It is killed while it loads, or soon after.
killed_loader() ->
    {Pid, Monitor} = spawn_monitor(fun() -> _ = fairnif:load_info(), timer:sleep(infinity) end),
    fairnif_test:eventually(fun() -> persistent_term:get({fairnif, runtime}, none) =/= none end),
    exit(Pid, kill),
    killed = fairnif_test:down(Monitor),
    ok.

%% As if the loader had been killed before its last step, and before it had read the environment.
half_loaded() ->
    ok = application:load(fairnif),
    _ = fairnif:load_info(),
    true = persistent_term:erase({fairnif, runtime}),
    Env = application:get_all_env(fairnif),
    [application:unset_env(fairnif, Key) || {Key, _} <- Env],
    ok = fairnif:configure(),
    true = persistent_term:erase({fairnif, runtime}),
    [application:set_env(fairnif, Key, Value) || {Key, Value} <- Env],
    ok.

many_loaders(N) ->
    {module, _} = code:ensure_loaded(fairnif_calibration),
    MFA = {fairnif_calibration, run, 0},
    1 = erlang:trace_pattern(MFA, true, [call_count]),
    Monitors = [element(2, spawn_monitor(fun() -> _ = fairnif:info() end))
                || _ <- lists:seq(1, N)],
    [normal = fairnif_test:down(Monitor) || Monitor <- Monitors],
    fairnif_test_probe:pass(dirty_cpu, 1),
    fairnif_test:eventually(
      fun() -> maps:get(measured, maps:get(calibration, fairnif:info())) end),
    _ = [fairnif:configure() || _ <- lists:seq(1, N)],
    {call_count, Count} = erlang:trace_info(MFA, call_count),
    Count.

again() ->
    _ = fairnif:load_info(),
    fairnif_test:eventually(fun() -> is_pid(whereis(fairnif_calibration)) end),
    true = code:delete(fairnif),
    _ = code:purge(fairnif),
    {module, fairnif} = code:load_file(fairnif),
    _ = fairnif:load_info(),
    ok.

reloads(N) ->
    [begin
         {module, _} = code:load_file(fairnif_test_nif),
         _ = code:purge(fairnif_test_nif),
         Delete = Delete andalso code:delete(fairnif_test_nif),
         code:purge(fairnif_test_nif)
     end || _ <- lists:seq(1, N), Delete <- [false, true]],
    erlang:system_info(atom_count).

%% As the module's on_load loads the library, but by who then calls: no call can come sooner.
early_call(Mode) ->
    {ok, {_, [{abstract_code, {_, Forms}}]}} =
        beam_lib:chunks(code:which(fairnif_test_nif), [abstract_code]),
    {ok, fairnif_test_nif, Beam} =
        compile:forms([Form || Form <- Forms, not is_on_load(Form)]),
    {module, _} = code:load_binary(fairnif_test_nif, "early", Beam),
    _ = fairnif:load_info(),
    ok = fairnif:debug(#{pause_every_tick => true}),
    Long = lists:seq(1, 100000) ++ improper,
    ok = fairnif_test_nif:init(),
    try fairnif_test_nif:run(walk, Mode, [Long]) catch error:Reason -> Reason end.

is_on_load({attribute, _, on_load, _}) -> true;
is_on_load(_) -> false.

%% -- peers -----------------------------------------------------------------------

%% Its one dirty CPU scheduler is blocked.
peer(Args) ->
    {ok, Peer, _} = fairnif_check_peer:control(
                      group_leader(),
                      #{wait_boot => 300000,
                        args => fairnif_test:erl_args()
                        ++ ["+S", "2:2", "+SDcpu", "1:1" | Args]}),
    {module, _} = fairnif_test:call(Peer, code, ensure_loaded, [fairnif_test_probe]),
    _ = fairnif_test:call(Peer, erlang, spawn, [fairnif_test_probe, block_cpu, []]),
    fairnif_test:eventually(
      fun() -> fairnif_test:call(Peer, fairnif_test_probe, waiting, [dirty_cpu]) =:= 1 end),
    Peer.

open(Peer) ->
    _ = fairnif_test:call(Peer, fairnif_test_probe, pass, [dirty_cpu, 1]),
    ok.

measures(Peer) ->
    fairnif_test:call(Peer, erlang, whereis, [fairnif_calibration]).

measured(Peer) ->
    fairnif_test:eventually(
      fun() ->
              #{calibration := #{measured := Measured}} =
                  fairnif_test:call(Peer, fairnif, info, []),
              Measured
      end),
    fairnif_test:call(Peer, fairnif, info, []).
