%% What other people's processes feel while every scheduler is kept busy with a function: how late a
%% sleeper wakes, how long an operation waits that needs the progress of all threads, and what the
%% VM's own monitor reports.
%%
%% In this order, in one node: with nothing else at work, as many busy Erlang processes as
%% schedulers, where a call leaves much on its heap as many that build a term of that size, and as
%% many callers of the function. The callers come last, since they may be such as cannot be stopped.
%% They yield after each call: what is felt is the call, not the loop (whose turn lasts long when
%% calls are charged too little; that is what fairnif_check_share shows).
-module(fairnif_check_crowd).

-export([measure/2]).

-export_type([options/0, result/0, delay/0]).

-type options() :: #{time_ms => pos_integer()}.         % of each of the three; default 1000
-type delay() :: #{count := non_neg_integer(), p50 := number(), p99 := number(), max := number(),
                   windows := [number()],               % p99 of each window, ns
                   samples := [integer()]}.             % of all windows, in order of time
-type result() :: #{delay := #{idle := delay(), erlang := delay(), beside := delay(),
                               %% Beside Erlang that builds a term of the size that a call leaves.
                               sized => delay(), bytes => pos_integer()},
                    thread_progress := #{idle := fairnif_check_stats:summary(),
                                         beside := fairnif_check_stats:summary()},
                    long_schedule := #{count := non_neg_integer(), longest_ms := non_neg_integer(),
                                       named := [binary()]}}.

-define(WINDOWS, 4).
-define(LONG_MS, 1).            % the least that long_schedule takes

%% @doc Takes three times `time_ms' and some more. Never returns where the function blocks all
%% schedulers forever: the caller has a time limit. An error when callers ended, since what is
%% felt without them says nothing: why the first of them did.
-spec measure(fun(() -> term()), options()) -> {ok, result()} | {error, term()}.
measure(Fun, Opts) ->
    WindowMs = max(50, maps:get(time_ms, Opts, 1000) div ?WINDOWS),
    Schedulers = erlang:system_info(schedulers_online),
    Idle = delay(WindowMs),
    IdleProgress = progress(WindowMs),
    Mixes = lists:append(lists:duplicate(Schedulers, fairnif_check_share:mixes())),
    {Erlang, []} = beside([fun() -> busy(M) end
                           || M <- lists:sublist(Mixes, Schedulers)],
                          fun() -> delay(WindowMs) end),
    Sized = sized(Fun, Schedulers, WindowMs),
    {{Beside, Progress, Long}, Ended} =
        beside([fun() -> forever(Fun) end || _ <- lists:seq(1, Schedulers)],
               fun() -> {delay(WindowMs), progress(WindowMs), long_schedule(WindowMs)} end),
    case Ended of
        [] ->
            {ok, #{delay => Sized#{idle => Idle, erlang => Erlang, beside => Beside},
                   thread_progress => #{idle => IdleProgress, beside => Progress},
                   long_schedule => Long}};
        [Why | _] ->
            {error, Why}
    end.

%% A large result takes long to be collected, by whatever it was made.
sized(Fun, Schedulers, WindowMs) ->
    case fairnif_check_garbage:alike(Fun, all, infinity) of
        {Bytes, Build} ->
            {Delay, _} = beside([fun() -> forever(Build) end || _ <- lists:seq(1, Schedulers)],
                                fun() -> delay(WindowMs) end),
            #{sized => Delay, bytes => Bytes};
        none ->
            #{}
    end.

%% What was measured, and why those loads ended that did.
beside(Loads, Measure) ->
    Loaded = [spawn_monitor(Load) || Load <- Loads],
    timer:sleep(20),
    try
        Measured = Measure(),
        {Measured, [Why || {_, Monitor} <- Loaded, Why <- ended(Monitor)]}
    after
        [begin erlang:demonitor(Monitor, [flush]), exit(Pid, kill) end || {Pid, Monitor} <- Loaded]
    end.

ended(Monitor) ->
    receive {'DOWN', Monitor, process, _, Why} -> [Why] after 0 -> [] end.

%% A turn is paid, not only given up: the VM looks at a scheduler's timers once in 4000 reductions
%% that were charged, and erlang:yield/0 charges none: the loop would make the sleeper late.
forever(Fun) ->
    try Fun() of
        _ -> true = erlang:bump_reductions(4000)
    catch
        %% No report of the logger's.
        Class:Reason -> exit({Class, Reason})
    end,
    forever(Fun).

busy(Mix) ->
    _ = fairnif_check_share:work(Mix),
    busy(Mix).

%% Several windows: what one shows the machine may have done.
delay(WindowMs) ->
    Windows = [maps:get(samples, fairnif_check_delay:measure(#{time_ms => WindowMs}))
               || _ <- lists:seq(1, ?WINDOWS)],
    Summary = fairnif_check_delay:summary(lists:append(Windows)),
    Summary#{windows => [fairnif_check_stats:percentile(99, W) || W <- Windows]}.

%% A new persistent term: its writer waits until every scheduler has passed a point where it holds
%% no pointer into the old table. So do code loading, purging, and much of what a node does inside.
progress(WindowMs) ->
    Until = now_ns() + WindowMs * 1000000,
    fairnif_check_stats:summary(progress(Until, 100, [])).

progress(_, 0, Samples) ->
    Samples;
progress(Until, Left, Samples) ->
    T0 = now_ns(),
    %% Never the same key: to replace a value is more work, done by all schedulers, than to add one.
    persistent_term:put({?MODULE, T0, Left}, T0),
    T1 = now_ns(),
    timer:sleep(1),
    case now_ns() < Until of
        true -> progress(Until, Left - 1, [T1 - T0 | Samples]);
        false -> [T1 - T0 | Samples]
    end.

%% What the VM answers when it is asked for the culprit.
long_schedule(WindowMs) ->
    Me = self(),
    {Listener, Monitor} =
        spawn_monitor(fun() ->
                              _ = erlang:system_monitor(self(), [{long_schedule, ?LONG_MS}]),
                              Me ! {self(), listening},
                              receive stop -> ok end,
                              exit({heard, heard([])})
                      end),
    receive {Listener, listening} -> ok end,
    timer:sleep(WindowMs),
    Listener ! stop,
    receive
        {'DOWN', Monitor, process, _, {heard, Heard}} ->
            #{count => length(Heard),
              longest_ms => lists:max([0 | [T || {T, _} <- Heard]]),
              named => lists:usort([Name || {_, Name} <- Heard])}
    end.

heard(Acc) ->
    receive
        {monitor, _, long_schedule, Info} ->
            {timeout, T} = lists:keyfind(timeout, 1, Info),
            heard([{T, named(lists:keyfind(out, 1, Info))} | Acc])
    after 0 ->
            Acc
    end.

named({out, {M, F, A}}) -> iolist_to_binary(io_lib:format("~tw:~tw/~b", [M, F, A]));
named(_) -> <<"no function">>.

now_ns() ->
    erlang:monotonic_time(nanosecond).
