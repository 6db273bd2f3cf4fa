%% Starts the watch outside of an application, for a process that is attached to a node. Stops it
%% when that owner, or the owner's node, is gone. Linked to no other process.
-module(fairnif_watch_starter).

-export([start/1, stop/0]).

%% @doc See {@link fairnif_watch:start/1}.
-spec start(map()) -> {ok, pid()} | {error, term()}.
start(Given) ->
    case fairnif_watch_config:check(maps:remove(owner, Given)) of
        {ok, Config} ->
            Caller = self(),
            Owner = maps:get(owner, Given, none),
            {Pid, Ref} = spawn_monitor(fun() -> keep(Caller, Owner, Config) end),
            receive
                {Pid, ok} ->
                    true = erlang:demonitor(Ref, [flush]),
                    {ok, Pid};
                {'DOWN', Ref, process, Pid, Reason} ->
                    {error, Reason}
            end;
        {error, _} = Error ->
            Error
    end.

%% @doc See {@link fairnif_watch:stop/0}.
-spec stop() -> ok | {error, not_started}.
stop() ->
    case whereis(?MODULE) of
        undefined ->
            {error, not_started};
        Pid ->
            Ref = erlang:monitor(process, Pid),
            Pid ! stop,
            receive {'DOWN', Ref, process, Pid, _} -> ok end
    end.

keep(Caller, Owner, Config) ->
    _ = process_flag(trap_exit, true),
    try register(?MODULE, self())
    catch error:badarg -> exit({already_started, whereis(?MODULE)})
    end,
    case fairnif_watch_sup:start_link(Config) of
        {ok, Sup} ->
            Ref = case Owner of
                      none -> make_ref();
                      _ -> erlang:monitor(process, Owner)
                  end,
            Caller ! {self(), ok},
            wait(Sup, Ref);
        {error, Reason} ->
            exit(Reason)
    end.

wait(Sup, Ref) ->
    receive
        stop -> finish(Sup);
        {'DOWN', Ref, process, _, _} -> finish(Sup);
        {'EXIT', Sup, Reason} -> exit(Reason);
        _ -> wait(Sup, Ref)
    end.

finish(Sup) ->
    exit(Sup, shutdown),
    receive {'EXIT', Sup, _} -> ok end.
