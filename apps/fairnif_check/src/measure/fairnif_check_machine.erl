%% What the numbers were measured on: the context that goes into every report,
%% the memory that a measurement may use, and what else the machine was doing.
-module(fairnif_check_machine).

-export([context/0, memory_available/0, memory_available/1]).
-export([cpu_clock/0, cpu_clock/1, cpu_clock/2, others/2]).
-export([bound_to/1, apart/2]).

-export_type([cpu_clock/0]).

%% Ticks of processor time: of the whole machine, of this VM, and of the wall.
-opaque cpu_clock() :: {Busy :: integer(), Own :: integer(),
                        Ns :: integer()} | unknown.

%% USER_HZ, the unit of /proc/stat: 100 on every Linux.
-define(TICK_NS, 10000000).

%% @doc OTP, emulator, processor, logical processors, memory (bytes), time of
%% the measurement (UTC).  Reads /proc, costs about a millisecond.
-spec context() -> #{atom() => term()}.
context() ->
    #{otp => list_to_binary(erlang:system_info(otp_release)),
      erts => list_to_binary(erlang:system_info(version)),
      emulator => atom_to_binary(erlang:system_info(emu_flavor)),
      nif_version => list_to_binary(erlang:system_info(nif_version)),
      architecture =>
          list_to_binary(erlang:system_info(system_architecture)),
      os => os_version(),
      processor => processor(),
      logical_processors => logical_processors(),
      memory_available => memory_available(),
      date => list_to_binary(calendar:system_time_to_rfc3339(
                erlang:system_time(second), [{offset, "Z"}]))}.

%% @doc Bytes that can be allocated now without swapping: the smaller of what the kernel reports and
%% what the control group leaves; `unknown' without /proc.
-spec memory_available() -> non_neg_integer() | unknown.
memory_available() ->
    memory_available(fun file:read_file/1).

%% @private The same with the reader of files given.
-spec memory_available(fun((string()) -> {ok, binary()} | {error, term()})) ->
          non_neg_integer() | unknown.
memory_available(Read) ->
    Kernel = case Read("/proc/meminfo") of
                 {ok, Info} -> field(Info, "^MemAvailable:\\s*(\\d+) kB", 1024);
                 _ -> unknown
             end,
    Group = group_left(Read),
    %% An atom is greater than every integer.
    min(Kernel, Group).

%% @doc How much the machine and this VM have computed so far; two of them give
%% `others/2'.  `unknown' without /proc.
-spec cpu_clock() -> cpu_clock().
cpu_clock() ->
    cpu_clock(fun file:read_file/1, erlang:monotonic_time(nanosecond)).

%% @doc The same with the processes of these numbers counted as this VM's own: programs that belong
%% to what is measured.  One that has ended meanwhile is no longer counted.
-spec cpu_clock([non_neg_integer()]) -> cpu_clock().
cpu_clock(OsPids) ->
    case cpu_clock() of
        {Busy, Own, Now} ->
            Stats = [file:read_file("/proc/" ++ integer_to_list(P) ++ "/stat") || P <- OsPids],
            {Busy, Own + lists:sum([own(Stat) || {ok, Stat} <- Stats]), Now};
        unknown ->
            unknown
    end.

%% @private The same with the reader of files and the time (ns) given.
-spec cpu_clock(fun((string()) -> {ok, binary()} | {error, term()}), integer())
               -> cpu_clock().
cpu_clock(Read, Now) ->
    case {Read("/proc/stat"), Read("/proc/self/stat")} of
        {{ok, Machine}, {ok, Self}} ->
            {busy(Machine), own(Self), Now};
        _ ->
            unknown
    end.

