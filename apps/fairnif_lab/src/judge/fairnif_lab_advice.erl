%% What to do about what was found: which mode a function should have, and from which size on.
%%
%% Sizes are computed from the times measured and from what going dirty cost in the same check, on
%% this machine; nothing is a rule of thumb, except the rule of 2017, which is shown for comparison.
-module(fairnif_lab_advice).

-export([growth/1, advise/3, size_at/2, rule_of_2017/1]).

%% Going dirty may cost this part of a call.
-define(DIRTY_COST, 0.1).
%% A call that holds a scheduler for so long (ns), and a processor for no more than that part of it,
%% waits. A round trip to a thread, some 10 us, is then 1 % of it at most.
-define(WAITS_NS, 1000000).
-define(WAITS_PART, 0.5).

%% @doc The exponent with which time grows over size between the smallest and the largest: 1.0 is
%% linear. `undefined' with one size.
-spec growth([map()]) -> float() | undefined.
growth(Results) ->
    Points = points(Results),
    case Points =/= [] andalso {hd(Points), lists:last(Points)} of
        {{S0, T0}, {S1, T1}} when S1 > S0 -> math:log(T1 / T0) / math:log(S1 / S0);
        _ -> undefined
    end.

%% {Size, Ns}, by size.
points(Results) ->
    lists:usort([{Size, max(1, Ns)} || #{size := Size, time := #{median := Ns}} <- Results]).

%% @doc At which size a call takes so long (ns), by a straight line between the two sizes around it
%% in the logarithms of both; `below' or `above' what was measured.
-spec size_at(number(), [map()]) -> pos_integer() | below | above | undefined.
size_at(Ns, Results) ->
    case points(Results) of
        [] ->
            undefined;
        Points ->
            case fairnif_lab_stats:crossing(Ns, Points) of
                Size when is_float(Size) -> round(Size);
                Outside -> Outside
            end
    end.

%% @doc The mode that the field's rule of 2017 names for a call of so many ns.
-spec rule_of_2017(number()) -> string().
rule_of_2017(Ns) when Ns < 1.0e6 -> "normal";
rule_of_2017(Ns) when Ns < 1.0e8 -> "yielding";
rule_of_2017(_) -> "yielding dirty".

%% @doc Sentences, the most important first.
-spec advise([map()], map(), map()) -> [binary()].
advise(Results, Machine, Opts) ->
    Bad = [{P, S} || #{verdicts := Vs} <- Results, #{property := P, status := S} <- Vs,
                     S =:= fail orelse S =:= warn],
    Found = [P || #{property := P} <- fairnif_lab_verdict:properties(), lists:keymember(P, 1, Bad)],
    Sentences = [S || P <- Found, S <- [sentence(P, Results, Opts)], S =/= ""]
        ++ [S || S <- [waits(Results), dirty(Found, Results, Machine), comparison(Results)],
                 S =/= ""],
    Start = case Found of
                [] -> [case [1 || #{time := _} <- Results] of
                           [] -> "Nothing could be measured.";
                           _ -> "Leave it as it is."
                       end];
                _ -> []
            end,
    [unicode:characters_to_binary(S) || S <- Start ++ lists:uniq(Sentences)].

sentence(returns, _, _) ->
    "Repair it first: nothing else counts while it fails.";
sentence(hold, Results, Opts) ->
    From = case size_at(maps:get(limit_ns, Opts, 1000000), Results) of
               Size when is_integer(Size) ->
                   [" It reaches the limit at about ", fairnif_lab_table:bytes(Size), "."];
               _ -> ""
           end,
    ["If the loop is yours, call fair_tick in it and register it as FAIR_AUTO: it then yields "
     "after each fair slice, whatever the size. If it is one call into a library, use fair_call, "
     "which goes to a dirty scheduler when the call is long, or a dirty NIF.", From];
sentence(first, _, _) ->
    "Prepare in a dirty NIF, which the application calls when it starts, what the first call "
        "prepares now.";
sentence(garbage, _, _) ->
    "Let the destructor only hand over what is to be closed: to a thread, or to a process that "
        "closes it in a dirty NIF. Close early, in a dirty call, what is known to be done.";
sentence(charge, _, _) ->
    "Charge it for its time. fair_tick does so; in a plain NIF call enif_consume_timeslice, which "
        "charges at least 1 % of 4000 reductions.";
sentence(share, Results, _) ->
    case [Hold || #{slices := #{hold := #{repeated := Hold}}} <- Results] of
        [] -> "";
        Holds ->
            ["It is unfair because it runs for ", fairnif_lab_table:duration(lists:max(Holds)),
             " in one go. A fair slice is as long as an Erlang process's, about 25 us, and charged "
             "as one."]
    end;
sentence(delay, _, _) ->
    "Others wait while it blocks a scheduler, or for its turn to end. Shorter slices, each "
        "charged in full, cure that.";
sentence(kill, _, _) ->
    "Its work runs on when the caller is killed. Yield (the VM stops it there), or ask "
        "enif_is_current_process_alive in dirty code; fair_tick does both.";
sentence(leak, _, _) ->
    "Keep what is in use across a pause in a resource, whose destructor frees it; fair_alloc and "
        "fair_defer do that.".

%% Holding a scheduler without using a processor: the largest size at which that was seen.
waits(Results) ->
    case lists:reverse(lists:keysort(1, [{Size, Held / max(1, Calls), Part}
                                         || #{size := Size, slices := Slices} <- Results,
                                            #{normal := #{total := N}, dirty := #{total := D},
                                              hold := #{calls := Calls}, cpu_part := Part}
                                                <- [Slices],
                                            Held <- [N + D],
                                            Held / max(1, Calls) >= ?WAITS_NS,
                                            Part =< ?WAITS_PART])) of
        [{_, Held, Part} | _] ->
            io_lib:format("It waits: a call blocks a scheduler for ~ts and uses a processor for at "
                          "most ~b % of that. On a thread it blocks none: use FAIR_THREADED, as "
                          "the mode or in a fair_call around what waits (fair_wait for a "
                          "descriptor), behind fairnif:await/1.",
                          [fairnif_lab_table:duration(Held), ceil(100 * Part)]);
        [] ->
            ""
    end.

%% What going dirty costs here, and to whom it matters.
dirty(Found, Results, #{dirty_trip := Trip}) ->
    Least = Trip / ?DIRTY_COST,
    Dirty = [R || #{slices := #{normal := #{total := N}, dirty := #{total := D}}} = R <- Results,
                  D > N],
    Cost = io_lib:format("Going dirty and back costs ~ts here, over 10 % of any call under ~ts",
                         [fairnif_lab_table:duration(Trip), fairnif_lab_table:duration(Least)]),
    Below = case size_at(Least, Results) of
                Size when is_integer(Size) -> ["; that is below ", fairnif_lab_table:bytes(Size)];
                above -> "; that is every size measured";
                _ -> ""
            end,
    case {lists:member(hold, Found), Dirty} of
        {true, _} -> [Cost, Below, "."];
        {false, [_ | _]} when Below =/= "" ->
            [Cost, Below, ". There a normal scheduler is cheaper; fair_call chooses by "
             "itself."];
        _ -> ""
    end;
dirty(_, _, _) ->
    "".

comparison(Results) ->
    case points(Results) of
        [] -> "";
        Points ->
            ["For comparison, the rule of 2017: ",
             lists:join(", ", [[fairnif_lab_table:bytes(Size), " ", rule_of_2017(Ns)]
                               || {Size, Ns} <- Points]), "."]
    end.
