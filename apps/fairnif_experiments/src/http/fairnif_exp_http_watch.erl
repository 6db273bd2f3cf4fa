%% What the threads of another VM do over time, seen from outside: the CPU time that the kernel
%% counted for each, so that no blocked scheduler can hide it.
%%
%% It asks nothing of the VM that it watches.  A thread that spins while it waits for work (for a
%% fraction of a millisecond, by default) is in use here.
-module(fairnif_exp_http_watch).

-export([start/2, stop/1, use/2, others/2]).
-export([kind/1]).

-export_type([sample/0, thread/0]).

-type thread() :: {scheduler | dirty_cpu, pos_integer()} | dirty_io | other.
%% When (us since the epoch), CPU time of the threads so far (ns), and the machine's, that of the
%% VM, of the programs of the load and of this node apart.
-type sample() :: {Us :: integer(), #{thread() => non_neg_integer()},
                   fairnif_check_machine:cpu_clock()}.
-type time() :: {From :: integer(), To :: integer()}.

-define(GONE_MS, 5000).

%% @doc Watches the VM with this process number, every Ms from `at' on (of erlang:monotonic_time/1,
%% ms; default: now); what the processes `load' use is no other program's.  Linked to the caller.
-spec start(#{os_pid := string(), load := [non_neg_integer() | undefined], at => integer()},
            pos_integer()) -> pid().
start(#{os_pid := OsPid, load := Load} = Spec, Ms) ->
    At = maps:get(at, Spec, fairnif_exp:now_ms()),
    Ours = [list_to_integer(OsPid) | [Pid || Pid <- Load, is_integer(Pid)]],
    spawn_link(fun() -> watch("/proc/" ++ OsPid ++ "/task", Ours, Ms, At, #{}, []) end).

%% @doc Ends it; its samples in order of time, none if it has ended before.
-spec stop(pid()) -> [sample()].
stop(Watch) ->
    Monitor = erlang:monitor(process, Watch),
    Watch ! {stop, self(), Monitor},
    receive
        {Monitor, Samples} -> erlang:demonitor(Monitor, [flush]), Samples;
        {'DOWN', Monitor, process, _, _} -> []
    after ?GONE_MS -> []
    end.

watch(Tasks, Ours, Ms, At, Kinds0, Samples) ->
    receive
        {stop, From, Ref} ->
            From ! {Ref, lists:reverse(Samples)}
    after max(0, At - fairnif_exp:now_ms()) ->
            {Threads, Kinds} = threads(Tasks, Kinds0),
            Clock = fairnif_check_machine:cpu_clock(Ours),
            Sample = {erlang:system_time(microsecond), Threads, Clock},
            watch(Tasks, Ours, Ms, At + Ms, Kinds, [Sample | Samples])
    end.

%% Threads come later too, and their names are read once.  The first number of schedstat: ns on a
%% processor.
threads(Tasks, Kinds) ->
    Tids = case file:list_dir(Tasks) of
               {ok, All} -> All;
               {error, _} -> []
           end,
    lists:foldl(fun(Tid, {Sum, Known}) ->
                        Read = fun(Name) -> read(filename:join([Tasks, Tid, Name])) end,
                        Kind = case Known of
                                   #{Tid := Of} -> Of;
                                   _ -> kind(Read("comm"))
                               end,
                        Ns = case string:to_integer(Read("schedstat")) of
                                 {N, _} when is_integer(N) -> N;
                                 _ -> 0
                             end,
                        {maps:update_with(Kind, fun(N) -> N + Ns end, Ns, Sum), Known#{Tid => Kind}}
                end, {#{}, Kinds}, Tids).

read(File) ->
    case file:read_file(File) of
        {ok, Text} -> Text;
        {error, _} -> <<>>
    end.

%% @doc What a thread of a VM is by its name, which the kernel cuts after 15 bytes; OTP 25 and
%% earlier, OTP 26 and later.
-spec kind(binary()) -> thread().
kind(Name) ->
    Found = [{Kind, list_to_integer(lists:last(Digits))}
             || {Kind, Regex} <- [{scheduler, "^(\\d+)_scheduler|^erts_sched_(\\d+)"},
                                  {dirty_cpu, "^(\\d+)_dirty_cpu|^erts_dcpus_(\\d+)"},
                                  {dirty_io, "^(\\d+)_dirty_io|^erts_dios_(\\d+)"}],
                {match, Digits} <- [re:run(Name, Regex, [{capture, all_but_first, list}])]],
    case Found of
        [{dirty_io, _}] -> dirty_io;
        [Thread] -> Thread;
        [] -> other
    end.

%% @doc How much of a time each thread was on a processor, 1.0 being all of it, between the samples
%% that are the nearest to its begin and its end; `undefined' where they are the same one.
-spec use([sample()], time()) -> #{thread() => float()} | undefined.
use(Samples, Time) ->
    between(Samples, Time,
            fun({T0, Before, _}, {T1, After, _}) ->
                    maps:map(fun(Thread, Ns) ->
                                     Used = max(0, Ns - maps:get(Thread, Before, 0)),
                                     round(Used / (T1 - T0)) / 1000
                             end, After)
            end).

%% @doc How many processors other programs kept busy meanwhile: those that are neither the VM, nor
%% its load, nor this node.
-spec others([sample()], time()) -> float() | undefined.
others(Samples, Time) ->
    between(Samples, Time,
            fun({_, _, Clock0}, {_, _, Clock1}) -> fairnif_check_machine:others(Clock0,
                                                                                Clock1) end).

between([], _, _) ->
    undefined;
between(Samples, {From, To}, Fun) ->
    Nearest = fun(At) -> element(2, lists:min([{abs(element(1, S) - At), S} || S <- Samples])) end,
    case {Nearest(From), Nearest(To)} of
        {Same, Same} -> undefined;
        {First, Last} -> Fun(First, Last)
    end.
