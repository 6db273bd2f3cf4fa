%% `rebar3 fairnif lab': rebar3 wants a module for each command.
-module(rebar3_fairnif_lab).

-export([do/1, format_error/1]).

%% @doc Called by rebar3.
-spec do(State) -> {ok, State} | {error, {module(), term()}} when State :: term().
do(State) ->
    rebar3_fairnif:run(lab, State).

%% @doc Called by rebar3 with an error of {@link do/1}.
-spec format_error(term()) -> iolist().
format_error(Reason) ->
    rebar3_fairnif:format_error(Reason).
