%% exor of 512 MB, where memory is what counts: beside the plain NIF, crypto and memcpy, into
%% memory in three states.
%%
%% The node keeps what it has mapped (a super carrier), so that a result lies where the one before
%% it lay, and its pages can be brought into a state before each call:
%%   reused  4 KiB pages that are there;
%%   small   none there: the kernel brings fresh pages of 4 KiB;
%%   huge    none there: the kernel brings fresh pages of 2 MiB.
%% The number of page faults in each call is recorded and proves it.
-module(fairnif_exp_bench_memory).
-behaviour(fairnif_exp_bench).

-export([runs/0]).

-import(fairnif_exp_series, [name/2]).

-define(NIF, fairnif_exp_nif).
-define(SIZE, (512 * 1024 * 1024)).
-define(ROUNDS, 11).

%% @doc The runs.
-spec runs() -> [fairnif_exp_bench:run()].
runs() ->
    [run(exor_reused, reused, "memory reused"), run(exor_small, small, "fresh 4 KiB pages"),
     run(exor_huge, huge, "fresh huge pages")].

run(Id, State, Text) ->
    Modes = [{<<"auto">>, "AUTO"}, {<<"yielding">>, "NORMAL"}],
    #{id => Id, flags => ["+MMscs", "3600" | fairnif_exp_series:flags(one)],
      about => "exor of 512 MB, " ++ Text, needs => [{bitwise, "bitwise"}],
      samples => fun() -> exor(State) end,
      all => #{unit => times, clock => cpu,
               how => "how many times as fast; output in the same memory, brought into that state "
                      "before each call and proved by counting page faults"},
      rows =>
          [#{id => name("~s-yielding", [Id]), what => name("NORMAL exor, 512 MB, ~s", [Text]),
             peer => "the plain NIF", value => {ratio, <<"yielding">>, <<"plain">>},
             bound => {at_most, 1.02},
             how => "time of a call, in one process of a node with one scheduler; CPU time of its "
                    "thread, so without what the operating system gave to other programs"}
           || State =/= huge]
          ++ [#{id => name("~s-~s-~s", [Id, Name, Peer]), peer => PeerText, bound => Bound,
                what => name("~s exor, 512 MB, ~s", [Mode, Text]), value => {speed, Name, Peer}}
              || {Peer, PeerText, Bound} <- [{<<"crypto">>, "crypto:exor/2", {at_least, 4}}
                                             || State =:= reused]
                     ++ [{<<"memcpy">>, "memcpy", {at_least, 0.6}}],
                 {Name, Mode} <- Modes]
          ++ [(fairnif_exp_bench_slices:row(Id, name("~s slices", [Name]),
                                            name("one slice of ~s exor, 512 MB, ~s", [Mode, Text])))
                  #{clock => wall} || {Name, Mode} <- Modes]}.

%% Slices are measured in calls of their own: that costs a microsecond a slice.
exor(State) ->
    ok = code:ensure_modules_loaded([bitwise, ?NIF]),
    %% Everything that will ever be allocated has pages.
    _ = [?NIF:prepare(2600 * 1024 * 1024, reused) || State =:= reused],
    Bin = binary:copy(<<"a">>, ?SIZE),
    Other = [binary:copy(<<170>>, ?SIZE) || State =:= reused],
    Samples = fairnif_exp_series:interleave(
                ?ROUNDS,
                [timed(State, Name, fun() -> bitwise:F(Bin, 170) end)
                 || {Name, F} <- [{<<"plain">>, exor_bad}, {<<"yielding">>, exor_yield},
                                  {<<"auto">>, exor}]]
                ++ [timed(State, <<"memcpy">>, fun() -> ?NIF:copy(Bin) end)]
                ++ [timed(State, <<"crypto">>, fun() -> crypto:exor(Bin, O) end) || O <- Other]
                ++ [slices(State, Name, F, Bin)
                    || {Name, F} <- [{<<"yielding slices">>, exor_yield},
                                     {<<"auto slices">>, exor}]]),
    {Samples, maps:with([slice_ns], fairnif:info())}.

timed(State, Name, Fun) ->
    Timed = fairnif_exp_series:timed(Name, 1, fun(1) -> Fun() end),
    fun() ->
            prepare(State),
            Faults = ?NIF:faults(),
            Samples = Timed(),
            [{<<Name/binary, " faults">>, ?NIF:faults() - Faults} | Samples]
    end.

slices(State, Name, Function, Bin) ->
    fun() ->
            prepare(State),
            Slices = fairnif_exp_series:slices({bitwise, Function, 2},
                                               fun() -> bitwise:Function(Bin, 170) end),
            erlang:garbage_collect(),
            [{Name, Slices}]
    end.

prepare(State) ->
    erlang:garbage_collect(),
    _ = ?NIF:prepare(?SIZE, State),
    ok.
