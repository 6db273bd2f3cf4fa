%% What `fairnif new' writes and refuses. That what it writes builds and passes is tested from a
%% clean clone: tools/stranger_test.
-module(fairnif_cli_new_tests).

-include_lib("eunit/include/eunit.hrl").

an_application_may_be_called_this_test_() ->
    [{Name, ?_assertEqual(ok, fairnif_cli_new:valid(Name))}
     || Name <- ["beans", "b", "two_words", "x86", "a_"]].

an_application_may_not_be_called_that_test_() ->
    [{Name, ?_assertMatch({error, _}, fairnif_cli_new:valid(Name))}
     || Name <- ["", "Beans", "1st", "_x", "with-dash", "a/b", "..", "beans\n", "bohnen\x{e4}",
                 "receive", "maybe", "lists", "crypto", "ssl", "fairnif", "fairnif_lab",
                 lists:duplicate(101, $a)]].

a_project_is_written_with_its_name_everywhere_test() ->
    in_a_directory(
      fun() ->
              0 = new(["beans", "--fairnif", "git"]),
              Files = written("beans"),
              [?assert(lists:member(File, Files))
               || File <- ["rebar.config", "Makefile", "README.md", ".gitignore",
                           ".github/workflows/ci.yml", "src/beans.app.src", "src/beans.erl",
                           "c_src/beans.c", "c_src/Makefile", "test/beans_tests.erl",
                           "test/beans_SUITE.erl"]],
              [begin
                   {ok, Text} = file:read_file(filename:join("beans", File)),
                   [?assertEqual({File, nomatch}, {File, binary:match(Text, Left)})
                    || Left <- [<<"my_nif">>, <<"{{fairnif">>, <<"{{where">>, <<"{{rebar3">>]]
               end || File <- Files],
              {ok, [{application, beans, _}]} = file:consult("beans/src/beans.app.src")
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
                        ?assertEqual([fairnif, fairnif_lab, rebar3_fairnif],
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
               || App <- ["fairnif", "fairnif_lab", "rebar3_fairnif"]]}]].

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
                 ["beans", "--fairnif"], ["beans", "--size", "1k"]]].

%% ---- help ----

kind({_, Dep}) when is_tuple(Dep) -> element(1, Dep);
kind({_, "~> " ++ _}) -> requirement.

%% What it prints is nobody's to see here.
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
