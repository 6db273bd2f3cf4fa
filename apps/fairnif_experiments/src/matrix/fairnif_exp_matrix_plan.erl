%% What the experiment `matrix' measures at which scale: its cells, how long each will take, and
%% which are left out.
%%
%% Pure: nothing here measures, so that the plan is the same on every machine. It can be, as the
%% number of calls grows with the processors.
-module(fairnif_exp_matrix_plan).

-export([modes/0, cells/1, cost_ms/1, published/2]).

-export_type([cell/0]).

%% What a call does: spins until a deadline, or does a fixed amount of work.
-type job() :: spinsleep | spinwork.
-type cell() :: #{job := job(), mode := atom(), form := atom(),
                  duration_us := pos_integer(),
                  multiple := pos_integer(),       % processes per scheduler
                  runs := pos_integer(),
                  predicted_ms := non_neg_integer(),     % of one run
                  skipped := undefined | cell | total}.  % what was too long

%% @doc The modes, in the order of the tables: the name, the suffix of its forms of the example
%% spinsleep, whether a call yields before it is done.
-spec modes() -> [{atom(), Title :: string(), Suffix :: string(), Yields :: boolean()}].
modes() ->
    [{normal, "plain NIF", "", false},
     {dirty, "dirty CPU", "_dirty", false},
     {yielding, "yielding", "_timeslice", true},
     {yielding_dirty, "yielding dirty", "_timeslice_dirty", true},
     {fair_auto, "fairnif AUTO", "_fair", true},
     {fair_yielding, "fairnif NORMAL", "_fair_yield", true},
     {fair_yielding_dirty, "fairnif DIRTY_CPU", "_fair_dirty_yield", true},
     {fair_threaded, "fairnif THREADED", "_threaded", true}].

%% Milliseconds; `cell' and `total' are what a cell of a job and a whole run may take.  A mode that
%% does not yield is measured at `short' durations only, as the talk's was.  Short cells are
%% repeated: one sample of them says little.  The longest cell that was published took 16 minutes;
%% those of spinwork are ours, and grow with the duration in each mode.
scale(quick) ->
    #{short => [1, 10], long => [], multiples => [1, 10, 100], runs => 1,
      cell => #{spinsleep => 20000, spinwork => 20000}, total => 2600};
scale(normal) ->
    #{short => [1, 10, 100], long => [1000, 10000], multiples => [1, 10, 100, 1000], runs => 3,
      cell => #{spinsleep => 20000, spinwork => 20000}, total => 240000};
scale(full) ->
    #{short => [1, 10, 100], long => [1000, 10000, 100000],
      multiples => [1, 10, 100, 1000, 10000], runs => 3,
      cell => #{spinsleep => 1200000, spinwork => 120000}, total => infinity}.

%% @doc All cells of a scale, in the order in which they are measured: mode by mode, and within it
%% duration by duration.  What does not fit into `total' is left out in whole columns of a table,
%% the longest first, so that the modes stay comparable.
-spec cells(quick | normal | full) -> [cell()].
cells(Scale) ->
    #{short := Short, long := Long, multiples := Multiples, total := Total} = Limits = scale(Scale),
    Cells = [cell(Job, Mode, Ms, Multiple, Limits)
             || {_, _, _, Yields} = Mode <- modes(), Ms <- Short ++ [M || Yields, M <- Long],
                Job <- [spinsleep, spinwork], Multiple <- Multiples],
    Kept = columns_within(Total, Cells),
    [case C of
         #{skipped := undefined} ->
             C#{skipped := hd([undefined || lists:member(column(C), Kept)] ++ [total])};
         _ ->
             C
     end || C <- Cells].

%% @doc Milliseconds that these cells take together, those left out apart.
-spec cost_ms([cell()]) -> non_neg_integer().
cost_ms(Cells) ->
    lists:sum([R * Ms || #{skipped := undefined, runs := R, predicted_ms := Ms} <- Cells]).

cell(Job, {Mode, _, Suffix, Yields}, Ms, Multiple, #{cell := Budgets, runs := Runs}) ->
    Predicted = predicted(Job, Yields, Ms, Multiple),
    #{job => Job, mode => Mode, form => list_to_atom(atom_to_list(Job) ++ Suffix),
      duration_us => 1000 * Ms, multiple => Multiple, predicted_ms => Predicted,
      runs => if Predicted < 100 -> Runs; true -> 1 end,
      skipped => hd([cell || Predicted > maps:get(Job, Budgets)] ++ [undefined])}.

%% Each scheduler has as many calls as the multiple says.  A call that spins until a deadline sets
%% it in its first slice; the last one waits for the first slice of all others, 1 ms at most, and
%% notices its deadline one turn late.
predicted(spinsleep, true, Ms, Multiple) -> min(Ms * Multiple, Ms + 2 * Multiple);
predicted(_, _, Ms, Multiple) -> Ms * Multiple.

columns_within(Total, Cells) ->
    Columns = lists:usort([column(C) || #{skipped := undefined} = C <- Cells]),
    within(Total, lists:sort([{cost_ms([C || C <- Cells, column(C) =:= Column]), Column}
                              || Column <- Columns])).

%% `infinity' is greater than every integer.
within(Left, [{Ms, Column} | Columns]) when Ms =< Left ->
    [Column | within(if is_integer(Left) -> Left - Ms; true -> Left end, Columns)];
within(_, _) ->
    [].

column(#{job := Job, duration_us := Us, multiple := Multiple}) -> {Us, Multiple, Job}.

%% @doc Andrew Bennett, "Well-Behaved Native Implemented Functions for Elixir" (ElixirConf 2017):
%% the extra time in seconds at 1, 10, 100, 1000 and 10000 calls of spinsleep per scheduler on his
%% machine, `none' where he found none; `undefined' for what he did not have.
-spec published(atom(), DurationUs :: pos_integer()) -> [none | pos_integer()] | undefined.
published(normal, 1000) -> [none, none, none, 1, 15];
published(dirty, 1000) -> [none, none, none, 1, 10];
published(normal, 10000) -> [none, none, 1, 10, 120];
published(dirty, 10000) -> [none, none, 1, 10, 120];
published(normal, 100000) -> [1, 15, 30, 120, 960];
published(dirty, 100000) -> [none, 15, 30, 120, 960];
published(yielding, 1000000) -> [none, 1, 1, 2, 3];
published(yielding, 10000000) -> [1, 2, 5, 10, 15];
published(Mode, Us) when Mode =:= yielding, Us =< 100000000;
                         Mode =:= yielding_dirty, Us =< 100000000 ->
    [none, none, none, none, none];
published(_, _) -> undefined.
