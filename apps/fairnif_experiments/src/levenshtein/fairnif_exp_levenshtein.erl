%% The Levenshtein distance, in Erlang and in each form of native code: how many
%% calls a second one process makes, and how late others are while there are as
%% many endless callers as logical processors.
%%
%% The plain NIF leaves no scheduler to anybody then: its node never answers, and
%% that is its row.
-module(fairnif_exp_levenshtein).

-behaviour(fairnif_experiment).

-export([about/0, steps/1, run/1, format/1]).

-define(PEER, fairnif_exp_levenshtein_peer).
%% Of the binaries of the endless callers, as published.
-define(JITTER_BYTES, 10000).
-define(RATES_MS, 300000).
%% A node that gives way answers in that time after its sleeps, on a busy machine
%% too.
-define(PATIENCE_MS, 60000).

%% Calls per second, of an input of which no length was given.
published() ->
    #{yielding_levenshtein => 149318, unfair_levenshtein => 209975}.

%% How late the process that sleeps 1000 ms was.
published_jitter() ->
    #{erlang_levenshtein => "3.2 to 4.9 ms", yielding_levenshtein => "2.1 to 3.5 ms",
      unfair_levenshtein => "the shell is dead"}.

%% In the order of the tables.
forms() ->
    [{erlang_levenshtein, "pure Erlang"}, {unfair_levenshtein, "plain NIF"},
     {yielding_levenshtein, "yielding"}, {dirty_levenshtein, "dirty"},
     {threaded_levenshtein, "threaded"}, {levenshtein, "auto"}].

%% lengths: bytes; rounds: {Ms, Count} for each length and form; sleeps: how
%% long a sleep and how long all of them, ms; patience: with the plain NIF, of
%% which no answer is expected, ms.
scale(quick) ->
    #{lengths => [10, 100], rounds => {30, 1}, sleeps => [{100, 150}], patience => 2000};
scale(normal) ->
    #{lengths => [10, 20, 36, 60, 100, 300, 1000, 10000], rounds => {60, 5},
      sleeps => [{1000, 4000}, {1, 1500}], patience => 4000};
scale(full) ->
    #{lengths => [10, 20, 36, 60, 100, 300, 1000, 3000, 10000], rounds => {200, 11},
      sleeps => [{1000, 60000}, {1, 20000}], patience => 5000}.

%% @doc Its name, and one line for the list of experiments.
-spec about() -> fairnif_experiment:about().
about() ->
    #{name => levenshtein,
      description => "the Levenshtein distance in six forms: calls a second, and who is late"}.

%% @doc One per length; one per form, and idle.
-spec steps(fairnif_experiment:options()) -> pos_integer().
steps(Opts) ->
    #{lengths := Lengths} = scale(fairnif_exp:scale(Opts)),
    length(Lengths) + length(forms()) + 1.

