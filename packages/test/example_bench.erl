%% What the benches of several examples share; a link in each one's test folder, which `cp -rL`
%% copies along. CPU time of the node for one call, the forms of it in turns.
-module(example_bench).

-export([heading/0, compare/3]).

-define(ROUNDS, 9).
-define(ROUND_US, 60000).

heading() ->
    io:format("CPU time, median of ~b; the others against the first~n", [?ROUNDS]).

%% A line: the first form's time, and how many times as long the others take. Call(Form) is one
%% call.
compare(Title, Forms, Call) ->
    Calls = [{Form, calls(Form, Call, 1)} || Form <- Forms],
    Rounds = [[{Form, cpu_us(Form, Call, Count)} || {Form, Count} <- Calls]
              || _ <- lists:seq(1, ?ROUNDS)],
    [First | Others] = [{Form, median([proplists:get_value(Form, Round) || Round <- Rounds])}
                        || Form <- Forms],
    io:format("~ts  ~s ~9.1f us ~s~n",
              [Title, element(1, First), element(2, First),
               [io_lib:format("  ~s ~.2f x", [Form, Us / element(2, First)])
                || {Form, Us} <- Others]]).

%% As many as take a round's time.
calls(Form, Call, Count) ->
    case cpu_us(Form, Call, Count) * Count of
        Us when Us < ?ROUND_US / 4 -> calls(Form, Call, 4 * Count);
        Us -> max(1, round(Count * ?ROUND_US / Us))
    end.

cpu_us(Form, Call, Count) ->
    erlang:garbage_collect(),
    {_, Monitor} = spawn_monitor(fun() ->
                                         Begin = cpu_ms(),
                                         repeat(Count, Form, Call),
                                         exit({took, (cpu_ms() - Begin) * 1000 / Count})
                                 end),
    receive {'DOWN', Monitor, process, _, {took, Us}} -> Us end.

%% Of all threads, so also of a dirty one.
cpu_ms() ->
    {Ms, _} = erlang:statistics(runtime),
    Ms.

repeat(0, _, _) ->
    ok;
repeat(N, Form, Call) ->
    _ = Call(Form),
    repeat(N - 1, Form, Call).

median(List) ->
    lists:nth((length(List) + 1) div 2, lists:sort(List)).
