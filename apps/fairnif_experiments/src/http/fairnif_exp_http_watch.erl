%% What the threads of another VM do over time, seen from outside: the CPU time
%% that the kernel counted for each, so that no blocked scheduler can hide it.
%%
%% It asks nothing of the VM that it watches.  A thread that spins while it waits
%% for work (for a fraction of a millisecond, by default) is in use here.
-module(fairnif_exp_http_watch).
-behaviour(gen_server).

-export([start/2, stop/1, use/2, others/2]).
-export([kind/1]).
-export([init/1, handle_call/3, handle_cast/2, handle_info/2]).

-export_type([sample/0, thread/0]).

-type thread() :: {scheduler | dirty_cpu, pos_integer()} | dirty_io | other.
%% When (us since the epoch), CPU time of the threads so far (ns), that of the
%% other programs of the load (ns), and the machine's.
-type sample() :: {Us :: integer(), #{thread() => non_neg_integer()}, Load :: non_neg_integer(),
                   fairnif_lab_machine:cpu_clock()}.

%% /proc/PID/stat counts in these.
-define(TICK_NS, 10000000).
-define(GONE_MS, 5000).

%% @doc Watches the VM with this process number, every Ms from `at' on (of
%% erlang:monotonic_time/1, ms; default: now), and adds up what the processes `load'
%% use.  Linked to the caller.
-spec start(#{os_pid := string(), load := [non_neg_integer() | undefined], at => integer()},
            pos_integer()) -> pid().
start(Spec, Ms) ->
    {ok, Watch} = gen_server:start_link(?MODULE, {Spec, Ms}, []),
    Watch.

%% @doc Ends it; its samples in order of time, none if it has ended before.
-spec stop(pid()) -> [sample()].
stop(Watch) ->
    try gen_server:call(Watch, stop, ?GONE_MS)
    catch exit:_ -> []
    end.

-record(watch, {tasks :: file:filename(), load :: [non_neg_integer() | undefined],
                ms :: pos_integer(), at :: integer(), names = #{} :: #{string() => thread()},
                samples = [] :: [sample()]}).

