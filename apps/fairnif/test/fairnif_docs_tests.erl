%% The manual and the sources name the same things.
-module(fairnif_docs_tests).
-include_lib("eunit/include/eunit.hrl").

the_manual_lists_the_counters_as_they_are_declared_test_() ->
    case root() of
        {ok, Root} ->
            Info = read(Root, "docs/reference/info.md"),
            [{Row, ?_assertNotEqual(nomatch, string:find(Info, Row))}
             || Row <- counter_rows(Root)];
        none -> []
    end.

the_manual_describes_every_function_of_the_header_for_drivers_test_() ->
    case root() of
        {ok, Root} ->
            Manual = read(Root, "docs/reference/drivers.md"),
            Header = read(Root, "apps/fairnif_driver/c_include/fairdrv.h"),
            Names = names("\\b(fair_drv_\\w+|FAIR_DR[A-Z]*_[A-Z]\\w*|FairDrv\\w+)", Header),
            ?assert(length(Names) > 15),
            [{Name, ?_assert(named(Name, Manual))} || Name <- Names];
        none -> []
    end.

the_manual_describes_every_function_that_is_exported_test_() ->
    case root() of
        {ok, Root} ->
            Manual = read(Root, "docs/reference/erlang.md"),
            Exports = [Export || {Name, _} = Export <- fairnif:module_info(exports),
                                 not lists:prefix("nif_", atom_to_list(Name))],
            headings(Exports, [format_error], Manual);
        none -> []
    end.

the_manual_describes_every_function_for_callers_of_drivers_test_() ->
    case root() of
        {ok, Root} ->
            Manual = read(Root, "docs/reference/drivers.md"),
            headings(fairnif_driver:module_info(exports), [], Manual);
        none -> []
    end.

headings(Exports, Internal, Manual) ->
    [{Heading, ?_assertNotEqual(nomatch, string:find(Manual, Heading))}
     || {Name, Arity} <- Exports, not lists:member(Name, [module_info | Internal]),
        Heading <- [lists:concat(["### ", Name, "/", Arity])]].

%% Links between the pages, those to a heading too.
every_link_of_the_pages_leads_somewhere_test_() ->
    case root() of
        {ok, Root} ->
            Pages = lists:append([filelib:wildcard(Pattern, Root)
                                  || Pattern <- ["*.md", "docs/**/*.md", "{examples,packages}/*.md",
                                                 "{examples,packages}/*/*.md",
                                                 "apps/*/README.md",
                                                 "elixir/*/README.md"]]),
            ?assert(length(Pages) > 30),
            [{Page, ?_assertEqual([], dead_links(Root, Page))} || Page <- Pages];
        none -> []
    end.

dead_links(Root, Page) ->
    Bare = re:replace(read(Root, Page), "```.*?```", "", [global, dotall, {return, binary}]),
    [Link || [Link] <- matches("\\]\\(([^)\\s]+)\\)", Bare),
             string:find(Link, "://") =:= nomatch,
             not leads(filename:join(Root, Page), string:split(Link, "#"))].

leads(Page, ["" | Heading]) ->
    has_heading(Page, Heading);
leads(Page, [Path | Heading]) ->
    File = filename:join(filename:dirname(Page), Path),
    filelib:is_file(File) andalso has_heading(File, Heading).

%% As GitHub makes an anchor of a heading. A header's headings are the rulers of its sections.
has_heading(_, []) ->
    true;
has_heading(File, [Anchor]) ->
    {ok, Text} = file:read_file(File),
    Anchors = [lists:append(string:replace(
                              re:replace(string:lowercase(Heading), "[^\\w\\- ]", "",
                                         [global, {return, list}]), " ", "-", all))
               || [Heading] <- matches(case filename:extension(File) of
                                           ".h" -> "-- (.+?) -+(?: \\*/)?$";
                                           _ -> "^#+ (.*)$"
                                       end, Text)],
    lists:member(Anchor, Anchors).

%% Rows of the manual's table, made of COUNTER(name, how, "unit", "meaning").
counter_rows(Root) ->
    Rows = matches("^COUNTER\\((\\w+),\\s*\\w+,\\s*\"([^\"]*)\",\\s*\"([^\"]*)\"\\)",
                   read(Root, "apps/fairnif/c_src/thread/counters.def")),
    ?assert(length(Rows) > 5),
    ["\n| " ++ string:join(Row, " | ") ++ " |\n" || Row <- Rows].

%% What the code of a header names, comments left out.
names(Pattern, Header) ->
    Code = re:replace(Header, "/\\*.*?\\*/|//[^\n]*", "", [global, dotall]),
    lists:usort([Name || [Name] <- matches(Pattern, iolist_to_binary(Code))]).

named(Name, Text) ->
    re:run(Text, ["\\b", Name, "\\b"]) =/= nomatch.

matches(Pattern, Text) ->
    case re:run(Text, Pattern,
                [global, multiline, {capture, all_but_first, list}]) of
        {match, Found} -> Found;
        nomatch -> []
    end.

read(Root, File) ->
    {ok, Text} = file:read_file(filename:join(Root, File)),
    Text.

%% The repository, if these tests run in it: seen from the header, a folder
%% that has docs/ is some way up. A package of the application alone has none.
root() ->
    {ok, Here} = file:get_cwd(),
    Starts = [fairnif:include_dir(), Here],
    case [Dir || Start <- Starts, Dir <- upwards(filename:absname(Start)),
                 filelib:is_file(filename:join(Dir, "docs/reference/info.md"))] of
        [Dir | _] -> {ok, Dir};
        [] -> none
    end.

upwards(Dir) ->
    case filename:dirname(Dir) of
        Dir -> [Dir];
        Up -> [Dir | upwards(Up)]
    end.
