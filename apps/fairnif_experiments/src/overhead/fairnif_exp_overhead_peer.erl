%% The part of the experiment `overhead' that runs inside its peer nodes: the
%% way to a dirty scheduler and back, by stamps taken in C on both sides, and
%% what ordinary native functions take.
-module(fairnif_exp_overhead_peer).

-export([examples/0, trips/2, times/1]).

-export_type([kind/0, trips/0]).

-type kind() :: plain | dirty_cpu | dirty_io.
%% ns, in order of time: from the call to the start of the native code, and from
%% its end to the next native code of the caller.
-type trips() :: #{there := [integer()], back := [integer()]}.

%% Before any call counts: code is loaded, the dirty threads run.
-define(WARM, 1000).
%% So large that no collection comes between two stamps.
-define(HEAP_WORDS, 4000000).
-define(WATCH_MS, 600).
%% The number of batches decides; this is more than any takes.
-define(TIME_MS, 60000).

%% @doc The modules whose NIFs are timed: projects of their own, found in the
%% code path when they are built, and called by these names alone.
-spec examples() -> [module()].
examples() ->
    [levenshtein, bitwise].

%% @doc So many calls of each kind, one after the other; `plain' is what the
%% stamps alone take.  Takes at least 600 ms: what else the machine does is
%% counted in ticks of 10 ms, and nothing can be said about less.
-spec trips([kind()], pos_integer()) -> [{kind(), trips()}].
trips(Kinds, Count) ->
    Until = erlang:monotonic_time(millisecond) + ?WATCH_MS,
    ok = fairnif_lab_nif:load(),
    Trips = [{Kind, alone(fun() -> stamps(Kind, Count) end)} || Kind <- Kinds],
    timer:sleep(max(0, Until - erlang:monotonic_time(millisecond))),
    Trips.

stamps(Kind, Count) ->
    _ = trips(Kind, ?WARM, []),
    {There, Back} = lists:unzip(lists:reverse(trips(Kind, Count, []))),
    #{there => There, back => Back}.

%% Each kind has a loop of its own: nothing but the call stands between stamps.
trips(_, 0, Trips) ->
    Trips;
trips(plain, N, Trips) ->
    From = fairnif_lab_nif:now(),
    There = fairnif_lab_nif:now(),
    Back = fairnif_lab_nif:now(),
    trips(plain, N - 1, [{There - From, Back - There} | Trips]);
trips(dirty_cpu, N, Trips) ->
    From = fairnif_lab_nif:now(),
    There = fairnif_lab_nif:now_dirty_cpu(),
    Back = fairnif_lab_nif:now(),
    trips(dirty_cpu, N - 1, [{There - From, Back - There} | Trips]);
trips(dirty_io, N, Trips) ->
    From = fairnif_lab_nif:now(),
    There = fairnif_lab_nif:now_dirty_io(),
    Back = fairnif_lab_nif:now(),
    trips(dirty_io, N - 1, [{There - From, Back - There} | Trips]).

%% @doc What a call of some native functions on a normal scheduler takes, by
%% size: the median of so many batches, ns.
-spec times(pos_integer()) -> [#{function := binary(), points := [{pos_integer(), float()}]}].
times(Batches) ->
    alone(fun() ->
                  [#{function => iolist_to_binary(Title),
                     points => [{Size, time(Prepare(Size), Batches)} || Size <- Sizes]}
                   || {Title, Sizes, Prepare} <- functions()]
          end).

%% Title, bytes of an argument, what makes the call of that size.
functions() ->
    [Levenshtein, Bitwise] = examples(),
    Linear = [64 bsl N || N <- lists:seq(0, 18, 2)],
    [{"levenshtein:unfair_levenshtein(Bin, Bin)", [8 bsl N || N <- lists:seq(0, 8)],
      fun(Size) ->
              {A, B} = {rand:bytes(Size), rand:bytes(Size)},
              fun() -> Levenshtein:unfair_levenshtein(A, B) end
      end},
     {"bitwise:exor_bad(Bin, 90)", Linear, on_bytes(fun(Bin) -> Bitwise:exor_bad(Bin, 90) end)},
     {"crypto:hash(sha256, Bin)", Linear, on_bytes(fun(Bin) -> crypto:hash(sha256, Bin) end)},
     {"erlang:md5(Bin)", Linear, on_bytes(fun erlang:md5/1)},
     {"erlang:crc32(Bin)", Linear, on_bytes(fun erlang:crc32/1)}].

on_bytes(Call) ->
    fun(Size) ->
            Bin = rand:bytes(Size),
            fun() -> Call(Bin) end
    end.

time(Call, Batches) ->
    [#{time := #{median := Ns}}] =
        fairnif_lab_time:measure([Call], #{runs => Batches, time_ms => ?TIME_MS}),
    Ns.

alone(Fun) ->
    fairnif_lab_machine:apart([{min_heap_size, ?HEAP_WORDS}], Fun).
