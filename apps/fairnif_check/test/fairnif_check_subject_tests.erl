-module(fairnif_check_subject_tests).

-include_lib("eunit/include/eunit.hrl").

%% What runs in the peer.
-export([value/3, values/2, two/0, number/0]).

-define(S, fairnif_check_subject).

%% ---- what is no Erlang is known before any node starts, with its place ----

what_cannot_be_compiled_is_a_usage_error_with_its_place_test_() ->
    [{Text, ?_assert(starts_with(Said, refused(Text, #{})))}
     || {Text, Said} <-
            [{"foo(", "the expression, column 5: syntax error before: "},
             {"foo(Bin,, 1)", "the expression, column 9: syntax error before: ','"},
             {"", "the expression is empty"},
             {" \n", "the expression is empty"},
             {"% nothing", "the expression is empty"},
             {"<<\"abc", ["the expression, column 3: unterminated string",     % OTP 25, 26
                          "the expression, column 4: unterminated string"]},
             {"Bim", "the expression, column 1: variable 'Bim' is unbound"},
             {"{ok,\n Bim}", "the expression, line 2, column 2: variable 'Bim' is unbound"},
             {"Sprouts.count", "the expression, column 8: syntax error before: '.'"},
             {"Sprouts.Bin", "the expression, column 8: syntax error before: '.'"},
             {"Bin + foo(N)", "the expression, column 7: function foo/1 undefined"},
             {"ok. ok", "the expression, column 5: syntax error before: ok"},
             {<<255>>, "the expression is not UTF-8"}]].

what_is_wrong_with_init_is_said_of_init_test_() ->
    [{Text, ?_assert(starts_with(Said, refused("Init", #{init => Text})))}
     || {Text, Said} <-
            [{"crypto:strong_rand_bytes(N", "--init, column 27: syntax error before: "},
             {"Init", "--init, column 1: variable 'Init' is unbound"},
             {"", "--init is empty"}]].

what_is_no_subject_at_all_is_a_usage_error_test_() ->
    [{Part, fun() -> ?assertNotEqual(nomatch, string:find(refused(Source, #{}), Part)) end}
     || {Source, Part} <- [{42, "42 is not an expression"}, {{a, b}, "{a,b} is not an expression"},
                           {fun(_, _) -> ok end, "takes other than no argument or one (Bin)"},
                           {{lists, max, x}, "{lists,max,x} is not an expression"}]].

a_subject_is_called_by_its_text_test_() ->
    [?_assertEqual(Text, called(Source))
     || {Source, Text} <- [{" lists:sort([N]) \n", <<"lists:sort([N])">>},
                           {<<"\"é\""/utf8>>, <<"\"é\""/utf8>>},
                           {{lists, seq, [1, 2]}, <<"lists:seq/2">>},
                           {fun lists:max/1, <<"fun lists:max/1">>}]].

a_charlist_in_an_elixir_call_is_reported_test_() ->
    [?_assertEqual({Text, Notes}, {Text, noted(Text, #{})})
     || {Text, Notes} <-
            [{"Sprouts.count(\"ab\", {Sprouts.new(\"cd\")})", [charlist("ab"), charlist("cd")]},
             {"'Elixir.Sprouts':count([\"ab\"])", [charlist("ab")]},
             {"lists:map(fun(_) -> Sprouts.count(\"ab\") end, [1])", [charlist("ab")]},
             {"Sprouts.count(<<\"ab\">>, 'ab', $a)", []},
             {"lists:reverse(\"ab\")", []}]]
        ++ [?_assertEqual([charlist("ab")], noted("N", #{init => "Sprouts.new(\"ab\")"})),
            ?_assertMatch({_, _}, binary:match(hd(noted("Sprouts.new(\"\x{3b1}\")", #{})),
                                               <<"/utf8>>">>))].

charlist(Text) ->
    iolist_to_binary(["\"", Text, "\" is a charlist, as the expression is Erlang; Elixir's string "
                      "is <<\"", Text, "\">>."]).

noted(Source, Spec) ->
    {ok, Subject} = ?S:new(Source, Spec),
    ?S:notes(Subject).

%% It would refuse unused variables, which most expressions leave.
the_options_of_the_user_s_compiler_have_no_say_test() ->
    os:putenv("ERL_COMPILER_OPTIONS", "[warnings_as_errors, report]"),
    try
        ?assertMatch({ok, _}, ?S:new("X = 1, ok", #{}))
    after
        os:unsetenv("ERL_COMPILER_OPTIONS")
    end.

%% ---- in a peer: what is called is what was written ----

each_form_of_a_subject_gives_its_value_test_() ->
    Number = 40,
    in_peer([{"Bin", #{data => {file, <<"abcdef">>}}, 3, {ok, <<"abc">>}},
             {"N", #{}, 3, {ok, 3}},
             {"byte_size(Bin)", #{}, 3 * 1048576 + 5, {ok, 3 * 1048576 + 5}},
             {"byte_size(Bin).", #{}, 1, {ok, 1}},
             {"N % the size", #{}, 3, {ok, 3}},
             {"$.", #{}, 3, {ok, $.}},
             {"X = N + 1, X * 2", #{}, 3, {ok, 8}},
             {"lists:map(fun(X) -> X end, [Init])", #{init => "{N, byte_size(Bin)}"}, 3,
              {ok, [{3, 3}]}},
             {"Sprouts.Seeds.any?(N) + Sprouts.Seeds.any?(1)", #{}, 3, {ok, 4}},
             {"Init", #{}, 3, {ok, undefined}},
             {{?MODULE, number, []}, #{}, 3, {ok, 42}},
             {fun() -> Number + 2 end, #{}, 3, {ok, 42}},
             {fun(Bin) -> byte_size(Bin) end, #{}, 3, {ok, 3}},
             {fun erlang:byte_size/1, #{}, 3, {ok, 3}},
             {"erlang:error(oops)", #{}, 3, {raised, error, oops}},
             {"length([N]) + erlang:length([1]) + erlang:'+'(1, 1)", #{}, 3, {ok, 4}}]).

what_does_not_exist_is_a_usage_error_with_its_place_test_() ->
    in_peer([{"lists:nothing(Bin)", #{}, 1,
              {error, {usage, <<"the expression, column 1: there is no function "
                                "lists:nothing/1">>}}},
             {"{ok,\n Nowhere.At.all!(1)}", #{}, 1,
              {error, {usage, <<"the expression, line 2, column 2: there is no module "
                                "'Elixir.Nowhere.At' (add its directory with -pa)">>}}},
             {"{ok,\n nowhere_at_all:f(1)}", #{}, 1,
              {error, {usage, <<"the expression, line 2, column 2: there is no module "
                                "nowhere_at_all (add its directory with -pa)">>}}},
             {"[lists:map(fun nowhere_at_all:f/1, [1])]", #{}, 1,
              {error, {usage, <<"the expression, column 12: there is no module "
                                "nowhere_at_all (add its directory with -pa)">>}}},
             {"Init", #{init => "lists:nothing(N)"}, 1,
              {error, {usage, <<"--init, column 1: there is no function lists:nothing/1">>}}},
             {{lists, nothing, [1]}, #{}, 1,
              {error, {usage, <<"there is no function lists:nothing/1">>}}},
             {fun lists:nothing/1, #{}, 1,
              {error, {usage, <<"there is no function lists:nothing/1">>}}}]).

an_init_that_fails_or_hangs_is_an_error_that_says_so_test_() ->
    [in_peer([{"Init", #{init => "exit(oops)"}, 1, {error, {failed, <<"--init failed: oops">>}}},
              {"Init", #{init => "timer:sleep(infinity)"}, 1,
               {error, {failed, <<"--init has not returned within 2000 ms">>}}}]),
     {timeout, 60, fun() ->
          {ok, [{error, {failed, Text}}]} =
              run([{"Init", #{init => "error({no, N})"}, 7}]),
          ?assertMatch(<<"--init failed: {{no,7}", _/binary>>, Text) end}].

%% As a module is that cover has compiled, or a shell.
a_fun_of_a_module_that_is_not_as_in_its_file_is_a_usage_error_test_() ->
    {timeout, 60, fun() ->
        [?assertMatch({match, _}, {re:run(Text, Part, [{capture, none}]) =:= match
                                   andalso match, Text})
         || {Module, Part} <- [{fairnif_check_subject_nowhere, "cannot be loaded in another node"},
                               {fairnif_check_machine, "is another than its file"}],
            Text <- [said_of_fun_in(Module)]]
    end}.

what_init_opened_stays_open_test_() ->
    in_peer([{"ets:info(Init, size)", #{init => "ets:new(t, [public])"}, 1, {ok, 0}}]).

two_subjects_stand_beside_each_other_test_() ->
    {timeout, 60, fun() ->
        ?assertEqual({ok, [{subject, 3}, {against, 4}, ok]},
                     fairnif_check_peer:run([], {?MODULE, two, []}, 30000)) end}.

random_input_is_random_test_() ->
    {timeout, 60, fun() ->
        {ok, [{ok, A}, {ok, B}]} = run([{"Bin", #{}, 64}, {"Bin", #{}, 64}]),
        ?assertNotEqual(A, B) end}.

%% ---- in the peer ----

%% [{ok, Value} | {raised, Class, Reason} | {error, _}], each with code of its own.
values(Sources, Ms) ->
    sprouts(),
    [value(Subject, Size, Ms) || {Subject, Size} <- Sources].

value(Subject, Size, Ms) ->
    case ?S:install(Subject, Size, Ms) of
        ok ->
            Fun = ?S:function(Subject),
            try {ok, Fun()}
            catch Class:Reason -> {raised, Class, Reason}
            end;
        {error, _} = Error ->
            Error
    end.

two() ->
    Subjects = [begin {ok, Subject} = ?S:new(Text, #{slot => Slot}), {Slot, Subject} end
                || {Slot, Text} <- [{subject, "N"}, {against, "N + 1"}]],
    [ok = ?S:install(Subject, 3, 1000) || {_, Subject} <- Subjects],
    Idle = ?S:idle(),
    ok = ?S:install(Idle, 1, 1000),
    [{Slot, (?S:function(Subject))()} || {Slot, Subject} <- Subjects] ++ [(?S:function(Idle))()].

number() -> 42.

%% A module as Elixir has them.
sprouts() ->
    Module = 'Elixir.Sprouts.Seeds',
    {ok, Module, Beam} =
        compile:forms([{attribute, 1, module, Module}, {attribute, 1, export, [{'any?', 1}]},
                       {function, 1, 'any?', 1, [{clause, 1, [{var, 1, 'X'}], [],
                                                  [{var, 1, 'X'}]}]}]),
    {module, Module} = code:load_binary(Module, "sprouts", Beam).

%% ---- here ----

in_peer(Cases) ->
    {timeout, 60, fun() ->
        {ok, Values} = run([{Source, Spec, Size} || {Source, Spec, Size, _} <- Cases]),
        [?assertEqual({Source, Expected}, {Source, Value})
         || {{Source, _, _, Expected}, Value} <- lists:zip(Cases, Values)]
    end}.

run(Cases) ->
    Subjects = [begin {ok, Subject} = ?S:new(Source, Spec), {Subject, Size} end
                || {Source, Spec, Size} <- Cases],
    fairnif_check_peer:with([], #{quiet => true}, fun(Peer) ->
        fairnif_check_peer:call(Peer, {?MODULE, values, [Subjects, 2000]}, 30000) end).

%% What the compiler says after that differs between its versions.
starts_with([[_ | _] | _] = OneOf, Text) ->
    lists:any(fun(Start) -> starts_with(Start, Text) =:= true end, OneOf) orelse {Text, OneOf};
starts_with(Start, Text) ->
    case lists:prefix(Start, Text) of
        true -> true;
        false -> {Text, is_not, Start}
    end.

refused(Source, Spec) ->
    {error, {usage, Text}} = ?S:new(Source, Spec),
    unicode:characters_to_list(Text).

called(Source) ->
    {ok, Subject} = ?S:new(Source, #{}),
    ?S:text(Subject).

%% What is said of a fun of this module, as it never was in any file.
said_of_fun_in(Module) ->
    Forms = [{attribute, 1, module, Module}, {attribute, 1, export, [{make, 0}]},
             {function, 1, make, 0,
              [{clause, 1, [], [], [{'fun', 1, {clauses, [{clause, 1, [], [],
                                                            [{atom, 1, other}]}]}}]}]}],
    {ok, Module, Beam} = compile:forms(Forms, []),
    {module, Module} = code:load_binary(Module, "memory", Beam),
    Fun = Module:make(),
    code:purge(Module),
    code:delete(Module),
    {ok, [{error, {usage, Text}}]} = run([{Fun, #{}, 1}]),
    code:purge(Module),
    Text.
