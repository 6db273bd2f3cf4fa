%% What the experiment `http' runs at which scale: its modes, its runs, and how long they take.
%%
%% Pure: nothing here measures, so the plan is the same on every machine.
-module(fairnif_exp_http_plan).

-export([modes/0, title/1, at_most/1, runs/2, cost_ms/1, takes_ms/1]).

-export_type([work/0, run/0]).

%% What a heavy request calls: a function of the example spinsleep, or ordinary Erlang that works
%% as long.
-type work() :: {nif, Function :: atom()} | {erlang, spinsleep | spinwork}.
-type run() :: #{mode := atom(), title := string(), job := spinsleep | spinwork | undefined,
                 work := work() | undefined,            % of idle: none
                 duration_ms := pos_integer() | undefined,
                 at_once := non_neg_integer(),          % heavy requests under way
                 rate := pos_integer(),                 % light requests a second, of all clients
                 repeat := pos_integer(),
                 window_ms := pos_integer()}.

%% Before the window: h2load connects, then the heavy requests begin.  After it: what was due in the
%% window may still be answered.
-define(LEAD_MS, 1000).
-define(TAIL_MS, 1000).
%% A node boots, loads, is killed.
-define(NODE_MS, 1500).
%% What the project promises beside modes that tick on normal schedulers.
-define(AT_MOST, 2.0).

%% In the order of the table: the mode, its title, what it calls of the example spinsleep as the
%% suffix of the job's name, whether it is run for long calls too, and what is promised of the light
%% route's p99: that many times that beside ordinary Erlang.
table() ->
    [{idle, "nothing", none, true, undefined},
     {erlang, "ordinary Erlang", erlang, true, undefined},
     {normal, "plain NIF", "", false, undefined},
     {dirty, "dirty CPU NIF", "_dirty", false, undefined},
     {by_hand, "sliced by hand, 1 ms", "_timeslice", true, undefined},
     {yielding, "fairnif NORMAL", "_fair_yield", true, ?AT_MOST},
     {yielding_dirty, "fairnif DIRTY_CPU", "_fair_dirty_yield", true, undefined},
     {threaded, "fairnif THREADED", "_threaded", true, undefined},
     {auto, "fairnif AUTO", "_fair", true, ?AT_MOST}].

scale(quick) ->
    #{modes => [idle, erlang, normal, auto], jobs => [spinwork], short => [10], long => [],
      at_once => [8], rates => [400], repeats => 1, window => 2000};
scale(normal) ->
    #{modes => modes() -- [by_hand], jobs => [spinwork], short => [10, 100], long => [1000],
      at_once => [1, 8], rates => [400], repeats => 1, window => 5000};
scale(full) ->
    #{modes => modes(), jobs => [spinwork, spinsleep], short => [1, 10, 100],
      long => [1000, 10000], at_once => [1, 2, 8], rates => [400, 2000], repeats => 3,
      window => 20000}.

%% @doc All modes, in the order of the table.
-spec modes() -> [atom()].
modes() -> [Mode || {Mode, _, _, _, _} <- table()].

%% @doc What people call it.
-spec title(atom()) -> string().
title(Mode) -> element(2, lists:keyfind(Mode, 1, table())).

%% @doc How many times the p99 beside ordinary Erlang is that of the light route at most beside this
%% mode; `undefined' where nothing is promised.
-spec at_most(atom()) -> float() | undefined.
at_most(Mode) -> element(5, lists:keyfind(Mode, 1, table())).

%% @doc The runs of a scale, in the order in which they are made: what is to be compared stands
%% together, so that what the machine does meanwhile disturbs both.  More: numbers to take instead
%% of those of the scale (`modes', `jobs', `durations', `at_once', `rates', `repeats', `window');
%% with `durations' every mode is run at each.
-spec runs(quick | normal | full, #{atom() => term()}) -> [run()].
runs(Scale, More) ->
    #{modes := Modes, jobs := Jobs, short := Short, long := Long, at_once := AtOnce,
      rates := Rates, repeats := Repeats, window := Window} =
        case More of
            #{durations := Durations} ->
                maps:merge(scale(Scale), More#{short => Durations, long => []});
            _ ->
                maps:merge(scale(Scale), More)
        end,
    Loads = [{undefined, undefined, 0}]
        ++ [{Job, Ms, N} || Job <- Jobs, Ms <- Short ++ Long, N <- AtOnce],
    [#{mode => Mode, title => Title, job => Job, work => work(Call, Job), duration_ms => Ms,
       at_once => N, rate => Rate, repeat => Repeat, window_ms => Window}
     || Rate <- Rates, Repeat <- lists:seq(1, Repeats), {Job, Ms, N} <- Loads,
        {Mode, Title, Call, TakesLong, _} <- table(), lists:member(Mode, Modes),
        (Call =:= none) =:= (Job =:= undefined), TakesLong orelse not lists:member(Ms, Long)].

work(none, _) -> undefined;
work(erlang, Job) -> {erlang, Job};
work(Suffix, Job) -> {nif, list_to_atom(atom_to_list(Job) ++ Suffix)}.

%% @doc Milliseconds of one run: when the heavy load begins, when the window does, when it ends,
%% when the light load ends.
-spec takes_ms(run()) -> {Heavy :: pos_integer(), From :: pos_integer(), To :: pos_integer(),
                          End :: pos_integer()}.
takes_ms(#{window_ms := Window}) ->
    {?LEAD_MS div 2, ?LEAD_MS, ?LEAD_MS + Window, ?LEAD_MS + Window + ?TAIL_MS}.

%% @doc Milliseconds that these runs take together.
-spec cost_ms([run()]) -> non_neg_integer().
cost_ms(Runs) ->
    lists:sum([element(4, takes_ms(R)) + ?NODE_MS || R <- Runs]).
