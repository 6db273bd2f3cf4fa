%% @doc Port drivers that defer work instead of blocking a scheduler.
%%
%% Such a driver is written with `fairdrv.h'.  Load it with {@link load/2} instead of
%% `erl_ddll:load/2', and call it with {@link control/3} and {@link call/3} instead of
%% `erlang:port_control/3' and `erlang:port_call/3'.
%%
%% The first call that needs this application's library loads it and passes it fairnif's
%% runtime. There is no `-on_load': in a release in embedded mode that may run before fairnif
%% can be called.
-module(fairnif_driver).

-export([load/2, control/3, call/3, counts/0, include_dir/0]).

-nifs([nif_hand_over/1, nif_known/1, nif_request/2, nif_deferred/1, nif_abandon/1,
       nif_counts/0]).

%% @doc Loads a port driver made with `FAIR_DRIVER_INIT' (`fairdrv.h'), as
%% `erl_ddll:load(Dir, Name)' does, and passes it the runtime, so that its callbacks
%% can defer work.  The driver belongs to the caller as with erl_ddll: when the caller
%% dies, it is unloaded if no other process has loaded it and no port is open.
%%
%% Returns what `erl_ddll:load/2' does, or one of these, without leaving the driver loaded:
%% <dl>
%% <dt>`{error, no_fair_driver}'</dt><dd>it was not made with
%%   `FAIR_DRIVER_INIT'</dd>
%% <dt>`{error, {interface, Its, Ours}}'</dt><dd>it was compiled with a `fairdrv.h'
%%   of another interface version: compile it with the header of this
%%   application</dd>
%% </dl>
%% Costs one `dlopen' on a dirty I/O scheduler more than erl_ddll.  A driver that is
%% already loaded and bound is left as it is.
%%
%% Raises `error:{fairnif_driver, Reason}' when this application's own library cannot be
%% loaded.
-spec load(Dir :: file:name_all(), Name :: string() | atom()) -> ok | {error, term()}.
load(Dir, Name) ->
    _ = counts(),
    case erl_ddll:load(Dir, Name) of
        ok ->
            case nif_hand_over(library(Dir, Name)) of
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

%% @doc Does what `erlang:port_control(Port, Operation, Data)' does, also if the driver
%% defers the work: the caller then waits in a receive that matches one message only,
%% and occupies no scheduler.  If a driver defers nothing or does not use fairnif, this
%% is `erlang:port_control/3' after a look-up of the port.
%%
%% Raises `error:badarg' as that does: if `Port' is not an open port of this node, if the
%% driver answers with an error, or if the port closes before it has answered.  If the
%% caller dies, a job that has not begun is cancelled; one that has begun is told by its tick.
-spec control(port() | atom(), Operation :: 0..16#ffffffff, Data :: iodata()) ->
          string() | binary().
control(Port, Operation, Data) ->
    request(Port, fun(P) -> erlang:port_control(P, Operation, Data) end,
            [Port, Operation, Data]).

%% @doc The same for `erlang:port_call(Port, Operation, Data)'.
-spec call(port() | atom(), Operation :: 0..16#ffffffff, Data :: term()) -> term().
call(Port, Operation, Data) ->
    request(Port, fun(P) -> erlang:port_call(P, Operation, Data) end,
            [Port, Operation, Data]).

%% @doc Returns the current numbers of open ports of drivers that use the runtime,
%% deferred callbacks, callers that wait for one, and libraries kept mapped.
%% For tests of leaks; costs a microsecond.
-spec counts() -> #{ports | jobs | requests | libraries => non_neg_integer()}.
counts() ->
    try
        nif_counts()
    catch
        error:not_loaded ->
            load_library(),
            nif_counts()
    end.

%% @doc The directory that holds `fairdrv.h', for the compiler's `-I'.
-spec include_dir() -> file:filename().
include_dir() ->
    fairnif_load:header_dir(?MODULE, "fairdrv.h").

%% -- calls ---------------------------------------------------------------------

%% A call is made as any other, after the caller has said in C that it waits; what
%% the driver puts off is then answered by a message.
request(Name, Call, Args) when is_atom(Name) ->
    case whereis(Name) of
        Port when is_port(Port) -> request(Port, Call, Args);
        _ -> error(badarg, Args)
    end;
request(Port, Call, Args) ->
    case known(Port) of
        true -> await(Port, Call, Args);
        false -> directly(Port, Call, Args)
    end.

%% While no library is loaded there is no port that defers anything; but this may be a new copy
%% of the module.
known(Port) ->
    try
        nif_known(Port)
    catch
        error:not_loaded ->
            persistent_term:get({?MODULE, loaded}, false) andalso
                begin
                    load_library(),
                    nif_known(Port)
                end
    end.

%% The monitor's reference is made, and waited for, in one function: then the
%% receive looks only at messages that came later.  In each branch Request is used
%% after the wait: a request that the garbage collector finds is a caller that died.
await(Port, Call, Args) ->
    Ref = erlang:monitor(port, Port),
    Request = nif_request(Port, Ref),
    Now = try
              directly(Port, Call, Args)
          catch
              error:badarg -> badarg
          end,
    case Request =/= none andalso nif_deferred(Request) of
        true ->
            receive
                {Ref, Answer} ->
                    true = erlang:demonitor(Ref, [flush]),
                    _ = nif_abandon(Request),
                    answer(Answer, Args);
                {'DOWN', Ref, port, _, _} ->
                    answer(late(Ref, Request), Args)
            end;
        false ->
            true = erlang:demonitor(Ref, [flush]),
            _ = Request =/= none andalso nif_abandon(Request),
            case Now of
                badarg -> error(badarg, Args);
                _ -> Now
            end
    end.

directly(Port, Call, Args) ->
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
    case nif_abandon(Request) of
        sending ->
            receive {Ref, Answer} -> _ = nif_abandon(Request), Answer
            after 1 -> late(Ref, Request)
            end;
        _ ->
            receive {Ref, Answer} -> Answer
            after 0 -> error
            end
    end.

%% -- the library ----------------------------------------------------------------

%% Two processes may come here at once: the second finds it loaded.  On a copy of this module
%% that is being replaced load_nif refuses (old_code); the caller then continues in the new one.
load_library() ->
    case erlang:load_nif(fairnif:path(?MODULE), fairnif:load_info()) of
        ok -> ok;
        {error, {Reason, _}} when Reason =:= reload; Reason =:= old_code -> ok;
        {error, Reason} -> error({?MODULE, Reason})
    end,
    persistent_term:put({?MODULE, loaded}, true).

%% A stub may not load the library and continue: loading writes over its code.
nif_hand_over(_Path) -> erlang:nif_error(not_loaded).
nif_known(_Port) -> erlang:nif_error(not_loaded).
nif_request(_Port, _Ref) -> erlang:nif_error(not_loaded).
nif_deferred(_Request) -> erlang:nif_error(not_loaded).
nif_abandon(_Request) -> erlang:nif_error(not_loaded).
nif_counts() -> erlang:nif_error(not_loaded).
