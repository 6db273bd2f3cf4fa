%% What fairnif_scale_SUITE runs inside peer nodes: measurements, no judgement.
%%
%% The measuring process has high priority, and calls only processes that have it too: very many
%% busy processes would be served before another one.
-module(fairnif_test_scale).

-export([suspended/1, listed/2, fill/1, turns/3]).

-define(MOD, fairnif_test_nif).
-define(PROBE, fairnif_test_probe).

%% @doc N processes that wait in a receive, then N in a call that has yielded: what is resident,
%% bytes for each; and what is left when the latter were killed.
suspended(N) ->
    process_flag(priority, high),
    Warm = min(1000, N),
    _ = callers(Warm, fun() -> receive never -> ok end end, fun() -> ok end),
    _ = callers(Warm, call(?PROBE:new_slot()), fun() -> all_paused(Warm) end),
    Slot = ?PROBE:new_slot(),
    Before = resident(),
    Waiting = callers(N, fun() -> receive never -> ok end end, fun() -> ok end),
    Suspended = callers(N, call(Slot), fun() -> all_paused(N) end),
    #{begun := Begun, ended := Ended, disorder := Disorder} = ?PROBE:slot(Slot),
    #{stacks_mapped := Mapped, stacks_idle := Idle, stack_guard := Guard} = fairnif:info(),
    #{guard => Guard, waiting => Waiting, suspended => Suspended,
      begun => Begun, ended => Ended, disorder => Disorder, tasks => length(fairnif:tasks()),
      stacks_in_use => Mapped - Idle, stacks_idle => Idle,
      left => maps:map(fun(Kind, Bytes) -> Bytes - maps:get(Kind, Before) end, resident())}.

%% Holds memory of its own besides: a binary of 3000 bytes, 1000 bytes, three deferred functions.
call(Slot) ->
    fun() -> ?MOD:spin_yielding(Slot, 0, x) end.

%% N of them, and when Ready returns, what is resident for each and how long it took; then all are
%% killed.
callers(N, Fun, Ready) ->
    Processes = erlang:system_info(process_count),
    Before = resident(),
    T0 = erlang:monotonic_time(millisecond),
    Pids = [spawn(Fun) || _ <- lists:seq(1, N)],
    Ready(),
    T1 = erlang:monotonic_time(millisecond),
    After = resident(),
    _ = [exit(Pid, kill) || Pid <- Pids],
    fairnif_test:eventually(
      fun() -> erlang:system_info(process_count) =< Processes + 10 end),
    fairnif_test:eventually(fun() -> in_use() =:= 0 orelse in_use() end),
    T2 = erlang:monotonic_time(millisecond),
    Each = maps:map(fun(Kind, Bytes) -> (Bytes - maps:get(Kind, Before)) div N end, After),
    Each#{start_ms => T1 - T0, kill_ms => T2 - T1}.

