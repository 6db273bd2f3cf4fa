%% What fairnif_limits_SUITE runs in a peer with one scheduler: ends of calls that hold very much,
%% what is copied for a thread, and the longest CPU time of the scheduler between two turns of a
%% neighbour.
-module(fairnif_test_ends).

-export([cases/0, longest/1, left/0, touch/1, halt_with/1]).
-export([use_threaded/0, use_dirty/0]).
-nifs([nif_hold/4, nif_hold_threaded/4, nif_take/1, use_threaded/0, use_dirty/0, block/1, stack/1,
       cpu/0, begins/0, object/0, left/0]).
-on_load(init/0).

-define(MANY, 1000000).

init() ->
    fairnif:loaded(erlang:load_nif(fairnif_test:library(?MODULE), fairnif:load_info(?MANY))).

nif_hold(_, _, _, _) -> erlang:nif_error(not_loaded).
nif_hold_threaded(_, _, _, _) -> erlang:nif_error(not_loaded).
nif_take(_) -> erlang:nif_error(not_loaded).
use_threaded() -> erlang:nif_error(not_loaded).
use_dirty() -> erlang:nif_error(not_loaded).
stack(_) -> erlang:nif_error(not_loaded).
cpu() -> erlang:nif_error(not_loaded).
begins() -> erlang:nif_error(not_loaded).
object() -> erlang:nif_error(not_loaded).

%% @doc Touches that many bytes of new memory, a tick for each page.
block(_) -> erlang:nif_error(not_loaded).

%% @doc How many deferred functions are to run, and locks are taken.
left() -> erlang:nif_error(not_loaded).

%% @doc Each as an atom, or what it holds, where, and how it ends.
cases() ->
    [{Kind, hold, How} || Kind <- [blocks, binaries, defers, mutexes, resources, got],
                          How <- [returns, raises, fails, killed]]
        ++ [{Kind, hold_threaded, How} || Kind <- [blocks, got, terms], How <- [returns, killed]]
        ++ [block, stack, improper, map_tail, bignums].

%% @doc In microseconds; and where new memory is touched for as long.
longest(Case) ->
    Call = prepare(Case),
    {Ns, Ms} = measure(Call),
    {Control, _} = measure(fun() -> touch(erlang:monotonic_time()
                                            + erlang:convert_time_unit(Ms, millisecond, native))
                             end),
    {Ns div 1000, Control div 1000}.

%% @doc Halts while a body uses what the library destroys then.
halt_with(Function) ->
    spawn(fun() -> fairnif:await(?MODULE:Function()) end),
    timer:sleep(300),
    halt(0).

measure(Call) ->
    Self = self(),
    garbage_collect(),
    Neighbour = spawn_link(fun() -> Self ! began, neighbour(Self, cpu(), 0) end),
    receive began -> ok end,
    T0 = erlang:monotonic_time(millisecond),
    Call(),
    timer:sleep(20),
    Ms = erlang:monotonic_time(millisecond) - T0,
    Neighbour ! {stop, Self},
    receive {longest, Ns} -> {Ns, Ms} end.

%% Not while a call comes to hold what its end is to release: that is the body's own work.
neighbour(Parent, Last, Longest) ->
    receive {stop, Parent} -> Parent ! {longest, Longest}
    after 0 ->
            erlang:yield(),
            Now = cpu(),
            neighbour(Parent, Now, case begins() of
                                       true -> Longest;
                                       false -> max(Longest, Now - Last)
                                   end)
    end.

%% @doc Calls that only touch new memory, until then: an erlang:monotonic_time/0.
touch(End) ->
    _ = block(1 bsl 24),
    erlang:monotonic_time() > End orelse touch(End).

prepare({Kind, Where, How}) ->
    Numbers = #{blocks => 0, binaries => 1, defers => 2, mutexes => 3, resources => 4, got => 5,
                terms => 6},
    Arg = case Kind of
              resources -> object();
              got -> binary:copy(<<1>>, 100);
              _ -> none
          end,
    Args = [map_get(Kind, Numbers), many(Kind), how(How), Arg],
    Call = fun() -> exit({came, await(Where, Args)}) end,
    fun() -> ended(How, many(Kind), spawn_monitor(Call)) end;
prepare(block) -> fun() -> block(1 bsl 27) end;
prepare(stack) ->                           % one is kept as it was left
    fun() ->
            Pids = [spawn_monitor(fun() -> stack(14000) end) || _ <- [1, 2, 3]],
            [normal = fairnif_test:down(Monitor) || {_, Monitor} <- Pids]
    end;
prepare(Copied) ->
    Large = list_to_tuple(lists:seq(1, 4 * ?MANY)),
    Term = case Copied of
               improper -> [a | Large];
               map_tail -> #{k => [a | Large]};
               bignums -> [Bits bsl 4000000 || Bits <- lists:seq(1, 100)]
           end,
    fun() -> ok = fairnif:await(nif_take(Term)) end.

many(terms) -> 10 * ?MANY;
many(_) -> ?MANY.

how(How) ->
    map_get(How, #{returns => 0, raises => 1, fails => 2, killed => 3}).

await(Where, [A, B, C, D]) ->
    try
        fairnif:await(case Where of
                          hold -> nif_hold(A, B, C, D);
                          hold_threaded -> nif_hold_threaded(A, B, C, D)
                      end)
    catch
        error:Reason -> {error, Reason}
    end.

%% What was deferred has run, and locks are released, before the caller gets its result; of one
%% that raises or is killed, soon.
ended(How, Many, {Pid, Monitor}) ->
    case How of
        killed ->
            fairnif_test:eventually(fun() -> waits(Pid) end),
            exit(Pid, kill),
            killed = fairnif_test:down(Monitor),
            fairnif_test:eventually(fun() -> left() =:= 0 andalso fairnif:tasks() =:= [] end);
        _ ->
            {came, Came} = fairnif_test:down(Monitor),
            true = expected(How, Many, Came),
            true = How =:= raises orelse left() =:= 0,
            fairnif_test:eventually(fun() -> left() =:= 0 end)
    end.

expected(returns, Many, Came) -> Came =:= Many;
expected(raises, Many, Came) -> Came =:= {error, Many};
expected(fails, _, {error, {fairnif, {bad_root, _}}}) -> true;
expected(fails, _, _) -> false.

waits(Pid) ->
    [S || #{owner := P, state := S} <- fairnif:tasks(), P =:= Pid] =:= [waiting].
