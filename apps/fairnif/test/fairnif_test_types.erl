%% The module of fairnif_test_types.cpp, where each function is explained.
-module(fairnif_test_types).

-compile([export_all, nowarn_export_all]).
-compile({parse_transform, fairnif_test_stubs}).
-nifs([make_a/0, make_b/0, make_tended/0, number/1, tended_number/1, text/1, monitored/1]).

-on_load(init/0).

%% The next load's library and load_info are what persistent_term has.
init() ->
    {Library, Info} = persistent_term:get(?MODULE, {?MODULE, undefined}),
    fairnif:loaded(erlang:load_nif(fairnif_test:library(Library), fairnif:load_info(Info))).
