%% The Levenshtein distance, in Erlang and in each form of native code: how many calls a second one
%% process makes, and how late others are while there are as many endless callers as logical
%% processors.
%%
%% The plain NIF leaves no scheduler to anybody then: its node never answers, and that is its row.
-module(fairnif_exp_levenshtein).

-behaviour(fairnif_experiment).

-export([experiment/0]).

-import(fairnif_exp, [in_peer/3, shown/2]).

%% Of the binaries of the endless callers, as published.
-define(JITTER_BYTES, 10000).
-define(RATES_MS, 300000).
%% A node that yields answers in that time after its sleeps, on a busy machine too.
-define(PATIENCE_MS, 60000).
%% Samples of each form and length, at most.
-define(BATCHES, 100).

%% In the order of the tables, with what was published: calls per second, of an input of which no
%% length was given, and how late the process that sleeps 1000 ms was.
forms() ->
    [{erlang_levenshtein, "pure Erlang", undefined, "3.2 to 4.9 ms"},
     {unfair_levenshtein, "plain NIF", 209975, "the shell is dead"},
     {yielding_levenshtein, "yielding", 149318, "2.1 to 3.5 ms"},
     {dirty_levenshtein, "dirty", undefined, "-"},
     {threaded_levenshtein, "threaded", undefined, "-"},
     {levenshtein, "auto", undefined, "-"}].

%% lengths: bytes; time: of all forms with one length, ms; sleeps: how long a sleep and how long all
%% of them, ms; patience: with the plain NIF, of which no answer is expected, ms.
scale(quick) ->
    #{lengths => [10, 100], time => 180, sleeps => [{100, 150}], patience => 2000};
scale(normal) ->
    #{lengths => [10, 20, 36, 60, 100, 300, 1000, 10000], time => 2000,
      sleeps => [{1000, 4000}, {1, 1500}], patience => 4000};
scale(full) ->
    #{lengths => [10, 20, 36, 60, 100, 300, 1000, 3000, 10000], time => 13000,
      sleeps => [{1000, 60000}, {1, 20000}], patience => 5000}.

%% @doc Measures both; about a minute, `full' a quarter of an hour.
-spec experiment() -> fairnif_experiment:experiment().
experiment() ->
    #{name => levenshtein, needs => [example()],
      description => "the Levenshtein distance in six forms: calls a second, and who is late",
      %% One per length; one per form, and idle.
      steps => fun(Opts) ->
                       #{lengths := Lengths} = scale(maps:get(scale, Opts, normal)),
                       length(Lengths) + length(forms()) + 1
               end,
      measure => fun measure/3, peer => fun peer/1, format => fun format/1}.

%% Called by this name alone.
-spec example() -> module().
example() -> levenshtein.

measure(Name, _, Step) ->
    #{lengths := Lengths, time := Ms} = Scale = scale(Name),
    Forms = forms(),
    Rates = [begin
                 Step(io_lib:format("calls a second, ~b bytes", [Length])),
                 rates(Length, Ms)
             end || Length <- Lengths],
    Jitter = [Row || {Form, Title, _, _} <- [{idle, "nothing", none, none} | Forms],
                     ok <- [Step(["who is late beside: ", Title])],
                     Row <- jitter(Form, Title, Scale)],
    fairnif_exp:result(
      Rates ++ Jitter,
      #{units => <<"rates in calls per second, lateness in ns">>,
        published => maps:from_list([{Form, #{per_second => Rate}}
                                     || {Form, _, Rate, _} <- Forms, Rate =/= undefined]),
        published_late => maps:from_list([{Form, list_to_binary(Late)}
                                          || {Form, _, _, Late} <- Forms, Late =/= "-"]),
        rates => Rates, jitter => Jitter, jitter_bytes => ?JITTER_BYTES}).

rates(Length, Ms) ->
    case in_peer([], {?MODULE, {rates, [F || {F, _, _, _} <- forms()], Length, Ms}}, ?RATES_MS) of
        #{value := Rates} = Row -> (maps:remove(value, Row))#{length => Length, forms => Rates};
        Failed -> Failed#{length => Length}
    end.

%% A node of its own for each sleeper: one would keep the other's schedulers awake.
jitter(Form, Title, #{sleeps := Sleeps, patience := Patience}) ->
    %% What it does to a node is what is to be shown.
    MayTimeOut = Form =:= unfair_levenshtein,
    PatienceMs = case MayTimeOut of true -> Patience; false -> ?PATIENCE_MS end,
    [(lateness(in_peer([], {?MODULE, {jitter, Form, #{sleep_ms => SleepMs, time_ms => TimeMs}}},
                       TimeMs + PatienceMs)))
         #{form => Form, title => list_to_binary(Title), sleep_ms => SleepMs,
           may_time_out => MayTimeOut}
     || {SleepMs, TimeMs} <- Sleeps].

lateness(#{value := #{samples := [_ | _] = Samples} = Delay} = Row) ->
    maps:merge(maps:remove(value, Row), Delay#{least => lists:min(Samples)});
lateness(Error) ->
    Error.

%% ---- in the peers ----

%% Calls per second of each form on two binaries of Length random bytes, one process calling, the
%% forms in turns.  All give the same answer, or it is an error `{differ, ...}'.
peer({rates, Forms, Length, Ms}) ->
    {A, B} = {rand:bytes(Length), rand:bytes(Length)},
    Calls = [fun() -> call(Form, A, B) end || Form <- Forms],
    Answers = [Call() || Call <- Calls],
    case lists:usort(Answers) of
        [_] -> ok;
        _ -> error({differ, lists:zip(Forms, Answers)})
    end,
    Times = fairnif_check_time:measure(Calls, #{time_ms => Ms, runs => ?BATCHES}),
    maps:from_list([{Form, #{per_second => 1.0e9 / Median, spread => Spread,
                             samples => [1.0e9 / Ns || Ns <- Samples]}}
                    || {Form, #{time := #{median := Median, spread := Spread,
                                          samples := Samples}}} <- lists:zip(Forms, Times)]);
