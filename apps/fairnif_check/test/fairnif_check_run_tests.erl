-module(fairnif_check_run_tests).

-include_lib("eunit/include/eunit.hrl").

-define(C, fairnif_check_run).

%% ---- what is asked for wrongly costs no node ----

what_cannot_be_measured_is_a_usage_error_test_() ->
    [{Part, {timeout, 60, fun() ->
          {error, {usage, Text}} = ?C:run(Source, Opts),
          ?assertNotEqual({Text, nomatch}, {Text, string:find(Text, Part)})
      end}}
     || {Source, Opts, Part} <-
            [{"foo(", #{}, "the expression, column 5: syntax error"},
             {"Bim", #{}, "variable 'Bim' is unbound"},
             {"N", #{against => "Bim"}, "--against: the expression, column 1"},
             {"N", #{beside => "Bim"}, "--beside: the expression, column 1"},
             {"N", #{file => "/nowhere/at/all"}, "cannot read /nowhere/at/all: no such file"},
             {"N", #{file => "/dev/null"}, "/dev/null is empty"},
             {"N", #{file => "/proc/self/statm", sizes => [1000000]},
              "and a size of 1000000 is asked for"},
             {"N", #{sizes => []}, "[] is not a list of sizes"},
             {42, #{}, "42 is not an expression"}]].

inputs_beyond_all_memory_are_unsure_test() ->
    {error, {unsure, Text}} = ?C:run("N", #{sizes => [1 bsl 50]}),
    ?assertNotEqual(nomatch, string:find(Text, "give smaller sizes")).

steps_are_counted_for_sizes_and_subjects_test_() ->
    [?_assertEqual(Steps, ?C:steps(Opts))
     || {Opts, Steps} <- [{#{}, 12}, {#{sizes => [1]}, 6}, {#{sizes => [1], against => "N"}, 11},
                          {#{file => "f"}, 6}, {#{file => "f", sizes => [1, 2]}, 12}]].

%% ---- what only a node can say ----

an_init_that_does_not_work_is_failed_and_no_verdict_test_() ->
    [{timeout, 60, fun() ->
          {error, {failed, Text}} = ?C:run("Init", short(#{timeout_ms => Ms, init => Init})),
          ?assertNotEqual({Text, nomatch}, {Text, string:find(Text, Part)})
      end}
     || {Init, Ms, Part} <- [{"receive after infinity -> ok end", 1000,
                              "--init has not returned within 1000"},
                             {"erlang:halt(5)", 10000, "ended with exit status 5"}]].

%% Nothing is blamed on the function that is the checker's own.
an_error_of_the_lab_is_failed_and_no_verdict_test_() ->
    {timeout, 60, fun() ->
        %% Of no batch there is no median.
        {error, {failed, Text}} = ?C:run("N", short(#{runs => 0})),
        ?assertMatch({match, _}, re:run(Text, "the checker itself failed, in fairnif_check_"))
    end}.

%% ---- what a function does that does not return: reported, within a time limit ----

what_ends_a_call_is_the_verdict_and_the_sentence_test_() ->
    [{title(Source), {timeout, 120, fun() ->
          {Us, {ok, Result}} =
              timer:tc(fun() -> ?C:run(Source, short(Opts)) end),
          #{exit := 1,
            subjects := [#{verdicts := [Returns | Others], sizes := [#{error := Error}]}]}
              = Result,
          ?assertMatch({match, _, _}, {re_run(Error, Pattern), Error, Pattern}),
          ?assertMatch(#{property := crash, status := fail, sentence := Error}, Returns),
          ?assertEqual([unsure], lists:usort([S || #{status := S} <- Others])),
          ?assert(Us < 60000000)
      end}}
     || {Source, Opts, Pattern} <-
            [{"error(oops)", #{}, "^raises error:oops$"},
             {"exit(oops)", #{}, "^raises exit:oops$"},
             {"throw({N, oops})", #{}, "^raises throw:{1024,oops}$"},
             {"binary_to_list(N)", #{}, "^raises error:badarg in erlang:binary_to_list/1$"},
             {fun() -> error(oops) end, #{}, "^raises error:oops in fairnif_check_run_tests:"},
             {"exit(self(), kill), timer:sleep(5000)", #{}, "^its caller exited: killed$"},
             {"spawn_link(fun() -> exit(oops) end), timer:sleep(5000)", #{},
              "^its caller exited: oops$"},
             {"erlang:halt(3)", #{}, "^the peer node ended with exit status 3$"},
             {"erlang:halt(\"my slogan\")", #{}, "my slogan"},
             {"os:cmd(\"kill -9 \" ++ os:getpid()), timer:sleep(5000)", #{},
              "^the peer node was killed by signal 9"},
             {"timer:sleep(infinity)", #{timeout_ms => 500}, "^had not returned after 500 ms$"},
             {"F = fun F() -> F() end, F()", #{timeout_ms => 500}, "^had not returned after"},
             {"receive no_message -> ok end", #{timeout_ms => 500}, "^had not returned after"},
             {"F = fun F(L) -> F([binary:copy(<<0>>, 10000000) | L]) end, F([])",
              #{memory => 600000000, timeout_ms => 30000}, "annot allocate [0-9]+ bytes"},
             {"lists:seq(1, 1000000000)", #{memory => 600000000, timeout_ms => 30000},
              "annot allocate [0-9]+ bytes"}]].

%% Which function of which library; and whose stack, by what a larger one changes.
a_fault_is_named_test_() ->
    {setup, fun fairnif_check_zoo:build/0,
     [{Source, {timeout, 120, fun() ->
          {ok, #{exit := 1, subjects := [#{sizes := [#{error := Error}]}]}} =
              ?C:run(Source, short(#{sizes => [Size]})),
          ?assertEqual({match, Error}, {re:run(Error, Said, [{capture, none}]), Error})
      end}}
      || {Source, Size, Said} <-
             [{"fairnif_zoo:ill(N)", 1,
               "signal 4 \\(SIGILL in function zoo_ill of fairnif_zoo.so\\)$"},
              {"fairnif_zoo:segv(N)", 1,
               "signal 11 \\(SIGSEGV in function zoo_segv of fairnif_zoo.so\\)$"},
              {"fairnif_zoo:deep(N)", 4000,
               "SIGSEGV in function frames.* of fairnif_zoo.so\\); its stack is a normal "
               "scheduler's, too small, and one of 64 MiB \\(\\+sss 8192\\) suffices$"},
              {"fairnif_zoo:dirty_deep(N)", 4000,
               "; its stack is a dirty CPU scheduler's, too small, and one of 64 MiB "
               "\\(\\+sssdcpu 8192\\) suffices$"},
              {"fairnif_zoo:deep(N)", 100000,
               "and one of 64 MiB \\(\\+sss 8192\\) is, too$"}]]}.

%% A ms for ten bytes: two seconds for all of them.
what_is_slow_with_large_input_is_judged_with_less_test_() ->
    {timeout, 300, fun() ->
        {ok, #{exit := Exit, subjects := [#{sizes := [Large, Small], verdicts := Verdicts,
                                            advice := Advice}]} = Result} =
            ?C:run("timer:sleep(N div 10)", short(#{sizes => [20000, 100], timeout_ms => 1000})),
        ?assertMatch(#{size := 100, time := _}, Small),
        ?assertNot(is_map_key(asked, Small)),
        #{size := Size, asked := 20000, late := Late, error := undefined, time := _} = Large,
        ?assertMatch({_, true}, {Size, Size < 20000}),
        ?assertMatch(#{status := unsure, sentence := Late}, verdict(crash, Verdicts)),
        ?assertMatch({match, _}, re:run(Late, "^a call with 20.0 kB had not returned after 1.00 s; "
                                        "it is judged with ")),
        ?assertNotEqual(0, Exit),
        ?assertEqual(nomatch, binary:match(iolist_to_binary(Advice), <<"Repair it first">>)),
        ?assertEqual(ok, fairnif_check_schema:validate(
                           "check-1", fairnif_check_report:report(
                                        Result, fairnif_check_machine:context(), undefined)))
    end}.

%% The other one has the lock of both for 30 ms, again and again: as long as it gets a processor.
a_lock_that_another_caller_holds_is_seen_beside_it_test_() ->
    {setup, fun fairnif_check_zoo:build/0,
     {timeout, 600, fun() -> fairnif_check_repeat:until_it_holds(fun() ->
         Of = fun(Opts) ->
                      {ok, #{options := #{beside := Beside},
                             subjects := [#{verdicts := Verdicts}]}} =
                          ?C:run("fairnif_zoo:free_lock(10)", short(Opts)),
                      {Beside, maps:get(status, verdict(block, Verdicts))}
              end,
         ?assertEqual({undefined, pass}, Of(#{})),
         Other = "fairnif_zoo:free_lock(30000)",
         ?assertEqual({list_to_binary(Other), fail}, Of(#{beside => Other, time_ms => 500}))
     end) end}}.

what_is_called_beside_it_and_fails_is_failed_and_no_verdict_test_() ->
    {timeout, 120, fun() ->
        ?assertEqual({error, {failed, "--beside: raises error:oops"}},
                     begin
                         {error, {failed, Text}} = ?C:run("timer:sleep(5)",
                                                          short(#{beside => "error(oops)"})),
                         {error, {failed, unicode:characters_to_list(Text)}}
                     end)
    end}.

%% The first two calls are good, and it is not the first that counts.
what_fails_later_is_reported_with_the_measurement_that_saw_it_test_() ->
    Later = "counters:add(Init, 1, 1), counters:get(Init, 1) < 10 orelse error(late)",
    Traced = "{flags, []} = erlang:trace_info(self(), flags)",
    Leaves = "true = ets:insert_new(Init, {busy}), timer:sleep(2), ets:delete(Init, busy)",
    [{Source, {timeout, 120, fun() ->
          {ok, #{exit := 1, subjects := [#{sizes := [#{error := Error}]}]}} =
              ?C:run(Source, short(#{init => Init})),
          ?assertMatch({match, _, _}, {re_run(Error, Pattern), Error, Pattern})
      end}}
     || {Source, Init, Pattern} <-
            [{Later, "counters:new(1, [])", "^while timed: raises error:late$"},
             {Traced, "ok", "^raises error:{badmatch,{flags,.* under trace$"},
             {Leaves, "ets:new(t, [public])",
              "^raises error:{badmatch,false} where its callers are killed$"}]].

what_only_one_at_a_time_can_call_is_no_crash_test_() ->
    {timeout, 120, fun() ->
        {ok, #{subjects := [#{verdicts := Verdicts}]}} =
            ?C:run("true = register(the_only_one, self()), timer:sleep(2), "
                   "unregister(the_only_one)", short(#{})),
        ?assertMatch(#{status := pass}, verdict(crash, Verdicts)),
        #{status := unsure, sentence := Text} = verdict(latency, Verdicts),
        ?assertEqual(<<"raises error:badarg when several call it at once">>, Text)
    end}.

what_does_not_return_where_it_leaves_garbage_cannot_be_said_test_() ->
    {timeout, 120, fun() ->
        {ok, #{subjects := [#{verdicts := Verdicts}]}} =
            ?C:run("{_, S} = process_info(self(), current_stacktrace), "
                   "lists:keymember(fairnif_check_garbage, 1, S) andalso receive never -> ok end",
                   short(#{timeout_ms => 3000})),
        ?assertMatch(#{status := pass}, verdict(crash, Verdicts)),
        #{status := unsure, sentence := Text} = verdict(destructor, Verdicts),
        ?assertEqual(<<"a call in a process of its own had not returned after 3.00 s, though "
                       "earlier ones did; try a longer --timeout">>, Text)
    end}.

%% Of one binary that it has twenty times over it needs the memory once. A term as large, to compare
%% with, needs more than the node may have.
memory_that_the_comparison_needs_is_not_the_functions_fault_test_() ->
    {timeout, 120, fun() ->
        {ok, #{subjects := [#{verdicts := Verdicts, sizes := [#{error := Error}]}]}} =
            ?C:run("T = ets:new(t, []), ets:insert(T, {large, binary:copy(<<0>>, 50000000)}), "
                   "Rows = [ets:lookup(T, large) || _ <- lists:seq(1, 20)], ets:delete(T), Rows",
                   short(#{memory => 700000000, limit_ns => 1000})),
        ?assertEqual(undefined, Error),
        ?assertMatch(#{status := pass}, verdict(crash, Verdicts)),
        #{status := unsure, sentence := Text} = verdict(destructor, Verdicts),
        Said = "^what it leaves behind: .*annot allocate",
        ?assertMatch({match, _}, {re_run(Text, Said), Text})
    end}.

erlang_that_ends_leaves_nothing_to_compare_garbage_with_test_() ->
    {timeout, 120, fun() ->
        {ok, #{subjects := [#{verdicts := Verdicts, sizes := [Figures]}]} = Result} =
            ?C:run("process_flag(max_heap_size, 0), Large = lists:seq(1, 2000000), "
                   "erlang:system_flag(max_heap_size, "
                   "#{size => 500000, kill => true, error_logger => false}), Large",
                   short(#{limit_ns => 1000})),
        ?assertMatch(#{error := undefined, garbage := #{control := []}}, Figures),
        #{status := unsure, sentence := Text} = verdict(destructor, Verdicts),
        Said = "with [0-9.]+ MB made in Erlang: its caller exits: killed$",
        ?assertMatch({match, _}, {re_run(Text, Said), Text}),
        ?assertMatch(<<"{", _/binary>>, iolist_to_binary(fairnif_check_json:encode(Result)))
    end}.

the_other_subject_is_not_blamed_test_() ->
    {timeout, 120, fun() ->
        {ok, #{subjects := [Subject, Against]}} =
            ?C:run("N", short(#{init => "counters:new(1, [])",
                              against => "counters:add(Init, 1, 1), "
                                         "counters:get(Init, 1) < 10 orelse error(late)"})),
        #{role := subject, verdicts := Good, sizes := [#{time := _, error := undefined}]} = Subject,
        #{role := against, verdicts := Bad, sizes := [#{error := Error}]} = Against,
        ?assertMatch(#{status := pass}, verdict(crash, Good)),
        ?assertMatch(#{status := fail}, verdict(crash, Bad)),
        ?assertEqual(<<"while timed: raises error:late">>, Error)
    end}.

%% ---- what functions do that is not judged ----

manners_of_erlang_code_are_no_fault_test_() ->
    [{Source, {timeout, 300, fun() -> fairnif_check_repeat:until_it_holds(fun() ->
          {ok, #{subjects := [#{verdicts := Verdicts, sizes := [Figures]}]}} =
              ?C:run(Source, short(#{init => "counters:new(1, [])"})),
          ?assertEqual(undefined, maps:get(error, Figures)),
          [?assertEqual({Property, pass, V}, {Property, Status, V})
           || Property <- [crash, undercharge, leak],
              #{status := Status} = V <- [verdict(Property, Verdicts)]]
      end) end}}
     || Source <-
            ["timer:sleep(5)",
             "process_flag(trap_exit, true), put(key, N), self() ! hello, "
             "erlang:send_after(1, self(), late), spawn_link(fun() -> exit(oops) end), "
             "lists:sort(binary_to_list(Bin))",
             "{P, M} = spawn_monitor(fun() -> timer:sleep(1) end), "
             "receive {'DOWN', M, process, P, normal} -> ok end",
             "counters:add(Init, 1, 1), counters:get(Init, 1) > 1 orelse "
             "begin io:format(\"~n\"), file:write_file(\"/proc/self/fd/1\", <<10>>) end"]].

a_huge_value_is_no_trouble_test_() ->
    {timeout, 120, fun() ->
        {ok, #{subjects := [#{verdicts := Verdicts}]}} =
            ?C:run("binary:copy(<<0>>, 30000000)", short(#{})),
        ?assertMatch(#{status := pass}, verdict(crash, Verdicts))
    end}.

%% On the same scheduler the killer would run, and kill, between two calls only.
a_node_with_one_scheduler_has_kills_all_the_same_test_() ->
    {setup, fun fairnif_check_zoo:build/0,
     {timeout, 300, fun() -> fairnif_check_repeat:until_it_holds(fun() ->
         {ok, #{subjects := [#{verdicts := Verdicts}]}} =
             ?C:run("fairnif_zoo:block(N)", short(#{sizes => [100000], flags => ["+S", "1:1"]})),
         ?assertMatch(#{status := warn}, verdict(unkillable, Verdicts))
     end) end}}.

%% ---- the result ----

a_result_has_every_figure_and_can_be_written_as_json_test_() ->
    {timeout, 120, fun() ->
        {ok, Result} = ?C:run(fun(Bin) -> erlang:md5(Bin) end,
                              short(#{sizes => [100, 10000], waive => #{block => "because"},
                                      file => code:which(lists)})),
        #{expression := _, exit := Exit, thresholds := [_ | _], machine := #{dirty_trip := Trip},
          options := #{sizes := [100, 10000], waive := #{block := <<"because">>}},
          subjects := [#{role := subject, sizes := Sizes, growth := Growth,
                         verdicts := Verdicts, advice := [_ | _]}]} = Result,
        ?assert(lists:member(Exit, [0, 1, 3])),
        ?assert(is_float(Growth)),
        ?assert(Trip > 0),
        ?assertEqual(9, length(Verdicts)),
        [begin
             ?assertMatch(#{time := _, charge := _, slices := _, share := _, delay := _,
                            thread_progress := _, long_schedule := _, kill := _, leak := _,
                            first := _, garbage := _, error := undefined}, Size),
             ?assertEqual(9, length(Vs))
         end || #{verdicts := Vs} = Size <- Sizes],
        ?assertEqual([100, 10000], [S || #{size := S} <- Sizes]),
        Json = iolist_to_binary(fairnif_check_json:encode(Result)),
        ?assertMatch(<<"{", _/binary>>, Json),
        ?assert(length(fairnif_check_text:format(Result)) > 0)
    end}.

%% ---- ----

title(Source) -> lists:flatten(io_lib:format("~0tp", [Source])).

re_run(Text, Pattern) ->
    re:run(Text, Pattern, [{capture, none}, dotall]).

verdict(Property, Verdicts) ->
    hd([V || #{property := P} = V <- Verdicts, P =:= Property]).

%% Here it matters what comes back, not how exact it is.
short(Opts) ->
    maps:merge(#{sizes => [1024], time_ms => 60}, Opts).
