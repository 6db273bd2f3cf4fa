%% An echo as plain NIFs: c_src/echo_nif.c.
-module(echo_nif).

-export([nif/1, rescheduled/1, dirty_cpu/1, dirty_io/1]).
-nifs([nif/1, rescheduled/1, dirty_cpu/1, dirty_io/1]).

-on_load(init/0).

init() ->
    erlang:load_nif(fairnif:path(?MODULE), 0).

%% @doc The binary itself, by a NIF. `badarg' for anything else, as all of these.
-spec nif(binary()) -> binary().
nif(_Bin) -> erlang:nif_error(not_loaded).

%% @doc The same by a NIF that has the VM call it a second time (enif_schedule_nif).
-spec rescheduled(binary()) -> binary().
rescheduled(_Bin) -> erlang:nif_error(not_loaded).

%% @doc The same on a dirty CPU scheduler.
-spec dirty_cpu(binary()) -> binary().
dirty_cpu(_Bin) -> erlang:nif_error(not_loaded).

%% @doc The same on a dirty I/O scheduler.
-spec dirty_io(binary()) -> binary().
dirty_io(_Bin) -> erlang:nif_error(not_loaded).
