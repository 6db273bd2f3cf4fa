%% The module of fairnif_test_fine.cpp.
-module(fairnif_test_fine).

-compile([export_all, nowarn_export_all]).

-on_load(init/0).

-define(NIF, erlang:nif_error(not_loaded)).

init() ->
    fairnif:loaded(erlang:load_nif(fairnif_test:library(?MODULE), fairnif:load_info())).

add(_, _) -> ?NIF.
boxed(_) -> ?NIF.
triangle(_) -> ?NIF.
unboxed(_) -> ?NIF.
ok(_) -> ?NIF.
turned(_) -> ?NIF.
same(_) -> ?NIF.
