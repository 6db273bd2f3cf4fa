%% What the watch runs on schedulers on purpose: jobs that do nothing but say when a dirty scheduler
%% got to them, and a call that blocks a scheduler, for the self-test alone.
%%
%% There is no -on_load: the module may come to a node as bare code, with the library elsewhere.
-module(fairnif_watch_probe).

-export([load/1, block/1, dirty_cpu/0, dirty_io/0]).

-nifs([block/1, dirty_cpu/0, dirty_io/0]).

%% @doc Loads the library, as the settings say. Loaded already is as good. May wait for blocked
%% schedulers.
-spec load(fairnif_watch_config:config()) -> ok | {error, term()}.
load(#{native := Native}) when Native =/= true ->
    {error, off};
load(#{probe_library := Setting}) ->
    case fairnif_watch_library:path(Setting, ?MODULE) of
        {ok, Path} -> load_from(Path);
        {error, _} = Error -> Error
    end.

load_from(Path) ->
    try erlang:load_nif(Path, 0) of
        ok -> ok;
        {error, {reload, _}} -> ok;
        {error, _} = Error -> Error
    catch error:Reason -> {error, Reason}
    end.

%% @doc Blocks the calling scheduler for that many milliseconds, 10,000 at most; answers how many ns
%% it was.
-spec block(Ms :: non_neg_integer()) -> pos_integer().
block(_Ms) -> erlang:nif_error(not_loaded).

%% @doc When a dirty CPU scheduler got to it, `erlang:monotonic_time(nanosecond)'.
-spec dirty_cpu() -> integer().
dirty_cpu() -> erlang:nif_error(not_loaded).

%% @doc When a dirty I/O scheduler got to it.
-spec dirty_io() -> integer().
dirty_io() -> erlang:nif_error(not_loaded).
