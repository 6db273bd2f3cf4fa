%% What the watch's tests share: the libraries that block, peer nodes, a watch of this node.
%%
%% Runs in the test node and in peers; starts nothing that outlives its caller.
-module(fairnif_watch_test).

-export([build/0, make/1, library/1, out_dir/0, erl_args/0]).
-export([peer/1, peer/2, in_peer/4, with_stderr/2, call/4, call/5, stop/1]).
-export([with_watch/2, wait_finding/2, dirty_cpu/2]).
-export([resident/0, run_delay/0, traces/0]).

%% How long a busy machine may take to boot a node, and what is asked of one to answer.
-define(BOOT_MS, 300000).
-define(CALL_MS, 120000).

%% @doc Makes the libraries; takes no time when they are there.
build() ->
    case make("all") of
        {ok, _} -> ok;
        {error, Output} -> error({make, Output})
    end.

%% @doc Makes that target, as far as it can be made; what make wrote.
make(Target) ->
    Command = lists:flatten(
                io_lib:format("make -s -k -j~b -C '~ts' ~s OUT='~ts' FAIRNIF_INCLUDE_DIR='~ts' "
                              "ERTS_INCLUDE_DIR='~ts/usr/include' 2>&1 && echo built",
                              [erlang:system_info(schedulers), c_src(), Target, out_dir(),
                               filename:absname(fairnif:include_dir()),
                               code:root_dir()])),
    Output = os:cmd(Command),
    case string:find(Output, "built", trailing) of
        "built" ++ _ -> {ok, Output};
        _ -> {error, [Command, "\n", Output]}
    end.

%% @doc A library's path, as load_nif wants it.
library(Name) ->
    filename:join(out_dir(), atom_to_list(Name)).

%% @doc Where the libraries are.
out_dir() ->
    filename:join(filename:absname(filename:dirname(code:which(?MODULE))), "blocks").

%% rebar3 compiles a test from where it is or from a copy; it copies no folders.
c_src() ->
    Source = proplists:get_value(source, ?MODULE:module_info(compile)),
    Candidates = [filename:join(filename:dirname(Source), "c_src"),
                  filename:join(fairnif:include_dir(), "../../fairnif_watch/test/c_src")],
    [Dir | _] = [Dir || Dir <- Candidates, filelib:is_file(filename:join(Dir, "ways.h"))],
    Dir.

%% @doc A node with these emulator flags and nothing loaded. It is connected by its standard input
%% and output, and ends with its caller.
peer(Args) ->
    peer(Args, #{}).

%% @doc `Options': more of what peer:start_link/1 takes.
peer(Args, Options) ->
    {ok, Peer, _} = fairnif_check_peer:control(
                      group_leader(),
                      maps:merge(#{wait_boot => ?BOOT_MS, args => erl_args() ++ Args}, Options)),
    Peer.

%% @doc What a function returns in such a node, which ends then.
in_peer(Flags, Module, Function, Args) ->
    Peer = peer(Flags),
    try call(Peer, Module, Function, Args)
    after stop(Peer)
    end.

%% @doc Arguments with which `erl' finds the applications and the tests' modules.
erl_args() ->
    lists:append([["-pa", filename:absname(filename:dirname(code:which(Module)))]
                  || Module <- [fairnif, fairnif_watch, fairnif_test, ?MODULE]]).

call(Peer, Module, Function, Args) ->
    call(Peer, Module, Function, Args, ?CALL_MS).

call(Peer, Module, Function, Args, Ms) ->
    peer:call(Peer, Module, Function, Args, Ms).

stop(Peer) ->
    peer:stop(Peer).

%% @doc Fun's value and what the node wrote to standard error, which is ended afterwards.
with_stderr(Args, Fun) ->
    File = filename:join(os:getenv("TMPDIR", "/tmp"),
                         "fairnif-watch-" ++ os:getpid() ++ "-"
                         ++ integer_to_list(erlang:unique_integer([positive]))),
    Peer = peer(Args, #{exec => {os:find_executable("sh"),
                                 ["-c", "exec erl \"$@\" 2>\"$0\"", File]}}),
    Value = Fun(Peer),
    stop(Peer),
    {ok, Text} = file:read_file(File),
    ok = file:delete(File),
    {Value, Text}.

