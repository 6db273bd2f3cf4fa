-module(fairnif_exp_http_log_tests).

-include_lib("eunit/include/eunit.hrl").

-define(L, fairnif_exp_http_log).
-define(T0, 1795305160000000).
-define(S, 1000000).

lines_are_read_in_the_order_of_sending_test() ->
    ?assertEqual([{?T0, 200, ?T0 + 500}, {?T0 + 10000, -1, ?T0 + 10000},
                  {?T0 + 20000, 503, ?T0 + 20007}],
                 ?L:parse(iolist_to_binary([line(20000, 503, 7), line(0, 200, 500),
                                            line(10000, -1, 0)]))).

a_line_that_was_cut_off_is_left_out_test() ->
    Whole = iolist_to_binary([line(0, 200, 500), line(10000, 200, 499)]),
    Cut = binary:part(Whole, 0, byte_size(Whole) - 3),
    ?assertEqual([{?T0, 200, ?T0 + 500}], ?L:parse(Cut)),
    ?assertEqual([], ?L:parse(<<>>)).

requests_that_h2load_sends_late_by_itself_count_from_when_they_were_sent_test() ->
    %% Three milliseconds off its own beat from the second request on.
    Sent = [0 | [N * 10000 + 3000 || N <- lists:seq(1, 99)]],
    Light = light([{S, 200, 400} || S <- Sent]),
    ?assertMatch(#{due := 100, answered := 100, sent_late := 0, unanswered := 0,
                   p50_us := 400, p99_us := 400, max_us := 400}, Light).

a_server_that_stops_is_late_to_all_that_was_due_meanwhile_test() ->
    %% 100 requests a second; from 0.1 to 0.9 s nothing is answered: 25 are sent, and
    %% the others when those are answered.
    Stop = 100000,
    Go = 900000,
    Sends = fun(N) when N * 10000 >= Stop, N * 10000 < Stop + 250000 ->
                    {N * 10000, Go + 100};
               (N) when N * 10000 >= Stop, N * 10000 =< Go ->
                    {Go + 200, Go + 300};
               (N) ->
                    {N * 10000, N * 10000 + 300}
            end,
    Entries = [begin {S, A} = Sends(N), {S, 200, A - S} end || N <- lists:seq(0, 99)],
    #{p50_us := P50, p99_us := P99, max_us := Max} = Light = light(Entries),
    ?assertMatch(#{due := 100, answered := 100, unanswered := 0, sent_late := 56,
                   p50_sent_us := 100, max_sent_us := 800100, max_us := 800100}, Light),
    %% What h2load says is that three quarters took less than a millisecond.  80 of
    %% 100 were due while nothing was answered: half waited for 300 ms and more.
    ?assert(P50 > 290000 andalso P50 < 310000),
    ?assertEqual(790100, P99),
    ?assert(P99 =< Max),
    ?assertMatch(#{silence_ms := Ms} when Ms >= 800 andalso Ms =< 820, Light).

what_was_never_answered_counts_as_long_as_the_client_waited_test() ->
    Light = light([{N * 10000, 200, 300} || N <- lists:seq(0, 49)]),
    ?assertMatch(#{due := 100, answered := 50, unanswered := 50, max_us := 1500000}, Light),
    %% Until a second after the window.
    ?assertMatch(#{p50_us := 300, p99_us := 1490000, max_sent_us := 300}, Light).

without_any_answer_all_that_was_due_is_unanswered_test() ->
    ?assertMatch(#{due := 100, answered := 0, unanswered := 100, requests_per_s := +0.0,
                   p50_sent_us := undefined, silence_ms := 1000}, light([])).

an_answer_after_the_end_is_none_test() ->
    Light = light([{N * 10000, 200, 300} || N <- lists:seq(0, 98)] ++ [{990000, 200, 1100000}]),
    ?assertMatch(#{due := 100, answered := 99, unanswered := 1, max_us := 1010000}, Light).

errors_and_resets_are_failures_and_no_fast_answers_test() ->
    Light = light([{0, 200, 300}, {10000, 500, 1}, {20000, -1, 0}
                   | [{N * 10000, 200, 300} || N <- lists:seq(3, 99)]]),
    ?assertMatch(#{due := 100, answered := 98, failed := 2, unanswered := 0, p50_us := 300},
                 Light),
    AllFail = light([{N * 10000, 503, 5} || N <- lists:seq(0, 99)]),
    ?assertMatch(#{answered := 0, failed := 100, p50_us := undefined, p99_us := undefined,
                   max_sent_us := undefined}, AllFail).

only_the_window_counts_test() ->
    Entries = [{N * 10000, 200, 100 + N} || N <- lists:seq(0, 99)],
    Requests = ?L:due(entries(Entries), (spec(100))#{until := ?T0 + ?S}),
    ?assertMatch(#{due := 50, p50_us := 124, max_us := 149, requests_per_s := 100.0},
                 ?L:light(Requests, {?T0, ?T0 + ?S div 2}, ?T0 + ?S)).

the_timeline_has_every_step_and_shows_the_gap_test() ->
    Requests = ?L:due(entries([{N * 10000, 200, 300} || N <- lists:seq(0, 49)]), spec(100)),
    Points = ?L:timeline(Requests, {?T0, ?T0 + ?S}, 250000, ?T0 + 2 * ?S),
    ?assertMatch([#{t_ms := 0, requests_per_s := 100.0, p99_us := 300, unanswered := 0},
                  #{t_ms := 250, requests_per_s := 100.0, unanswered := 0},
                  #{t_ms := 500, requests_per_s := +0.0, p99_us := 1500000, unanswered := 25},
                  #{t_ms := 750, requests_per_s := +0.0, unanswered := 25}], Points).

heavy_answers_within_the_window_are_counted_test() ->
    Entries = entries([{0, 200, 400000}, {0, 200, 900000}, {0, 500, 500000},
                       {500000, 200, 900000}]),
    ?assertEqual(#{done => 2, failed => 1, per_s => 2.0, p50_us => 400000, max_us => 900000},
                 ?L:heavy(Entries, {?T0, ?T0 + ?S})),
    ?assertMatch(#{done := 0, p50_us := undefined}, ?L:heavy([], {?T0, ?T0 + ?S})).

%% One connection at 100 a second; the window is its first second, the end another second later.
light(Entries) ->
    Within = [R || {Since, _, _, _} = R <- ?L:due(entries(Entries), spec(100)),
                   Since < ?T0 + ?S],
    ?L:light(Within, {?T0, ?T0 + ?S}, ?T0 + 2 * ?S).

spec(PerS) ->
    #{per_s => PerS, streams => 25, from => ?T0, until => ?T0 + ?S}.

entries(Entries) ->
    ?L:parse(iolist_to_binary([line(S, Status, Took) || {S, Status, Took} <- Entries])).

line(Sent, Status, Took) ->
    io_lib:format("~b\t~b\t~b~n", [?T0 + Sent, Status, Took]).
