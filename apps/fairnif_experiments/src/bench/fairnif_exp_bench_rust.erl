%% Rust: fair bodies beside plain rustler functions of the same library.
-module(fairnif_exp_bench_rust).
-behaviour(fairnif_exp_bench).

-export([runs/0]).

-import(fairnif_exp_series, [name/2, random_bytes/2]).

-define(RUST, fairnif_exp_rust).
-define(ROUNDS, 21).
-define(FEW_ROUNDS, 11).

%% @doc The runs; none where there is no Rust for them (`make bench' builds them).
-spec runs() -> [fairnif_exp_bench:run()].
runs() ->
    [Run || ?RUST:is_here(), Run <- [calls(), block(), kill()]].

calls() ->
    How = "in one process of a node with one scheduler; CPU time of its thread",
    #{id => rust, flags => one, about => "Rust beside plain rustler",
      samples => fun() ->
                         fairnif_exp_series:merged(
                           [series(Size, Calls, F)
                            || {Size, Calls, F} <- [{12000, 1, levenshtein},
                                                    {100, 5000, levenshtein}, {0, 200000, noop}]])
                 end,
      all => #{peer => "a plain rustler NIF", clock => cpu},
      rows => [#{id => name("rust-levenshtein-~b", [Size]), unit => times, bound => Bound,
                 what => name("levenshtein in Rust, ~b bytes", [Size]),
                 how => "time of a call, " ++ How,
                 value => {ratio, name("fair ~b", [Size]), name("plain ~b", [Size])}}
               || {Size, Bound} <- [{12000, {at_most, 1.03}}, {100, none}]]
          ++ [#{id => <<"rust-noop">>, what => "AUTO call in Rust that does nothing", unit => ns,
                value => {difference, <<"fair 0">>, <<"plain 0">>}, bound => {at_most, 150},
                how => "mean of 200,000 calls, " ++ How}]}.

series(Size, Calls, Fair) ->
    Plain = list_to_existing_atom("plain_" ++ atom_to_list(Fair)),
    Args = case Size of
               0 -> [1];
               _ -> [random_bytes(Size, 1), random_bytes(Size, 2)]
           end,
    fairnif_exp_series:alone(?ROUNDS, [{name("~s ~b", [Name, Size]), Calls, {?RUST, F, Args}}
                                       || {Name, F} <- [{"fair", Fair}, {"plain", Plain}]]).

block() ->
    #{id => rust_block, flags => one, about => "how long a slice in Rust blocks a scheduler",
      samples => fun() ->
                         {A, B} = {binary:copy(<<"a">>, 12000), binary:copy(<<"b">>, 12000)},
                         Slices = fun() ->
                                          [{<<"levenshtein">>,
                                            fairnif_exp_series:slices(
                                              {?RUST, levenshtein, 2},
                                              fun() -> ?RUST:levenshtein(A, B) end)}]
                                  end,
                         {fairnif_exp_series:interleave(?FEW_ROUNDS, [Slices]),
                          maps:with([slice_ns], fairnif:info())}
                 end,
      rows => [fairnif_exp_bench_slices:row(rust_block, <<"levenshtein">>,
                                            "one slice of levenshtein in Rust, 12,000 bytes")]}.

%% From a kill to the moment at which what the body owns is dropped.
kill() ->
    Modes = [{auto, slice_ns}, {dirty_cpu, dirty_slice_ns}],
    #{id => rust_kill, flags => two, about => "from kill to stop in Rust",
      samples => fun() -> fairnif_exp_bench_slices:kills(?RUST, Modes) end,
      rows => fairnif_exp_bench_slices:kill_rows(
                "rust-kill-~s", [{Mode, Slice, "kill to drop in Rust, "
                                  ++ string:uppercase(atom_to_list(Mode))}
                                 || {Mode, Slice} <- Modes])}.
