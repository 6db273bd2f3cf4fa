%% @private
%% What fairnif:await/1 and fairnif_process do for a call that waits: they receive its result, and
%% do for its body what only the caller can.
-module(fairnif_await).

-export([await/1, until_receive/2, answer/3, timeout_of/1]).

-include("fairnif_asks.hrl").

%% A new load of module fairnif does not set it up: its first call may be an await.
-define(LOADED(Call), try Call
                      catch error:{fairnif, not_loaded} -> _ = fairnif_load:set_up(), Call
                      end).

%% A value of fairnif:pending(), or anything that looks like one.
-type pending() :: tuple().

-spec await(pending() | Value) -> Value.
await(Value) ->
    case until_receive(Value, caller) of
        Asks when ?ASKS(Asks) -> await(receive_for(Asks));
        Answer -> Answer
    end.

%% The body's fair_receive.
receive_for(Asks) ->
    Timeout = timeout_of(Asks),
    receive
        Message -> fairnif:nif_answer(Asks, 1, Message)
    after Timeout -> fairnif:nif_answer(Asks, 0, timeout)
    end.

%% The same in a native process, which has received for it; as {@link until_receive/2}.
%% Outcome is 1, or 0: nothing came in time.
-spec answer(pending(), 0 | 1, term()) -> pending() | term().
answer(Asks, Outcome, Message) ->
    answered(Asks, ?LOADED(fairnif:nif_answer(Asks, Outcome, Message)), process).

%% What a call comes to; or, where its body wants the next message, whichever it is, what is to be
%% answered with it. All else that a body asks for is done here.
-spec until_receive(pending() | Value, caller | process) -> Value | pending().
until_receive(Pending, Role) when is_tuple(Pending), tuple_size(Pending) >= 2,
                                  element(1, Pending) =:= fairnif_pending ->
    %% Made here, sent and received in one function: then the receive looks
    %% only at messages that came later.
    Ref = make_ref(),
    case ?LOADED(fairnif:nif_await(Pending, Ref)) of
        {Ref, Timeout} ->
            receive
                {Ref, go} ->
                    until_receive(Pending, Role);
                {Ref, settle} ->
                    %% A descriptor is ready, maybe for more than one thing.
                    flush(Ref, fairnif:nif_settle(Pending)),
                    until_receive(Pending, Role);
                {Ref, value, Value} ->
                    Value;
                {Ref, raise, Reason} ->
                    error(Reason)
            after Timeout ->
                    flush(Ref, fairnif:nif_expire(Pending)),
                    until_receive(Pending, Role)
            end;
        Value ->
            until_receive(Value, Role)
    end;
until_receive(Asks, Role) when ?ASKS(Asks) ->
    give(Asks, ?LOADED(fairnif:nif_asked(Asks, Role)), Role);
until_receive(Value, _Role) ->
    Value.

%% What the answer came to. It is the task's next request, if it has the object that was just
%% answered and counts one more. So nif_asked need not say so again, which takes 90 ns.
answered(Asks, Next, Role) when ?ASKS(Next), element(2, Next) =:= element(2, Asks),
                                element(4, Next) =:= element(4, Asks) + 1 ->
    give(Next, element(3, Next), Role);
answered(_Asks, Value, Role) ->
    until_receive(Value, Role).

%% fair_receive, fair_receive_tagged, fair_apply, or nothing but what was sent; with what was sent
%% before.
give(Asks, [Sent | Wanted], Role) ->
    send_all(Sent),
    give(Asks, Wanted, Role);
give(Asks, Timeout, _Role) when is_integer(Timeout) ->
    Asks;
give(Asks, {Tag, Timeout}, Role) ->
    answered(Asks, receive_tagged(Asks, Tag, timeout(Timeout)), Role);
give(Asks, {Module, Function, Args}, Role) ->
    answered(Asks, apply_for(Asks, Module, Function, Args), Role);
give(Asks, sent, Role) ->
    answered(Asks, fairnif:nif_answer(Asks, 1, sent), Role).

receive_tagged(Asks, Tag, Timeout) ->
    receive
        Message when Message =:= Tag; element(1, Message) =:= Tag;
                     is_reference(Tag), element(2, Message) =:= Tag ->
            fairnif:nif_answer(Asks, 1, Message)
    after Timeout -> fairnif:nif_answer(Asks, 0, timeout)
    end.

apply_for(Asks, Module, Function, Args) ->
    try apply(Module, Function, Args) of
        Result -> fairnif:nif_answer(Asks, 1, Result)
    catch
        Class:Reason -> fairnif:nif_answer(Asks, 0, {Class, Reason})
    end.

%% fair_send and fair_reply. The last comes first. What cannot be sent is the fault of the body,
%% which can't hear of it any more.
send_all([]) ->
    ok;
send_all([Item | Before]) ->
    send_all(Before),
    try
        case Item of
            [From | Reply] -> gen_server:reply(From, Reply);
            {To, Message} -> To ! Message
        end
    catch
        error:_ -> ok
    end.

%% How long the body of a value that {@link until_receive/2} gave wants to wait, ms.
-spec timeout_of(pending()) -> timeout().
timeout_of(Asks) ->
    timeout(case element(3, Asks) of
                [_ | Timeout] -> Timeout;
                Timeout -> Timeout
            end).

timeout(-1) -> infinity;
timeout(Ms) -> Ms.

%% Messages that are on their way all the same.
flush(_Ref, 0) -> ok;
flush(Ref, N) -> receive {Ref, _} -> flush(Ref, N - 1) end.
