%% Findings: made, told of once, ended, kept, added up.
-module(fairnif_watch_store_tests).

-include_lib("eunit/include/eunit.hrl").

new() -> new(#{}).
new(Changes) ->
    fairnif_watch_store:new(maps:merge(#{findings_kept => 3, metrics_functions => 2}, Changes)).

issue(Key) -> issue(Key, #{}).
issue(Key, Changes) ->
    maps:merge(#{key => Key, severity => warning, subject => node, sentence => <<"It is.">>,
                 since => 0, ongoing => true}, Changes).

%% Gives the store these lists of issues, one after the other; what it says each time.
told(Lists) -> told(Lists, new()).
told(Lists, Store) ->
    lists:mapfoldl(fun(Issues, S) ->
                           {Changes, Next} = fairnif_watch_store:issues(scheduler_blocked, Issues,
                                                                        S),
                           {[{What, maps:get(id, F)} || {What, F} <- Changes], Next}
                   end, Store, Lists).

an_issue_becomes_one_finding_and_ends_once_test() ->
    {Said, Store} = told([[issue(a)], [issue(a)], [], []]),
    ?assertEqual([[{new, 1}], [], [{ended, 1}], []], Said),
    ?assertMatch([#{ongoing := false, id := 1}], fairnif_watch_store:findings(Store)).

what_comes_again_after_its_end_is_a_new_finding_test() ->
    {Said, _} = told([[issue(a)], [], [issue(a)]]),
    ?assertEqual([[{new, 1}], [{ended, 1}], [{new, 2}]], Said).

a_finding_gets_worse_and_never_better_while_it_lasts_test() ->
    {Said, Store} = told([[issue(a)], [issue(a, #{severity => error})], [issue(a)]]),
    ?assertEqual([[{new, 1}], [{worse, 1}], []], Said),
    ?assertMatch([#{severity := error}], fairnif_watch_store:findings(Store)).

the_end_that_an_issue_tells_of_itself_is_told_once_test() ->
    {Said, Store} = told([[issue(a)], [issue(a, #{ongoing => false, duration_ms => 5.0})], []]),
    ?assertEqual([[{new, 1}], [{ended, 1}], []], Said),
    ?assertMatch([#{duration_ms := 5.0}], fairnif_watch_store:findings(Store)).

so_many_ended_ones_are_kept_the_newest_first_and_those_that_last_always_test() ->
    {_, Store} = told([[issue(old)] ++ [issue({N}) || N <- lists:seq(1, 10)], [issue(old)]]),
    Kept = fairnif_watch_store:findings(Store),
    ?assertEqual([{11, false}, {10, false}, {9, false}, {1, true}],
                 [{Id, Ongoing} || #{id := Id, ongoing := Ongoing} <- Kept]).

of_one_detector_nothing_ends_by_what_another_says_test() ->
    {_, Store} = told([[issue(a)]]),
    ?assertMatch({[], _}, fairnif_watch_store:issues(collapse, [], Store)).

blocked(Store, Name, Ms) ->
    Culprit = (fairnif_watch_culprit:none())#{name := Name},
    {_, Next} = told([[issue({Name, Ms}, #{culprit => Culprit, ongoing => false,
                                           duration_ms => Ms})]], Store),
    Next.

blocked_time_is_added_up_for_so_many_culprits_and_then_for_others_test() ->
    Names = [<<"a">>, <<"b">>, <<"c">>, <<"a">>, <<"d">>],
    Store = lists:foldl(fun(Name, S) -> blocked(S, Name, 10.0) end, new(), Names),
    #{blocked := Blocked} = fairnif_watch_store:totals(Store),
    ?assertEqual(#{<<"a">> => {2, 20000000}, <<"b">> => {1, 10000000},
                   <<"other">> => {2, 20000000}}, Blocked).

held(Changes) ->
    Now = erlang:system_time(microsecond),
    Culprit = (fairnif_watch_culprit:none())#{kind := emulator, name := <<"emulator+0x1">>,
                                              pid := self()},
    {_, Store} = told([[issue(a, maps:merge(#{since => Now - 200000, culprit => Culprit,
                                              duration_ms => 200.0, ongoing => false}, Changes))]]),
    {Now, Store}.

gc_named(Collections, Store) ->
    {_, Next} = fairnif_watch_store:learned(1, #{}, Collections, Store),
    [#{culprit := #{kind := Kind}}] = fairnif_watch_store:findings(Next),
    Kind.

a_long_collection_at_that_time_is_what_it_was_test() ->
    {Now, Store} = held(#{}),
    ?assertEqual(gc, gc_named([{Now + 1000, self(), 190}], Store)),
    %% Too short to be it; began before it; ended long after it.
    ?assertEqual(emulator, gc_named([{Now + 1000, self(), 99}], Store)),
    ?assertEqual(emulator, gc_named([{Now - 50000, self(), 190}], Store)),
    ?assertEqual(emulator, gc_named([{Now + 2000000, self(), 190}], Store)),
    ?assertEqual(emulator, gc_named([], Store)).

what_helps_depends_on_what_it_was_test() ->
    {Now, Store} = held(#{}),
    {_, Next} = fairnif_watch_store:learned(1, #{}, [{Now + 1000, self(), 190}], Store),
    Remedy = fairnif_watch_detect_blocked:remedy(gc),
    ?assertMatch([#{remedy := Remedy}], fairnif_watch_store:findings(Next)),
    ?assertNotEqual(Remedy, fairnif_watch_detect_blocked:remedy()).

a_collection_of_another_process_is_not_it_nor_where_none_is_known_test() ->
    {Now, Store} = held(#{}),
    ?assertEqual(gc, gc_named([{Now + 1, self(), 200}], Store)),
    ?assertEqual(emulator, gc_named([{Now + 1, list_to_pid("<0.1.0>"), 200}], Store)),
    Unknown = (fairnif_watch_culprit:none())#{kind := emulator},
    {Now2, Store2} = held(#{culprit => Unknown}),
    ?assertEqual(emulator, gc_named([{Now2 + 1, self(), 200}], Store2)).

a_lasting_finding_began_when_it_was_first_seen_to_test() ->
    {_, Store} = told([[issue(a, #{since => 1000})]]),
    {_, Next} = told([[issue(a, #{since => 9000, sentence => <<"It goes on.">>})]], Store),
    ?assertMatch([#{since := 1000}], fairnif_watch_store:findings(Next)).

%% The module that loaded the library may have been learned by then, or not.
blocked_time_is_added_up_by_what_the_stack_told_test() ->
    Culprit = fun(Name) -> (fairnif_watch_culprit:none())#{kind := nif, name := Name} end,
    {_, First} = held(#{culprit => Culprit(<<"f (my.so)">>)}),
    {_, Both} = told([[issue(b, #{culprit => Culprit(<<"my: f (my.so)">>), ongoing => false,
                                  duration_ms => 100.0})]], First),
    ?assertMatch(#{blocked := #{<<"f (my.so)">> := {2, 300000000}}},
                 fairnif_watch_store:totals(Both)).

an_answer_that_comes_after_the_finding_is_gone_is_nothing_test() ->
    ?assertMatch({[], _}, fairnif_watch_store:learned(7, #{registered => x}, [], new())),
    ?assertMatch({[], _}, fairnif_watch_store:learned(0, timeout, [], new())).

what_was_learned_survives_the_next_report_test() ->
    Culprit = (fairnif_watch_culprit:none())#{kind := nif, name := <<"f (my.so)">>,
                                              library := <<"/my.so">>, symbol := <<"f">>},
    Issue = issue(a, #{culprit => Culprit}),
    {_, Store} = told([[Issue]]),
    {[{changed, _}], Learned} = fairnif_watch_store:learned(1, #{module => my}, [], Store),
    {_, Next} = told([[issue(a, #{culprit => Culprit, sentence => <<"Longer.">>})]], Learned),
    ?assertMatch([#{culprit := #{module := my}, sentence := <<"Longer.">>}],
                 fairnif_watch_store:findings(Next)).

a_later_stack_that_shows_less_does_not_unname_the_culprit_test() ->
    Named = (fairnif_watch_culprit:none())#{kind := nif, mfa := {m, f, 1}, name := <<"m:f/1">>},
    Less = [(fairnif_watch_culprit:none()),
            (fairnif_watch_culprit:none())#{kind := emulator, name := <<"emulator+0x1">>},
            (fairnif_watch_culprit:none())#{kind := nif, name := <<"f (my.so)">>}],
    Culprit = fun(Issues) ->
                      {_, Store} = told([[issue(a, #{culprit => C})] || C <- Issues]),
                      [#{culprit := #{name := Name}}] = fairnif_watch_store:findings(Store),
                      Name
              end,
    [begin
         ?assertEqual(<<"m:f/1">>, Culprit([Named, L])),
         ?assertEqual(<<"m:f/1">>, Culprit([L, Named]))
     end || L <- Less].
