-module(fairnif_watch_connect_tests).

-include_lib("eunit/include/eunit.hrl").

the_form_of_a_name_is_its_hosts_test_() ->
    [?_assertEqual(Expected, fairnif_watch_connect:node_name(Text))
     || {Text, Expected} <- [{"a@b", {ok, 'a@b', shortnames}},
                             {"a@b.c", {ok, 'a@b.c', longnames}},
                             {"a@127.0.0.1", {ok, 'a@127.0.0.1', longnames}},
                             {"a@::1", {ok, 'a@::1', longnames}}]].

a_name_without_a_host_is_of_this_machine_test() ->
    {ok, Host} = inet:gethostname(),
    ?assertEqual({ok, list_to_atom("a@" ++ hd(string:split(Host, "."))), shortnames},
                 fairnif_watch_connect:node_name("a")).

what_is_no_name_is_reported_test_() ->
    [{Text, ?_assertMatch({error, _}, fairnif_watch_connect:node_name(Text))}
     || Text <- ["", "@b", "a@", "a@b@c", "a b@c", "a@b c", "a;b@c",
                 lists:duplicate(300, $a) ++ "@b"]].

a_cookie_is_the_first_line_of_its_file_test() ->
    File = filename:join(os:getenv("TMPDIR", "/tmp"),
                         "fairnif_watch_cookie_" ++ os:getpid()),
    ok = file:write_file(File, "secret\nmore\n"),
    try
        ?assertEqual({ok, secret}, fairnif_watch_connect:cookie({file, File}))
    after
        ok = file:delete(File)
    end,
    ?assertMatch({error, _}, fairnif_watch_connect:cookie({file, File})).

a_cookie_that_cannot_be_one_is_reported_and_not_shown_test_() ->
    [fun() ->
             {error, Text} = fairnif_watch_connect:cookie({text, Cookie}),
             ?assertEqual(nomatch, string:find(lists:flatten(Text), "xxx"))
     end || Cookie <- ["", lists:duplicate(256, $x)]].

without_a_cookie_file_none_is_made_test() ->
    Home = filename:join(os:getenv("TMPDIR", "/tmp"), "fairnif_watch_home_" ++ os:getpid()),
    ok = file:make_dir(Home),
    Before = [{Name, os:getenv(Name)} || Name <- ["HOME", "XDG_CONFIG_HOME"]],
    [os:putenv(Name, Home) || {Name, _} <- Before],
    try
        ?assertMatch({error, _}, fairnif_watch_connect:cookie(default)),
        ?assertEqual({ok, []}, file:list_dir(Home)),
        ok = file:write_file(filename:join(Home, ".erlang.cookie"), "at_home"),
        ?assertEqual({ok, at_home}, fairnif_watch_connect:cookie(default))
    after
        [case Value of false -> os:unsetenv(Name); _ -> os:putenv(Name, Value) end
         || {Name, Value} <- Before],
        ok = file:del_dir_r(Home)
    end.

%% Else a node that has the same version from another folder would be turned down.
no_module_has_the_folder_of_its_build_in_it_test_() ->
    Beams = filelib:wildcard(filename:join(filename:dirname(code:which(fairnif_watch)), "*.beam")),
    ?assert(length(Beams) > 20),
    [{Beam, ?_assertEqual(nomatch, binary:match(literals(Beam), folder(Beam)))} || Beam <- Beams].

literals(Beam) ->
    case beam_lib:chunks(Beam, ["LitT"], [allow_missing_chunks]) of
        {ok, {_, [{_, missing_chunk}]}} -> <<>>;
        {ok, {_, [{_, <<0:32, Plain/binary>>}]}} -> Plain;
        {ok, {_, [{_, <<_:32, Packed/binary>>}]}} -> zlib:uncompress(Packed)
    end.

folder(Beam) ->
    {ok, {_, [{compile_info, Info}]}} = beam_lib:chunks(Beam, [compile_info]),
    list_to_binary(filename:dirname(proplists:get_value(source, Info))).
