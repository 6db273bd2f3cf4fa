%% The module of fairnif_test_fine.cpp.
-module(fairnif_test_fine).

-compile([export_all, nowarn_export_all]).
-compile({parse_transform, fairnif_test_stubs}).
-nifs([add/2, boxed/1, triangle/1, unboxed/1, ok/1, turned/1, same/1]).

-include_lib("fairnif/include/fairnif.hrl").
-on_load(init/0).

init() ->
    ?FAIRNIF_LOAD(fairnif_test:library(?MODULE)).
