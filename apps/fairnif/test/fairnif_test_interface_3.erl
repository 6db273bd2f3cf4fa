%% A library of interface 3.0 does what it did when it was compiled: see its C source.
-module(fairnif_test_interface_3).

-export([check/0]).
-compile({parse_transform, fairnif_test_stubs}).
-nifs([sum/1, nif_waits/1, deferred/0]).
-on_load(init/0).

init() ->
    fairnif:loaded(erlang:load_nif(fairnif_test:library(?MODULE), fairnif:load_info())).

check() ->
    Long = binary:copy(<<1, 2, 3, 254>>, 50000),
    [begin
         ok = fairnif:debug(#{pause_every_tick => Pauses}),
         Before = deferred(),
         {13000000, [Long], <<64>>} = sum(Long),
         {3, [<<1, 2>>], <<3>>} = sum(<<1, 2>>),
         badarg = try sum(atom) catch error:Reason -> Reason end,
         {"a" ++ [233], [1, 1, 1, 1, 1, 1]} =
             fairnif:await(nif_waits(list_to_atom("a" ++ [233]))),
         true = deferred() =:= Before + 3
     end || Pauses <- [false, true]],
    ok = fairnif:debug(#{pause_every_tick => false}),
    #{yields := Yields} = fairnif:info({?MODULE, sum, 1}),
    true = Yields > 0,
    ok.
