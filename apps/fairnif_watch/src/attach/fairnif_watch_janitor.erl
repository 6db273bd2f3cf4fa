%% Runs on a node that is watched from outside: puts there what the watching node sent, starts the
%% watch, and takes everything away again when nobody watches any more.
%%
%% It must never need its watchers for that: they may be killed, cut off, or stopped in
%% mid-sentence. So each is monitored, and each must be heard of now and then (a lease): a watcher
%% whose machine vanished without a word, or that was suspended, counts as gone long before
%% distribution notices.
%%
%% Its own code is the last to go, and no process can purge the code it runs: that is left to a
%% process that runs nothing but OTP's.
-module(fairnif_watch_janitor).

-export([start/1, join/2, renew/2, leave/3]).

-export_type([load/0]).

%% `owner': the first watcher. `modules' and `libraries': what is brought, as file contents; modules
%% are loaded in this order, a library's path becomes the setting `key'. `itself': was this module
%% brought too? `config': for fairnif_watch:start/1. `schema': of the views; who joins later must
%% understand them.
-type load() :: #{owner := pid(), modules := [{module(), file:filename(), binary()}],
                  itself := boolean(), libraries := [library()], config := map(),
                  lease_ms := pos_integer(), schema := integer()}.
-type library() :: #{key := atom(), name := file:filename(), content := binary()}.

-record(state, {load :: load(),
                owners :: #{pid() => {Monitor :: reference(), HeardOf :: integer()}},
                core :: pid() | undefined}).

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
join(Janitor, #{schema := Schema, timeout := Timeout}) ->
    Ref = erlang:monitor(process, Janitor),
    _ = tell(Janitor, {join, self(), Ref, Schema}),
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
renew(Janitor, Owner) ->
    tell(Janitor, {renew, Owner}).

%% @doc The watcher leaves. With the last one the watch ends: answers when it has, or after the time
%% limit (it ends all the same).
-spec leave(pid(), pid(), timeout()) -> ok | timeout.
leave(Janitor, Owner, Timeout) ->
    Ref = erlang:monitor(process, Janitor),
    _ = tell(Janitor, {leave, Owner, self(), Ref}),
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
handle(give_way, State) ->
    {ended, State};
handle(expire, #state{owners = Owners, load = #{lease_ms := Lease}} = State) ->
    look_again(State),
    Silent = [O || {O, {_, HeardOf}} <- maps:to_list(Owners), now_ms() - HeardOf > Lease],
    lists:foldl(fun gone/2, State, Silent);
handle({'DOWN', _, process, Pid, _}, #state{core = Pid} = State) ->
    {ended, State#state{core = undefined}};
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

bring(#state{load = #{modules := Modules, libraries := Libraries, config := Config}} = State) ->
    case load(Modules) of
        ok ->
            Folder = write(Libraries),
            Result = watch(with_libraries(Folder, Libraries, Config)),
            %% What was loaded is mapped, and needs its name no more.
            remove(Folder),
            started(Result, State);
        {error, Reason} ->
            {Reason, State}
    end.

started({ok, Core}, State) ->
    _ = erlang:monitor(process, Core),
    look_again(State),
    {ok, State#state{core = Core}};
started({error, Reason}, State) ->
    {Reason, State}.

load([]) ->
    ok;
load([{Module, File, Beam} | Rest]) ->
    case code:load_binary(Module, File, Beam) of
        {module, Module} -> load(Rest);
        {error, Why} -> {error, {load, Module, Why}}
    end.

watch(Config) ->
    %% Should we be killed the watch ends all the same; only code stays.
    try fairnif_watch:start(Config#{owner => self()}) of
        {ok, Pid} -> {ok, Pid};
        {error, Why} -> {error, {start, Why}}
    catch
        Class:Why:Stack -> {error, {start, {Class, Why, Stack}}}
    end.

with_libraries(_, [], Config) ->
    Config;
with_libraries(none, _, Config) ->
    %% Nowhere to put them: what can be seen without.
    Config#{native => false};
with_libraries(Folder, Libraries, Config) ->
    %% Paths as load_nif takes them: without their end.
    Paths = [{Key, filename:join(Folder, filename:rootname(Name))}
             || #{key := Key, name := Name} <- Libraries],
    maps:merge(Config, maps:from_list(Paths)).

%% A folder that only this user may enter, made anew: nobody else puts a file there before us.
write([]) ->
    none;
write(Libraries) ->
    Places = [P || P <- [os:getenv("TMPDIR", "/tmp"), "/tmp", "/var/tmp", "/dev/shm"],
                   filelib:is_dir(P)],
    write(lists:uniq(Places), Libraries).

write([], _) ->
    none;
write([Place | Rest], Libraries) ->
    Folder = filename:join(Place, io_lib:format("fairnif_watch_~s_~.36b",
                                                [os:getpid(), rand:uniform(1 bsl 60)])),
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
%% however long that takes, since code that runs must stay.
take_away(#state{load = #{modules := Modules, itself := Itself}, core = Core}) ->
    Brought = [M || {M, _, _} <- lists:reverse(Modules), erlang:module_loaded(M)],
    %% What we started, though all of the code may be the node's own.
    _ = try is_pid(Core) andalso fairnif_watch:stop() catch _:_ -> gone end,
    lists:foreach(fun code:delete/1, [?MODULE || Itself] ++ Brought),
    lists:foreach(fun code:purge/1, Brought),
    _ = Itself andalso spawn(lists, foreach, [fun code:purge/1, [?MODULE]]),
    ok.

now_ms() ->
    erlang:monotonic_time(millisecond).