%% @doc Measures both; about a minute, `full' a quarter of an hour.
-spec run(fairnif_experiment:options()) -> fairnif_experiment:outcome().
run(Opts) ->
    fairnif_exp:needs([?PEER:example()], fun() -> measured(Opts) end).

measured(Opts) ->
    Progress = fairnif_exp:progress(Opts),
    Scale = scale(fairnif_exp:scale(Opts)),
    Rates = [begin
                 fairnif_lab_progress:step(Progress, io_lib:format("calls a second, ~b bytes",
                                                                   [Length])),
                 rates(Length, Scale)
             end || Length <- maps:get(lengths, Scale)],
    Jitter = lists:append(
               [begin
                    fairnif_lab_progress:step(Progress, ["who is late beside: ", Title]),
                    jitter(Form, Title, Scale)
                end || {Form, Title} <- [{idle, "nothing"} | forms()]]),
    fairnif_lab_progress:stop(Progress),
    {ok, fairnif_exp:result(
           Rates ++ Jitter,
           #{units => <<"rates in calls per second, lateness in ns">>,
             published => maps:map(fun(_, Rate) -> #{per_second => Rate} end, published()),
             published_late => maps:map(fun(_, Late) -> list_to_binary(Late) end,
                                        published_jitter()),
             rates => Rates, jitter => Jitter, jitter_bytes => ?JITTER_BYTES})}.

%% ---- running ----

rates(Length, #{rounds := Rounds}) ->
    Forms = [Form || {Form, _} <- forms()],
    Row = fairnif_exp:in_peer([], {?PEER, rates, [Forms, Length, Rounds]}, ?RATES_MS),
    case Row of
        #{value := Samples} ->
            (maps:remove(value, Row))#{
              length => Length,
              forms => maps:from_list(
                         [{Form, #{per_second => fairnif_lab_stats:median(Rates),
                                   spread => fairnif_lab_stats:spread(Rates),
                                   samples => Rates}} || {Form, Rates} <- Samples])};
        #{error := _} ->
            Row#{length => Length}
    end.

%% A node of its own for each sleeper: one would keep the other's schedulers
%% awake.
jitter(Form, Title, #{sleeps := Sleeps, patience := Patience}) ->
    %% What it does to a node is what is to be shown.
    MayTimeOut = Form =:= unfair_levenshtein,
    PatienceMs = case MayTimeOut of true -> Patience; false -> ?PATIENCE_MS end,
    [begin
         Row = fairnif_exp:in_peer(
                 [], {?PEER, jitter, [Form, ?JITTER_BYTES, #{sleep_ms => SleepMs,
                                                             time_ms => TimeMs}]},
                 TimeMs + PatienceMs),
         lateness(Row#{form => Form, title => list_to_binary(Title), sleep_ms => SleepMs,
                       may_time_out => MayTimeOut})
     end || {SleepMs, TimeMs} <- Sleeps].

lateness(#{value := #{samples := [_ | _] = Samples} = Delay} = Row) ->
    maps:merge(maps:remove(value, Row), Delay#{least => lists:min(Samples)});
lateness(Error) ->
    Error.

%% ---- the tables ----

%% @doc Both tables, and what to see in them.
-spec format(fairnif_experiment:result()) -> unicode:chardata().
format(#{rates := Rates, jitter := Jitter, jitter_bytes := Bytes}) ->
    [fairnif_lab_table:render(
       [{"bytes", right} | [{[Title, "\ncalls/s"], right} || {_, Title} <- forms()]]
       ++ [{"yielding /\nplain", right}],
       [rate_cells(R) || R <- Rates] ++ [published_rates()]),
     published_length(Rates),
     fairnif_exp:footnotes(fun(#{length := L}) -> [integer_to_list(L), " bytes"] end, Rates),
     $\n,
     fairnif_lab_table:render(
       [{"endless callers", left}, {"sleeps", right}, {"times", right}, {"late:\nleast", right},
        {"median", right}, {"p99", right}, {"most", right}, {"published", right}],
       [jitter_cells(J) || J <- Jitter]),
     "As many callers as logical processors, on ", fairnif_lab_table:count(Bytes),
     " bytes of 0 against as many of 1.\n"
     "Timers have ticks of a millisecond: compare with what is late beside nothing.\n",
     fairnif_exp:footnotes(fun(#{title := T, sleep_ms := Ms}) ->
                                       io_lib:format("~ts at ~b ms", [T, Ms])
                               end, Jitter),
     conclusion(Jitter)].

rate_cells(#{length := Length, error := _}) ->
    [fairnif_lab_table:count(Length) | ["failed" || _ <- forms()]] ++ [""];
rate_cells(#{length := Length, forms := Forms}) ->
    [fairnif_lab_table:count(Length)
     | [rate(rate_of(Form, Forms)) || {Form, _} <- forms()]]
        ++ [ratio(rate_of(yielding_levenshtein, Forms), rate_of(unfair_levenshtein, Forms))].

published_rates() ->
    #{yielding_levenshtein := Yielding, unfair_levenshtein := Unfair} = Published = published(),
    ["published" | [fairnif_lab_table:count(maps:get(Form, Published, undefined))
                    || {Form, _} <- forms()]] ++ [ratio(Yielding, Unfair)].

rate_of(Form, Forms) ->
    #{per_second := Rate} = maps:get(Form, Forms),
    Rate.

%% Of less than ten the digits behind the point matter.
rate(Rate) when Rate < 10 -> float_to_list(float(Rate), [{decimals, 2}]);
rate(Rate) -> fairnif_lab_table:count(round(Rate)).

ratio(A, B) ->
    float_to_list(A / B, [{decimals, 2}]).

%% The published figures name no length: which one would it be here?
published_length(Rates) ->
    #{unfair_levenshtein := Unfair} = published(),
    Points = [{Length, 1 / rate_of(unfair_levenshtein, Forms)}
              || #{length := Length, forms := Forms} <- Rates],
    ["Random bytes, one process calling.  Published without a length",
     case Points =/= [] andalso fairnif_lab_stats:crossing(1 / Unfair, Points) of
         Length when is_float(Length) ->
             io_lib:format("; the plain NIF makes as many calls here with about ~b bytes",
                           [round(Length)]);
         _ -> ""
     end, ".\n"].

jitter_cells(#{title := Title, sleep_ms := SleepMs, form := Form} = Row) ->
    [Title, [integer_to_list(SleepMs), " ms"]]
        ++ case Row of
               #{error := Error} ->
                   ["-", "-", "-", "-", string:slice(Error, 0, 30)];
               #{count := Count, least := Least, p50 := P50, p99 := P99, max := Max} ->
                   [fairnif_lab_table:count(Count)
                    | [fairnif_lab_table:duration(Ns) || Ns <- [Least, P50, P99, Max]]]
           end
        ++ [case SleepMs of
                1000 -> maps:get(Form, published_jitter(), "-");
                _ -> "-"
            end].

%% Written from the figures: of the longer sleeps, which come first.
conclusion(Jitter) ->
    Find = fun(Form) -> [J || #{form := F} = J <- Jitter, F =:= Form] end,
    case {Find(idle), Find(unfair_levenshtein), Find(levenshtein)} of
        {[#{p50 := Idle} | _], [Plain | _], [#{p50 := Auto} | _]} ->
            io_lib:format("~nWhat to see: beside nothing the sleeper is ~ts late (median), beside "
                          "auto ~ts, beside~nthe plain NIF: ~ts.~n",
                          [fairnif_lab_table:duration(Idle), fairnif_lab_table:duration(Auto),
                           case Plain of
                               #{error := Error} -> Error;
                               #{p50 := Ns} -> fairnif_lab_table:duration(Ns)
                           end]);
        _ ->
            ""
    end.
