%% Brings the watch to a node over distribution, or finds it there, and subscribes to it.
%%
%% Called by a process of the watching node that has nothing else to do (fairnif_watch_node): every
%% call has a time limit, but a connection that is stuck can still hold the caller up. It must never
%% load anything over what the node has: a module that is there already, and not the same, ends it.
-module(fairnif_watch_attach).

-export([identity/1, attach/2, watch/1, from/1, renew/1, detach/2]).

-export_type([attached/0, options/0, reason/0, identity/0]).

%% `session': none where the node runs the application by itself; `watch': what to monitor;
%% `from': when we subscribed, us of the node's time.
-opaque attached() :: #{node := node(), session := none | pid(), watch := pid(), ref := term(),
                        from := integer()}.
%% `config': settings of the watch that is brought. `libraries': paths of the native part without
%% `.so', by their setting; those of this installation by default.
-type options() :: #{config => map(), libraries => #{atom() => file:filename()},
                     lease_ms => pos_integer()}.
%% `hanging' may be over at any time, `refused' not by itself.
-type reason() :: {hanging | down | refused, unicode:chardata()}.
%% Differs from that of any other node that has had the name.
-type identity() :: {Creation :: integer(), OsPid :: string()}.

-define(CALL_MS, 5000).
%% Bringing: half a megabyte may travel far, and loading waits for every scheduler.
-define(BRING_MS, 20000).
-define(LEASE_MS, 20000).
%% Two that attach at the same time: one waits for the other.
-define(LOCK, fairnif_watch_attaching).
-define(LOCK_TRIES, 100).
-define(LOCK_WAIT_MS, 200).
-define(SESSION, fairnif_watch_session).
-define(COLLECTOR, fairnif_watch_collector).

%% The schema of views that this side understands.
schema() -> 1.

%% @doc Which of the nodes that have had, and will have, this name it is.  Error when there is no
%% answer in 5 s.
-spec identity(node()) -> {ok, identity()} | {error, reason()}.
identity(Node) ->
    case together(Node, [{erlang, system_info, [creation]}, {os, getpid, []}]) of
        {ok, [Creation, OsPid]} -> {ok, {Creation, OsPid}};
        {error, _} = Error -> Error
    end.

%% @doc Has the calling process get the views and findings of a node, to which it must be connected:
%% `{fairnif_watch, Node, Message}'. Messages of the process that `watch' monitors arrive as `DOWN'.
%% Costs the node, where nothing is there yet, loading some 40 modules and two libraries; takes at
%% most some 30 s.
-spec attach(node(), options()) -> {ok, attached()} | {error, reason()}.
attach(Node, Options) ->
    case sleeper(Node) of
        {ok, Lock} ->
            try locked(Node, Lock, ?LOCK_TRIES) of
                ok -> found(Node, Options);
                {error, _} = Error -> Error
            after
                true = unlink(Lock),
                exit(Lock, kill)
            end;
        {error, _} = Error ->
            Error
    end.

%% A process there that does nothing. Linked from its first moment on, so it ends with the caller,
%% or with the connection.
sleeper(Node) ->
    Ref = erlang:spawn_request(Node, erlang, hibernate, [erlang, exit, [normal]],
                               [link, {reply_tag, ?LOCK}]),
    slept(Ref, ?CALL_MS).

slept(Ref, Timeout) ->
    receive
        {?LOCK, Ref, ok, Pid} -> {ok, Pid};
        {?LOCK, Ref, error, _} -> {error, {down, "the connection was lost"}}
    after Timeout ->
        case erlang:spawn_request_abandon(Ref) of
            true -> no_answer(Timeout);
            false -> slept(Ref, infinity)       % it is on its way
        end
    end.

locked(_, _, 0) ->
    {error, {hanging, "another watcher that is being attached hangs"}};
locked(Node, Lock, Tries) ->
    case call(Node, erlang, register, [?LOCK, Lock]) of
        {ok, true} -> ok;
        {error, {refused, _}} ->
            timer:sleep(?LOCK_WAIT_MS),
            locked(Node, Lock, Tries - 1);
        {error, _} = Error -> Error
    end.

