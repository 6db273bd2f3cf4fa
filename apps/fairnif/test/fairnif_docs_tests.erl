%% The manual and the sources name the same things.
-module(fairnif_docs_tests).
-include_lib("eunit/include/eunit.hrl").

the_manual_lists_the_counters_as_they_are_declared_test_() ->
    case root() of
        {ok, Root} ->
            Info = read(Root, "docs/manual/info.md"),
            [{Row, ?_assertNotEqual(nomatch, string:find(Info, Row))}
             || Row <- counter_rows(Root)];
        none -> []
    end.

the_manual_describes_every_function_of_the_header_test_() ->
    case root() of
        {ok, Root} ->
            Manual = read(Root, "docs/manual/c-api.md"),
            [{Name, ?_assert(named(Name, Manual))}
             || Name <- header_names(Root)];
        none -> []
    end.

the_manual_describes_every_function_of_the_header_for_drivers_test_() ->
    case root() of
        {ok, Root} ->
            Manual = read(Root, "docs/manual/driver-api.md"),
            Header = read(Root, "apps/fairnif_driver/c_include/fairdrv.h"),
            Names = names("\\b(fair_drv_\\w+|FAIR_DR[A-Z]*_[A-Z]\\w*|FairDrv\\w+)", Header),
            ?assert(length(Names) > 15),
            [{Name, ?_assert(named(Name, Manual))} || Name <- Names];
        none -> []
    end.

the_manual_describes_every_function_that_is_exported_test_() ->
    case root() of
        {ok, Root} ->
            Manual = read(Root, "docs/manual/erlang-api.md"),
            Internal = [nif_reschedule_ns, nif_dirty_trip_ns, use_figures, header_dir,
                        format_error, until_receive, answer, timeout_of],
            headings(fairnif:module_info(exports), Internal, Manual);
        none -> []
    end.

the_manual_describes_every_function_for_callers_of_drivers_test_() ->
    case root() of
        {ok, Root} ->
            Manual = read(Root, "docs/manual/driver-api.md"),
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
                                  || Pattern <- ["*.md", "docs/**/*.md", "examples/*.md",
                                                 "apps/*/README.md", "elixir/*/README.md"]]),
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

%% As GitHub makes an anchor of a heading.
has_heading(_, []) ->
    true;
has_heading(File, [Anchor]) ->
    {ok, Text} = file:read_file(File),
    Anchors = [lists:append(string:replace(
                              re:replace(string:lowercase(Heading), "[^\\w\\- ]", "",
                                         [global, {return, list}]), " ", "-", all))
               || [Heading] <- matches("^#+ (.*)$", Text)],
    lists:member(Anchor, Anchors).

%% Rows of the manual's table, made of COUNTER(name, how, "unit", "meaning").
counter_rows(Root) ->
    Rows = matches("^COUNTER\\((\\w+),\\s*\\w+,\\s*\"([^\"]*)\",\\s*\"([^\"]*)\"\\)",
                   read(Root, "apps/fairnif/c_src/thread/counters.def")),
    ?assert(length(Rows) > 5),
    ["\n| " ++ string:join(Row, " | ") ++ " |\n" || Row <- Rows].

%% fair_name and FAIR_NAME; what begins with fair__ is the runtime's own.
header_names(Root) ->
    Header = [read(Root, "apps/fairnif/c_include/" ++ File)
              || File <- ["fairnif.h", "fairnif_abi.h"]],
    Found = names("\\b((?:fair|FAIR)_[A-Za-z0-9]\\w*)", Header),
    Getters = ["fair_get_" ++ Type
               || [Type] <- matches("^FAIR__GETTER\\((\\w+),", Header)],
    Names = lists:usort(Found ++ Getters),
    ?assert(length(Names) > 50),
    Names -- ["fair_get_"].

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
                 filelib:is_file(filename:join(Dir, "docs/manual/info.md"))] of
        [Dir | _] -> {ok, Dir};
        [] -> none
    end.

upwards(Dir) ->
    case filename:dirname(Dir) of
        Dir -> [Dir];
        Up -> [Dir | upwards(Up)]
    end.
