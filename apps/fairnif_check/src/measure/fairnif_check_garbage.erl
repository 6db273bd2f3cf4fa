%% What the garbage of a call costs others: how long it blocks a scheduler when it is collected, and
%% when its owner is killed.
%%
%% A native resource has a destructor, which runs where the last reference goes: inside a collection
%% of garbage, or at the end of its owner. It does not yield. A database statement that is
%% closed there can block a scheduler for seconds, and no slice of any call shows it.
%%
%% The meter is a process on the same scheduler that yields again and again: the longest time
%% between two of its turns is what other code blocked the scheduler for, less what its thread
%% waited for a processor. What runs on a dirty scheduler, as collections of large heaps do, it does
%% not feel, nor does anybody.
%%
%% Large results take the VM some time to free. Hence a control: Erlang that has made a term of that
%% size.
-module(fairnif_check_garbage).

-export([flags/0, measure/2, alike/3]).
-export([size/0, term/1]).

-export_type([options/0, result/0, size/0, unfinished/0]).

-type options() :: #{time_ms => pos_integer(),          % about; default 1000
                     limit_ns => pos_integer(),         % a block longer than this counts; 1 ms
                     patience_ms => pos_integer()}.     % for a call to return; default 30000
%% Samples in ns, one of each round.
-type result() :: #{collected := [non_neg_integer()],   % longest block, at a collection
                    killed := [non_neg_integer()],      % the same, at the owner's death
                    %% Of both, of Erlang; none where the function's are short. Or why none.
                    control := [non_neg_integer()] | unfinished(),
                    bytes := non_neg_integer()}.        % that the process had after a call
%% Why a call did not return: its process ended, or all of the patience (ms) was used up.
-type unfinished() :: {ended, term()} | {timeout, pos_integer()}.
%% Words on the heap, and of binaries outside of it.
-type size() :: {non_neg_integer(), non_neg_integer()}.

-define(LIMIT_NS, 1000000).
-define(LEAST_ROUNDS, 3).
-define(MOST_ROUNDS, 25).
%% Beyond the least number nothing is begun after that part of the time.
-define(PART, 0.5).
-define(WORD, 8).
%% From this many bytes on what others feel may be that they are collected or freed.
-define(LARGE, 1048576).

%% @doc Emulator flags of the node to measure in: a scheduler for the function and the meter, and
%% one for the caller.
-spec flags() -> [string()].
flags() ->
    fairnif_check_slices:flags().

%% @doc Calls Fun 6 to 50 times in processes that then drop what they have. An error when a call
%% did not return.
-spec measure(fun(() -> term()), options()) -> {ok, result()} | {error, unfinished()}.
measure(Fun, Opts) ->
    Last = fairnif_check_machine:bound_to(erlang:system_info(schedulers_online)),
    fairnif_check_machine:apart([{priority, high}, Last], fun() -> measure_here(Fun, Opts) end).

