%% Real runs, small: a server, its load, and functions whose manners are known.
-module(fairnif_exp_http_tests).

-include_lib("eunit/include/eunit.hrl").

-define(H, fairnif_exp_http).

%% Two seconds of plain NIFs on every scheduler, in the time of a run without.
a_plain_nif_that_stops_the_server_is_a_finding_in_time_test_() ->
    fairnif_exp_examples:with([{timeout, 120, fun() ->
        fairnif_check_repeat:until_it_holds(fun stops_the_server/0)
    end}]).

stops_the_server() ->
    {Us, {ok, #{ok := true, rows := Rows} = Result}} =
        timer:tc(fun() ->
                         fairnif_experiment:run(?H, #{scale => quick, modes => [idle, normal, auto],
                                  durations => [2000], at_once => [8], window => 3000})
                 end),
    %% Three runs of 5 s, three nodes; the one that was blocked is killed.
    ?assert(Us < 60000000),
    [Idle, Plain, Auto] = Rows,
    #{finding := Finding, light := #{max_us := Max, silence_ms := Silence}} = Plain,
    ?assertMatch({match, _}, re:run(Finding, "no light request was answered for|answered no")),
    ?assert(Max > 1000000 andalso Silence >= 1000),
    [?assertMatch(#{finding := undefined, light := #{failed := 0, unanswered := 0}}, R)
     || R <- [Idle, Auto]],
    assert_row(Idle, undefined),
    assert_row(Auto, spinwork_fair),
    ?assert(iolist_size(fairnif_check_json:encode(Result)) > 1000),
    Text = unicode:characters_to_binary(fairnif_experiment:format(?H, Result)),
    fairnif_check_said:contains(Text, ["8 x spinwork 2 s", "plain NIF", "fairnif AUTO", "Found: "]).

assert_row(Row, Function) ->
    #{function := Of, light := Light, whole := Whole, timeline := Timeline} = Row,
    ?assertEqual(Function, Of),
    #{due := Due, requests_per_s := PerS, p50_us := P50, p99_us := P99, max_us := Max} = Light,
    ?assert(Due >= 1150 andalso Due =< 1250),
    ?assert(PerS > 350 andalso PerS < 450),
    ?assert(P50 =< P99 andalso P99 =< Max),
    ?assertEqual([250 * N || N <- lists:seq(0, 11)], [T || #{t_ms := T} <- Timeline]),
    [assert_scheduling(S) || S <- [Whole | Timeline]].

assert_scheduling(#{use := Use, dirty_cpu_use := Dirty, queues := Queues, dirty_queues := DirtyQs,
                    late_ms := Late}) ->
    Online = length(Use),
    ?assert(Online >= 1),
    ?assert(lists:all(fun(U) -> U >= 0 andalso U =< 1.5 end, Use ++ Dirty)),
    ?assertEqual({Online, 2, Online}, {length(Queues), length(DirtyQs), length(Late)}).

what_fails_or_is_missing_says_so_and_the_others_continue_test_() ->
    fairnif_exp_examples:with([{timeout, 300, fun() ->
        fairnif_check_repeat:until_it_holds(fun what_fails_or_is_missing/0)
    end}]).

what_fails_or_is_missing() ->
    Bad = [{spinwork, "halt(7)"}, {spinwork_fair, "error({oops, Us})"},
           {spinwork_threaded, absent}],
    {ok, #{ok := Ok, rows := Rows} = Result} =
        fairnif_check_stand_in:with_spinsleep(
          Bad, fun() ->
                       fairnif_experiment:run(?H, #{scale => quick, window => 1000,
                                modes => [idle, normal, by_hand, threaded, auto]})
               end),
    [Idle, Normal, ByHand, Threaded, Auto] = Rows,
    ?assertMatch(#{status := measured, finding := undefined}, Idle),
    ?assertMatch(#{status := measured, finding := undefined, heavy := #{done := N}}
                   when N > 0, ByHand),
    %% The node ends in the first heavy request.
    ?assertMatch({match, _}, re:run(maps:get(finding, Normal), "exit status 7")),
    ?assertMatch(#{heavy := #{done := 0}, light := #{failed := 0, unanswered := U}} when U > 0,
                 Normal),
    %% That request may come after the window has begun: what came before it was
    %% answered, and at the window's end nothing is.
    ?assertMatch(#{requests_per_s := R} when R == 0, lists:last(maps:get(timeline, Normal))),
    %% Cowboy answers what crashes with 500.
    ?assertMatch(#{status := measured, heavy := #{done := 0, failed := F}} when F > 0, Auto),
    ?assertMatch({match, _}, re:run(maps:get(finding, Auto), "heavy requests failed")),
    ?assertMatch(#{status := skipped, why := <<"spinsleep has no spinwork_threaded/1">>},
                 Threaded),
    ?assert(Ok),
    Text = unicode:characters_to_binary(fairnif_experiment:format(?H, Result)),
    fairnif_check_said:contains(Text, ["Skipped: fairnif THREADED: spinsleep has no", "Found: "]),
    ?assert(iolist_size(fairnif_check_json:encode(Result)) > 1000).

without_cowboy_it_says_how_to_get_it_test_() ->
    {timeout, 60, fun without_cowboy/0}.

without_cowboy() ->
    ?assertEqual(non_existing, code:which(cowboy)),
    {error, {failed, Text}} = fairnif_check_stand_in:with_spinsleep(
                                [], fun() -> fairnif_experiment:run(?H, #{scale => quick}) end),
    ?assertMatch({match, _}, re:run(Text, "tools/cowboy")),
    ?assertEqual(1, fairnif_check_stand_in:with_spinsleep(
                      [], fun() -> fairnif_cli:run(["experiment", "http", "--quick"]) end)).

without_h2load_it_says_what_to_install_test_() ->
    fairnif_exp_examples:with([fun() ->
        Path = os:getenv("PATH"),
        os:putenv("PATH", "/nonexistent"),
        try
            {error, {failed, Text}} = fairnif_experiment:run(?H, #{scale => quick}),
            ?assertMatch({match, _}, re:run(Text, "nghttp2-client"))
        after
            os:putenv("PATH", Path)
        end
    end]).

a_promise_is_kept_or_not_by_the_medians_of_the_repeats_test() ->
    Rows = [row(idle, 1, 500), row(idle, 2, 700),
            row(erlang, 1, 1000), row(erlang, 2, 3000), row(erlang, 3, 2000),
            row(auto, 1, 3000), row(auto, 2, 9000), row(auto, 3, 3900),
            row(yielding, 1, 4100), row(dirty, 1, 90000)],
    ?assertMatch([#{mode := idle, p99_us := 600.0, times_erlang := undefined, kept := undefined},
                  #{mode := erlang, p99_us := 2000, times_erlang := 1.0, kept := undefined},
                  #{mode := auto, p99_us := 3900, idle_p99_us := 600.0, erlang_p99_us := 2000,
                    times_erlang := 1.95, at_most := 2.0, kept := true},
                  #{mode := yielding, times_erlang := 2.05, kept := false},
                  #{mode := dirty, times_erlang := 45.0, at_most := undefined,
                    kept := undefined}],
                 ?H:compared(Rows)).

without_ordinary_erlang_nothing_is_kept_nor_broken_test() ->
    [Auto] = ?H:compared([row(auto, 1, 100)]),
    ?assertMatch(#{erlang_p99_us := undefined, times_erlang := undefined, kept := undefined}, Auto).

on_a_busy_machine_nothing_is_kept_nor_broken_test() ->
    Busy = fun(Row) -> Row#{others := 0.3} end,
    Of = fun(Rows) -> [K || #{mode := auto, kept := K} <- ?H:compared(Rows)] end,
    ?assertEqual([true], Of([row(erlang, 1, 1000), row(auto, 1, 1500)])),
    ?assertEqual([undefined], Of([Busy(row(erlang, 1, 1000)), row(auto, 1, 1500)])),
    ?assertEqual([undefined], Of([row(erlang, 1, 1000), Busy(row(auto, 1, 1500))])),
    %% One of three repeats was disturbed: the median is not.
    ?assertEqual([true], Of([row(erlang, N, 1000) || N <- [1, 2, 3]]
                            ++ [row(auto, 1, 1500), Busy(row(auto, 2, 9000)), row(auto, 3, 1500)])),
    Rows = [Busy(row(M, 1, 1000)) || M <- [idle, erlang, auto]],
    ?assertMatch({match, _}, re:run(text(Rows), "That cannot be said: other programs")),
    ?assertMatch({match, _}, re:run(text(Rows), "busy: doubt 3 of 3 runs")),
    ?assertEqual(nomatch, re:run(text(Rows), "It is in")).

the_table_says_which_promise_was_not_kept_test() ->
    Rows = [row(idle, 1, 500), row(erlang, 1, 1000), row(auto, 1, 1500), row(yielding, 1, 3000)],
    [?assertMatch({_, {match, _}}, {Part, re:run(text(Rows), Part)})
     || Part <- ["It is in 1 of 2",
                 "Above: 8 x spinwork 100 ms, fairnif NORMAL, 400 light/s: 3.0x",
                 "nothing .* 500 us", "ordinary Erlang .* 1.0x", "60 %, 0 %, 25 %"]].

text(Rows) ->
    unicode:characters_to_binary(
      fairnif_experiment:format(?H, #{ok => true, rows => Rows, compared => ?H:compared(Rows),
                  load => #{clients => 4, streams => 25}})).

a_finding_names_all_that_happened_test() ->
    Find = fun(Light, More) ->
                   Well = #{answered => 1, silence_ms => 10, failed => 0, unanswered => 0,
                            due => 100},
                   ?H:finding(maps:merge(#{light => maps:merge(Well, Light),
                                           heavy => undefined, silent => undefined}, More))
           end,
    ?assertEqual(undefined, Find(#{}, #{})),
    ?assertEqual(undefined, Find(#{silence_ms => 999}, #{})),
    ?assertEqual(<<"the server answered no light request">>, Find(#{answered => 0}, #{})),
    ?assertEqual(<<"no light request was answered for 2.50 s; 7 of 100 had no answer a second "
                   "after the window; 3 of 100 were answered with an error; the node itself: "
                   "no answer within 5 s; 2 heavy requests failed">>,
                 Find(#{silence_ms => 2500, unanswered => 7, failed => 3},
                      #{silent => <<"no answer within 5 s">>, heavy => #{failed => 2}})).

row(Mode, Repeat, P99) ->
    Idle = Mode =:= idle,
    #{mode => Mode, title => list_to_binary(fairnif_exp_http_plan:title(Mode)),
      job => case Idle of true -> undefined; false -> spinwork end,
      duration_ms => case Idle of true -> undefined; false -> 100 end,
      at_once => case Idle of true -> 0; false -> 8 end, rate => 400, repeat => Repeat,
      status => measured, finding => undefined, others => 0.1,
      light => #{p50_us => P99 div 2, p99_us => P99, max_us => 2 * P99, requests_per_s => 400.0,
                 failed => 0, unanswered => 0},
      heavy => undefined,
      whole => #{use => [0.5, 0.7], dirty_cpu_use => [0.0], other_use => 0.25, queues => [1.0],
                 dirty_queues => [0.0]}}.
