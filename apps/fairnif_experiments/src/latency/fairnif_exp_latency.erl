%% What the way to native code and back costs: an echo of 1 KiB and of 64 KiB in
%% ten ways that Erlang has, from a NIF to another node, each with how it is
%% isolated and beside the order of magnitude that was published.
%%
%% All in one node, and in turns: the forms are compared with each other.
-module(fairnif_exp_latency).

-behaviour(fairnif_experiment).

-export([experiment/0]).

-import(fairnif_exp, [shown/2, text/1]).
-import(fairnif_check_stats, [median/1, percentile/2]).

-define(SIZES, [1024, 65536]).
-define(QUANTILES, [0, 1, 5, 10, 25, 50, 75, 90, 95, 99, 99.9, 100]).
%% For opening, warming up and closing, beside the time of the rounds.
-define(MORE_MS, 180000).
%% Echoes before any counts: code is loaded.
-define(WARM_ECHOES, 2000).
-define(WARM_MS, 200).
%% Before each block: what has slept wakes, what was displaced from caches returns.
-define(WAKE, 3).
%% An echo that takes so long is timed alone; a sample of shorter ones takes at least that: the
%% clock is then some per cent of it.
-define(SAMPLE_NS, 2000).
-define(MOST_ECHOES, 1000).
-define(TRIES, 31).
%% Of the loop that does nothing, beside each block.
-define(IDLE_TRIES, 9).
-define(TABLE, ?MODULE).

