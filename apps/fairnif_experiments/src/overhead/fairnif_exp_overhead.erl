%% What a dirty call costs beside its work: from the call to the start of the native code on a dirty
%% scheduler, and from its end back to the caller's; and below which size that is more than a tenth
%% of the work.
%%
%% One caller, one call after the other: the dirty thread has just worked, and has not gone to sleep
%% where its flags let it wait.  Several nodes for each set of emulator flags, since on which cores
%% the threads of a node come to lie decides much, and mostly stays.
-module(fairnif_exp_overhead).

-behaviour(fairnif_experiment).

-export([experiment/0]).

-import(fairnif_exp, [in_peer/3, range/2, shown/2]).
-import(fairnif_check_stats, [crossing/2, median/1, percentile/2]).

-define(KINDS, [{plain, "plain"}, {dirty_cpu, "CPU"}, {dirty_io, "I/O"}]).
-define(BIN_NS, 250).
-define(LIMIT_NS, 10000).
%% A hump holds at least this part of the samples.
-define(HUMP, 0.05).
%% Going dirty may cost this fraction of the work.
-define(COST, 0.1).
-define(LIMIT_MS, 120000).
%% Before any call counts: code is loaded, the dirty threads run.
-define(WARM, 1000).
%% So large that no collection comes between two stamps.
-define(HEAP_WORDS, 4000000).
%% What else the machine does is counted in ticks of 10 ms: nothing can be said about less.
-define(WATCH_MS, 600).
%% The number of batches decides; this is more than any takes.
-define(TIME_MS, 60000).

%% The sets of flags, in the order of the tables.  The second is that of the published measurement;
%% the VM has since got flags of its own for how long dirty threads wait before they sleep.
flag_sets() ->
    Tuned = [{"+K", "true"}, {"+A", "10"}, {"+sbt", "db"}, {"+sbwt", "very_long"},
             {"+swt", "very_low"}, {"+Mulmbcs", "32767"}, {"+Mumbcgs", "1"}, {"+Musmbcs", "2047"}],
    [{default, "default", []}, {tuned, "tuned", Tuned},
     {waiting, "tuned, dirty threads wait",
      Tuned ++ [{"+sbwtdcpu", "very_long"}, {"+sbwtdio", "very_long"}]}].

%% About 20,000 calls at concurrency 1 on an i7-3720QM, as they were given.
published() ->
    [#{set => default, there => <<"1.75 us">>, back => <<"7.5 us">>, over => <<"12 %">>,
       both => <<"~10 us">>},
     #{set => tuned, there => <<"humps at 1.0, 1.75 us">>, back => <<"1.5 us">>, over => <<"-">>,
       both => <<"2.5 to 3.75 us">>}].

%% Nodes of each kind, calls in each, and batches of each function and size.
scale(quick) -> {1, 1000, 3};
scale(normal) -> {4, 5000, 15};
scale(full) -> {20, 10000, 51}.

%% @doc Measures under each set of flags; half a minute.  Flags that this VM refuses are left out,
%% and named in the result.
-spec experiment() -> fairnif_experiment:experiment().
experiment() ->
    #{name => overhead, needs => examples(),
      description => "the way to a dirty scheduler and back, under default and tuned flags",
      %% One per set of flags, and the functions.
      steps => length(flag_sets()) + 1,
      measure => fun measure/3, peer => fun peer/1, format => fun format/1}.

%% Called by these names alone.
-spec examples() -> [module()].
examples() -> [levenshtein, bitwise].

measure(Scale, _, Step) ->
    {Nodes, Calls, Batches} = scale(Scale),
    Sets = [begin
                Step(["there and back, flags: ", Title]),
                set(Set, Title, Flags, Nodes, Calls)
            end || {Set, Title, Flags} <- flag_sets()],
    Step("functions by size"),
    Functions = in_peer([], {?MODULE, {times, Batches}}, ?LIMIT_MS),
    Rows = lists:append([Rows || {Rows, _} <- Sets]),
    fairnif_exp:result(
      Rows ++ [Functions],
      #{units => <<"ns">>, calls => Nodes * Calls, nodes => Nodes, rows => Rows,
        published => published(), flags => [Flags || {_, Flags} <- Sets],
        functions => cutoffs(Functions, Rows)}).

%% ---- running ----

set(Set, Title, Pairs, Nodes, Calls) ->
    {Used, Refused} = accepted(Pairs),
    Peers = [in_peer(strings(Used), {?MODULE, {trips, Calls}}, ?LIMIT_MS)
             || _ <- lists:seq(1, Nodes)],
    {[(row(Kind, Peers))#{set => Set, kind => Kind} || {Kind, _} <- ?KINDS],
     #{set => Set, title => list_to_binary(Title), used => joined(Used),
       refused => [joined([Pair]) || Pair <- Refused]}}.

