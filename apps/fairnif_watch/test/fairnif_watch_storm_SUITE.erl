%% Watching continues, and does no harm, while everything around it comes and goes: the watch itself
%% started and stopped under load, libraries upgraded and purged while they are sampled; and its
%% signals break nothing.
-module(fairnif_watch_storm_SUITE).

-export([all/0, suite/0, init_per_suite/1, end_per_suite/1]).
-export([starting_and_stopping_under_load_leaves_no_trace/1,
         a_library_is_upgraded_and_purged_while_it_is_watched/1,
         signals_of_the_watch_break_nothing_off_that_can_be_restarted/1]).

-define(STARTS, 20).
-define(UPGRADES, 60).
-define(HAMMER_MS, 4000).

suite() ->
    [{timetrap, {minutes, 15}}].

all() ->
    fairnif_test:cases(?MODULE).

init_per_suite(Config) ->
    ok = fairnif_watch_test:build(),
    Config.

end_per_suite(_Config) ->
    ok.

starting_and_stopping_under_load_leaves_no_trace(_) ->
    in_peer(
      fun(Peer) ->
              Starts = fairnif_test:env_number("WATCH_STARTS", ?STARTS),
              #{before := Before, after_all := After, us := Us, resident := {R0, R1}} =
                  fairnif_watch_test:call(Peer, fairnif_watch_test_storm, starts, [Starts]),
              [] = [{K, V, maps:get(K, After)} || {K, V} <- maps:to_list(Before),
                                                  V =/= maps:get(K, After)],
              {comment, {Starts, starts, {longest_us, lists:max(Us)},
                         {resident_mib, R0 div 1048576, R1 div 1048576}}}
      end).

a_library_is_upgraded_and_purged_while_it_is_watched(_) ->
    in_peer(
      fun(Peer) ->
              #{upgrades := N, named := Named} =
                  fairnif_watch_test:call(Peer, fairnif_watch_test_storm, upgrades, [?UPGRADES]),
              [] = [Name || Name <- Named, not innocent(Name)],
              {comment, {N, upgrades, named, Named}}
      end).

%% What can be at work there: the NIF that spins, the loading of code.
innocent(Name) ->
    lists:any(fun(Part) -> binary:match(Name, Part) =/= nomatch end,
              [<<"fairnif_watch_block_nif">>, <<"beam">>, <<"ld-linux">>, <<"libc">>,
               <<"unknown">>]).

%% Only threads that run get one. One may go to sleep between the look and the signal: what the
%% system then continues by itself, it continues; nanosleep and poll end early with EINTR, as
%% they do for any signal. That is rare: one in a hundred signals at most, to threads that do little
%% else. (A poll whose time is up answers EINTR as well where its thread waits for a processor: that
%% one has waited for all of its time, and is not counted.)
signals_of_the_watch_break_nothing_off_that_can_be_restarted(_) ->
    in_peer(fun(Peer) ->
                    fairnif_test:retry(3, fun() -> signals_break_nothing_off(Peer) end)
            end).

signals_break_nothing_off(Peer) ->
    #{interrupted := Interrupted, signals := Signals, units := Units, counters := Counters} =
        fairnif_watch_test:call(Peer, fairnif_watch_test_storm, hammer, [?HAMMER_MS]),
    {[], _} = {[I || {Way, _} = I <- Interrupted, not lists:member(Way, sleeps())], Counters},
    [] = [Load || {Load, 0} <- maps:to_list(Units)],
    {true, _} = {Signals > 0, Counters},
    case lists:sum([N || {_, N} <- Interrupted]) of
        Broken when Broken * 100 =< Signals ->
            {ok, {comment, {signals, Signals, broken_off, Interrupted, units, Units}}};
        _ ->
            {broken_off, Interrupted, Counters}
    end.

sleeps() ->
    [sleep, poll, sleep_dirty_cpu, poll_dirty_cpu, sleep_dirty_io].

in_peer(Fun) ->
    Peer = fairnif_watch_test:peer(["+S", "2:2", "+SDcpu", "2:2"]),
    {comment, Comment} = Fun(Peer),
    fairnif_watch_test:stop(Peer),
    {comment, lists:flatten(io_lib:format("~0tp", [Comment]))}.
