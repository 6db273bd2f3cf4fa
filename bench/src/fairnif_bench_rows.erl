%% The figures, as data: what runs, and what is made of its samples.
%%
%% Adding a figure means adding a row, and a run where none has its samples.
%% The bounds are those of the project's first issue; a row without one is
%% there to be read.
-module(fairnif_bench_rows).

-export([runs/0, rows/0, auto_rule/0]).

-export_type([run/0, row/0]).

%% A run happens in a node of its own and answers samples by name.
-type run() :: #{id := atom(), flags := [string()], call := mfa_args(),
                 about := string()}.
-type mfa_args() :: {module(), atom(), [term()]}.
-type row() :: #{id := binary(),
                 run := atom(),
                 what := string(), peer := string(), how := string(),
                 %% what is made of the samples:
                 %%   ratio        of each round's A and B
                 %%   speed        the same upside down: how much faster A is
                 %%   difference   A less B, ns
                 %%   value        A as it is
                 %%   p99          of all that A's distributions hold
                 value := {ratio | speed | difference, series(), series()}
                        | {value | p99, series()},
                 over => fact(),        % divided by
                 clock => wall | cpu,   % of these samples, where both are
                                        % taken; default wall
                 unit := times | ns | percent | bytes,
                 %% `within': at most that far from 1, up and down
                 bound := {at_most | at_least | within, number() | {fact(), plus, number()}}
                        | none}.
-type series() :: binary().
-type fact() :: slice_ns | dirty_slice_ns.

-spec runs() -> [run()].
runs() ->
    Calls = fairnif_bench_calls:flags(),
    Memory = fairnif_bench_memory:flags(),
    [run(noop, fairnif_bench_calls:warm_flags(), {fairnif_bench_calls, noop, []},
         "calls that do nothing"),
     run(levenshtein, Calls, {fairnif_bench_calls, levenshtein, []},
         "levenshtein of short and long strings"),
     run(levenshtein_large, Calls, {fairnif_bench_calls, large, []},
         "levenshtein of 512 MB"),
     run(exor, Calls, {fairnif_bench_calls, exor, []}, "exor of 12,000 bytes"),
     run(exor_reused, Memory, {fairnif_bench_memory, exor, [reused]},
         "exor of 512 MB, memory reused"),
     run(exor_small, Memory, {fairnif_bench_memory, exor, [small]},
         "exor of 512 MB, fresh 4 KiB pages"),
     run(exor_huge, Memory, {fairnif_bench_memory, exor, [huge]},
         "exor of 512 MB, fresh huge pages"),
     run(hold, fairnif_bench_hold:flags(), {fairnif_bench_hold, run, []},
         "how long a slice holds a scheduler"),
     run(delay, fairnif_bench_delay:flags(), {fairnif_bench_delay, sleeper, []},
         "wake-up delays"),
     run(share, fairnif_bench_share:flags(), {fairnif_bench_share, run, []},
         "a neighbour's share"),
     run(charge, fairnif_bench_charge:flags(), {fairnif_bench_charge, run, []},
         "reductions charged"),
     run(kill, fairnif_bench_kill:flags(), {fairnif_bench_kill, run, []},
         "from kill to stop"),
     run(lists, fairnif_bench_lists:flags(), {fairnif_bench_lists, run, []},
         "lists of 5,000,000 elements"),
     run(move, fairnif_bench_calls:warm_flags(), {fairnif_bench_calls, move, []},
         "moves between schedulers"),
     run(threads, fairnif_bench_threads:flags(), {fairnif_bench_threads, round_trip, []},
         "round trips to threads"),
     run(jobs, fairnif_bench_threads:flags(), {fairnif_bench_threads, delay, []},
         "a thousand jobs that wait"),
     run(process, fairnif_bench_process:flags(), {fairnif_bench_process, run, []},
         "native processes beside gen_servers"),
     run(sodium, fairnif_bench_calls:warm_flags(), {fairnif_bench_sodium, run, []},
         "libsodium by fair_call"),
     run(json, fairnif_bench_json:flags(), {fairnif_bench_json, run, []},
         "JSON of 1 kB to 50 MB"),
     run(json_hold, fairnif_bench_json:flags(), {fairnif_bench_json, hold, []},
         "how long JSON of 10 MB holds a scheduler"),
     run(json_delay, fairnif_bench_json:delay_flags(), {fairnif_bench_json, delay, []},
         "wake-up delays beside JSON"),
     run(rust, Calls, {fairnif_bench_rust, run, []},
         "Rust beside plain rustler"),
     run(rust_hold, fairnif_bench_hold:flags(), {fairnif_bench_rust, hold, []},
         "how long a slice in Rust holds a scheduler"),
     run(rust_kill, fairnif_bench_kill:flags(), {fairnif_bench_rust, kill, []},
         "from kill to stop in Rust"),
     run(watch, fairnif_bench_watch:flags(), {fairnif_bench_watch, run, []},
         "what watching a node costs")].

%% @doc The extra section: AUTO's rule for long work.
-spec auto_rule() -> run().
auto_rule() ->
    run(auto_rule, fairnif_bench_delay:flags(), {fairnif_bench_delay, auto_rule, []},
        "long work on normal and dirty schedulers").

run(Id, Flags, Call, About) ->
    #{id => Id, flags => Flags, call => Call, about => About}.

-spec rows() -> [row()].
rows() ->
    yielding() ++ small_calls() ++ exor() ++ hold() ++ delay() ++ share()
        ++ charge() ++ kill() ++ lists() ++ move() ++ threads() ++ process() ++ sodium() ++ json()
        ++ rust() ++ watch().

%% ---- run time of a yielding call ----

yielding() ->
    Bound = {at_most, 1.02},
    How = "time of a call, in one process of a node with one scheduler; CPU time of its "
          "thread, so without what the operating system gave to other programs",
    [times(levenshtein, <<"yielding 12000">>, <<"plain 12000">>,
           "NORMAL levenshtein, 12,000 bytes", Bound, How),
     times(levenshtein_large, <<"yielding">>, <<"plain">>,
           "NORMAL levenshtein, 512 MB and 1 byte", Bound, How),
     times(exor, <<"yielding 12000">>, <<"plain 12000">>,
           "NORMAL exor, 12,000 bytes", Bound, "mean of 4000 calls; " ++ How),
     times(exor_small, <<"yielding">>, <<"plain">>,
           "NORMAL exor, 512 MB, fresh 4 KiB pages", Bound, How),
     times(exor_reused, <<"yielding">>, <<"plain">>,
           "NORMAL exor, 512 MB, memory reused", Bound, How)]
        ++ [times(levenshtein, name("yielding ~b", [Size]), name("plain ~b", [Size]),
                  text("NORMAL levenshtein, ~b bytes", [Size]), none,
                  "mean of many calls; " ++ How)
            || Size <- [100, 36, 10]].

times(Run, A, B, What, Bound, How) ->
    #{id => name("~s-~s", [Run, A]), run => Run, what => What,
      peer => "the plain NIF", value => {ratio, A, B}, unit => times, clock => cpu,
      bound => Bound, how => How}.

%% ---- short calls ----

small_calls() ->
    Loop = "mean of a loop of calls in compiled Erlang code, loop included; ",
    [#{id => <<"levenshtein-auto-36">>, run => levenshtein,
       what => "AUTO levenshtein, 36 bytes", peer => "the plain NIF",
       value => {difference, <<"auto 36">>, <<"plain 36">>}, unit => ns, clock => cpu,
       bound => {at_most, 60}, how => Loop ++ "40,000 calls"},
     #{id => <<"noop-auto">>, run => noop,
       what => "AUTO call that does nothing", peer => "a plain NIF",
       value => {difference, <<"auto">>, <<"plain">>}, unit => ns, clock => cpu,
       bound => {at_most, 60}, how => Loop ++ "500,000 calls"},
     #{id => <<"noop-auto-dirty">>, run => noop,
       what => "AUTO call that does nothing", peer => "a dirty NIF (cost of it)",
       value => {speed, <<"auto">>, <<"dirty">>}, unit => times,
       bound => {at_least, 10},
       how => Loop ++ "both schedulers awake between the calls"}]
        ++ [#{id => name("noop-~s-ns", [Name]), run => noop, what => What, peer => "",
              value => {value, Name}, unit => ns, bound => none, how => Loop}
            || {Name, What} <- [{<<"plain">>, "a plain NIF that does nothing"},
                                {<<"auto">>, "an AUTO call that does nothing"},
                                {<<"dirty">>, "a dirty NIF that does nothing"}]].

%% ---- memory ----

exor() ->
    [speed(exor_reused, Name, Mode, <<"crypto">>, "crypto:exor/2", {at_least, 4})
     || {Name, Mode} <- modes()]
        ++ [speed(Run, Name, Mode, <<"memcpy">>, "memcpy", {at_least, 0.6})
            || {Run, _} <- states(), {Name, Mode} <- modes()]
        ++ [slices(Run, name("~s slices", [Name]),
                   text("one slice of ~s exor, 512 MB, ~s", [Mode, State]))
            || {Run, State} <- states(), {Name, Mode} <- modes()].

modes() ->
    [{<<"auto">>, "AUTO"}, {<<"yielding">>, "NORMAL"}].

states() ->
    [{exor_reused, "memory reused"}, {exor_small, "fresh 4 KiB pages"},
     {exor_huge, "fresh huge pages"}].

speed(Run, Name, Mode, Peer, PeerText, Bound) ->
    {_, State} = lists:keyfind(Run, 1, states()),
    #{id => name("~s-~s-~s", [Run, Name, Peer]), run => Run,
      what => text("~s exor, 512 MB, ~s", [Mode, State]), peer => PeerText,
      value => {speed, Name, Peer}, unit => times, clock => cpu, bound => Bound,
      how => "how many times as fast; output in the same memory, brought into that "
             "state before each call and proved by counting page faults"}.

%% ---- hold ----

hold() ->
    [slices(hold, Name, "one slice of " ++ What)
     || {Name, What} <-
            [{<<"levenshtein yielding">>, "NORMAL levenshtein, 12,000 bytes"},
             {<<"levenshtein auto">>, "AUTO levenshtein, 12,000 bytes"},
             {<<"spin yielding">>, "NORMAL work that ticks every 1 us"},
             {<<"spin auto">>, "AUTO work that ticks every 4.4 us"},
             {<<"probe yielding">>, "NORMAL work, seen by the body itself"},
             {<<"probe auto">>, "AUTO work, seen by the body itself"}]].

slices(Run, Series, What) ->
    #{id => name("hold-~s-~s", [Run, Series]), run => Run, what => What,
      peer => "the slice set", value => {p99, Series}, over => slice_ns,
      unit => times, bound => {at_most, 2},
      how => "p99 of all slices, CPU time of the thread (fairnif:debug/1, measure_cpu)"}.

%% ---- what others feel ----

delay() ->
    How = "p99 lateness of a 1 ms sleeper beside 4 endless calls, 2 schedulers",
    [#{id => <<"delay-idle">>, run => delay,
       what => "wake-up delay beside 4 AUTO calls", peer => "idle",
       value => {ratio, <<"auto">>, <<"idle">>}, unit => times,
       bound => {at_most, 1.2}, how => How},
     #{id => <<"delay-dirty">>, run => delay,
       what => "wake-up delay beside 4 AUTO calls", peer => "4 dirty NIFs (delay of it)",
       value => {speed, <<"auto">>, <<"dirty">>}, unit => times,
       bound => {at_least, 4}, how => How}].

share() ->
    [#{id => name("share-~s", [Mix]), run => share,
       what => text("share of a busy neighbour (~s)", [Mix]),
       peer => "the neighbour alone", value => {value, atom_to_binary(Mix)},
       unit => percent, bound => {at_least, 0.4},
       how => "rounds of work beside NORMAL levenshtein of 12,000 bytes, one scheduler"}
     || Mix <- fairnif_bench_share:mixes()].

charge() ->
    [#{id => name("charge-~s-~s-~b", [Mode, Kind, Us]), run => charge,
       what => text("reductions per ms, ~s calls of ~b us, ~s",
                    [mode(Mode), Us, Kind]),
       peer => "one call of 30 ms", unit => times, bound => {within, 0.2},
       value => {ratio, name("~s ~s ~b", [Mode, Kind, Us]),
                 name("~s ticking long", [Mode])},
       how => "reductions of the caller by CPU time of its thread, loop included"}
     || {Mode, Kind, Us} <- fairnif_bench_charge:cases()].

%% As fairnif.h has it; the ids of rows stay.
mode(auto) -> "AUTO";
mode(yielding) -> "NORMAL";
mode(yielding_dirty) -> "DIRTY_CPU";
mode(dirty_cpu) -> "DIRTY_CPU, NO_YIELD";
mode(dirty_io) -> "DIRTY_IO, NO_YIELD".

kill() ->
    [#{id => name("kill-~s", [Mode]), run => kill,
       what => text("kill to stop, ~s", [mode(Mode)]),
       peer => "a slice and 0.2 ms", value => {p99, atom_to_binary(Mode)}, unit => ns,
       bound => {at_most, {Slice, plus, 200000}},
       how => "p99 of 1,100 kills at any moment of a slice, killer on another scheduler"}
     || {Mode, Slice} <- fairnif_bench_kill:modes()].

%% Room for a list is made before it is written, by the fair forms: what they
%% spend on collections is shown apart.
lists() ->
    How = "5,000,000 elements, each call in a process of its own with the least heap, whose "
          "collections are part of it; CPU time of the whole node with one scheduler",
    [#{id => name("lists-~s-~s", [Call, Form]), run => lists,
       what => text("~s, 5,000,000 elements", [What]), peer => Peer, how => How,
       value => {ratio, name("~s fair", [Call]), name("~s ~s", [Call, Form])},
       unit => times, clock => cpu, bound => Bound}
     || {Call, What, Erlang, Aim} <- list_calls(),
        {Form, Peer, Bound} <- [{"plain", "the plain NIF", Aim}, {"erlang", Erlang, none}]]
        ++ [#{id => name("lists-~s-~s-gc", [Call, Form]), run => lists,
              what => text("collections in it, ~s", [Text]), peer => What,
              how => "wall time between the begin and the end of each, from trace events",
              value => {value, name("~s ~s gc", [Call, Form])}, unit => ns, bound => none}
            || {Call, What, _, _} <- list_calls(),
               {Form, Text} <- [{"fair", "fair"}, {"plain", "plain NIF"}, {"erlang", "Erlang"}]].

list_calls() ->
    [{"sum", "sum/1", "lists:sum/1", {at_most, 1.1}},
     {"range", "range/2", "lists:seq/2", {at_most, 1.5}},
     {"sort", "sort/1 of integers", "lists:sort/1", none},
     {"to_map", "to_map/1", "maps:from_list/1", none}].

move() ->
    How = "mean of 5000; both schedulers awake between them",
    [#{id => <<"move">>, run => move, what => "fair_move to dirty and back",
       peer => "a dirty call", value => {ratio, <<"move">>, <<"dirty call">>},
       unit => times, bound => {at_most, 1.5}, how => How},
     #{id => <<"move-call">>, run => move,
       what => "AUTO call that moves to dirty and back", peer => "a dirty call",
       value => {ratio, <<"call that moves">>, <<"dirty call">>}, unit => times,
       bound => none, how => How}].

%% ---- threads ----

threads() ->
    [#{id => <<"threaded">>, run => threads, what => "THREADED call that does nothing",
       peer => "a thread created, joined, answered per call",
       value => {speed, <<"threaded">>, <<"thread per call">>}, unit => times,
       bound => {at_least, 3},
       how => "mean of 2000 calls, one after the other, of one process"},
     #{id => <<"threaded-ns">>, run => threads, what => "a THREADED call that does nothing",
       peer => "", value => {value, <<"threaded">>}, unit => ns, bound => none,
       how => "the same"},
     #{id => <<"jobs-delay">>, run => jobs,
       what => "wake-up delay beside 1,000 jobs that wait 100 ms", peer => "idle",
       value => {ratio, <<"offloaded">>, <<"idle">>}, unit => times, bound => {at_most, 2},
       how => "p99 lateness of a 1 ms sleeper beside 1,000 callers of fair_call on threads, "
              "2 schedulers"}].

%% ---- native processes ----

process() ->
    process_calls() ++ process_share() ++ process_memory().

%% Beside a gen_server in Erlang it has an aim with one client, who waits for each answer.
process_calls() ->
    How = "examples/counter_server in C and in Erlang; mean of many in a round, which end with an "
          "answer; CPU time of the only scheduler's thread, so with what the clients take",
    [#{id => name("process-~s-~s", [id(Load), id(Peer)]), run => process,
       what => "native process, " ++ What, peer => Text, unit => times, clock => cpu, how => How,
       value => {ratio, name("native ~s", [Load]), name("~s ~s", [Peer, Load])},
       bound => process_bound(Load, Peer)}
     || {Load, What} <- process_loads(),
        {Peer, Text} <- [{"erlang", "the same gen_server"}, {"nif", "one with a NIF call each"}]]
        ++ [#{id => name("process-~s-~s-ns", [id(Load), id(Form)]), run => process,
              what => text("~s, ~s", [Text, What]), peer => "", unit => ns, bound => none,
              value => {value, name("~s ~s cpu", [Form, Load])}, how => How}
            || {Load, What} <- process_loads(),
               {Form, Text} <- [{"native", "native process"}, {"erlang", "gen_server"},
                                {"nif", "gen_server with NIF calls"}]].

process_loads() ->
    [{name("calls ~b", [N]), text("calls of ~b at once", [N])} || N <- [1, 10, 1000]]
        ++ [{<<"casts">>, "casts"}].

process_bound(<<"calls 1">>, "erlang") -> {at_most, 1.5};
process_bound(_, _) -> none.

process_share() ->
    How = "rounds of work beside 10 clients that send 100 casts and a call again and again, one "
          "scheduler for all",
    [Row || Mix <- fairnif_bench_process:mixes(),
            Row <- [#{id => name("process-share-~s", [Mix]), run => process,
                      what => text("share of a busy neighbour (~s), native process", [Mix]),
                      peer => "the same gen_server", unit => times, bound => none, how => How,
                      value => {ratio, name("native share ~s", [Mix]),
                                name("erlang share ~s", [Mix])}}
                    | [#{id => name("process-share-~s-~s", [Mix, Form]), run => process,
                         what => text("share of a busy neighbour (~s), ~s", [Mix, Text]),
                         peer => "the neighbour alone", unit => percent, bound => none,
                         how => How, value => {value, name("~s share ~s", [Form, Mix])}}
                       || {Form, Text} <- [{"native", "native process"},
                                           {"erlang", "gen_server"}]]]].

process_memory() ->
    [#{id => name("process-memory-~s-~s", [State, Form]), run => process,
       what => text("memory of one ~s ~s", [Says, Text]), peer => "", unit => bytes,
       value => {value, name("~s ~s", [Form, State])}, bound => none,
       how => "what is resident of the node, by how much it grows with 2,000 of them; without "
              "page tables"}
     || {State, Says} <- [{"idle", "idle"}, {"hibernated", "hibernated"}],
        {Form, Text} <- [{"native", "native process"}, {"erlang", "gen_server"}]].

id(Series) -> string:replace(Series, " ", "-", all).

%% ---- libsodium ----

%% Up to 256 bytes all but a box take under a microsecond: there it is the
%% nanoseconds that count.
sodium() ->
    [(sodium_value(F, S, name("fair ~s ~b", [F, S]), name("better ~s ~b", [F, S])))
         #{id => name("sodium-~s-~b", [F, S]), run => sodium,
           what => text("~s, ~b bytes, by fair_call", [F, S]),
           peer => "the better of plain and dirty",
           how => "mean of a batch of 2 ms; both schedulers awake between the calls"}
     || F <- fairnif_bench_sodium:functions(), S <- fairnif_bench_sodium:sizes()].

sodium_value(F, S, A, B) when F =/= crypto_box, S =< 256 ->
    #{value => {difference, A, B}, unit => ns, bound => {at_most, 100}};
sodium_value(_, _, A, B) ->
    #{value => {ratio, A, B}, unit => times, bound => {at_most, 1.1}}.

%% ---- JSON ----

%% Only beside what is installed.  One that is a few kB is asked for less.
json() ->
    json_rates() ++ json_hold() ++ json_delay().

json_rates() ->
    [#{id => name("json-~s-~s-~s-~b", [Direction, Peer, Kind, Size]), run => json,
       what => text("~s of ~b kB of JSON (~s)", [Direction, Size div 1000, Kind]),
       peer => atom_to_list(Peer), unit => times, clock => cpu,
       value => {speed, name("fair ~s ~s ~b", [Direction, Kind, Size]),
                 name("~s ~s ~s ~b", [Peer, Direction, Kind, Size])},
       bound => json_bound(Direction, Peer, Size),
       how => "how many times as fast; calls for 3 MB of JSON in a process of their own with the "
              "least heap, whose collections are part of it; CPU time of the whole node with one "
              "scheduler"}
     || Direction <- fairnif_bench_json:directions(), Peer <- fairnif_bench_json:peers(),
        Kind <- fairnif_bench_documents:kinds(), Size <- fairnif_bench_json:sizes()].

json_bound(decode, jiffy, Size) when Size >= 10000 -> {at_least, 2};
json_bound(_, _, _) -> none.

json_hold() ->
    [Row || Direction <- fairnif_bench_json:directions(), Kind <- fairnif_bench_documents:kinds(),
            What <- [text("~s of 10 MB of JSON (~s)", [Direction, Kind])],
            Row <- [slices(json_hold, name("~s ~s", [Direction, Kind]), "one slice of " ++ What),
                    #{id => name("hold-json_hold-~s-~s-longest", [Direction, Kind]),
                      run => json_hold, what => "the longest slice of " ++ What,
                      peer => "the slice set", unit => times, bound => none,
                      value => {value, name("~s ~s longest", [Direction, Kind])},
                      how => "CPU time of the thread, of one call"}]].

json_delay() ->
    [#{id => name("json-delay-~s", [Form]), run => json_delay,
       what => text("wake-up delay beside 4 processes that decode, ~s", [Form]), peer => "idle",
       value => {ratio, atom_to_binary(Form), <<"idle">>}, unit => times, bound => Bound,
       how => "p99 lateness of a 1 ms sleeper beside endless decoding of documents of 1 MB, "
              "2 schedulers"}
     || {Form, Bound} <- [{fair, {at_most, 1.2}}, {erlang, none}
                          | [{Peer, none} || Peer <- fairnif_bench_json:peers()]]].

%% ---- Rust ----

%% Without Rust there is nothing to compare.
rust() ->
    case fairnif_bench_rust:is_here() of
        true -> rust_calls() ++ rust_hold() ++ rust_kill();
        false -> []
    end.

rust_calls() ->
    How = "in one process of a node with one scheduler; CPU time of its thread",
    [#{id => name("rust-levenshtein-~b", [Size]), run => rust,
       what => text("levenshtein in Rust, ~b bytes", [Size]), peer => "a plain rustler NIF",
       value => {ratio, name("fair ~b", [Size]), name("plain ~b", [Size])}, unit => times,
       clock => cpu, bound => Bound, how => "time of a call, " ++ How}
     || {Size, Bound} <- [{12000, {at_most, 1.03}}, {100, none}]]
        ++ [#{id => <<"rust-noop">>, run => rust, what => "AUTO call in Rust that does nothing",
              peer => "a plain rustler NIF", value => {difference, <<"fair 0">>, <<"plain 0">>},
              unit => ns, clock => cpu, bound => {at_most, 150},
              how => "mean of 200,000 calls, " ++ How}].

rust_hold() ->
    [slices(rust_hold, <<"levenshtein">>, "one slice of levenshtein in Rust, 12,000 bytes")].

rust_kill() ->
    [#{id => name("rust-kill-~s", [Mode]), run => rust_kill,
       what => text("kill to drop in Rust, ~s", [string:uppercase(atom_to_list(Mode))]),
       peer => "a slice and 0.2 ms", value => {p99, atom_to_binary(Mode)}, unit => ns,
       bound => {at_most, {Slice, plus, 200000}},
       how => "p99 of 1,100 kills at any moment of a slice, killer on another scheduler"}
     || {Mode, Slice} <- fairnif_bench_rust:modes()].

%% ---- watch ----

%% 0.5 % of one processor is 5 ms of a second.
watch() ->
    Own = "CPU time of the watch thread, and what its processes ran by trace events, in a second; ",
    [#{id => <<"watch-idle">>, run => watch, what => "a second of watching an idle node",
       peer => "the node alone", value => {difference, <<"idle">>, <<"idle alone">>}, unit => ns,
       bound => {at_most, 5000000}, how => "CPU time of all threads of the node, 2 schedulers"},
     #{id => <<"watch-busy">>, run => watch, what => "a second of watching a busy node",
       peer => "", value => {value, <<"busy own">>}, unit => ns, bound => {at_most, 5000000},
       how => Own ++ "2 schedulers busy with Erlang work"},
     #{id => <<"watch-busy-work">>, run => watch, what => "Erlang work of a busy node, watched",
       peer => "not watched", value => {ratio, <<"busy work">>, <<"busy alone work">>},
       unit => times, bound => none, how => "rounds of work, 2 schedulers"},
     #{id => <<"watch-holds">>, run => watch,
       what => "a second of watching a node that is held all the time", peer => "",
       value => {value, <<"holds own">>}, unit => ns, bound => none,
       how => Own ++ "NIFs of 1.2 ms, threshold 1 ms, in turn with Erlang work"},
     #{id => <<"watch-holds-work">>, run => watch,
       what => "Erlang work of a node that is held all the time, watched", peer => "not watched",
       value => {ratio, <<"holds work">>, <<"holds alone work">>}, unit => times, bound => none,
       how => "rounds of work in turn with NIFs of 1.2 ms, threshold 1 ms, 2 schedulers"}].

name(Format, Args) -> iolist_to_binary(text(Format, Args)).

text(Format, Args) -> lists:flatten(io_lib:format(Format, Args)).
