%% What is known of the dirty pools beyond their queues: how long a job waits, measured by one that does
%% nothing; who occupies them; and which of those has died while its code goes on.
%%
%% Part of the collector: never waits. Starts processes only while a pool is full, and ends them then.
-module(fairnif_watch_pools).

-export([new/1, sample/2, add/2, told/2, looked/2, down/3, stop/1]).

-export_type([pools/0]).

%% Jobs remembered at most, and threads looked at in a second.
-define(JOBS, 64).
-define(LOOKS, 8).
%% A job not told of for so long, us, is over.
-define(FORGET_US, 15000000).

-record(pools, {search :: non_neg_integer(),
                probes :: boolean(),
                full = [] :: [dirty_cpu | dirty_io],
                probe = #{} :: #{atom() => {pid(), reference(), StartedNs :: integer()}},
                waits = #{} :: #{atom() => {measured, float()}},
                searcher = none :: none | {pid(), reference()},
                %% Found by the search, or of fairnif: monitored.
                jobs = #{} :: #{pid() => map()},
                dead = #{} :: #{pid() => map()},
                counts = [] :: [{atom(), integer()}]}).

-opaque pools() :: #pools{}.

%% @doc Nothing is known. Loads the probe, where the settings allow it.
-spec new(fairnif_watch_config:config()) -> pools().
new(#{dirty_search_per_s := PerSecond} = Config) ->
    #pools{search = PerSecond, probes = fairnif_watch_probe:load(Config) =:= ok}.

%% @doc After each second: starts what a full pool needs, ends what is needed no more.
-spec sample(map(), pools()) -> {[{atom(), integer()}], pools()}.
sample(#{looks := Looks, threads := Threads, at := At}, Pools) ->
    Full = [Kind || Kind <- [dirty_cpu, dirty_io], is_full(Kind, Looks)],
    Owned = owners(Threads, At, forget(At, Pools#pools{full = Full})),
    Next = lists:foldl(fun probe/2, search(Owned), [dirty_cpu, dirty_io]),
    ask_looks(Threads, Next),
    Still = still(Threads, lists:last(Looks), At, Next),
    {Next#pools.counts, Still#pools{counts = []}}.

is_full(Kind, Looks) ->
    Looks =/= []
        andalso lists:all(fun(Look) -> {Queued, _} = maps:get(Kind, Look), Queued > 0 end, Looks).

%% One job at a time tells how long jobs wait; there is none while the pool is not full.
probe(Kind, #pools{probes = true, full = Full, probe = Probes, counts = Counts} = Pools) ->
    case {lists:member(Kind, Full), Probes} of
        {true, #{Kind := _}} ->
            Pools;
        {true, #{}} ->
            Collector = self(),
            Begin = erlang:monotonic_time(nanosecond),
            {Pid, Ref} = spawn_monitor(fun() -> Collector ! probed(Kind) end),
            Pools#pools{probe = Probes#{Kind => {Pid, Ref, Begin}},
                        counts = [{dirty_probes, 1} | Counts]};
        {false, #{Kind := {Pid, Ref, _}}} ->
            true = erlang:demonitor(Ref, [flush]),
            exit(Pid, kill),
            no_wait(Kind, Pools#pools{probe = maps:remove(Kind, Probes)});
        {false, #{}} ->
            no_wait(Kind, Pools)
    end;
probe(_, Pools) ->
    Pools.

no_wait(Kind, #pools{waits = Waits} = Pools) ->
    Pools#pools{waits = maps:remove(Kind, Waits)}.

%% In the process that probes.
probed(Kind) ->
    Begin = erlang:monotonic_time(nanosecond),
    Ran = fairnif_watch_probe:Kind(),
    {fairnif_watch_pools, {probed, Kind, (Ran - Begin) / 1.0e6}}.

%% Goes on while somebody is dead and it is not known whether his code runs: it takes to know the living.
search(#pools{full = [], dead = Dead, searcher = {Pid, Ref}} = Pools) when map_size(Dead) =:= 0 ->
    true = erlang:demonitor(Ref, [flush]),
    fairnif_watch_dirty:stop(Pid),
    Pools#pools{searcher = none};
search(#pools{full = [_ | _], searcher = none, search = PerSecond} = Pools) when PerSecond > 0 ->
    Pools#pools{searcher = fairnif_watch_dirty:start(PerSecond, self())};
search(Pools) ->
    Pools.

%% The owners of fairnif functions on dirty schedulers are monitored: that tells of their death at
%% once, and asks them nothing.
owners(Threads, At, Pools) ->
    lists:foldl(
      fun(#{kind := Kind, number := N, fairnif := #{function := {M, F, A} = Mfa, owner := Pid}}, P)
            when Kind =/= normal, is_pid(Pid) ->
              job(Pid, #{mfa => Mfa, kind => fairnif, name => fairnif_watch_finding:mfa(M, F, A),
                         pool => Kind, number => N, certain => true}, At, P);
         (_, P) ->
              P
      end, Pools, Threads).

job(Pid, Job, At, #pools{jobs = Jobs, dead = Dead} = Pools) ->
    case {Jobs, Dead} of
        {_, #{Pid := _}} ->
            Pools;
        {#{Pid := Known}, _} ->
            Pools#pools{jobs = Jobs#{Pid := maps:merge(Known, Job#{seen => At})}};
        {#{}, _} when map_size(Jobs) < ?JOBS ->
            Ref = erlang:monitor(process, Pid),
            Pools#pools{jobs = Jobs#{Pid => Job#{seen => At, found => At, ref => Ref}}};
        _ ->
            Pools
    end.

forget(At, #pools{jobs = Jobs} = Pools) ->
    Old = [Pid || {Pid, #{seen := Seen} = Job} <- maps:to_list(Jobs),
                  At - Seen > case Job of #{kind := fairnif} -> 0; _ -> ?FORGET_US end],
    lists:foldl(fun remove/2, Pools, Old).

remove(Pid, #pools{jobs = Jobs} = Pools) ->
    case maps:take(Pid, Jobs) of
        {#{ref := Ref}, Rest} ->
            true = erlang:demonitor(Ref, [flush]),
            Pools#pools{jobs = Rest};
        error ->
            Pools
    end.

%% @doc A message of one of the processes started here.
-spec told(term(), pools()) -> pools().
told({probed, Kind, Ms}, #pools{waits = Waits, probe = Probes} = Pools) ->
    case Probes of
        #{Kind := {_, Ref, _}} ->
            true = erlang:demonitor(Ref, [flush]),
            Pools#pools{waits = Waits#{Kind => {measured, max(0.0, Ms)}},
                        probe = maps:remove(Kind, Probes)};
        #{} ->
            Pools
    end;
told({job, Pid, Job, At}, #pools{full = Full} = Pools) ->
    Pool = case Full of [Kind] -> Kind; _ -> unknown end,
    case Pools#pools.jobs of
        #{Pid := #{kind := fairnif}} -> Pools;
        #{} -> job(Pid, Job#{pool => Pool, number => none, certain => false}, At, Pools)
    end;
told({no_job, Pid}, Pools) ->
    remove(Pid, Pools);
told(_, Pools) ->
    Pools.

%% @doc A process that is monitored here has ended; its code may go on.
-spec down(reference(), Now :: integer(), pools()) -> pools().
down(Ref, _, #pools{searcher = {_, Ref}} = Pools) ->
    Pools#pools{searcher = none};
down(Ref, Now, #pools{jobs = Jobs, dead = Dead, probe = Probes} = Pools) ->
    case [Pid || {Pid, #{ref := R}} <- maps:to_list(Jobs), R =:= Ref] of
        [Pid] ->
            {Job, Rest} = maps:take(Pid, Jobs),
            Pools#pools{jobs = Rest,
                        dead = case Job of
                                   #{kind := gc} -> Dead;
                                   _ -> Dead#{Pid => Job#{died => Now, pid => Pid,
                                                          confirmed => none}}
                               end};
        [] ->
            Pools#pools{probe = maps:filter(fun(_, {_, R, _}) -> R =/= Ref end, Probes)}
    end.

%% Which of the dead still run. A fairnif one says so itself. Of the others it is known how many: jobs
%% that run, less those of the living, of whom as many as wait do not run. Which process a thread
%% works for cannot be seen, so with more dead than that none is certain.
still(Threads, #{dirty_cpu := Cpu, dirty_io := Io}, At, #pools{dead = Dead, jobs = Jobs} = Pools) ->
    {Queued, Active} = {element(1, Cpu) + element(1, Io), element(2, Cpu) + element(2, Io)},
    Living = length([Pid || {Pid, #{kind := Kind}} <- maps:to_list(Jobs), Kind =/= fairnif]),
    Fair = length([N || #{kind := Kind, number := N, fairnif := #{}} <- Threads, Kind =/= normal]),
    Orphans = (Active - Queued) - Fair - max(0, Living - Queued),
    Unknown = [Pid || {Pid, #{kind := nif}} <- maps:to_list(Dead)],
    Judge = fun(Pid, #{kind := fairnif} = Job, Acc) ->
                    case is_running(Pid, Threads) of
                        true -> Acc#{Pid => Job};
                        false -> Acc
                    end;
               (Pid, Job, Acc) when Orphans > 0 ->
                    Acc#{Pid => judged(Job, length(Unknown) =< Orphans, At)};
               (_, _, Acc) ->
                    Acc
            end,
    Pools#pools{dead = maps:fold(Judge, #{}, Dead)}.

%% Certain too only where the stack of a thread shows its function, lately.
judged(#{looked := Looked} = Job, Enough, At) when At - Looked < 3000000 ->
    Job#{certain := Enough, confirmed := At};
judged(Job, _, At) ->
    Job#{certain := false, confirmed := At}.

is_running(Pid, Threads) ->
    lists:any(fun(#{fairnif := #{owner := Owner}}) -> Owner =:= Pid;
                 (_) -> false
              end, Threads).

%% Busy threads of the pools are looked at while somebody unexplained is dead.
ask_looks(Threads, #pools{dead = Dead}) ->
    case [Pid || {Pid, #{kind := nif}} <- maps:to_list(Dead)] of
        [] ->
            ok;
        _ ->
            Busy = [{Kind, N} || #{kind := Kind, number := N, state := State} <- Threads,
                                 Kind =/= normal, State =:= busy orelse State =:= native
                                     orelse State =:= sleeping_in_native],
            lists:foreach(fun({Kind, N}) ->
                                  look(Kind, N)
                          end, lists:sublist(Busy, ?LOOKS))
    end.

look(Kind, N) ->
    try fairnif_watch_watchdog:look(Kind, N, fairnif_watch_pools)
    catch _:_ -> ok
    end.

%% @doc The stack of a thread that was asked for: does a dead process's function still run there?
-spec looked(map(), pools()) -> pools().
looked(#{ref := fairnif_watch_pools, kind := Kind, number := N} = Event,
       #pools{dead = Dead} = Pools) ->
    #{mfa := Mfa} = fairnif_watch_culprit:of_event(Event),
    Now = erlang:system_time(microsecond),
    Seen = fun(_, #{mfa := M, kind := nif} = Job) when M =:= Mfa, Mfa =/= none ->
                   Job#{looked => Now, pool := Kind, number := N};
              (_, Job) ->
                   Job
           end,
    Pools#pools{dead = maps:map(Seen, Dead)};
looked(_, Pools) ->
    Pools.

%% @doc The sample with what is known of the pools.
-spec add(map(), pools()) -> map().
add(Sample, #pools{waits = Waits, probe = Probes, jobs = Jobs, dead = Dead}) ->
    Now = erlang:monotonic_time(nanosecond),
    %% While a probe waits it is known to wait so long at least: which may exceed the last result.
    Late = maps:map(fun(_, {_, _, Begin}) -> {at_least, (Now - Begin) / 1.0e6} end, Probes),
    Longer = fun(_, {_, A} = Old, {_, B} = New) -> if A >= B -> Old; true -> New end end,
    Known = [Job || #{confirmed := At} = Job <- [confirmed(J) || J <- maps:values(Dead)],
                    At =/= none],
    Sample#{waits => maps:fold(fun(Kind, New, Acc) ->
                                       case Acc of
                                           #{Kind := Old} -> Acc#{Kind := Longer(Kind, Old, New)};
                                           #{} -> Acc#{Kind => New}
                                       end
                               end, Waits, Late),
            dirty => #{jobs => [maps:remove(ref, Job#{pid => Pid})
                                || {Pid, Job} <- maps:to_list(Jobs)],
                       dead => Known}}.

confirmed(#{kind := fairnif, died := Died} = Job) -> Job#{confirmed := Died};
confirmed(Job) -> Job.

%% @doc Ends what was started.
-spec stop(pools()) -> ok.
stop(#pools{searcher = Searcher, probe = Probes}) ->
    _ = [fairnif_watch_dirty:stop(Pid) || {Pid, _} <- [Searcher]],
    maps:foreach(fun(_, {Pid, _, _}) -> exit(Pid, kill) end, Probes).
