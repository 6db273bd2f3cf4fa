%% The metrics in Prometheus's text format, version 0.0.4: one table of families.
%%
%% Where prometheus.erl has a name for the same thing it is used; ours begin with `fairnif_watch_'
%% and have base units (seconds, ratios). Never a pid as a label, and no more functions than
%% `metrics_functions': a time series is for ever in a database.
-module(fairnif_watch_metrics).

-export([text/0, text/1, families/0]).

-export_type([input/0, family/0]).

-type input() :: #{view := map(), sample := map(), totals := map(), config := map()}.
-type family() :: {Name :: binary(), counter | gauge | histogram, Help :: binary(),
                   fun((input()) -> [{[{atom(), term()}], number() | histogram()}])}.
-type histogram() :: {[{AtLeast :: number(), Count :: non_neg_integer()}],
                      Sum :: number(), Count :: non_neg_integer()}.
%% How many were at least so large, and less than the next; the rest was less than the first.

%% @doc The metrics of this node now. Raises `exit:{noproc, _}' where the watch does not run.
-spec text() -> iodata().
text() ->
    text(fairnif_watch_collector:metrics()).

%% @doc The metrics of what is given. Families without a value are left out.
-spec text(input()) -> iodata().
text(Input) ->
    [family(Family, Input) || Family <- families()].

family({Name, Type, Help, Values}, Input) ->
    case Values(Input) of
        [] ->
            [];
        Rows ->
            ["# HELP ", Name, " ", escape_help(Help), "\n# TYPE ", Name, " ", atom_to_binary(Type),
             "\n", [row(Name, Labels, Value) || {Labels, Value} <- Rows]]
    end.

%% Prometheus's buckets hold what is at most so large, and so all smaller ones.
row(Name, Labels, {Large, Sum, Count}) ->
    {Least, Numbers} = lists:unzip(Large),
    Small = max(0, Count - lists:sum(Numbers)),
    {Buckets, All} = lists:mapfoldl(fun(N, Acc) -> {Acc, Acc + N} end, Small, Numbers),
    [[row([Name, "_bucket"], Labels ++ [{le, number(Bound)}], N)
      || {Bound, N} <- lists:zip(Least, Buckets)],
     row([Name, "_bucket"], Labels ++ [{le, <<"+Inf">>}], All),
     row([Name, "_sum"], Labels, Sum), row([Name, "_count"], Labels, All)];
row(Name, Labels, Value) ->
    [Name, labels(Labels), " ", number(Value), "\n"].

labels([]) -> [];
labels(Labels) ->
    [${, lists:join($,, [[atom_to_binary(Key), "=\"", escape(text_of(Value)), $"]
                         || {Key, Value} <- Labels]), $}].

text_of(Atom) when is_atom(Atom) -> atom_to_binary(Atom);
text_of(Int) when is_integer(Int) -> integer_to_binary(Int);
text_of(Text) when is_binary(Text) ->
    case unicode:characters_to_binary(Text) of
        Utf8 when is_binary(Utf8) -> Utf8;
        _ -> unicode:characters_to_binary(Text, latin1)
    end.

escape(Text) ->
    << <<(case C of
              $\\ -> <<"\\\\">>;
              $" -> <<"\\\"">>;
              $\n -> <<"\\n">>;
              _ -> <<C/utf8>>
          end)/binary>> || <<C/utf8>> <= Text >>.

escape_help(Text) ->
    << <<(case C of
              $\\ -> <<"\\\\">>;
              $\n -> <<"\\n">>;
              _ -> <<C>>
          end)/binary>> || <<C>> <= Text >>.

number(Int) when is_integer(Int) -> integer_to_binary(Int);
number(Float) -> float_to_binary(Float, [{decimals, 9}, compact]).

%% @doc Every family: name, type, help, and where its values come from.
-spec families() -> [family()].
families() ->
    vm() ++ schedulers() ++ pools() ++ findings() ++ functions() ++ counted().

%% prometheus.erl's names (its collectors vm_system_info and vm_statistics).
vm() ->
    Info = fun(Name, Key, Help) ->
                   {Name, gauge, Help,
                    fun(#{view := #{memory := M}}) -> [{[], maps:get(Key, M)}] end}
           end,
    Online = fun(Name, Key, Help) ->
                     {Name, gauge, Help,
                      fun(#{sample := #{online := O}}) -> [{[], maps:get(Key, O)}] end}
             end,
    Queue = fun(Name, Key, Help) ->
                    {Name, gauge, Help,
                     fun(#{view := #{queues := Q}}) -> [{[], maps:get(Key, Q)}] end}
            end,
    [Info(<<"erlang_vm_process_count">>, processes, <<"Processes on this node">>),
     Info(<<"erlang_vm_process_limit">>, process_limit, <<"Processes that this node may have">>),
     Info(<<"erlang_vm_port_count">>, ports, <<"Ports on this node">>),
     Info(<<"erlang_vm_port_limit">>, port_limit, <<"Ports that this node may have">>),
     Info(<<"erlang_vm_atom_count">>, atoms, <<"Atoms on this node">>),
     Info(<<"erlang_vm_atom_limit">>, atom_limit, <<"Atoms that this node may have">>),
     Info(<<"erlang_vm_ets_limit">>, ets_limit, <<"ETS tables that this node may have">>),
     Online(<<"erlang_vm_schedulers_online">>, normal, <<"Normal schedulers online">>),
     Online(<<"erlang_vm_dirty_cpu_schedulers_online">>, dirty_cpu,
            <<"Dirty CPU schedulers online">>),
     Online(<<"erlang_vm_dirty_io_schedulers">>, dirty_io, <<"Dirty I/O schedulers">>),
     Queue(<<"erlang_vm_statistics_run_queues_length">>, normal,
           <<"Processes and ports that wait for a normal scheduler">>),
     Queue(<<"erlang_vm_statistics_dirty_cpu_run_queue_length">>, dirty_cpu,
           <<"Jobs that wait for a dirty CPU scheduler">>),
     Queue(<<"erlang_vm_statistics_dirty_io_run_queue_length">>, dirty_io,
           <<"Jobs that wait for a dirty I/O scheduler">>)].

schedulers() ->
    Of = fun(Key) ->
                 fun(#{view := #{schedulers := S}}) ->
                         [{who(Thread), maps:get(Key, Thread)}
                          || Thread <- S, is_number(maps:get(Key, Thread))]
                 end
         end,
    [{<<"fairnif_watch_scheduler_busy_ratio">>, gauge,
      <<"CPU time of the scheduler thread in the last second, of that second">>, Of(busy)},
     {<<"fairnif_watch_scheduler_run_queue_length">>, gauge,
      <<"Processes and ports that wait in the scheduler's queue">>, Of(run_queue)},
     {<<"fairnif_watch_scheduler_blocked_seconds">>, gauge,
      <<"For how long one call has blocked the normal scheduler now">>,
      fun(#{view := #{schedulers := S}}) ->
              [{who(Thread), Ms / 1000} || #{kind := normal, blocked_ms := Ms} = Thread <- S]
      end},
     {<<"fairnif_watch_scheduler_cpu_seconds_total">>, counter,
      <<"CPU time of the scheduler thread since it was started">>,
      fun(#{sample := #{threads := Threads}}) ->
              [{who(Thread), Ns / 1.0e9} || #{cpu_ns := Ns} = Thread <- Threads, is_integer(Ns)]
      end},
     {<<"fairnif_watch_run_queue_wait_seconds">>, histogram,
      <<"Waits of scheduler threads for a processor, by kind; those with next to no work between "
        "are one">>,
      fun(#{sample := #{threads := Threads}}) ->
              [{[{kind, Kind}], waits([T || #{kind := K, long_waits := _} = T <- Threads,
                                            K =:= Kind])}
               || Kind <- lists:usort([K || #{kind := K, long_waits := _} <- Threads])]
      end}].

waits(Threads) ->
    Sum = fun(Key) -> lists:sum([maps:get(Key, T) || T <- Threads]) end,
    [#{long_waits := First} | _] = Threads,
    {[{Ms / 1000, lists:sum([N || #{long_waits := Long} <- Threads, {M, N} <- Long, M =:= Ms])}
      || {Ms, _} <- First], Sum(waited_ns) / 1.0e9, Sum(runs)}.

who(#{kind := Kind, number := Number}) -> [{kind, Kind}, {scheduler, Number}].

pools() ->
    Of = fun(Key, Unit) ->
                 fun(#{view := #{pools := Pools}}) ->
                         [{[{pool, Kind}], maps:get(Key, Pool) * Unit}
                          || {Kind, Pool} <- lists:sort(maps:to_list(Pools)),
                             is_number(maps:get(Key, Pool))]
                 end
         end,
    [{<<"fairnif_watch_dirty_pool_schedulers">>, gauge, <<"Threads of the pool">>, Of(size, 1)},
     {<<"fairnif_watch_dirty_pool_busy">>, gauge, <<"Jobs that run in the pool">>, Of(busy, 1)},
     {<<"fairnif_watch_dirty_pool_wait_seconds">>, gauge,
      <<"How long a job waited for the pool, measured while it is full">>, Of(wait_ms, 0.001)}].

findings() ->
    [{<<"fairnif_watch_native">>, gauge, <<"1: nothing is hidden from the watch, else 0">>,
      fun(#{view := #{native := true, blind := []}}) -> [{[], 1}];
         (_) -> [{[], 0}]
      end},
     {<<"fairnif_watch_detector_verdict">>, gauge,
      <<"What the detector says now: 0 ok, 1 unconfirmed, 2 warn, 3 error">>,
      fun(#{view := #{detectors := Detectors}}) ->
              [{[{detector, Name}], verdict(Verdict)}
               || #{name := Name, verdict := Verdict} <- Detectors]
      end},
     {<<"fairnif_watch_detector_findings_total">>, counter,
      <<"Findings, by detector and the severity that they began with">>,
      %% From 0 on: increase() does not see what a series begins with.
      fun(#{totals := #{findings := Made}, view := #{detectors := Detectors}}) ->
              [{[{detector, Name}, {severity, Severity}], maps:get({Name, Severity}, Made, 0)}
               || #{name := Name} <- Detectors, Severity <- [error, unconfirmed, warning]]
      end}].

verdict(ok) -> 0;
verdict(unconfirmed) -> 1;
verdict(warn) -> 2;
verdict(error) -> 3.

functions() ->
    Blocked = fun(Get) ->
                      fun(#{totals := #{blocked := Blocked}}) ->
                              [{[{function, Name}], Get(Total)}
                               || {Name, Total} <- lists:sort(maps:to_list(Blocked))]
                      end
              end,
    [{<<"fairnif_watch_blocked_seconds_total">>, counter,
      <<"Time for which normal schedulers were blocked, by the culprit">>,
      Blocked(fun({_, Ns}) -> Ns / 1.0e9 end)},
     {<<"fairnif_watch_blocks_total">>, counter,
      <<"Times that a normal scheduler was blocked, by the culprit">>,
      Blocked(fun({Count, _}) -> Count end)},
     {<<"fairnif_watch_native_function_ratio">>, gauge,
      <<"Schedulers' time in the native function, of one scheduler's, by samples">>,
      fun(#{view := #{top := Top}, config := #{metrics_functions := Most}}) ->
              capped([{label(Row), Ns / 1.0e9} || #{ns_per_s := Ns} = Row <- Top], Most)
      end}].

%% Places without a symbol share their file's.
label(#{function := {File, <<"0x", _/binary>>}}) -> fairnif_watch_culprit:unlabelled(File);
label(#{label := Label}) -> Label.

%% The first `Most' by value, the rest together.
capped(Rows, Most) ->
    Sums = maps:to_list(lists:foldl(fun({Label, Value}, Acc) ->
                                            maps:update_with(Label, fun(V) -> V + Value end, Value,
                                                             Acc)
                                    end, #{}, Rows)),
    {Others, Named} = lists:partition(fun({Label, _}) -> Label =:= <<"other">> end, Sums),
    Sorted = lists:reverse(lists:keysort(2, Named)),
    {First, Rest} = lists:split(min(Most, length(Sorted)), Sorted),
    [{[{function, Label}], Value} || {Label, Value} <- First]
        ++ case Rest ++ Others of
               [] -> [];
               More -> [{[{function, <<"other">>}], lists:sum([Value || {_, Value} <- More])}]
           end.

%% The list of counters, wherever they are counted.
counted() ->
    [{fairnif_watch_counters:metric(Row), Type, list_to_binary(Help),
      fun(#{view := #{counters := Counters}}) ->
              case Counters of
                  #{Name := Value} when Unit =:= ns -> [{[], Value / 1.0e9}];
                  #{Name := Value} when Unit =:= thousandths -> [{[], Value / 1000}];
                  #{Name := Value} -> [{[], Value}];
                  #{} -> []
              end
      end}
     || {Name, Type, Unit, _, Help} = Row <- fairnif_watch_counters:list()].
