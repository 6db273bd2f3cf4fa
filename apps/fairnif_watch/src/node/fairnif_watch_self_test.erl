%% Does the watch see what it is there for? Blocks a scheduler for a known time with a known
%% function.
-module(fairnif_watch_self_test).

-export([run/0]).

-define(BLOCK_MS, 300).
%% The finding must be there this long after the block began.
-define(WITHIN_MS, 1000).
-define(TOLERANCE, 0.2).

%% @doc See {@link fairnif_watch:self_test/0}. Errors: `{not_seen, _}', `{not_named, Finding}',
%% `{wrong_time, Finding, Ms}', `{late, Ms}', `{no_probe, _}' where its library cannot be loaded,
%% `too_many' subscribers, `not_running'.
-spec run() -> {ok, map()} | {error, term()}.
run() ->
    try fairnif_watch_collector:probe() of
        ok -> in_process(fun block/0);
        {error, Reason} -> {error, {no_probe, Reason}}
    catch
        exit:{noproc, _} -> {error, not_running}
    end.

%% The caller may have subscribed himself, and what is not read here must not stay with him.
in_process(Fun) ->
    {Pid, Monitor} = spawn_monitor(fun() -> exit({tested, Fun()}) end),
    receive
        {'DOWN', Monitor, process, Pid, {tested, Result}} -> Result;
        {'DOWN', Monitor, process, Pid, Reason} -> {error, {died, Reason}}
    end.

block() ->
    Parent = self(),
    case fairnif_watch_collector:subscribe(self()) of
        {ok, Ref} ->
            Block = fun() -> Parent ! {Ref, fairnif_watch_probe:block(?BLOCK_MS)} end,
            {Pid, _} = spawn_monitor(Block),
            Deadline = erlang:monotonic_time(millisecond) + ?BLOCK_MS + 3000,
            Seen = wait(Ref, Pid, Deadline, #{begin_us => erlang:system_time(microsecond)}),
            judge(Seen, ?BLOCK_MS, #{within_ms => ?WITHIN_MS, tolerance => ?TOLERANCE});
        {error, _} = Error ->
            Error
    end.

%% Until the block is over, and the finding of it too.
wait(_, _, _, #{blocked_ns := _, ended := _} = Seen) ->
    Seen;
wait(Ref, Pid, Deadline, Seen) ->
    receive
        {Ref, Ns} ->
            wait(Ref, Pid, Deadline, Seen#{blocked_ns => Ns});
        {fairnif_watch, Node, {finding, #{detector := scheduler_blocked} = Finding}}
          when Node =:= node() ->
            wait(Ref, Pid, Deadline, note(Finding, Seen));
        {fairnif_watch, Node, _} when Node =:= node() ->
            wait(Ref, Pid, Deadline, Seen);
        {'DOWN', _, process, Pid, Reason} when Reason =/= normal ->
            Seen#{died => Reason}
    after max(0, Deadline - erlang:monotonic_time(millisecond)) ->
            Seen
    end.

%% Something else may block a scheduler meanwhile: ours is the one with our function, or, where
%% there are no names, the first.
note(#{id := Id, at := At} = Finding, #{begin_us := Begin} = Seen) ->
    case Seen of
        #{first := {Other, _}} when Other =/= Id -> other(Finding, Seen);
        #{first := _} -> finding(Finding, Seen);
        #{} -> finding(Finding, Seen#{first => {Id, (At - Begin) / 1000}})
    end.

%% When the watch knew it: this process may have to wait behind what it has started.
other(#{id := Id, at := At} = Finding, #{begin_us := Begin} = Seen) ->
    case is_ours(Finding) of
        true -> finding(Finding, maps:remove(ended, Seen#{first := {Id, (At - Begin) / 1000}}));
        false -> Seen
    end.

finding(#{ongoing := false} = Finding, Seen) -> Seen#{finding => Finding, ended => true};
finding(Finding, Seen) -> Seen#{finding => Finding}.

is_ours(#{culprit := #{mfa := {fairnif_watch_probe, block, 1}}}) -> true;
is_ours(_) -> false.

%% What was seen, against what was done.
judge(#{died := Reason}, _, _) ->
    {error, {died, Reason}};
judge(#{blocked_ns := Blocked, finding := Finding, first := {_, After}}, BlockMs,
      #{within_ms := Within, tolerance := Tolerance}) ->
    #{duration_ms := Seen, culprit := Culprit} = Finding,
    Real = Blocked / 1.0e6,
    Named = case Culprit of
                #{mfa := {fairnif_watch_probe, block, 1}} -> true;
                #{library := Library} when is_binary(Library) ->
                    filename:basename(Library) =:= <<"fairnif_watch_probe.so">>;
                _ -> false
            end,
    if not Named -> {error, {not_named, Finding}};
       abs(Seen - Real) > Tolerance * Real -> {error, {wrong_time, Finding, Real}};
       After > Within -> {error, {late, After}};
       true -> {ok, #{asked_ms => BlockMs, blocked_ms => Real, seen_ms => Seen, after_ms => After,
                      culprit => maps:get(name, Culprit), finding => maps:get(id, Finding)}}
    end;
judge(Seen, _, _) ->
    {error, {not_seen, Seen}}.
