%% @private
%% Loading: where libraries and headers are, the runtime, and when a library may be called.
-module(fairnif_load).

-export([path/2, loaded/1, header_dir/2, set_up/0]).

-spec path(module(), file:name_all()) -> file:filename().
path(Module, Name) ->
    %% The code path first: during an upgrade code:which/1 still names the file of
    %% the version that is being replaced.
    Ebin = case code:where_is_file(atom_to_list(Module) ++ ".beam") of
               non_existing ->
                   case code:which(Module) of
                       File when is_list(File), File =/= [] -> filename:dirname(File);
                       _ -> "ebin"
                   end;
               File ->
                   filename:dirname(File)
           end,
    filename:join([filename:dirname(Ebin), "priv", Name]).

-spec loaded(Result) -> Result when Result :: ok | {error, term()}.
loaded(ok) ->
    %% The VM ends that state in two steps, each after thread progress and with the permission
    %% to change code.
    _ = [step() || _ <- [first, second]],
    %% As Erlang code that is two versions old: a native process that has not followed is killed.
    _ = [exit(Pid, kill) || Pid <- fairnif:nif_outlived()],
    ok;
loaded(Error) ->
    Error.

%% Who sets a breakpoint, here on a function that is not there, holds that permission during
%% some thread progresses.  So a step that was due is done by then, or is what some scheduler
%% does next; and each scheduler answers statistics/1.
step() ->
    0 = erlang:trace_pattern({?MODULE, no_such_function, 0}, false, [local]),
    erlang:statistics(io).

%% The folder of a header of the application that Module belongs to.
-spec header_dir(module(), file:filename()) -> file:filename().
header_dir(Module, Header) ->
    %% Not lib_dir/c_include: in rebar3's umbrella and checkout builds that
    %% directory has links to some folders only, and priv is one of them.
    Candidates = [filename:join([lib_dir(Module), "c_include"]),
                  filename:join([lib_dir(Module), "priv", "..", "c_include"]),
                  filename:join([source_dir(Module), "..", "c_include"])],
    case [Dir || Dir <- Candidates, filelib:is_file(filename:join(Dir, Header))] of
        [Dir | _] -> Dir;
        [] -> error({fairnif, {no_header_in, Candidates}})
    end.

lib_dir(Module) ->
    case code:which(Module) of
        File when is_list(File), File =/= [] ->
            filename:dirname(filename:dirname(File));
        _ ->
            filename:join(source_dir(Module), "..")
    end.

source_dir(Module) ->
    filename:dirname(proplists:get_value(source, Module:module_info(compile), "src/x")).

%% A runtime that is loaded and set up.  The caller may be killed after each step, and others
%% may be at the same one: so each looks for what there is to do, and may be done twice.  The
%% object is put last: who finds it finds the environment read.  Nothing here waits.
-spec set_up() -> reference().
set_up() ->
    Runtime = runtime(),
    case persistent_term:get({fairnif, runtime}, none) of
        none ->
            fairnif_settings:configure_or_log(),
            persistent_term:put({fairnif, runtime}, Runtime);
        _ ->
            ok
    end,
    ok = fairnif_settings:start_measuring(),
    Runtime.

%% Two processes may come here at once: the second finds it loaded.
runtime() ->
    try
        fairnif:nif_runtime()
    catch
        error:not_loaded ->
            _ = load_runtime(),
            fairnif:nif_runtime()
    end.

load_runtime() ->
    %% The object of an earlier load leads to the runtime that authors' libraries
    %% are bound to, also when module fairnif was purged in between.
    Earlier = persistent_term:get({fairnif, runtime}, none),
    Library = filename:join([lib_dir(fairnif), "priv", "fairnif"]),
    case fairnif:nif_load(Library, Earlier) of
        ok -> ok;
        {error, {reload, _}} -> ok;
        %% The module is being replaced: its new copy is to load it.
        {error, {old_code, _}} -> runtime();
        {error, Reason} -> error({fairnif, Reason})
    end.
