%% `fairnif stacks': what a node does that cannot answer, seen from outside: who blocks it, in text
%% and as JSON; what it died of; and that to be looked at does nothing to a node, whatever becomes
%% of who looks.
-module(fairnif_watch_stacks_SUITE).

-include_lib("stdlib/include/assert.hrl").

-export([all/0, suite/0, init_per_suite/1, end_per_suite/1]).
-export([what_blocks_each_scheduler_is_named_with_its_process/1,
         a_full_pool_is_told_with_what_fills_it_and_how_many_wait/1,
         a_node_at_rest_is_no_finding/1,
         a_node_is_found_by_its_container/1,
         a_stopped_node_is_told_and_stays_stopped/1,
         what_it_may_not_see_is_refused_with_the_reason/1,
         a_node_under_load_is_looked_at_300_times/1,
         no_thread_stays_stopped_when_the_one_who_looks_is_killed/1,
         a_core_tells_what_the_node_died_of/1]).

-import(fairnif_watch_test_outside, [if_traceable/1, program/0, run/1, run/2, start/2, collect/1,
                                     kill/2, python/2, is/2, loaded_peer/1, states/1,
                                     is_unharmed/2]).

-define(NIF, "fairnif_watch_block_nif:").
-define(LONG, "(3600000)").
-define(LOOKS, 300).
-define(KILLS, 200).
-define(LOADS, [ring, spawns, heap, garbage, ets, files, code, ports, yielding, dirty_cpu,
                dirty_io]).

suite() ->
    [{timetrap, {minutes, 15}}].

all() ->
    fairnif_test:cases(?MODULE).

init_per_suite(Config) ->
    ok = fairnif_watch_test:build(),
    if_traceable(Config).

end_per_suite(_Config) ->
    ok.

%% -- who blocks ---------------------------------------------------------------

%% The last one spawns the others: a process that no scheduler runs on would wait behind one.
what_blocks_each_scheduler_is_named_with_its_process(_) ->
    Ways = ["spin", "sleep", "read", "lock"],
    Begin = fun({N, Way}, Others) ->
                ["spawn_opt(fun() -> ", Others, " register(", Way, ", self()), ", ?NIF, Way, ?LONG,
                 " end, [{scheduler, ", integer_to_list(N), "}]), "]
            end,
    {Others, [Last]} = lists:split(3, lists:enumerate(Ways)),
    Calls = Begin(Last, [Begin(Other, "") || Other <- Others]),
    blocked_node(["+S", "4:4"], [Calls, "ok"], fun(Pid) ->
        Wanted = ["^Scheduler 1 has been blocked for at least .* by " ?NIF "spin/1",
                  "^Scheduler 2 has been blocked for .* by " ?NIF "sleep/1, asleep in the system "
                  "call (clock_)?nanosleep",
                  "^Scheduler 3 has been blocked for .* by " ?NIF "read/1, asleep in the system "
                  "call read",
                  "^Scheduler 4 has been blocked for .* by " ?NIF "lock/1, waiting for a lock that "
                  "thread [0-9]+, (4_sched\\w+|erts_sched_4) holds"
                  | ["^  <0[.][0-9.]+> " ++ Way ++ ", 0 messages" || Way <- Ways]],
        shown(Wanted, fun() -> stacks([Pid]) end),
        %% What sleeps needs no stopping; what runs shows no stack without.
        shown(["^Scheduler 2 has been blocked for .* by " ?NIF "sleep/1",
               "^scheduler 1 .* runs"], fun() -> stacks([Pid, "--no-stop"]) end)
    end).

a_full_pool_is_told_with_what_fills_it_and_how_many_wait(Config) ->
    Calls = ["[spawn(fun() -> ", ?NIF, "sleep_dirty_io", ?LONG, " end) || _ <- lists:seq(1, 5)]"],
    blocked_node(["+SDio", "2"], Calls, fun(Pid) ->
        shown(["^Both dirty I/O schedulers are in " ?NIF "sleep/1, asleep in the system call "
               "(clock_)?nanosleep, for .*; 3 jobs wait[.]"], fun() -> stacks([Pid]) end),
        {1, Json} = stacks([Pid, "--json"]),
        ?assertEqual("1 1 3 ['fairnif_watch_block_nif:sleep/1', 'fairnif_watch_block_nif:sleep/1'] "
                     "['erlang:apply/2', 'erlang:apply/2'] True\n",
                     of_json(Config, Json,
                            "io = [t for t in d['threads'] if t['kind'] == 'dirty_io']\n"
                            "print(d['schema_version'], d['exit_code'], d['queues']['dirty_io'],\n"
                            "    [t['culprit']['mfa'] for t in io],\n"
                            "    [t['process']['initial_call'] for t in io],\n"
                            "    all(t['blocked'] and t['stack'] for t in io))"))
    end).

a_node_at_rest_is_no_finding(_) ->
    blocked_node(["-sname", name()], "ok", fun(Pid) ->
        fairnif_test:eventually(
          fun() ->
                  {Code, Text} = stacks([Pid]),
                  Code =:= 0 andalso is("^No scheduler is blocked", Text) orelse {Code, Text}
          end),
        %% A name is as good as a number.
        ?assertMatch({0, _}, stacks(["--name", name()]))
    end).

%% A group as a container has it; and a mount as one has that sees no group's name.
a_node_is_found_by_its_container(Config) ->
    Id = string:lowercase(binary_to_list(binary:encode_hex(rand:bytes(32)))),
    refused("no id of a container", stacks(["--container", "shop"])),
    refused("no node is seen in container", stacks(["--container", Id])),
    case [Dir || Top <- ["/sys/fs/cgroup" | filelib:wildcard("/sys/fs/cgroup/{unified,pids,cpu}")],
                 filelib:is_file(Top ++ "/cgroup.procs"),
                 Dir <- [Top ++ "/docker-" ++ Id ++ ".scope"], file:make_dir(Dir) =:= ok] of
        [] -> {skip, "no control group can be made here"};
        [Group | _] = Groups ->
            try in_group(Group, Id)
            after
                [fairnif_test:eventually(fun() -> file:del_dir(Dir) =:= ok end) || Dir <- Groups]
            end,
            mounted(Config, Id)
    end.

in_group(Group, Id) ->
    Prefix = lists:sublist(Id, 12),
    Enter = fun(Pid) -> ok = file:write_file(Group ++ "/cgroup.procs", Pid) end,
    blocked_node([], "ok", fun(One) ->
        Enter(One),
        seen("process " ++ One ++ ",", ["--container", Prefix]),
        refused("no node is seen in container", stacks(["--container", tl(Prefix)])),
        blocked_node([], "ok", fun(Other) ->
            Enter(Other),
            [seen("processes [0-9, ]*\\b" ++ Pid ++ "\\b[0-9, ]* are all", ["--container", Id])
             || Pid <- [One, Other]]
        end)
    end).

mounted(Config, Id) ->
    Dir = filename:join(proplists:get_value(priv_dir, Config), Id),
    ok = filelib:ensure_path(Dir),
    Script = "mount --bind '" ++ Dir ++ "' '" ++ Dir ++ "' && echo mounted && exec erl \"$@\"",
    {Port, Pid} = start_node(os:find_executable("unshare"), ["-m", "/bin/sh", "-c", Script, "sh"],
                             [], "ok"),
    receive
        {Port, {data, <<"mounted", _/binary>>}} ->
            try seen("process " ++ Pid ++ ",", ["--container", Id])
            after
                kill("KILL", Pid),
                collect(Port)
            end;
        {Port, {data, Why}} -> {comment, ["nothing can be mounted here: ", Why]};
        {Port, {exit_status, Code}} -> {comment, ["no unshare here: ", integer_to_list(Code)]}
    end.

a_stopped_node_is_told_and_stays_stopped(_) ->
    Peer = fairnif_watch_test:peer([]),
    Pid = fairnif_watch_test:call(Peer, os, getpid, []),
    kill("STOP", Pid),
    fairnif_test:eventually(fun() -> lists:usort(states(Pid)) =:= "T" orelse states(Pid) end),
    shown(["^The process is stopped by a signal"], fun() -> stacks([Pid]) end),
    ?assertEqual("T", lists:usort(states(Pid))),
    kill("CONT", Pid),
    ?assertEqual(Pid, fairnif_watch_test:call(Peer, os, getpid, [])),
    fairnif_watch_test:stop(Peer).

what_it_may_not_see_is_refused_with_the_reason(_) ->
    ?assertMatch({2, _}, stacks([])),
    ?assertMatch({2, _}, stacks(["1", "--what"])),
    refused("no number of a process", stacks(["foo@bar"])),
    refused("there is no process", stacks(["4194304"])),
    refused("no node of Erlang", stacks(["1"])),
    refused("no process here was started as node", stacks(["--name", "nobody_is_called_so"])),
    refused("cannot read", stacks(["--core", "/nonexistent"])),
    refused("no core file", stacks(["--core", "/proc/self/exe"])),
    case os:cmd("id -u") of
        "0\n" ->
            %% Where that user may not run the program itself, nothing can be said.
            Copy = "/tmp/fairnif_stacks." ++ os:getpid(),
            {ok, _} = file:copy(program(), Copy),
            ok = file:change_mode(Copy, 8#755),
            Refused = run(os:find_executable("setpriv"),
                          ["--reuid", "65534", "--regid", "65534", "--clear-groups", Copy,
                           os:getpid()]),
            ok = file:delete(Copy),
            refused("belongs to user 0.*CAP_SYS_PTRACE is missing", Refused);
        _ ->
            ok
    end.

refused(Why, {Code, Text}) ->
    ?assertEqual({3, true}, {Code, is(Why, Text)}, Text).

%% -- it does nothing to the node ---------------------------------------------------

a_node_under_load_is_looked_at_300_times(_) ->
    {Peer, Pid} = loaded_peer(?LOADS),
    Me = self(),
    %% Two at a time: only one of them may have a thread.
    [spawn_link(fun() ->
                        Me ! {self(), [stacks([Pid | Args])
                                       || _ <- lists:seq(1, ?LOOKS div 2)]}
                end) || Args <- [["--json"], ["--all"]]],
    Looks = lists:append([receive {Looker, Some} when is_pid(Looker) -> Some end || _ <- [1, 2]]),
    %% On a machine that is very busy no scheduler may come to show its stack in time.
    ?assertEqual([], [Bad || {Code, Text} = Bad <- Looks, Code =/= 0, Code =/= 1,
                             not (Code =:= 3 andalso is("shows? no stack", Text))]),
    ?assert(lists:any(fun({_, Text}) -> is("\"doing\":\"erlang\"", Text) end, Looks)),
    is_unharmed(Peer, Pid).

no_thread_stays_stopped_when_the_one_who_looks_is_killed(_) ->
    {Peer, Pid} = loaded_peer(?LOADS),
    [killed_after(Pid, rand:uniform(150) - 1) || _ <- lists:seq(1, ?KILLS)],
    is_unharmed(Peer, Pid).

killed_after(Pid, Ms) ->
    {Port, Looker} = start(program(), [Pid]),
    timer:sleep(Ms),
    kill("KILL", Looker),
    _ = collect(Port),
    ok.

%% -- cores ------------------------------------------------------------------------

a_core_tells_what_the_node_died_of(Config) ->
    case file:read_file("/proc/sys/kernel/core_pattern") of
        {ok, <<"core\n">>} ->
            died(Config, "fault", "scheduler [12]"),
            died(Config, "fault_dirty_io", "dirty I/O [0-9]+");
        {ok, Other} ->
            {comment, ["the system does not write cores here: ", Other]}
    end.

died(Config, Nif, Thread) ->
    Dir = filename:join(proplists:get_value(priv_dir, Config), Nif),
    ok = file:make_dir(Dir),
    Command = lists:flatten(
                ["ulimit -c unlimited && cd '", Dir, "' && exec erl \"$@\""]),
    Eval = ["register(culprit, spawn(fun() -> ", ?NIF, Nif, "(16) end))"],
    {Port, _} = start_node("/bin/sh", ["-c", Command, "sh"], ["+S", "2:2"], Eval),
    _ = collect(Port),
    case filelib:wildcard(filename:join(Dir, "core*")) of
        [Core] ->
            shown(["^The node died of signal 11 .* at address 0x10 in " ?NIF "fault/1, on "
                   ++ Thread,
                   "^" ++ Thread ++ " +died", "^  <0[.][0-9.]+> culprit, ", "^    write_to ",
                   "^    " ?NIF "fault/1: fault "],
                  fun() -> stacks(["--core", Core]) end),
            {1, Json} = stacks(["--core", Core, "--json"]),
            ?assertEqual("11 died\n", of_json(Config, Json, "print(d['signal'], "
                                             "d['threads'][0]['doing'])")),
            cut(Core);
        [] ->
            ct:comment("no core was written: ulimit -c cannot be raised")
    end.

%% However much of it is left.
cut(Core) ->
    {ok, File} = file:open(Core, [read, write, raw]),
    {ok, Size} = file:position(File, eof),
    [begin
         {ok, _} = file:position(File, Size * Left div 50),
         ok = file:truncate(File),
         {Code, Text} = stacks(["--core", Core]),
         ?assert(Code =:= 1 orelse Code =:= 3, Text)
     end || Left <- lists:seq(49, 0, -1)],
    ok = file:close(File).

%% -- helpers ----------------------------------------------------------------------

%% A node of its own, which runs that and may never answer again.
blocked_node(Flags, Eval, Fun) ->
    {Port, Pid} = start_node(os:find_executable("erl"), [], Flags, Eval),
    try
        Fun(Pid)
    after
        kill("KILL", Pid),
        collect(Port)
    end.

%% `erl' and what it starts become one process after the other. Loading happens before it blocks.
start_node(Program, Before, Flags, Eval) ->
    Load = "{module, _} = code:ensure_loaded(fairnif_watch_block_nif), ",
    start(Program, Before ++ ["-noinput"] ++ Flags ++ fairnif_watch_test:erl_args()
          ++ ["-eval", lists:flatten([Load, Eval, "."])]).

stacks(Args) ->
    run(Args).

%% Until all of it is found, in one look, as a finding.
shown(Wanted, Look) ->
    fairnif_test:eventually(
      fun() ->
              {Code, Text} = Look(),
              case [W || W <- Wanted, not is(W, Text)] of
                  [] when Code =:= 1 -> true;
                  Missing -> {Code, {missing, Missing}, Text}
              end
      end).

%% In time: it may not run the emulator yet.
seen(Pattern, Args) ->
    fairnif_test:eventually(fun() -> {_, Text} = stacks(Args), is(Pattern, Text) orelse Text end).

name() ->
    "fairnif_stacks_" ++ os:getpid().

%% What it prints, of a variable d with that JSON.
of_json(Config, Json, Program) ->
    File = filename:join(proplists:get_value(priv_dir, Config), "stacks.json"),
    ok = file:write_file(File, Json),
    binary_to_list(python("import json\nd = json.load(open(sys.argv[1]))\n" ++ Program, File)).