%% -- a watch of this node -----------------------------------------------------

%% @doc Runs Fun with a watch that has these settings.
with_watch(Config, Fun) ->
    {ok, _} = fairnif_watch:start(maps:merge(#{log => false, telemetry => false}, Config)),
    try Fun()
    after fairnif_watch:stop()
    end.

%% @doc The first finding for which Is answers true, within that many ms; subscribes meanwhile.
wait_finding(Is, Ms) ->
    {ok, Ref} = fairnif_watch:subscribe(self()),
    Deadline = erlang:monotonic_time(millisecond) + Ms,
    Found = next(Is, Deadline),
    ok = fairnif_watch:unsubscribe(Ref),
    Found.

next(Is, Deadline) ->
    receive
        {fairnif_watch, _, {finding, Finding}} ->
            case Is(Finding) of
                true -> Finding;
                false -> next(Is, Deadline)
            end;
        {fairnif_watch, _, {view, _}} ->
            next(Is, Deadline)
    after max(0, Deadline - erlang:monotonic_time(millisecond)) ->
            {none, fairnif_watch:view()}
    end.

%% @doc That many processes, each for that long in a NIF on a dirty CPU scheduler; asleep there, so
%% that the machine has room for the rest.
dirty_cpu(Count, Ms) ->
    ok = build(),
    {module, _} = code:ensure_loaded(fairnif_watch_block_nif),
    [spawn(fun() -> fairnif_watch_block_nif:sleep_dirty_cpu(Ms) end) || _ <- lists:seq(1, Count)].

%% -- what a node has ------------------------------------------------------------

%% @doc Bytes of memory that this node has.
resident() ->
    {ok, Status} = file:read_file("/proc/self/status"),
    {match, [KiB]} = re:run(Status, "VmRSS:\\s*(\\d+) kB", [{capture, all_but_first, list}]),
    1024 * list_to_integer(KiB).

%% @doc Of the normal schedulers' threads: ns that they ran, and that they waited for a processor.
run_delay() ->
    Tids = [integer_to_list(Tid) || #{kind := normal, tid := Tid}
                                        <- fairnif_watch_watchdog:threads()],
    lists:foldl(fun(Tid, {Ran, Waited}) ->
                        {ok, Text} = file:read_file("/proc/self/task/" ++ Tid ++ "/schedstat"),
                        [R, W | _] = [binary_to_integer(N)
                                      || N <- string:lexemes(string:trim(Text), " ")],
                        {Ran + R, Waited + W}
                end, {0, 0}, Tids).

%% @doc What stopping must leave as it was: threads, descriptors, signal handlers, processes, ports,
%% tables, registered names, persistent terms, the node's monitor and tracer.
traces() ->
    {ok, Status} = file:read_file("/proc/self/status"),
    {match, [Caught]} = re:run(Status, "SigCgt:\\s*(\\w+)", [{capture, all_but_first, list}]),
    #{threads => lists:sort([thread(T) || T <- listed("/proc/self/task")]),
      descriptors => lists:sort([L || {ok, L} <- [file:read_link("/proc/self/fd/" ++ F)
                                                  || F <- listed("/proc/self/fd")]]),
      caught => Caught,
      registered => lists:sort(registered()),
      processes => length(processes()),
      ports => length(erlang:ports()),
      tables => lists:sort([T || T <- ets:all(), is_atom(T)]),
      persistent_terms => length([K || {K, _} <- persistent_term:get()]),
      system_monitor => erlang:system_monitor(),
      handlers => [Id || #{id := Id} <- logger:get_handler_config()],
      wall_time => erlang:statistics(scheduler_wall_time)}.

listed(Dir) ->
    {ok, Names} = file:list_dir(Dir),
    Names.

thread(Tid) ->
    case file:read_file("/proc/self/task/" ++ Tid ++ "/comm") of
        {ok, Name} -> string:trim(Name);
        {error, _} -> <<>>
    end.
