%% What `bin/fairnif check' shows on a terminal: the figures, a column for each size, the verdicts,
%% and what to do.
-module(fairnif_check_text).

-export([format/1]).

%% @doc The text of a result.
-spec format(fairnif_check_run:result()) -> unicode:chardata().
format(#{subjects := Subjects, options := Options} = Result) ->
    [lists:join("\n", [subject(S) || S <- Subjects]), side_by_side(Subjects), beside(Options),
     noise(Subjects), conclusion(Result, Options)].

subject(#{expression := Expression, sizes := Sizes, verdicts := Verdicts, advice := Advice} = S) ->
    [Expression, "\n", figures(Sizes), growth(S), verdicts(Verdicts),
     [wrapped("  * ", A) || A <- Advice]].

%% ---- figures ----

figures(Sizes) ->
    Columns = [{"", left} | [{[["N = ", fairnif_check_table:count(N)]
                               | [["\nin place of ", fairnif_check_table:count(Asked)]
                                  || #{asked := Asked} <- [Size], Asked =/= N]], right}
                             || #{size := N} = Size <- Sizes]],
    Rows = [[Title | Cells] || {Title, Cell} <- rows(),
                               Cells <- [[cell(Cell, S) || S <- Sizes]],
                               lists:any(fun(C) -> C =/= "-" end, Cells)],
    fairnif_check_table:render(Columns, Rows).

%% A cell of what was not measured is a dash.
cell(Cell, Figures) ->
    try Cell(Figures)
    catch error:function_clause -> "-"
    end.

rows() ->
    [{"time of a call, median",
      fun(#{time := #{median := Ns, spread := Spread}}) ->
              [duration(Ns), " (", percent(Spread), ")"] end},
     {"slices on normal schedulers",
      fun(#{slices := #{normal := N, block := #{calls := Calls}}}) -> per_call(N, Calls) end},
     {"  median, p99, longest", fun(#{slices := #{normal := N}}) -> lengths(N) end},
     {"slices on dirty schedulers",
      fun(#{slices := #{dirty := #{count := Count} = D, block := #{calls := Calls}}})
            when Count > 0 -> per_call(D, Calls) end},
     {"  median, p99, longest",
      fun(#{slices := #{dirty := #{count := Count} = D}}) when Count > 0 -> lengths(D) end},
     {"longest block (reproducible)",
      fun(#{slices := #{block := #{repeated := Ns}}}) -> duration(Ns) end},
     {"first call; its longest block",
      fun(#{first := #{block := Ns, elapsed := Elapsed}}) ->
              [duration(Elapsed), "; ", duration(Ns)] end},
     {"reductions charged", fun(#{charge := #{per_call := R}}) -> count(R) end},
     {"  per ms; ordinary Erlang",
      fun(#{charge := #{per_ms := R, erlang := Erlang}}) ->
              [count(R), "; ", count(lists:min(maps:values(Erlang))), " to ",
               count(lists:max(maps:values(Erlang)))] end},
     {"CPU left to an Erlang neighbour",
      fun(#{share := #{median := Median} = Share}) ->
              Shares = maps:values(maps:remove(median, Share)),
              [percent(Median), " (", percent(lists:min(Shares)), " to ",
               percent(lists:max(Shares)), ")"] end},
     {"lateness of a due process, p50 p99 max",
      fun(#{delay := #{beside := #{p50 := _} = D}}) -> delay(D) end},
     {"  samples",
      fun(#{delay := #{beside := #{count := Count}}}) -> count(Count) end},
     {"  beside busy Erlang", fun(#{delay := #{erlang := D}}) -> delay(D) end},
     {"  beside Erlang with results as large", fun(#{delay := #{sized := D}}) -> delay(D) end},
     {"  idle", fun(#{delay := #{idle := D}}) -> delay(D) end},
     {"wait for thread progress, median, longest; idle",
      fun(#{thread_progress := #{beside := #{median := M, longest := L},
                                 idle := #{median := I}}}) ->
              [duration(M), ", ", duration(L), "; ", duration(I)] end},
     {"long_schedule (1 ms) reported",
      fun(#{long_schedule := #{count := 0}}) -> "nothing";
         (#{long_schedule := #{count := Count, longest_ms := Ms}}) ->
              io_lib:format("~bx, ~b ms", [Count, Ms]) end},
     {"  it named",
      fun(#{long_schedule := #{named := [_ | _] = Names}}) ->
              lists:join("\n", [string:slice(hd(Names), 0, 36)]) end},
     {"its garbage blocks for, collected, killed",
      fun(#{garbage := #{collected := [_ | _] = Collected, killed := Killed}}) ->
              lists:join(", ", [duration(fairnif_check_stats:median(S))
                                || S <- [Collected, Killed]])
      end},
     {"from kill to stop, median, longest",
      fun(#{kill := #{stop := #{median := M, longest := L}}}) when is_number(M) ->
              [duration(M), ", ", duration(L)] end},
     {"  DOWN came after, median",
      fun(#{kill := #{down := #{median := M}}}) when is_number(M) -> duration(M) end},
     {"memory lost by a kill", fun(#{leak := Leak}) -> lost(Leak, per_kill) end},
     {"  by a call that is not killed",
      fun(#{leak := #{alone := Alone}}) -> lost(Alone, per_call) end}].

%% Fewer calls show nothing.
lost(#{total := Total, resolution := R}, _) when Total =< R -> "none seen";
lost(#{total := Total} = Lost, Each) when is_number(Total) ->
    fairnif_check_table:bytes(round(maps:get(Each, Lost))).

per_call(#{count := Count}, Calls) when Calls > 0 ->
    [count(Count / Calls), " a call"].

lengths(#{median := M, p99 := P99, longest := L}) when is_number(M) ->
    lists:join(", ", [duration(D) || D <- [M, P99, L]]).

delay(#{p50 := P50, p99 := P99, max := Max}) ->
    lists:join(", ", [duration(D) || D <- [P50, P99, Max]]).

growth(#{growth := Exponent}) when is_float(Exponent) ->
    io_lib:format("Time grows with N to the power of ~.2f.~n", [Exponent]);
growth(_) ->
    "".

%% ---- verdicts ----

verdicts(Verdicts) ->
    ["\n", [wrapped(io_lib:format("  ~-8ts~-13ts", [mark(S), P]), Sentence)
            || #{property := P, status := S, sentence := Sentence} <- Verdicts], "\n"].

mark(pass) -> "ok";
mark(fail) -> "FAIL";
mark(Status) -> atom_to_list(Status).

%% ---- beside another ----

side_by_side([#{sizes := Sizes, expression := First}, #{sizes := Others, expression := Other}]) ->
    Rows = [Row || {#{size := N} = A, B} <- lists:zip(Sizes, Others),
                   Row <- fairnif_check_compare:compare(subject, N,
                                                        fairnif_check_compare:figures(B),
                                                      fairnif_check_compare:figures(A))],
    ["\n", First, "\nbeside ", Other, ":\n", fairnif_check_compare:table("other", "first", Rows)];
side_by_side(_) ->
    "".

beside(#{beside := Beside}) when is_binary(Beside) ->
    ["\nWhile blocks were measured, another process called ", Beside, ".\n"];
beside(_) ->
    "".

%% More than this part of a processor used by other programs is worth saying.
noise(Subjects) ->
    Others = [O || #{sizes := Sizes} <- Subjects, #{others := Os} <- Sizes, O <- Os, is_float(O)],
    case Others =/= [] andalso lists:max(Others) of
        Most when is_float(Most), Most > 0.2 ->
            io_lib:format("~nOther programs used up to ~.1f processors meanwhile. Trust the "
                          "verdicts more than the figures.~n", [Most]);
        _ ->
            ""
    end.

conclusion(#{exit := 0}, _) -> "\nWell-behaved.\n";
conclusion(#{exit := 1, subjects := [#{verdicts := Verdicts} | _]}, _) ->
    ["\nNot well-behaved: ",
     lists:join(", ", [atom_to_list(P) || #{property := P, status := fail} <- Verdicts]), ".\n"];
conclusion(#{exit := 3}, _) -> "\nUnsure: this machine is too noisy, or too small.\n".

wrapped(First, Text) ->
    Indent = lists:flatten(First),
    Words = string:lexemes(unicode:characters_to_list(Text), " "),
    lines(Words, Indent, [], 0, 92 - length(Indent)).

lines([], Indent, Line, _, _) ->
    [Indent, lists:join($\s, lists:reverse(Line)), $\n];
lines([Word | Words], Indent, Line, Used, Width) ->
    case Used + length(Word) + 1 of
        More when More > Width, Line =/= [] ->
            [Indent, lists:join($\s, lists:reverse(Line)), $\n
             | lines([Word | Words], lists:duplicate(length(Indent), $\s), [], 0, Width)];
        More ->
            lines(Words, Indent, [Word | Line], More, Width)
    end.

duration(Ns) -> fairnif_check_table:duration(Ns).

count(N) when is_float(N) -> count(round(N));
count(N) -> fairnif_check_table:count(N).

percent(F) -> fairnif_check_table:percent(F).
