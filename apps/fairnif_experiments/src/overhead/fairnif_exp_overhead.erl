%% What a dirty call costs beside its work: from the call to the start of the
%% native code on a dirty scheduler, and from its end back to the caller's, as
%% histograms; and below which size that is more than a tenth of the work.
%%
%% One caller, one call after the other: the dirty thread has just worked, and has
%% not gone to sleep where its flags let it wait.  Several nodes for each set of
%% emulator flags, since on which cores the threads of a node come to lie decides
%% much, and mostly stays.
-module(fairnif_exp_overhead).

-behaviour(fairnif_experiment).

-export([about/0, steps/1, run/1, format/1]).

-define(PEER, fairnif_exp_overhead_peer).
-define(KINDS, [plain, dirty_cpu, dirty_io]).
-define(BIN_NS, 250).
-define(LIMIT_NS, 10000).
%% A hump holds at least so many of the samples; a line of the table of bins is
%% left out when no column has so many.
-define(HUMP, 0.05).
-define(SHOWN, 0.01).
%% Going dirty may cost this fraction of the work.
-define(COST, 0.1).
-define(LIMIT_MS, 120000).

%% The sets of flags, in the order of the tables.  The second is that of the
%% published measurement; the VM has since got flags of their own for how long
%% dirty threads wait before they sleep.
flag_sets() ->
    [{default, "default", []},
     {tuned, "tuned", tuned()},
     {waiting, "tuned, dirty threads wait", tuned() ++ [{"+sbwtdcpu", "very_long"},
                                                         {"+sbwtdio", "very_long"}]}].

tuned() ->
    [{"+K", "true"}, {"+A", "10"}, {"+sbt", "db"}, {"+sbwt", "very_long"},
     {"+swt", "very_low"}, {"+Mulmbcs", "32767"}, {"+Mumbcgs", "1"},
     {"+Musmbcs", "2047"}].

%% About 20,000 calls at concurrency 1 on an i7-3720QM; us, `humps' and `both'
%% as they were given.
published() ->
    [#{set => default, there => "1.75 us", back => "7.5 us", over => "12 %", both => "~10 us"},
     #{set => tuned, there => "humps at 1.0, 1.75 us", back => "1.5 us", over => "-",
       both => "2.5 to 3.75 us"}].

%% Nodes of each kind, calls in each, and batches of each function and size.
scale(quick) -> {1, 1000, 3};
scale(normal) -> {4, 5000, 15};
scale(full) -> {20, 10000, 51}.

%% @doc Its name, and one line for the list of experiments.
-spec about() -> fairnif_experiment:about().
about() ->
    #{name => overhead,
      description => "the way to a dirty scheduler and back, under default and tuned flags"}.

%% @doc One per set of flags, and the functions.
-spec steps(fairnif_experiment:options()) -> pos_integer().
steps(_) ->
    length(flag_sets()) + 1.

%% @doc Measures under each set of flags; half a minute.  Flags that
%% this VM refuses are left out, and named in the result.
-spec run(fairnif_experiment:options()) -> fairnif_experiment:outcome().
run(Opts) ->
    fairnif_exp:needs(?PEER:examples(), fun() -> measured(Opts) end).

measured(Opts) ->
    Progress = fairnif_exp:progress(Opts),
    {Nodes, Calls, Batches} = scale(fairnif_exp:scale(Opts)),
    Sets = [begin
                fairnif_lab_progress:step(Progress, ["there and back, flags: ", Title]),
                set(Set, Title, Flags, Nodes, Calls)
            end || {Set, Title, Flags} <- flag_sets()],
    fairnif_lab_progress:step(Progress, "functions by size"),
    Functions = fairnif_exp:in_peer([], {?PEER, times, [Batches]}, ?LIMIT_MS),
    fairnif_lab_progress:stop(Progress),
    Rows = lists:append([Rows || {Rows, _} <- Sets]),
    {ok, fairnif_exp:result(
           Rows ++ [Functions],
           #{units => <<"ns; bins of 250 ns, the last is 10 us and more">>,
             calls => Nodes * Calls, nodes => Nodes, rows => Rows,
             published => [maps:map(fun(_, V) when is_list(V) -> list_to_binary(V);
                                       (_, V) -> V
                                    end, P) || P <- published()],
             flags => [Flags || {_, Flags} <- Sets],
             functions => functions(Functions, Rows)})}.

%% ---- running ----

set(Set, Title, Pairs, Nodes, Calls) ->
    {Used, Refused} = accepted(Pairs),
    Peers = [fairnif_exp:in_peer(strings(Used), {?PEER, trips, [?KINDS, Calls]}, ?LIMIT_MS)
             || _ <- lists:seq(1, Nodes)],
    Rows = [(row(Kind, Peers))#{set => Set, kind => Kind} || Kind <- ?KINDS],
    {Rows, #{set => Set, title => list_to_binary(Title), used => joined(Used),
             refused => [joined([Pair]) || Pair <- Refused]}}.

