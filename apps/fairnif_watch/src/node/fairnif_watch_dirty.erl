%% Looks for the processes that run on dirty schedulers, while a pool is full: up to N processes a
%% second.
%%
%% Asking a process may take as long as it is blocked, so others ask, and those that get no answer
%% are killed. A process that says it is running a NIF, twice, is one: one that runs on a normal
%% scheduler does not answer while it does.
-module(fairnif_watch_dirty).

-export([start/2, stop/1]).

%% A process that does not answer within this is left out of the round.
-define(ANSWER_MS, 200).
%% Batches in a second.
-define(BATCHES, 10).
%% Lists of processes are copies: with more processes than this a round is not begun more often than
%% every ten seconds.
-define(MANY, 100000).

-type job() :: #{mfa := none | mfa(), kind := nif | gc, name := binary()}.

%% @doc Starts to look; the caller gets `{fairnif_watch_pools, Message}', `{job, Pid, job(), Found}'
%% (us of the system's time), `{no_job, Pid}', `{round, Began}' when all have been asked, and
%% through `{fairnif_watch_count, dirty_asked, _}' how many were asked. Ends with the caller.
-spec start(pos_integer(), pid()) -> {pid(), reference()}.
start(PerSecond, Collector) ->
    spawn_monitor(fun() ->
                          Ref = erlang:monitor(process, Collector),
                          rounds(#{collector => Collector, ref => Ref, found => [],
                                  batch => max(1, PerSecond div ?BATCHES)})
                  end).

%% @doc Ends it; what it has under way ends too.
-spec stop(pid()) -> true.
stop(Pid) -> exit(Pid, kill).

rounds(#{collector := Collector} = State) ->
    Begin = erlang:monotonic_time(millisecond),
    At = erlang:system_time(microsecond),
    Many = erlang:system_info(process_count) > ?MANY,
    After = walk(first(), State),
    Collector ! {fairnif_watch_pools, {round, At}},
    %% Small nodes are walked in no time: found jobs are looked after once a second.
    Pause = case Many of true -> 10000; false -> 1000 end,
    Left = max(0, Begin + Pause - erlang:monotonic_time(millisecond)),
    rounds(look_after(Left, After)).

look_after(Left, State) when Left =< 0 ->
    State;
look_after(Left, #{found := Found} = State) ->
    wait(min(Left, 1000), State),
    look_after(Left - 1000, batch(Found, State)).

%% processes_iterator (OTP 28) makes no list of all.
first() ->
    case erlang:function_exported(erlang, processes_iterator, 0) of
        true -> {iterator, otp28(processes_iterator, [])};
        false -> erlang:processes()
    end.

%% The functions that older releases do not have.
otp28(Function, Args) -> apply(erlang, Function, Args).

take(N, {iterator, Iterator}) ->
    take(N, Iterator, []);
take(N, Pids) ->
    case length(lists:sublist(Pids, N)) of
        N -> lists:split(N, Pids);
        _ -> {Pids, []}
    end.

take(0, Iterator, Acc) ->
    {Acc, {iterator, Iterator}};
take(N, Iterator, Acc) ->
    case otp28(processes_next, [Iterator]) of
        {Pid, Next} -> take(N - 1, Next, [Pid | Acc]);
        none -> {Acc, []}
    end.

walk([], State) ->
    State;
walk(Rest, #{batch := Size} = State) ->
    {Pids, Next} = take(Size, Rest),
    After = batch(Pids, State),
    wait(1000 div ?BATCHES, After),
    walk(Next, After).

wait(Ms, #{ref := Ref}) ->
    receive
        {'DOWN', Ref, process, _, _} -> exit(normal)
    after Ms -> ok
    end.

batch([], State) ->
    State;
batch(Pids, #{collector := Collector} = State) ->
    Self = self(),
    %% Linked: what stops this process stops it too.
    {Asker, Ref} = spawn_opt(fun() -> ask(Pids, Self) end, [link, monitor]),
    After = answers(Asker, Ref, Pids, State),
    Collector ! {fairnif_watch_count, dirty_asked, length(Pids)},
    After.

ask(Pids, To) ->
    lists:foreach(fun(Pid) ->
                          To ! {self(), Pid, twice(Pid)}
                  end, Pids).

twice(Pid) ->
    case job(Pid) of
        none -> none;
        Job ->
            case job(Pid) of
                Job -> Job;
                _ -> none
            end
    end.

answers(_, Ref, [], State) ->
    true = erlang:demonitor(Ref, [flush]),
    State;
answers(Asker, Ref, [Pid | Rest], State) ->
    receive
        {Asker, Pid, Job} ->
            answers(Asker, Ref, Rest, answer(Pid, Job, State));
        {'DOWN', Ref, process, Asker, _} ->
            State
    after ?ANSWER_MS ->
            true = unlink(Asker),
            exit(Asker, kill),
            receive {'DOWN', Ref, process, Asker, _} -> ok end,
            flush(Asker),
            batch(Rest, State)
    end.

flush(Asker) ->
    receive {Asker, _, _} -> flush(Asker) after 0 -> ok end.

%% Sent each time, so that the collector knows it still runs.
answer(Pid, none, #{found := Found, collector := Collector} = State) ->
    case lists:member(Pid, Found) of
        true ->
            Collector ! {fairnif_watch_pools, {no_job, Pid}},
            State#{found := lists:delete(Pid, Found)};
        false ->
            State
    end;
answer(Pid, Job, #{found := Found, collector := Collector} = State) ->
    Collector ! {fairnif_watch_pools, {job, Pid, Job, erlang:system_time(microsecond)}},
    State#{found := [Pid | lists:delete(Pid, Found)]}.

job(Pid) when Pid =:= self() ->
    none;
job(Pid) ->
    case erlang:process_info(Pid, [status, current_function]) of
        [{status, Status}, {current_function, Function}] -> is_job(Status, Function);
        undefined -> none
    end.

%% Is a process with this status, in this function, on a dirty scheduler? Only collections and
%% NIFs get there.
-spec is_job(atom(), undefined | mfa()) -> none | job().
is_job(garbage_collecting, _) ->
    #{kind => gc, mfa => none, name => <<"garbage collection">>};
is_job(running, {M, F, A} = Mfa) when is_integer(A) ->
    Nifs = try erlang:get_module_info(M, nifs)
           catch error:_ -> []
           end,
    case lists:member({F, A}, Nifs) of
        true -> #{kind => nif, mfa => Mfa, name => fairnif_watch_culprit:mfa(M, F, A)};
        false -> none
    end;
is_job(_, _) ->
    none.
