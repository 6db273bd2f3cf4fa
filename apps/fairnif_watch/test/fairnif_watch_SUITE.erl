%% What blocks a scheduler is seen while it blocks, and named: one scheduler, all of them, all dirty
%% ones, by everything that can; and what is meant to be is no finding.
%%
%% Everything happens in a peer of two schedulers. The blockers say themselves how long they
%% blocked. Time is wall time on a machine that may be busy: an observation that went otherwise is
%% repeated, and what was seen each time is in the failure. A wrong culprit is wrong at once: no
%% other attempt makes up for an innocent function's name.
-module(fairnif_watch_SUITE).

-include_lib("stdlib/include/assert.hrl").

-export([all/0, suite/0, init_per_suite/1, end_per_suite/1]).
-export([what_blocks_one_scheduler_is_named/1,
         a_long_block_of_one_scheduler_is_reported_while_it_lasts/1,
         all_schedulers_blocked_are_seen_while_they_are/1,
         when_all_schedulers_are_blocked_standard_error_says_so/1,
         all_dirty_cpu_schedulers_taken_are_seen_and_the_takers_named/1,
         all_dirty_io_schedulers_taken_are_seen_and_the_takers_named/1,
         intended_dirty_jobs_are_no_finding/1]).

-define(ATTEMPTS, 4).
-define(SCHEDULERS, 2).
%% Blocked this long, ms: where the watch can tell meanwhile, and where only the findings' own times
%% tell when it saw.
-define(MS, 400).
-define(ALL_MS, 1300).
-define(LONG_MS, 1500).
%% The issue's bounds: seen within this, ms; blocked time within this share.
-define(SEEN_MS, 1000).
-define(WITHIN, 0.2).
%% A pool is taken for this long, ms, and that is seen within: the issue's second, and room, since
%% the queue is looked at ten times before it is reported.
-define(POOL_MS, 2000).
-define(POOL_SEEN_MS, 2000).

suite() ->
    [{timetrap, {minutes, 15}}].

all() ->
    fairnif_test:cases(?MODULE).

init_per_suite(Config) ->
    ok = fairnif_watch_test:build(),
    Config.

end_per_suite(_Config) ->
    ok.

%% -- one scheduler -----------------------------------------------------------

%% All in one node. Those of fairnif come last: the watch looks for it once a second.
what_blocks_one_scheduler_is_named(_) ->
    in_peer(fun(Peer) ->
                    [blocks(Peer, #{what => What, subject => S, kind => normal, blockers => 1,
                                    ms => ?MS}) || {What, Subjects} <- kinds(), S <- Subjects]
                        ++ [destructor(Peer, Module) || Module <- [fairnif_watch_block_nif,
                                                                   fairnif_watch_block_stripped]]
            end).

kinds() ->
    [{"a plain NIF", [{plain, spin}]},
     {"one of a library without symbols", [{stripped, W} || W <- [spin, sleep, lock]]},
     {"the C library is at work for it", [{plain, libc}, {stripped, libc}]},
     {"deep in its stack", [{plain, deep}]},
     {"waits in a system call", [{plain, W} || W <- [sleep, poll, read]]},
     {"waits for a lock", [{plain, lock}]},
     {"works in a system call: it shows its stack when that ends", [{plain, kernel}]},
     {"waits for a disk", [{plain, disk}, {plain, vfork}]},
     {"machine code of no file is not taken for Erlang code, in which a scheduler is never blocked",
      [{plain, machine}, {plain, machine_named}]},
     {"a driver", [{driver, 0}, {driver, 1}]},
     {"a BIF of the emulator is named by its place", [compare, member]},
     {"a NIF of OTP", [mod_pow]},
     {"a fairnif function that does not tick, exactly",
      [{fair, F} || F <- [spin_normal, spin_yielding, sleep_normal, kernel_normal]]}].

%% No process called it, and no table has it.
destructor(Peer, Module) ->
    Name = iolist_to_binary(io_lib:format("destructor of ~s:block_object (~s.so)",
                                          [Module, Module])),
    fairnif_test:retry(
      ?ATTEMPTS,
      fun() ->
              #{findings := Findings} =
                  fairnif_watch_test:call(Peer, fairnif_watch_test_block, garbage, [Module, 100]),
              case [{F, D} || #{detector := scheduler_blocked, duration_ms := D} = F <- Findings,
                              D > 50] of
                  [{#{culprit := #{kind := destructor, name := Name, pid := none,
                                   module := Module}, sentence := Sentence}, D}] ->
                      ?assertNotEqual(nomatch, string:find(Sentence, <<"by ", Name/binary>>)),
                      {ok, {Name, D}};
                  _ ->
                      {Module, found, [short(F) || F <- Findings]}
              end
      end).

