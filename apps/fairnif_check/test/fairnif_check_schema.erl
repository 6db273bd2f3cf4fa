%% For tests: does this value, as fairnif_check_json writes it, keep to the schema? Asks Python,
%% whose jsonschema shares no code with the writer.
-module(fairnif_check_schema).

-export([validate/2, root/0]).

%% The name of a schema in the checker's priv, without its end. A machine without Python's
%% jsonschema fails the test: tools/setup installs it.
-spec validate(string(), fairnif_check_json:value()) -> ok | {invalid, string()}.
validate(Schema, Value) ->
    fairnif_check_stand_in:in_folder(fun(Dir) ->
        File = filename:join(Dir, "report.json"),
        ok = file:write_file(File, fairnif_check_json:encode(Value)),
        Checker = filename:join([root(), "apps", "fairnif_check"]),
        case run([filename:join([Checker, "test", "fairnif_check_validate.py"]),
                  filename:join([Checker, "priv", Schema ++ ".schema.json"]), File]) of
            {0, _} -> ok;
            {1, Output} -> {invalid, Output};
            {Status, Output} -> error({cannot_validate, Status, Output})
        end
    end).

%% The top folder of the repository: the first above this module's that has docs/reference.
-spec root() -> file:filename().
root() ->
    root(filename:absname(filename:dirname(code:which(?MODULE)))).

root("/") -> error({not_found, "docs/reference above " ++ filename:dirname(code:which(?MODULE))});
root(Folder) ->
    case filelib:is_dir(filename:join([Folder, "docs", "reference"])) of
        true -> Folder;
        false -> root(filename:dirname(Folder))
    end.

run(Args) ->
    %% Debian's own first: a Python of the user's need not have Debian's modules.
    case [P || P <- ["/usr/bin/python3" | found("python3")], filelib:is_regular(P)] of
        [] -> error({missing, "python3, which validates reports: tools/setup test"});
        [Python | _] ->
            Port = open_port({spawn_executable, Python},
                             [{args, [unicode:characters_to_list(A) || A <- Args]},
                              exit_status, stderr_to_stdout, binary]),
            collect(Port, [])
    end.

found(Name) ->
    case os:find_executable(Name) of
        false -> [];
        Path -> [Path]
    end.

collect(Port, Output) ->
    receive
        {Port, {data, Data}} -> collect(Port, [Output, Data]);
        {Port, {exit_status, Status}} -> {Status, unicode:characters_to_list(Output)}
    end.
