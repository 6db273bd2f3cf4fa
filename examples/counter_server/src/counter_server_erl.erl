%% @doc counter_server in Erlang.
-module(counter_server_erl).
-behaviour(gen_server).

-export([start_link/1, start_link/2]).
-export([init/1, handle_call/3, handle_cast/2, handle_info/2]).

-spec start_link(integer()) -> {ok, pid()} | {error, term()}.
start_link(First) ->
    start_link(First, []).

%% @doc With a name, and gen_server's options.
-spec start_link(integer(), [tuple()]) -> {ok, pid()} | {error, term()}.
start_link(First, Options) ->
    case lists:keytake(name, 1, Options) of
        {value, {name, Name}, Rest} -> gen_server:start_link(Name, ?MODULE, First, Rest);
        false -> gen_server:start_link(?MODULE, First, Options)
    end.

%% @private
init(First) when is_integer(First) -> {ok, First};
init(_) -> error(badarg).

%% @private
handle_call(value, _From, State) ->
    {reply, value_of(State), State};
handle_call({add, Number}, _From, State) ->
    New = add(Number, State),
    {reply, value_of(New), New};
handle_call({wait_for, Least}, From, State) ->
    case value_of(State) of
        Value when Least =< Value -> {reply, Value, State};
        Value -> {noreply, {Value, [{Least, From} | waiting(State)]}}
    end;
handle_call(stop, _From, State) ->
    {stop, normal, ok, State};
handle_call(_, _From, State) ->
    {reply, {error, unknown}, State}.

%% @private
handle_cast({add, Number}, State) -> {noreply, add(Number, State)};
handle_cast(_, State) -> {noreply, State}.

%% @private
handle_info(_, State) -> {noreply, State}.

%% The state is Value, or {Value, [{Least, From}]} while some wait.
value_of({Value, _}) -> Value;
value_of(Value) -> Value.

waiting({_, Waiting}) -> Waiting;
waiting(_) -> [].

add(Number, State) ->
    Value = value_of(State) + Number,
    {Due, Rest} = lists:partition(fun({Least, _}) -> Least =< Value end, waiting(State)),
    [gen_server:reply(From, Value) || {_, From} <- lists:reverse(Due)],
    case Rest of
        [] -> Value;
        _ -> {Value, Rest}
    end.
