%% Bodies of native processes, and what fairnif_process_SUITE does with them in peer nodes.
-module(fairnif_test_process).

-compile([export_all, nowarn_export_all]).
-compile({parse_transform, fairnif_test_stubs}).
-nifs([normal/1, auto/1, dirty_cpu/1, dirty_io/1, no_yield/1, unwinds/1, threaded/1, raises/0,
       raises_threaded/0, at_once/1]).

-include_lib("fairnif/include/fairnif.hrl").
-on_load(init/0).

init() ->
    ?FAIRNIF_LOAD(fairnif_test:library(?MODULE)).

modes() ->
    [normal, auto, dirty_cpu, dirty_io, no_yield, unwinds, threaded].

start(Mode) -> start(Mode, []).

start(Mode, Options) ->
    {ok, Pid} = fairnif_process:start(fun ?MODULE:Mode/1, [[]], Options),
    Pid.

%% @doc N idle ones: what is resident for each, bytes.
idle(N, Options) ->
    Warm = [start(normal, Options) || _ <- lists:seq(1, 1000)],
    kill(Warm),
    Before = resident(),
    Pids = [start(normal, Options) || _ <- lists:seq(1, N)],
    timer:sleep(1500),                  % all hibernate
    Each = (resident() - Before) div N,
    hi = gen_server:call(hd(Pids), {echo, hi}),
    kill(Pids),
    Each.

kill(Pids) ->
    _ = [exit(P, kill) || P <- Pids],
    fairnif_test:eventually(fun() -> fairnif:tasks() =:= [] end),
    fairnif_test:eventually(fun() -> not lists:any(fun is_process_alive/1, Pids) end).

resident() ->
    {ok, Text} = file:read_file("/proc/self/status"),
    {match, [Kb]} = re:run(Text, "VmRSS:\\s+(\\d+)", [{capture, all_but_first, list}]),
    list_to_integer(Kb) * 1024.

%% @doc N native processes at work, each killed at some moment.
storm(N) ->
    _ = [begin
             Mode = lists:nth(1 + I rem 7, modes()),
             P = start(Mode),
             Clients = [spawn(fun() -> client(P, Request) end)
                        || Request <- [{echo, lists:seq(1, 100)}, {work, 100000},
                                       {keep, binary:copy(<<"x">>, 1000)}, {sleep, 1},
                                       {apply, lists, seq, [1, 100]}]],
             timer:sleep(rand:uniform(4) - 1),
             exit(P, kill),
             _ = [fairnif_test:eventually(fun() -> not is_process_alive(C) end) || C <- Clients]
         end || I <- lists:seq(1, N)],
    fairnif_test:eventually(fun() -> fairnif:tasks() =:= [] end),
    #{stacks_mapped := Mapped, stacks_idle := Mapped} = fairnif:info(),
    ok.

client(P, Request) ->
    _ = gen_server:call(P, Request),
    client(P, Request).
