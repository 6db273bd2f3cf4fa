%% Results of a check as pure data, for the tests of everything that reads one: reports, JUnit,
%% baselines, assertions. Nothing here is measured.
-module(fairnif_check_test_results).

-export([context/0, good/0, bad/0, noisy/0, every_status/0, crashed/0, with_text/1]).
-export([with_samples/2, put_size/3, verdict/4]).
-export([blocks/1, delay/1, leak/1]).

context() ->
    #{otp => <<"25">>, erts => <<"13.1.5">>, emulator => <<"jit">>, nif_version => <<"2.16">>,
      architecture => <<"x86_64-pc-linux-gnu">>, os => <<"linux 6.1.7">>,
      processor => <<"A processor @ 2.40GHz">>, logical_processors => 2,
      memory_available => 8000000000, date => <<"2026-11-21T12:00:00Z">>}.

%% All that can be measured was measured, and all is well.
good() ->
    result(0, [subject(subject, <<"lists:sum(Init)">>,
                       [full(1024, 900, passes(1024)), full(1048576, 900000, passes(1048576))],
                       passes(1048576))]).

%% One that blocks its scheduler, from 1 MiB on.
bad() ->
    Block = verdict(block, fail, 1048576,
                    <<"It blocked a normal scheduler for 23.4 ms; 1 ms is the limit.">>),
    At1m = replace(Block, passes(1048576)),
    #{subjects := [S]} = R = good(),
    #{sizes := [Small, Big]} = S,
    R#{exit := 1,
       subjects := [S#{sizes := [Small, Big#{verdicts := At1m}], verdicts := At1m}]}.

noisy() ->
    Block = verdict(block, unsure, 1048576,
                    <<"Other programs took 0.9 processors; three passes did not agree.">>),
    At1m = replace(Block, passes(1048576)),
    #{subjects := [S]} = R = good(),
    #{sizes := [Small, Big]} = S,
    R#{exit := 3,
       subjects := [S#{sizes := [Small, Big#{verdicts := At1m}], verdicts := At1m}]}.

%% Each status at least once, an expression to compare with, and what was not measured.
every_status() ->
    Verdicts = [verdict(crash, pass, undefined, <<"It returned each time.">>),
                verdict(block, fail, 1048576, <<"It blocked a scheduler for 23.4 ms.">>),
                verdict(undercharge, unsure, 1048576, <<"It was too short to measure.">>),
                verdict(unfair, warn, 1048576, <<"It left 7 % to a neighbour.">>),
                verdict(latency, pass, 1048576, <<"Others woke as they do beside Erlang.">>),
                verdict(unkillable, waived, 1048576, <<"Its code stops 2 s after the kill.">>),
                verdict(leak, pass, 1048576, <<"All memory came back.">>)],
    Against = [verdict(P, S, 1024, <<"The old one.">>)
               || {P, S} <- [{crash, pass}, {block, fail}]],
    #{options := Options} = Result =
        result(1, [subject(subject, <<"m:f(Bin)">>,
                           [full(1024, 900, passes(1024)), partial(1048576, Verdicts)], Verdicts),
                   (subject(against, <<"m:old(Bin)">>,
                            [full(1024, 1800, Against), full(1048576, 1900000, [])], Against))
                   #{growth := undefined, advice := []}]),
    Result#{options := Options#{waive := #{unkillable => <<"nobody kills its callers">>}}}.

%% A crash at the second size: nothing of it but the error.
crashed() ->
    Returns = verdict(crash, fail, 1048576,
                      <<"The node was killed by signal 11 while it ran.">>),
    Broken = #{size => 1048576, error => <<"the peer node was killed by signal 11">>,
               verdicts => [Returns]},
    result(1, [(subject(subject, <<"m:crash(Bin)">>, [full(1024, 900, passes(1024)), Broken],
                        [Returns | tl(passes(1024))]))#{growth := undefined}]).

%% The bad one, with this text wherever a text stands.
with_text(Text) ->
    #{subjects := [S]} = R = bad(),
    #{verdicts := Vs, sizes := [A, B]} = S,
    Textual = fun(V) -> V#{sentence := Text, evidence := #{note => Text}} end,
    R#{expression := Text,
       subjects := [S#{expression := Text, advice := [Text],
                       verdicts := [Textual(V) || V <- Vs],
                       sizes := [A, B#{verdicts := [Textual(V) || V <- Vs]}]}]}.

%% The subject with these samples of its time (ns) at 1 MiB.
with_samples(Samples, Result) ->
    put_size(time, #{count => length(Samples), samples => Samples,
                     median => fairnif_check_stats:median(Samples),
                     spread => fairnif_check_stats:spread(Samples),
                     shortest => lists:min(Samples)}, Result).

%% The subject with this value for a key of its last size; `remove' takes the key away.
put_size(Key, Value, #{subjects := [#{sizes := Sizes} = S | Others]} = Result) ->
    {Before, [Last]} = lists:split(length(Sizes) - 1, Sizes),
    Changed = case Value of
                  remove -> maps:remove(Key, Last);
                  _ -> Last#{Key => Value}
              end,
    Result#{subjects := [S#{sizes := Before ++ [Changed]} | Others]}.

verdict(Property, Status, Size, Sentence) ->
    #{property => Property, status => Status, size => Size, sentence => Sentence,
      evidence => evidence(Property)}.

%% ---- parts ----

result(Exit, [#{expression := Expression} | _] = Subjects) ->
    #{expression => Expression, exit => Exit, subjects => Subjects,
      options => #{sizes => [1024, 1048576], time_ms => 1000, limit_ns => 1000000,
                   timeout_ms => 30000, strict => false, flags => <<>>, init => undefined,
                   file => undefined, runs => undefined, waive => #{}},
      machine => #{dirty_trip => 2300, erlang => erlang_work()},
      thresholds => [#{property => block, limit => 1000000, unit => ns, decides => true,
                       source => <<"erl_nif: a well-behaved NIF returns within 1 ms">>},
                     #{property => unfair, limit => 0.25, unit => fraction, decides => false,
                       source => <<"docs/internals/task.md">>}]}.

subject(Role, Expression, Sizes, Verdicts) ->
    #{role => Role, expression => Expression, sizes => Sizes, verdicts => Verdicts,
      growth => 1.02, advice => [<<"Nothing need be done.">>]}.

passes(Size) ->
    [verdict(P, pass, case P of crash -> undefined; _ -> Size end, <<"All is well.">>)
     || P <- [crash, block, first_call, undercharge, unfair, latency, destructor, unkillable,
              leak]].

replace(#{property := Property} = Verdict, Verdicts) ->
    [case V of #{property := Property} -> Verdict; _ -> V end || V <- Verdicts].

evidence(block) -> #{longest => 23400000, limit => 1000000, over => 12, calls => 40};
evidence(unfair) -> #{left => 0.07, source => <<"three neighbours">>, unknown => undefined};
evidence(_) -> #{}.

full(Size, Ns, Verdicts) ->
    Samples = [Ns + Ns * N div 1000 || N <- [3, 0, 7, 1, 9, 4, 2, 8, 5, 6]],
    #{size => Size, error => undefined,
      time => #{count => 10, median => fairnif_check_stats:median(Samples),
                spread => fairnif_check_stats:spread(Samples), shortest => Ns,
                samples => Samples},
      charge => #{per_call => 4000.0, per_ms => 90000.5,
                  erlang => erlang_work(), ratio => 0.94},
      slices => #{normal => summary([20000, 25000, 30000]), dirty => summary([]),
                  gc => summary([5000]), blocks => [20000, 31000, 30000],
                  normal_samples => [20000, 25000, 30000], dirty_samples => [],
                  block => blocks(30000), control => blocks(60000)},
      first => #{block => 40000, elapsed => 90000, nodes => 1},
      garbage => #{collected => [21000, 22000], killed => [30000, 31000], control => [],
                   bytes => 8192},
      share => #{sort => 0.55, maps => 0.51, binaries => 0.48, median => 0.51},
      delay => #{idle => delay(1030000), erlang => delay(1050000), beside => delay(1060000)},
      thread_progress => #{idle => summary([9000]), beside => summary([12000])},
      long_schedule => #{count => 0, longest_ms => 0, named => []},
      kill => #{count => 5, down => summary([9000, 11000]), stop => summary([21000, 25000]),
                stop_samples => [21000, 25000], control_samples => [31000, 35000], unstopped => 0,
                threads_cpu => 0},
      leak => leak(0.0),
      others => [0.05, undefined],
      verdicts => Verdicts}.

erlang_work() ->
    #{sort => 80000, maps => 120000.0, binaries => 95000}.

blocks(Ns) ->
    #{calls => 40, over => 0, over_part => 0.0, close_part => 0.0, longest => Ns + 1000,
      repeated => Ns, least => Ns, taken => 12000,
      elapsed => 40 * Ns}.

delay(P99) ->
    #{p50 => 1000000, p99 => P99, max => P99 + 50000, count => 500,
      windows => [P99 - 2, P99 - 1, P99 - 3, P99], samples => [1000000, P99, P99 + 50000]}.

leak(PerKill) ->
    #{kills => 200, per_kill => PerKill, total => 150 * PerKill, resolution => 524288.0,
      memory => [#{kills => K, calls => 2 * K, resident => 40000000 + round(K * PerKill),
                   vm => 12000000, native => undefined}
                 || K <- [50, 100, 150, 200]]}.

%% What one that went wrong half way has, which began with another size, and loses memory.
partial(Size, Verdicts) ->
    #{memory := Looks} = Leak = leak(1.0e6),
    Alone = #{calls => 150, per_call => 1.0e6, total => 1.5e8, resolution => 131072.0,
              memory => [maps:remove(kills, Look) || Look <- Looks]},
    maps:with([size, asked, late, error, time, slices, verdicts, delay, others, leak],
              (full(Size, 900000, Verdicts))#{asked => Size, late => <<"a call took too long">>,
                                              error := <<"no answer within 30 s">>,
                                              leak := Leak#{alone => Alone},
                                              delay := #{beside => unanswered}}).

summary(Samples) ->
    fairnif_check_stats:summary(Samples).
