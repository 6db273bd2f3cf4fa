-module(fairnif_watch_screen_tests).

-include_lib("eunit/include/eunit.hrl").

%% For other tests.
-export([entry/2, view/1, finding/2]).

%% 2026-01-02 03:04:05 UTC, us.
-define(AT, 1767323045000000).

one_node_is_shown_with_schedulers_queues_pools_findings_and_functions_test() ->
    View = view(#{findings => [finding(2, #{ongoing => true, duration_ms => 312.4}),
                               finding(1, #{severity => warning})]}),
    ?assertEqual(
       ["fairnif watch  app@host  up  Erlang/OTP 25  " ++ clock(5),
        "  1 [########################    ]  87 % queue 12  ",
        "  2 [                            ]   0 %           blocked 312 ms  crypto:hash/2",
        "run queues 12  dirty CPU 4/4 busy, 3 waiting 120 ms  dirty I/O 1/10 busy",
        "dirty CPU 1: zlib:deflate/2",
        "dirty_cpu_saturated: All 4 are busy and 3 jobs wait.",
        "",
        "findings: 2",
        "> " ++ clock(2) ++ " error   blocked scheduler 2 312 ms going on slow:spin/1",
        "  " ++ clock(1) ++ " warning blocked scheduler 2 45 ms slow:spin/1",
        "native functions, share of the samples",
        " 61.5 %  crypto:hash/2",
        "not seen: names of NIFs: no symbols",
        "", "", "", "", "", "", "", "", "", "",
        "up, down: choose a finding   enter: its stack   q: quit"],
       shown([entry(up, View)], #{})).

a_node_that_does_not_answer_is_shown_as_it_was_with_the_reason_test() ->
    Entry = (entry(hanging, view(#{})))#{reason := <<"it says nothing">>},
    ?assertMatch(["fairnif watch  app@host  hanging, trying again  since " ++ _,
                  "it says nothing; what follows is as of " ++ _ | _],
                 shown([Entry], #{})).

what_is_seen_from_outside_is_below_the_reason_test() ->
    Seen = <<"Scheduler 2 has been blocked for 4.7 s by slow:spin/1, waiting for a lock that ",
             "scheduler 1 holds">>,
    Entry = (entry(hanging, none))#{reason := <<"it hangs">>, outside => [Seen, <<"So.">>]},
    Wrapped = ["Scheduler 2 has been blocked for 4.7 s by slow:spin/1, waiting for a lock that",
               "scheduler 1 holds", "So."],
    ?assertMatch([_, "", "hanging, trying again: it hangs" | Wrapped],
                 lists:sublist(shown([Entry], #{}), 6)),
    [_, "it hangs;" ++ _ | Below] = shown([Entry#{view := view(#{})}], #{}),
    ?assertEqual(Wrapped, lists:sublist(Below, 3)),
    Up = (entry(up, view(#{})))#{node := 'b@host'},
    ?assertMatch([_, "app@host hanging" ++ _, "  Scheduler 2 " ++ _, "  So.",
                  "b@host   up" ++ _ | _], shown([Up, Entry], #{})),
    %% Where there is no room, each node keeps its line.
    ?assertMatch([_, "app@host hanging" ++ _, "b@host   up" ++ _ | _],
                 shown([Up, Entry], #{rows => 8})).

several_nodes_have_a_line_each_the_troubled_first_test() ->
    Well = (entry(up, view(#{})))#{node := 'a@h'},
    Busy = (entry(up, view(#{node => 'bb@h',
                             findings => [finding(1, #{ongoing => true, node => 'bb@h'})]})))
        #{node := 'bb@h'},
    Gone = (entry(down, none))#{node := 'c@h', reason := <<"lost">>},
    [Head | Lines] = shown([Well, Busy, Gone], #{}),
    ?assertMatch("fairnif watch  2 of 3 nodes up" ++ _, Head),
    ?assertMatch(["c@h  down     since " ++ _, "bb@h up       " ++ _, "a@h  up       " ++ _, "",
                  "findings: 1", "> " ++ _ | _], Lines),
    ?assertNotEqual(nomatch, string:find(lists:nth(2, Lines),
                                         "] queue 12  findings: 1, going on: 1")),
    ?assertNotEqual(nomatch, string:find(lists:nth(6, Lines), "bb@h blocked scheduler 2")).

a_hundred_nodes_and_findings_fit_24_lines_of_80_test_() ->
    Findings = [finding(I, #{}) || I <- lists:seq(100, 1, -1)],
    Nodes = [(entry(up, view(#{findings => Findings})))#{node := list_to_atom(integer_to_list(I))}
             || I <- lists:seq(1, 100)],
    [{lists:flatten(io_lib:format("~bx~b", [Rows, Columns])),
      fun() ->
              Lines = shown(Shown, #{rows => Rows, columns => Columns}),
              ?assertEqual(Rows, length(Lines)),
              ?assertEqual([], [L || L <- Lines, length(L) > Columns])
      end}
     || {Rows, Columns} <- [{24, 80}, {1, 1}, {2, 10}, {5, 40}, {200, 300}],
        Shown <- [Nodes, [hd(Nodes)]]].

many_schedulers_are_a_strip_and_a_blocked_one_is_an_exclamation_mark_test() ->
    Busy = fun(N) -> #{kind => normal, number => N, state => busy, busy => (N rem 9) / 8,
                       run_queue => 0, blocked_ms => case N of 100 -> 50.0; _ -> 0.0 end,
                       running => none}
           end,
    View = view(#{schedulers => [Busy(N) || N <- lists:seq(1, 128)]}),
    [_, First, Second | _] = shown([entry(up, View)], #{}),
    ?assertEqual("  1.. .:-=+*%# ", lists:sublist(First, 15)),
    ?assertEqual($!, lists:nth(6 + 100 - 68, Second)).

a_finding_is_shown_with_everything_known_of_it_test() ->
    Frames = [#{address => 4096, library => <<"/lib/libslow.so">>, offset => 4112,
                function_offset => none, symbol => <<"spin">>, symbol_offset => 16, in => library,
                nif => {slow, spin, 1}, by => nif_table},
              #{address => 8192, library => none, offset => 8192, symbol => none, in => jit,
                nif => none}],
    Finding = finding(1, #{stack => Frames, remedy => <<"Tick.">>,
                           evidence => #{cpu_ns => 71234567, wait_ms => 4.25}}),
    [_ | Lines] = shown([entry(up, view(#{findings => [Finding]}))], #{detail => 0}),
    Text = lists:flatten(lists:join($\n, Lines)),
    [?assertNotEqual({Part, nomatch}, {Part, string:find(Text, Part)})
     || Part <- ["scheduler_blocked, error, app@host", "Scheduler 2 was blocked.", "remedy: Tick.",
                 "mfa:              slow:spin/1", "slow:spin/1  spin (libslow.so)",
                 "code of the JIT+0x2000", "cpu:              71 ms", "wait:             4.3 ms",
                 "enter: back"]],
    ?assertEqual(nomatch, string:find(Text, "_ns")).

the_cursor_stays_on_its_finding_when_others_come_test() ->
    Before = [finding(3, #{}), finding(2, #{}), finding(1, #{})],
    Chosen = fairnif_watch_screen:choose(1, newest, Before),
    After = [finding(5, #{}), finding(4, #{}) | Before],
    Row = fun(Findings, C) ->
                  [L || "> " ++ L <- shown([entry(up, view(#{findings => Findings}))],
                                           #{chosen => C})]
          end,
    ?assertEqual(Row(Before, Chosen), Row(After, Chosen)),
    ?assertNotEqual(Row(Before, newest), Row(After, newest)),
    ?assertEqual(newest, fairnif_watch_screen:choose(-1, Chosen, Before)),
    ?assertEqual(fairnif_watch_screen:choose(2, newest, Before),
                 fairnif_watch_screen:choose(9, newest, Before)),
    ?assertEqual(newest, fairnif_watch_screen:choose(1, newest, [])).

texts_of_a_node_are_no_commands_of_the_terminal_test() ->
    Evil = <<"a\e[2Jb\r\n\x{9b}31m"/utf8>>,
    Finding = finding(1, #{sentence => Evil, node => 'x\e[2J',
                           culprit => (culprit())#{name => Evil}}),
    View = view(#{findings => [Finding], blind => [Evil], otp => Evil,
                  top => [#{label => Evil, share => 1.0, ns_per_s => 1}]}),
    Entry = (entry(up, View))#{node := 'x\e[2J', reason := Evil},
    [?assertEqual([], [C || Line <- shown([Entry | More], Options), C <- Line,
                            C < 32 orelse (C >= 127 andalso C < 160)])
     || Options <- [#{}, #{detail => 0}, #{style => unicode}], More <- [[], [Entry]]].

a_view_that_lacks_everything_is_shown_all_the_same_test() ->
    ?assertEqual(24, length(shown([entry(up, #{schema_version => 1})], #{}))).

%% ---- what is shown ----

shown(Nodes, More) ->
    Options = options(More),
    [fairnif_watch_screen:plain(L, Options)
     || L <- fairnif_watch_screen:lines(#{nodes => Nodes}, Options)].

options(More) ->
    maps:merge(#{rows => 24, columns => 80, style => ascii, now => ?AT + 5000000, keys => true},
               More).

clock(Seconds) ->
    fairnif_watch_screen:clock(?AT + Seconds * 1000000).

entry(Status, View) ->
    #{node => 'app@host', status => Status, since => ?AT, reason => none, view => View}.

view(More) ->
    maps:merge(
      #{schema_version => 1, node => 'app@host', at => ?AT + 10000000, started => ?AT,
        otp => <<"25">>, version => <<"0.1.0">>, native => true,
        blind => [<<"names of NIFs: no symbols">>],
        schedulers => [#{kind => normal, number => 1, state => busy, busy => 0.87,
                         run_queue => 12, blocked_ms => 0.0, running => none},
                       #{kind => normal, number => 2, state => native, busy => 0.0,
                         run_queue => 0, blocked_ms => 312.4, running => <<"crypto:hash/2">>},
                       #{kind => dirty_cpu, number => 1, state => busy, busy => 1.0,
                         run_queue => none, blocked_ms => 0.0, running => <<"zlib:deflate/2">>}],
        queues => #{normal => 12, dirty_cpu => 3, dirty_io => 0},
        pools => #{dirty_cpu => #{size => 4, busy => 4, queue => 3, wait_ms => 120.0},
                   dirty_io => #{size => 10, busy => 1, queue => 0, wait_ms => none}},
        detectors => [#{name => scheduler_blocked, verdict => ok, sentence => <<"-">>,
                        remedy => none},
                      #{name => dirty_cpu_saturated, verdict => warn,
                        sentence => <<"All 4 are busy and 3 jobs wait.">>, remedy => none}],
        findings => [], top => [#{function => {crypto, hash, 2}, label => <<"crypto:hash/2">>,
                                  samples => 16, share => 0.615, ns_per_s => 1000}],
        counters => #{probes => 12, samples => 3, watch_cpu_ns => 20000000},
        memory => #{processes => 50}}, More).

finding(Id, More) ->
    maps:merge(
      #{schema_version => 1, id => Id, node => 'app@host', detector => scheduler_blocked,
        severity => error, at => ?AT + Id * 1000000, since => ?AT + Id * 1000000,
        duration_ms => 45.2, ongoing => false, subject => {scheduler, 2},
        sentence => <<"Scheduler 2 was blocked.">>, culprit => culprit(), stack => [],
        remedy => none, evidence => #{}}, More).

culprit() ->
    #{kind => nif, name => <<"slow:spin/1">>, mfa => {slow, spin, 1}, pid => <<"<0.1.2>">>,
      registered => none, current_function => none, library => <<"/lib/libslow.so">>,
      symbol => none, offset => 4096, module => slow, syscall => none}.
