-module(fairnif_exp_collapse_tests).
-tests(nodes).

-include_lib("eunit/include/eunit.hrl").

-define(C, fairnif_exp_collapse).

a_run_answers_as_the_original_did_test_() ->
    {timeout, 60, fun() ->
        {Seconds, InUse} = quietly(fun() -> ?C:run(7, 10000, 3, 5) end),
        ?assertEqual(7, length(Seconds)),
        [?assert(is_float(S) andalso S > 0) || S <- Seconds],
        ?assertEqual(lists:seq(1, erlang:system_info(schedulers)),
                     [Scheduler || {Scheduler, _} <- InUse]),
        [?assert(is_float(P) andalso P >= 0.0 andalso P < 101.0) || {_, P} <- InUse]
    end}.

a_quick_run_has_all_sequences_and_goes_on_when_one_fails_test_() ->
    {timeout, 300, fun() ->
        {ok, #{ok := Ok, rows := Rows, job_us := JobUs} = Result} =
            fairnif_lab_stand_in:with_spinsleep(
              [{spinwork_fair, "error({oops, Us})"}],
              fun() -> ?C:run(#{scale => quick, n => 8, r => 4}) end),
        ?assertNot(Ok),
        ?assert(is_integer(JobUs) andalso JobUs > 0),
        ?assertEqual([{md5, <<"as is">>}, {blocking, <<"as is">>},
                      {blocking, <<"+sfwi 500">>}, {fair, <<"as is">>},
                      {erlang, <<"as is">>}],
                     [{F, V} || #{form := F, variant := V} <- Rows]),
        ?assertEqual([fair], [F || #{form := F, error := _} <- Rows]),
        [?assertMatch({match, _}, re:run(E, "a process ended with .*oops"))
         || #{error := E} <- Rows],
        [assert_runs(Runs) || #{runs := Runs} <- Rows],
        ?assert(iolist_size(fairnif_lab_json:encode(Result)) > 1000),
        Text = unicode:characters_to_binary(?C:format(Result)),
        fairnif_lab_said:contains(Text,
                              ["md5 by crypto, as is", "blocking NIF, +sfwi 500",
                               "Failed: fairnif AUTO, as is", "published: R16B", "139.57 s", "52x",
                               "one 100 %, seven 18 to 20 %", "about 2,000"])
    end}.

%% Eight processes with four jobs each, first on all schedulers, then on half.
assert_runs([#{phase := all, online := All} = First,
             #{phase := half, online := Half} = Last]) ->
    ?assertEqual(Half, All div 2),
    [begin
         #{seconds := Seconds, done := Done, in_use := InUse, fairness := Fairness,
           samples := Samples, classes := Classes, collapsed := Collapsed,
           lines := [Line | _], online := Online} = Run,
         ?assertEqual(8, length(Seconds)),
         ?assertEqual(32, lists:sum(Done)),
         ?assertEqual(All, length(InUse)),
         ?assert(Fairness >= 1.0),
         ?assert(lists:all(fun([_, Queues]) -> length(Queues) =:= Online end, Samples)),
         ?assertEqual(length(Samples), lists:sum(maps:values(Classes))),
         ?assert(lists:member(Collapsed, [true, false, cannot_say])),
         ?assertMatch({match, _},
                      re:run(Line, "^\\{[0-9]+,[0-9]+,[0-9]+\\} \\{[a-z_]+,[0-9.]+\\} "
                                   "\\{[0-9,]+\\}$"))
     end || Run <- [First, Last]].

the_full_scale_is_the_published_one_test() ->
    ?assertMatch(#{n := 400, w := 1048576, r := 1100, bw := 5, runs := 8, gap := 12000},
                 ?C:spec(#{scale => full})).

each_scale_can_be_given_other_numbers_test() ->
    ?assertMatch(#{n := 3, w := 4, r := 5, bw := 6},
                 ?C:spec(#{scale => full, n => 3, w => 4, r => 5, bw => 6})),
    ?assertMatch(#{bw := 5}, ?C:spec(#{})).

half_of_the_schedulers_are_always_two_or_more_test() ->
    [begin
         #{schedulers := S, n := N} = ?C:spec(#{scale => Scale}),
         ?assert(S div 2 >= 2),
         ?assert(N >= S)
     end || Scale <- [quick, normal, full]].

progress_has_a_step_for_each_run_test() ->
    ?assertEqual(10, ?C:steps(#{scale => quick})),
    ?assertEqual(28, ?C:steps(#{})),
    ?assertEqual(63, ?C:steps(#{scale => full})).

a_collapse_is_said_with_its_reason_test() ->
    Text = format([run(all, #{collapsed => false}),
                   run(half, #{online => 2, collapsed => true,
                               why => <<"two of them slept">>})]),
    [?assertMatch({_, {match, _}}, {Part, re:run(Text, Part)})
     || Part <- ["4 of 4 .* no ", "2 of 4 .* after 1 .* yes",
                 "blocking NIF, as is: collapsed; two of them slept"]].

the_collapsed_run_is_shown_though_a_later_one_was_well_test() ->
    Text = format([run(all, #{collapsed => true, why => <<"in the first">>}),
                   run(half, #{collapsed => false, why => <<"in the last">>})]),
    ?assertNotEqual(nomatch, string:find(Text, "collapsed; in the first")).

a_run_that_says_nothing_is_no_answer_test() ->
    Text = format([run(all, #{collapsed => cannot_say}), run(half, #{})]),
    ?assertMatch({match, _}, re:run(Text, "4 of 4 .* can't say")).

a_small_machine_says_what_it_cannot_show_test() ->
    Runs = [run(all, #{}), run(half, #{})],
    ?assertNotEqual(nomatch, string:find(format(Runs, 2), "2 processors, 4 schedulers")),
    ?assertEqual(nomatch, string:find(format(Runs, 16), "does not say that none")).

a_busy_machine_is_named_as_a_doubt_test() ->
    Doubt = fun(Others) ->
                    string:find(format([run(all, #{others => Others}), run(half, #{})]),
                                "doubt blocking NIF, as is.")
            end,
    ?assertNotEqual(nomatch, Doubt(0.9)),
    ?assertEqual(nomatch, Doubt(0.05)),
    ?assertEqual(nomatch, Doubt(undefined)).

format(Runs) ->
    format(Runs, 2).

format(Runs, Cores) ->
    unicode:characters_to_binary(
      ?C:format(#{ok => true, cores => Cores, job_us => 260,
                  spec => #{n => 100, w => 131072, r => 400, bw => 5, gap => 2000,
                            schedulers => 4},
                  rows => [#{form => blocking, work => <<"blocking NIF">>,
                             variant => <<"as is">>, runs => Runs}]})).

run(Phase, More) ->
    maps:merge(#{phase => Phase, online => 4, collapsed => false, why => <<"none">>,
                 shortest => 0.118, longest => 5.78, fairness => 49.0,
                 in_use => [96.0, 97.0, 98.0, 100.0], per_5s => [7000, 8000, 9000, 9374],
                 classes => #{even => 1, minority_zero => 2, unbalanced => 3},
                 lines => [<<"{1,2,3} {even,1.0} {2,2}">>], looks_apart_ms => 900,
                 looks_wanted_ms => 250, others => 0.01}, More).

%% Without the status lines, which are for a person.
quietly(Fun) ->
    Leader = group_leader(),
    Sink = spawn_link(fun sink/0),
    group_leader(Sink, self()),
    try Fun() after group_leader(Leader, self()), unlink(Sink), exit(Sink, kill) end.

sink() ->
    receive
        {io_request, From, Ref, _} -> From ! {io_reply, Ref, ok}, sink()
    end.