%% @private
-spec init({map(), pos_integer()}) -> {ok, #watch{}}.
init({#{os_pid := OsPid, load := Load} = Spec, Ms}) ->
    At = maps:get(at, Spec, now_ms()),
    {ok, next(#watch{tasks = "/proc/" ++ OsPid ++ "/task", load = Load, ms = Ms, at = At})}.

next(#watch{at = At} = State) ->
    _ = erlang:send_after(At, self(), sample, [{abs, true}]),
    State.

%% @private
-spec handle_call(stop, gen_server:from(), #watch{}) ->
          {stop, normal, [sample()], #watch{}}.
handle_call(stop, _From, #watch{samples = Samples} = State) ->
    {stop, normal, lists:reverse(Samples), State}.

%% @private
-spec handle_cast(term(), #watch{}) -> {noreply, #watch{}}.
handle_cast(_Request, State) ->
    {noreply, State}.

%% @private
-spec handle_info(sample, #watch{}) -> {noreply, #watch{}}.
handle_info(sample, #watch{load = Load, ms = Ms, at = At, samples = Samples} = State) ->
    {Threads, Names} = threads(State#watch.tasks, State#watch.names),
    Sample = {erlang:system_time(microsecond), Threads,
              lists:sum([process_ns(Pid) || Pid <- Load, is_integer(Pid)]),
              fairnif_lab_machine:cpu_clock()},
    {noreply, next(State#watch{at = At + Ms, names = Names, samples = [Sample | Samples]})}.

%% Threads come later too, and their names are read once.
threads(Tasks, Names0) ->
    Tids = case file:list_dir(Tasks) of
               {ok, All} -> All;
               {error, _} -> []
           end,
    lists:foldl(fun(Tid, {Sum, Names}) ->
                        Dir = filename:join(Tasks, Tid),
                        Kind = case Names of
                                   #{Tid := Known} -> Known;
                                   _ -> kind(read(filename:join(Dir, "comm")))
                               end,
                        Ns = first_number(read(filename:join(Dir, "schedstat"))),
                        {maps:update_with(Kind, fun(N) -> N + Ns end, Ns, Sum),
                         Names#{Tid => Kind}}
                end, {#{}, Names0}, Tids).

%% @doc What a thread of a VM is by its name, which the kernel cuts after 15
%% bytes; OTP 25 and earlier, OTP 26 and later.
-spec kind(binary()) -> thread().
kind(Name) ->
    Patterns = [{scheduler, "^(\\d+)_scheduler|^erts_sched_(\\d+)"},
                {dirty_cpu, "^(\\d+)_dirty_cpu|^erts_dcpus_(\\d+)"},
                {dirty_io, "^(\\d+)_dirty_io|^erts_dios_(\\d+)"}],
    kind(Name, Patterns).

kind(_, []) ->
    other;
kind(Name, [{Kind, Regex} | Patterns]) ->
    case re:run(Name, Regex, [{capture, all_but_first, list}]) of
        {match, _} when Kind =:= dirty_io -> dirty_io;
        {match, Digits} -> {Kind, list_to_integer(lists:last(Digits))};
        nomatch -> kind(Name, Patterns)
    end.

%% The first number of schedstat: ns on a processor.
first_number(Text) ->
    case re:run(Text, "^(\\d+)", [{capture, all_but_first, binary}]) of
        {match, [Digits]} -> binary_to_integer(Digits);
        nomatch -> 0
    end.

%% With all its threads.
process_ns(Pid) ->
    case binary:split(read("/proc/" ++ integer_to_list(Pid) ++ "/stat"), <<")">>, [global]) of
        [_ | [_ | _] = After] ->
            Fields = binary:split(lists:last(After), <<" ">>, [global, trim_all]),
            ?TICK_NS * (binary_to_integer(lists:nth(12, Fields))
                        + binary_to_integer(lists:nth(13, Fields)));
        _ ->
            0
    end.

read(File) ->
    case file:read_file(File) of
        {ok, Text} -> Text;
        {error, _} -> <<>>
    end.

%% @doc How much of a time each thread was on a processor, 1.0 being all of it,
%% between the samples that are the nearest to its begin and its end;
%% `undefined' where they are the same one.
-spec use([sample()], {From :: integer(), To :: integer()}) ->
          #{thread() => float()} | undefined.
use(Samples, {From, To}) ->
    case between(Samples, From, To) of
        {{T0, Before, _, _}, {T1, After, _, _}} ->
            maps:map(fun(Thread, Ns) ->
                             round(max(0, Ns - maps:get(Thread, Before, 0)) / (T1 - T0)) / 1000
                     end, After);
        undefined ->
            undefined
    end.

%% @doc How many processors other programs kept busy meanwhile: those that are
%% neither the VM, nor its load, nor this node.
-spec others([sample()], {From :: integer(), To :: integer()}) -> float() | undefined.
others(Samples, {From, To}) ->
    case between(Samples, From, To) of
        {{T0, Before, Load0, Clock0}, {T1, After, Load1, Clock1}} ->
            case fairnif_lab_machine:others(Clock0, Clock1) of
                undefined ->
                    undefined;
                Others ->
                    Ours = sum(After) - sum(Before) + max(0, Load1 - Load0),
                    max(0.0, Others - Ours / (1000 * (T1 - T0)))
            end;
        undefined ->
            undefined
    end.

sum(Threads) ->
    lists:sum(maps:values(Threads)).

between([], _, _) ->
    undefined;
between(Samples, From, To) ->
    case {nearest(Samples, From), nearest(Samples, To)} of
        {Same, Same} -> undefined;
        Pair -> Pair
    end.

nearest(Samples, At) ->
    {_, Nearest} = lists:min([{abs(element(1, S) - At), S} || S <- Samples]),
    Nearest.

now_ms() ->
    erlang:monotonic_time(millisecond).
