%% The matrix of Bennett's talk: how much later than it could the last of many
%% native calls is done, by the way they run, their length and their number.
%%
%% Each mode has a node of its own; after a cell that failed or took too long
%% it gets a new one, and the next cell goes on.
-module(fairnif_exp_matrix).

-behaviour(fairnif_experiment).

-export([about/0, steps/1, run/1, format/1]).
-export([format/2]).

-define(PEER, fairnif_exp_matrix_peer).
-define(PLAN, fairnif_exp_matrix_plan).
%% What a cell may take: so many times its prediction, and this.
%% Large, as it is only against what never ends: a busy machine shall not fail.
-define(TIMES, 10).
-define(LIMIT_MS, 30000).

%% @doc Its name, and one line for the list of experiments.
-spec about() -> fairnif_experiment:about().
about() ->
    #{name => matrix,
      description =>
          "modes x durations x calls per scheduler: how long the last one waits (Bennett's talk)"}.

%% @doc One per mode and duration.
-spec steps(fairnif_experiment:options()) -> pos_integer().
steps(Opts) ->
    length(groups(?PLAN:cells(fairnif_exp:scale(Opts)))).

%% @doc Measures the cells of `scale' (quick: some seconds; normal: about five
%% minutes; full: hours).  A cell that fails or takes longer than ten times its
%% prediction and `limit_ms' says so, and the others go on.  `failed' when the
%% example spinsleep is not built.
-spec run(fairnif_experiment:options()) -> fairnif_experiment:outcome().
run(Opts) ->
    fairnif_exp:needs([fairnif_exp:spinsleep()],
                      fun() ->
                              run(fairnif_exp:scale(Opts),
                                  maps:get(limit_ms, Opts, ?LIMIT_MS),
                                  fairnif_exp:progress(Opts))
                      end).

%% @doc The tables, as heat maps where standard output can show them.
-spec format(fairnif_experiment:result()) -> unicode:chardata().
format(Result) ->
    format(Result, fairnif_lab_heat:kind()).

%% @doc The tables with this kind of heat.
-spec format(fairnif_experiment:result(), fairnif_lab_heat:kind()) ->
          unicode:chardata().
