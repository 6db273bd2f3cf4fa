%% GET /metrics: for Prometheus. GET /order/MB: encrypts MB megabytes in one call, which blocks its
%% scheduler. GET /key: makes an RSA key, on a dirty scheduler. It listens on SHOP_ADDRESS, or on
%% all addresses, and on SHOP_PORT, or 8080.
-module(shop).

-behaviour(application).
-behaviour(supervisor).

-export([start/2, stop/1, init/1, init/2]).

start(_, _) ->
    {ok, Address} = inet:parse_address(os:getenv("SHOP_ADDRESS", "0.0.0.0")),
    Port = list_to_integer(os:getenv("SHOP_PORT", "8080")),
    Routes = [{"/metrics", ?MODULE, metrics}, {"/order/:mb", [{mb, int}], ?MODULE, order},
              {"/key", ?MODULE, key}],
    {ok, _} = cowboy:start_clear(?MODULE, [{ip, Address}, {port, Port}],
                                 #{env => #{dispatch => cowboy_router:compile([{'_', Routes}])}}),
    supervisor:start_link(?MODULE, []).

stop(_) ->
    cowboy:stop_listener(?MODULE).

%% Ranch supervises the connections.
init([]) ->
    {ok, {#{}, []}}.

init(Request, metrics) ->
    Type = #{<<"content-type">> => <<"text/plain; version=0.0.4; charset=utf-8">>},
    {ok, cowboy_req:reply(200, Type, fairnif_watch:metrics(), Request), metrics};
init(Request, order) ->
    Order = binary:copy(<<0>>, cowboy_req:binding(mb, Request) * 1000000),
    {_, Tag} = crypto:crypto_one_time_aead(aes_256_gcm, <<0:256>>, <<0:96>>, Order, <<>>, true),
    {ok, cowboy_req:reply(200, #{}, binary:encode_hex(Tag), Request), order};
init(Request, key) ->
    {[_, Modulus], _} = crypto:generate_key(rsa, {4096, 65537}),
    {ok, cowboy_req:reply(200, #{}, binary:encode_hex(Modulus), Request), key}.
