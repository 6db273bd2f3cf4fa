%% An echo by an operating system's thread of its own for each call, created and joined for it:
%% c_src/echo_thread.c.
-module(echo_thread).

-export([echo/1]).
-nifs([start/2, join/1]).

-on_load(init/0).

-define(LIMIT_MS, 5000).

init() ->
    erlang:load_nif(fairnif:path(?MODULE), 0).

%% @doc The binary, from a message of the thread. Errors: `badarg' for what is no binary;
%% `no_thread' where the system refuses one; `timeout' after 5 s.
-spec echo(binary()) -> binary().
echo(Bin) ->
    Ref = make_ref(),
    Call = start(Ref, Bin),
    receive
        {Ref, Answer} ->
            ok = join(Call),
            Answer
    after ?LIMIT_MS ->
            error(timeout)
    end.

start(_Ref, _Bin) -> erlang:nif_error(not_loaded).

join(_Call) -> erlang:nif_error(not_loaded).