found(Node, Options) ->
    case together(Node, [{erlang, whereis, [?SESSION]}, {erlang, whereis, [?COLLECTOR]},
                         {init, get_status, []}, {erlang, system_info, [otp_release]}]) of
        {ok, [Session, _, _, _]} when is_pid(Session) -> join(Node, Session);
        {ok, [_, Collector, _, _]} when is_pid(Collector) -> application(Node, Collector);
        %% Its own application may be about to start: with the names taken the boot would fail.
        %% (When all are started, what `-eval' or `-s' runs may last for ever.)
        {ok, [_, _, {starting, Step}, _]} when Step =/= started ->
            {error, {hanging, "it is still starting"}};
        {ok, [_, _, _, Otp]} when Otp < "25" ->
            {error, {refused, ["its Erlang/OTP ", Otp, " is older than 25"]}};
        {ok, [_, _, _, Otp]} -> bring(Node, Otp, Options);
        {error, _} = Error -> Error
    end.

join(Node, Session) ->
    case ?SESSION:join(Session, #{schema => schema(), timeout => ?CALL_MS}) of
        {ok, Session} ->
            subscribe(#{node => Node, session => Session, watch => Session});
        {error, {schema, Theirs}} -> other_schema(Theirs);
        {error, timeout} -> {error, {hanging, "the watch of another command does not reply"}};
        {error, _} -> {error, {hanging, "another watcher was just leaving"}}
    end.

application(Node, Collector) ->
    Schema = schema(),
    case call(Node, fairnif_watch, view, []) of
        {ok, #{schema_version := Schema}} ->
            subscribe(#{node => Node, session => none, watch => Collector});
        {ok, #{schema_version := Theirs}} -> other_schema(Theirs);
        {ok, _} -> other_schema(unknown);
        {error, _} = Error -> Error
    end.

other_schema(Theirs) ->
    {error, {refused, io_lib:format("it runs another version of fairnif_watch: its views have "
                                    "schema ~p, this side knows ~b", [Theirs, schema()])}}.

subscribe(#{node := Node} = Attached) ->
    case together(Node, [{erlang, system_time, [microsecond]},
                         {fairnif_watch, subscribe, [self()]}]) of
        {ok, [From, {ok, Ref}]} -> {ok, Attached#{ref => Ref, from => From}};
        {ok, [_, Other]} ->
            {error, {refused, io_lib:format("it takes no subscriber: ~0tP", [Other, 8])}};
        %% It was there a moment ago.
        {error, {refused, Why}} -> {error, {hanging, ["its watch was just ending: ", Why]}};
        {error, _} = Error -> Error
    end.

%% ---- bringing ----

bring(Node, Otp, Options) ->
    Ours = [{Module, code:get_object_code(Module)} || Module <- [?SESSION | modules()]],
    case [M || {M, error} <- Ours] of
        [] -> bring_missing(Node, Otp, [{M, Beam} || {M, {M, Beam, _}} <- Ours], Options);
        Missing -> {error, {refused, io_lib:format("this side lacks ~p", [Missing])}}
    end.

%% The session travels by itself; what starts the application runs while the session takes all away.
modules() ->
    _ = application:load(fairnif_watch),
    {ok, All} = application:get_key(fairnif_watch, modules),
    All -- [?SESSION, fairnif_watch_app].

bring_missing(Node, Otp, Ours, Options) ->
    case there(Node, Ours) of
        {ok, Missing} -> send(Node, Otp, Missing, Options);
        {error, _} = Error -> Error
    end.

%% What is loaded there already stays, if it is the same.
there(Node, Ours) ->
    Names = [Module || {Module, _} <- Ours],
    case call(Node, lists, filter, [fun erlang:module_loaded/1, Names]) of
        {ok, []} ->
            {ok, Ours};
        {ok, Loaded} ->
            case together(Node, [{M, module_info, [md5]} || M <- Loaded]) of
                {ok, Sums} -> the_same(lists:zip(Loaded, Sums), Ours);
                {error, _} = Error -> Error
            end;
        {error, _} = Error -> Error
    end.

%% By what is in the module, wherever it was built: so no module of the watch may use the macros of
%% logger.hrl, which put the path of its source into it.
the_same(Loaded, Ours) ->
    Differ = [M || {M, Beam} <- Ours, {N, Sum} <- Loaded, N =:= M,
                   Sum =/= code:module_md5(Beam)],
    case Differ of
        [] -> {ok, [Code || {M, _} = Code <- Ours, not lists:keymember(M, 1, Loaded)]};
        [M | _] ->
            {error, {refused, io_lib:format(
                       "it has another version of fairnif_watch loaded (~p differs), which does "
                       "not run: start it there, or use that version's command", [M])}}
    end.

send(Node, Otp, Missing, Options) ->
    {Session, Others} = lists:partition(fun({M, _}) -> M =:= ?SESSION end, Missing),
    Load = #{owner => self(), modules => Others, itself => Session =/= [],
             libraries => libraries(Options),
             config => maps:merge(config(), maps:get(config, Options, #{})),
             lease_ms => maps:get(lease_ms, Options, ?LEASE_MS), schema => schema()},
    %% One call, of OTP's functions only: were it two, and we killed between them, the session's
    %% code would stay there with no process to take it away. The code server has no part in it: it
    %% may wait for a file.
    Calls = lists:append([[{code, purge, [M]}, {erlang, load_module, [M, Beam]}]
                          || {M, Beam} <- Session]) ++ [{?SESSION, start, [Load]}],
    case together(Node, Calls, ?BRING_MS) of
        {ok, Results} -> brought(lists:last(Results), Node, Otp);
        {error, {hanging, Why}} ->
            {error, {hanging, [Why, ": is a scheduler blocked?"]}};
        {error, {refused, _}} = Error when Session =/= [] ->
            case call(Node, erlang, prepare_loading, tuple_to_list(hd(Session))) of
                {ok, {error, Why}} -> unloadable(?SESSION, Why, Otp);
                _ -> Error
            end;
        {error, _} = Error -> Error
    end.

brought({ok, Session}, Node, _) ->
    subscribe(#{node => Node, session => Session, watch => Session});
brought({error, {load, Module, Why}}, _, Otp) ->
    unloadable(Module, Why, Otp);
brought({error, {not_loaded, Modules}}, _, _) ->
    {error, {hanging, io_lib:format("its dirty I/O schedulers are all taken, and it has not loaded "
                                    "what the watch needs of Erlang/OTP (~0tp), which is in files",
                                    [Modules])}};
brought({error, Why}, _, _) ->
    {error, {refused, io_lib:format("the watch does not start there: ~0tP", [Why, 20])}}.

unloadable(Module, Why, Otp) ->
    {error, {refused, io_lib:format(
               "its Erlang/OTP ~ts cannot load what Erlang/OTP ~ts made here (~p: ~0tP): build "
               "fairnif with the older of the two",
               [Otp, erlang:system_info(otp_release), Module, Why, 5])}}.

%% Nothing that would be left: the findings are shown here, not in the node's log.
config() ->
    #{log => false, telemetry => false, emergency_ms => 0}.

libraries(#{config := #{native := false}}) ->
    [];
libraries(Options) ->
    Priv = case code:priv_dir(fairnif_watch) of
               {error, _} -> "";
               Dir -> Dir
           end,
    Defaults = #{native_library => filename:join(Priv, "fairnif_watch"),
                 probe_library => filename:join(Priv, "fairnif_watch_probe")},
    Paths = maps:merge(Defaults, maps:get(libraries, Options, #{})),
    [library(Key, File ++ ".so")
     || {Key, File} <- maps:to_list(Paths), filelib:is_regular(File ++ ".so")].

library(Key, Path) ->
    {ok, Content} = file:read_file(Path),
    #{key => Key, name => filename:basename(Path), content => Content}.

%% ---- staying, and leaving ----

%% @doc The process there that ends with the watch: to be monitored.
-spec watch(attached()) -> pid().
watch(#{watch := Watch}) -> Watch.

%% @doc Since when it sends to us, us of its time.
-spec from(attached()) -> integer().
from(#{from := From}) -> From.

%% @doc Says that we are there; to be called several times a lease (20 s).  Waits for nothing.
-spec renew(attached()) -> ok.
renew(#{session := none}) -> ok;
renew(#{session := Session}) -> ?SESSION:renew(Session, self()).

%% @doc Leaves, and waits for the node to be as it was, but not longer than that many milliseconds.
-spec detach(attached(), timeout()) -> ok.
detach(#{node := Node, ref := Ref, session := Session}, Timeout) ->
    _ = call(Node, fairnif_watch, unsubscribe, [Ref], Timeout),
    _ = is_pid(Session) andalso ?SESSION:leave(Session, self(), Timeout),
    ok.

%% ---- calls ----

%% Several calls in one message, in this order, of which nothing there needs code of ours.
together(Node, Calls) ->
    together(Node, Calls, ?CALL_MS).

together(Node, Calls, Timeout) ->
    {Ms, Fs, As} = lists:unzip3(Calls),
    call(Node, lists, zipwith3, [fun erlang:apply/3, Ms, Fs, As], Timeout).

call(Node, M, F, A) ->
    call(Node, M, F, A, ?CALL_MS).

call(Node, M, F, A, Timeout) ->
    try erpc:call(Node, M, F, A, Timeout) of
        Value -> {ok, Value}
    catch
        error:{erpc, timeout} ->
            no_answer(Timeout);
        error:{erpc, noconnection} ->
            {error, {down, "the connection was lost"}};
        error:{erpc, notsup} ->
            {error, {refused, "its Erlang/OTP is older than 25"}};
        _:{exception, Why, [{M1, F1, _, _} | _]} ->
            {error, {refused, io_lib:format("~p:~p fails there: ~0tP", [M1, F1, Why, 12])}};
        Class:Why ->
            {error, {refused, io_lib:format("~p:~p fails there: ~p ~0tP", [M, F, Class, Why, 12])}}
    end.

no_answer(Timeout) ->
    {error, {hanging, ["no answer in ", integer_to_list(Timeout div 1000), " s"]}}.
