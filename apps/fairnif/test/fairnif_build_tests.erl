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

mistakes_do_not_compile_test_() ->
    [{Title, fun() ->
         {Code, Said} = run(["printf '%s' '", library(Body), "' | ${CC:-cc} -O2 -c -o /dev/null ",
                             Flags, " -I ", filename:join(app(), "c_include"), " -I ",
                             filename:join([code:root_dir(), "usr", "include"]), " -x c -"]),
         case Why of
             none -> ?assertEqual({0, ""}, {Code, Said});
             _ -> ?assertMatch({1, Found} when is_list(Found), {Code, string:find(Said, Why)})
         end
     end}
     || {Title, Body, Flags, Why} <-
            [{"no mistake", "fair_get_bytes(t, fair_arg(t, 0), &bin)", "", none},
             {"a number for a term", "fair_get_bytes(t, 0, &bin)", "",
              "a number where a term belongs: fair_arg(t, 0), not 0"},
             {"more functions than FAIR_MAX_NIFS", "fair_get_bytes(t, fair_arg(t, 0), &bin)",
              "-DFAIR_MAX_NIFS=1", "define it before fairnif.h is included"},
             {"FAIR_MAX_NIFS too large", "fair_get_bytes(t, fair_arg(t, 0), &bin)",
              "-DFAIR_MAX_NIFS=5000", "FAIR_MAX_NIFS can be up to 4096"},
             {"bytes that other terms share, to be written", "(bin.data[0] = 1)", "", "read-only"},
             {"functions of the VM that are replaced", replaced(), "", "enif_send is replaced"},
             {"functions of the VM that are not", replaced(), "-DFAIR_NO_ENIF_MACROS", none}]].

replaced() ->
    "\n#ifdef enif_send\n#error enif_send is replaced\n#endif\n"
        "fair_get_bytes(t, fair_arg(t, 0), &bin)".

library(Got) ->
    ["#include <fairnif.h>\n"
     "static ERL_NIF_TERM f(fair_task *t)\n"
     "{\n"
     "    fair_bytes bin;\n"
     "    return ", Got, " ? fair_make_bytes(t, &bin) : fair_badarg(t);\n"
     "}\n"
     "static ErlNifFunc nifs[] = {FAIR_NIF(\"f\", 1, f, FAIR_AUTO), {\"g\", 0, NULL, 0}};\n"
     "FAIR_NIF_INIT(library, nifs, NULL, NULL, NULL)\n"].

mistakes_in_cpp_do_not_compile_test_() ->
    cpp([{Title, [Body, "\nstatic ErlNifFunc nifs[] = {FAIR_FN(\"f\", f, FAIR_AUTO)};\n"
                  "FAIR_NIF_INIT(library, nifs, fair::load<>, fair::upgrade<>, NULL)\n"],
          Why}
         || {Title, Body, Why} <-
                [{"no mistake", "static int f(fair::task &t, std::vector<int> v) { t.tick(1); "
                                "return v.empty(); }", none},
                 {"a body that may not throw", "static int f(fair::task &) noexcept { return 1; }",
                  "a function of (fair::task &, ...) that may throw"},
                 {"no task", "static int f(int n) { return n; }",
                  "a function of (fair::task &, ...) that may throw"},
                 {"terms in what is read in slices",
                  "static int f(fair::task &, std::vector<fair::term>) { return 1; }",
                  "a pause would spoil the terms"},
                 {"a number for a term",
                  "static fair::term f(fair::task &) { return 7; }", "fair::term"},
                 {"a term for a number",
                  "static int f(fair::task &, fair::term any) { return any + 1; }", "operator+"},
                 {"a field of the task", "static int f(fair::task &t) { return t.env != NULL; }",
                  "inaccessible"},
                 {"a type without a codec", "struct point { int x; };\n"
                  "static int f(fair::task &, point) { return 1; }", "codec<point"}]]).

cpp(Cases) ->
    case run("${CXX:-c++} --version") of
        {0, _} ->
            [{Title, {timeout, 60, fun() -> compiles(Sample, Why) end}}
             || {Title, Sample, Why} <- Cases];
        _ ->
            ?debugMsg("skipped: there is no C++ compiler"),
            []
    end.

compiles(Sample, Why) ->
    in_folder(fun(Dir) ->
        File = filename:join(Dir, "sample.cpp"),
        ok = file:write_file(File, ["#include <fairnif.hpp>\n", Sample]),
        {Code, Said} = run(["${CXX:-c++} -std=c++17 -Wall -Wno-unused-function -Werror "
                            "-fsyntax-only -I ", filename:join(app(), "c_include"), " -I ",
                            filename:join([code:root_dir(), "usr", "include"]), " ", File]),
        case Why of
            none -> ?assertEqual({0, ""}, {Code, Said});
            _ -> ?assertMatch({1, Found} when is_list(Found), {Code, string:find(Said, Why)})
        end
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
