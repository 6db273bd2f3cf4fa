%% What to do about what was found: which mode a function should have, and from which size on.
%%
%% Sizes are computed from the times measured and from what going dirty cost in the same check, on
%% this machine; nothing is a rule of thumb, except the rule of 2017, which is shown for comparison.
-module(fairnif_check_advice).

-export([growth/1, advise/3, size_at/2, rule_of_2017/1]).

%% Going dirty may cost this part of a call.
-define(DIRTY_COST, 0.1).
%% A call that has a scheduler for so long (ns), and a processor for no more than that part of it,
%% waits. A round trip to a thread, some 10 us, is then 1 % of it at most.
-define(WAITS_NS, 1000000).
-define(WAITS_PART, 0.5).
%% Others notice one that computes for so long (ns): it takes a processor from the schedulers.
-define(LONG_NS, 10000000).

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
            case fairnif_check_stats:crossing(Ns, Points) of
                Size when is_float(Size) -> round(Size);
                Outside -> Outside
            end
    end.

%% @doc The mode that the field's rule of 2017 names for a call of that many ns.
-spec rule_of_2017(number()) -> string().
rule_of_2017(Ns) when Ns < 1.0e6 -> "normal";
rule_of_2017(Ns) when Ns < 1.0e8 -> "yielding";
rule_of_2017(_) -> "yielding dirty".

