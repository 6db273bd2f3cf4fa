%% Debuggers and profilers look through a task at the scheduler that runs it.
-module(fairnif_unwind_SUITE).

-export([suite/0, all/0, init_per_suite/1, end_per_suite/1]).
-export([gdb_shows_the_body_and_the_scheduler_that_runs_it/1,
         perf_shows_the_body_and_the_scheduler_that_runs_it/1,
         gdb_shows_what_fair_call_runs_and_the_body_that_called_it/1]).

suite() ->
    [{timetrap, {minutes, 15}}].

all() ->
    fairnif_test:cases(?MODULE).

init_per_suite(Config) ->
    ok = fairnif_test:build(),
    Config.

end_per_suite(_Config) ->
    ok.

gdb_shows_the_body_and_the_scheduler_that_runs_it(Config) ->
    with_endless_task(
      gdb, Config,
      fun(Pid) ->
              {ok, Maps} = file:read_file("/proc/" ++ Pid ++ "/maps"),
              [begin
                   Runtime = ["spin", "body_main", "proceed|fair__enter"],
                   outwards(Trace, Runtime),
                   [_, Outwards] = re:split(Trace, lists:last(Runtime), [{parts, 2}]),
                   in_emulator(Outwards, Maps)
               end
               || Trace <- [os:cmd("gdb -p " ++ Pid ++ " -batch -ex 'break fair__tick'"
                                   " -ex continue -ex bt -ex detach 2>&1")
                            || _ <- [1, 2]]]
      end).

%% By address: not every emulator has symbols.
in_emulator(Frames, Maps) ->
    Emulator = addresses(Maps, "^([0-9a-f]+)-([0-9a-f]+) .*beam"),
    Callers = addresses(Frames, "^#\\d+ +0x([0-9a-f]+) in "),
    [] =/= [Caller || [Caller] <- Callers, [From, To] <- Emulator, Caller >= From, Caller < To]
        orelse error({not_in_emulator, Frames, Emulator}).

addresses(Text, Pattern) ->
    case re:run(Text, Pattern, [multiline, global, {capture, all_but_first, list}]) of
        {match, Lines} -> [[list_to_integer(Hex, 16) || Hex <- Line] || Line <- Lines];
        nomatch -> []
    end.

perf_shows_the_body_and_the_scheduler_that_runs_it(Config) ->
    File = filename:join(proplists:get_value(priv_dir, Config), "perf.data"),
    with_endless_task(
      perf, Config,
      fun(Pid) ->
              Record = os:cmd("perf record -e cpu-clock -F 500 --call-graph fp -o " ++ File
                              ++ " -p " ++ Pid ++ " -- sleep 1 2>&1"),
              case filelib:file_size(File) of
                  0 ->
                      {skip, "perf records nothing here: " ++ Record};
                  _ ->
                      outwards(os:cmd("perf script -i " ++ File ++ " -F comm,ip,sym,dso 2>&1"
                                      " | grep -m1 -A12 ' spin_\\| spin\\|work'"),
                               ["spin", "body_main", "proceed|fair__enter", "beam"])
              end
      end).

%% From the scheduler's stack to the task's and back.
gdb_shows_what_fair_call_runs_and_the_body_that_called_it(Config) ->
    with_endless_task(
      gdb, {call, dirty_cpu, [1000000, 1]}, Config,
      fun(Pid) ->
              Trace = os:cmd("gdb -p " ++ Pid ++ " -batch -ex 'thread apply all bt' 2>&1"),
              outwards(Trace, ["burn", "fair__call", "body_main", "beam"])
      end).

with_endless_task(Tool, Config, Fun) ->
    with_endless_task(Tool, {spin, yielding, [new_slot, 20000000, []]}, Config, Fun).

%% A node whose only normal, or dirty, scheduler runs an endless body, or one
%% long call after the other.
with_endless_task(Tool, {Body, Mode, Args}, _Config, Fun) ->
    case os:find_executable(atom_to_list(Tool)) of
        false ->
            {skip, atom_to_list(Tool) ++ " is not installed"};
        _ ->
            Peer = fairnif_test:peer(["+S", "1"]),
            Pid = fairnif_test:call(Peer, os, getpid, []),
            Slot = fairnif_test:call(Peer, fairnif_test_probe, new_slot, []),
            Call = [Body, Mode, [case A of new_slot -> Slot; _ -> A end || A <- Args]],
            spawn(fun() ->
                          try [fairnif_test:call(Peer, fairnif_test_nif, run, Call)
                               || _ <- lists:seq(1, 100)]
                          catch exit:_ -> ok            % the node has been stopped
                          end
                  end),
            try
                fairnif_test:eventually(
                  fun() -> fairnif_test:call(Peer, fairnif, tasks, []) =/= [] end),
                Fun(Pid)
            after
                fairnif_test:stop(Peer)
            end
    end.

%% The names stand in this order in the trace, innermost first.
outwards(Trace, Names) ->
    match(Trace, lists:flatten(lists:join(".*", ["(?:" ++ Name ++ ")" || Name <- Names]))).

match(Text, Pattern) ->
    case re:run(Text, Pattern, [dotall, {capture, none}]) of
        match -> ok;
        nomatch -> error({not_in, Text, Pattern})
    end.
