%% What is known of the dirty pools beyond their queues: how long a job waits, measured by one that
%% does nothing; who occupies them; which of those has died while its code runs; and which may
%% have what a blocked scheduler waits for.
%%
%% Part of the collector: never waits. Starts processes only while a pool is full or a process waits
%% for what a job may have, and ends them then.
-module(fairnif_watch_pools).

-export([new/1, sample/2, add/2, handle/2, looked/2, down/4, await/3, beside/1, stop/1]).

-export_type([pools/0]).

%% Jobs remembered at most, and threads looked at in a second.
-define(JOBS, 64).
-define(LOOKS, 8).
%% What a look found holds for so long, us.
-define(LOOKED_US, 3000000).
%% A job not reported for this long, us, is over.
-define(FORGET_US, 15000000).

-record(pools, {search :: non_neg_integer(),
                %% Who is asked when a job ran: our own library, or the emulator.
                probes :: fairnif_watch_probe | erts_debug,
                full = [] :: [dirty_cpu | dirty_io],
                probe = #{} :: #{atom() => {pid(), reference(), StartedNs :: integer()}},
                waits = #{} :: #{atom() => {measured, float()}},
                %% When the last round of the search that is over began.
                round = 0 :: integer(),
                searcher = none :: none | {pid(), reference()},
                %% Found by the search, or of fairnif: monitored.
                jobs = #{} :: #{pid() => map()},
                dead = #{} :: #{pid() => map()},
                %% The last sample's, and the function that a look found each in.
                threads = [] :: [map()],
                looks = #{} :: #{{atom(), pos_integer()} => {At :: integer(), map()}},
                %% Findings of blocks asleep in a lock, and the module that it is of.
                awaited = #{} :: #{pos_integer() => module()},
                counts = [] :: [{atom(), integer()}]}).

-opaque pools() :: #pools{}.

%% @doc Nothing is known. Loads the probe, where the settings allow it.
-spec new(fairnif_watch_config:config()) -> pools().
new(#{dirty_search_per_s := PerSecond} = Config) ->
    #pools{search = PerSecond, probes = case fairnif_watch_probe:load(Config) of
                                            ok -> fairnif_watch_probe;
                                            {error, _} -> erts_debug
                                        end}.

