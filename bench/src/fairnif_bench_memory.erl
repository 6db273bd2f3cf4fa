%% exor of 512 MB, where memory is what counts: beside the plain NIF, crypto and
%% memcpy, into memory in three states.
%%
%% The node keeps what it has mapped (a super carrier), so that a result lies
%% where the one before it lay, and its pages can be brought into a state
%% before each call:
%%   reused  4 KiB pages that are there;
%%   small   none there: the kernel brings fresh pages of 4 KiB;
%%   huge    none there: the kernel brings fresh pages of 2 MiB.
%% The number of page faults in each call is recorded and proves it.
-module(fairnif_bench_memory).

-export([flags/0, exor/1]).

-define(SIZE, (512 * 1024 * 1024)).
-define(ROUNDS, 11).

-spec flags() -> [string()].
flags() -> ["+MMscs", "3600" | fairnif_bench_calls:flags()].

%% @doc In one state.  Slices are measured in calls of their own: that costs a
%% microsecond a slice.
-spec exor(reused | small | huge) -> {fairnif_bench_series:samples(), map()}.
exor(State) ->
    ok = code:ensure_modules_loaded([bitwise, fairnif_bench_nif]),
    case State of
        %% Everything that will ever be allocated has pages.
        reused -> fairnif_bench_nif:prepare(2600 * 1024 * 1024, reused);
        _ -> ok
    end,
    Bin = binary:copy(<<"a">>, ?SIZE),
    Other = case State of
                reused -> binary:copy(<<170>>, ?SIZE);
                _ -> <<>>
            end,
    Samples = fairnif_bench_series:interleave(
                ?ROUNDS,
                [fun() -> timed(State, Name, Fun) end
                 || {Name, Fun} <- contestants(State, Bin, Other)]
                ++ [fun() -> slices(State, Name, Function, Bin) end
                    || {Name, Function} <- [{<<"yielding">>, exor_yield},
                                            {<<"auto">>, exor}]]),
    {Samples, maps:with([slice_ns], fairnif:info())}.

contestants(State, Bin, Other) ->
    [{<<"plain">>, fun() -> bitwise:exor_bad(Bin, 170) end},
     {<<"yielding">>, fun() -> bitwise:exor_yield(Bin, 170) end},
     {<<"auto">>, fun() -> bitwise:exor(Bin, 170) end},
     {<<"memcpy">>, fun() -> fairnif_bench_nif:copy(Bin) end}
     | [{<<"crypto">>, fun() -> crypto:exor(Bin, Other) end} || State =:= reused]].

timed(State, Name, Fun) ->
    erlang:garbage_collect(),
    _ = fairnif_bench_nif:prepare(?SIZE, State),
    Faults = fairnif_bench_nif:faults(),
    Samples = fairnif_bench_series:timed(Name, Fun),
    [{<<Name/binary, " faults">>, fairnif_bench_nif:faults() - Faults} | Samples].

slices(State, Name, Function, Bin) ->
    erlang:garbage_collect(),
    _ = fairnif_bench_nif:prepare(?SIZE, State),
    Slices = fairnif_bench_hold:slices({bitwise, Function, 2},
                                       fun() -> bitwise:Function(Bin, 170) end),
    erlang:garbage_collect(),
    [{<<Name/binary, " slices">>, Slices}].