%% @doc How many processors other programs, and the hypervisor, kept busy
%% between two clocks of one VM: 0.5 is half of one.  The ticks are 10 ms each,
%% so nothing is said (`undefined') about less than half a second.
-spec others(cpu_clock(), cpu_clock()) -> float() | undefined.
others({Busy0, Own0, T0}, {Busy1, Own1, T1}) when T1 - T0 >= 50 * ?TICK_NS ->
    max(0, (Busy1 - Busy0) - (Own1 - Own0)) * ?TICK_NS / (T1 - T0);
others(_, _) ->
    undefined.

%% @doc The option of spawn_opt that keeps a process on one normal scheduler,
%% numbered from 1.  OTP's own tests use it, but its documentation and types do
%% not know it; hence the atom that Dialyzer cannot see.
-spec bound_to(pos_integer()) -> {atom(), pos_integer()}.
bound_to(Scheduler) ->
    {list_to_atom("scheduler"), Scheduler}.

%% @doc The value of Fun, run in a process with these options of spawn_opt. What it opened, started
%% with a link or left in its mailbox ends with it. Exits with its reason where it ends otherwise.
-spec apart([{atom(), term()}], fun(() -> Value)) -> Value.
apart(Options, Fun) ->
    {Pid, Monitor} = spawn_opt(fun() -> exit({value, Fun()}) end, [monitor | Options]),
    receive
        {'DOWN', Monitor, process, Pid, {value, Value}} -> Value;
        {'DOWN', Monitor, process, Pid, Reason} -> exit(Reason)
    end.

%% user nice system idle iowait irq softirq steal
busy(Machine) ->
    [Line | _] = binary:split(Machine, <<"\n">>),
    [<<"cpu">>, User, Nice, System, _Idle, _IoWait, Irq, SoftIrq, Steal | _] =
        binary:split(Line, <<" ">>, [global, trim_all]),
    lists:sum([binary_to_integer(N)
               || N <- [User, Nice, System, Irq, SoftIrq, Steal]]).

%% utime and stime are the 12th and 13th field after the command's name, which
%% stands in parentheses and may hold anything.
own(Self) ->
    Fields = binary:split(lists:last(binary:split(Self, <<")">>, [global])),
                          <<" ">>, [global, trim_all]),
    binary_to_integer(lists:nth(12, Fields))
        + binary_to_integer(lists:nth(13, Fields)).

group_left(Read) ->
    lists:min([left(Read, Limit, Used)
               || {Limit, Used} <-
                      [{"/sys/fs/cgroup/memory.max",
                        "/sys/fs/cgroup/memory.current"},
                       {"/sys/fs/cgroup/memory/memory.limit_in_bytes",
                        "/sys/fs/cgroup/memory/memory.usage_in_bytes"}]]).

left(Read, LimitFile, UsedFile) ->
    case {Read(LimitFile), Read(UsedFile)} of
        {{ok, L}, {ok, U}} ->
            case {number(L), number(U)} of
                {Limit, Used} when is_integer(Limit), is_integer(Used) ->
                    max(0, Limit - Used);
                _ ->
                    unknown             % "max": no limit
            end;
        _ ->
            unknown
    end.

number(Text) ->
    field(Text, "^(\\d+)", 1).

field(Text, Regex, Factor) ->
    case re:run(Text, Regex, [multiline, {capture, all_but_first, binary}]) of
        {match, [Digits]} -> binary_to_integer(Digits) * Factor;
        nomatch -> unknown
    end.

processor() ->
    case file:read_file("/proc/cpuinfo") of
        {ok, Info} ->
            case re:run(Info, "^model name\\s*:\\s*(.*)$",
                        [multiline, {capture, all_but_first, binary}]) of
                {match, [Name]} -> Name;
                nomatch -> undefined
            end;
        _ ->
            undefined
    end.

os_version() ->
    {_, Name} = os:type(),
    Version = case os:version() of
                  {A, B, C} -> io_lib:format("~b.~b.~b", [A, B, C]);
                  Text -> Text
              end,
    iolist_to_binary([atom_to_list(Name), $\s, Version]).

%% Those this process may use; the schedulers of this node say nothing, as
%% bin/fairnif starts it with one.
logical_processors() ->
    case erlang:system_info(logical_processors_available) of
        unknown -> erlang:system_info(logical_processors);
        N -> N
    end.
