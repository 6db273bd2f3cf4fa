%% Bodies that wait for descriptors, and what makes descriptors: what each does and answers is said
%% in fairnif_test_wait.c.
-module(fairnif_test_wait).

-compile([export_all, nowarn_export_all]).

-on_load(init/0).

-define(NIF, erlang:nif_error(not_loaded)).

%% The second version is loaded where the node says so.
init() ->
    Library = application:get_env(fairnif_test, wait_library, ?MODULE),
    fairnif:loaded(erlang:load_nif(fairnif_test:library(Library), fairnif:load_info())).

modes() ->
    [wait, wait_yielding, wait_normal, wait_dirty_cpu, wait_dirty_io, wait_threaded].

wait(Fd, Events, Ms) -> fairnif:await(nif_wait(Fd, Events, Ms)).
wait_yielding(Fd, Events, Ms) -> fairnif:await(nif_wait_yielding(Fd, Events, Ms)).
wait_normal(Fd, Events, Ms) -> fairnif:await(nif_wait_normal(Fd, Events, Ms)).
wait_dirty_cpu(Fd, Events, Ms) -> fairnif:await(nif_wait_dirty_cpu(Fd, Events, Ms)).
wait_dirty_io(Fd, Events, Ms) -> fairnif:await(nif_wait_dirty_io(Fd, Events, Ms)).
wait_threaded(Fd, Events, Ms) -> fairnif:await(nif_wait_threaded(Fd, Events, Ms)).
take(Fd, N) -> fairnif:await(nif_take(Fd, N)).
take_threaded(Fd, N) -> fairnif:await(nif_take_threaded(Fd, N)).
sleeps(N, Ms) -> fairnif:await(nif_sleeps(N, Ms)).
sleeps_threaded(N, Ms) -> fairnif:await(nif_sleeps_threaded(N, Ms)).
waits_in_turn(A, B, Term) -> fairnif:await(nif_waits_in_turn(A, B, Term)).
waits_in_turn_threaded(A, B, Term) -> fairnif:await(nif_waits_in_turn_threaded(A, B, Term)).

nif_wait(_Fd, _Events, _Ms) -> ?NIF.
nif_wait_yielding(_Fd, _Events, _Ms) -> ?NIF.
nif_wait_normal(_Fd, _Events, _Ms) -> ?NIF.
nif_wait_dirty_cpu(_Fd, _Events, _Ms) -> ?NIF.
nif_wait_dirty_io(_Fd, _Events, _Ms) -> ?NIF.
nif_wait_threaded(_Fd, _Events, _Ms) -> ?NIF.
nif_take(_Fd, _N) -> ?NIF.
nif_take_threaded(_Fd, _N) -> ?NIF.
nif_sleeps(_N, _Ms) -> ?NIF.
nif_sleeps_threaded(_N, _Ms) -> ?NIF.
nif_waits_in_turn(_A, _B, _Term) -> ?NIF.
nif_waits_in_turn_threaded(_A, _B, _Term) -> ?NIF.
term(_Fd) -> ?NIF.
number(_Term) -> ?NIF.
shut(_Term) -> ?NIF.
shut_used(_Term) -> ?NIF.
version() -> ?NIF.
event(_Value) -> ?NIF.
pair() -> ?NIF.
add(_Fd, _Value) -> ?NIF.
put(_Fd, _Bytes) -> ?NIF.
drain(_Fd) -> ?NIF.
fill(_Fd) -> ?NIF.
close_fd(_Fd) -> ?NIF.