measure_here(Fun, Opts) ->
    ok = fairnif_check_nif:load(),
    Patience = maps:get(patience_ms, Opts, 30000),
    try
        {Collected, Killed, Sizes} = lists:unzip3(rounds(Fun, Opts, Patience)),
        Size = hd(Sizes),
        Longest = max(fairnif_check_stats:median(Collected), fairnif_check_stats:median(Killed)),
        Control = case Longest > maps:get(limit_ns, Opts, ?LIMIT_NS) of
                      true -> control(Size, length(Collected), Patience);
                      false -> []
                  end,
        {ok, #{collected => Collected, killed => Killed, control => Control, bytes => bytes(Size)}}
    catch
        throw:{unfinished, Why} -> {error, Why}
    end.

rounds(Fun, Opts, Patience) ->
    Until = now_ms() + ?PART * maps:get(time_ms, Opts, 1000),
    rounds(Fun, Patience, Until, 0, []).

rounds(Fun, Patience, Until, Done, Rounds) ->
    case Done >= ?MOST_ROUNDS orelse Done >= ?LEAST_ROUNDS andalso now_ms() > Until of
        true -> Rounds;
        false -> rounds(Fun, Patience, Until, Done + 1, [round_of(Fun, Patience) | Rounds])
    end.

round_of(Fun, Patience) ->
    {Collected, Size} = blocked(Fun, Patience, fun collect/2),
    {Killed, _} = blocked(Fun, Patience, fun kill/2),
    {Collected, Killed, Size}.

%% What ends Erlang of that size (a limit on heaps, say) is not the function's fault.
control(Size, Rounds, Patience) ->
    Erlang = fun() -> term(Size) end,
    try
        lists:append([[A, B] || {A, B, _} <- [round_of(Erlang, Patience)
                                              || _ <- lists:seq(1, min(Rounds, ?LEAST_ROUNDS))]])
    catch
        throw:{unfinished, Why} -> Why
    end.

%% How long the first scheduler was blocked while the owner of what Fun left behind lost it.
blocked(Fun, Patience, Lose) ->
    Me = self(),
    {Owner, Monitor} = spawn_opt(fun() -> owner(Me, Fun) end,
                                 [monitor, fairnif_check_machine:bound_to(1)]),
    Size = answer(Owner, Monitor, Patience),
    Meter = spawn_opt(fun() -> meter(Me) end,
                      [link, {min_heap_size, 1000}, fairnif_check_machine:bound_to(1)]),
    receive {Meter, runs} -> ok end,
    Lose(Owner, Monitor),
    Meter ! stop,
    Ns = receive {Meter, Longest} -> Longest end,
    erlang:demonitor(Monitor, [flush]),
    exit(Owner, kill),
    {Ns, Size}.

answer(Owner, Monitor, Patience) ->
    receive
        {Owner, Answer} -> Answer;
        {'DOWN', Monitor, process, _, Why} -> throw({unfinished, {ended, Why}})
    after Patience -> throw({unfinished, {timeout, Patience}})
    end.

collect(Owner, Monitor) ->
    Owner ! collect,
    answer(Owner, Monitor, infinity).

%% What it holds goes at the end of its last turn, some time after DOWN; what is then left of that
%% turn the meter feels, which cannot run, and so not stop, before that.
kill(Owner, Monitor) ->
    exit(Owner, kill),
    receive {'DOWN', Monitor, process, _, _} -> ok end.

owner(Me, Fun) ->
    try Fun() of
        Result -> owns(Me, Result)
    catch
        Class:Reason -> exit({Class, Reason})
    end.

%% The result lives until it is dropped: it might still be asked for. Then a last call leaves
%% the frame that held it, which a collection would look at.
owns(Me, Result) ->
    Me ! {self(), size()},
    receive
        collect -> drops(Me);
        {tell, Whom} -> Whom ! Result
    end.

-spec drops(pid()) -> no_return().
drops(Me) ->
    erlang:garbage_collect(),
    Me ! {self(), collected},
    receive after infinity -> ok end.

meter(Me) ->
    Start = fairnif_check_nif:thread_times(),
    Me ! {self(), runs},
    meter(Me, Start, 0).

%% A thread loses its processor at the end of a system call, such as the one that asks how long it
%% waited. At the end of a stretch the clock is read before that call, at its begin after it: so
%% what is lost then counts as waiting if it counts at all.
meter(Me, {T0, _, Waited0, _}, Longest) ->
    erlang:yield(),
    T1 = fairnif_check_nif:now(),
    {_, _, Waited1, _} = Now = fairnif_check_nif:thread_times(),
    Longest1 = max(Longest, T1 - T0 - (Waited1 - Waited0)),
    receive
        stop -> Me ! {self(), Longest1}, unlink(Me)
    after 0 ->
            meter(Me, Now, Longest1)
    end.

%% @doc Where a call of Fun leaves much, in all or on its heap: how many bytes, and Erlang that
%% builds a term of that size. A control for what takes long because of the result, by whatever it
%% was made. One call; `none' also where it did not return within the patience (ms).
-spec alike(fun(() -> term()), all | heap, timeout()) ->
          {pos_integer(), fun(() -> term())} | none.
alike(Fun, What, Patience) ->
    Me = self(),
    {Owner, Monitor} = spawn_monitor(fun() -> owner(Me, Fun) end),
    try answer(Owner, Monitor, Patience) of
        {Heap, Binary} ->
            Size = case What of
                       all -> {Heap, Binary};
                       heap -> {Heap, 0}
                   end,
            case bytes(Size) of
                Bytes when Bytes >= ?LARGE -> {Bytes, fun() -> term(Size) end};
                _ -> none
            end
    catch
        %% Why it ended those tell that call it then.
        throw:{unfinished, _} -> none
    after
        demonitor(Monitor, [flush]),
        exit(Owner, kill)
    end.

%% @doc What the calling process has on its heap, garbage and all, and of binaries outside of it.
-spec size() -> size().
size() ->
    {_, Info} = process_info(self(), garbage_collection_info),
    Words = fun(Keys) -> lists:sum([proplists:get_value(K, Info, 0) || K <- Keys]) end,
    {Words([heap_size, old_heap_size, mbuf_size]), Words([bin_vheap_size, bin_old_vheap_size])}.

%% @doc A term of this size, made in Erlang.
-spec term(size()) -> term().
term({Heap, Binary}) ->
    {lists:seq(1, Heap div 2), binary:copy(<<0>>, Binary * ?WORD)}.

%% Bytes of both.
-spec bytes(size()) -> non_neg_integer().
bytes({Heap, Binary}) ->
    (Heap + Binary) * ?WORD.

now_ms() ->
    erlang:monotonic_time(millisecond).