format(#{rows := Rows} = Result, Kind) ->
    [[table(Us, [R || #{duration_us := D} = R <- Rows, D =:= Us], Kind)
      || Us <- lists:usort([Us || #{duration_us := Us} <- Rows])],
     footnotes(Result), conclusion(Rows)].

%% ---- running ----

run(Scale, LimitMs, Progress) ->
    Cells = ?PLAN:cells(Scale),
    Start = erlang:monotonic_time(millisecond),
    State0 = #{progress => Progress, peer => none, left => ?PLAN:cost_ms(Cells),
               limit => LimitMs, others => []},
    {Groups, State1} = lists:mapfoldl(fun group/2, State0, groups(Cells)),
    Rows = lists:append(Groups),
    #{others := Others} = done(State1),
    fairnif_lab_progress:stop(Progress),
    {ok, #{ok => lists:all(fun(#{status := S}) ->
                                   S =:= measured orelse S =:= skipped
                           end, Rows),
           scale => Scale,
           predicted_ms => ?PLAN:cost_ms(Cells),
           took_ms => erlang:monotonic_time(millisecond) - Start,
           flags => flags_text(),
           others => Others,
           units => <<"elapsed, extra in ns; extra: of the median run">>,
           published => [#{mode => M, duration_us => Us, extra_s => seconds(P)}
                         || {M, Us} <- lists:usort(
                                         [{M, Us} || #{mode := M, duration_us := Us} <- Rows]),
                            P <- [?PLAN:published(M, Us)], P =/= undefined],
           rows => Rows}}.

%% For JSON: null is none.
seconds(Published) ->
    [case S of none -> null; _ -> S end || S <- Published].

%% The cells of one mode and duration, in the order of the plan.
groups([]) ->
    [];
groups([#{mode := Mode, duration_us := Us} | _] = Cells) ->
    {Group, Rest} = lists:splitwith(
                      fun(#{mode := M, duration_us := D}) ->
                              M =:= Mode andalso D =:= Us
                      end, Cells),
    [Group | groups(Rest)].

group([#{mode := Mode, duration_us := Us} | _] = Group,
      #{progress := Progress, left := Left} = State0) ->
    Cost = ?PLAN:cost_ms(Group),
    fairnif_lab_progress:step(
      Progress, io_lib:format("~ts, ~ts: ~ts of ~ts left",
                              [title(Mode), fairnif_exp:time(Us), fairnif_exp:about(Cost),
                               fairnif_exp:about(Left)])),
    State1 = same_mode(Mode, State0),
    {Measured, State2} = lists:mapfoldl(fun cell/2, State1, Group),
    {Measured, State2#{left := Left - Cost}}.

%% A peer of another mode is of no further use.
same_mode(Mode, #{peer := #{mode := Mode}} = State) ->
    State;
same_mode(Mode, State) ->
    (done(State))#{mode => Mode}.

%% Ends a peer that still answers, and asks it first what others computed.
done(#{peer := #{node := Node, mode := Mode, clock := Clock}, others := Others} = State) ->
    Now = fairnif_lab_peer:cpu_clock(Node),
    Row = #{mode => Mode, others => fairnif_lab_machine:others(Clock, Now)},
    drop(State#{others := Others ++ [Row]});
done(State) ->
    State.

drop(#{peer := #{node := Node}} = State) ->
    fairnif_lab_peer:stop(Node),
    State#{peer := none}.

cell(#{skipped := Why} = Cell, State) when Why =/= undefined ->
    {Cell#{status => skipped}, State};
cell(Cell, #{peer := none, mode := Mode} = State) ->
    case start(Mode) of
        {ok, Peer} -> cell(Cell, State#{peer := Peer});
        {error, Why} -> {failed(Cell, Why), State}
    end;
cell(#{form := Form, duration_us := Us, multiple := Multiple, runs := Runs,
       predicted_ms := Ms} = Cell,
     #{peer := #{node := Node} = Peer, limit := LimitMs} = State) ->
    Limit = ?TIMES * Ms + LimitMs,
    case passes(Runs, Node, {?PEER, cell, [Form, Us, Multiple]}, Limit) of
        {ok, Elapsed} -> {measured(Cell, Peer, Elapsed), State};
        {error, timeout} -> {Cell#{status => timeout, limit_ms => Limit}, drop(State)};
        {error, Why} -> {failed(Cell, Why), drop(State)}
    end.

start(Mode) ->
    case fairnif_lab_peer:start(flags()) of
        {ok, Node} ->
            case {fairnif_lab_peer:call(Node, {?PEER, prepare, []}, ?LIMIT_MS),
                  fairnif_lab_peer:call(Node, cpu_clock(), ?LIMIT_MS)} of
                {{ok, About}, {ok, Clock}} ->
                    {ok, About#{mode => Mode, node => Node, clock => Clock}};
                Answers ->
                    fairnif_lab_peer:stop(Node),
                    [Reason | _] = [R || {error, R} <- tuple_to_list(Answers)],
                    {error, fairnif_lab_peer:format_error(Reason)}
            end;
        {error, Reason} ->
            {error, fairnif_lab_peer:format_error(Reason)}
    end.

cpu_clock() ->
    {fairnif_lab_machine, cpu_clock, []}.

passes(0, _, _, _) ->
    {ok, []};
passes(Runs, Node, MFA, Limit) ->
    case fairnif_lab_peer:call(Node, MFA, Limit) of
        {ok, {ok, Ns}} ->
            case passes(Runs - 1, Node, MFA, Limit) of
                {ok, More} -> {ok, [Ns | More]};
                Error -> Error
            end;
        {ok, {error, Reason}} ->
            {error, io_lib:format("a call ended with ~0tP", [Reason, 8])};
        {error, {timeout, _}} ->
            {error, timeout};
        {error, Reason} ->
            {error, fairnif_lab_peer:format_error(Reason)}
    end.

measured(#{multiple := Multiple} = Cell,
         #{schedulers := Schedulers, work_scale := Scale}, Elapsed) ->
    Cell#{status => measured, processes => Multiple * Schedulers,
          work_scale => Scale, elapsed => Elapsed,
          extra => fairnif_lab_stats:median(Elapsed) - least(Cell, Scale)}.

%% What it takes at least, in ns: calls that wait for a deadline can all do so
%% at once; work is shared by as many cores as there are schedulers.  Scale: what
%% a microsecond of work took alone in that node.
least(#{job := spinsleep, duration_us := Us}, _) ->
    1000 * Us;
least(#{job := spinwork, duration_us := Us, multiple := Multiple}, Scale) ->
    round(1000 * Us * Multiple * Scale).

failed(Cell, Why) ->
    Cell#{status => failed, why => unicode:characters_to_binary(Why)}.

%% All defaults, but room for many processes on many cores.
flags() ->
    ["+P", "2000000"].

flags_text() ->
    list_to_binary(lists:join($\s, flags())).

%% ---- the tables ----

table(Us, Rows, Kind) ->
    Multiples = lists:usort([M || #{multiple := M} <- Rows]),
    Lines = [{Job, Mode, [find(Job, Mode, M, Rows) || M <- Multiples]}
             || Job <- [spinsleep, spinwork], {Mode, _, _, _} <- ?PLAN:modes(),
                lists:any(fun(#{job := J, mode := M}) ->
                                  J =:= Job andalso M =:= Mode
                          end, Rows)],
    Columns = [{["calls of ", fairnif_exp:time(Us)], left}, {"mode", left}]
        ++ [{[fairnif_lab_table:count(M), "x"], right} || M <- Multiples]
        ++ [{published_title(), right}],
    Cells = [[atom_to_list(Job), title(Mode)]
             ++ [fairnif_lab_heat:mark(Kind, level(C), text(C)) || C <- Line]
             ++ [published(Job, Mode, Us)] || {Job, Mode, Line} <- Lines],
    Levels = [[undefined, undefined] ++ [level(C) || C <- Line] ++ [undefined]
              || {_, _, Line} <- Lines],
    [fairnif_lab_heat:paint(Kind, fairnif_lab_table:render(Columns, Cells),
                            Levels), $\n].

find(Job, Mode, Multiple, Rows) ->
    case [R || #{job := J, mode := Mo, multiple := M} = R <- Rows,
               J =:= Job, Mo =:= Mode, M =:= Multiple] of
        [Row] -> Row;
        [] -> none
    end.

published_title() ->
    "the talk: 1x, 10x,\n100x, 1000x, 10000x".

level(#{status := measured, extra := Ns}) -> fairnif_lab_heat:level(Ns);
level(_) -> undefined.

text(#{status := measured, extra := Ns}) -> fairnif_lab_table:duration(Ns);
text(none) -> "";
text(#{status := failed}) -> "failed";
text(#{status := timeout, limit_ms := Ms}) -> ["> ", fairnif_exp:about(Ms)];
text(#{status := skipped, skipped := cell, predicted_ms := Ms}) ->
    ["(", fairnif_exp:time(1000 * Ms), ")"];
text(#{status := skipped, skipped := total}) -> "(left out)".

published(spinwork, _, _) ->
    "";
published(spinsleep, Mode, Us) ->
    case ?PLAN:published(Mode, Us) of
        undefined -> "";
        Seconds -> lists:join("/", [published(S) || S <- Seconds])
    end.

published(none) -> "-";
published(S) when S >= 120 -> [integer_to_list(S div 60), "m"];
published(S) -> [integer_to_list(S), "s"].

title(Mode) ->
    {_, Title, _, _} = lists:keyfind(Mode, 1, ?PLAN:modes()),
    Title.

footnotes(#{scale := Scale, rows := Rows, others := Others}) ->
    Schedulers = [P div M || #{processes := P, multiple := M} <- Rows],
    ["Last end less first start, less the duration of a call (spinsleep: spins "
     "until a deadline) or less\nduration x calls / cores (spinwork: a fixed "
     "amount of work, its duration taken as it was alone).\n1x is one call for "
     "each of ", integer_to_list(lists:max([0 | Schedulers])),
     " schedulers.  The talk: Andrew Bennett, \"Well-Behaved Native\n"
     "Implemented Functions for Elixir\", 2017, his machine, spinsleep; - is "
     "none.  His yielding form gave way\nonce in a call.\n",
     [["(100 s): left out, predicted to take so long; more than a cell may in the scale ",
       atom_to_list(Scale), ".\n"]
      || lists:any(fun(#{skipped := S}) -> S =:= cell end, Rows)],
     [["(left out): all together would take longer than the scale ",
       atom_to_list(Scale), " may; a larger one has it.\n"]
      || lists:any(fun(#{skipped := S}) -> S =:= total end, Rows)],
     [["> : no answer within the time limit.\n"]
      || lists:any(fun(#{status := S}) -> S =:= timeout end, Rows)],
     [["Failed: ", atom_to_list(Form), ", ", fairnif_exp:time(Us), ", ",
       fairnif_lab_table:count(M), "x: ", Why, $\n]
      || #{status := failed, form := Form, duration_us := Us, multiple := M,
           why := Why} <- Rows],
     fairnif_exp:doubt(", ", [title(M) || #{mode := M, others := O} <- Others,
                                          fairnif_exp:doubted(O)])].

%% Written from the figures, so that it cannot say what they do not: the cell of
%% spinsleep in which plain NIFs were latest, and what others made of it.
conclusion(Rows) ->
    Measured = [{Extra, R} || #{status := measured, extra := Extra} = R <- Rows],
    case lists:sort([{Extra, Us, M}
                     || {Extra, #{mode := normal, job := spinsleep,
                                  duration_us := Us, multiple := M}} <- Measured]) of
        [] ->
            "";
        Plain ->
            {_, Us, M} = lists:last(Plain),
            Same = [{maps:get(mode, R), Extra, maps:get(processes, R)}
                    || {Extra, #{job := spinsleep, duration_us := D, multiple := X} = R}
                           <- Measured, D =:= Us, X =:= M],
            conclusion(Us, Same)
    end.

conclusion(Us, [{_, _, Processes} | _] = Same) ->
    io_lib:format(
      "~nWhat to see: ~s calls of ~s that only wait for a deadline could all be done at once.~n"
      "The last one is late by~n~ts"
      "Work has to be done by someone: what a form of spinwork adds is what the form costs.~n",
      [fairnif_lab_table:count(Processes), fairnif_exp:time(Us),
       [io_lib:format("~9s  ~ts~n", [fairnif_lab_table:duration(E), title(Mode)])
        || {Mode, E, _} <- Same]]).
