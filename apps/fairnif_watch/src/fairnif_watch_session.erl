%% Runs on a node that is watched from outside: puts there what the watching node sent, starts the
%% watch, and takes everything away again when no node watches any more.
%%
%% It must never need its watchers for that: they may be killed, cut off, or stopped in
%% mid-sentence. So each is monitored, and each must be heard of now and then (a lease): a watcher
%% whose machine vanished without a word, or that was suspended, counts as gone long before
%% distribution notices.
%%
%% Its own code is the last to go, and no process can purge the code it runs: that is left to a
%% process that runs nothing but OTP's.
-module(fairnif_watch_session).

-export([start/1, join/2, renew/2, leave/3]).

-export_type([load/0]).

%% `owner': the first watcher. `modules' and `libraries': what is brought, as file contents; a
%% library's path becomes the setting `key'. `itself': was this module
%% brought too? `config': for fairnif_watch:start/1. `schema': of the views; who joins later must
%% understand them.
-type load() :: #{owner := pid(), modules := [{module(), binary()}],
                  itself := boolean(), libraries := [library()], config := map(),
                  lease_ms := pos_integer(), schema := integer()}.
-type library() :: #{key := atom(), name := file:filename(), content := binary()}.

-record(state, {load :: load(),
                owners :: #{pid() => {Monitor :: reference(), HeardOf :: integer()}},
                core :: pid() | undefined,
                %% Has the files in its care.
                writer = none :: none | {pid(), reference()}}).

%% To write the files of the libraries, which takes some milliseconds. If not it continues without.
-define(WRITE_MS, 1500).
%% Looks at the dirty I/O pool, and how far apart: it may be full for a moment.
-define(LOOKS, 5).
-define(LOOK_MS, 50).

