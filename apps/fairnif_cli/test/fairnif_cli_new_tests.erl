%% What `fairnif new' writes and refuses. That what it writes builds and passes is tested from a
%% clean clone: tools/install_test.
-module(fairnif_cli_new_tests).

-include_lib("eunit/include/eunit.hrl").

an_application_may_be_called_this_test_() ->
    [{Name, ?_assertEqual(ok, fairnif_cli_new:valid(Name, Kind))}
     || Kind <- [rebar3, elixir],
        Name <- ["beans", "b", "two_words", "x86", "a_"]].

an_application_may_not_be_called_that_test_() ->
    [{Name, ?_assertMatch({error, _}, fairnif_cli_new:valid(Name, Kind))}
     || Kind <- [rebar3, elixir],
        Name <- ["", "Beans", "1st", "_x", "with-dash", "a/b", "..", "beans\n", "bohnen\x{e4}",
                 "receive", "maybe", "lists", "crypto", "ssl", "fairnif", "fairnif_check",
                 lists:duplicate(101, $a)]].

%% Elixir's own, where Elixir is.
a_mix_project_may_not_be_called_as_a_module_of_elixir_test_() ->
    Expected = case os:find_executable("elixir") of
                   false -> ok;
                   _ -> {error, "Elixir has a module of that name"}
               end,
    [{Name, [?_assertEqual(Expected, fairnif_cli_new:valid(Name, elixir)),
             ?_assertEqual(ok, fairnif_cli_new:valid(Name, rebar3))]}
     || Name <- ["enum", "mix"]].

a_project_is_written_with_its_name_everywhere_test_() ->
    [in_a_project(
       Flags,
       fun() ->
               Files = written("two_beans"),
               ?assertEqual([], Named -- Files),
               [?assertEqual({File, nomatch}, {File, binary:match(read(File), Left)})
                || File <- Files, Left <- [<<"my_nif">>, <<"MyNif">>
                                           | [<<"{{", C>> || C <- "abcflmnprsv"]]]
       end)
     || {Flags, Named} <-
            [{Kind ++ Language, Files ++ Sources ++ common()}
             || {Language, Sources} <-
                    [{[], ["c_src/Makefile", "c_src/two_beans.c"]},
                     {["--cpp"], ["c_src/Makefile", "c_src/two_beans.cpp"]},
                     {["--cpp", "--precompiled"],
                      ["c_src/precompiled", ".github/workflows/release.yml"]},
                     {["--rust"], ["native/Makefile", "native/Cargo.toml", "native/src/lib.rs"]}],
                {Kind, Files} <-
                    [{[], ["rebar.config", "src/two_beans.app.src", "src/two_beans.erl",
                           "test/two_beans_tests.erl", "test/two_beans_SUITE.erl"]},
                     {["--elixir"], ["mix.exs", ".formatter.exs", "lib/two_beans.ex",
                                     "test/two_beans_test.exs", "test/well_behaved_test.exs"]}]]].

a_mix_project_has_the_name_of_its_module_test() ->
    in_a_directory(
      fun() ->
              0 = new(["two_beans", "--elixir", "--fairnif", "hex"]),
              [?assertNotEqual({File, nomatch}, {File, binary:match(read(File), Text)})
               || {File, Text} <- [{"lib/two_beans.ex", <<"defmodule TwoBeans do">>},
                                   {"c_src/two_beans.c", <<"FAIR_NIF_INIT(Elixir.TwoBeans,">>},
                                   {"mix.exs", <<"@fairnif :hex">>}]]
      end).

what_builds_it_and_is_not_in_path_is_named_test_() ->
    [{Part, fun() ->
                    Path = os:getenv("PATH"),
                    in_a_directory(
                      fun() ->
                              os:putenv("PATH", "/nowhere"),
                              try fairnif_check_said:said(fairnif_cli,
                                                          ["new", "two_beans" | Args]) of
                                  Said -> ?assertNotEqual(nomatch, string:find(Said, Part))
                              after os:putenv("PATH", Path)
                              end
                      end)
            end}
     || {Args, Part} <- [{[], "needs rebar3, which is not in PATH"},
                         {["--elixir", "--rust"], "needs mix, which is not in PATH"},
                         {["--rust"], "needs cargo, which is not in PATH"}]].

%% Libraries come after the objects that need them: a linker with --as-needed drops them otherwise.
ldlibs_end_the_link_line_test_() ->
    [in_a_project(
       Flags,
       fun() ->
               Printed = os:cmd(["MIX_APP_PATH=/nowhere make -n -C two_beans/c_src ", headers(),
                                 " ERTS_INCLUDE_DIR=/nowhere LDLIBS=-lfirst\\ -lsecond"]),
               ?assertMatch({match, _}, re:run(Printed, "-shared -o .*[.]o -lfirst -lsecond\n"))
       end) || Flags <- [[], ["--elixir"], ["--cpp"], ["--elixir", "--cpp"]]].

what_it_calls_of_fairnif_is_there_test_() ->
    [in_a_project(
       Flags,
       fun() ->
               Written = [element(2, file:read_file(File))
                          || File <- filelib:wildcard("two_beans/{src,lib}/*.{erl,ex}")],
               Called = case re:run(Written, "\\bfairnif[:.]([a-z_]+)[(]",
                                    [global, {capture, all_but_first, list}]) of
                            {match, Names} -> lists:append(Names);
                            nomatch -> []
                        end,
               ?assertEqual([], Called -- [atom_to_list(Name) || {Name, _}
                                                    <- fairnif:module_info(exports)])
       end) || Flags <- [["--cpp"], ["--elixir", "--cpp"]]].

%% Nothing but the place of fairnif.mk says where fairnif.h is, also when there are dependencies to
%% include after it.
a_changed_source_is_compiled_again_test_() ->
    {timeout, 120,
     fun() ->
             in_a_directory(
               fun() ->
                       0 = new(["beans", "--fairnif", "git"]),
                       Make = ["make -s -C beans/c_src REBAR_DEPS_DIR=", repository(), "/apps && "],
                       Change = "touch beans/c_src/beans.c && ",
                       ?assertEqual("twice", os:cmd([Make, Change, Make, "printf twice"]))
               end)
     end}.

%% An argument kept over a tick, for the runtime and for the VM. `make test' runs the tests of both
%% builds.
its_tests_see_a_kept_term_in_the_debug_build_test_() ->
    [{lists:flatten(lists:join(" ", Language ++ [What, Build])),
      {timeout, 120,
       fun() ->
               in_a_directory(
                 fun() ->
                         0 = new(["beans", "--fairnif", "git" | Language]),
                         [replace(Source, Before, After) || {Before, After} <- Change],
                         ?assertMatch({_, {match, _}}, passes(Build, Verdict))
                 end)
       end}}
     || {Language, Source, What, Change} <-
            [{[], "beans/c_src/beans.c", "right", []},
             {[], "beans/c_src/beans.c", "fair_",
              [{"    if (!fair_get_bytes(t, fair_arg(t, 0), &in)",
                "    ERL_NIF_TERM a = fair_arg(t, 0); fair_tick(t, 1);\n"
                "    if (!fair_get_bytes(t, a, &in)"}]},
             {[], "beans/c_src/beans.c", "enif_",
              [{"    ErlNifUInt64 found = 0;\n",
                "    ErlNifUInt64 found = 0;\n"
                "    ERL_NIF_TERM a = fair_arg(t, 0); fair_tick(t, 1);\n"
                "    if (!enif_is_binary(fair_env(t), a)) return fair_badarg(t);\n"}]},
             {["--cpp"], "beans/c_src/beans.cpp", "enif_",
              [{"    size_t found = 0;\n",
                "    size_t found = 0;\n"
                "    ERL_NIF_TERM a = fair_arg(&t, 0); t.tick(1);\n"
                "    if (!enif_is_binary(fair_env(&t), a)) return 0;\n"}]}],
        {Build, Verdict} <- [{"", "passed"},
                             {"FAIR_DEBUG=1", case Change of [] -> "passed"; _ -> "failed" end}]].

