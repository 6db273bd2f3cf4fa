%% An echo by a linked-in driver: c_src/echo_driver.c.
-module(echo_driver).

-export([open/0, control/2, call/2, outputv/2, close/1]).

-define(LIMIT_MS, 5000).

%% @doc Loads the driver and opens a port, whose owner is the caller.
-spec open() -> port().
open() ->
    case erl_ddll:load_driver(code:priv_dir(echo), ?MODULE_STRING) of
        ok -> open_port({spawn_driver, ?MODULE_STRING}, [binary]);
        {error, Reason} -> error({driver, lists:flatten(erl_ddll:format_error(Reason))})
    end.

%% @doc The bytes as erlang:port_control/3 gives them back: copied once.
-spec control(port(), binary()) -> binary().
control(Port, Bin) ->
    erlang:port_control(Port, 0, Bin).

%% @doc The same through erlang:port_call/3, which makes the external format of them and decodes
%% it again.
-spec call(port(), binary()) -> binary().
call(Port, Bin) ->
    erlang:port_call(Port, 0, Bin).

%% @doc The same through erlang:port_command/2 and a message; error `timeout' after 5 s. For the
%% owner only.
-spec outputv(port(), binary()) -> binary().
outputv(Port, Bin) ->
    true = port_command(Port, Bin),
    receive
        {Port, {data, []}} -> <<>>;     % nothing is a list, also from a binary port
        {Port, {data, Answer}} -> Answer
    after ?LIMIT_MS ->
            error(timeout)
    end.

%% @doc Closes the port, and unloads the driver when no other one is open.
-spec close(port()) -> ok.
close(Port) ->
    true = port_close(Port),
    _ = erl_ddll:unload_driver(?MODULE_STRING),
    ok.
