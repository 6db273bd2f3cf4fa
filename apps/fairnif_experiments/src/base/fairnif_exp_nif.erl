%% NIFs with manners that the experiments need and no example has:
%% c_src/fairnif_exp_nif.c.  Called in peer nodes only.
-module(fairnif_exp_nif).

-export([consume/1, sliced/2]).
-nifs([consume/1, sliced/2]).

-on_load(init/0).

init() ->
    erlang:load_nif(filename:join(code:priv_dir(fairnif_experiments), "fairnif_exp_nif"), 0).

%% @doc Says that Percent (1 to 100) of a time slice was used, by
%% enif_consume_timeslice, and does nothing else.  Whether the VM answered that
%% the slice is used up.  Anything else is `badarg'.
-spec consume(1..100) -> boolean().
consume(_Percent) -> erlang:nif_error(not_loaded).

%% @doc Sliced by hand: Slices times SliceUs microseconds of spinning, by the
%% wall clock, each charged as a full time slice whatever its length, which is
%% the documented way and the dearest.  `badarg' above a second a slice or 10^9
%% slices.
-spec sliced(SliceUs :: 1..1000000, Slices :: 1..1000000000) -> ok.
sliced(_SliceUs, _Slices) -> erlang:nif_error(not_loaded).
