%% Keeps one node in view: connects, attaches, passes on what it sends, says what has become of it,
%% and begins again when it is there again.
%%
%% A process of its own for each node, since whatever it does with a node may take long: no process
%% ever waits for it. It must never ask more of a node that hangs than one question at a time.
-module(fairnif_watch_node).

-export([start_link/1, stop/2]).

%% For the process itself.
-export([init/1]).

-type options() :: #{node := node(), cookie := atom(), form := shortnames | longnames,
                     to := pid(), delay_ms := non_neg_integer(), follow := boolean(),
                     attach := fairnif_watch_attach:options()}.
%% What `to' is sent: `{fairnif_watch_node, Worker, Node, Message}'.
%% `peers': the nodes that it knows, where it is to be followed. `attached': when, us of its time.
-type message() :: {status, status(), binary()} | {attached, integer()}
                 | {view, map()} | {finding, map()} | {peers, [node()]}.
-type status() :: up | hanging | down | gone | replaced | refused.

-export_type([message/0, status/0]).

-record(worker, {options :: options(),
                 owner :: reference(),
                 status = none :: none | status(),
                 attached = none :: none | fairnif_watch_attach:attached(),
                 monitor = none :: none | reference(),
                 timer = none :: none | reference(),
                 asking = none :: none | pid(),
                 identity = none :: none | fairnif_watch_attach:identity(),
                 heard = 0 :: integer(),
                 tries = 0 :: non_neg_integer()}).

-define(RENEW_MS, 1000).
%% A view comes every second.
-define(SILENT_MS, 3000).
%% Between two tries: doubled, from the first to the last.
-define(AGAIN_MS, 500).
-define(AGAIN_MAX_MS, 5000).
-define(HANGING_MAX_MS, 1000).
-define(REFUSED_MAX_MS, 60000).

%% @doc Starts, and connects after that many milliseconds; linked to the caller.
-spec start_link(options()) -> pid().
start_link(Options) ->
    proc_lib:spawn_link(?MODULE, init, [Options]).

%% @doc Leaves the node as it was, if that takes no longer than that many milliseconds; ends in any
%% case.
-spec stop(pid(), timeout()) -> ok.
stop(Worker, Timeout) ->
    true = unlink(Worker),
    Ref = erlang:monitor(process, Worker),
    Worker ! {stop, Timeout},
    receive
        {'DOWN', Ref, process, Worker, _} -> ok
    after Timeout + 500 ->
        true = erlang:demonitor(Ref, [flush]),
        true = exit(Worker, kill),
        ok
    end.