%% All nodes' samples together; a node that failed fails them all.
row(Kind, Peers) ->
    case [P || P <- Peers, fairnif_exp:failed(P)] of
        [Failed | _] ->
            Failed;
        [] ->
            Trips = [maps:get(Kind, Value) || #{value := Value} <- Peers],
            Both = [[There + Back || {There, Back} <- T] || T <- Trips],
            {There, Back} = lists:unzip(lists:append(Trips)),
            #{there => distribution(There), back => distribution(Back),
              both => distribution(lists:append(Both)),
              node_medians => [median(B) || B <- Both],
              %% An atom is greater than every number.
              others => lists:max([N || #{others := N} <- Peers]),
              samples => [#{there => T, back => B} || {T, B} <- [lists:unzip(T) || T <- Trips]]}
    end.

%% Humps are where the histogram has them: the lower ends of the bins that are higher than the one
%% before, not lower than the one after, and hold enough; `over': the part that takes longer.
distribution(Samples) ->
    Bins = lists:foldl(fun(Ns, Acc) ->
                               maps:update_with(max(0, Ns) div ?BIN_NS, fun(N) -> N + 1 end, 1, Acc)
                       end, #{}, [Ns || Ns <- Samples, Ns < ?LIMIT_NS]),
    In = fun(Bin) -> maps:get(Bin, Bins, 0) end,
    #{median => median(Samples), p99 => percentile(99, Samples),
      humps => [Bin * ?BIN_NS || {Bin, Count} <- lists:sort(maps:to_list(Bins)),
                                 Count > In(Bin - 1), Count >= In(Bin + 1),
                                 Count >= ?HUMP * length(Samples)],
      over => length([Ns || Ns <- Samples, Ns >= ?LIMIT_NS]) / length(Samples)}.

%% A VM that refuses a flag does not start: then each is tried alone.
accepted(Pairs) ->
    case Pairs =:= [] orelse starts(Pairs) of
        true -> {Pairs, []};
        false -> lists:partition(fun(Pair) -> starts([Pair]) end, Pairs)
    end.

starts(Pairs) ->
    case fairnif_check_peer:start(strings(Pairs)) of
        {ok, Peer} -> fairnif_check_peer:stop(Peer), true;
        {error, _} -> false
    end.

strings(Pairs) -> lists:append([[Flag, Value] || {Flag, Value} <- Pairs]).

joined(Pairs) -> iolist_to_binary(lists:join($\s, strings(Pairs))).

%% The size at which a trip to a dirty CPU scheduler is a tenth of the work, and the one that takes
%% a millisecond.
cutoffs(#{value := Functions}, Rows) ->
    [F#{points := [#{size => Size, ns => Ns} || {Size, Ns} <- Points],
        limit => crossing(1000000, Points),
        cutoffs => [#{set => Set, trip_ns => Trip, size => crossing(Trip / ?COST, Points)}
                    || #{set := Set, kind := dirty_cpu, both := #{median := Trip}} <- Rows]}
     || #{points := Points} = F <- Functions];
cutoffs(_, _) ->
    [].

%% ---- in the peers ----

%% Calls of each kind, one after the other, by stamps taken in C on both sides, ns: from
%% the call to the start of the native code, and from its end to the next native code of the
%% caller; `plain' is what the stamps alone take.
peer({trips, Count}) ->
    Until = fairnif_exp:now_ms() + ?WATCH_MS,
    ok = fairnif_check_nif:load(),
    Trips = [{Kind, alone(fun() -> _ = trips(Native, ?WARM, []), trips(Native, Count, []) end)}
             || {Kind, Native} <- [{plain, fun fairnif_check_nif:now/0},
                                   {dirty_cpu, fun fairnif_check_nif:now_dirty_cpu/0},
                                   {dirty_io, fun fairnif_check_nif:now_dirty_io/0}]],
    timer:sleep(max(0, Until - fairnif_exp:now_ms())),
    maps:from_list(Trips);
%% What a call of some native functions on a normal scheduler takes, by size: the median of some
%% batches, ns.
peer({times, Batches}) ->
    Time = fun(Call) ->
                   [#{time := #{median := Ns}}] =
                       fairnif_check_time:measure([Call], #{runs => Batches, time_ms => ?TIME_MS}),
                   Ns
           end,
    alone(fun() ->
                  [#{function => Title, points => [{Size, Time(Prepare(Size))} || Size <- Sizes]}
                   || {Title, Sizes, Prepare} <- functions()]
          end).

alone(Fun) ->
    fairnif_check_machine:apart([{min_heap_size, ?HEAP_WORDS}], Fun).

%% Nothing but the call stands between the stamps.
trips(_, 0, Trips) ->
    lists:reverse(Trips);
trips(Native, N, Trips) ->
    From = fairnif_check_nif:now(),
    There = Native(),
    Back = fairnif_check_nif:now(),
    trips(Native, N - 1, [{There - From, Back - There} | Trips]).

%% Title, bytes of an argument, what makes the call of that size.
functions() ->
    [Levenshtein, Bitwise] = examples(),
    Linear = [64 bsl N || N <- lists:seq(0, 18, 2)],
    [{<<"levenshtein:unfair_levenshtein(Bin, Bin)">>, [8 bsl N || N <- lists:seq(0, 8)],
      fun(Size) ->
              {A, B} = {rand:bytes(Size), rand:bytes(Size)},
              fun() -> Levenshtein:unfair_levenshtein(A, B) end
      end}
     | [{Title, Linear, fun(Size) -> Bin = rand:bytes(Size), fun() -> Call(Bin) end end}
        || {Title, Call} <- [{<<"bitwise:exor_bad(Bin, 90)">>,
                              fun(Bin) -> Bitwise:exor_bad(Bin, 90) end},
                             {<<"crypto:hash(sha256, Bin)">>,
                              fun(Bin) -> crypto:hash(sha256, Bin) end},
                             {<<"erlang:md5(Bin)">>, fun erlang:md5/1},
                             {<<"erlang:crc32(Bin)">>, fun erlang:crc32/1}]]].

%% ---- the tables ----

format(#{rows := Rows, functions := Functions, flags := Flags, calls := Calls, nodes := Nodes}) ->
    Plain = [Ns || #{kind := plain, both := #{median := Ns}} <- Rows],
    [fairnif_exp:table(
       [{"flags", left, {title, text}}, {"scheduler", left, {scheduler, text}},
        {"there:\nmedian", right, {[there, median], ns}},
        {"humps, us", left, {[there, humps], fun humps/1}},
        {"back:\nmedian", right, {[back, median], ns}},
        {"humps, us", left, {[back, humps], fun humps/1}},
        {"back >=\n10 us", right, {[back, over], percent}},
        {"both:\nmedian", right, {[both, median], ns}},
        {"of single\nnodes", right, {node_medians, fun(Ns) -> range(ns, Ns) end}},
        {"p99", right, {[both, p99], ns}}],
       [R#{title => title(Set), scheduler => kind(Kind)}
        || #{set := Set, kind := Kind} = R <- Rows, Kind =/= plain]
       ++ [#{title => [title(Set), ", published"], there => #{median => There},
             back => #{median => Back, over => Over}, both => #{median => Both}}
           || #{set := Set, there := There, back := Back, over := Over, both := Both}
                  <- published()]),
     io_lib:format("~ts calls of each, one after the other, nodes: ~b; the stamps alone take ~ts "
                   "(both).~nPublished: about 20,000 calls on an i7-3720QM.~n",
                   [shown(count, Calls), Nodes, shown(ns, hd(Plain ++ [undefined]))]),
     [[Title, ": ", Used, $\n] || #{title := Title, used := Used} <- Flags, Used =/= <<>>],
     [["Refused by this VM, and left out of ", Title, ": ", lists:join(", ", Refused), $\n]
      || #{title := Title, refused := [_ | _] = Refused} <- Flags],
     fairnif_exp:footnotes(fun(#{set := Set, kind := Kind}) -> [title(Set), " ", kind(Kind)] end,
                           Rows),
     [[$\n, fairnif_exp:table(
              [{"on a normal scheduler", left, {function, text}},
               {"1 ms takes", right, {limit, fun cutoff/1}}
               | [{["flags: ", title(Set), "\ncutoff"], right, {Set, fun cutoff/1}}
                  || #{set := Set} <- Cutoffs]],
              [maps:merge(F, maps:from_list([{Set, Size} || #{set := Set, size := Size} <- C]))
               || #{cutoffs := C} = F <- Functions]),
       "Cutoff: below this many bytes the way to a dirty CPU scheduler and back costs more than\n"
       "10 % of the work.  Beside it, what blocks a normal scheduler for the documented "
       "millisecond.\n"] || #{cutoffs := Cutoffs} <- lists:sublist(Functions, 1)],
     conclusion([Ns || Set <- [default, tuned],
                       #{set := S, kind := dirty_cpu, both := #{median := Ns}} <- Rows,
                       S =:= Set])].

title(Set) ->
    {Set, Title, _} = lists:keyfind(Set, 1, flag_sets()),
    Title.

kind(Kind) -> proplists:get_value(Kind, ?KINDS).

humps(Humps) ->
    lists:join(", ", [float_to_list(H / 1000, [{decimals, 2}]) || H <- Humps]).

cutoff(below) -> "always worth it";
cutoff(above) -> "> measured";
cutoff(Size) -> shown(bytes, Size).

%% Written from the figures.
conclusion([Default, Tuned]) ->
    io_lib:format(
      "~nWhat to see: to a dirty CPU scheduler and back takes ~ts under default flags, ~ts under "
      "tuned~nones; work of less than ~ts and ~ts is not worth it.~n",
      [shown(ns, Ns) || Ns <- [Default, Tuned, Default / ?COST, Tuned / ?COST]]);
conclusion(_) ->
    "".
