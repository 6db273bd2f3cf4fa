%% Bodies that wait for descriptors, and what makes descriptors: what each does and answers is said
%% in fairnif_test_wait.c.
-module(fairnif_test_wait).

-compile([export_all, nowarn_export_all]).
-compile({parse_transform, fairnif_test_stubs}).
-nifs([nif_wait/3, nif_wait_yielding/3, nif_wait_normal/3, nif_wait_dirty_cpu/3,
       nif_wait_dirty_io/3, nif_wait_threaded/3, nif_take/2, nif_take_threaded/2, term/1, number/1,
       shut/1, version/0, event/1, pair/0, add/2, put/2, drain/1, fill/1, close_fd/1]).

-on_load(init/0).

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
