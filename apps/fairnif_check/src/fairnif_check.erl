%% The checker for test suites: is this function well-behaved? It measures as `bin/fairnif check'
%% does.
%%
%% A test never passes because the machine could not tell. If the machine is too noisy or too small,
%% the test is skipped and says so. A property that was waived is printed as well.
-module(fairnif_check).

-export([assert_well_behaved/1, assert_well_behaved/2, well_behaved_test_/2]).
%% For the checker's own tests.
-export([conclude/2, tests/2]).

-export_type([subject/0, options/0]).

%% Text of an Erlang expression with Bin, N and Init bound; a fun of no argument or of a binary;
%% a call.
-type subject() :: unicode:chardata() | fun(() -> term()) | fun((binary()) -> term())
                 | {module(), atom(), [term()]}.
-type options() :: #{sizes => [pos_integer()],      % bytes of Bin; default 1 KiB and 1 MiB
                     limit_ns => pos_integer(),     % longest block allowed; default 1,000,000
                     waive => #{atom() => unicode:chardata()},  % property => why that is accepted
                     strict => boolean(),           % every property decides
                     time_ms => pos_integer(),      % per measurement; default 1000
                     runs => pos_integer(),
                     timeout_ms => pos_integer(),   % for one call to return; default 30,000
                     init => unicode:chardata(),    % an expression, its value bound to Init
                     file => file:filename(),       % Bin is taken from it
                     flags => [string()],           % of the nodes that are measured
                     paths => [file:filename()],    % beside this node's code path
                     against => subject(),
                     beside => subject(),           % called meanwhile, by another process
                     progress => fairnif_check_progress:progress()}.
-type outcome() :: {ok, fairnif_check_run:result()}
                 | {error, {usage | failed | unsure, unicode:chardata()}}.

-define(OPTIONS, [sizes, limit_ns, waive, strict, time_ms, runs, timeout_ms, init, file, flags,
                  paths, against, beside, progress]).

%% @doc `assert_well_behaved(Subject, #{})'.
-spec assert_well_behaved(subject()) -> ok.
assert_well_behaved(Subject) ->
    assert_well_behaved(Subject, #{}).

%% @doc Measures the function in separate nodes, and returns `ok' if it is well-behaved. For a
%% Common Test case, and for an EUnit test with a time limit of minutes ({timeout, 300, ...}).
%%
%% Raises error `{not_well_behaved, Lines}' if it is not. The lines name each property that failed,
%% with its sentence and evidence, and are printed too. Throws `{skip, Text}' if this machine cannot
%% tell: Common Test counts the case as skipped, EUnit cannot skip inside a test and shows a failure
%% (use well_behaved_test_/2). Raises error `{badarg, Text}' for an invalid subject or option, and
%% `{check_failed, Text}' if the measurement itself failed.
%%
%% A fun runs in other nodes, so its module must be in a file on the code path, as loaded here. With
%% the default times it takes some ten seconds for each size. Other programs on the machine, such as
%% other tests in parallel, make skipping more likely.
-spec assert_well_behaved(subject(), options()) -> ok.
assert_well_behaved(Subject, Opts) ->
    conclude(run(Subject, Opts), fun print/1).

%% @doc The same as a generator of EUnit tests, one for each property that could be judged:
%%
%%     sum_test_() -> fairnif_check:well_behaved_test_({m, sum, [[1, 2]]}, #{}).
%%
%% It measures while EUnit collects the tests, when no time limit applies. A property that this
%% machine cannot judge, or that was waived, is printed and does not become a test, so it is not
%% counted as passed. Errors are those of assert_well_behaved/2, but instead of `{skip, _}' it
%% returns [].
-spec well_behaved_test_(subject(), options()) ->
          [{unicode:chardata(), fun(() -> ok)}].
well_behaved_test_(Subject, Opts) ->
    tests(run(Subject, Opts), fun print/1).

%% ---- outcomes ----

%% Not through the group leader: EUnit drops what a test that passed has printed.
print(Text) ->
    io:format(user, "~n~ts~n", [Text]).

%% @private Say gets the lines that must not go unseen.
-spec conclude(outcome(), fun((string()) -> term())) -> ok.
conclude({ok, #{exit := 0} = Result}, Say) ->
    _ = [Say(described(V, Result)) || V <- verdicts([waived], Result)],
    ok;
conclude({ok, #{exit := 1} = Result}, _) ->
    fail(Result, verdicts([fail], Result));
conclude({ok, #{exit := 3, expression := Expression} = Result}, Say) ->
    skip(Expression, lists:join("; ", [S || #{sentence := S} <- verdicts([unsure], Result)]),
         Say);
conclude({error, {unsure, Text}}, Say) ->
    skip("the function", Text, Say);
conclude({error, {usage, Text}}, _) ->
    error({badarg, flat(Text)});
conclude({error, {failed, Text}}, _) ->
    error({check_failed, flat(Text)}).

-spec skip(unicode:chardata(), unicode:chardata(), fun((string()) -> term())) -> no_return().
skip(Expression, Text, Say) ->
    Skipped = flat(["this machine cannot say whether ", Expression, " is well-behaved: ", Text]),
    _ = Say("SKIPPED, not passed: " ++ Skipped),
    throw({skip, Skipped}).

%% @private
-spec tests(outcome(), fun((string()) -> term())) -> [{unicode:chardata(), fun(() -> ok)}].
tests({ok, #{expression := Expression} = Result}, Say) ->
    _ = [Say(described(V, Result)) || V <- verdicts([waived, unsure], Result)],
    [{flat([Expression, ": ", title(V)]),
      fun() ->
              case Status of
                  fail -> fail(Result, [V]);
                  _ -> ok
              end
      end} || #{status := Status} = V <- verdicts([pass, warn, fail], Result)];
tests(Outcome, Say) ->
    try conclude(Outcome, Say) of
        ok -> []
    catch
        throw:{skip, _} -> []
    end.

verdicts(Statuses, #{subjects := Subjects}) ->
    [V || #{role := subject, verdicts := Verdicts} <- Subjects,
          #{status := Status} = V <- Verdicts, lists:member(Status, Statuses)].

%% The reason is a list of texts, and not a map: EUnit and Common Test print it so that each text
%% stands on a line of its own. On standard output, which both keep with the case, nothing is cut.
-spec fail(#{atom() => term()}, [map()]) -> no_return().
fail(#{expression := Expression}, Verdicts) ->
    Lines = [flat([Expression, " is not well-behaved"])
             | lists:append([[flat([title(V), place(V), ": ", Sentence]) | evidence(V)]
                             || #{sentence := Sentence} = V <- Verdicts])],
    io:format("~ts", [[[L, $\n] || L <- Lines]]),
    error({not_well_behaved, Lines}).

described(#{status := Status, property := Property, sentence := Sentence} = Verdict,
          #{expression := Expression, options := Options}) ->
    Word = case {Status, Options} of
               {waived, #{waive := #{Property := Reason}}} -> ["WAIVED (", Reason, ")"];
               {unsure, _} -> "SKIPPED, not passed"
           end,
    flat([Word, ": ", Expression, ": ", title(Verdict), place(Verdict), ": ", Sentence]).

title(#{property := Property}) -> fairnif_check_verdict:title(Property).

place(#{size := undefined}) -> "";
place(#{size := Size}) -> [" at ", fairnif_check_table:count(Size), " bytes"].

evidence(#{evidence := Evidence}) when map_size(Evidence) =:= 0 -> [];
evidence(#{evidence := Evidence}) ->
    Shown = [case V of
                 Text when is_binary(Text) -> [atom_to_list(K), " ", Text];
                 Figure -> io_lib:format("~s ~0tp", [K, Figure])
             end || {K, V} <- lists:sort(maps:to_list(Evidence)), V =/= undefined],
    [flat(["    ", lists:join(", ", Shown)])].

flat(Text) ->
    unicode:characters_to_list(Text).

%% ---- what was asked ----

run(Subject, Opts) ->
    ok = options(Opts),
    ok = subject(Subject),
    fairnif_check_run:run(Subject, Opts).

options(Opts) when is_map(Opts) ->
    case maps:keys(Opts) -- ?OPTIONS of
        [] -> ok;
        [Key | _] -> wrong("~0tp is not an option; the options are ~0p", [Key, ?OPTIONS])
    end,
    waivers(maps:get(waive, Opts, #{})),
    _ = [subject(maps:get(Key, Opts)) || Key <- [against, beside], is_map_key(Key, Opts)],
    ok;
options(_) ->
    wrong("the options are a map", []).

%% A waiver without a reason is a finding that is never looked at again.
waivers(Waivers) when is_map(Waivers) ->
    Known = [P || #{property := P} <- fairnif_check_verdict:properties()],
    _ = [begin
             lists:member(Property, Known)
                 orelse wrong("~0tp is not a property that can be waived; these are: ~0p",
                              [Property, Known]),
             is_reason(Reason)
                 orelse wrong("waiving `~s' needs a reason, a text that says why it is accepted",
                              [Property])
         end || {Property, Reason} <- maps:to_list(Waivers)],
    ok;
waivers(_) ->
    wrong("waive is a map of properties to reasons", []).

is_reason(Reason) ->
    try string:trim(unicode:characters_to_list(Reason)) of
        Text -> is_list(Text) andalso Text =/= ""
    catch
        error:_ -> false
    end.

subject(Fun) when is_function(Fun, 0); is_function(Fun, 1) ->
    {module, Module} = erlang:fun_info(Fun, module),
    case {erlang:fun_info(Fun, type), Module} of
        {{type, external}, _} ->
            loadable(Module);
        {_, erl_eval} ->
            wrong("a fun made in a shell would measure the shell's interpreter; give an "
                  "expression as text, or {M, F, A}", []);
        _ ->
            ok = loadable(Module),
            same_as_file(Module)
    end;
subject({M, F, A}) when is_atom(M), is_atom(F), is_list(A) ->
    loadable(M);
subject(Fun) when is_function(Fun) ->
    wrong("a fun takes nothing or a binary; ~0p takes more", [Fun]);
subject(Text) when is_binary(Text); is_list(Text) ->
    ok;                                     % the check says where it is wrong
subject(Other) ->
    wrong("~0tP is nothing that can be checked: give an expression as text, a fun of no argument "
          "or of a binary, or {M, F, A}", [Other, 12]).

%% The nodes that are measured load modules from files, on the code path of this node.
loadable(Module) ->
    case code:which(Module) =:= preloaded orelse code:get_object_code(Module) of
        error ->
            wrong("the module ~s is in no file on the code path: nodes that measure it cannot "
                  "load it", [Module]);
        _ ->
            ok
    end.

%% A local fun is known by the checksum of its module, too.
same_as_file(Module) ->
    {Module, Beam, File} = code:get_object_code(Module),
    {ok, {Module, OnDisk}} = beam_lib:md5(Beam),
    case Module:module_info(md5) of
        OnDisk ->
            ok;
        _ ->
            wrong("a fun of ~s cannot be run in another node: ~ts is not what is loaded here "
                  "(cover-compiled, or compiled anew); give {M, F, A}", [Module, File])
    end.

-spec wrong(io:format(), [term()]) -> no_return().
wrong(Format, Args) ->
    error({badarg, flat(io_lib:format(Format, Args))}).
