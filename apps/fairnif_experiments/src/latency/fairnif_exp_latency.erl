%% What the way to native code and back costs: an echo of 1 KiB and of 64 KiB through
%% every way that Erlang has, from a BIF to a node in Java, each with how it is
%% isolated and beside the order of magnitude that was published.
%%
%% All in one node, and in turns: the forms are compared with each other.
-module(fairnif_exp_latency).

-behaviour(fairnif_experiment).

-export([about/0, steps/1, run/1, format/1]).

-define(PEER, fairnif_exp_latency_peer).
-define(SIZES, [1024, 65536]).
-define(QUANTILES, [0, 1, 5, 10, 25, 50, 75, 90, 95, 99, 99.9, 100]).
%% For opening, warming up and closing, beside the time of the rounds.
-define(MORE_MS, 180000).

scale(quick) -> #{rounds => 5, samples => 20, most_ms => 10000};
scale(normal) -> #{rounds => 100, samples => 50, most_ms => 120000};
scale(full) -> #{rounds => 500, samples => 100, most_ms => 1200000}.

%% @doc Its name, and one line for the list of experiments.
-spec about() -> fairnif_experiment:about().
about() ->
    #{name => latency,
      description => "an echo through NIFs, drivers, ports, nodes and sockets"}.

%% @doc One: the forms take turns.
-spec steps(fairnif_experiment:options()) -> pos_integer().
steps(_) ->
    1.

%% @doc Measures all forms; half a minute, `quick' some seconds.  A form that fails has an
%% `error' in its rows, one that cannot be had here a `left_out', and the others go on.
-spec run(fairnif_experiment:options()) -> fairnif_experiment:outcome().
run(Opts) ->
    fairnif_exp:needs([?PEER:example()], fun() -> measured(Opts) end).

measured(Opts) ->
    Progress = fairnif_exp:progress(Opts),
    #{most_ms := Ms} = Plan = scale(fairnif_exp:scale(Opts)),
    fairnif_lab_progress:step(Progress, "echoes"),
    Peer = fairnif_exp:in_peer(?PEER:flags(), {?PEER, measure, [Plan, ?SIZES]},
                               Ms + ?MORE_MS),
    fairnif_lab_progress:stop(Progress),
    case Peer of
        #{value := #{rows := Rows} = Measured} ->
            {ok, fairnif_exp:result(Rows, Measured#{units => <<"us">>, sizes => ?SIZES,
                                                    rows := [row(R) || R <- Rows]})};
        #{error := Error} ->
            {error, {failed, Error}}
    end.

row(#{samples := Samples} = Row) ->
    More = maps:remove(samples, Row),
    More#{median_us => us(fairnif_lab_stats:median(Samples)),
          p99_us => us(fairnif_lab_stats:percentile(99, Samples)),
          count => length(Samples),
          quantiles => [#{p => P, us => us(fairnif_lab_stats:percentile(P, Samples))}
                        || P <- ?QUANTILES],
          samples_us => [us(S) || S <- Samples]};
row(Row) ->
    Row.

%% To the nanosecond, which is what the clock tells; of means of many a digit more.
us(Ns) when Ns < 1000 -> round(Ns * 10) / 10000;
us(Ns) -> round(Ns) / 1000.

%% ---- the table ----

%% @doc The table, and what to see in it.
-spec format(fairnif_experiment:result()) -> unicode:chardata().
format(#{rows := Rows, sizes := Sizes, rounds := Rounds, clock_ns := ClockNs} = Result) ->
    Firsts = [R || #{bytes := Bytes} = R <- Rows, Bytes =:= hd(Sizes)],
    [fairnif_lab_table:render(
       [{"an echo through", left}, {"isolation", left}]
       ++ lists:append([[{[kib(Size), ":\nmedian"], right}, {"p99", right}] || Size <- Sizes])
       ++ [{"published\norder", right}],
       [cells(First, Sizes, Rows) || First <- Firsts]),
     io_lib:format("In turns, ~b rounds. Reading the clock (~ts) is taken off. *: too fast for "
                   "the clock: of the means\nof several in a row. Isolation: shared, it lives in "
                   "the VM; process, beside it; network, as well\non another machine.~n",
                   [Rounds, fairnif_lab_table:duration(ClockNs)]),
     [["Left out: ", Title, ": ", Why, $\n] || #{title := Title, left_out := Why} <- Firsts],
     fairnif_exp:footnotes(fun label/1, Firsts),
     %% One figure for all.
     fairnif_exp:footnotes(fun(_) -> "all" end, [maps:with([others], Result)]),
     conclusion(hd(Sizes), Firsts)].

label(#{title := Title}) ->
    Title.

cells(#{form := Form, title := Title, isolation := Isolation, published_us := Published}, Sizes,
      Rows) ->
    [Title, atom_to_list(Isolation)]
        ++ lists:append([figures(R) || Size <- Sizes, #{form := F, bytes := Bytes} = R <- Rows,
                                       F =:= Form, Bytes =:= Size])
        ++ [order(Published)].

figures(#{left_out := _}) -> ["left out", ""];
figures(#{error := _}) -> ["failed", ""];
figures(#{median_us := Median, p99_us := P99, echoes_per_sample := Echoes}) ->
    [duration(Median), [duration(P99), case Echoes of 1 -> "  "; _ -> " *" end]].

duration(Us) ->
    fairnif_lab_table:duration(Us * 1000).

order(undefined) -> "-";
order(Us) -> io_lib:format("~w us", [Us]).

kib(Size) when Size rem 1024 =:= 0 -> io_lib:format("~b KiB", [Size div 1024]);
kib(Size) -> io_lib:format("~b bytes", [Size]).

%% Written from the figures: each family by its first form that has any.
conclusion(Size, Rows) ->
    Families = [{"a NIF", [nif]}, {"a driver", [driver_control, driver_call, driver_outputv]},
                {"a port", [port]}, {"a node in C", [c_node]}],
    Found = [{What, Us, Published}
             || {What, Forms} <- Families,
                #{median_us := Us, published_us := Published}
                    <- lists:sublist([R || F <- Forms, #{form := Form, median_us := _} = R <- Rows,
                                           Form =:= F], 1)],
    [case Found of
         [] -> "";
         _ -> ["\nWhat to see: of ", kib(Size), ", there and back through\n",
               lists:join(",\n", [[What, " ", duration(Us), " (published ", order(Published), ")"]
                                 || {What, Us, Published} <- Found]), ".\n"]
     end,
     case {median(thread, Rows), median(fair_threaded, Rows)} of
         {Thread, Pool} when is_number(Thread), is_number(Pool), Pool > 0 ->
             io_lib:format("A thread of its own for each call costs ~.1f times what one of "
                           "fairnif's does.~n", [Thread / Pool]);
         _ -> ""
     end].

median(Form, Rows) ->
    case [Us || #{form := F, median_us := Us} <- Rows, F =:= Form] of
        [Us] -> Us;
        [] -> undefined
    end.
