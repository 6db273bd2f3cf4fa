-module(fairnif_check_share_tests).

-include_lib("eunit/include/eunit.hrl").

-export([measure/2]).

-define(S, fairnif_check_share).
-define(SHORT, #{time_ms => 400, alone_ms => 100}).

%% Margins are wide: the machine may be busy.

the_same_work_leaves_about_half_test_() ->
    [in_peer({work, Mix}, #{mix => Mix},
             fun(#{share := Share, finished := true}) ->
                     ?assert(Share > 0.3),
                     ?assert(Share < 0.7)
             end) || Mix <- ?S:mixes()].

a_function_that_sleeps_leaves_nearly_all_test_() ->
    in_peer(sleep, #{}, fun(#{share := Share}) -> ?assert(Share > 0.7) end).

a_function_that_keeps_the_scheduler_leaves_nothing_test_() ->
    in_peer(block, #{}, fun(#{share := Share}) -> ?assert(Share < 0.1) end).

a_call_that_never_ends_is_measured_while_it_runs_test_() ->
    in_peer(endless, #{patience_ms => 200},
            fun(#{share := Share, finished := false, calls := 0}) ->
                    ?assert(Share > 0.2),
                    ?assert(Share < 0.9)
            end).

very_short_calls_are_counted_in_batches_test_() ->
    in_peer(nothing, #{},
            fun(#{calls := Calls, share := Share, beside_samples := Samples}) ->
                    ?assert(Calls > 10000),
                    ?assert(length(Samples) =< 1000),
                    ?assert(Share < 0.95)
            end).

what_the_function_raises_is_a_value_test_() ->
    {timeout, 60, fun() ->
        ?assertEqual({error, {error, oops}},
                     ?S:measure(fun() -> error(oops) end, ?SHORT)),
        ?assertEqual({error, {exit, killed}},
                     ?S:measure(fun() -> exit(self(), kill),
                                         timer:sleep(1000) end, ?SHORT))
    end}.

the_neighbour_ends_with_the_measurement_test_() ->
    {timeout, 60, fun() ->
        Before = length(processes()),
        {ok, _} = ?S:measure(fun() -> timer:sleep(1) end, ?SHORT),
        fairnif_test:eventually(fun() -> length(processes()) =< Before end)
    end}.

%% ---- in the peer ----

measure(Manner, Opts) ->
    ?S:measure(fun() -> behave(Manner) end, Opts).

behave({work, Mix}) -> [?S:work(Mix) || _ <- lists:seq(1, 1000)];
behave(sleep) -> timer:sleep(20);
behave(block) -> process_flag(priority, max), busy(now_ms() + 50),
                 process_flag(priority, normal);
behave(endless) -> _ = ?S:work(sort), behave(endless);
behave(nothing) -> ok.

busy(Until) ->
    case now_ms() < Until of
        true -> busy(Until);
        false -> done
    end.

now_ms() ->
    erlang:monotonic_time(millisecond).

in_peer(Manner, Opts, Test) ->
    fairnif_check_repeat:in_peer(?S:flags(), {?MODULE, measure, [Manner, maps:merge(?SHORT, Opts)]},
                               fun({ok, Result}) -> Test(Result) end).
