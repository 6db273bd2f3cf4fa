%% What is too old is refused where it is built, with a sentence.
-module(fairnif_build_tests).

-include_lib("eunit/include/eunit.hrl").

an_older_erlang_does_not_build_the_runtime_test() ->
    in_folder(fun(Dir) ->
        Erl = filename:join(Dir, "erl"),
        ok = file:write_file(Erl, "#!/bin/sh\nprintf '24 /nowhere'\n"),
        ok = file:change_mode(Erl, 8#755),
        {Code, Said} = run(["PATH=", Dir, ":$PATH; unset ERTS_INCLUDE_DIR MAKEFLAGS; make -C ",
                            filename:join(app(), "c_src")]),
        ?assertNotEqual({0, Said}, {Code, Said}),
        ?assertNotEqual({nomatch, Said},
                        {string:find(Said, "needs Erlang/OTP 25 or newer: this is 24"), Said})
    end).

older_headers_do_not_compile_test() ->
    in_folder(fun(Dir) ->
        ok = file:write_file(filename:join(Dir, "erl_nif.h"),
                             "#define ERL_NIF_MAJOR_VERSION 2\n#define ERL_NIF_MINOR_VERSION 15\n"),
        {Code, Said} = run(["echo '#include <fairnif.h>' | ${CC:-cc} -fsyntax-only -I ", Dir,
                            " -I ", filename:join(app(), "c_include"), " -x c -"]),
        ?assertNotEqual({0, Said}, {Code, Said}),
        ?assertNotEqual({nomatch, Said},
                        {string:find(Said, "needs the erl_nif.h of Erlang/OTP 25 or newer"), Said})
    end).

app() ->
    filename:dirname(fairnif_test:source_dir()).

in_folder(Fun) ->
    Dir = lists:concat(["/tmp/fairnif-build-", os:getpid(), "-",
                        erlang:unique_integer([positive])]),
    ok = file:make_dir(Dir),
    try Fun(Dir) after file:del_dir_r(Dir) end.

run(Command) ->
    Port = open_port({spawn_executable, "/bin/sh"},
                     [{args, ["-c", lists:flatten(Command)]}, exit_status, stderr_to_stdout]),
    collect(Port, []).

collect(Port, Said) ->
    receive
        {Port, {data, Data}} -> collect(Port, [Said, Data]);
        {Port, {exit_status, Code}} -> {Code, lists:flatten(Said)}
    end.