%% @doc Sentences, the most important first.
-spec advise([map()], map(), map()) -> [binary()].
advise(Results, Machine, Opts) ->
    Bad = [{P, S} || #{verdicts := Vs} <- Results, #{property := P, status := S} <- Vs,
                     S =:= fail orelse S =:= warn],
    Found = [P || #{property := P} <- fairnif_check_verdict:properties(),
                  lists:keymember(P, 1, Bad)],
    Sentences = [S || P <- Found, S <- [sentence(P, Results, Opts)], S =/= ""]
        ++ [S || S <- [occupies(Results), dirty(Found, Results, Machine), comparison(Results)],
                 S =/= ""],
    Start = case Found of
                [] -> [unblamed([1 || #{time := _} <- Results], unsure(Results))];
                _ -> []
            end,
    [unicode:characters_to_binary(S) || S <- Start ++ lists:uniq(Sentences)].

%% Where nothing bad was found.
unblamed([], _) ->
    "Nothing could be measured.";
unblamed(_, []) ->
    "No change needed.";
unblamed(_, Unsure) ->
    ["Uncertain (", lists:join(", ", Unsure),
     "): check it again with a longer --time, on a machine that is less busy."].

unsure(Results) ->
    Doubted = [P || #{verdicts := Vs} <- Results,
                    #{property := P, status := unsure} <- Vs],
    [Title || #{property := P, title := Title} <- fairnif_check_verdict:properties(),
              lists:member(P, Doubted)].

sentence(crash, _, _) ->
    "Repair it first: nothing else counts while it fails.";
sentence(block, Results, Opts) ->
    From = case size_at(maps:get(limit_ns, Opts, 1000000), Results) of
               Size when is_integer(Size) ->
                   [" It reaches the limit at about ", fairnif_check_table:bytes(Size), "."];
               _ -> ""
           end,
    ["If the loop is yours, call fair_tick in it and register it as FAIR_AUTO: it then yields "
     "after each fair slice, whatever the size. If it is one call into a library, use "
     "fair_offload, which goes to a dirty scheduler when the call is long, or a dirty NIF.", From];
sentence(first_call, _, _) ->
    "Move what the first call prepares into a dirty NIF that the application calls when it "
        "starts.";
sentence(destructor, _, _) ->
    "Let the destructor hand its work to a thread, or to a process that does it in a dirty NIF; "
        "or use a fair resource. Close explicitly, in a dirty call, what is not needed any more.";
sentence(undercharge, _, _) ->
    "Charge it for its time. fair_tick does so; in a plain NIF call enif_consume_timeslice, which "
        "charges at least 1 % of 4000 reductions.";
sentence(unfair, Results, _) ->
    case [Block || #{slices := #{block := #{repeated := Block}}} <- Results] of
        [] -> "";
        Blocks ->
            ["It is unfair because it runs for ", fairnif_check_table:duration(lists:max(Blocks)),
             " in one go. A fair slice is as long as an Erlang process's, about 25 us, and charged "
             "as one."]
    end;
sentence(latency, _, _) ->
    "Others wait while it blocks a scheduler, or until its turn ends. Use shorter slices, each "
        "charged in full.";
sentence(unkillable, _, _) ->
    "Its work continues when the caller is killed. Yield (the VM stops it there), or call "
        "enif_is_current_process_alive in dirty code; fair_tick does both.";
sentence(leak, Results, _) ->
    case [Lost || #{verdicts := Vs} <- Results,
                  #{property := leak, evidence := #{per_call := Lost}} <- Vs,
                  is_number(Lost), Lost > 0] of
        [_ | _] ->
            "Free what each call has allocated before it returns (malloc, enif_alloc, a resource "
                "that is not released); fair_alloc and fair_defer do so in whatever way it ends.";
        [] ->
            "Keep what is in use across a pause in a resource, whose destructor frees it; "
                "fair_alloc and fair_defer do that."
    end.

%% What calls do with the scheduler that they block, at the largest size at which that is known: a
%% function that waits, and one that computes on a dirty scheduler.
occupies(Results) ->
    Blocked = [{Size, (N + D - Taken) / max(1, Calls), Part, D > N}
               || #{size := Size, slices := Slices} <- Results,
                  #{normal := #{total := N}, dirty := #{total := D},
                    block := #{calls := Calls, taken := Taken}, cpu_part := Part} <- [Slices]],
    Largest = lists:reverse(lists:keysort(1, Blocked)),
    case {[B || {_, Ns, Part, _} = B <- Largest, Ns >= ?WAITS_NS, Part =< ?WAITS_PART],
          [B || {_, Ns, _, true} = B <- Largest, Ns >= ?LONG_NS]} of
        {[{_, Ns, Part, _} | _], _} -> waits(Ns, Part);
        {[], [{_, Ns, _, _} | _]} -> computes(Ns);
        {[], []} -> ""
    end.

waits(Ns, Part) ->
    io_lib:format("It waits: a call blocks a scheduler for ~ts and uses a processor for up to ~b % "
                  "of that. On a thread it blocks none: use FAIR_THREADED, as the mode or in a "
                  "fair_offload around what waits (fair_wait for a descriptor), behind "
                  "fairnif:await/1.",
                  [fairnif_check_table:duration(Ns), ceil(100 * Part)]).

%% Measured on Linux 6.18 (docs/guide/choosing-a-mode.md).
computes(Ns) ->
    io_lib:format("It computes for ~ts on a dirty scheduler, which competes for the processors: "
                  "beside such calls other processes woke up to 13 ms late, without "
                  "scheduler_slice_us up to 143. Where that matters more than the call's own "
                  "time, use FAIR_THREADED, as the mode or in a fair_offload, behind "
                  "fairnif:await/1: nobody was late (Linux), but on a busy node it gets 9 to 12 % "
                  "of the processors instead of half.",
                  [fairnif_check_table:duration(Ns)]).

%% What going dirty costs here, and to whom it matters.
dirty(Found, Results, #{dirty_trip := Trip}) ->
    Least = Trip / ?DIRTY_COST,
    Dirty = [R || #{slices := #{normal := #{total := N}, dirty := #{total := D}}} = R <- Results,
                  D > N],
    Cost = io_lib:format("A dirty round trip costs ~ts here, over 10 % of any call under ~ts",
                         [fairnif_check_table:duration(Trip), fairnif_check_table:duration(Least)]),
    Below = case size_at(Least, Results) of
                Size when is_integer(Size) -> ["; that is below ", fairnif_check_table:bytes(Size)];
                above -> "; that is every size measured";
                _ -> ""
            end,
    case {lists:member(block, Found), Dirty} of
        {true, _} -> [Cost, Below, "."];
        {false, [_ | _]} when Below =/= "" ->
            [Cost, Below, ". There a normal scheduler is cheaper; fair_offload chooses by "
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
             lists:join(", ", [[fairnif_check_table:bytes(Size), " ", rule_of_2017(Ns)]
                               || {Size, Ns} <- Points]), "."]
    end.
