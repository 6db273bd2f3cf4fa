%% Nothing is loaded while a scheduler is held: loading waits for that scheduler.
-module(fairnif_watch_load_tests).

-include_lib("eunit/include/eunit.hrl").

-export([after_a_finding/0]).

%% In a fresh VM, where nothing else has loaded anything.
a_finding_loads_no_module_test_() ->
    {timeout, 60,
     fun() ->
             Peer = fairnif_watch_test:peer([]),
             try
                 ?assertEqual([], fairnif_watch_test:call(Peer, ?MODULE, after_a_finding, []))
             after
                 fairnif_watch_test:stop(Peer)
             end
     end}.

%% @private
after_a_finding() ->
    {ok, _} = application:ensure_all_started(fairnif_watch),
    Reader = spawn(fun Read() -> receive _ -> Read() end end),
    {ok, _} = fairnif_watch:subscribe(Reader),
    timer:sleep(1500),
    Before = loaded(),
    {ok, _} = fairnif_watch:self_test(),
    _ = fairnif_watch:json(fairnif_watch:report()),
    _ = fairnif_watch:metrics(),
    timer:sleep(500),
    loaded() -- Before.

loaded() -> [Module || {Module, _} <- code:all_loaded()].
