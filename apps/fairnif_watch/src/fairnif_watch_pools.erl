%% What is done about the dirty pools while one is full: how long jobs wait there is measured, and who
%% occupies it is sought. Part of the collector: never waits.
-module(fairnif_watch_pools).

-export([new/1, sample/3, add/2, told/2, looked/2, down/5, stop/1]).

-export_type([pools/0]).

-opaque pools() :: map().

%% @doc Nothing is known.
-spec new(map()) -> pools().
new(_Config) -> #{}.

%% @doc After each second.
-spec sample(map(), map(), pools()) -> pools().
sample(_Sample, _Config, Pools) -> Pools.

%% @doc The sample with what is known of the pools.
-spec add(map(), pools()) -> map().
add(Sample, _Pools) -> Sample#{waits => #{}, dirty => #{}}.

%% @doc A message of one of the processes started here.
-spec told(term(), pools()) -> pools().
told(_, Pools) -> Pools.

%% @doc The stack of a thread that was asked for.
-spec looked(map(), pools()) -> pools().
looked(_, Pools) -> Pools.

%% @doc A process that is monitored here has ended.
-spec down(reference(), pid(), term(), integer(), pools()) -> pools().
down(_, _, _, _, Pools) -> Pools.

%% @doc Ends what was started.
-spec stop(pools()) -> ok.
stop(_) -> ok.