replace(File, Before, After) ->
    {ok, Text} = file:read_file(File),
    [Left, Right] = string:split(Text, Before),
    ok = file:write_file(File, [Left, After, Right]).

passes(Build, Verdict) ->
    Fairnif = ["-pa ", code:lib_dir(fairnif), "/ebin"],
    Said = os:cmd(["cd beans && mkdir -p ebin && make -s -C c_src ", headers(), " ", Build,
                   " && erlc ", Fairnif, " -o ebin src/*.erl test/beans_tests.erl && erl -noshell "
                   "-pa ebin ", Fairnif, " -eval 'R = eunit:test(beans_tests), "
                   "io:put_chars(case R of ok -> \"passed\"; _ -> \"failed\" end), halt().'"]),
    {Said, re:run(Said, Verdict ++ "$")}.

headers() ->
    ["FAIRNIF_INCLUDE_DIR=", filename:absname(fairnif:include_dir())].

a_mix_project_names_the_checkout_that_wrote_it_test() ->
    in_a_directory(
      fun() ->
              0 = new(["two_beans", "--elixir"]),
              Line = unicode:characters_to_binary(["@fairnif \"", repository(), "\"\n"]),
              ?assertNotEqual(nomatch, binary:match(read("mix.exs"), Line)),
              ?assertNot(filelib:is_file("two_beans/_checkouts"))
      end).

