%% For tests: does this value, as fairnif_lab_json writes it, keep to the schema? Asks Python, whose
%% jsonschema shares no code with the writer.
-module(fairnif_lab_schema).

-export([validate/2, root/0]).

%% The name of a schema in docs/schema, without its end. A machine without Python's jsonschema fails
%% the test: tools/setup installs it.
-spec validate(string(), fairnif_lab_json:value()) -> ok | {invalid, string()}.
validate(Schema, Value) ->
    File = filename:join(os:getenv("TMPDIR", "/tmp"),
                         io_lib:format("fairnif-report-~s-~b.json",
                                       [os:getpid(), erlang:unique_integer([positive])])),
    ok = file:write_file(File, fairnif_lab_json:encode(Value)),
    try
        run([filename:join([root(), "apps", "fairnif_lab", "test", "fairnif_lab_validate.py"]),
             filename:join([root(), "docs", "schema", Schema ++ ".schema.json"]),
             File])
    of
        {0, _} -> ok;
        {1, Output} -> {invalid, Output};
        {Status, Output} -> error({cannot_validate, Status, Output})
    after
        file:delete(File)
    end.

%% The top folder of the repository: the first above this module's that has the schemas.
-spec root() -> file:filename().
root() ->
    root(filename:absname(filename:dirname(code:which(?MODULE)))).

root("/") -> error({not_found, "docs/schema above " ++ filename:dirname(code:which(?MODULE))});
root(Folder) ->
    case filelib:is_dir(filename:join([Folder, "docs", "schema"])) of
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
