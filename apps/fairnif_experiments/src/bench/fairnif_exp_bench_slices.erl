%% Slices: how long one blocks a normal scheduler, what it is charged, and how long after a kill its
%% call has stopped.
-module(fairnif_exp_bench_slices).
-behaviour(fairnif_exp_bench).

-export([runs/0, row/3, kill_rows/2, kills/2]).

-import(fairnif_exp_series, [interleave/2, name/2]).

-define(NIF, fairnif_exp_nif).
-define(ROUNDS, 11).
%% Rounds of work between two ticks: 1 and 4.5 us.
-define(STEP, 700).
-define(LONG_STEP, 3000).
-define(TOTAL_US, 30000).
-define(KILLS, 100).

%% @doc The runs.
-spec runs() -> [fairnif_exp_bench:run()].
runs() ->
    [#{id => block, flags => one, needs => [{levenshtein, "levenshtein"}],
       about => "how long a slice blocks a scheduler", samples => fun block/0,
       rows => [row(block, Name, "one slice of " ++ What)
                || {Name, What} <-
                       [{<<"levenshtein yielding">>, "NORMAL levenshtein, 12,000 bytes"},
                        {<<"levenshtein auto">>, "AUTO levenshtein, 12,000 bytes"},
                        {<<"spin yielding">>, "NORMAL work that ticks every 1 us"},
                        {<<"spin auto">>, "AUTO work that ticks every 4.4 us"}]]},
     #{id => charge, flags => one, about => "reductions charged", samples => fun charge/0,
       all => #{peer => "one call of 30 ms", unit => times, bound => {within, 0.2},
                how => "reductions of the caller by CPU time of its thread, loop included"},
       rows => [#{id => name("charge-~s-~s-~b", [Mode, Kind, Us]),
                  what => name("reductions per ms, ~s calls of ~b us, ~s", [mode(Mode), Us, Kind]),
                  value => {ratio, name("~p ~p ~p", [Mode, Kind, Us]),
                            name("~p ticking long", [Mode])}}
                || {Mode, Kind, Us} <- short_calls()]},
     #{id => kill, flags => two, about => "from kill to stop",
       samples => fun() -> kills(?NIF, modes()) end,
       rows => kill_rows("kill-~s", [{Mode, Slice, "kill to stop, " ++ mode(Mode)}
                                     || {Mode, Slice} <- modes()])}].

%% @doc The row of the slices of that name.
-spec row(atom(), binary(), unicode:chardata()) -> fairnif_exp_bench:row().
row(Run, Series, What) ->
    #{id => name("block-~s-~s", [Run, Series]), what => What, peer => "the slice set",
      value => {p99, Series}, over => slice_ns, unit => times, bound => {at_most, 2},
      how => "p99 of all slices, CPU time of the thread (fairnif:debug/1, measure_cpu)"}.

block() ->
    ok = code:ensure_modules_loaded([levenshtein, ?NIF]),
    Strings = [binary:copy(<<"a">>, 12000), binary:copy(<<"b">>, 12000)],
    Bodies = [{<<"levenshtein yielding">>, levenshtein, yielding_levenshtein, Strings},
              {<<"levenshtein auto">>, levenshtein, levenshtein, Strings},
              {<<"spin yielding">>, ?NIF, yielding_spin, [40000000, ?STEP]},
              {<<"spin auto">>, ?NIF, auto_spin, [40000000, ?LONG_STEP]}],
    {interleave(?ROUNDS,
                [fun() -> [{Name, fairnif_exp_series:slices({M, F, 2},
                                                            fun() -> apply(M, F, Args) end)}] end
                 || {Name, M, F, Args} <- Bodies]),
     maps:with([slice_ns], fairnif:info())}.

%% ---- reductions per millisecond of CPU time: many short calls beside one long one ----

%% Mode, whether they tick, microseconds.
short_calls() ->
    [{Mode, Kind, Us} || Mode <- [auto, yielding], Kind <- [ticking, quiet], Us <- [1, 2, 5, 10]].

charge() ->
    PerUs = 1000000 / ?NIF:work_ns(1000000) * 1000,
    interleave(?ROUNDS,
               [fun() -> charged(long, 1, round(?TOTAL_US * PerUs), ?STEP, Mode, ticking) end
                || Mode <- [auto, yielding]]
               ++ [fun() -> short(Mode, Kind, Us, PerUs) end || {Mode, Kind, Us} <- short_calls()]).

