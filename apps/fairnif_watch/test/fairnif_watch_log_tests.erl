%% A limit of lines a minute; how many were suppressed.
-module(fairnif_watch_log_tests).

-include_lib("eunit/include/eunit.hrl").

-export([log/2]).

%% Answers of allow/2 at these times.
allowed(PerMinute, Times) ->
    {Answers, _} = lists:mapfoldl(fun(At, Limit) ->
                                          case fairnif_watch_log:allow(At, Limit) of
                                              {yes, Suppressed, Next} -> {Suppressed, Next};
                                              {no, Next} -> {no, Next}
                                          end
                                  end, fairnif_watch_log:new(PerMinute), Times),
    Answers.

so_many_a_minute_and_no_more_test() ->
    ?assertEqual([0, 0, no, no, 2], allowed(2, [0, 1, 2, 59999, 60000])).

none_is_none_test() ->
    ?assertEqual([no, no], allowed(0, [0, 100000])).

the_minute_begins_with_the_first_line_of_it_test() ->
    ?assertEqual([0, no, 1, no], allowed(1, [-500, 59499, 59500, 119499])).

%% @private A Logger handler.
log(#{msg := {report, #{fairnif_watch := _} = Report}, level := Level}, #{config := Pid}) ->
    {Format, Args} = fairnif_watch_log:report(Report),
    Pid ! {logged, Level, lists:flatten(io_lib:format(Format, Args))};
log(_, _) ->
    ok.

finding(Severity, Ongoing) ->
    #{id => 1, detector => schedulers_asleep, severity => Severity, ongoing => Ongoing,
      duration_ms => 0.0, sentence => <<"Schedulers sleep.">>, remedy => none}.

block(Severity, Ongoing, Ms) ->
    (finding(Severity, Ongoing))#{detector := scheduler_blocked, duration_ms := Ms,
                                  sentence := <<"Blocked.">>}.

logged() -> receive {logged, Level, Text} -> [{Level, Text} | logged()] after 0 -> [] end.

%% What of these is logged, by a limit that allows all.
lines(Findings) ->
    ok = logger:add_handler(?MODULE, ?MODULE, #{config => self(), level => all,
                                                filter_default => log}),
    Default = logger:get_handler_config(default),
    _ = logger:set_handler_config(default, level, none),
    try
        _ = lists:foldl(fun({What, Finding, At}, Limit) ->
                                element(2, fairnif_watch_log:finding(What, Finding, At, Limit))
                        end, fairnif_watch_log:new(3), Findings),
        logged()
    after
        logger:remove_handler(?MODULE),
        case Default of
            {ok, #{level := Level}} -> logger:set_handler_config(default, level, Level);
            _ -> ok
        end
    end.

new_worse_and_ended_errors_are_logged_and_the_rest_is_not_test() ->
    Lines = lines([{new, finding(warning, true), 0}, {changed, finding(warning, true), 1},
                   {worse, finding(error, true), 2}, {ended, finding(error, false), 3}]),
    ?assertEqual([{warning, "warning: schedulers_asleep: Schedulers sleep."},
                  {error, "error: schedulers_asleep: Schedulers sleep."},
                  {notice, "over: error: schedulers_asleep: Schedulers sleep."}], Lines),
    ?assertEqual([], lines([{ended, finding(warning, false), 0}])).

a_block_is_logged_once_when_it_is_over_test() ->
    ?assertEqual([{error, "error: scheduler_blocked: Blocked."}],
                 lines([{new, block(warning, true, 10.0), 0}, {worse, block(error, true, 100.0), 1},
                        {changed, block(error, true, 1100.0), 2},
                        {worse, block(error, true, 1200.0), 3},
                        {ended, block(error, false, 1200.0), 3}])),
    ?assertEqual([{warning, "warning: scheduler_blocked: Blocked."}],
                 lines([{new, block(warning, true, 10.0), 0},
                        {ended, block(warning, false, 12.0), 1}])).

one_that_lasts_long_is_logged_while_it_does_and_its_end_test() ->
    Long = [{changed, block(error, true, Ms), 0} || Ms <- [9000.0, 10000.0, 11000.0]],
    ?assertEqual([{error, "error: scheduler_blocked: Blocked."},
                  {notice, "over: error: scheduler_blocked: Blocked."}],
                 lines(Long ++ [{ended, block(error, false, 11500.0), 1}])).

the_line_after_a_pause_says_how_many_were_suppressed_test() ->
    Many = [{new, finding(error, true), At} || At <- lists:seq(1, 10)],
    Lines = lines(Many ++ [{new, finding(error, true), 61000}]),
    ?assertEqual(4, length(Lines)),
    {_, Last} = lists:last(Lines),
    ?assertNotEqual(nomatch, string:find(Last, "7 findings before this one were not logged")).

the_default_handler_lets_it_through_test() ->
    %% It stops what has a domain that is not OTP's: a finding was once not logged.
    {ok, #{filters := Filters, filter_default := Otherwise}} =
        case logger:get_handler_config(default) of
            {ok, #{filters := [_ | _]} = Config} -> {ok, Config};
            _ -> {ok, #{filters => [{no_domain, {fun logger_filters:domain/2,
                                                 {log, undefined, []}}}],
                        filter_default => stop}}
        end,
    Self = self(),
    ok = logger:add_handler(?MODULE, ?MODULE,
                            #{config => Self, level => all, filter_default => Otherwise,
                              filters => [F || {Name, _} = F <- Filters, Name =/= remote_gl]}),
    try
        _ = fairnif_watch_log:finding(new, finding(error, true), 0, fairnif_watch_log:new(1)),
        ?assertMatch([{error, _}], logged())
    after
        logger:remove_handler(?MODULE)
    end.
