%% What the suites share: building the libraries under test, peer nodes, waiting.
%%
%% Runs in the test node and in peers; starts nothing that outlives its caller.
-module(fairnif_test).

-export([cases/1, build/0, build/2, library/1, source_dir/0, erl_args/0, erl_args/1]).
-export([peer/1, peer/2, peer/3, call/4, stop/1]).
-export([eventually/1, retry/2, down/1, apply_in_fresh_process/1]).
-export([calibrated/0, env_number/2]).

%% @doc The cases of a suite: what it exports with one argument, in the order of the file, but for
%% what prepares it.
cases(Suite) ->
    [Case || {Case, 1} <- Suite:module_info(exports),
             not lists:member(Case, [init_per_suite, end_per_suite, module_info])].

%% @doc Makes the libraries; takes no time when they are there.
build() ->
    build(?MODULE, fairnif:include_dir()).

%% @doc The same for the Makefile beside the source of `Module', of the application whose headers
%% are in `Include'; all libraries come into one folder.
build(Module, Include) ->
    Command = lists:flatten(
                io_lib:format("make -s -j~b -C '~ts' OUT='~ts' FAIRNIF_INCLUDE_DIR='~ts' "
                              "INCLUDE_DIR='~ts' ERTS_INCLUDE_DIR='~ts/usr/include' 2>&1 "
                              "&& echo built",
                              [erlang:system_info(schedulers), source_dir(Module, Include),
                               out_dir(), filename:absname(fairnif:include_dir()),
                               filename:absname(Include), code:root_dir()])),
    Output = os:cmd(Command),
    case string:find(Output, "built", trailing) of
        "built" ++ _ -> ok;
        _ -> error({make, Command, Output})
    end.

%% @doc A library's path, as load_nif wants it.
library(Name) ->
    filename:join(out_dir(), atom_to_list(Name)).

out_dir() ->
    filename:join(filename:absname(filename:dirname(code:which(?MODULE))), "nifs").

%% @doc Where the C sources are: rebar3 compiles a test from here or from a copy.
source_dir() ->
    source_dir(?MODULE, fairnif:include_dir()).

source_dir(Module, Include) ->
    Source = proplists:get_value(source, Module:module_info(compile)),
    Candidates = [filename:dirname(Source), filename:join(Include, "../test")],
    [Dir | _] = [Dir || Dir <- Candidates, filelib:is_file(filename:join(Dir, "Makefile"))],
    Dir.

%% -- other nodes -------------------------------------------------------------

%% @doc Arguments with which `erl' finds fairnif and the tests' modules.
erl_args() ->
    erl_args([fairnif, ?MODULE]).

%% @doc Those with which it finds what is beside these modules.
erl_args(Modules) ->
    lists:append([["-pa", filename:absname(filename:dirname(code:which(Module)))]
                  || Module <- Modules]).

peer(Args) ->
    peer(Args, []).

%% @doc A node with the test library loaded, or with what `Modules' says. It ends with its caller.
peer(Args, Modules) ->
    peer(Args, Modules, []).

%% @doc `Options': more of what peer:start_link/1 takes.
peer(Args, Modules, Options) ->
    {ok, Peer, _} = fairnif_check_peer:control(
                      group_leader(),
                      maps:merge(#{wait_boot => 300000, args => erl_args() ++ Args},
                                 maps:from_list(Options))),
    [{module, Module} = call(Peer, code, ensure_loaded, [Module])
     || Module <- [fairnif_test_probe, fairnif_test_nif | Modules]],
    ok = call(Peer, ?MODULE, calibrated, []),
    Peer.

call(Peer, Module, Function, Args) ->
    peer:call(Peer, Module, Function, Args, 300000).

stop(Peer) ->
    peer:stop(Peer).

%% -- waiting -----------------------------------------------------------------

%% What comes soon comes late on a busy machine: no test is about this limit. Below call/4's.
-define(GENEROUS_MS, 240000).

%% @doc Waits until Fun returns true; else an error with what it returned instead.
eventually(Fun) ->
    until(Fun, erlang:monotonic_time(millisecond) + ?GENEROUS_MS).

until(Fun, Deadline) ->
    case {Fun(), erlang:monotonic_time(millisecond) > Deadline} of
        {true, _} -> ok;
        {Other, true} -> error({never, Other});
        {_, false} -> timer:sleep(1), until(Fun, Deadline)
    end.

%% @doc For properties of time: Fun returns ok or {ok, Seen}, or what it has seen instead. N
%% attempts; all that was seen is in the error.
retry(N, Fun) ->
    retry(N, Fun, []).

retry(0, _Fun, Seen) ->
    error({each_time, lists:reverse(Seen)});
retry(N, Fun, Seen) ->
    case Fun() of
        ok -> ok;
        {ok, Value} -> Value;
        Other -> retry(N - 1, Fun, [Other | Seen])
    end.

%% @doc The exit reason of a monitored process.
down(Monitor) ->
    receive {'DOWN', Monitor, process, _, Reason} -> Reason
    after ?GENEROUS_MS -> error(still_alive)
    end.

%% @doc Fun's value, or what it raised, from a process whose heap goes with it.
apply_in_fresh_process(Fun) ->
    {_, Monitor} = spawn_monitor(
                     fun() ->
                             exit(try {value, Fun()}
                                  catch Class:Reason:Stack -> {raised, Class, Reason, Stack}
                                  end)
                     end),
    case down(Monitor) of
        {value, Value} -> Value;
        {raised, Class, Reason, Stack} -> erlang:raise(Class, Reason, Stack);
        Reason -> exit(Reason)
    end.

%% @doc Waits until the process that measures after the load has come and gone: for who counts
%% processes, or needs the figures.
calibrated() ->
    eventually(fun() ->
                       #{calibration := #{measured := Measured}} = fairnif:info(),
                       Measured andalso whereis(fairnif_calibration) =:= undefined
               end).

%% @doc A number from the environment.
env_number(Name, Default) ->
    case os:getenv(Name) of
        Value when is_list(Value), Value =/= "" -> list_to_integer(Value);
        _ -> Default
    end.
