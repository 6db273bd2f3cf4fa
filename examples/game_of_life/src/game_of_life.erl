%% @doc Conway's Game of Life on a torus: a native process owns the grid, and evolves it when it is
%% asked to. Its body is c_src/game_of_life.c.
-module(game_of_life).

-export([start_link/2, start_link/3, set/2, evolve/2, population/1, generation/1, cells/1,
         picture/1]).
-export([nif_world/2]).

-on_load(init/0).

-type world() :: gen_server:server_ref().

init() ->
    fairnif:loaded(erlang:load_nif(fairnif:path(?MODULE), fairnif:load_info())).

%% @doc An empty world of Width times Height cells, 1 to 65536 each; two bytes for each cell.
-spec start_link(pos_integer(), pos_integer()) -> {ok, pid()} | {error, term()}.
start_link(Width, Height) ->
    start_link(Width, Height, []).

%% @doc With options of fairnif_process, such as a name.
-spec start_link(pos_integer(), pos_integer(), fairnif_process:options()) ->
          {ok, pid()} | {error, term()}.
start_link(Width, Height, Options) ->
    fairnif_process:start_link(fun ?MODULE:nif_world/2, [Width, Height], Options).

%% @doc Brings cells to life, `{X, Y}' each: what lies beyond an edge comes in at the other.
-spec set(world(), [{integer(), integer()}]) -> ok | {error, badarg}.
set(World, Cells) -> call(World, {set, Cells}).

%% @doc So many generations further; answers which one that is.
-spec evolve(world(), non_neg_integer()) -> non_neg_integer().
evolve(World, Generations) -> call(World, {evolve, Generations}).

%% @doc How many cells are alive.
-spec population(world()) -> non_neg_integer().
population(World) -> call(World, population).

-spec generation(world()) -> non_neg_integer().
generation(World) -> call(World, generation).

%% @doc A byte for each cell, 0 or 1, row by row.
-spec cells(world()) -> binary().
cells(World) -> call(World, cells).

%% @doc For the eye, where the world has so many columns: `io:put_chars(picture(World))'.
-spec picture({world(), Width :: pos_integer()}) -> iolist().
picture({World, Width}) ->
    [[[case C of 1 -> $#; 0 -> $. end || <<C>> <= Row], $\n]
     || <<Row:Width/binary>> <= cells(World)].

call(World, Request) -> gen_server:call(World, Request, infinity).

%% @private
-spec nif_world(pos_integer(), pos_integer()) -> fairnif:pending().
nif_world(_Width, _Height) -> erlang:nif_error(not_loaded).
