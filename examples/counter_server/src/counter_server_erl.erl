%% @doc counter_server in Erlang.
-module(counter_server_erl).
-behaviour(gen_server).

-export([start_link/1, start_link/2, init/1, handle_call/3, handle_cast/2, handle_info/2]).

start_link(First) -> start_link(First, []).

%% @doc With a name first, and gen_server's options.
start_link(First, [{name, Name} | Options]) ->
    gen_server:start_link(Name, ?MODULE, First, Options);
start_link(First, Options) ->
    gen_server:start_link(?MODULE, First, Options).

init(First) when is_integer(First) -> {ok, {First, []}};
init(_) -> error(badarg).

handle_call(value, _From, {Value, _} = State) ->
    {reply, Value, State};
handle_call({add, Number}, _From, State) ->
    {Value, _} = New = add(Number, State),
    {reply, Value, New};
handle_call({wait_for, Least}, _From, {Value, _} = State) when Least =< Value ->
    {reply, Value, State};
handle_call({wait_for, Least}, From, {Value, Waiting}) ->
    {noreply, {Value, [{Least, From} | Waiting]}};
handle_call(stop, _From, State) ->
    {stop, normal, ok, State};
handle_call(_, _From, State) ->
    {reply, {error, unknown}, State}.

handle_cast({add, Number}, State) -> {noreply, add(Number, State)};
handle_cast(_, State) -> {noreply, State}.
handle_info(_, State) -> {noreply, State}.

add(Number, {Value, Waiting}) ->
    New = Value + Number,
    {Due, Rest} = lists:partition(fun({Least, _}) -> Least =< New end, Waiting),
    [gen_server:reply(From, New) || {_, From} <- lists:reverse(Due)],
    {New, Rest}.