each_source_is_named_in_rebar_config_as_rebar3_wants_it_test_() ->
    Deps = fun(File) ->
                   {ok, Terms} = file:consult(File),
                   [{test, [{deps, Test}]}] = proplists:get_value(profiles, Terms),
                   proplists:get_value(deps, Terms) ++ Test
                       ++ proplists:get_value(project_plugins, Terms)
           end,
    [{Source,
      fun() ->
              in_a_directory(
                fun() ->
                        0 = new(["beans", "--fairnif", Source]),
                        ?assertEqual([fairnif, fairnif_check, rebar3_fairnif],
                                     [element(1, D) || D <- Deps("beans/rebar.config")]),
                        [?assertEqual(Kind, kind(D)) || D <- Deps("beans/rebar.config")],
                        ?assertEqual(Linked, filelib:wildcard("beans/_checkouts/*/rebar.config"))
                end)
      end}
     || {Source, Kind, Linked} <-
            [{"git", git_subdir, []},
             {"hex", requirement, []},
             {repository(), git_subdir,
              ["beans/_checkouts/" ++ App ++ "/rebar.config"
               || App <- ["fairnif", "fairnif_check", "rebar3_fairnif"]]}]].

without_a_choice_it_links_to_the_checkout_that_wrote_it_test() ->
    in_a_directory(
      fun() ->
              0 = new(["beans"]),
              {ok, Link} = file:read_link("beans/_checkouts/fairnif"),
              ?assertEqual(filename:join(repository(), "apps/fairnif"), Link)
      end).

what_is_there_is_left_as_it_is_test_() ->
    [{Kind,
      fun() ->
              in_a_directory(
                fun() ->
                        Make(),
                        ?assertEqual(2, new(["beans"])),
                        ?assertEqual(Left, written("."))
                end)
      end}
     || {Kind, Make, Left} <-
            [{"a file", fun() -> ok = file:write_file("beans", "mine") end, ["beans"]},
             {"an empty directory", fun() -> ok = file:make_dir("beans") end, []},
             {"a full one",
              fun() ->
                      ok = filelib:ensure_dir("beans/src/beans.erl"),
                      ok = file:write_file("beans/src/beans.erl", "mine")
              end,
              ["beans/src/beans.erl"]}]].

a_wrong_command_line_is_exit_code_2_and_writes_nothing_test_() ->
    [{lists:flatten(lists:join(" ", Args)),
      fun() ->
              in_a_directory(fun() ->
                                     ?assertEqual(2, new(Args)),
                                     ?assertEqual([], written("."))
                             end)
      end}
     || Args <- [[], ["a", "b"], ["Beans"], ["beans", "--fairnif", "/nowhere"],
                 ["beans", "--rust", "--precompiled"], ["beans", "--fairnif"],
                 ["beans", "--size", "1k"]]].

%% ---- help ----

common() ->
    ["Makefile", "README.md", ".gitignore", ".github/workflows/ci.yml"].

read(File) ->
    {ok, Text} = file:read_file(filename:join("two_beans", File)),
    Text.

kind({_, Dep}) when is_tuple(Dep) -> element(1, Dep);
kind({_, "~> " ++ _}) -> requirement.

%% What it prints is not shown here.
new(Args) ->
    Leader = group_leader(),
    Error = whereis(standard_error),
    Sink = spawn_link(fun sink/0),
    group_leader(Sink, self()),
    unregister(standard_error),
    register(standard_error, Sink),
    try fairnif_cli:run(["new" | Args])
    after
        group_leader(Leader, self()),
        unregister(standard_error),
        register(standard_error, Error),
        unlink(Sink),
        exit(Sink, kill)
    end.

sink() ->
    receive
        {io_request, From, As, _} -> From ! {io_reply, As, ok}
    end,
    sink().

%% Files, not links, with those whose names begin with a dot.
written(Dir) ->
    filelib:fold_files(Dir, "", true, fun(F, Acc) -> [relative(F, Dir) | Acc] end, []).

relative(File, Dir) ->
    string:join(filename:split(File) -- filename:split(Dir), "/").

repository() ->
    lists:foldl(fun(_, Dir) -> filename:dirname(Dir) end, filename:absname(?FILE),
                lists:seq(1, 4)).

%% A test, called as the flags are, beside a new project `two_beans' with them.
in_a_project(Flags, Fun) ->
    {lists:concat(Flags),
     fun() ->
             in_a_directory(fun() ->
                                    0 = new(["two_beans", "--fairnif", "git" | Flags]),
                                    Fun()
                            end)
     end}.

in_a_directory(Fun) ->
    {ok, Here} = file:get_cwd(),
    Dir = filename:join(os:getenv("TMPDIR", "/tmp"),
                        "fairnif_new_" ++ os:getpid() ++ "_"
                        ++ integer_to_list(erlang:unique_integer([positive]))),
    ok = file:make_dir(Dir),
    try
        ok = file:set_cwd(Dir),
        Fun()
    after
        ok = file:set_cwd(Here),
        ok = file:del_dir_r(Dir)
    end.