%% How late a sleeper is beside endless callers of a form, as many as there are schedulers, on a
%% binary of zeros and one of ones; `idle' is beside nothing.  Does not return where the callers
%% leave no scheduler to anybody.
peer({jitter, idle, Opts}) ->
    fairnif_check_delay:measure(Opts);
peer({jitter, Form, Opts}) ->
    {A, B} = {binary:copy(<<0>>, ?JITTER_BYTES), binary:copy(<<1>>, ?JITTER_BYTES)},
    _ = code:ensure_loaded(example()),
    Caller = fun() -> fairnif_exp:forever(fun() -> call(Form, A, B) end) end,
    fairnif_check_delay:beside(lists:duplicate(erlang:system_info(schedulers_online), Caller),
                               Opts).

call(Form, A, B) ->
    Example = example(),
    Example:Form(A, B).

%% ---- the tables ----

format(#{rates := Rates, jitter := Jitter, jitter_bytes := Bytes}) ->
    Published = maps:from_list([{Form, #{per_second => Rate}} || {Form, _, Rate, _} <- forms()]),
    [fairnif_exp:table(
       [{"bytes", right, {length, count}}
        | [{[Title, "\ncalls/s"], right, {[forms, Form, per_second], fun rate/1}}
           || {Form, Title, _, _} <- forms()]]
       ++ [{"yielding /\nplain", right,
            {forms, fun(#{yielding_levenshtein := #{per_second := A},
                          unfair_levenshtein := #{per_second := B}}) ->
                            float_to_list(A / B, [{decimals, 2}])
                    end}}],
       Rates ++ [#{length => "published", forms => Published}]),
     published_length(Rates, Published),
     fairnif_exp:footnotes(fun(#{length := L}) -> [integer_to_list(L), " bytes"] end, Rates),
     $\n,
     fairnif_exp:table(
       [{"endless callers", left, {title, text}}, {"sleeps", right, {sleep, text}},
        {"times", right, {count, count}}, {"late:\nleast", right, {least, ns}},
        {"median", right, {p50, ns}}, {"p99", right, {p99, ns}}, {"most", right, {max, ns}},
        {"published", right, {late, text}}],
       [jitter_row(J) || J <- Jitter]),
     "As many callers as logical processors, on ", shown(count, Bytes),
     " bytes of 0 against as many of 1.\n"
     "Timers have ticks of a millisecond: compare with what is late beside nothing.\n",
     fairnif_exp:footnotes(fun(#{title := T, sleep_ms := Ms}) ->
                                   io_lib:format("~ts at ~b ms", [T, Ms])
                           end, Jitter),
     conclusion(Jitter)].

%% Of less than ten the digits behind the point matter.
rate(Rate) when Rate < 10 -> float_to_list(float(Rate), [{decimals, 2}]);
rate(Rate) -> shown(count, Rate).

%% The published figures name no length: which one would it be here?
published_length(Rates, #{unfair_levenshtein := #{per_second := Published}}) ->
    Points = [{Length, 1 / Rate}
              || #{length := Length, forms := #{unfair_levenshtein := #{per_second := Rate}}}
                     <- Rates],
    ["Random bytes, one process calling.  Published without a length",
     case Points =/= [] andalso fairnif_check_stats:crossing(1 / Published, Points) of
         Length when is_float(Length) ->
             io_lib:format("; the plain NIF makes as many calls here with about ~b bytes",
                           [round(Length)]);
         _ -> ""
     end, ".\n"].

jitter_row(#{form := Form, sleep_ms := Ms} = Row) ->
    Late = [L || {F, _, _, L} <- forms(), F =:= Form, Ms =:= 1000],
    Shown = Row#{sleep => [integer_to_list(Ms), " ms"], late => hd(Late ++ [undefined])},
    case Row of
        #{error := Error} -> (maps:remove(error, Shown))#{max => string:slice(Error, 0, 30)};
        _ -> Shown
    end.

%% Written from the figures: of the longer sleeps, which come first.
conclusion(Jitter) ->
    Said = [case fairnif_exp:find(#{form => Form}, Jitter) of
                #{p50 := Ns} -> shown(ns, Ns);
                #{error := Error} when Form =:= unfair_levenshtein -> Error;
                _ -> none
            end || Form <- [idle, levenshtein, unfair_levenshtein]],
    [io_lib:format("~nWhat to see: beside nothing the sleeper is ~ts late (median), beside auto "
                   "~ts, beside~nthe plain NIF: ~ts.~n", Said) || not lists:member(none, Said)].
