%% @doc Counts the bytes of a binary that have a given value.
-module(my_nif).

-export([count/2]).

-nifs([{{nif}}/2]).
-include_lib("fairnif/include/fairnif.hrl").
-on_load(init/0).

init() -> ?FAIRNIF_LOAD.

%% @doc How often `Byte' occurs in `Binary'. Anything but a binary and a byte is `badarg'.
-spec count(binary(), byte()) -> non_neg_integer().
{{count}}