%% @doc After each second: starts what a full pool needs, ends what is needed no more.
-spec sample(map(), pools()) -> {[{atom(), integer()}], pools()}.
sample(#{looks := Looks, threads := Threads, pool := Pool, at := At}, Pools) ->
    Full = [Kind || Kind <- [dirty_cpu, dirty_io], is_full(Kind, Looks)],
    Owned = owners(Threads ++ Pool, At, forget(At, Pools#pools{full = Full})),
    Next = lists:foldl(fun probe/2, search(Owned), [dirty_cpu, dirty_io]),
    ask_looks(Threads, Next),
    Still = still(Threads, Pool, lists:last(Looks), Next),
    {Next#pools.counts, Still#pools{counts = []}}.

%% At the last three looks, or at all that there were.
is_full(Kind, Looks) ->
    Last = lists:sublist(lists:reverse(Looks), 3),
    Last =/= []
        andalso lists:all(fun(Look) -> {Queued, _} = maps:get(Kind, Look), Queued > 0 end, Last).

%% One job at a time tells how long jobs wait; there is none while the pool is not full.
probe(Kind, #pools{probes = By, full = Full, probe = Probes, counts = Counts} = Pools) ->
    case {lists:member(Kind, Full), Probes} of
        {true, #{Kind := _}} ->
            Pools;
        {true, #{}} ->
            Collector = self(),
            Begin = erlang:monotonic_time(nanosecond),
            {Pid, Ref} = spawn_monitor(fun() -> Collector ! probed(Kind, By) end),
            Pools#pools{probe = Probes#{Kind => {Pid, Ref, Begin}},
                        counts = [{dirty_probes, 1} | Counts]};
        {false, #{Kind := {Pid, Ref, _}}} ->
            true = erlang:demonitor(Ref, [flush]),
            exit(Pid, kill),
            no_wait(Kind, Pools#pools{probe = maps:remove(Kind, Probes)});
        {false, #{}} ->
            no_wait(Kind, Pools)
    end.

no_wait(Kind, #pools{waits = Waits} = Pools) ->
    Pools#pools{waits = maps:remove(Kind, Waits)}.

%% In the process that probes.
probed(Kind, By) ->
    Begin = erlang:monotonic_time(nanosecond),
    {fairnif_watch_pools, {probed, Kind, (ran(Kind, By) - Begin) / 1.0e6}}.

ran(Kind, fairnif_watch_probe) ->
    fairnif_watch_probe:Kind();
%% A BIF that the emulator has for its own tests, which says of what kind its thread is. So the way
%% back counts as well.
ran(Kind, erts_debug) ->
    _ = case Kind of
            dirty_cpu -> erts_debug:dirty_cpu(scheduler, type);
            dirty_io -> erts_debug:dirty_io(scheduler, type)
        end,
    erlang:monotonic_time(nanosecond).

%% Continues while one is dead and it is not known whether his code runs: it takes to know the
%% living.
search(#pools{full = [], dead = Dead, awaited = Awaited, searcher = {Pid, Ref}} = Pools)
  when map_size(Dead) =:= 0, map_size(Awaited) =:= 0 ->
    true = erlang:demonitor(Ref, [flush]),
    fairnif_watch_dirty:stop(Pid),
    Pools#pools{searcher = none};
search(#pools{full = Full, awaited = Awaited, searcher = none, search = PerSecond} = Pools)
  when PerSecond > 0, Full =/= [] orelse map_size(Awaited) > 0 ->
    Pools#pools{searcher = fairnif_watch_dirty:start(PerSecond, self())};
search(Pools) ->
    Pools.

%% The owners of fairnif functions on dirty schedulers, and on its own threads, are monitored: that
%% tells of their death at once, and asks them nothing.
owners(Threads, At, Pools) ->
    lists:foldl(
      fun(#{kind := Kind, number := N,
            fairnif := #{function := {M, F, A} = Mfa, owner := Pid, since := Since}}, P)
            when Kind =/= normal, is_pid(Pid) ->
              job(Pid, #{mfa => Mfa, kind => fairnif, name => fairnif_watch_culprit:mfa(M, F, A),
                         pool => Kind, number => N, since => Since, certain => true}, At, P);
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
-spec handle(term(), pools()) -> pools().
handle({probed, Kind, Ms}, #pools{waits = Waits, probe = Probes} = Pools) ->
    case Probes of
        #{Kind := {_, Ref, _}} ->
            true = erlang:demonitor(Ref, [flush]),
            Pools#pools{waits = Waits#{Kind => {measured, max(0.0, Ms)}},
                        probe = maps:remove(Kind, Probes)};
        #{} ->
            Pools
    end;
handle({job, Pid, Job, At}, #pools{full = Full} = Pools) ->
    Pool = case Full of [Kind] -> Kind; _ -> unknown end,
    case Pools#pools.jobs of
        #{Pid := #{kind := fairnif}} -> Pools;
        #{} -> job(Pid, Job#{pool => Pool, number => none, certain => false}, At, Pools)
    end;
handle({round, Began}, Pools) ->
    Pools#pools{round = Began};
handle({no_job, Pid}, Pools) ->
    remove(Pid, Pools);
handle(_, Pools) ->
    Pools.

%% @doc A process that is monitored here has ended; its code may run on, unless it ended by itself.
-spec down(reference(), Why :: term(), Now :: integer(), pools()) -> pools().
down(Ref, _, _, #pools{searcher = {_, Ref}} = Pools) ->
    Pools#pools{searcher = none};
down(Ref, Why, Now, #pools{jobs = Jobs, dead = Dead, probe = Probes} = Pools) ->
    case [Pid || {Pid, #{ref := R}} <- maps:to_list(Jobs), R =:= Ref] of
        [Pid] ->
            {Job, Rest} = maps:take(Pid, Jobs),
            Pools#pools{jobs = Rest,
                        dead = case Job of
                                   #{kind := gc} -> Dead;
                                   _ when Why =:= normal; map_size(Dead) >= ?JOBS -> Dead;
                                   _ -> Dead#{Pid => Job#{died => died(Why, Job, Now), pid => Pid}}
                               end};
        [] ->
            Pools#pools{probe = maps:filter(fun(_, {_, R, _}) -> R =/= Ref end, Probes)}
    end.

%% A caller dead when its job was first seen died before it began, or soon after: a body that
%% unwinds begins with his death.
died(noproc, #{since := Since}, Now) ->
    min(Now, (Since + erlang:time_offset(nanosecond)) div 1000);
died(_, _, Now) ->
    Now.

%% Which of the dead may still run. A fairnif one says so itself. Which process a thread works for
%% otherwise cannot be seen, only how many jobs run and who lives: while fewer run than live, less
%% those that may be waiting, no dead one does. (One that died waiting is in the queue, and so in
%% its length, until its turn comes.)
still(Threads, Pool, #{dirty_cpu := Cpu, dirty_io := Io},
      #pools{dead = Dead, jobs = Jobs} = Pools) ->
    {Queued, Active} = {element(1, Cpu) + element(1, Io), element(2, Cpu) + element(2, Io)},
    Living = length([Pid || {Pid, #{kind := Kind}} <- maps:to_list(Jobs), Kind =/= fairnif]),
    Fair = length([N || #{kind := Kind, number := N, fairnif := #{}} <- Threads, Kind =/= normal]),
    Running = Active - Queued - Fair,
    May = fun(Pid, #{kind := fairnif}) -> is_running(Pid, Threads ++ Pool);
             (_, _) -> Running > max(0, Living - Queued)
          end,
    Pools#pools{dead = maps:filter(May, Dead), threads = Threads}.

%% What is known of the dead, for the detector. Foreign ones of the same function look the
%% same, so they are one. It is certain that it runs for one of them if more threads than there are
%% living processes in it show the function, are busy with it since before it was found, and all the
%% living are known: the search has been round since.
dead(#pools{dead = Dead} = Pools, At) ->
    Fair = [Job#{key => Pid, candidates => [Pid], count => 1}
            || {Pid, #{kind := fairnif} = Job} <- maps:to_list(Dead)],
    Functions = lists:usort([Mfa || {_, #{kind := nif, mfa := Mfa}} <- maps:to_list(Dead)]),
    Fair ++ [of_function(Mfa, [Job || {_, #{mfa := M} = Job} <- maps:to_list(Dead), M =:= Mfa],
                         Pools, At)
             || Mfa <- Functions].

of_function({Module, _, _} = Mfa, [First | _] = Dead, #pools{jobs = Jobs, round = Round} = Pools,
            At) ->
    Pids = [Pid || #{pid := Pid} <- Dead],
    Died = lists:min([D || #{died := D} <- Dead]),
    Found = lists:max([F || #{found := F} <- Dead]),
    Living = length([Pid || {Pid, #{mfa := {M, _, _}}} <- maps:to_list(Jobs), M =:= Module]),
    Shown = showing(Mfa, Found, Pools, At),
    Known = Round > lists:max([D || #{died := D} <- Dead]),
    Orphans = min(length(Dead), length(Shown) - Living),
    {Kind, Number} = case Shown of [Thread] -> Thread; [{K, _} | _] -> {K, none};
                         [] -> {maps:get(pool, First), none}
                     end,
    First#{key => Mfa, died => Died, candidates => Pids, pool => Kind, number => Number,
           pid => case Pids of [Pid] -> Pid; _ -> none end,
           count => max(1, Orphans), certain => Known andalso Orphans > 0}.

showing(Mfa, Found, #pools{looks = Looks, threads = Threads}, At) ->
    [{Kind, N} || #{kind := Kind, number := N, busy_ns := Busy} <- Threads,
                  Busy div 1000 >= At - Found,
                  case Looks of
                      #{{Kind, N} := {Looked, Seen}} ->
                          At - Looked < ?LOOKED_US andalso is_in(Seen, Mfa);
                      #{} ->
                          false
                  end].

%% By the module: often no more is known, and one C function may stand in its table under several
%% names.
is_in(#{module := Module}, {Module, _, _}) -> true;
is_in(_, _) -> false.

is_running(Pid, Threads) ->
    lists:any(fun(#{fairnif := #{owner := Owner}}) -> Owner =:= Pid;
                 (_) -> false
              end, Threads).

%% Busy threads of the pools are looked at while an unexplained one is dead, or a process waits for
%% what one may have.
ask_looks(Threads, #pools{dead = Dead, awaited = Awaited}) ->
    case [Pid || {Pid, #{kind := nif}} <- maps:to_list(Dead)] of
        [] when map_size(Awaited) =:= 0 ->
            ok;
        _ ->
            Busy = [{Kind, N} || #{kind := Kind, number := N, state := State} <- Threads,
                                 Kind =/= normal, State =:= busy orelse State =:= native
                                     orelse State =:= sleeping_in_native],
            lists:foreach(fun({Kind, N}) ->
                                  fairnif_watch_watchdog:look(Kind, N, fairnif_watch_pools)
                          end, lists:sublist(Busy, ?LOOKS))
    end.

%% @doc A block, by the id of its finding, sleeps in a lock; `none': not any more. What holds a lock
%% of a library is often a job of the same library.
-spec await(pos_integer(), module() | none, pools()) -> pools().
await(Id, none, #pools{awaited = Awaited} = Pools) ->
    search(Pools#pools{awaited = maps:remove(Id, Awaited)});
await(Id, Module, #pools{awaited = Awaited} = Pools) when is_map_key(Id, Awaited) ->
    Pools#pools{awaited = Awaited#{Id := Module}};
await(Id, Module, #pools{awaited = Awaited} = Pools) ->
    Next = search(Pools#pools{awaited = Awaited#{Id => Module}}),
    Threads = fairnif_watch_sample:from_watchdog(threads, []),
    ask_looks(Threads, Next),
    Next#pools{threads = Threads}.

%% @doc For each such finding the jobs of its library that are known to run: the function, where it
%% runs, and for whom, as far as that is known.
-spec beside(pools()) -> [{pos_integer(), [fairnif_watch_finding:holder()]}].
beside(#pools{awaited = Awaited} = Pools) ->
    Now = erlang:system_time(microsecond),
    [{Id, holders(Module, Now, Pools)} || {Id, Module} <- maps:to_list(Awaited)].

holders(Module, Now, #pools{looks = Looks, threads = Threads, jobs = Jobs}) ->
    Owned = [{Mfa, {Kind, N}, Pid}
             || #{kind := Kind, number := N, fairnif := #{function := Mfa, owner := Pid}}
                    <- Threads,
                Kind =/= normal, element(1, Mfa) =:= Module],
    Seen = [{Mfa, Thread, none}
            || {Thread, {At, #{module := M, mfa := Mfa}}} <- maps:to_list(Looks),
               M =:= Module, Mfa =/= none, Now - At < ?LOOKED_US,
               not lists:keymember(Thread, 2, Owned)],
    Asked = [{Mfa, none, Pid} || {Pid, #{kind := nif, mfa := Mfa}} <- maps:to_list(Jobs),
                                 element(1, Mfa) =:= Module],
    All = Owned ++ Seen ++ Asked,
    [#{mfa => Mfa, threads => lists:usort([T || {F, T, _} <- All, F =:= Mfa, T =/= none]),
       pids => lists:usort([P || {F, _, P} <- All, F =:= Mfa, is_pid(P)])}
     || Mfa <- lists:usort([F || {F, _, _} <- All])].

%% @doc The stack of a thread that was asked for: which function it is in, or of which module.
-spec looked(map(), pools()) -> pools().
looked(#{ref := fairnif_watch_pools, kind := Kind, number := N} = Event,
       #pools{looks = Looks} = Pools) ->
    Seen = maps:with([mfa, module], fairnif_watch_culprit:of_event(Event)),
    Pools#pools{looks = Looks#{{Kind, N} => {erlang:system_time(microsecond), Seen}}};
looked(_, Pools) ->
    Pools.

%% @doc The sample with what is known of the pools.
-spec add(map(), pools()) -> map().
add(#{at := At} = Sample, #pools{waits = Waits, probe = Probes, jobs = Jobs} = Pools) ->
    Now = erlang:monotonic_time(nanosecond),
    %% While a probe waits it is known to wait so long at least: which may exceed the last result.
    Late = maps:map(fun(_, {_, _, Begin}) -> {at_least, (Now - Begin) / 1.0e6} end, Probes),
    Longer = fun(_, {_, A} = Old, {_, B} = New) -> if A >= B -> Old; true -> New end end,
    Sample#{waits => maps:fold(fun(Kind, New, Acc) ->
                                       case Acc of
                                           #{Kind := Old} -> Acc#{Kind := Longer(Kind, Old, New)};
                                           #{} -> Acc#{Kind => New}
                                       end
                               end, Waits, Late),
            dirty => #{jobs => [maps:remove(ref, Job#{pid => Pid})
                                || {Pid, Job} <- maps:to_list(Jobs), not is_probe(Job)],
                       dead => dead(Pools, At)}}.

%% Our own: it waits as any job does, and needs no report.
is_probe(#{mfa := {fairnif_watch_probe, _, _}}) -> true;
is_probe(_) -> false.

%% @doc Ends what was started.
-spec stop(pools()) -> ok.
stop(#pools{searcher = Searcher, probe = Probes}) ->
    _ = [fairnif_watch_dirty:stop(Pid) || {Pid, _} <- [Searcher]],
    maps:foreach(fun(_, {Pid, _, _}) -> exit(Pid, kill) end, Probes).
