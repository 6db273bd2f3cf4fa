%% What lives in the zoo, and what the checker must say about it: data, and nothing else.
%%
%% A row is good in every property unless it says otherwise, so that the bad ones prove the alarms
%% and all of them together prove that there is no false one. `{any, Why}' stands where both
%% verdicts are right, and says why.
%%
%% Times keep well away from the limits: a kill comes at any moment of a call, so a call that is to
%% be found unkillable takes ten times as long as the limit, not twice.
-module(fairnif_zoo_table).

-export([rows/0, properties/0]).

-export_type([row/0, property/0, status/0, expected/0]).

-type property() :: crash | block | first_call | undercharge | unfair | latency | destructor
    | unkillable
                    | leak.
-type status() :: pass | warn | fail.
-type expected() :: #{property() => status() | {any, Why :: string()}}.
-type row() :: #{name := atom(), expression := string(),
                 sizes := [pos_integer()],  % N: microseconds, mostly
                 init := string() | undefined,
                 options := map(),          % more for fairnif_check_run:run/2
                 is := string(),            % what it is, in a sentence
                 expected := expected()}.   % of every property

%% It never came back: nothing else is known of it.
-define(ENDED, {any, "it did not return, so there is nothing to measure"}).
-define(CORES, {any, "another thread works beside the schedulers: whether they are late is up to "
                     "the operating system and to the cores that it has to spare"}).

-define(COLLECTED, {any, "what calls in a row leave behind is collected at some time, or not"}).
-define(FEW_MS, {any, "one slice is 5 ms, and two in a row are the 10 ms that are the limit"}).

%% @doc All properties of a verdict, in the order of reports.
-spec properties() -> [property()].
properties() ->
    [crash, block, first_call, undercharge, unfair, latency, destructor, unkillable, leak].

%% @doc The rows, in the order of the C files.
-spec rows() -> [row()].
rows() ->
    [row(Name, Expression, Sizes, Is, Expected)
     || {Name, Expression, Sizes, Is, Expected} <-
            on_the_scheduler() ++ in_slices() ++ with_memory() ++ dirty() ++ waiting()
            ++ with_fairnif() ++ not_returning()].

row(Name, {Expression, Init}, Sizes, Is, Expected) ->
    (row(Name, Expression, Sizes, Is, Expected))#{init := Init};
row(Name, Expression, Sizes, Is, Expected) ->
    Good = maps:from_list([{Property, pass} || Property <- properties()]),
    #{name => Name, expression => Expression, sizes => Sizes, init => undefined,
      options => #{timeout_ms => 10000}, is => Is, expected => maps:merge(Good, Expected)}.

blocked() ->
    #{block => fail, undercharge => fail, unfair => warn, latency => fail, unkillable => warn}.

%% -- on the caller's scheduler to the end -------------------------------------

on_the_scheduler() ->
    [{short, "fairnif_zoo:short(N)", [1],
      "returns its argument", #{}},
     {error_tuple, "fairnif_zoo:error_tuple(N)", [1],
      "returns {error, enoent}, which is no failure",
      #{unfair => {any,
                   "so short a call is charged one reduction, which leaves a neighbour about a "
                       "third: near the limit"}}},
     {short_charged, "fairnif_zoo:block_charged(N)", [10],
      "10 us, charged by time", #{}},
     {free_lock, "fairnif_zoo:free_lock(N)", [10],
      "10 us in a lock that is never held for longer, charged by time",
      #{latency => {any, "a holder that loses its processor to another program makes the other "
                       "scheduler wait as well"}}},
     {swarm, "fairnif_zoo:block(N)", [50],
      "50 us, uncharged: thousands of calls make one turn of its caller",
      #{unfair => warn}},
     {medium_uncharged, "fairnif_zoo:block(N)", [300],
      "300 us, uncharged",
      #{undercharge => fail, unfair => warn}},
     {medium_charged, "fairnif_zoo:block_charged(N)", [700],
      "700 us, charged a whole turn: within the documented 1 ms, and still 25 turns long",
      #{unfair => warn}},
     {long_block, "fairnif_zoo:block(N)", [100000],
      "100 ms on the caller's scheduler, uncharged", blocked()},
     {long_block_charged, "fairnif_zoo:block_charged(N)", [100000],
      "100 ms, charged as much as one call can be: a turn", blocked()},
     {ignores_timeslice, "fairnif_zoo:ignores_timeslice(N)", [100000],
      "asks whether its time is up, and goes on", blocked()},
     {block_above, "fairnif_zoo:block_above(N)", [100, 100000],
      "gives way as long as its input is small, and blocks for 100 ms when it is large",
      blocked()},
     {block_above_below, "fairnif_zoo:block_above(N)", [100, 900],
      "the same, seen with small input only", #{}},
     {block_sometimes, "fairnif_zoo:block_sometimes(N)", [100000],
      "20 us, charged; each fifth call 100 ms", blocked()},
     {block_first, "fairnif_zoo:block_first(N)", [50000],
      "20 us, charged; the first call in a node 50 ms: it makes its tables",
      #{first_call => warn}},
     {sleeps, "fairnif_zoo:sleep(N)", [100000],
      "sleeps in the kernel for 100 ms", blocked()},
     {reads_a_pipe, "fairnif_zoo:pipe(N)", [100000],
      "reads from a pipe that is empty for 100 ms", blocked()},
     {waits_for_a_lock, "fairnif_zoo:lock(N)", [100000],
      "waits for a lock that a thread holds for 100 ms", blocked()},
     {huge_list, "fairnif_zoo:huge_list(N)", [3000000],
      "makes a list of three million elements in one go",
      #{block => fail, unfair => warn, latency => fail, unkillable => warn,
        undercharge => {any, "making the list is not charged, collecting it is"}}}].

%% -- sliced by hand -----------------------------------------------------------

in_slices() ->
    [{sliced_by_hand, "fairnif_zoo:slices_fair(N)", [20000],
      "20 ms in slices of 25 us, each charged as a turn; its state is in a resource", #{}},
     {over_charged, "fairnif_zoo:slices_tiny(N)", [5000],
      "slices of 5 us, each charged as a turn: it harms itself alone", #{}},
     {by_the_book, "fairnif_zoo:slices_700us(N)", [20000],
      "slices of 700 us, each charged as a turn: all that the documentation asks for",
      #{unfair => warn}},
     {yields_uncharged, "fairnif_zoo:slices_uncharged(N)", [100000],
      "slices of 700 us by enif_schedule_nif alone, which gives way and charges nothing: sleepers "
      "are late by the whole call, as the VM looks at timers once in 4000 reductions",
      #{undercharge => fail, unfair => warn, latency => fail}},
     {gives_way_uncharged, "fairnif_zoo:gives_way_uncharged(N)", [100000],
      "an uncharged NIF of 700 us and erlang:yield/0, in turns",
      #{undercharge => fail, unfair => warn,
        latency => {any, "sleepers wait until 4000 reductions were charged on their scheduler, by "
                       "whomever: 10 to 130 ms were seen"}}},
     {yields_slowly, "fairnif_zoo:slices_5ms(N)", [20000],
      "slices of 5 ms, each charged as a turn",
      #{block => fail, undercharge => fail, unfair => warn,
        latency => ?FEW_MS}},
     {one_long_stretch, "fairnif_zoo:slices_then_5ms(N)", [120000],
      "120 ms in fair slices, but for the last one of 5 ms: 4 % of its time",
      #{block => fail, latency => ?FEW_MS}},
     {one_long_stretch_among_thousands, "fairnif_zoo:slices_then_5ms(N)", [600000],
      "600 ms in fair slices, but for the last one of 5 ms: less than 1 % of its time",
      #{block => fail, latency => ?FEW_MS}},
     {yields_very_slowly, "fairnif_zoo:slices_100ms(N)", [200000],
      "slices of 100 ms, each charged as a turn", blocked()}].

with_memory() ->
    [{keeps_in_resource, "fairnif_zoo:keeps_in_resource(N)", [20000],
      "1 MiB beside its slices, in a resource whose destructor frees it", #{}},
     {fills_cache, "fairnif_zoo:fills_cache(N)", [20000],
      "the first call keeps 1 MiB for all that follow", #{}},
     {slow_destructor, "fairnif_zoo:statement(N)", [5000],
      "at once; the destructor of what it returns takes 5 ms",
      #{destructor => fail, unfair => ?COLLECTED, latency => ?COLLECTED, undercharge => ?COLLECTED,
        unkillable => ?COLLECTED, leak => ?COLLECTED}},
     {large_result, {"unicode:characters_to_list(Init)", "binary:copy(<<$a>>, N)"}, [8388608],
      "a list of eight million elements, made in slices; collecting it is what takes long", #{}},
     {leaks_malloc, "fairnif_zoo:leaks_malloc(N)", [20000],
      "1 MiB beside its slices, which the last slice frees: a kill loses it", #{leak => fail}},
     {leaks_enif, "fairnif_zoo:leaks_enif(N)", [20000],
      "the same with enif_alloc", #{leak => fail}},
     {leaks_always, "fairnif_zoo:leaks_always(N)", [20000],
      "loses 1 MiB in every call", #{leak => fail}}].

%% -- elsewhere ----------------------------------------------------------------

dirty() ->
    [{dirty_short, "fairnif_zoo:dirty_cpu(N)", [1000],
      "1 ms on a dirty CPU scheduler", #{latency => ?CORES}},
     {dirty_io_short, "fairnif_zoo:dirty_io(N)", [1000],
      "sleeps for 1 ms on a dirty I/O scheduler", #{}},
     {dirty_cpu_unkillable, "fairnif_zoo:dirty_cpu(N)", [200000],
      "200 ms on a dirty CPU scheduler, whether its caller lives or not",
      #{unkillable => warn, latency => ?CORES}},
     {dirty_io_unkillable, "fairnif_zoo:dirty_io(N)", [200000],
      "sleeps for 200 ms on a dirty I/O scheduler, whether its caller lives or not",
      #{unkillable => warn}},
     {dirty_alive, "fairnif_zoo:dirty_alive(N)", [200000],
      "200 ms on a dirty CPU scheduler; asks every 100 us whether its caller lives",
      #{latency => ?CORES}},
     {dirty_slices, "fairnif_zoo:dirty_slices(N)", [20000],
      "20 ms on dirty CPU schedulers, rescheduled every 1 ms", #{latency => ?CORES}}].

waiting() ->
    [{thread_goes_on, "fairnif_zoo:thread_goes_on(N)", [600000],
      "600 ms in a thread of its own, which goes on when the caller is killed",
      #{unkillable => warn, latency => ?CORES}},
     {thread_stops, "fairnif_zoo:thread_stops(N)", [300000],
      "the same, but the thread asks every 100 us whether it is still wanted",
      #{latency => ?CORES}},
     {waits_by_select, "fairnif_zoo:wait(N)", [20000],
      "waits 20 ms for a descriptor, by enif_select, in a receive", #{}}].

%% -- with fairnif -------------------------------------------------------------

with_fairnif() ->
    [{fair_auto, "fairnif_zoo_fair:work_auto(N)", [20000],
      "20 ms in mode AUTO", #{}},
     {fair_auto_short, "fairnif_zoo_fair:work_auto(N)", [10],
      "10 us in mode AUTO", #{}},
     {fair_yielding, "fairnif_zoo_fair:work_yielding(N)", [20000],
      "20 ms in mode NORMAL", #{}},
     {fair_dirty, "fairnif_zoo_fair:work_dirty(N)", [200000],
      "200 ms in DIRTY_CPU, NO_YIELD; its ticks see that the caller is dead", #{latency => ?CORES}},
     {fair_yielding_dirty, "fairnif_zoo_fair:work_yielding_dirty(N)", [20000],
      "20 ms in mode DIRTY_CPU", #{latency => ?CORES}},
     {fair_calls, "fairnif_zoo_fair:calls(N)", [20000],
      "fair_offload of 1 ms each", #{latency => ?CORES}},
     {fair_keeps, "fairnif_zoo_fair:keeps(N)", [20000],
      "1 MiB from fair_alloc, which goes with the task", #{}},
     {fair_list, "fairnif_zoo_fair:list(N)", [100000],
      "makes a list of 100,000 elements in slices", #{}},
     {fair_without_ticks, "fairnif_zoo_fair:no_ticks(N)", [100000],
      "100 ms in mode NORMAL, without a tick",
      #{block => fail, latency => fail, unkillable => warn,
        undercharge => {any, "the runtime has it pay in later turns, up to a limit"},
        unfair => {any, "the runtime has it pay in later turns, up to a limit"}}},
     {fair_leaks, "fairnif_zoo_fair:leaks(N)", [20000],
      "1 MiB from malloc without fair_defer: a kill loses it", #{leak => fail}},
     {fair_blocking_long, "fairnif_zoo_fair:waits(N)", [200000],
      "fair_offload in FAIR_DIRTY_IO, 200 ms in one piece", #{unkillable => warn}}].

%% -- that do not return -------------------------------------------------------

not_returning() ->
    [{Name, Expression, [1], Is,
      maps:put(crash, fail, maps:from_list([{Property, ?ENDED} || Property <- properties()]))}
     || {Name, Expression, Is} <-
            [{segv, "fairnif_zoo:segv(N)", "writes where nothing may be written"},
             {ill, "fairnif_zoo:ill(N)", "executes what is no instruction"},
             {deep, "fairnif_zoo:deep(100000)", "uses up its scheduler's stack"},
             {abort, "fairnif_zoo:abort(N)", "calls abort()"},
             {exit, "fairnif_zoo:exit(N)", "ends the VM, with the exit status of success"},
             {badarg, "fairnif_zoo:badarg(N)", "raises badarg"},
             {raise_sometimes, "fairnif_zoo:raise_sometimes(N)", "raises at each fifth call"},
             {endless, "fairnif_zoo:endless(N)", "never returns, on the caller's scheduler"},
             {slices_endless, "fairnif_zoo:slices_endless(N)", "never returns, in fair slices"},
             {dirty_endless, "fairnif_zoo:dirty_endless(N)",
              "never returns, on a dirty I/O scheduler"},
             {eats_memory, "fairnif_zoo:eats_memory(N)",
              "takes 2 GiB, or all there is, and then raises enomem"}]].