%% `samples': of each form and size in a round; `most_ms': no round but the first is begun after
%% that, opening and warming up included; `forms': where they come from, if not from the example.
scale(quick) -> #{rounds => 5, samples => 20, most_ms => 10000};
scale(normal) -> #{rounds => 100, samples => 50, most_ms => 120000};
scale(full) -> #{rounds => 500, samples => 100, most_ms => 1200000}.

%% @doc Measures all forms; half a minute, `quick' some seconds.  A form that fails has an `error'
%% in its rows, one that cannot be had here a `left_out', and the others continue.
-spec experiment() -> fairnif_experiment:experiment().
experiment() ->
    #{name => latency, needs => [example()],
      description => "an echo through NIFs, processes, a driver, a port and nodes",
      steps => 1,                               % the forms take turns
      measure => fun measure/3, peer => fun peer/1, format => fun format/1}.

%% Called by this name alone.
-spec example() -> module().
example() -> echo.

measure(Scale, _, Step) ->
    #{most_ms := Ms} = Plan = scale(Scale),
    Step("echoes"),
    Flags = (example()):flags(),
    case fairnif_exp:in_peer(Flags, {?MODULE, {Plan, ?SIZES}}, Ms + ?MORE_MS) of
        #{value := #{rows := Rows} = Measured} ->
            fairnif_exp:result(Rows, Measured#{units => <<"us">>, sizes => ?SIZES,
                                               rows := [row(R) || R <- Rows]});
        #{error := Error} ->
            throw({failed, Error})
    end.

row(#{samples := Samples} = Row) ->
    More = maps:remove(samples, Row),
    More#{median_us => us(median(Samples)), p99_us => us(percentile(99, Samples)),
          count => length(Samples), samples_us => [us(S) || S <- Samples],
          quantiles => [#{p => P, us => us(percentile(P, Samples))} || P <- ?QUANTILES]};
row(Row) ->
    Row.

%% To the nanosecond, which is what the clock tells; of means of many a digit more.
us(Ns) when Ns < 1000 -> round(Ns * 10) / 10000;
us(Ns) -> round(Ns) / 1000.

%% ---- in the peer ----

%% A row for each form and size, in the order of the forms.  A form that fails has an error, and the
%% others continue.  With it: rounds that were done, what reading the clock takes (ns), and the
%% processors that other programs kept busy, which those of the forms do not count as.
%%
%% A sample is one echo, or of a form that is too fast for the clock, the mean of several in a
%% row.  What reading the clock and the loop take, measured beside each block in the same way with a
%% function that returns its argument, is taken off.  In a process that ends with all that it has
%% opened.
peer({Plan, Sizes}) ->
    fairnif_check_machine:apart([], fun() -> measured(Plan, Sizes) end).

measured(#{most_ms := Ms} = Plan, Sizes) ->
    %% The end of a form is that form's failure.
    process_flag(trap_exit, true),
    ?TABLE = ets:new(?TABLE, [named_table, ordered_set, private]),
    Until = now_ns() + Ms * 1000000,
    Bins = [{Size, rand:bytes(Size)} || Size <- Sizes],
    Forms = case Plan of
                #{forms := {Module, Function}} -> Module:Function();
                _ -> (example()):forms()
            end,
    Opened = [opened(Form, Bins) || Form <- Forms],
    OsPids = lists:append([Pids || #{os_pids := Pids} <- Opened]),
    Before = fairnif_check_machine:cpu_clock(OsPids),
    {Rounds, Left} = rounds(Plan, Opened, Until, 0),
    After = fairnif_check_machine:cpu_clock(OsPids),
    _ = [close(Form) || Form <- Left],
    #{rows => [row(Form, Size) || Form <- Left, Size <- Sizes], rounds => Rounds,
      clock_ns => idle_ns(1, ?TRIES, <<>>), others => fairnif_check_machine:others(Before, After)}.

%% The form with what is needed to measure it: its state and, for each size, how many echoes make a
%% sample.
opened(#{open := Open} = Form, Bins) ->
    trying(fun() ->
                   case Open() of
                       {ok, State, OsPids} -> Form#{state => State, os_pids => OsPids};
                       {left_out, Why} -> Form#{left_out => text(Why)}
                   end
           end, fun(Own) -> warm(Own, Bins) end, Form).

warm(#{state := _} = Form, Bins) ->
    Form#{blocks => [begin
                         warm_up(Form, Bin, now_ns() + ?WARM_MS * 1000000, ?WARM_ECHOES),
                         {Size, Bin, echoes(Form, Bin)}
                     end || {Size, Bin} <- Bins]};
warm(Form, _) ->
    Form.

%% What becomes of a form: what is done with it, or its error.  One that is open stays so.
trying(Do, Then, Form) ->
    try Do() of
        Own -> trying(fun() -> Then(Own) end, Own)
    catch
        Class:Reason -> failed(Class, Reason, Form)
    end.

trying(Do, Form) ->
    try Do() catch Class:Reason -> failed(Class, Reason, Form) end.

failed(Class, Reason, Form) ->
    Form#{error => text(io_lib:format("~s:~0tP", [Class, Reason, 20]))}.

warm_up(Form, Bin, Until, Left) ->
    right(Form, Bin),
    case Left > 1 andalso now_ns() < Until of
        true -> warm_up(Form, Bin, Until, Left - 1);
        false -> ok
    end.

%% Every byte.
right(#{echo := Echo, state := State}, Bin) ->
    case Echo(State, Bin) of
        Bin -> ok;
        Other when is_binary(Other) ->
            error({wrong_echo, byte_size(Other), for, byte_size(Bin)});
        Other ->
            error({wrong_echo, Other})
    end.

echoes(#{echo := Echo, state := State}, Bin) ->
    case samples(Echo, State, Bin, 1, ?TRIES) of
        One when One >= ?SAMPLE_NS ->
            1;
        _ ->
            Ten = samples(Echo, State, Bin, 10, ?TRIES),
            min(?MOST_ECHOES, max(1, ceil(?SAMPLE_NS * 10 / max(1, Ten))))
    end.

idle_ns(Echoes, Tries, Bin) ->
    samples(fun(_, B) -> B end, none, Bin, Echoes, Tries).

samples(Echo, State, Bin, Echoes, Tries) ->
    median([sample(Echo, State, Bin, Echoes) || _ <- lists:seq(1, Tries)]).

%% ---- the rounds ----

rounds(#{rounds := Most} = Plan, Forms, Until, Done) ->
    case Done < Most andalso (Done =:= 0 orelse now_ns() < Until) of
        true ->
            %% A form does not always come after the same one.
            {Later, First} = lists:split(Done rem length(Forms), Forms),
            Went = [{Name, went(Plan, Form, Done)} || #{form := Name} = Form <- First ++ Later],
            rounds(Plan, [proplists:get_value(Name, Went) || #{form := Name} <- Forms], Until,
                   Done + 1);
        false ->
            {Done, Forms}
    end.

%% The form, or what has become of it.
went(#{samples := Samples}, #{blocks := Blocks} = Form, Round) ->
    try
        _ = [block(Form, Block, Samples, Round) || Block <- Blocks],
        Form
    catch
        Class:Reason ->
            close(Form),
            failed(Class, Reason, maps:without([state, blocks], Form))
    end;
went(_, Form, _) ->
    Form.

block(#{form := Name, echo := Echo, state := State} = Form, {Size, Bin, Echoes}, Samples,
      Round) ->
    Idle = idle_ns(Echoes, ?IDLE_TRIES, Bin),
    _ = [right(Form, Bin) || _ <- lists:seq(1, ?WAKE)],
    erlang:garbage_collect(),
    Ns = [sample(Echo, State, Bin, Echoes) || _ <- lists:seq(1, Samples)],
    right(Form, Bin),
    true = ets:insert(?TABLE, {{Name, Size, Round}, [max(0, N - Idle) / Echoes || N <- Ns]}).

sample(Echo, State, Bin, Echoes) ->
    T0 = now_ns(),
    repeat(Echo, State, Bin, Echoes),
    now_ns() - T0.

repeat(Echo, State, Bin, 1) ->
    Echo(State, Bin);
repeat(Echo, State, Bin, N) ->
    _ = Echo(State, Bin),
    repeat(Echo, State, Bin, N - 1).

%% Whatever state it is in: what does not close ends with this process.
close(#{state := State, close := Close}) ->
    _ = try Close(State) catch _:_ -> failed end,
    ok;
close(_) ->
    ok.

row(#{title := Title} = Form, Size) ->
    maps:merge((maps:with([form, isolation, published_us, left_out, error], Form))
                   #{title => text(Title), bytes => Size}, figures(Form, Size)).

figures(#{form := Name, blocks := Blocks}, Size) ->
    {_, _, Echoes} = lists:keyfind(Size, 1, Blocks),
    #{samples => lists:append(ets:select(?TABLE, [{{{Name, Size, '_'}, '$1'}, [], ['$1']}])),
      echoes_per_sample => Echoes};
figures(_, _) ->
    #{}.

now_ns() ->
    erlang:monotonic_time(nanosecond).

%% ---- the table ----

format(#{rows := Rows, sizes := Sizes, rounds := Rounds, clock_ns := ClockNs} = Result) ->
    Firsts = [R || #{bytes := Bytes} = R <- Rows, Bytes =:= hd(Sizes)],
    [fairnif_exp:table(
       [{"an echo through", left, {title, text}}, {"isolation", left, {isolation, text}}]
       ++ lists:append([[{[kib(Size), ":\nmedian"], right, {[Size, median_us], us}},
                         {"p99", right, {Size, fun p99/1}}] || Size <- Sizes])
       ++ [{"published\norder", right, {published_us, fun order/1}}],
       [maps:from_list([{Size, R} || #{form := F, bytes := Size} = R <- Rows, F =:= Form]
                       ++ maps:to_list(maps:remove(error, First)))
        || #{form := Form} = First <- Firsts]),
     io_lib:format("In turns, ~b rounds. Reading the clock (~ts) is taken off. *: too fast for "
                   "the clock: of the means\nof several in a row. Isolation: shared, it lives in "
                   "the VM; process, beside it; network, as well\non another machine.~n",
                   [Rounds, shown(ns, ClockNs)]),
     [["Left out: ", Title, ": ", Why, $\n] || #{title := Title, left_out := Why} <- Firsts],
     fairnif_exp:footnotes(fun(#{title := Title}) -> Title end, Firsts),
     %% One figure for all.
     fairnif_exp:footnotes(fun(_) -> "all" end, [maps:with([others], Result)]),
     conclusion(hd(Sizes), Firsts)].

p99(#{left_out := _}) -> "left out";
p99(#{error := _}) -> "failed";
p99(#{p99_us := Us, echoes_per_sample := 1}) -> [shown(us, Us), "  "];
p99(#{p99_us := Us}) -> [shown(us, Us), " *"].

order(Us) -> io_lib:format("~w us", [Us]).

kib(Size) -> io_lib:format("~b KiB", [Size div 1024]).

%% Written from the figures: each family by its first form that has any.
conclusion(Size, Rows) ->
    Families = [{"a NIF", [nif]}, {"a driver", [driver_outputv]},
                {"a port", [port]}, {"a node in C", [c_node]}],
    Found = [[What, " ", shown(us, Us), " (published ", order(Published), ")"]
             || {What, Forms} <- Families,
                #{median_us := Us, published_us := Published}
                    <- lists:sublist([R || F <- Forms, #{form := Form, median_us := _} = R <- Rows,
                                           Form =:= F], 1)],
    [["\nWhat to see: of ", kib(Size), ", there and back through\n", lists:join(",\n", Found),
      ".\n"] || Found =/= []].
