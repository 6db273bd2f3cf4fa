%% Settings: every bound from both sides.
-module(fairnif_watch_config_tests).

-include_lib("eunit/include/eunit.hrl").

without_settings_the_defaults_are_in_force_test() ->
    {ok, Config} = fairnif_watch_config:check(#{}),
    [?assertEqual(Default, maps:get(Key, Config))
     || {Key, Default, _, _} <- fairnif_watch_config:table()].

every_default_stands_within_its_own_bounds_test() ->
    [?assert(is_integer(Default) andalso Default >= Min andalso Default =< Max)
     || {_, Default, {integer, Min, Max}, _} <- fairnif_watch_config:table()].

a_number_is_taken_up_to_its_bounds_and_refused_beyond_test_() ->
    [{atom_to_list(Key),
      fun() ->
              %% error_ms must not be below warn_ms: so it moves along.
              Along = fun(V) when Key =:= warn_ms -> #{Key => V, error_ms => 600000};
                         (V) when Key =:= error_ms -> #{Key => V, warn_ms => 1};
                         (V) -> #{Key => V}
                      end,
              ?assertMatch({ok, #{Key := Min}}, fairnif_watch_config:check(Along(Min))),
              ?assertMatch({ok, #{Key := Max}}, fairnif_watch_config:check(Along(Max))),
              [?assertMatch({error, {bad_config, [{Key, V, "an integer from" ++ _}]}},
                            fairnif_watch_config:check(Along(V)))
               || V <- [Min - 1, Max + 1, 1.5, "1", undefined]]
      end}
     || {Key, _, {integer, Min, Max}, _} <- fairnif_watch_config:table()].

a_switch_is_true_or_false_test() ->
    [begin
         ?assertMatch({ok, _}, fairnif_watch_config:check(#{Key => false})),
         ?assertMatch({error, {bad_config, [{Key, yes, _}]}},
                      fairnif_watch_config:check(#{Key => yes}))
     end || {Key, _, boolean, _} <- fairnif_watch_config:table()].

an_unknown_setting_is_an_error_that_names_it_test() ->
    ?assertEqual({error, {bad_config, [{warn, 10, "no such setting"}]}},
                 fairnif_watch_config:check(#{warn => 10})).

an_error_threshold_below_the_warning_is_refused_test() ->
    ?assertMatch({error, {bad_config, [{error_ms, 100, _}]}},
                 fairnif_watch_config:check(#{warn_ms => 200})),
    ?assertMatch({ok, _}, fairnif_watch_config:check(#{warn_ms => 100})).

all_that_is_wrong_is_reported_at_once_test() ->
    {error, {bad_config, Wrong}} = fairnif_watch_config:check(#{period_ms => 0, log => 1, x => y}),
    ?assertEqual([log, period_ms, x], lists:sort([Key || {Key, _, _} <- Wrong])).
