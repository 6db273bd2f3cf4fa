-module(fairnif_check_baseline_tests).

-include_lib("eunit/include/eunit.hrl").

-define(M, fairnif_check_baseline).
-define(R, fairnif_check_test_results).

%% A folder of its own for each test; a name with a slash is a path.
in_folder(Tests) ->
    [{Title, {timeout, 60, fun() ->
          fairnif_check_stand_in:in_folder(fun(Dir) -> Test(filename:join(Dir, "b")) end)
      end}} || {Title, Test} <- Tests].

%% The error's text, which names the file.
refused(Path, Result, Context) ->
    {error, Text} = ?M:compare(Path, Result, Context),
    Flat = unicode:characters_to_list(Text),
    ?assertNotEqual(nomatch, string:find(Flat, Path)),
    Flat.

refused(Path) ->
    refused(Path, ?R:good(), ?R:context()).

says(Needle, Text) ->
    ?assertNotEqual({nomatch, Text}, {string:find(Text, Needle), Text}).

saved(Path) ->
    {ok, Path} = ?M:save(Path, ?R:good(), ?R:context()).

baseline_test_() ->
    in_folder(
      [{"what was saved is within noise of itself",
        fun(Path) ->
                {ok, Path} = ?M:save(Path, ?R:every_status(), ?R:context()),
                {ok, #{exit := 0, rows := Rows, made := <<"2026-", _/binary>>} = Comparison} =
                    ?M:compare(Path, ?R:every_status(), ?R:context()),
                ?assertEqual([against, subject], lists:usort([R || #{role := R} <- Rows])),
                ?assertEqual([], [R || #{verdict := V} = R <- Rows, V =/= within_noise]),
                ?assert(iolist_size(fairnif_check_json:encode(Comparison)) > 100),
                says("within noise", unicode:characters_to_list(?M:format(Comparison)))
        end},
       {"a slower one is worse, and that decides",
        fun(Path) ->
                saved(Path),
                Slower = ?R:with_samples(lists:seq(2000000, 2000009), ?R:good()),
                {ok, #{exit := 1, rows := Rows}} = ?M:compare(Path, Slower, ?R:context()),
                ?assertEqual([{1048576, time}],
                             [{S, F} || #{size := S, figure := F, verdict := worse} <- Rows])
        end},
       {"the file says its version first and can be read by a person",
        fun(Path) ->
                saved(Path),
                {ok, [{fairnif_baseline, 1}, {context, _}, {options, _} | Rest]} =
                    file:consult(Path),
                ?assertMatch([{figures, subject, _, 1024, #{samples := _}},
                              {figures, subject, _, 1048576, #{samples := _}}, complete], Rest),
                {ok, Text} = file:read_file(Path),
                says("sizes => [1024,1048576]", unicode:characters_to_list(Text)),
                ?assertEqual(["b"], element(2, file:list_dir(filename:dirname(Path))))
        end},
       {"any text comes back as it was",
        fun(Path) ->
                Odd = ?R:with_text(<<"größe \"~p\" \\ ", 1, 10, "Ѐ"/utf8>>),
                {ok, _} = ?M:save(Path, Odd, ?R:context()),
                ?assertMatch({ok, #{exit := 0}}, ?M:compare(Path, Odd, ?R:context()))
        end},
       {"a second save takes the place of the first",
        fun(Path) ->
                saved(Path),
                {ok, _} = ?M:save(Path, ?R:bad(), ?R:context()),
                ?assertMatch({ok, _}, ?M:compare(Path, ?R:bad(), ?R:context()))
        end},
       {"a folder that is not there yet is made",
        fun(Path) ->
                Deeper = filename:join([Path, "x", "y"]),
                ?assertEqual({ok, Deeper}, ?M:save(Deeper, ?R:good(), ?R:context()))
        end},
       {"what cannot be written is an error that names the file and leaves nothing behind",
        fun(Path) ->
                ok = file:make_dir(Path),
                {error, Text} = ?M:save(Path, ?R:good(), ?R:context()),
                says(Path, unicode:characters_to_list(Text)),
                ?assertEqual({ok, ["b"]}, file:list_dir(filename:dirname(Path)))
        end}]).

context_test_() ->
    in_folder(
      [{"another " ++ atom_to_list(Key) ++ " is refused, with both values",
        fun(Path) ->
                saved(Path),
                Text = refused(Path, ?R:good(), (?R:context())#{Key := Value}),
                says(atom_to_list(Key) ++ ": ", Text),
                says(Values, Text)
        end} || {Key, Value, Values} <- [{otp, <<"27">>, "`25' there, `27' here"},
                                         {logical_processors, 8, "2 there, 8 here"},
                                         {emulator, <<"emu">>, "`jit' there, `emu' here"}]]
      ++
      [{"another kernel is refused, its third number and the date are not",
        fun(Path) ->
                saved(Path),
                says("os: `linux 6.1' there, `linux 6.2' here",
                     refused(Path, ?R:good(), (?R:context())#{os := <<"linux 6.2.0">>})),
                ?assertMatch({ok, _}, ?M:compare(Path, ?R:good(),
                                                 (?R:context())#{os := <<"linux 6.1.99">>,
                                                                 date := <<"2027">>,
                                                                 memory_available := unknown}))
        end},
       {"other options are refused",
        fun(Path) ->
                saved(Path),
                #{options := Options} = Good = ?R:good(),
                says("flags: `' there, `+S 1:1' here",
                     refused(Path, Good#{options := Options#{flags := <<"+S 1:1">>}},
                             ?R:context())),
                says("sizes: [1024,1048576] there, [7] here",
                     refused(Path, Good#{options := Options#{sizes := [7]}}, ?R:context()))
        end},
       {"the same file of data in another checkout is the same",
        fun(Path) ->
                #{options := Options} = Good = ?R:good(),
                With = fun(File) -> Good#{options := Options#{file := File}} end,
                {ok, _} = ?M:save(Path, With(<<"/a/data.json">>), ?R:context()),
                ?assertMatch({ok, _}, ?M:compare(Path, With(<<"/b/data.json">>), ?R:context())),
                says("file: ", refused(Path, With(<<"/b/other.json">>), ?R:context()))
        end},
       {"another expression is refused",
        fun(Path) ->
                saved(Path),
                #{subjects := [S]} = Good = ?R:good(),
                says("expression: `lists:sum(Init)' there, `m:f()' here",
                     refused(Path, Good#{subjects := [S#{expression := <<"m:f()">>}]},
                             ?R:context()))
        end}]).

%% What can stand in a file, and what the error says of it.
broken() ->
    [{"", "is not a baseline"},
     {"hello", "cannot be used: line"},
     {"{fairnif_baseline, 1}", "cannot be used: line"},
     {"{fairnif_baseline, 1}.", "a part is missing"},
     {"{fairnif_baseline, 2}. {anything}.", "has version 2, and this fairnif reads 1"},
     {"{fairnif_baseline, -1}.", "is not a baseline"},
     {"{fairnif_baseline, <<1>>}.", "is not a baseline"},
     {"[].", "is not a baseline"},
     {"<<255,254>>.", "is not a baseline"},
     {[0, 255, 254, 1], "cannot be used: "},
     {"{fairnif_baseline, 1}. {context, []}. {options, #{}}. {figures}. complete.",
      "a part is missing"},
     {"{fairnif_baseline, 1}. {context, #{}}. {options, #{}}. {figures}. complete.",
      "what is this"},
     {"{fairnif_baseline, 1}. {context, #{}}. {options, #{}}. complete.", "its end"},
     {"{fairnif_baseline, 1}. {context, #{}}. {options, #{}}. {figures}.", "its end"},
     {"{fairnif_baseline, 1}. {context, #{}}. {options, #{}}. extra. complete.", "what is this"},
     {"{fairnif_baseline, 1}. {context, #{\"a\" => 1}}. {options, #{}}. "
      ++ row("1", "#{samples=>[]}"),
      "its context or its options"},
     {"{fairnif_baseline, 1}. {context, #{otp => fun lists:sort/1}}. {options, #{}}. "
      ++ row("1", "#{samples=>[]}"), "its context or its options"},
     {good("0", "#{samples => []}"), "what is this"},
     {good("1", "#{}"), "what is this"},
     {good("1", "#{samples => [1 | 2]}"), "what is this"},
     {good("1", "#{samples => [a]}"), "what is this"},
     {good("1", "#{samples => [], time => <<1>>}"), "what is this"},
     {good("1", "#{samples => [], other => 1}"), "what is this"},
     {good("1", "#{samples => [1" ++ lists:duplicate(400, $0) ++ "]}"), "what is this"},
     {good("1", "#{samples => []}}. {figures, subject, <<255>>, 1, #{samples => []}"), "twice"},
     {good("1", "#{samples => []}"), "measured in another context"}].

good(Size, Figures) ->
    "{fairnif_baseline, 1}. {context, #{otp => <<255>>}}. {options, #{sizes => [1|[]]}}. "
        ++ row(Size, Figures).

row(Size, Figures) ->
    "{figures, subject, <<255>>, " ++ Size ++ ", " ++ Figures ++ "}. complete.".

a_file_that_is_no_good_baseline_is_refused_with_its_name_test_() ->
    in_folder(
      [{lists:flatten(io_lib:format("~0p: ~s", [Content, Needle])),
        fun(Path) ->
                ok = file:write_file(Path, Content),
                says(Needle, refused(Path))
        end} || {Content, Needle} <- broken()]
      ++
      [{"a file that is not there", fun(Path) -> says("--save-baseline", refused(Path)) end},
       {"a folder", fun(Path) ->
                            ok = file:make_dir(Path),
                            says("is a directory and no file", refused(Path))
                    end},
       {"a good file that was cut anywhere",
        fun(Path) ->
                saved(Path),
                {ok, Text} = file:read_file(Path),
                End = byte_size(Text) - 2,              % what is cut is more than a newline
                [begin
                     ok = file:write_file(Path, binary:part(Text, 0, Bytes)),
                     refused(Path)
                 end || Bytes <- lists:seq(0, End, 17) ++ lists:seq(End - 30, End)]
        end}]).

a_device_is_no_baseline_test() ->
    says("is a device and no file", refused("/dev/zero")).

a_name_without_a_slash_is_a_file_of_the_users_test() ->
    {ok, Path} = ?M:path("main"),
    ?assertEqual(["baselines", "main.baseline"],
                 lists:nthtail(length(filename:split(Path)) - 2, filename:split(Path))),
    ?assert(lists:prefix(filename:basedir(user_data, "fairnif"), Path)),
    ?assertEqual({ok, "./main"}, ?M:path("./main")).

a_name_that_is_none_is_refused_test_() ->
    [?_assertMatch({error, _}, ?M:path(Name)) || Name <- ["", [0], "a\nb", "x/\0"]].
