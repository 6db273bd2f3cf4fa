%% @doc Native processes: Erlang processes whose body is a fair function.
%%
%% The body is a loop around `fair_receive', with its state in local variables:
%%
%% ```
%% static ERL_NIF_TERM counter(fair_task *t)
%% {
%%     ErlNifSInt64 n = 0;
%%     ERL_NIF_TERM message, from, request;
%%
%%     while (fair_receive(t, -1, &message) > 0)
%%         if (fair_match_call(t, message, &from, &request))
%%             fair_reply(t, from, enif_make_int64(fair_env(t), ++n));
%%     return enif_make_atom(fair_env(t), "normal");
%% }
%%
%% 1> {ok, Pid} = fairnif_process:start_link(fun my_nif:nif_counter/0, [], []).
%% 2> gen_server:call(Pid, next).
%% 1
%% '''
%%
%% It is a process like any other: it has a pid, links, monitors and a mailbox; a supervisor can
%% start it, `observer' shows it and `sys' can stop it. The guide has a chapter on native processes.
%%
%% The body returns the exit reason of the process: `normal', `shutdown', or anything else for a
%% crash. If it raises, the reason is `{Reason, StackTrace}'. A body that returns `{continue, Args}'
%% is called again with these arguments, in the newest version of its module.
%%
%% The body does not receive the messages of `sys', nor, if the process traps exits, its parent's
%% exit signal, which ends the process with the same reason. With option `system' the body takes
%% part in both: see {@type options()}.
-module(fairnif_process).

-export([start/3, start_link/3, child_spec/1]).

%% For each message: 30 ns of 1,200.
-compile({inline, [left/1, with_deadline/2, noted/2]}).

%% For gen and sys.
-export([init_it/6, wait/2]).
-export([system_continue/3, system_terminate/4, system_code_change/4, system_get_state/1,
         system_replace_state/2, format_status/2]).

-include("fairnif_asks.hrl").

-export_type([options/0, nif/0]).

-type nif() :: fun().
%% `fun Module:Function/Arity', of a fair function with `FAIR_MAY_WAIT' or in mode `FAIR_THREADED':
%% the NIF itself, without `fairnif:await/1', which would keep the process from handling `sys' and
%% its parent.

-type options() :: [{name, {local, atom()} | {global, term()} | {via, module(), term()}}
                    | {system, boolean()}
                    | {trap_exit, boolean()}
                    | {hibernate_after, timeout()}
                    | {timeout, timeout()}
                    | {debug, [sys:debug_option()]}
                    | {spawn_opt, [proc_lib:start_spawn_option()]}].
%% `timeout', `debug', `spawn_opt' and `hibernate_after' (ms) are those of gen_server. With
%% `{system, true}' the body gets messages `{system, From, Request}', and answers them by
%% `fair_reply' before it receives the next one:
%% <dl>
%% <dt>`get_state'</dt><dd>its state as a term, for `sys:get_state'</dd>
%% <dt>`{replace_state, State}'</dt><dd>`ok', once it has taken what `sys:replace_state''s function
%%   made of it</dd>
%% <dt>`{code_change, OldVsn, Extra}'</dt><dd>`ok', or a reason why not; by then its module may be a
%%   newer one, which it enters by returning `{continue, Args}'</dd>
%% <dt>`{terminate, Reason}'</dt><dd>`ok'; the process then exits with that reason. `sys:terminate'
%%   or its parent wants it to end, and here is where it may clean up slowly</dd>
%% </dl>

-record(process, {nif :: nif(),
                  name,                     % as gen has it: {local, Name}, or a pid
                  parent :: pid(),
                  starter :: pid() | none,  % none: it knows that this process has begun
                  system :: boolean(),
                  debug :: [sys:dbg_opt()],
                  deadline = infinity :: integer() | infinity,    % of the body's receive, ms
                  hibernate_after :: timeout(),
                  asks :: tuple() | undefined}).       % while sys has the process

%% What the body came to when it was asked meanwhile: sys calls system_get_state without a way to
%% give back another record. Only so long, since anybody may look at the dictionary.
-define(CAME_TO, '$fairnif_came_to').

%% @doc A native process that calls `Nif' with `Args'; answers once its body receives for the first
%% time. `{error, Reason}' when it returned or raised before, `ignore' when it returned that.
-spec start_link(nif(), [term()], options()) -> {ok, pid()} | ignore | {error, term()}.
start_link(Nif, Args, Options) ->
    begin_as(link, Nif, Args, Options).

%% @doc The same without a link.
-spec start(nif(), [term()], options()) -> {ok, pid()} | ignore | {error, term()}.
start(Nif, Args, Options) ->
    begin_as(nolink, Nif, Args, Options).

%% @doc The child specification for a supervisor, of an id and what {@link start_link/3} gets.
-spec child_spec({Id :: term(), nif(), [term()], options()}) -> supervisor:child_spec().
child_spec({Id, Nif, Args, Options}) ->
    #{id => Id, start => {?MODULE, start_link, [Nif, Args, Options]}, modules => [module_of(Nif)]}.

begin_as(Link, Nif, Args, Options) ->
    is_list(Args) andalso is_function(Nif, length(Args))
        orelse error({fairnif, {bad_nif, {Nif, Args}}}),
    _ = module_of(Nif),
    check(Options),
    {Ours, Rest} = lists:partition(fun({Key, _}) -> lists:member(Key, ours()) end, Options),
    Gen = [O || {Key, _} = O <- Rest, Key =/= name],
    Start = {Nif, Args, maps:from_list(Ours)},
    case proplists:get_value(name, Options) of
        undefined -> gen:start(?MODULE, Link, ?MODULE, Start, Gen);
        Name -> gen:start(?MODULE, Link, Name, ?MODULE, Start, Gen)
    end.

%% The others are gen's.
ours() -> [system, trap_exit].

module_of(Nif) ->
    case erlang:fun_info(Nif, type) of
        {type, external} -> element(2, erlang:fun_info(Nif, module));
        _ -> error({fairnif, {bad_nif, Nif}})
    end.

check(Options) ->
    [case Option of
         {name, {local, Name}} when is_atom(Name) -> ok;
         {name, {global, _}} -> ok;
         {name, {via, Module, _}} when is_atom(Module) -> ok;
         {Key, Value} when is_boolean(Value), Key =:= system;
                           is_boolean(Value), Key =:= trap_exit -> ok;
         {Key, infinity} when Key =:= hibernate_after; Key =:= timeout -> ok;
         {Key, Ms} when is_integer(Ms), Ms >= 0, Key =:= hibernate_after;
                        is_integer(Ms), Ms >= 0, Key =:= timeout -> ok;
         {Key, List} when is_list(List), Key =:= debug;
                          is_list(List), Key =:= spawn_opt -> ok;
         _ -> error({fairnif, {bad_option, Option}})
     end || Option <- Options],
    ok.

%% -- the process -----------------------------------------------------------------------------

%% @private
-spec init_it(pid(), pid() | self, term(), module(), {nif(), [term()], map()}, list()) ->
          no_return().
init_it(Starter, Parent, Name, _, {Nif, Args, Ours}, Options) ->
    process_flag(trap_exit, maps:get(trap_exit, Ours, false)),
    [{module, M}, {name, F}, {arity, A}] = [erlang:fun_info(Nif, K) || K <- [module, name, arity]],
    put('$initial_call', {M, F, A}),
    P = #process{nif = Nif, name = Name, starter = Starter, system = maps:get(system, Ours, false),
                 parent = case Parent of self -> self(); _ -> Parent end,
                 debug = gen:debug_options(gen:name(Name), Options),
                 hibernate_after = gen:hibernate_after(Options)},
    try
        fairnif_await:until_receive(apply(Nif, Args), process)
    of
        Value -> proceed(Value, P)
    catch
        exit:Reason -> not_started({error, Reason}, Reason, P);
        error:Reason:Stack -> not_started({error, {Reason, Stack}}, {Reason, Stack}, P);
        throw:Reason -> not_started({error, {nocatch, Reason}}, {nocatch, Reason}, P)
    end.

%% The body wants a message, or has returned.
proceed(Asks, #process{starter = none} = P) when ?ASKS(Asks) ->
    wait(Asks, with_deadline(fairnif_await:timeout_of(Asks), P));
proceed(Asks, #process{starter = Starter} = P) when ?ASKS(Asks) ->
    proc_lib:init_ack(Starter, {ok, self()}),
    proceed(Asks, P#process{starter = none});
proceed({continue, Args}, #process{nif = Nif} = P) when is_function(Nif, length(Args)) ->
    proceed(fairnif_await:until_receive(apply(Nif, Args), process), P);
proceed({raised, Class, Reason, Stack}, #process{starter = none}) ->
    erlang:raise(Class, Reason, Stack);
proceed(Reason, #process{starter = none}) ->
    exit(Reason);
proceed(ignore, P) ->
    not_started(ignore, normal, P);
proceed(Reason, P) ->
    not_started({error, Reason}, Reason, P).

not_started(Answer, Reason, #process{starter = Starter, name = Name}) ->
    gen:unregister_name(Name),
    %% As gen_server: since OTP 26 start_link returns once the process is gone. Its name is in a
    %% variable for xref, which looks at it on OTP 25 too.
    Fail = init_fail,
    case erlang:function_exported(proc_lib, Fail, 3) of
        true -> proc_lib:Fail(Starter, Answer, {exit, Reason});
        false -> proc_lib:init_ack(Starter, Answer), exit(Reason)
    end.

with_deadline(infinity, #process{deadline = infinity} = P) -> P;
with_deadline(infinity, P) -> P#process{deadline = infinity};
with_deadline(Ms, P) -> P#process{deadline = now_ms() + Ms}.

now_ms() ->
    erlang:monotonic_time(millisecond).

%% @private
-spec wait(tuple(), #process{}) -> no_return().
wait(Asks, #process{parent = Parent} = P) ->
    Left = left(P),
    receive
        {system, From, Request} ->
            sys:handle_system_msg(Request, From, Parent, ?MODULE, P#process.debug,
                                  P#process{asks = Asks});
        {'EXIT', Parent, Reason} ->
            terminate(Reason, P#process{asks = Asks});
        Message ->
            proceed(fairnif_await:answer(Asks, 1, Message), noted(Message, P))
    after Left ->
            timed_out(Asks, P)
    end.

left(#process{deadline = infinity, hibernate_after = Ms}) -> Ms;
left(#process{deadline = Deadline}) -> max(0, Deadline - now_ms()).

%% A process with a deadline does not hibernate: it would not wake up for it.
timed_out(Asks, #process{deadline = infinity} = P) ->
    proc_lib:hibernate(?MODULE, wait, [Asks, P]);
timed_out(Asks, P) ->
    proceed(fairnif_await:answer(Asks, 0, timeout), P).

noted(_Message, #process{debug = []} = P) ->
    P;
noted(Message, #process{debug = Debug, name = Name} = P) ->
    P#process{debug = sys:handle_debug(Debug, fun print/3, gen:name(Name), {in, Message})}.

print(Device, {in, Message}, Name) ->
    io:format(Device, "*DBG* ~tp got ~tp~n", [Name, Message]);
print(Device, Event, Name) ->
    io:format(Device, "*DBG* ~tp: ~tp~n", [Name, Event]).

%% -- sys -------------------------------------------------------------------------------------

%% @private
-spec system_continue(pid(), [sys:dbg_opt()], #process{}) -> no_return().
system_continue(Parent, Debug, P) ->
    proceed(came_to(P), P#process{parent = Parent, debug = Debug, asks = undefined}).

came_to(#process{asks = Asks}) ->
    case erase(?CAME_TO) of
        undefined -> Asks;
        CameTo -> CameTo
    end.

%% @private
-spec system_terminate(term(), pid(), [sys:dbg_opt()], #process{}) -> no_return().
system_terminate(Reason, _Parent, Debug, P) ->
    terminate(Reason, P#process{debug = Debug}).

%% The body is released with the process.
terminate(Reason, #process{system = true} = P) ->
    _ = ask_body({terminate, Reason}, P),
    _ = erase(?CAME_TO),                % a crash report has the dictionary
    exit(Reason);
terminate(Reason, _P) ->
    exit(Reason).

%% @private
-spec system_code_change(#process{}, module(), term(), term()) ->
          {ok, #process{}} | {error, term()}.
system_code_change(#process{system = false} = P, _Module, _OldVsn, _Extra) ->
    {ok, P};
system_code_change(P, _Module, OldVsn, Extra) ->
    case ask_body({code_change, OldVsn, Extra}, P) of
        ok -> {ok, P};
        Other -> {error, Other}
    end.

%% @private
-spec system_get_state(#process{}) -> {ok, term()}.
system_get_state(P) ->
    {ok, ask_body(get_state, P)}.

%% @private
-spec system_replace_state(fun((term()) -> term()), #process{}) -> {ok, term(), #process{}}.
system_replace_state(Fun, P) ->
    State = Fun(ask_body(get_state, P)),
    ok = ask_body({replace_state, State}, P),
    {ok, State, P}.

%% @private
-spec format_status(normal | terminate, [term()]) -> [tuple()].
format_status(_Option, [_Dictionary, State, Parent, Debug, #process{nif = Nif, name = Name}]) ->
    [{header, lists:flatten(io_lib:format("Status for native process ~tp", [gen:name(Name)]))},
     {data, [{"Status", State}, {"Parent", Parent}, {"Logged events", sys:get_log(Debug)},
             {"NIF", Nif}]}].

%% Gives the body a message of its own to be answered before it receives again.
ask_body(Request, #process{system = false}) ->
    error({fairnif, {no_system_option, Request}});
ask_body(Request, P) ->
    Tag = make_ref(),
    put(?CAME_TO, deliver(came_to(P), {system, {self(), Tag}, Request})),
    receive
        {Tag, Answer} -> Answer
    after 0 ->
            error({fairnif, {not_answered, Request}})
    end.

deliver(Asks, Message) when ?ASKS(Asks) ->
    try
        fairnif_await:answer(Asks, 1, Message)
    catch
        Class:Reason:Stack -> {raised, Class, Reason, Stack}
    end;
deliver(Ended, _Message) ->             % meanwhile: the process ends when sys resumes it
    Ended.
