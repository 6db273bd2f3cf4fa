-module(fairnif_check_tracer_tests).

-include_lib("eunit/include/eunit.hrl").

%% What runs in the peer.
-export([freed/0, shared_by_many/0, upgraded/1]).
%% For the tests of what is seen late.
-export([traced/3]).

-define(T, fairnif_check_tracer).

a_new_table_has_no_events_test() ->
    ?assertEqual([], ?T:events(?T:new(10))),
    ?assertEqual([], ?T:events(?T:new(0))).

what_is_no_number_of_events_is_badarg_test_() ->
    [?_assertError(badarg, ?T:new(Limit))
     || Limit <- [-1, 1.0, many, 1 bsl 70, 1 bsl 62]].

more_than_any_memory_is_enomem_and_not_a_crash_test_() ->
    [?_assertError(enomem, ?T:new(Limit)) || Limit <- [1 bsl 50, 1 bsl 54]].

what_is_no_table_is_badarg_test_() ->
    [?_assertError(badarg, ?T:events(Table)) || Table <- [make_ref(), 1, []]].

a_full_table_takes_no_more_test() ->
    Events = events(7, fun() -> [erlang:yield() || _ <- lists:seq(1, 50)] end),
    ?assertEqual(7, length(Events)),
    ?assertEqual([], events(0, fun() -> erlang:yield() end)).

other_events_are_not_written_test() ->
    Table = ?T:new(10),
    ?assertEqual(discard, ?T:trace(send, Table, self(), hello, #{})),
    ?assertEqual(discard, ?T:trace(in, make_ref(), self(), {m, f, 0}, #{})),
    ?assertEqual(discard, ?T:enabled(trace_status, make_ref(), self())),
    ?assertEqual([], ?T:events(Table)).

%% It is meant for one process; shared, it has nonsense in it, and nothing worse.
a_table_that_many_write_to_at_once_ends_at_its_limit_test_() ->
    {timeout, 60, fun() ->
        ?assertEqual({ok, 1000},
                     fairnif_check_peer:run(["+S", "4:4"], {?MODULE, shared_by_many, []}, 30000))
    end}.

the_memory_of_a_table_comes_back_test_() ->
    {timeout, 60, fun() ->
        {ok, {With, After}} = fairnif_check_peer:run([], {?MODULE, freed, []}, 30000),
        %% Other memory comes and goes meanwhile.
        ?assert(With > 20 * 1000000),
        ?assert(After < 4 * 1000000)
    end}.

%% An older library's tables are shorter: what the new one would read and free lies behind them.
tables_of_an_older_library_are_not_taken_for_ours_test_() ->
    {timeout, 60, fun() ->
        ok = fairnif_check_zoo:build(),
        Library = filename:join([hd(fairnif_check_zoo:paths()), "nifs", "older_tracer"]),
        ?assertEqual({ok, {error, badarg}},
                     fairnif_check_peer:run([], {?MODULE, upgraded, [Library]}, 30000))
    end}.

%% ---- in the peer ----

%% What the new code says of a table that the older code has made.
upgraded(Library) ->
    {module, ?T} = code:load_binary(?T, "older", older(Library)),
    Table = ?T:new(1),
    {module, ?T} = code:load_file(?T),
    [] = ?T:events(?T:new(1)),
    Answer = try ?T:events(Table) of
                 Events -> {ok, Events}
             catch
                 error:Why -> {error, Why}
             end,
    true = is_reference(Table),
    Answer.

older(Library) ->
    Source = ["-module(fairnif_check_tracer).", "-export([new/1]).", "-nifs([new/1]).",
              "-on_load(init/0).",
              lists:flatten(io_lib:format("init() -> erlang:load_nif(~p, 0).", [Library])),
              "new(_) -> erlang:nif_error(not_loaded)."],
    {ok, ?T, Beam} = compile:forms([form(F) || F <- Source]),
    Beam.

form(Text) ->
    {ok, Tokens, _} = erl_scan:string(Text),
    {ok, Form} = erl_parse:parse_form(Tokens),
    Form.

%% Bytes that the allocators gave out, with a table of a million events and after it.
freed() ->
    _ = ?T:new(1),
    Before = allocated(),
    Me = self(),
    Holder = spawn(fun() -> Table = ?T:new(1000000), Me ! made, holds(Table) end),
    receive made -> ok end,
    With = allocated(),
    Monitor = monitor(process, Holder),
    exit(Holder, kill),
    receive {'DOWN', Monitor, process, _, _} -> ok end,
    {With - Before, settled(Before, 100)}.

holds(Table) ->
    receive {events, From} -> From ! ?T:events(Table) end,
    holds(Table).

%% The last reference is dropped a little later than DOWN comes.
settled(Before, 0) -> allocated() - Before;
settled(Before, Tries) ->
    case allocated() - Before of
        More when More > 2000000 -> timer:sleep(10), settled(Before, Tries - 1);
        More -> More
    end.

allocated() ->
    erlang:memory(system).

shared_by_many() ->
    Table = ?T:new(1000),
    Pids = [spawn_monitor(fun() -> [?T:trace(in, Table, self(), m, #{}) || _ <- lists:seq(1, 2000)]
                          end) || _ <- lists:seq(1, 8)],
    [receive {'DOWN', Monitor, process, Pid, normal} -> ok end || {Pid, Monitor} <- Pids],
    length(?T:events(Table)).

%% ---- here ----

events(Limit, Fun) ->
    traced(Limit, Fun, fun ?T:events/1).

%% What Read says of the table of a process that ran Fun under trace, and has not ended yet.
traced(Limit, Fun, Read) ->
    Table = ?T:new(Limit),
    Me = self(),
    Pid = spawn(fun() -> receive go -> ok end, _ = Fun(), Me ! {self(), done},
                         receive after infinity -> ok end end),
    1 = erlang:trace(Pid, true, [running, garbage_collection, {tracer, ?T, Table}]),
    Pid ! go,
    receive {Pid, done} -> ok end,
    true = erlang:suspend_process(Pid),
    Answer = Read(Table),
    exit(Pid, kill),
    Answer.
