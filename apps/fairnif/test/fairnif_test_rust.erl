%% The module of rust/tests/nif, where each function is explained.
-module(fairnif_test_rust).

-compile([export_all, nowarn_export_all]).
-compile({parse_transform, fairnif_test_stubs}).
-nifs([count/2, count_normal/2, count_dirty_cpu/2, count_dirty_io/2, count_threaded/2,
       count_awaited/2, count_no_yield/2, count_small/2, 'count another'/2, exor/2, echo/1,
       turned/3, nothing/0, rewritten/1, lines/1, sorted/1, threads_of/1, plain/2, nif_counter/1,
       keeper/1, keeper_threaded/1, receives/2, receives_unawaited/0, sends_unawaited/0, sends/2,
       applies/2, first_of/1, joins/1, ticks_beside/0, drops_one/0, fails/1, fails_as_theirs/1,
       fails_as_a_term/1, panics/1, plain_panics/0, guards/0, reset_guards/0, ends/0, lasts/1,
       lasts_dirty/1, lasts_threaded/1, ticks_by_a_static/1, forgets/1, keeps/1, kept/0, begins/0,
       resumes/0, loads_again/1, sleeps/1, sleeps_unawaited/1, sleeps_threaded/1, pumps/1, first/2,
       hears/1, sleeps_many/1, runs_on/1, digs/1, digs_threaded/1,
       offloads_a_panic/0, body/1, enter/1, task/2, args/1,
       resource_counts/0, reset_resource_counts/0, short/1, number_of/1, short_fair/1, all_of/1,
       holds/1, keep_short/1, drop_shorts/0, theirs/1, aligned/1,
       nothing_at_all/0, slow/1, steps/1, bad/0, kind_of/1]).

-on_load(init/0).

%% The library refuses to be loaded with an integer.
init() ->
    Info = persistent_term:get(?MODULE, undefined),
    fairnif:loaded(erlang:load_nif(fairnif_test:library(?MODULE), fairnif:load_info(Info))).
