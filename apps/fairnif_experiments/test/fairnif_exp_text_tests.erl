%% What the tables of the experiments say of figures made up.
-module(fairnif_exp_text_tests).

-include_lib("eunit/include/eunit.hrl").

each_table_says_what_its_figures_are_and_nothing_that_they_are_not_test_() ->
    [{lists:concat([Module, ": ", Title]),
      fun() ->
              Text = unicode:characters_to_list(fairnif_experiment:format(Module, Result)),
              fairnif_check_said:contains(Text, There),
              [?assertEqual({Part, nomatch}, {Part, string:find(Text, Part)}) || Part <- NotThere]
      end}
     || {Module, Cases} <- cases(), {Title, Result, There, NotThere} <- Cases].

%% Experiment, and of each case: what it proves, the result, what its text has, what it has not.
cases() ->
    [{fairnif_exp_exor,
      [{"the talk's figures stand beside ours",
        exor([exor_row(exor_bad, #{}), exor_row(exor, #{talk => undefined})]),
        ["exor_bad", "28.1 ms", "2,047", "8,188,005", "202 us", "45 to 60 %",
         "5.86 s, 3,906, 7,815,912", "536,870,912 bytes", "What to see",
         "leaves 45 to 60 %"], []}]},
     {fairnif_exp_levenshtein,
      [{"rates stand beside those published",
        levenshtein([rates(10, 2000000), rates(1000, 0.5)], []),
        ["2,000,000", "0.50", "149,318", "209,975", "0.71"], []},
       %% A cost that grows with the square: four times at double the length.
       {"the length that was not published is read off the plain NIF",
        levenshtein([rates(10, 4 * 209975), rates(40, 209975 / 4)], []),
        ["with about 20 bytes."], []},
       {"and not beyond what was measured", levenshtein([rates(10, 100)], []), [], ["with about"]},
       {"a node without an answer is a row and no failure",
        levenshtein([], [jitter(unfair_levenshtein, no_answer()),
                         jitter(yielding_levenshtein, late(2100000, 3500000))]),
        ["no answer within 5 s", "the shell is dead", "2.10 ms", "3.50 ms", "2.1 to 3.5 ms"],
        ["Failed"]},
       {"the conclusion is of these figures",
        levenshtein([], [jitter(Form, late(Ns, Ns)) || {Form, Ns} <- [{idle, 1000000},
                                                                    {unfair_levenshtein, 7000000},
                                                                    {levenshtein, 1200000}]]),
        ["beside nothing the sleeper is 1.00 ms late",
         "auto 1.20 ms, beside\nthe plain NIF: 7.00 ms."], []},
       {"and there is none of some", levenshtein([], [jitter(idle, late(1, 1))]), [],
        ["What to see"]}]},
     {fairnif_exp_overhead,
      [{"the trips stand beside those published", overhead(trips(), [], []),
        ["1.75 us", "7.5 us", "12 %", "~10 us", "2.5 to 3.75 us", "40,000 calls",
         "3.00 to 4.00 us",
         "takes 3.50 us under default flags, 3.50 us under tuned",
         "less than 35.0 us and 35.0 us"], []},
       {"flags that the VM refused are said",
        overhead(trips(), [#{set => default, title => <<"default">>, used => <<>>, refused => []},
                           #{set => tuned, title => <<"tuned">>, used => <<"+A 10">>,
                             refused => [<<"+K true">>, <<"+sbt db">>]}], []),
        ["left out of tuned: +K true, +sbt db\n", "tuned: +A 10\n"], []}
       %% A millisecond of 10 ns a byte is 100 kB.
       | [{"a cutoff is a size or says that it is none", overhead(trips(), [], [cutoff(Cutoff)]),
           ["100 kB", Said], []}
          || {Cutoff, Said} <- [{3500.0, "3.50 kB"}, {below, "always worth it"},
                                {above, "> measured"}]]]},
     {fairnif_exp_share,
      [{"what was published stands beside",
        share([share_row(plain, [0.0, 0.0], #{}),
               share_row(by_hand, [0.031, 0.052], #{slice_us => 1000.0,
                                                    published => <<"3 to 7 %">>}),
               share_row(auto, [0.41, 0.55, 0.5], #{slice_us => 42.6})]),
        ["3 to 7 %", "3.1 to 5.2 %", "41 to 55 %", "1.00 ms", "42.6 us", "1.10 ms",
         "leaves a neighbour 0 % of the scheduler", "a fair one 41 to 55 %"], []},
       {"a node that gives no answer is a row and no failure",
        share([share_row(plain, [0.5], #{delay => no_answer()})]), ["no answer within 5 s"],
        ["Failed"]}]},
     {fairnif_exp_wakeup,
      [{"each load is beside an idle node of the same flags",
        wakeup([wakeup_row(idle, default, 1.0e5, 200.0), wakeup_row(dirty, default, 1.36e8, 100.0),
                wakeup_row(idle, none, 1.0e5, 400.0), wakeup_row(dirty, none, 1.1e6, 100.0)]),
        ["50 %", "25 %", "is late by 136 ms with", "by 1.10 ms where no scheduler spins",
         "on an idle node by 100 us", "Linux 9.9"], ["Left out", "Failed"]},
       {"a quota that cannot be set is left out and no failure",
        wakeup([(wakeup_row(quota, default, 1.0, 1.0))#{real => #{left_out => <<"no group">>},
                                                        control => #{left_out => <<"no group">>}}]),
        ["Left out: quota: no group"], ["What to see", "Failed"]}]},
     {fairnif_exp_reductions,
      [{"ours stand beside those published",
        reductions([{nif_spin, 1}, {nif_sliced, 4000123}, {nif_fair, 80000456}, {work, 90000789}]),
        ["~200", "121", "failed: the reason", "Erlang work is charged 90,000,789", "nothing 1,",
         "4,000,123", "80,000,456"], []}]},
     {fairnif_exp_latency,
      [{"isolation and published orders", latency(echoes(), 0.0),
        ["shared", "process", "network", "0.1 us", "100 us", "1 KiB", "64 KiB", "20.0 ns",
         "40.0 ns *", "In turns, 100 rounds", "a NIF 20.0 ns (published 0.1 us)",
         "a port 12.0 us (published 100 us)"], ["doubt"]},
       {"what was left out or failed has its reason",
        latency([#{isolation => shared, published_us => undefined, form => Form, title => Title,
                   bytes => Bytes, Why => Reason}
                 || {Form, Title, Why, Reason} <- [{a, <<"A">>, left_out, <<"no javac">>},
                                                   {b, <<"B">>, error, <<"error:timeout">>}],
                    Bytes <- [1024, 65536]], 0.0),
        ["Left out: A: no javac\n", "Failed: B: error:timeout\n"], ["What to see"]},
       {"a busy machine is said", latency(echoes(), 1.5), ["busy: doubt all"], []}]},
     {fairnif_exp_matrix,
      [{"each kind of cell says what it is",
        matrix([cell(#{multiple => 1, extra => 1234567}),
                cell(#{multiple => 10, status => skipped, skipped => cell, predicted_ms => 100000}),
                cell(#{multiple => 100, status => skipped, skipped => total}),
                cell(#{multiple => 1000, status => failed, why => <<"the reason">>}),
                cell(#{multiple => 10000, status => timeout, limit_ms => 50000})], []),
        ["calls of 10 ms", "1.23 ms", "(100 s)", "(left out)", "failed", "> 50 s", "plain NIF",
         "1,000x", "-/-/1s/10s/2m", "predicted to take so long", "all together would take longer",
         "Failed: spinsleep, 10 ms, 1,000x: the reason", "no answer within the time limit",
         "Andrew Bennett"], []},
       {"of spinwork nothing was published", matrix([cell(#{job => spinwork})], []), [],
        ["-/-/1s"]},
       {"the conclusion takes the cell in which plain NIFs were latest",
        matrix([cell(#{multiple => 1, extra => 5000000}),
                cell(#{multiple => 100, extra => 990000000, processes => 200}),
                cell(#{multiple => 100, extra => 12000000, processes => 200,
                       mode => fair_auto})], []),
        ["200 calls of 10 ms", "990 ms  plain NIF", "12.0 ms  fairnif AUTO"], []}]},
     {fairnif_exp_collapse,
      [{"a collapse is said with its reason, and that machine is small",
        collapse([run(all, #{}), run(half, #{online => 2, collapsed => true,
                                             why => <<"two of them slept">>})], 2),
        ["4 of 4", "2 of 4", "after 1", "blocking NIF, as is: collapsed; two of them slept",
         "2 processors, 4 schedulers"], ["doubt"]},
       {"it is shown though a later one was well",
        collapse([run(all, #{collapsed => true, why => <<"in the first">>}), run(half, #{})], 16),
        ["collapsed; in the first"], ["does not say that none"]},
       {"a run that says nothing is no answer",
        collapse([run(all, #{collapsed => unsure}), run(half, #{})], 2), ["can't say"], []}]}].

%% ---- results ----

no_answer() ->
    #{error => <<"no answer within 5 s">>, timed_out => true, may_time_out => true}.

exor(Rows) -> #{ok => true, size => 536870912, rows => Rows}.

exor_row(Form, More) ->
    maps:merge(#{form => Form, elapsed_us => 28123, yields => 2047, reductions => 8188005,
                 block_p99 => 22000, block_longest => 202000, share => [0.45, 0.6, 0.5],
                 others => [0.0, 0.0],
                 talk => #{seconds => 5.86, yields => 3906, reductions => 7815912}}, More).

levenshtein(Rates, Jitter) ->
    #{ok => true, rates => Rates, jitter => Jitter, jitter_bytes => 10000}.

rates(Length, Rate) ->
    #{length => Length, others => 0.0,
      forms => maps:from_list([{F, #{per_second => Rate, spread => 0.0, samples => [Rate]}}
                               || F <- [erlang_levenshtein, unfair_levenshtein,
                                        yielding_levenshtein, dirty_levenshtein,
                                        threaded_levenshtein, levenshtein]])}.

jitter(Form, More) ->
    More#{form => Form, title => atom_to_binary(Form), sleep_ms => 1000, others => 0.0}.

late(Least, Most) ->
    #{count => 5, least => Least, p50 => Least, p99 => Most, max => Most}.

overhead(Rows, Flags, Functions) ->
    #{ok => true, rows => Rows, flags => Flags, functions => Functions, calls => 40000, nodes => 2}.

trips() ->
    Way = fun(Median) ->
                  #{median => Median, p99 => 2 * Median, humps => [Median], over => 0.02}
          end,
    [#{set => Set, kind => Kind, there => Way(1750), back => Way(1750), both => Way(3500),
       node_medians => [3000, 4000], others => 0.0}
     || {Set, Kind} <- [{default, plain}, {default, dirty_cpu}, {default, dirty_io},
                        {tuned, dirty_cpu}, {tuned, dirty_io}]].

cutoff(Size) ->
    #{function => <<"f">>, limit => 100000.0,
      points => [#{size => S, ns => 10 * S} || S <- [1000, 1000000]],
      cutoffs => [#{set => default, trip_ns => 3500, size => Size}]}.

share(Rows) -> #{ok => true, rows => Rows}.

wakeup(Rows) -> #{ok => true, kernel => <<"Linux 9.9">>, rows => Rows}.

wakeup_row(Load, Wait, P99, Work) ->
    Late = #{p50 => 1.0, p99 => P99, max => P99, waits => 0.5, yields => 1000.0, work => Work,
             others => 0.0},
    #{load => Load, title => atom_to_binary(Load), busy_wait => Wait, real => Late,
      control => Late}.

share_row(Mode, Shares, More) ->
    maps:merge(#{mode => Mode, title => atom_to_binary(Mode), slice_us => undefined,
                 published => undefined,
                 share => #{neighbours => [#{share => S} || S <- Shares], others => 0.0},
                 delay => #{p50 => 1000000, p99 => 1100000, max => 1200000, others => 0.0}}, More).

reductions(Charged) ->
    #{ok => true,
      rows => [#{key => echo, title => <<"Erlang: echo">>, error => <<"the reason">>}
               | [#{key => Key, title => atom_to_binary(Key), compiled => N, evaluated => N + 120,
                    published => #{compiled => undefined, shell => 200}} || {Key, N} <- Charged]]}.

latency(Rows, Others) ->
    #{ok => true, rows => Rows, sizes => [1024, 65536], rounds => 100, clock_ns => 40,
      others => Others}.

echoes() ->
    [#{form => Form, title => atom_to_binary(Form), isolation => Isolation, published_us => P,
       bytes => Bytes, median_us => Us, p99_us => 2 * Us, count => 100, echoes_per_sample => Echoes}
     || {Form, Isolation, P, Us, Echoes} <- [{nif, shared, 0.1, 0.02, 50},
                                             {fair_threaded, shared, undefined, 5.0, 1},
                                             {port, process, 100, 12.0, 1},
                                             {c_node, network, 100, 15.0, 1}],
        Bytes <- [1024, 65536]].

matrix(Rows, Others) ->
    #{ok => true, scale => normal, others => Others, rows => Rows}.

cell(More) ->
    maps:merge(#{job => spinsleep, mode => normal, form => spinsleep, duration_us => 10000,
                 multiple => 1, runs => 1, processes => 2, predicted_ms => 10, skipped => undefined,
                 status => measured, elapsed => [10000000], extra => 0}, More).

collapse(Runs, Cores) ->
    #{ok => true, cores => Cores, job_us => 260,
      spec => #{n => 100, w => 131072, r => 400, bw => 5, gap => 2000, schedulers => 4},
      rows => [#{form => blocking, work => <<"blocking NIF">>, variant => <<"as is">>,
                 runs => Runs}]}.

run(Phase, More) ->
    maps:merge(#{phase => Phase, online => 4, collapsed => false, why => <<"none">>,
                 shortest => 0.118, longest => 5.78, fairness => 49.0,
                 in_use => [96.0, 97.0, 98.0, 100.0], per_5s => [7000, 8000, 9000, 9374],
                 others => 0.01}, More).
