%% A plain NIF in Rust (rust/) that blocks a scheduler for as many rounds as asked.
-module(fairnif_watch_block_rust).

-export([load/1, spin/1]).

%% @doc From that library; it comes stripped and not.
load(Library) -> erlang:load_nif(Library, 0).

spin(Rounds) -> erlang:nif_error({not_loaded, Rounds}).
