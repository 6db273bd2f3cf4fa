%% @doc Conway's Game of Life on a torus: a native process owns the grid, and evolves it when it is
%% asked to. Its body is c_src/game_of_life.c.
-module(game_of_life).

-export([start_link/2, evolve/2, cells/1, nif_world/2]).

-include_lib("fairnif/include/fairnif.hrl").
-on_load(init/0).

init() -> ?FAIRNIF_LOAD.

%% @doc A world of Width columns; a byte for each cell, 0 or 1, row by row; up to 2^20.
start_link(Width, Cells) ->
    fairnif_process:start_link(fun ?MODULE:nif_world/2, [Width, Cells], []).

%% @doc Generations generations further.
evolve(World, Generations) -> gen_server:call(World, {evolve, Generations}, infinity).
cells(World) -> gen_server:call(World, cells, infinity).

nif_world(_Width, _Cells) -> erlang:nif_error(not_loaded).
