%% Findings: made, reported once, ended, kept, added up.
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
feed(Lists) -> feed(Lists, new()).
feed(Lists, Store) ->
    lists:mapfoldl(fun(Issues, S) ->
                           {Changes, Next} = fairnif_watch_store:issues(scheduler_blocked, Issues,
                                                                        S),
                           {[{What, maps:get(id, F)} || {What, F} <- Changes], Next}
                   end, Store, Lists).

an_issue_becomes_one_finding_and_ends_once_test() ->
    {Said, Store} = feed([[issue(a)], [issue(a)], [], []]),
    ?assertEqual([[{new, 1}], [], [{ended, 1}], []], Said),
    ?assertMatch([#{ongoing := false, id := 1}], fairnif_watch_store:findings(Store)).

what_comes_again_after_its_end_is_a_new_finding_test() ->
    {Said, _} = feed([[issue(a)], [], [issue(a)]]),
    ?assertEqual([[{new, 1}], [{ended, 1}], [{new, 2}]], Said).

a_finding_gets_worse_and_never_better_while_it_lasts_test() ->
    {Said, Store} = feed([[issue(a)], [issue(a, #{severity => error})], [issue(a)]]),
    ?assertEqual([[{new, 1}], [{worse, 1}], []], Said),
    ?assertMatch([#{severity := error}], fairnif_watch_store:findings(Store)).

the_end_that_an_issue_has_itself_is_reported_once_test() ->
    {Said, Store} = feed([[issue(a)], [issue(a, #{ongoing => false, duration_ms => 5.0})], []]),
    ?assertEqual([[{new, 1}], [{ended, 1}], []], Said),
    ?assertMatch([#{duration_ms := 5.0}], fairnif_watch_store:findings(Store)).

%% Where the collector was late the report of the end is the first one that says how long it was.
what_is_worse_at_its_end_is_reported_as_worse_and_then_as_over_test() ->
    Grave = issue(a, #{severity => error, ongoing => false}),
    {Said, Store} = feed([[issue(a)], [Grave], []]),
    ?assertEqual([[{new, 1}], [{worse, 1}, {ended, 1}], []], Said),
    ?assertMatch([#{severity := error, ongoing := false}], fairnif_watch_store:findings(Store)).

what_is_over_when_it_is_seen_is_new_before_it_ends_test() ->
    Over = fun(Key) -> issue(Key, #{ongoing => false}) end,
    {Said, _} = feed([[Over(a), Over(b)]]),
    ?assertEqual([[{new, 1}, {ended, 1}, {new, 2}, {ended, 2}]], Said).

so_many_ended_ones_are_kept_the_newest_first_and_those_that_last_always_test() ->
    {_, Store} = feed([[issue(old)] ++ [issue({N}) || N <- lists:seq(1, 10)], [issue(old)]]),
    Kept = fairnif_watch_store:findings(Store),
    ?assertEqual([{11, false}, {10, false}, {9, false}, {1, true}],
                 [{Id, Ongoing} || #{id := Id, ongoing := Ongoing} <- Kept]).

of_one_detector_nothing_ends_by_what_another_says_test() ->
    {_, Store} = feed([[issue(a)]]),
    ?assertMatch({[], _}, fairnif_watch_store:issues(schedulers_asleep, [], Store)).

blocked(Store, Name, Ms) ->
    Culprit = (fairnif_watch_culprit:none())#{name := Name},
    {_, Next} = feed([[issue({Name, Ms}, #{culprit => Culprit, ongoing => false,
                                           duration_ms => Ms})]], Store),
    Next.

blocked_time_is_added_up_for_so_many_culprits_and_then_for_others_test() ->
    Names = [<<"a">>, <<"b">>, <<"c">>, <<"a">>, <<"d">>],
    Store = lists:foldl(fun(Name, S) -> blocked(S, Name, 10.0) end, new(), Names),
    #{blocked := Blocked} = fairnif_watch_store:totals(Store),
    ?assertEqual(#{<<"a">> => {2, 20000000}, <<"b">> => {1, 10000000},
                   <<"other">> => {2, 20000000}}, Blocked).

blocked(Changes) ->
    Now = erlang:system_time(microsecond),
    Culprit = (fairnif_watch_culprit:none())#{kind := emulator, name := <<"emulator+0x1">>,
                                              pid := self()},
    {_, Store} = feed([[issue(a, maps:merge(#{since => Now - 200000, culprit => Culprit,
                                              duration_ms => 200.0, ongoing => false}, Changes))]]),
    {Now, Store}.

gc_named(Collections, Store) ->
    {_, Next} = fairnif_watch_store:learned(1, #{}, Collections, Store),
    [#{culprit := #{kind := Kind}}] = fairnif_watch_store:findings(Next),
    Kind.

a_long_collection_at_that_time_is_what_it_was_test() ->
    {Now, Store} = blocked(#{}),
    ?assertEqual(gc, gc_named([{Now + 1000, self(), 190}], Store)),
    %% Too short to be it; began before it; ended long after it.
    ?assertEqual(emulator, gc_named([{Now + 1000, self(), 99}], Store)),
    ?assertEqual(emulator, gc_named([{Now - 50000, self(), 190}], Store)),
    ?assertEqual(emulator, gc_named([{Now + 2000000, self(), 190}], Store)),
    ?assertEqual(emulator, gc_named([], Store)).

what_helps_depends_on_what_it_was_test() ->
    {Now, Store} = blocked(#{subject => {scheduler, 1}}),
    {_, Next} = fairnif_watch_store:learned(1, #{}, [{Now + 1000, self(), 190}], Store),
    ?assertMatch([#{remedy := <<"Keep that process's heap small", _/binary>>}],
                 fairnif_watch_store:findings(Next)).

a_collection_of_another_process_is_not_it_nor_where_none_is_known_test() ->
    {Now, Store} = blocked(#{}),
    ?assertEqual(gc, gc_named([{Now + 1, self(), 200}], Store)),
    ?assertEqual(emulator, gc_named([{Now + 1, list_to_pid("<0.1.0>"), 200}], Store)),
    Unknown = (fairnif_watch_culprit:none())#{kind := emulator},
    {Now2, Store2} = blocked(#{culprit => Unknown}),
    ?assertEqual(emulator, gc_named([{Now2 + 1, self(), 200}], Store2)).

a_lasting_finding_began_when_it_was_first_seen_to_test() ->
    {_, Store} = feed([[issue(a, #{since => 1000})]]),
    {_, Next} = feed([[issue(a, #{since => 9000, sentence => <<"It goes on.">>})]], Store),
    ?assertMatch([#{since := 1000}], fairnif_watch_store:findings(Next)).

%% The module that loaded the library may have been learned by then, or not.
blocked_time_is_added_up_by_what_the_stack_said_test() ->
    Culprit = fun(Name) -> (fairnif_watch_culprit:none())#{kind := nif, name := Name} end,
    {_, First} = blocked(#{culprit => Culprit(<<"f (my.so)">>)}),
    {_, Both} = feed([[issue(b, #{culprit => Culprit(<<"my: f (my.so)">>), ongoing => false,
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
    {_, Store} = feed([[Issue]]),
    {[{changed, _}], Learned} = fairnif_watch_store:learned(1, #{module => my}, [], Store),
    {_, Next} = feed([[issue(a, #{culprit => Culprit, sentence => <<"Longer.">>})]], Learned),
    ?assertMatch([#{culprit := #{module := my}, sentence := <<"Longer.">>}],
                 fairnif_watch_store:findings(Next)).

%% One look says where, another for whom, and a stack has the first of a function's names.
what_runs_beside_a_block_is_put_together_test() ->
    Row = fun(F, Threads, Pids) -> #{mfa => {m, F, 1}, threads => Threads, pids => Pids} end,
    Thread = {dirty_cpu, 1},
    Beside = fun(Facts) ->
                     {_, Store} = feed([[issue(a, #{})]]),
                     Learned = lists:foldl(fun(Rows, S) ->
                                                   element(2, fairnif_watch_store:learned(
                                                                1, #{beside => Rows}, [], S))
                                           end, Store, Facts),
                     {_, Next} = feed([[issue(a, #{sentence => <<"Longer.">>})]], Learned),
                     [#{evidence := #{beside := Rows}}] = fairnif_watch_store:findings(Next),
                     Rows
             end,
    Both = [Row(f, [Thread], [self()])],
    ?assertEqual(Both, Beside([[Row(f, [Thread], [])], [Row(f, [], [self()])]])),
    ?assertEqual(Both, Beside([[Row(e, [Thread], []), Row(f, [], [self()])],
                               [Row(e, [Thread], [])]])),
    Two = [Row(e, [Thread], []), Row(f, [], [self()]), Row(g, [], [self()])],
    ?assertEqual(Two, Beside([Two])).

what_lasts_and_is_no_block_has_its_latest_culprit_test() ->
    [Nif, Os] = [issue(a, #{culprit => (fairnif_watch_culprit:none())#{kind := Kind, mfa := Mfa}})
                 || {Kind, Mfa} <- [{nif, {m, f, 1}}, {os, none}]],
    Tell = fun(Issue, S) -> fairnif_watch_store:issues(late_wakeups, [Issue], S) end,
    {_, Store} = Tell(Os, element(2, Tell(Nif, new()))),
    ?assertMatch([#{culprit := #{kind := os}}], fairnif_watch_store:findings(Store)).

a_later_stack_that_shows_less_does_not_unname_the_culprit_test() ->
    Named = (fairnif_watch_culprit:none())#{kind := nif, mfa := {m, f, 1}, name := <<"m:f/1">>},
    Less = [(fairnif_watch_culprit:none()),
            (fairnif_watch_culprit:none())#{kind := emulator, name := <<"emulator+0x1">>},
            (fairnif_watch_culprit:none())#{kind := nif, name := <<"f (my.so)">>}],
    Culprit = fun(Issues) ->
                      {_, Store} = feed([[issue(a, #{culprit => C})] || C <- Issues]),
                      [#{culprit := #{name := Name}}] = fairnif_watch_store:findings(Store),
                      Name
              end,
    [begin
         ?assertEqual(<<"m:f/1">>, Culprit([Named, L])),
         ?assertEqual(<<"m:f/1">>, Culprit([L, Named]))
     end || L <- Less].

%% A destructor has no process; who ran before it has, and it is later stacks that tell of that one.
a_destructor_gets_no_later_stacks_process_test() ->
    Destructor = (fairnif_watch_culprit:none())#{kind := destructor, name := <<"destructor">>},
    Less = (fairnif_watch_culprit:none())#{kind := emulator, name := <<"emulator+0x1">>},
    {_, Store} = feed([[issue(a, #{culprit => C, evidence => E})]
                       || {C, E} <- [{Destructor, #{cause => native, blocked_ns => 1}},
                                     {Less, #{cause => emulator, blocked_ns => 2,
                                              process => self()}}]]),
    ?assertMatch([#{culprit := #{kind := destructor}, evidence := Evidence}]
                   when Evidence =:= #{cause => native, blocked_ns => 2},
                 fairnif_watch_store:findings(Store)).

%% What blocks a scheduler, as fairnif_watch_detect_blocked says it.
block(Stack) ->
    Event = #{event => blocked, id => 1, kind => normal, number => 1, blocked_ns => 50000000,
              stack => Stack, fairnif => none, process => none, state => running, syscall => none,
              stack_note => <<"-">>},
    {Issues, _} = fairnif_watch_detect_blocked:observe({event, Event, 1000000},
                                                       #{warn_ms => 10, error_ms => 100}, #{}),
    Issues.

frame(In, Symbol, Nif) ->
    #{address => 4096, library => <<"/lib/my.so">>, offset => 16#12f0, function_offset => none,
      symbol => Symbol, symbol_offset => 4, in => In, nif => Nif, by => none}.

%% Of the stacks of a hold, one after the other: the finding's name, its sentence, its stack.
blocked_by(Stacks) ->
    {_, Store} = feed([block(Stack) || Stack <- Stacks]),
    [#{culprit := #{name := Name}, sentence := Sentence, stack := Stack, remedy := Remedy}]
        = fairnif_watch_store:findings(Store),
    {Name, Sentence, Stack, Remedy}.

a_finding_says_in_words_who_its_culprit_is_whatever_came_last_test() ->
    Nif = [frame(library, <<"inner">>, none), frame(library, <<"work">>, {my, work, 1}),
           frame(jit, none, none)],
    Others = [[], [frame(emulator, <<"erts_continue_exit_process">>, none)],
              [frame(library, <<"ENGINE_finish">>, none)], [frame(library, none, none)]],
    [begin
         {Name, Sentence, Stack, Remedy} = blocked_by(Stacks),
         ?assertEqual(<<"my:work/1">>, Name),
         ?assertEqual(<<"Scheduler 1 has been blocked for 50 ms by my:work/1.">>, Sentence),
         ?assertEqual(Nif, Stack),
         ?assertMatch(<<"Make the call yield", _/binary>>, Remedy)
     end || Other <- Others, Stacks <- [[Nif, Other], [Other, Nif], [Other, Nif, Other]]].

whom_the_emulator_called_beats_whom_that_one_called_test() ->
    Called = [frame(library, <<"inner">>, none), frame(library, <<"outer">>, none),
              frame(emulator, none, none), frame(jit, none, none)],
    Cut = [frame(library, <<"inner">>, none)],
    [?assertMatch({<<"outer (my.so)">>,
                   <<"Scheduler 1 has been blocked for 50 ms by outer (my.so).">>, Called, _},
                   blocked_by(Stacks))
     || Stacks <- [[Called, Cut], [Cut, Called]]].

what_is_learned_of_a_culprit_is_in_the_sentence_too_test() ->
    {_, Store} = feed([block([frame(library, <<"f">>, none)])]),
    {[{changed, #{sentence := Sentence}}], _} =
        fairnif_watch_store:learned(1, #{module => my}, [], Store),
    ?assertEqual(<<"Scheduler 1 has been blocked for 50 ms by my: f (my.so).">>, Sentence).

two_functions_without_a_symbol_are_two_test() ->
    At = fun(N) -> [(frame(library, none, none))#{offset := N}, frame(jit, none, none)] end,
    ?assertMatch({<<"my.so+0x20">>,
                  <<"Scheduler 1 has been blocked for 50 ms by my.so+0x20.">>, _, _},
                 blocked_by([At(16#10), At(16#20)])).

places_without_a_symbol_do_not_use_up_the_names_of_totals_test() ->
    At = fun(N) ->
                 [#{culprit := Culprit}] = block([(frame(library, none, none))#{offset := N},
                                                  frame(jit, none, none)]),
                 issue({at, N}, #{culprit => Culprit, ongoing => false, duration_ms => 1.0})
         end,
    {_, Store} = feed([[At(N)] || N <- lists:seq(1, 9)]),
    {_, Next} = feed([[issue(b, #{culprit => (fairnif_watch_culprit:none())#{name := <<"m:f/1">>},
                                  ongoing => false, duration_ms => 1.0})]], Store),
    ?assertEqual(#{<<"my.so (no symbol)">> => {9, 9000000}, <<"m:f/1">> => {1, 1000000}},
                 maps:get(blocked, fairnif_watch_store:totals(Next))).
