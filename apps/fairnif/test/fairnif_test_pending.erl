%% Bodies that wait: what each does is said in fairnif_test_pending.c.
-module(fairnif_test_pending).

-compile([export_all, nowarn_export_all]).

-on_load(init/0).

-define(NIF, erlang:nif_error(not_loaded)).

init() ->
    fairnif:loaded(erlang:load_nif(fairnif_test:library(?MODULE), fairnif:load_info())).

locked() -> ?NIF.
nif_defers(_N) -> ?NIF.
nif_naps(_N) -> ?NIF.
nif_naps_auto(_N) -> ?NIF.
nif_offloads(_N) -> ?NIF.
nif_offloads_dirty(_N) -> ?NIF.
nif_blocks(_Ms) -> ?NIF.
nif_one_at_a_time(_Ms) -> ?NIF.
nif_hold(_Object) -> ?NIF.
nif_hold_threaded(_Object) -> ?NIF.
nif_take(_Object, _N) -> ?NIF.
nif_take_threaded(_Object, _N) -> ?NIF.
nif_vm(_Name) -> ?NIF.

%% @doc await/1 of what Function answers.
await(Function, Args) ->
    fairnif:await(apply(?MODULE, Function, Args)).

%% @doc The same so often, in as many processes at once.
await_often(Processes, Times, Function, Args) ->
    Calls = [spawn_monitor(fun() ->
                                   exit({answers, lists:usort([await(Function, Args)
                                                               || _ <- lists:seq(1, Times)])})
                           end) || _ <- lists:seq(1, Processes)],
    lists:usort([receive {'DOWN', Monitor, process, _, Reason} -> Reason end
                 || {_, Monitor} <- Calls]).

%% @doc A process that has the only reference to an object takes the lock in it, waits for Ms, and
%% is killed.
killed_with_lock(Function, Ms) ->
    {Pid, Monitor} = spawn_monitor(fun() -> await(Function, [locked()]) end),
    timer:sleep(Ms),
    exit(Pid, kill),
    fairnif_test:down(Monitor, 5000).

%% @doc What await/1 raises for the pending value of a call when Change has been at it.
changed(Change) ->
    Pending = nif_offloads(1),
    Changed = case Change of
                  shorter -> erlang:delete_element(tuple_size(Pending), Pending);
                  longer -> list_to_tuple(tuple_to_list(Pending) ++ lists:seq(1, 5000));
                  bare -> {element(1, Pending), element(2, Pending)}
              end,
    Raised = try {value, fairnif:await(Changed)} catch error:Reason -> Reason end,
    {Raised, fairnif:await(Pending)}.

%% @doc Calls while module fairnif is not there, and after it was loaded, thrice.
loaded_anew() ->
    Answer = await(nif_offloads, [1]),
    true = code:delete(fairnif),
    _ = code:purge(fairnif),
    _ = [begin
             fairnif_pending = element(1, nif_offloads(1)),
             erlang:garbage_collect()
         end || _ <- lists:seq(1, 1000)],
    Answer = await(nif_offloads, [1]),
    _ = [begin
             _ = code:purge(fairnif),
             {module, fairnif} = code:load_file(fairnif),
             Answer = await(nif_offloads, [1])
         end || _ <- [first, second, third]],
    Answer.

%% @doc In each mode so many processes, that take one lock N times each.
contended(Processes, N) ->
    Object = locked(),
    Calls = [spawn_monitor(fun() -> exit({answers, [await(Function, [Object, N])]}) end)
             || _ <- lists:seq(1, Processes), Function <- [nif_take, nif_take_threaded]],
    lists:usort([receive {'DOWN', Monitor, process, _, Reason} -> Reason end
                 || {_, Monitor} <- Calls]).

raised(Function, Args) ->
    try {value, await(Function, Args)} catch error:Reason -> Reason end.

%% @doc After a short job, so that its thread still looks for more, so many jobs at once that sleep:
%% how long that took, in ms, in each of so many rounds.
rounds(Rounds, Jobs, Ms) ->
    [round_of(Jobs, Ms, Round rem 7) || Round <- lists:seq(1, Rounds)].

round_of(Jobs, Ms, Pause) ->
    _ = await(nif_blocks, [0]),
    [erlang:yield() || _ <- lists:seq(1, Pause)],
    Begin = erlang:monotonic_time(millisecond),
    Calls = [spawn_monitor(fun() -> await(nif_blocks, [Ms]) end) || _ <- lists:seq(1, Jobs)],
    [receive {'DOWN', Monitor, process, _, normal} -> ok end || {_, Monitor} <- Calls],
    erlang:monotonic_time(millisecond) - Begin.

%% @doc One call of a function begins to wait its turn, then very many of another one: which of them
%% ends first.
first_to_end() ->
    Self = self(),
    Call = fun(Function, Args, Times) ->
                   spawn_link(fun() ->
                                      _ = [await(Function, Args) || _ <- lists:seq(1, Times)],
                                      Self ! {ended, Function, hd(Args)}
                              end),
                   timer:sleep(50)
           end,
    Call(nif_blocks, [400], 1),
    Call(nif_one_at_a_time, [0], 1),
    [Call(nif_blocks, [1], 100) || _ <- lists:seq(1, 4)],
    receive {ended, nif_blocks, 400} -> ok end,
    receive {ended, Function, Ms} -> {Function, Ms} end.