%% The process that reports it, or reads of it, may have been on that scheduler.
a_long_block_of_one_scheduler_is_reported_while_it_lasts(_) ->
    in_peer(fun(Peer) ->
                    [blocks(Peer, #{subject => S, kind => normal, blockers => 1, ms => ?LONG_MS})
                     || S <- [{plain, spin}, {plain, sleep}, {fair, spin_normal}]]
            end).

%% -- all of them -------------------------------------------------------------

all_schedulers_blocked_are_seen_while_they_are(_) ->
    in_peer(fun(Peer) ->
                    [blocks(Peer, #{subject => S, kind => normal, blockers => ?SCHEDULERS,
                                    ms => ?ALL_MS})
                     || S <- [{plain, spin}, {plain, lock}, {plain, read}, {driver, 0},
                              {fair, spin_normal}]]
            end).

when_all_schedulers_are_blocked_standard_error_says_so(_) ->
    fairnif_test:retry(
      ?ATTEMPTS,
      fun() ->
              {_, Text} =
                  fairnif_watch_test:with_stderr(
                    ["+S", "2:2"],
                    fun(Peer) ->
                            ok = started(Peer, #{emergency_ms => 300}),
                            observe(Peer, #{subject => {plain, spin}, kind => normal,
                                            blockers => ?SCHEDULERS, ms => ?ALL_MS})
                    end),
              case binary:match(Text, <<"fairnif_watch">>) =/= nomatch
                  andalso binary:match(Text, <<"blocked">>) =/= nomatch of
                  true -> {ok, {comment, string:trim(Text)}};
                  false -> {said, Text}
              end
      end).

%% Two come when all are taken: a queue.
all_dirty_cpu_schedulers_taken_are_seen_and_the_takers_named(_) ->
    saturated(dirty_cpu, [{plain, lock_dirty_cpu}, {fair, spin_dirty_cpu}]).

all_dirty_io_schedulers_taken_are_seen_and_the_takers_named(_) ->
    saturated(dirty_io, [{plain, read_dirty_io}, {fair, sleep_dirty_io}]).

saturated(Kind, Subjects) ->
    in_peer(fun(Peer) ->
                    [blocks(Peer, #{subject => S, kind => Kind, blockers => ?SCHEDULERS,
                                    queued => 2, ms => ?POOL_MS})
                     || S <- Subjects]
            end).

%% As many as there are schedulers of the kind: they do what those are for, and no process waits.
intended_dirty_jobs_are_no_finding(_) ->
    in_peer(fun(Peer) -> [intended(Peer, Kind, Way)
                          || {Kind, Way} <- [{dirty_cpu, spin_dirty_cpu},
                                             {dirty_io, sleep_dirty_io},
                                             {dirty_io, spin_dirty_io}]]
            end).

intended(Peer, Kind, Way) ->
    fairnif_test:retry(
      ?ATTEMPTS,
      fun() ->
              Seen = observe(Peer, #{subject => {plain, Way}, kind => Kind,
                                     blockers => ?SCHEDULERS, ms => ?ALL_MS}),
              %% On a busy machine its schedulers may be starved: that is true, and no fault.
              case [F || #{detector := D} = F <- maps:get(findings, Seen),
                         not lists:member(D, [no_cpu_time, late_wakeups, quota])] of
                  [] -> {ok, "no finding"};
                  Findings -> {Way, found, [short(F) || F <- Findings]}
              end
      end).

%% -- judging -----------------------------------------------------------------

blocks(Peer, Case) ->
    fairnif_test:retry(?ATTEMPTS, fun() -> judge(Case, observe(Peer, Case)) end).