%% All have begun, so that all but those that run now have yielded; then it is asked of each.
all_paused(N) ->
    fairnif_test:eventually(fun() -> in_use() >= N orelse in_use() end),
    fairnif_test:eventually(
      fun() ->
              case length([paused || #{yields := Yields} <- fairnif:tasks(), Yields > 0]) of
                  N -> true;
                  Other -> Other
              end
      end).

in_use() ->
    #{stacks_mapped := Mapped, stacks_idle := Idle} = fairnif:info(),
    Mapped - Idle.

%% Bytes: what is resident, the page tables for it, and what of it is the processes' in Erlang.
resident() ->
    erlang:garbage_collect(),
    #{all => fairnif_test_storm:resident(), erlang => erlang:memory(processes)}.

%% @doc How many of N busy calls tasks/0 shows, at least, in that many attempts.
listed(N, Attempts) ->
    process_flag(priority, high),
    Slot = ?PROBE:new_slot(),
    _ = [spawn_link(call(Slot)) || _ <- lists:seq(1, N)],
    all_paused(N),
    lists:min([length(fairnif:tasks()) || _ <- lists:seq(1, Attempts)]).

%% @doc Endless calls until no more stacks are mapped, and `More' that get none; then half of them
%% are killed, and the rest asked to finish. How they ended, and what could be done meanwhile.
fill(More) ->
    process_flag(priority, high),
    #{stacks_limit := Limit, stack_guard := Guard} = fairnif:info(),
    Slot = ?PROBE:new_slot(),
    Callers = maps:from_list([{Monitor, Pid}
                              || _ <- lists:seq(1, Limit + More),
                                 {Pid, Monitor} <- [spawn_monitor(answered(Slot))]]),
    Refused = until_full(Callers, #{}),
    AtLimit = #{mappings => mappings(), vm => vm_works(), call => call_again(),
                stacks_in_use => in_use()},
    Under = maps:to_list(maps:without(maps:keys(Refused), Callers)),
    {Doomed, Rest} = lists:split(length(Under) div 2, Under),
    _ = [exit(Pid, kill) || {_, Pid} <- Doomed],
    Killed = [fairnif_test:down(Monitor) || {Monitor, _} <- Doomed],
    fairnif_test:eventually(fun() -> in_use() =:= length(Rest) orelse in_use() end),
    Afterwards = call_again(),
    ?PROBE:finish(Slot),
    Answered = [fairnif_test:down(Monitor) || {Monitor, _} <- Rest],
    fairnif_test:eventually(fun() -> in_use() =:= 0 orelse in_use() end),
    #{guard => Guard, limit => Limit, refused => tally(maps:values(Refused)),
      at_limit => AtLimit, killed => tally(Killed), call_after_kills => Afterwards,
      rest => tally(Answered), slot => ?PROBE:slot(Slot)}.

answered(Slot) ->
    fun() ->
            Term = {self()},
            exit(try ?MOD:spin_yielding(Slot, 0, Term) of
                     {Term, _} -> answered;
                     Other -> Other
                 catch
                     error:Reason -> Reason
                 end)
    end.

%% Until each caller is either under way or has ended. A scheduler's few idle stacks are of no use
%% to the others, so some more than `More' may be refused.
until_full(Callers, Ended) ->
    receive
        {'DOWN', Monitor, process, _, Reason} -> until_full(Callers, Ended#{Monitor => Reason})
    after 0 ->
            case in_use() + maps:size(Ended) =:= maps:size(Callers) of
                true -> Ended;
                false -> timer:sleep(10), until_full(Callers, Ended)
            end
    end.

%% Memory of a size that the VM must map for itself, processes, dirty calls.
vm_works() ->
    Monitors = [element(2, spawn_opt(
                             fun() ->
                                     Binary = binary:copy(<<N>>, 1 bsl 25),
                                     ok = ?MOD:nothing_dirty(),
                                     exit(byte_size(Binary))
                             end, [monitor, {priority, high}])) || N <- lists:seq(1, 8)],
    lists:usort([fairnif_test:down(Monitor) || Monitor <- Monitors]) =:= [1 bsl 25].

call_again() ->
    try ?MOD:ticks_auto(1, 1) catch error:Reason -> Reason end.

tally(Terms) ->
    lists:foldl(fun(Term, Seen) -> maps:update_with(Term, fun(N) -> N + 1 end, 1, Seen) end,
                #{}, Terms).

mappings() ->
    {ok, Maps} = file:read_file("/proc/self/maps"),
    length(binary:matches(Maps, <<"\n">>)).

%% @doc N processes begin at once what takes each of them Us microseconds alone: from that moment to
%% its end, us: the first, the last, and their ratio. `native' in a fair call, `erlang' in a loop.
turns(What, N, Us) ->
    Rounds = rounds(What, Us),
    Self = self(),
    Pids = [spawn_link(fun() ->
                               receive {go, T0} -> ok end,
                               work(What, Rounds),
                               Self ! {took, erlang:monotonic_time(microsecond) - T0}
                       end) || _ <- lists:seq(1, N)],
    process_flag(priority, high),
    T0 = erlang:monotonic_time(microsecond),
    _ = [Pid ! {go, T0} || Pid <- Pids],
    process_flag(priority, normal),
    Took = [receive {took, Time} -> Time end || _ <- Pids],
    #{first_us => lists:min(Took), last_us => lists:max(Took),
      ratio => lists:max(Took) / lists:min(Took)}.

%% The fastest of some: other programs make it slower, never faster.
rounds(What, Us) ->
    Took = lists:min([element(1, timer:tc(fun() -> work(What, 10000) end))
                      || _ <- lists:seq(1, 20)]),
    10000 * Us div max(1, Took).

work(native, Rounds) -> ?MOD:ticks_yielding(100, Rounds);
work(erlang, 0) -> ok;
work(erlang, Rounds) -> work(erlang, Rounds - 1).