%% @doc Starts on this node; called from the watching one. Answers when the watch runs; all that was
%% brought is gone again where it does not.
-spec start(load()) -> {ok, pid()} | {error, term()}.
start(#{owner := Owner} = Load) when is_pid(Owner) ->
    Ref = make_ref(),
    Self = self(),
    {Pid, Monitor} = spawn_monitor(fun() -> init(Load, Self, Ref) end),
    receive
        {Ref, Answer} ->
            true = erlang:demonitor(Monitor, [flush]),
            Answer;
        {'DOWN', Monitor, process, Pid, Reason} ->
            {error, Reason}
    end.

%% @doc Of another watcher, its process calling: watches too, of what the first one brought.
-spec join(pid() | {atom(), node()}, #{schema := integer(), timeout := timeout()}) ->
          {ok, pid()} | {error, term()}.
join(Session, #{schema := Schema, timeout := Timeout}) ->
    Ref = erlang:monitor(process, Session),
    _ = tell(Session, {join, self(), Ref, Schema}),
    receive
        {Ref, Answer} ->
            true = erlang:demonitor(Ref, [flush]),
            Answer;
        {'DOWN', Ref, process, _, Reason} ->
            {error, Reason}
    after Timeout ->
        true = erlang:demonitor(Ref, [flush]),
        {error, timeout}
    end.

%% @doc Says that the calling watcher is there; to be said several times per lease.
-spec renew(pid(), pid()) -> ok.
renew(Session, Owner) ->
    tell(Session, {renew, Owner}).

%% @doc The watcher leaves. With the last one the watch ends: answers when it has, or after the time
%% limit (it ends all the same).
-spec leave(pid(), pid(), timeout()) -> ok | timeout.
leave(Session, Owner, Timeout) ->
    Ref = erlang:monitor(process, Session),
    _ = tell(Session, {leave, Owner, self(), Ref}),
    receive
        {Ref, others} ->
            true = erlang:demonitor(Ref, [flush]),
            ok;
        {'DOWN', Ref, process, _, _} ->
            ok
    after Timeout ->
        true = erlang:demonitor(Ref, [flush]),
        timeout
    end.

%% Neither waits for a connection that is stuck nor makes a new one.
tell(To, Message) ->
    _ = erlang:send(To, Message, [nosuspend, noconnect]),
    ok.

%% ---- the process ----

init(#{owner := Owner} = Load, Asker, Ref) ->
    %% Two at once are one too many: the second ends with badarg, and has brought nothing.
    true = register(?MODULE, self()),
    _ = process_flag(trap_exit, true),
    State = owner(Owner, #state{load = Load, owners = #{}}),
    case bring(State) of
        {ok, State1} ->
            Asker ! {Ref, {ok, self()}},
            loop(State1);
        {Reason, State1} ->
            Asker ! {Ref, {error, Reason}},
            take_away(State1)
    end.

owner(Pid, #state{owners = Owners} = State) when not is_map_key(Pid, Owners) ->
    State#state{owners = Owners#{Pid => {erlang:monitor(process, Pid), now_ms()}}};
owner(_, State) ->
    State.

loop(#state{owners = Owners} = State) when map_size(Owners) =:= 0 ->
    take_away(State);
loop(State) ->
    receive
        Message ->
            case handle(Message, State) of
                {ended, State1} -> take_away(State1);
                State1 -> loop(State1)
            end
    end.

handle({renew, Owner}, #state{owners = Owners} = State) ->
    case Owners of
        #{Owner := {Monitor, _}} ->
            State#state{owners = Owners#{Owner := {Monitor, now_ms()}}};
        #{} ->
            State
    end;
handle({join, Owner, Ref, Schema}, #state{load = #{schema := Schema}} = State) ->
    tell(Owner, {Ref, {ok, self()}}),
    owner(Owner, State);
handle({join, Owner, Ref, _}, #state{load = #{schema := Ours}} = State) ->
    tell(Owner, {Ref, {error, {schema, Ours}}}),
    State;
handle({leave, Owner, Asker, Ref}, State) ->
    case gone(Owner, State) of
        #state{owners = Left} = State1 when map_size(Left) =:= 0 -> State1;
        State1 -> tell(Asker, {Ref, others}), State1
    end;
%% The node's own application is about to start (fairnif_watch_app).
handle(hand_over, State) ->
    {ended, State};
handle(expire, #state{owners = Owners, load = #{lease_ms := Lease}} = State) ->
    look_again(State),
    Silent = [O || {O, {_, HeardOf}} <- maps:to_list(Owners), now_ms() - HeardOf > Lease],
    lists:foldl(fun gone/2, State, Silent);
handle({'DOWN', _, process, Pid, _}, #state{core = Pid} = State) ->
    {ended, State#state{core = undefined}};
handle({'DOWN', Ref, process, _, _}, #state{writer = {_, Ref}} = State) ->
    State#state{writer = none};
handle({'DOWN', _, process, Pid, _}, State) ->
    gone(Pid, State);
handle(_, State) ->
    State.

gone(Pid, #state{owners = Owners} = State) ->
    case maps:take(Pid, Owners) of
        {{Monitor, _}, Left} ->
            true = erlang:demonitor(Monitor, [flush]),
            State#state{owners = Left};
        error ->
            State
    end.

look_again(#state{load = #{lease_ms := Lease}}) ->
    _ = erlang:send_after(max(1, Lease div 4), self(), expire),
    ok.

%% ---- putting there, and taking away ----

bring(#state{load = #{modules := Modules}} = State) ->
    case load(Modules) of
        ok ->
            Full = is_full(?LOOKS),
            case fairnif_watch_sup:not_loaded() of
                [_ | _] = Missing when Full -> {{not_loaded, Missing}, State};
                _ -> begin_watch(with_files(Full, State))
            end;
        {error, Reason} ->
            {Reason, State}
    end.

begin_watch({Files, #state{load = #{config := Config}} = State}) ->
    Result = watch(with_libraries(Files, State, Config)),
    %% What was loaded is mapped, and needs its name no more.
    ok = remove_files(State),
    case Result of
        {ok, Core} ->
            _ = erlang:monitor(process, Core),
            look_again(State),
            {ok, State#state{core = Core}};
        {error, Reason} ->
            {Reason, State}
    end.

%% Are all dirty I/O schedulers taken? What is in a file cannot be had then, nor anything be put
%% into one. The tables know; no process is asked.
is_full(0) ->
    true;
is_full(Looks) ->
    %% Jobs that run and jobs that wait.
    Jobs = lists:last(erlang:statistics(active_tasks_all)),
    case Jobs >= erlang:system_info(dirty_io_schedulers) of
        true -> receive after ?LOOK_MS -> is_full(Looks - 1) end;
        false -> false
    end.

%% All at once, since each time waits for every scheduler; and not by the code server, which may
%% wait for a file already.
load(Modules) ->
    lists:foreach(fun({M, _}) -> erlang:check_old_code(M) andalso code:purge(M) end, Modules),
    Prepared = [{M, erlang:prepare_loading(M, Beam)} || {M, Beam} <- Modules],
    case [{M, Why} || {M, {error, Why}} <- Prepared] of
        [{Module, Why} | _] ->
            {error, {load, Module, Why}};
        [] ->
            case erlang:finish_loading([Code || {_, Code} <- Prepared]) of
                ok -> ok;
                {Why, [Module | _]} -> {error, {load, Module, Why}}
            end
    end.

watch(Config) ->
    %% Should we be killed the watch ends all the same; only code stays.
    try fairnif_watch:start(Config#{owner => self()}) of
        {ok, Pid} -> {ok, Pid};
        {error, Why} -> {error, {start, Why}}
    catch
        Class:Why:Stack -> {error, {start, {Class, Why, Stack}}}
    end.

%% Where they are not there: what can be seen without, and why it is not more.
with_libraries(Folder, #state{load = #{libraries := Libraries}}, Config) when is_list(Folder) ->
    %% Paths as load_nif takes them: without their end.
    Paths = [{Key, filename:join(Folder, filename:rootname(Name))}
             || #{key := Key, name := Name} <- Libraries],
    maps:merge(Config, maps:from_list(Paths));
with_libraries(_, #state{load = #{libraries := []}}, Config) ->
    Config;
with_libraries(Why, _, Config) ->
    Config#{native => Why}.

%% Another process waits for the file system, and sees to it that nothing stays there.
with_files(_, #state{load = #{libraries := []}} = State) ->
    {none, State};
with_files(true, State) ->
    {dirty_io_full, State};
with_files(false, #state{load = #{libraries := Libraries}} = State) ->
    Session = self(),
    {Pid, _} = Writer = spawn_monitor(fun() -> write_for(Session, Libraries) end),
    With = State#state{writer = Writer},
    receive
        {Pid, written, none} -> {no_folder, With};
        {Pid, written, Folder} -> {Folder, With}
    after ?WRITE_MS ->
        {dirty_io_full, With}
    end.

write_for(Session, Libraries) ->
    Ref = erlang:monitor(process, Session),
    Folder = write(Libraries),
    Session ! {self(), written, Folder},
    receive
        remove -> ok;
        {'DOWN', Ref, process, _, _} -> ok
    end,
    remove(Folder).

remove_files(#state{writer = none}) ->
    ok;
remove_files(#state{writer = {Pid, _}}) ->
    Pid ! remove,
    ok.

%% A folder that only this user may enter, new: no other user puts a file there before us.
write(Libraries) ->
    Places = [P || P <- [os:getenv("TMPDIR", "/tmp"), "/tmp", "/var/tmp", "/dev/shm"],
                   filelib:is_dir(P)],
    write(lists:uniq(Places), Libraries).

write([], _) ->
    none;
write([Place | Rest], Libraries) ->
    Folder = lists:flatten(filename:join(Place, io_lib:format("fairnif_watch_~s_~.36b",
                                                              [os:getpid(),
                                                               rand:uniform(1 bsl 60)]))),
    case file:make_dir(Folder) of
        ok ->
            case fill(Folder, Libraries) of
                ok -> Folder;
                {error, _} -> remove(Folder), write(Rest, Libraries)
            end;
        {error, _} ->
            write(Rest, Libraries)
    end.

fill(Folder, Libraries) ->
    first_error([file:change_mode(Folder, 8#700)
                 | [create(filename:join(Folder, Name), Content)
                    || #{name := Name, content := Content} <- Libraries]]).

create(Path, Content) ->
    case file:open(Path, [raw, binary, write, exclusive]) of
        {ok, File} -> first_error([file:write(File, Content), file:close(File)]);
        {error, _} = Error -> Error
    end.

first_error(Results) ->
    hd([R || R <- Results, R =/= ok] ++ [ok]).

remove(none) ->
    ok;
remove(Folder) ->
    _ = file:del_dir_r(Folder),
    ok.

%% In this order: nothing of ours runs when its code goes. Stopping waits for the native thread
%% however long that takes, and so does the process that has files in its care, since code that runs
%% must stay.
take_away(#state{load = #{modules := Modules, itself := Itself}, core = Core} = State) ->
    Brought = [M || {M, _} <- lists:reverse(Modules), erlang:module_loaded(M)],
    %% What we started, though all of the code may be the node's own.
    _ = try is_pid(Core) andalso fairnif_watch:stop() catch _:_ -> gone end,
    ok = no_files(State),
    lists:foreach(fun erlang:delete_module/1, [?MODULE || Itself] ++ Brought),
    lists:foreach(fun code:purge/1, Brought),
    _ = Itself andalso spawn(lists, foreach, [fun code:purge/1, [?MODULE]]),
    ok.

no_files(#state{writer = none}) ->
    ok;
no_files(#state{writer = {Pid, Ref}} = State) ->
    ok = remove_files(State),
    receive {'DOWN', Ref, process, Pid, _} -> ok end.

now_ms() ->
    erlang:monotonic_time(millisecond).