short(Mode, Kind, Us, PerUs) ->
    Step = case Kind of
               ticking -> max(1, round(PerUs / 2));
               quiet -> 0
           end,
    Rounds = round(Us * PerUs),
    %% What the runtime has learned of the calls before goes first.
    spin(500, Rounds, Step, spinning(Mode, Kind)),
    charged(Us, ?TOTAL_US div Us, Rounds, Step, Mode, Kind).

charged(What, Calls, Rounds, Step, Mode, Kind) ->
    {reductions, R0} = process_info(self(), reductions),
    {_, C0, _, _} = fairnif_check_nif:thread_times(),
    spin(Calls, Rounds, Step, spinning(Mode, Kind)),
    {_, C1, _, _} = fairnif_check_nif:thread_times(),
    {reductions, R1} = process_info(self(), reductions),
    [{name("~p ~p ~p", [Mode, Kind, What]), (R1 - R0) * 1.0e6 / (C1 - C0)}].

spinning(auto, ticking) -> fun ?NIF:auto_spin/2;
spinning(auto, quiet) -> fun ?NIF:auto_spin_quiet/2;
spinning(yielding, ticking) -> fun ?NIF:yielding_spin/2;
spinning(yielding, quiet) -> fun ?NIF:yielding_spin_quiet/2.

spin(0, _, _, _) -> ok;
spin(N, Rounds, Step, Fun) -> _ = Fun(Rounds, Step), spin(N - 1, Rounds, Step, Fun).

%% ---- from exit(Pid, kill) to the moment at which the task's clean-up runs ----

%% The modes that can be stopped, with the setting that is their slice.  FAIR_NORMAL with NO_YIELD
%% is not among them: a process on a normal scheduler receives its signals when it yields, and
%% that mode never does.  Up to then the VM does not know that it was killed.
modes() ->
    [{yielding, slice_ns}, {auto, slice_ns}, {dirty_cpu, dirty_slice_ns},
     {dirty_io, dirty_slice_ns}, {yielding_dirty, dirty_slice_ns}].

%% As fairnif.h has it.
mode(auto) -> "AUTO";
mode(yielding) -> "NORMAL";
mode(yielding_dirty) -> "DIRTY_CPU";
mode(dirty_cpu) -> "DIRTY_CPU, NO_YIELD";
mode(dirty_io) -> "DIRTY_IO, NO_YIELD".

%% @doc Their rows.
-spec kill_rows(io:format(), [{Mode :: atom(), Slice :: atom(), What :: string()}]) ->
          [fairnif_exp_bench:row()].
kill_rows(Id, Modes) ->
    [#{id => name(Id, [Mode]), what => What, peer => "a slice and 0.2 ms",
       value => {p99, atom_to_binary(Mode)}, unit => ns, bound => {at_most, {Slice, plus, 200000}},
       how => "p99 of 1,100 kills at any moment of a slice, killer on another scheduler"}
     || {Mode, Slice, What} <- Modes].

%% @doc So long after each of some kills the endless calls of these modes had stopped, ns.  Killer
%% and victim have a scheduler each; nothing else runs in the node.  The killer sleeps a millisecond
%% first, so the kill falls anywhere in a slice.
-spec kills(module(), [{atom(), Slice :: atom()}]) ->
          {fairnif_exp_series:samples(), fairnif_exp_bench:facts()}.
kills(Module, Modes) ->
    ok = code:ensure_modules_loaded([Module, ?NIF]),
    {interleave(?ROUNDS, [fun() -> [{atom_to_binary(Mode), killed(Module, Mode)}] end
                          || {Mode, _} <- Modes]),
     maps:with([slice_ns, dirty_slice_ns], fairnif:info())}.

killed(Module, Mode) ->
    Function = list_to_existing_atom(atom_to_list(Mode) ++ "_forever"),
    fairnif_check_machine:apart([fairnif_check_machine:bound_to(2)],
                              fun() ->
                                      [{kill(Module, Function), 1} || _ <- lists:seq(1, ?KILLS)]
                              end).

kill(Module, Function) ->
    ok = Module:clear_slot(0),
    {Pid, Monitor} = spawn_opt(fun() -> Module:Function(0) end,
                               [monitor, fairnif_check_machine:bound_to(1)]),
    wait_for(Module, 2),
    T0 = ?NIF:now(),
    exit(Pid, kill),
    receive {'DOWN', Monitor, process, _, killed} -> ok end,
    wait_for(Module, 3),
    element(3, Module:slot(0)) - T0.

wait_for(Module, Element) ->
    receive after 1 -> ok end,
    case element(Element, Module:slot(0)) of
        0 -> wait_for(Module, Element);
        _ -> ok
    end.