judge(Case, #{answers := Answers, findings := Findings} = Seen) ->
    Problems = lists:append([answer(Case, Answer, Findings) || Answer <- Answers])
        ++ innocents(Case, Answers, Findings)
        ++ [{not_over, S} || #{settled := S} <- [Seen], S =/= true],
    case Problems of
        [] ->
            {ok, comment(Case, Answers, Findings)};
        _ ->
            {maps:with([what, subject, kind], Case), Problems,
             {answers, [blocked_ms(A) || A <- Answers]}, {findings, [short(F) || F <- Findings]}}
    end.

%% One blocker of a normal scheduler: its finding.
answer(#{kind := normal} = Case, #{number := N} = Answer, Findings) ->
    case [F || #{detector := scheduler_blocked, subject := {scheduler, Number}} = F <- Findings,
               Number =:= N, overlap(F, Answer)] of
        [] ->
            [{not_seen, N}];
        Several ->
            Longest = lists:last(lists:keysort(1, [{D, F} || #{duration_ms := D} = F <- Several])),
            finding(Case, Answer, element(2, Longest))
    end;
%% Of a pool there is one finding, of all who take it.
answer(#{kind := Kind}, #{number := N}, _) when N > 1, Kind =/= normal ->
    [];
answer(#{kind := Kind, subject := {_, Function}}, #{all_since := Since}, Findings) ->
    case [F || #{detector := D} = F <- Findings, D =:= detector(Kind)] of
        [] ->
            [{not_seen, Kind}];
        [#{culprit := #{name := Name, mfa := Mfa}, remedy := Remedy, received_ns := At} | _] ->
            [{culprit, Name, expected, Function}
             || not is_tuple(Mfa) orelse element(2, Mfa) =/= Function]
                ++ [{remedy, Remedy} || not is({contains, [flag(Kind)]}, Remedy)]
                ++ [{seen_after_ms, (At - Since) / 1.0e6}
                    || At - Since > ?POOL_SEEN_MS * 1000000]
    end.

flag(dirty_cpu) -> <<"+SDcpu">>;
flag(dirty_io) -> <<"+SDio">>.

detector(dirty_cpu) -> dirty_cpu_saturated;
detector(dirty_io) -> dirty_io_saturated.

finding(#{subject := Subject} = Case, #{pid := Pid} = Answer,
        #{culprit := Culprit, duration_ms := Ms, remedy := Remedy, ongoing := Ongoing} = Finding) ->
    #{culprit := Expected} = fairnif_watch_test_block:subject(Subject),
    [{culprit, Key, Value, expected, Wanted}
     || {Key, Wanted} <- maps:to_list(Expected),
        Value <- [maps:get(Key, Culprit, missing)], not is(Wanted, Value)]
        ++ [{wrong_process, Other} || #{pid := Other} <- [Culprit], Other =/= Pid, Other =/= none]
        ++ [no_process || lists:member(Subject, [{plain, spin}, member]),
                          maps:get(pid, Culprit) =:= none]
        ++ [{duration, Ms, blocked, blocked_ms(Answer)}
            || abs(Ms / blocked_ms(Answer) - 1) > ?WITHIN]
        ++ [{seen_after_ms, After} || After <- [seen_after(Case, Answer, Finding)],
                                      After > ?SEEN_MS]
        ++ [still_ongoing || Ongoing]
        ++ [{remedy, Remedy} || not is_binary(Remedy)]
        ++ [no_stack || maps:get(kind, Culprit) =/= fairnif, maps:get(stack, Finding) =:= []].

%% While others run it counts when the finding came, by the blocker's clock. Where none can run it
%% counts for how long the scheduler was blocked when the watch thread reported it for the first
%% time.
seen_after(#{blockers := ?SCHEDULERS, kind := normal}, _, #{first := #{duration_ms := Ms}}) ->
    Ms;
seen_after(_, #{since := Since}, #{received_ns := Received}) ->
    (Received - Since) / 1.0e6.

%% No other process is accused.
innocents(#{kind := normal}, Answers, Findings) ->
    Blocked = [N || #{number := N} <- Answers],
    [{innocent, short(F)}
     || #{detector := scheduler_blocked, subject := {scheduler, N}} = F <- Findings,
        not lists:member(N, Blocked)];
innocents(_, _, Findings) ->
    [{innocent, short(F)} || #{detector := scheduler_blocked} = F <- Findings].

is(Wanted, Value) ->
    fairnif_watch_test_block:is(Wanted, Value).

%% In native time on both sides, with the room that a system time in us needs.
overlap(#{since := Since, duration_ms := Ms, offset := Offset}, #{since := From, until := To}) ->
    Begin = (Since - Offset) * 1000,
    Begin < To andalso Begin + Ms * 1.0e6 > From.

blocked_ms(#{since := Since, until := Until}) ->
    (Until - Since) / 1.0e6.

short(Finding) ->
    maps:with([detector, severity, subject, since, at, duration_ms, ongoing, sentence, culprit,
               remedy, evidence, stack], Finding).

comment(#{subject := Subject}, Answers, Findings) ->
    {Subject, [{blocked_ms, round(blocked_ms(A))} || A <- Answers],
     [{D, round(Ms), Name, {seen_after, (At - Since) div 1000000}}
      || #{detector := D, duration_ms := Ms, culprit := #{name := Name},
           received_ns := At} <- Findings,
         is_number(Ms), #{all_since := Since} <- [hd(Answers)]]}.

%% -- peers -------------------------------------------------------------------

in_peer(Fun) ->
    Peer = fairnif_watch_test:peer(["+S", "2:2", "+SDcpu", "2:2", "+SDio", "2"]),
    ok = started(Peer, #{}),
    {module, _} = fairnif_watch_test:call(Peer, code, ensure_loaded, [fairnif_watch_block_fair]),
    Comments = Fun(Peer),
    fairnif_watch_test:stop(Peer),
    ct:log("~tp", [Comments]),
    {comment, lists:flatten(io_lib:format("~0tp", [Comments]))}.

started(Peer, Config) ->
    case fairnif_watch_test:call(Peer, fairnif_watch_test_block, start, [Config]) of
        ok -> ok;
        {ok, _} -> ok
    end.

observe(Peer, Case) ->
    #{findings := Findings, system_us := Offset} = Seen =
        fairnif_watch_test:call(Peer, fairnif_watch_test_block, observe, [Case]),
    #{answers := Answers} = Seen,
    First = lists:min([Since || #{since := Since} <- Answers]),
    Seen#{findings := [F#{offset => Offset} || F <- Findings],
          answers := [A#{all_since => First} || A <- Answers]}.
