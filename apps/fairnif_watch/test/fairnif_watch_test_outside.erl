%% What the tests of `fairnif stacks' and `fairnif record' share: programs, nodes under load, and
%% whether a node was harmed.
-module(fairnif_watch_test_outside).

-include_lib("stdlib/include/assert.hrl").

-export([if_traceable/1, program/0, run/1, run/2, start/2, collect/1, kill/2, python/2, is/2]).
-export([peer/1, loaded_peer/1, states/1, is_unharmed/2]).

%% @doc A suite's Config, where the system lets a process look into another one.
if_traceable(Config) ->
    case run([os:getpid()]) of
        {3, <<"fairnif: the system does not let us", _/binary>> = Why} ->
            {skip, binary_to_list(Why)};
        _ -> Config
    end.

program() ->
    filename:absname(filename:join(code:priv_dir(fairnif_watch), "fairnif_stacks")).

%% @doc Its exit code, and what it printed.
run(Args) ->
    run(program(), Args).

run(Program, Args) ->
    {Port, _} = start(Program, Args),
    collect(Port).

%% @doc The second is its OS pid, or `ended'.
start(Program, Args) ->
    Port = open_port({spawn_executable, Program},
                     [{args, Args}, exit_status, stderr_to_stdout, binary]),
    case erlang:port_info(Port, os_pid) of
        {os_pid, OsPid} -> {Port, integer_to_list(OsPid)};
        undefined -> {Port, ended}
    end.

collect(Port) ->
    collect(Port, []).

collect(Port, Said) ->
    receive
        {Port, {data, Data}} -> collect(Port, [Said, Data]);
        {Port, {exit_status, Code}} -> {Code, iolist_to_binary(Said)}
    end.

kill(_, ended) -> "";
kill(Signal, Pid) -> os:cmd("kill -" ++ Signal ++ " " ++ Pid).

%% @doc What it prints; sys.argv[1] is the file.
python(Program, File) ->
    {0, Printed} = run("/usr/bin/env", ["PYTHONIOENCODING=utf-8", "python3", "-c",
                                        "import sys\n" ++ Program, File]),
    Printed.

is(Pattern, Text) ->
    re:run(Text, unicode:characters_to_binary(Pattern), [{capture, none}, multiline]) =:= match.

%% @doc And its OS pid.
peer(Args) ->
    Peer = fairnif_watch_test:peer(Args),
    {Peer, fairnif_watch_test:call(Peer, os, getpid, [])}.

loaded_peer(Load) ->
    {Peer, Pid} = peer([]),
    _ = fairnif_watch_test:call(Peer, fairnif_watch_test_load, hold, [Load, none]),
    {Peer, Pid}.

%% @doc Of all its threads.
states(Pid) ->
    [State || File <- filelib:wildcard("/proc/" ++ Pid ++ "/task/*/stat"),
              {ok, Text} <- [file:read_file(File)],
              {match, [[State]]} <- [re:run(Text, ".*\\) (.)", [{capture, all_but_first, list}])]].

%% @doc It answers, and none of its threads is stopped, or still is when asked again.
is_unharmed(Peer, Pid) ->
    fairnif_test:eventually(fun() -> [S || S <- states(Pid), S =:= $t orelse S =:= $T] =:= [] end),
    ?assertEqual(Pid, fairnif_watch_test:call(Peer, os, getpid, [])),
    fairnif_watch_test:stop(Peer).
