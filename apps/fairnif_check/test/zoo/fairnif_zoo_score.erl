%% How right the verdicts are: what was said of the zoo's functions against what is known of them.
%% Pure: nothing here measures or prints.
-module(fairnif_zoo_score).

-export([observed/1, judge/3, score/1, wrong/1, format/1]).

-export_type([finding/0, kind/0]).

-type status() :: fairnif_zoo_table:status() | unsure | waived | missing.
%% right; a false alarm; missed; no opinion; or warn for fail (a property that decides or does not).
-type kind() :: right | false_alarm | missed | undecided | severity.
-type finding() :: #{name := atom(), run := pos_integer(),
                     property := fairnif_zoo_table:property(), kind := kind(),
                     expected := fairnif_zoo_table:status(), observed := status(),
                     sentence := binary(), evidence := map()}.

%% @doc The verdicts on the subject, by property, from what fairnif_check_run:run/2 answered.
-spec observed({ok, map()} | {error, {atom(), unicode:chardata()}}) ->
          #{fairnif_zoo_table:property() => map()}.
observed({ok, #{subjects := Subjects}}) ->
    [Verdicts] = [V || #{role := subject, verdicts := V} <- Subjects],
    maps:from_list([{Property, Verdict} || #{property := Property} = Verdict <- Verdicts]);
observed({error, {Kind, Text}}) ->
    Sentence = unicode:characters_to_binary([atom_to_list(Kind), ": ", Text]),
    maps:from_list([{Property, #{property => Property, status => missing, sentence => Sentence,
                                 evidence => #{}}}
                    || Property <- fairnif_zoo_table:properties()]).

%% @doc One finding for each property of which something is expected.
-spec judge(fairnif_zoo_table:row(), pos_integer(),
            #{fairnif_zoo_table:property() => map()}) -> [finding()].
judge(#{name := Name, expected := Expected}, Run, Observed) ->
    [begin
         Verdict = maps:get(Property, Observed,
                            #{status => missing, sentence => <<"no verdict">>, evidence => #{}}),
         #{status := Status, sentence := Sentence, evidence := Evidence} = Verdict,
         #{name => Name, run => Run, property => Property, expected => Right, observed => Status,
           kind => kind(Right, Status), sentence => Sentence, evidence => Evidence}
     end || Property <- fairnif_zoo_table:properties(),
            Right <- [maps:get(Property, Expected)], is_atom(Right)].

kind(Status, Status) -> right;
kind(_, unsure) -> undecided;
kind(pass, _) -> false_alarm;
kind(_, Status) when Status =:= warn; Status =:= fail -> severity;
kind(_, _) -> missed.

%% @doc By property: how many findings of each kind, and from them precision (of the alarms, the
%% part that was right) and recall (of what is bad, the part that was found; what was left
%% undecided was not found). `undefined' where there was none.
-spec score([finding()]) -> [#{atom() => term()}].
score(Findings) ->
    [score(Property, [F || #{property := P} = F <- Findings, P =:= Property])
     || Property <- fairnif_zoo_table:properties()].

score(Property, Findings) ->
    Count = fun(Test) -> length(lists:filter(Test, Findings)) end,
    Bad = Count(fun(#{expected := E}) -> E =/= pass end),
    Alarms = Count(fun(#{observed := O}) -> O =:= warn orelse O =:= fail end),
    Found = Count(fun(#{expected := E, observed := O}) ->
                          E =/= pass andalso (O =:= warn orelse O =:= fail)
                  end),
    #{property => Property, count => length(Findings), bad => Bad,
      wrong => length(wrong(Findings)),
      undecided => Count(fun(#{kind := K}) -> K =:= undecided end),
      precision => ratio(Found, Alarms), recall => ratio(Found, Bad)}.

ratio(_, 0) -> undefined;
ratio(Part, Whole) -> Part / Whole.

%% @doc Those that are wrong: neither right nor undecided.
-spec wrong([finding()]) -> [finding()].
wrong(Findings) ->
    [F || #{kind := K} = F <- Findings, K =/= right, K =/= undecided].

%% @doc The table, then each wrong verdict with its sentence and evidence, then the undecided ones.
-spec format([finding()]) -> unicode:chardata().
format(Findings) ->
    Columns = [{"property", left}, {"verdicts", right}, {"of bad ones", right}, {"wrong", right},
               {"undecided", right}, {"precision", right}, {"recall", right}],
    Rows = [[atom_to_list(P), integer_to_list(N), integer_to_list(B), integer_to_list(W),
             integer_to_list(U), fairnif_check_table:percent(Precision),
             fairnif_check_table:percent(Recall)]
            || #{property := P, count := N, bad := B, wrong := W, undecided := U,
                 precision := Precision, recall := Recall} <- score(Findings)],
    [fairnif_check_table:render(Columns, Rows),
     listed("Wrong", wrong(Findings)),
     listed("Undecided", [F || #{kind := undecided} = F <- Findings])].

listed(Title, []) ->
    [Title, ": none\n"];
listed(Title, Findings) ->
    [Title, ":\n", lists:map(fun line/1, Findings)].

line(#{name := Name, run := Run, property := Property, expected := Expected, observed := Observed,
       kind := Kind, sentence := Sentence, evidence := Evidence}) ->
    io_lib:format("  ~s, run ~b, ~s: ~s, should be ~s (~s)~n    ~ts~n    ~0tp~n",
                  [Name, Run, Property, Observed, Expected, Kind, Sentence, Evidence]).
