%% The part of the zoo that is written with fairnif: well-behaved twins, and the mistakes that an
%% author can still make. See fairnif_zoo_table.
-module(fairnif_zoo_fair).

-export([work_auto/1, work_yielding/1, work_dirty/1, work_yielding_dirty/1, no_ticks/1, calls/1,
         waits/1, keeps/1, leaks/1, list/1]).
-nifs([work_auto/1, work_yielding/1, work_dirty/1, work_yielding_dirty/1, no_ticks/1, calls/1,
       waits/1, keeps/1, leaks/1, list/1]).

-include_lib("fairnif/include/fairnif.hrl").
-on_load(init/0).

-define(NIF, erlang:nif_error(not_loaded)).

init() ->
    ?FAIRNIF_LOAD(filename:join([filename:dirname(code:which(?MODULE)), "nifs", ?MODULE])).

work_auto(_) -> ?NIF.
work_yielding(_) -> ?NIF.
work_dirty(_) -> ?NIF.
work_yielding_dirty(_) -> ?NIF.
no_ticks(_) -> ?NIF.
calls(_) -> ?NIF.
waits(_) -> ?NIF.
keeps(_) -> ?NIF.
leaks(_) -> ?NIF.
list(_) -> ?NIF.
