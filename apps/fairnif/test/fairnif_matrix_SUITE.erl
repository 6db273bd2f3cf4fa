%% Every act on a caller or its module, in every state, in every mode: fairnif_test_cell has the
%% table and runs a cell. A cell whose state was gone before the act came is run again, and says so
%% in the log.
-module(fairnif_matrix_SUITE).

-include_lib("common_test/include/ct.hrl").

-export([suite/0, all/0, init_per_suite/1, end_per_suite/1]).
-export([a_caller_that_exits_takes_its_task_along/1,
         a_killed_caller_takes_its_task_along/1,
         purging_the_module_kills_the_caller_and_drops_the_task/1,
         soft_purge_leaves_the_task_alone_and_says_false/1,
         a_task_continues_in_the_old_code_when_a_new_version_is_loaded/1,
         tracing_the_caller_changes_nothing/1,
         collecting_the_callers_garbage_moves_nothing_that_the_body_holds/1,
         process_info_of_the_caller_answers/1,
         a_calling_gen_server_changes_its_code_afterwards/1,
         suspending_and_resuming_the_caller_changes_nothing/1]).

-define(ATTEMPTS, 100).

suite() ->
    [{timetrap, {minutes, 15}}].

all() ->
    fairnif_test:cases(?MODULE).

init_per_suite(Config) ->
    ok = fairnif_test:build(),
    Config.

end_per_suite(_Config) ->
    ok.

a_caller_that_exits_takes_its_task_along(_) -> cells(exit_shutdown).
a_killed_caller_takes_its_task_along(_) -> cells(kill).
purging_the_module_kills_the_caller_and_drops_the_task(_) -> cells(purge).
soft_purge_leaves_the_task_alone_and_says_false(_) -> cells(soft_purge).
a_task_continues_in_the_old_code_when_a_new_version_is_loaded(_) -> cells(upgrade).
tracing_the_caller_changes_nothing(_) -> cells(trace).
collecting_the_callers_garbage_moves_nothing_that_the_body_holds(_) -> cells(garbage_collect).
process_info_of_the_caller_answers(_) -> cells(process_info).
a_calling_gen_server_changes_its_code_afterwards(_) -> cells(code_change).
suspending_and_resuming_the_caller_changes_nothing(_) -> cells(suspend_resume).

%% The states with one scheduler run in a node of their own.
cells(Act) ->
    Cells = [#{act => Act, mode => Mode, state => State}
             || Mode <- fairnif_test_nif:modes() ++ fairnif_test_nif:unwinding_modes(),
                State <- fairnif_test_cell:states(Mode)],
    {Alone, Others} = lists:partition(fun(#{state := S}) -> S =:= waiting end, Cells),
    Wrong = run(Alone, waiting) ++ run(Others, others),
    Wrong =:= [] orelse ct:fail({length(Wrong), cells_of, length(Cells), Wrong}),
    {comment, io_lib:format("~b cells", [length(Cells)])}.

run(Cells, State) ->
    Args = fairnif_test_cell:peer_args(State),
    lists:append([Wrong || Cell <- Cells, Wrong <- [attempt(Cell, Args, ?ATTEMPTS)],
                           Wrong =/= []]).

%% The node is restarted when a cell went wrong: what is left in it must not spoil the others.
attempt(Cell, _Args, 0) ->
    [{state_never_reached, Cell}];
attempt(Cell, Args, N) ->
    Peer = node_for(Args),
    try fairnif_test:call(Peer, fairnif_test_cell, run, [Cell]) of
        ok ->
            [];
        {missed, Evidence} ->
            ct:log("run again: ~p~n~p", [Cell, Evidence]),
            attempt(Cell, Args, N - 1)
    catch
        Class:Reason ->
            ct:log("wrong: ~p~n~p", [Cell, {Class, Reason}]),
            erase(Args),
            try fairnif_test:stop(Peer)
            catch exit:_ -> ok                  % the node is gone
            end,
            [{Cell, Class, Reason}]
    end.

node_for(Args) ->
    case get(Args) of
        undefined ->
            Peer = fairnif_test:peer(Args),
            ok = fairnif_test:call(Peer, application, start, [fairnif]),
            put(Args, Peer),
            Peer;
        Peer ->
            Peer
    end.