%% @private
-spec init(options()) -> ok.
init(#{to := To, delay_ms := Delay} = Options) ->
    _ = process_flag(trap_exit, true),
    _ = process_flag(message_queue_data, off_heap),
    idle(now_ms() + Delay, #worker{options = Options, owner = erlang:monitor(process, To)}).

connect(#worker{status = Status} = W) ->
    connect(W, Status =/= refused).

connect(#worker{options = #{node := Node, form := Form, cookie := Cookie}} = W, Twice) ->
    case fairnif_watch_connect:connect(Node, Cookie) of
        connected -> attach(W);
        Ended ->
            case fairnif_watch_connect:why_unreachable(Node, Form, Ended) of
                %% It was just starting, perhaps: not there yet for us, but for the question why. Or
                %% the other way round.
                {refused, _} when Twice -> connect(W, false);
                {Status, Why} -> later(Status, Why, W)
            end
    end.

attach(#worker{options = #{node := Node, to := To}} = W) ->
    true = erlang:monitor_node(Node, true),
    %% What follows may take long, and nothing else is done meanwhile.
    Hanging = {status, hanging, <<"it is connected and cannot be attached to yet: is a scheduler "
                                  "blocked, or its dirty I/O pool full?">>},
    Timer = erlang:send_after(?SILENT_MS, To, {?MODULE, self(), Node, Hanging}),
    {Result, W1} = bring(fairnif_watch_attach:identity(Node), W),
    _ = erlang:cancel_timer(Timer),
    case Result of
        {ok, Attached} ->
            Watch = fairnif_watch_attach:watch(Attached),
            tell({attached, fairnif_watch_attach:from(Attached)}, W1),
            watch(timer(W1#worker{attached = Attached, monitor = erlang:monitor(process, Watch),
                                  heard = now_ms(), tries = 0}));
        {error, {Status, Why}} ->
            later(Status, Why, W1)
    end.

bring({ok, Identity}, #worker{options = #{node := Node, attach := Options},
                              identity = Before} = W) ->
    W1 = replaced(Before, Identity, W),
    {fairnif_watch_attach:attach(Node, Options), W1#worker{identity = Identity}};
bring({error, _} = Error, W) ->
    {Error, W}.

replaced(none, _, W) -> W;
replaced(Same, Same, W) -> W;
replaced(_, {_, OsPid}, W) ->
    status(replaced, ["another node has this name now: process ", OsPid], W).

%% Nothing else to do until then; what still comes of an earlier try is of no interest.
later(Status, Why, #worker{tries = Tries} = W) ->
    Wait = min(again_max_ms(Status), ?AGAIN_MS bsl min(Tries, 10)),
    idle(now_ms() + Wait, (status(Status, Why, W))#worker{tries = Tries + 1}).

%% A node that refuses us logs that, each time. What hangs may be over at any moment, and each
%% try takes seconds by itself.
again_max_ms(refused) -> ?REFUSED_MAX_MS;
again_max_ms(hanging) -> ?HANGING_MAX_MS;
again_max_ms(_) -> ?AGAIN_MAX_MS.

idle(Until, #worker{owner = Owner} = W) ->
    receive
        {stop, _} -> ok;
        {'DOWN', Owner, process, _, _} -> ok;
        %% The end of the lock's process or of a connection, a late answer.
        _ -> idle(Until, W)
    after max(0, Until - now_ms()) ->
        again(W)
    end.

again(#worker{options = #{node := Node}} = W) ->
    true = erlang:monitor_node(Node, false),
    ok = flush(Node),
    case lists:member(Node, nodes(connected)) of
        true -> attach(W);
        false -> connect(W)
    end.

flush(Node) ->
    receive {nodedown, Node} -> flush(Node)
    after 0 -> ok
    end.

%% ---- attached: nothing here waits ----

watch(#worker{options = #{node := Node}, owner = Owner, monitor = Watch, asking = Asking} = W) ->
    receive
        {fairnif_watch, Node, Message} ->
            tell(local(Message), W),
            watch(W#worker{heard = now_ms(), status = up});
        renew ->
            ok = fairnif_watch_attach:renew(W#worker.attached),
            watch(timer(silent(ask(W))));
        {peers, Asking, Nodes} ->
            tell({peers, Nodes}, W),
            watch(W);
        {'EXIT', Asking, _} ->
            watch(W#worker{asking = none});
        {nodedown, Node} ->
            later(down, "the connection was lost", lost(W));
        {'DOWN', Watch, process, _, noconnection} ->
            later(down, "the connection was lost", lost(W));
        {'DOWN', Watch, process, _, Reason} ->
            %% The node is there: soon there is another, its own perhaps.
            later(hanging, io_lib:format("its watch ended: ~0tP", [Reason, 8]), lost(W));
        {'DOWN', Owner, process, _, _} ->
            fairnif_watch_attach:detach(W#worker.attached, 2000);
        {stop, Timeout} ->
            fairnif_watch_attach:detach(W#worker.attached, Timeout);
        _ ->
            watch(W)
    end.

timer(W) ->
    W#worker{timer = erlang:send_after(?RENEW_MS, self(), renew)}.

lost(#worker{monitor = Monitor, timer = Timer} = W) ->
    true = erlang:demonitor(Monitor, [flush]),
    _ = erlang:cancel_timer(Timer),
    W#worker{attached = none, monitor = none, timer = none, asking = none}.

silent(#worker{heard = Heard} = W) ->
    case now_ms() - Heard of
        Ms when Ms > ?SILENT_MS ->
            case W#worker.status of
                hanging -> W;
                _ -> status(hanging, "it is connected and says nothing", W)
            end;
        _ ->
            W
    end.

%% Whom it knows, asked by a process that has the time.
ask(#worker{options = #{follow := true, node := Node}, asking = none} = W) ->
    Self = self(),
    Asking = spawn_link(fun() ->
                                Nodes = erpc:call(Node, erlang, nodes, [], 5000),
                                Self ! {peers, self(), Nodes},
                                timer:sleep(?RENEW_MS)
                        end),
    W#worker{asking = Asking};
ask(W) ->
    W.

status(Status, Why, W) ->
    tell({status, Status, unicode:characters_to_binary(Why)}, W),
    W#worker{status = Status}.

tell(Message, #worker{options = #{to := To, node := Node}}) ->
    To ! {?MODULE, self(), Node, Message},
    ok.

%% Pids as the node itself writes them: ours for them have a number in front that means nothing to
%% anybody else.
local({process, Pid}) when is_pid(Pid) ->
    #{kind => process, pid => local(Pid)};
local(Pid) when is_pid(Pid) ->
    [_ | Rest] = string:split(pid_to_list(Pid), "."),
    iolist_to_binary(["<0." | Rest]);
local(Map) when is_map(Map) ->
    maps:map(fun(_, Value) -> local(Value) end, Map);
local([Head | Tail]) ->
    [local(Head) | local(Tail)];
local(Tuple) when is_tuple(Tuple) ->
    list_to_tuple(local(tuple_to_list(Tuple)));
local(Term) ->
    Term.

now_ms() ->
    erlang:monotonic_time(millisecond).