%% All nodes' samples together; a node that failed fails them all.
row(Kind, Peers) ->
    case [P || P <- Peers, fairnif_exp:failed(P)] of
        [Failed | _] ->
            Failed;
        [] ->
            Samples = [{There, Back, lists:zipwith(fun(A, B) -> A + B end, There, Back)}
                       || #{value := Trips} <- Peers,
                          {K, #{there := There, back := Back}} <- Trips, K =:= Kind],
            All = fun(Which) ->
                          distribution(lists:append([element(Which, S) || S <- Samples]))
                  end,
            #{there => All(1), back => All(2), both => All(3),
              node_medians => [fairnif_lab_stats:median(Both) || {_, _, Both} <- Samples],
              %% An atom is greater than every number.
              others => lists:max([N || #{others := N} <- Peers]),
              samples => [#{there => There, back => Back} || {There, Back, _} <- Samples]}
    end.

distribution(Samples) ->
    Histogram = fairnif_lab_histogram:new(Samples, ?BIN_NS, ?LIMIT_NS),
    #{median => fairnif_lab_stats:median(Samples),
      p99 => fairnif_lab_stats:percentile(99, Samples),
      humps => fairnif_lab_histogram:humps(Histogram, ?HUMP),
      over => fairnif_lab_histogram:over(Histogram, ?LIMIT_NS), histogram => Histogram}.

%% A VM that refuses a flag does not start: then each is tried alone.
accepted(Pairs) ->
    case Pairs =:= [] orelse starts(Pairs) of
        true -> {Pairs, []};
        false -> lists:partition(fun(Pair) -> starts([Pair]) end, Pairs)
    end.

starts(Pairs) ->
    case fairnif_lab_peer:start(strings(Pairs)) of
        {ok, Peer} -> fairnif_lab_peer:stop(Peer), true;
        {error, _} -> false
    end.

strings(Pairs) ->
    lists:append([[Flag, Value] || {Flag, Value} <- Pairs]).

joined(Pairs) ->
    iolist_to_binary(lists:join($\s, strings(Pairs))).

%% The size at which a trip to a dirty CPU scheduler is a tenth of the work.
functions(#{value := Functions}, Rows) ->
    Trips = [{Set, Both} || #{set := Set, kind := dirty_cpu, both := #{median := Both}} <- Rows],
    [#{function => Title,
       points => [#{size => Size, ns => Ns} || {Size, Ns} <- Points],
       cutoffs => [#{set => Set, trip_ns => Trip,
                     size => fairnif_lab_stats:crossing(Trip / ?COST, Points)}
                   || {Set, Trip} <- Trips]}
     || #{function := Title, points := Points} <- Functions];
functions(_, _) ->
    [].

%% ---- the tables ----

%% @doc The tables, and what to see in them.
-spec format(fairnif_experiment:result()) -> unicode:chardata().
format(#{rows := Rows, functions := Functions, flags := Flags, calls := Calls,
         nodes := Nodes}) ->
    [trip_table(Rows),
     io_lib:format("~ts calls of each, one after the other, nodes: ~b; the stamps alone take ~ts."
                   "~nPublished: about 20,000 calls on an i7-3720QM.~n",
                   [fairnif_lab_table:count(Calls), Nodes, plain(Rows)]),
     [[Title, ": ", Used, $\n] || #{title := Title, used := Used} <- Flags, Used =/= <<>>],
     [["Refused by this VM, and left out of ", Title, ": ", lists:join(", ", Refused), $\n]
      || #{title := Title, refused := [_ | _] = Refused} <- Flags],
     fairnif_exp:footnotes(fun label/1, Rows),
     [[$\n, bins(Kind, Rows)] || Kind <- [dirty_cpu, dirty_io]],
     $\n, cutoff_table(Functions), conclusion(Rows)].

label(#{set := Set, kind := Kind}) ->
    [title(Set), " ", kind(Kind)].

title(Set) ->
    {Set, Title, _} = lists:keyfind(Set, 1, flag_sets()),
    Title.

kind(plain) -> "plain";
kind(dirty_cpu) -> "CPU";
kind(dirty_io) -> "I/O".

trip_table(Rows) ->
    fairnif_lab_table:render(
      [{"flags", left}, {"scheduler", left}, {"there:\nmedian", right}, {"humps, us", left},
       {"back:\nmedian", right}, {"humps, us", left}, {"back >=\n10 us", right},
       {"both:\nmedian", right}, {"of single\nnodes", right}, {"p99", right}],
      lists:append([[trip_cells(R) || #{set := S, kind := Kind} = R <- Rows, S =:= Set,
                                      Kind =/= plain]
                    ++ [[[title(Set), ", published"], "-", There, "", Back, "", Over, Both, "", ""]
                        || #{set := S, there := There, back := Back, over := Over,
                             both := Both} <- published(), S =:= Set]
                    || {Set, _, _} <- flag_sets()])).

trip_cells(#{set := Set, kind := Kind, error := _}) ->
    [title(Set), kind(Kind), "failed", "", "", "", "", "", "", ""];
trip_cells(#{set := Set, kind := Kind, there := There, back := Back, both := Both,
             node_medians := Medians}) ->
    [title(Set), kind(Kind), duration(median, There), humps(There), duration(median, Back),
     humps(Back), fairnif_lab_table:percent(maps:get(over, Back)), duration(median, Both),
     [fairnif_lab_table:duration(lists:min(Medians)), " to ",
      fairnif_lab_table:duration(lists:max(Medians))], duration(p99, Both)].

duration(Key, Distribution) ->
    fairnif_lab_table:duration(maps:get(Key, Distribution)).

humps(#{humps := Humps}) ->
    lists:join(", ", [float_to_list(H / 1000, [{decimals, 2}]) || H <- Humps]).

plain(Rows) ->
    case [Both || #{kind := plain, both := Both} <- Rows] of
        [Both | _] -> [duration(median, Both), " (both)"];
        [] -> "-"
    end.

%% The share of the samples in each bin, there and back, under each set of which
%% such figures were published.
bins(Kind, Rows) ->
    Columns = [{[title(Set), $\n, Way], maps:get(histogram, Distribution)}
               || #{set := Set, kind := K, there := There, back := Back} <- Rows, K =:= Kind,
                  Set =/= waiting,
                  {Way, Distribution} <- [{"there", There}, {"back", Back}]],
    Lists = [[C / max(1, Total) || C <- Counts ++ [Over]]
             || {_, #{counts := Counts, over := Over, total := Total}} <- Columns],
    Starts = lists:seq(0, ?LIMIT_NS, ?BIN_NS),
    Lines = [{Start, [lists:nth(N, L) || L <- Lists]}
             || {N, Start} <- lists:zip(lists:seq(1, length(Starts)), Starts)],
    fairnif_lab_table:render(
      [{[kind(Kind), ": from"], right} | [{Title, right} || {Title, _} <- Columns]],
      [[bin(Start) | [part(P) || P <- Parts]]
       || {Start, Parts} <- Lines, lists:any(fun(P) -> P >= ?SHOWN end, Parts)]).

%% A line holds what matters in another column.
part(Part) when Part < 0.0005 -> "";
part(Part) -> fairnif_lab_table:percent(Part).

bin(?LIMIT_NS) -> [fairnif_lab_table:duration(?LIMIT_NS), " and more"];
bin(Start) -> fairnif_lab_table:duration(Start).

cutoff_table([]) ->
    "";
cutoff_table([#{cutoffs := First} | _] = Functions) ->
    [fairnif_lab_table:render(
       [{"on a normal scheduler", left}, {"1 ms takes", right}
        | [{["flags: ", title(Set), "\ncutoff"], right} || #{set := Set} <- First]],
       [[Title, cutoff(fairnif_lab_stats:crossing(1000000, [{S, Ns} || #{size := S, ns := Ns}
                                                                       <- Points]))
         | [cutoff(Size) || #{size := Size} <- Cutoffs]]
        || #{function := Title, points := Points, cutoffs := Cutoffs} <- Functions]),
     "Cutoff: below this many bytes the way to a dirty CPU scheduler and back costs more than\n"
     "10 % of the work.  Beside it, what blocks a normal scheduler for the documented "
     "millisecond.\n"].

%% Written from the figures.
conclusion(Rows) ->
    case [Both || Set <- [default, tuned],
                  #{set := S, kind := dirty_cpu, both := #{median := Both}} <- Rows, S =:= Set] of
        [Default, Tuned] ->
            io_lib:format(
              "~nWhat to see: to a dirty CPU scheduler and back takes ~ts under default flags, "
              "~ts under tuned~nones; work of less than ~ts and ~ts is not worth it.~n",
              [fairnif_lab_table:duration(Ns)
               || Ns <- [Default, Tuned, Default / ?COST, Tuned / ?COST]]);
        _ ->
            ""
    end.

cutoff(below) -> "always worth it";
cutoff(above) -> "> measured";
cutoff(Size) -> fairnif_lab_table:bytes(round(Size)).
