%% @doc Port drivers that put work off: what {@link fairnif:load_driver/2},
%% {@link fairnif:port_control/3} and {@link fairnif:port_call/3} do.
%%
%% A call is made as any other, after the caller has said in C who waits; what
%% the driver puts off is then answered by a message.  See
%% docs/internals/drivers.md.
-module(fairnif_driver).

-export([load/2, port_control/3, port_call/3, counts/0]).

%% @doc See {@link fairnif:load_driver/2}.
-spec load(file:name_all(), string() | atom()) -> ok | {error, term()}.
load(Dir, Name) ->
    _ = fairnif:load_info(),
    case erl_ddll:load(Dir, Name) of
        ok ->
            case fairnif:nif_driver_bind(library(Dir, Name)) of
                ok ->
                    ok;
                {error, Reason} ->
                    _ = erl_ddll:unload(Name),
                    {error, Reason}
            end;
        {error, Reason} ->
            {error, Reason}
    end.

%% The name that erl_ddll opened.
library(Dir, Name) when is_atom(Name) ->
    library(Dir, atom_to_list(Name));
library(Dir, Name) ->
    unicode:characters_to_binary(filename:join(Dir, Name) ++ ".so", unicode,
                                 file:native_name_encoding()).

%% @doc See {@link fairnif:port_control/3}.
-spec port_control(port() | atom(), 0..16#ffffffff, iodata()) -> string() | binary().
port_control(Port, Operation, Data) ->
    request(Port, fun(P) -> erlang:port_control(P, Operation, Data) end,
            [Port, Operation, Data]).

%% @doc See {@link fairnif:port_call/3}.
-spec port_call(port() | atom(), 0..16#ffffffff, term()) -> term().
port_call(Port, Operation, Data) ->
    request(Port, fun(P) -> erlang:port_call(P, Operation, Data) end,
            [Port, Operation, Data]).

%% @doc What there is of drivers' things now: open ports of drivers that were handed
%% the runtime, callbacks put off, callers that wait for one, libraries held mapped.
%% For tests of leaks; costs a microsecond.
-spec counts() -> #{ports | jobs | requests | libraries => non_neg_integer()}.
counts() ->
    _ = fairnif:load_info(),
    fairnif:nif_driver_counts().

request(Name, Call, Args) when is_atom(Name) ->
    case whereis(Name) of
        Port when is_port(Port) -> request(Port, Call, Args);
        _ -> error(badarg, Args)
    end;
request(Port, Call, Args) ->
    case known(Port) of
        true -> await(Port, Call, Args);
        false -> call(Port, Call, Args)
    end.

%% While no runtime is loaded there is no port that defers anything.
known(Port) ->
    try
        fairnif:nif_driver_known(Port)
    catch
        error:not_loaded -> false
    end.

%% The monitor's reference is made, and waited for, in one function: then the
%% receive looks only at messages that came later.  In each branch Request is used
%% after the wait: a request that the garbage collector finds is a caller that died.
await(Port, Call, Args) ->
    Ref = erlang:monitor(port, Port),
    Request = fairnif:nif_driver_request(Port, Ref),
    Now = try
              call(Port, Call, Args)
          catch
              error:badarg -> badarg
          end,
    case Request =/= none andalso fairnif:nif_driver_deferred(Request) of
        true ->
            receive
                {Ref, Answer} ->
                    true = erlang:demonitor(Ref, [flush]),
                    _ = fairnif:nif_driver_abandon(Request),
                    answer(Answer, Args);
                {'DOWN', Ref, port, _, _} ->
                    answer(late(Ref, Request), Args)
            end;
        false ->
            true = erlang:demonitor(Ref, [flush]),
            _ = Request =/= none andalso fairnif:nif_driver_abandon(Request),
            case Now of
                badarg -> error(badarg, Args);
                _ -> Now
            end
    end.

call(Port, Call, Args) ->
    try
        Call(Port)
    catch
        error:badarg -> error(badarg, Args)
    end.

answer({ok, Result}, _Args) -> Result;
answer(error, Args) -> error(badarg, Args).

%% The port has closed.  An answer that is under way is waited for; none is sent
%% after that.
late(Ref, Request) ->
    case fairnif:nif_driver_abandon(Request) of
        sending ->
            receive {Ref, Answer} -> _ = fairnif:nif_driver_abandon(Request), Answer
            after 1 -> late(Ref, Request)
            end;
        _ ->
            receive {Ref, Answer} -> Answer
            after 0 -> error
            end
    end.
