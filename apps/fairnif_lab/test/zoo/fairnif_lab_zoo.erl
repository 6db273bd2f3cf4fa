%% Builds the libraries of the zoo, where its modules look for them.
%%
%% A module of its own: fairnif_zoo cannot be loaded before its library is there.
-module(fairnif_lab_zoo).

-export([build/0, paths/0]).

%% @doc Makes the libraries; takes no time when they are there.
build() ->
    Command = lists:flatten(
                io_lib:format("make -s -C '~ts' OUT='~ts' FAIRNIF_INCLUDE_DIR='~ts' "
                              "ERTS_INCLUDE_DIR='~ts/usr/include' 2>&1 && echo built",
                              [source_dir(), filename:join(dir(), "nifs"),
                               filename:absname(fairnif:include_dir()), code:root_dir()])),
    Output = os:cmd(Command),
    case string:find(Output, "built", trailing) of
        "built" ++ _ -> ok;
        _ -> error({make, Command, Output})
    end.

%% @doc What the code path of a node needs to call the zoo.
paths() ->
    [dir(), filename:absname(filename:dirname(code:which(fairnif)))].

dir() ->
    filename:absname(filename:dirname(code:which(?MODULE))).

%% rebar3 compiles a test from here or from a copy.
source_dir() ->
    Source = proplists:get_value(source, ?MODULE:module_info(compile)),
    Candidates = [filename:dirname(Source),
                  filename:join(fairnif:include_dir(), "../../fairnif_lab/test/zoo")],
    [Dir | _] = [Dir || Dir <- Candidates, filelib:is_file(filename:join(Dir, "zoo.h"))],
    Dir.
