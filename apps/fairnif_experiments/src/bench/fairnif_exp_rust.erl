%% The functions in Rust that are compared; what each does, says rust/tests/bench.
-module(fairnif_exp_rust).

-export([is_here/0, levenshtein/2, plain_levenshtein/2, noop/1, plain_noop/1]).
-export([slot/1, clear_slot/1, auto_forever/1, dirty_cpu_forever/1]).

-include_lib("fairnif/include/fairnif.hrl").
-on_load(init/0).

-define(NIF, erlang:nif_error(not_loaded)).

%% Where there is no Rust for it the module is there and the library is not.
init() ->
    case is_here() of
        true -> ?FAIRNIF_LOAD;
        false -> ok
    end.

%% @doc Whether it was built.
-spec is_here() -> boolean().
is_here() ->
    filelib:is_regular(fairnif:path(?MODULE) ++ ".so").

-spec levenshtein(binary(), binary()) -> non_neg_integer().
levenshtein(_A, _B) -> ?NIF.
-spec plain_levenshtein(binary(), binary()) -> non_neg_integer().
plain_levenshtein(_A, _B) -> ?NIF.
-spec noop(integer()) -> integer().
noop(_Number) -> ?NIF.
-spec plain_noop(integer()) -> integer().
plain_noop(_Number) -> ?NIF.

%% As fairnif_exp_nif's; there is one slot, 0.
-spec slot(0) -> {non_neg_integer(), non_neg_integer(), non_neg_integer()}.
slot(_Slot) -> ?NIF.
-spec clear_slot(0) -> ok.
clear_slot(_Slot) -> ?NIF.
-spec auto_forever(0) -> no_return().
auto_forever(_Slot) -> ?NIF.
-spec dirty_cpu_forever(0) -> no_return().
dirty_cpu_forever(_Slot) -> ?NIF.
