%% Takes the place of epmd (`-epmd_module echo_epmd'): nodes are looked up in a table of this node,
%% and nobody is told of this one. So an experiment starts no epmd, and leaves none.
%%
%% The functions are those that net_kernel calls.
-module(echo_epmd).

-export([tell/2, forget/1, own_port/0]).
-export([start_link/0, register_node/2, register_node/3, port_please/2, port_please/3,
         address_please/3, listen_port_please/2, names/1]).

%% The version of the distribution protocol that every node since OTP 23 speaks.
-define(VERSION, 6).

%% @doc Where the node with this name before the `@' listens on the loopback interface.
-spec tell(string(), inet:port_number()) -> ok.
tell(Name, Port) ->
    persistent_term:put({?MODULE, Name}, Port).

%% @doc Takes that back.
-spec forget(string()) -> ok.
forget(Name) ->
    _ = persistent_term:erase({?MODULE, Name}),
    ok.

%% @doc Where this node listens; error `badarg' when it does not.
-spec own_port() -> inet:port_number().
own_port() ->
    persistent_term:get({?MODULE, own}).

%% @private
-spec start_link() -> ignore.
start_link() ->
    ignore.

%% @private
-spec register_node(string() | atom(), inet:port_number()) -> {ok, 1..3}.
register_node(Name, Port) ->
    register_node(Name, Port, inet).

%% @private Nobody is told; this node itself may ask.
-spec register_node(string() | atom(), inet:port_number(), atom()) -> {ok, 1..3}.
register_node(_Name, Port, _Family) ->
    persistent_term:put({?MODULE, own}, Port),
    {ok, 1}.

%% @private
-spec port_please(string() | atom(), term()) -> {port, inet:port_number(), 5..6} | noport.
port_please(Name, _Host) ->
    case persistent_term:get({?MODULE, unicode:characters_to_list(text(Name))}, none) of
        none -> noport;
        Port -> {port, Port, ?VERSION}
    end.

%% @private
-spec port_please(string() | atom(), term(), timeout()) ->
          {port, inet:port_number(), 5..6} | noport.
port_please(Name, Host, _Timeout) ->
    port_please(Name, Host).

%% @private
-spec address_please(string() | atom(), term(), atom()) ->
          {ok, inet:ip_address(), inet:port_number(), 5..6} | {error, noport}.
address_please(Name, Host, _Family) ->
    case port_please(Name, Host) of
        {port, Port, Version} -> {ok, {127, 0, 0, 1}, Port, Version};
        noport -> {error, noport}
    end.

%% @private Any.
-spec listen_port_please(term(), term()) -> {ok, 0}.
listen_port_please(_Name, _Host) ->
    {ok, 0}.

%% @private
-spec names(term()) -> {error, address}.
names(_Host) ->
    {error, address}.

text(Name) when is_atom(Name) -> atom_to_list(Name);
text(Name) -> Name.
