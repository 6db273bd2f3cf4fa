%% Run times of single calls, fair beside plain.
%%
%% In a node with one scheduler whose threads do not spin when idle, so that the
%% CPU time of its thread is the run time less what the operating system gave to
%% other programs meanwhile.  The caller is one process for all samples, bound to
%% its scheduler, with a heap so large that it collects no garbage while the
%% clock runs.
-module(fairnif_bench_calls).

-export([flags/0, warm_flags/0, alone/1]).
-export([levenshtein/0, exor/0, large/0, noop/0, move/0]).

-import(fairnif_bench_series, [interleave/2, timed/2, timed_loop/3]).

-define(ROUNDS, 21).
%% Large calls take a second.
-define(FEW_ROUNDS, 11).

-spec flags() -> [string()].
flags() -> ["+S", "1:1", "+SDcpu", "1:1", "+sbwt", "none", "+sbwtdcpu", "none",
            "+sbwtdio", "none"].

%% Where dirty calls are warm: the threads spin a little after each, as they do
%% by default.  With a single scheduler (+S 1:1) they never do, and the same
%% call costs 13 us instead of 1.
-spec warm_flags() -> [string()].
warm_flags() -> ["+S", "2:2", "+SDcpu", "2:2"].

%% A loop that makes no call but the one it is for.
-define(LOOP1(Name, Call), Name(0, _) -> ok; Name(N, A) -> _ = Call, Name(N - 1, A)).
-define(LOOP2(Name, Call), Name(0, _, _) -> ok;
                           Name(N, A, B) -> _ = Call, Name(N - 1, A, B)).

?LOOP1(plain_noop, fairnif_bench_nif:noop(A)).
?LOOP1(auto_noop, fairnif_bench_nif:auto_noop(A)).
?LOOP1(dirty_noop, fairnif_bench_nif:dirty_noop(A)).
?LOOP1(flip, fairnif_bench_nif:flip(A)).
?LOOP2(plain_lev, levenshtein:unfair_levenshtein(A, B)).
?LOOP2(auto_lev, levenshtein:levenshtein(A, B)).
?LOOP2(yielding_lev, levenshtein:yielding_levenshtein(A, B)).
?LOOP2(plain_exor, bitwise:exor_bad(A, B)).
?LOOP2(auto_exor, bitwise:exor(A, B)).
?LOOP2(yielding_exor, bitwise:exor_yield(A, B)).

%% @doc Two strings of 12,000, 100, 36 and 10 bytes that have nothing in
%% common at their ends.
-spec levenshtein() -> fairnif_bench_series:samples().
levenshtein() ->
    alone(fun() ->
                  merge([strings(12000, 1), strings(100, 5000),
                         strings(36, 40000), strings(10, 200000)])
          end).

strings(Size, Calls) ->
    A = random_bytes(Size, 1),
    B = random_bytes(Size, 2),
    interleave(?ROUNDS,
               [contestant(Size, Name, Calls, fun(N) -> Loop(N, A, B) end)
                || {Name, Loop} <- [{"plain", fun plain_lev/3},
                                    {"yielding", fun yielding_lev/3},
                                    {"auto", fun auto_lev/3}]]).

%% @doc exor of 12,000 bytes: 100 calls between two collections, since each
%% makes a binary.
-spec exor() -> fairnif_bench_series:samples().
exor() ->
    Bin = random_bytes(12000, 1),
    alone(fun() ->
                  interleave(?ROUNDS,
                             [contestant(12000, Name, 4000,
                                         fun(_) -> batches(40, Loop, Bin) end)
                              || {Name, Loop} <- [{"plain", fun plain_exor/3},
                                                  {"yielding", fun yielding_exor/3},
                                                  {"auto", fun auto_exor/3}]])
          end).

%% The binaries of a batch are garbage when the next begins: what frees them is
%% inside the time, for everyone the same.
batches(0, _, _) -> ok;
batches(N, Loop, Bin) ->
    Loop(100, Bin, 170),
    erlang:garbage_collect(self(), [{type, minor}]),
    batches(N - 1, Loop, Bin).

%% @doc Levenshtein of 512 MB against one byte: as many cells.  (exor of 512 MB
%% is in fairnif_bench_memory.)
-spec large() -> fairnif_bench_series:samples().
large() ->
    Bin = binary:copy(<<"a">>, 512 * 1024 * 1024),
    alone(fun() ->
                  interleave(?FEW_ROUNDS,
                             [fun() -> timed(Name, fun() -> Loop(1, Bin, <<"b">>) end) end
                              || {Name, Loop} <- [{<<"plain">>, fun plain_lev/3},
                                                  {<<"yielding">>, fun yielding_lev/3}]])
          end).

%% @doc Calls that do nothing.
-spec noop() -> fairnif_bench_series:samples().
noop() ->
    alone(fun() ->
                  interleave(?ROUNDS,
                             [fun() ->
                                      timed_loop(Name, Calls,
                                                 fun(N) -> Loop(N, ok) end)
                              end
                              || {Name, Calls, Loop} <-
                                     [{<<"plain">>, 500000, fun plain_noop/2},
                                      {<<"auto">>, 500000, fun auto_noop/2},
                                      {<<"dirty">>, 10000, fun dirty_noop/2}]])
          end).

%% @doc To a dirty scheduler and back: as a call, within one call, and as the
%% only thing a call does.
-spec move() -> fairnif_bench_series:samples().
move() ->
    alone(fun() ->
                  interleave(?ROUNDS,
                             [fun() -> timed_loop(<<"dirty call">>, 5000,
                                                  fun(N) -> dirty_noop(N, ok) end)
                              end,
                              fun() -> timed_loop(<<"move">>, 5000,
                                                  fun(N) -> flip(1, N) end)
                              end,
                              fun() -> timed_loop(<<"call that moves">>, 5000,
                                                  fun(N) -> flip(N, 1) end)
                              end])
          end).

contestant(Size, Name, Calls, Loop) ->
    Series = iolist_to_binary([Name, $\s, integer_to_list(Size)]),
    fun() -> timed_loop(Series, Calls, Loop) end.

merge(Maps) -> lists:foldl(fun maps:merge/2, #{}, Maps).

random_bytes(Size, Seed) ->
    State = rand:seed_s(exsss, Seed),
    {Bytes, _} = rand:bytes_s(Size, State),
    Bytes.

%% @doc Runs Fun in the process that this module begins with.
-spec alone(fun(() -> T)) -> T.
alone(Fun) ->
    Me = self(),
    {Pid, Monitor} =
        spawn_opt(fun() -> Me ! {self(), Fun()} end,
                  [monitor, {scheduler, 1}, {min_heap_size, 100000},
                   {min_bin_vheap_size, 1000000}]),
    receive
        {Pid, Samples} -> erlang:demonitor(Monitor, [flush]), Samples;
        {'DOWN', Monitor, process, _, Reason} -> error(Reason)
    end.
