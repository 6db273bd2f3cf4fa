%% What the VM charges a process for a call: Erlang, native code that says
%% nothing about the time it used, and native code that says it.
%%
%% Everything runs in one peer, one call after the other in a process of its
%% own; a charge is counted, not timed, so a busy machine hardly moves it.
-module(fairnif_exp_reductions).

-behaviour(fairnif_experiment).

-export([about/0, steps/1, run/1, format/1]).

-define(PEER, fairnif_exp_reductions_peer).
-define(REPLIES, 1000).

%% From a shell: its evaluator's own work is in these figures.  Of the compiled
%% ones none was published for NIFs.
published() ->
    #{echo => {1, 400}, replies => {1001, 1400}, nif_echo => {undefined, 200},
      nif_spin => {undefined, 200}, nif_consume => {undefined, 4200}}.

%% In the order of the table: key, what it is, the call.
rows(Us) ->
    [{echo, "Erlang: echo", {?PEER, echo, [hello]}},
     {replies, "Erlang: receive 1,000 replies", {?PEER, replies, [?REPLIES]}},
     {work, ["Erlang: work for ", time(Us)], {?PEER, work, [Us]}},
     {nif_echo, "NIF: echo", {fairnif_exp:spinsleep(), echo, [hello]}},
     {nif_spin, ["NIF: spins ", time(Us)], {fairnif_exp:spinsleep(), spinsleep, [Us]}},
     {nif_consume, "NIF: consume_timeslice(100)", {fairnif_exp_nif, consume, [100]}},
     {nif_sliced, ["NIF: slices of 1 ms, each 100 %, ", time(Us)],
      {fairnif_exp_nif, sliced, [1000, max(1, Us div 1000)]}},
     {nif_dirty, ["dirty NIF: spins ", time(Us)], {fairnif_exp:spinsleep(), spinsleep_dirty, [Us]}},
     {nif_fair, ["fair NIF: spins ", time(Us)],
      {fairnif_exp:spinsleep(), spinsleep_fair_yield, [Us]}}].

%% How long those spin that spin, in us.
spin_us(quick) -> 50000;
spin_us(_) -> 1000000.

%% The median of so many; one that spins for a second needs no more.
repeats(quick) -> 1;
repeats(normal) -> 3;
repeats(full) -> 11.

%% @doc Its name, and one line for the list of experiments.
-spec about() -> fairnif_experiment:about().
about() ->
    #{name => reductions,
      description => "what an echo, replies, a spinning NIF and a sliced one are charged"}.

%% @doc One per call.
-spec steps(fairnif_experiment:options()) -> pos_integer().
steps(_) ->
    length(rows(0)).

%% @doc Charges each call, compiled and evaluated; half a minute, since five of
%% them last a second.
-spec run(fairnif_experiment:options()) -> fairnif_experiment:outcome().
run(Opts) ->
    fairnif_exp:needs([fairnif_exp:spinsleep()], fun() -> measured(Opts) end).

measured(Opts) ->
    Progress = fairnif_exp:progress(Opts),
    Scale = fairnif_exp:scale(Opts),
    Us = spin_us(Scale),
    Rows = fairnif_lab_peer:with([], fun(Peer) ->
        [begin
             fairnif_lab_progress:step(Progress, Title),
             Row = row(Peer, Call, repeats(Scale)),
             Row#{key => Key, title => unicode:characters_to_binary(Title)}
         end || {Key, Title, Call} <- rows(Us)]
    end),
    fairnif_lab_progress:stop(Progress),
    case Rows of
        {error, Reason} ->
            {error, {failed, fairnif_lab_peer:format_error(Reason)}};
        _ ->
            {ok, fairnif_exp:result(Rows, #{rows => [published(R) || R <- Rows],
                                            spin_us => Us,
                                            units => <<"reductions">>})}
    end.

row(Peer, Call, Repeats) ->
    try
        [Compiled, Evaluated] =
            [[ask(Peer, How, Call) || _ <- lists:seq(1, Repeats)]
             || How <- [compiled, evaluated]],
        #{compiled => round(fairnif_lab_stats:median(Compiled)),
          evaluated => round(fairnif_lab_stats:median(Evaluated)),
          compiled_samples => Compiled, evaluated_samples => Evaluated}
    catch
        throw:{failed, Text} -> #{error => Text}
    end.

%% Nothing here lasts longer than a second or two, even behind other programs.
ask(Peer, How, Call) ->
    fairnif_exp:ask(Peer, {?PEER, charged, [How, Call]}, 60000).

published(#{key := Key} = Row) ->
    {Compiled, Shell} = maps:get(Key, published(), {undefined, undefined}),
    Row#{published => #{compiled => Compiled, shell => Shell}}.

%% @doc The table and what to see in it.
-spec format(fairnif_experiment:result()) -> unicode:chardata().
format(#{rows := Rows}) ->
    [fairnif_lab_table:render(
       [{"call", left}, {"compiled", right}, {"published,\ncompiled", right},
        {"evaluated", right}, {"published,\nin a shell", right}],
       [cells(R) || R <- Rows]),
     "Reductions; a turn is 4,000.  Compiled: the call alone.  Evaluated: with what "
     "erl_eval does\nmeanwhile; a shell adds hundreds of its own, so the published "
     "figures are not those of the calls.\nA VM with the JIT "
     "charges the return from an Erlang function as well.\n",
     fairnif_exp:footnotes(fun(#{title := Title}) -> Title end, Rows),
     conclusion(maps:from_list([{K, C} || #{key := K, compiled := C} <- Rows]))].

cells(#{title := Title, error := Error}) ->
    [Title, ["failed: ", string:slice(Error, 0, 30)], "", "", ""];
cells(#{title := Title, compiled := Compiled, evaluated := Evaluated,
        published := #{compiled := OfCompiled, shell := Shell}}) ->
    [Title, fairnif_lab_table:count(Compiled), fairnif_lab_table:count(OfCompiled),
     fairnif_lab_table:count(Evaluated), about(Shell)].

about(undefined) -> "-";
about(N) -> ["~", fairnif_lab_table:count(N)].

conclusion(#{nif_spin := Spin, nif_sliced := Sliced, nif_fair := Fair, work := Work}) ->
    io_lib:format(
      "~nWhat to see: for the same time Erlang work is charged ~ts, a NIF that says "
      "nothing ~ts,~none that says after each millisecond that its slice is used up "
      "~ts, a fair one ~ts.~n",
      [fairnif_lab_table:count(N) || N <- [Work, Spin, Sliced, Fair]]);
conclusion(_) ->
    "".

time(Us) ->
    fairnif_lab_table:duration(Us * 1000).
