%% What the experiment `collapse' shows: its table, with the published figures
%% beside ours, and a sentence for each sequence of runs.  Nothing here measures.
-module(fairnif_exp_collapse_table).

-export([format/1, published/0]).

%% Processors on which a collapse was published.
-define(ENOUGH, 8).

%% @doc What Scott Lystig Fritchie published (github.com/slfritchie/nifwait,
%% branch md5), for machines with 16 and with 8 schedulers: seconds of a process,
%% hashes a scheduler did in 5 s, per cent in use of the schedulers online.
-spec published() -> [#{atom() => term()}].
published() ->
    [#{what => <<"R15B01">>, shortest => 2.621872, longest => 126.171889},
     #{what => <<"R16B">>, shortest => 2.694947, longest => 139.574922},
     #{what => <<"R16B">>, online => <<"8 of 16">>, runs => <<"after 8">>,
       in_use => <<"one 100 %, seven 18 to 20 %">>, collapsed => true},
     #{what => <<"R16B, worst">>, online => <<"half">>,
       in_use => <<"one 100 %, others under 5 %">>, collapsed => true},
     #{what => <<"on 8">>, online => <<"8 of 8">>, per_5s => <<"about 2,000">>,
       collapsed => false}].

published_cells(Row) ->
    Text = fun(Key) -> maps:get(Key, Row, "") end,
    [["published: ", Text(what)], Text(online), Text(runs)]
        ++ case Row of
               #{shortest := S, longest := L} ->
                   [io_lib:format("~.2f s", [S]), io_lib:format("~.2f s", [L]),
                    [times(L / S), "x"]];
               _ ->
                   ["", "", ""]
           end
        ++ [Text(in_use), Text(per_5s),
            case Row of
                #{collapsed := Yes} -> collapsed([Yes]);
                _ -> ""
            end].

%% @doc The text for a person.
-spec format(fairnif_experiment:result()) -> unicode:chardata().
format(#{rows := Rows} = Result) ->
    [fairnif_lab_table:render(columns(),
                              lists:append([cells(R) || R <- Rows])
                              ++ [published_cells(P) || P <- published()]),
     footnotes(Result),
     [sentence(R) || R <- Rows]].

columns() ->
    [{"work", left}, {"schedulers\nonline", right}, {"runs", right},
     {"a process:\nshortest", right}, {"\nlongest", right},
     {"longest /\nshortest", right}, {"in use, of\nthose online", right},
     {"jobs a scheduler\ndoes in 5 s", right}, {"collapsed", right}].

cells(#{error := _} = Row) ->
    [[title(Row), "failed" | ["" || _ <- lists:seq(3, length(columns()))]]];
cells(#{runs := Runs} = Row) ->
    [phase(Row, [R || #{phase := P} = R <- Runs, P =:= Phase])
     || Phase <- [all, half]].

phase(#{runs := All} = Row, [#{online := Online} | _] = Runs) ->
    Schedulers = lists:max([O || #{online := O} <- All]),
    [title(Row), io_lib:format("~b of ~b", [Online, Schedulers]),
     case Runs of
         [#{phase := half}] -> io_lib:format("after ~b", [length(All) - 1]);
         _ -> integer_to_list(length(Runs))
     end,
     seconds(lists:min([S || #{shortest := S} <- Runs])),
     seconds(lists:max([L || #{longest := L} <- Runs])),
     range([F || #{fairness := F} <- Runs], "x", fun times/1),
     range([Share || #{in_use := U} <- Runs, Share <- lists:sublist(U, Online)],
           " %", fun(X) -> integer_to_list(round(X)) end),
     range([J || #{per_5s := D} <- Runs, J <- lists:sublist(D, Online)],
           "", fun fairnif_lab_table:count/1),
     collapsed([C || #{collapsed := C} <- Runs])].

title(#{work := Work, variant := Variant}) ->
    [Work, ", ", Variant].

seconds(S) ->
    fairnif_lab_table:duration(S * 1.0e9).

times(X) when X >= 9.95 -> integer_to_list(round(X));
times(X) -> float_to_list(X, [{decimals, 1}]).

range(Values, Unit, Text) ->
    case {Text(lists:min(Values)), Text(lists:max(Values))} of
        {Same, Same} -> [Same, Unit];
        {Least, Most} -> [Least, " to ", Most, Unit]
    end.

collapsed(Answers) ->
    case {lists:member(true, Answers), lists:member(false, Answers)} of
        {true, _} -> "yes";
        {false, true} -> "no";
        {false, false} -> "can't say"
    end.

footnotes(#{spec := #{n := N, w := W, r := R, bw := BW, gap := Gap,
                      schedulers := S}, cores := Cores, rows := Rows} = Result) ->
    [io_lib:format(
       "~b processes, spawned on one scheduler; each does md5 of ~s, or other work~n"
       "that takes as long (~ts), ~b times, with ~b rounds of Erlang after each.~n"
       "Runs ~ts apart; +scl false.  Collapsed: a scheduler was in use for less than half~n"
       "of the time in which as many processes waited as there were schedulers; an empty~n"
       "queue alone says nothing.  Published: Scott Lystig Fritchie's nifwait, 400~n"
       "processes, 1 MiB, 1,100 times; his eight offline schedulers were idle, of course.~n"
       "Compare with ordinary Erlang: the VM leaves a process alone on a scheduler now and~n"
       "then, whatever it does.~n",
       [N, fairnif_lab_table:bytes(W), job(Result), R, BW,
        fairnif_lab_table:duration(Gap * 1000000)]),
     [io_lib:format(
        "~b processors, ~b schedulers.  Unfairness shows here, and so would a scheduler that~n"
        "sleeps while work waits.  But a collapse was published for 8 to 16 processors, and~n"
        "came by chance: that none happened here does not say that none happens there.~n",
        [Cores, S])
      || Cores < ?ENOUGH],
     [["Failed: ", title(Row), ": ", E, $\n] || #{error := E} = Row <- Rows],
     fairnif_exp:doubt("; ", [title(Row) || #{runs := Runs} = Row <- Rows,
                                            lists:any(fun is_noisy/1, Runs)])].

is_noisy(#{others := Others}) -> fairnif_exp:doubted(Others).

job(#{job_us := undefined}) -> "not measured";
job(#{job_us := Us}) -> fairnif_lab_table:duration(1000 * Us).

%% Written from the figures, so that it cannot say what they do not.
sentence(#{runs := Runs} = Row) ->
    #{collapsed := Collapsed, why := Why, looks_apart_ms := Apart,
      looks_wanted_ms := Wanted} = Shown = worst(Runs),
    ["\n", title(Row), ": ",
     case Collapsed of
         true -> "collapsed; ";
         false -> "no collapse; ";
         cannot_say -> "can't say; "
     end,
     Why, io_lib:format(".~n  Looks at the queues: ~ts; up to ~ts apart, wanted every ~ts.~n",
                        [queues(Shown), ms(Apart), ms(Wanted)])];
sentence(_) ->
    "".

%% A run that collapsed, or the last one.
worst(Runs) ->
    case [R || #{collapsed := true} = R <- Runs] of
        [Run | _] -> Run;
        [] -> lists:last(Runs)
    end.

queues(#{classes := Classes, lines := Lines}) ->
    [lists:join(", ", [io_lib:format("~s ~b", [C, maps:get(C, Classes)])
                       || C <- [even, minority_zero, unbalanced]]),
     [[", at last ", lists:last(Lines)] || Lines =/= []]].

ms(Ms) ->
    fairnif_lab_table:duration(1000000 * Ms).
