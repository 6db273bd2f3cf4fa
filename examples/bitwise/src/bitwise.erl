%% @doc XOR of a binary with one byte, in every manner a NIF can have.
%%
%% Each form takes a binary and a byte, 0 to 255, and returns `{Binary, Yields}':
%% the result, and how often the call yielded. Anything else is `badarg'.
-module(bitwise).

-export([exor/2, exor_bad/2, exor_chunks/2, exor_yield/2, exor_dirty/2,
         exor_dirty_yield/2, exor_flip/2, exor_threaded/2, reds/3]).

-nifs([exor/2, exor_bad/2, exor_yield/2, exor_dirty/2, exor_dirty_yield/2,
       exor_flip/2, nif_exor_threaded/2]).

-include_lib("fairnif/include/fairnif.hrl").
-on_load(init/0).

-type result() :: {binary(), Yields :: non_neg_integer()}.

-define(CHUNK, 4194304).

init() -> ?FAIRNIF_LOAD.

%% @doc The one to use: mode AUTO.
-spec exor(binary(), byte()) -> result().
exor(_Binary, _Byte) -> erlang:nif_error(not_loaded).

%% @doc A plain NIF: holds its scheduler until it is done.
-spec exor_bad(binary(), byte()) -> result().
exor_bad(_Binary, _Byte) -> erlang:nif_error(not_loaded).

%% @doc What Erlang can do about it: {@link exor_bad/2} on chunks of 4 MiB.
%% `Yields' is the number of chunks minus one.
-spec exor_chunks(binary(), byte()) -> result().
exor_chunks(Binary, Byte) when byte_size(Binary) > ?CHUNK ->
    exor_chunks(Binary, Byte, 0, []);
exor_chunks(Binary, Byte) ->
    exor_bad(Binary, Byte).

exor_chunks(<<Chunk:?CHUNK/binary, Rest/binary>>, Byte, Chunks, Done) ->
    {Out, 0} = exor_bad(Chunk, Byte),
    exor_chunks(Rest, Byte, Chunks + 1, [Out | Done]);
exor_chunks(<<>>, _Byte, Chunks, Done) ->
    {iolist_to_binary(lists:reverse(Done)), Chunks - 1};
exor_chunks(Rest, Byte, Chunks, Done) ->
    {Out, 0} = exor_bad(Rest, Byte),
    {iolist_to_binary(lists:reverse(Done, [Out])), Chunks}.

%% @doc Mode NORMAL, which yields.
-spec exor_yield(binary(), byte()) -> result().
exor_yield(_Binary, _Byte) -> erlang:nif_error(not_loaded).

%% @doc Mode DIRTY_CPU, NO_YIELD.
-spec exor_dirty(binary(), byte()) -> result().
exor_dirty(_Binary, _Byte) -> erlang:nif_error(not_loaded).

%% @doc Mode DIRTY_CPU, which yields.
-spec exor_dirty_yield(binary(), byte()) -> result().
exor_dirty_yield(_Binary, _Byte) -> erlang:nif_error(not_loaded).

%% @doc Begins on a normal scheduler, continues on a dirty one, ends on a normal
%% one.
-spec exor_flip(binary(), byte()) -> result().
exor_flip(_Binary, _Byte) -> erlang:nif_error(not_loaded).

%% @doc Mode THREADED: on a thread of fairnif's pool, while the caller waits and
%% holds no scheduler.
-spec exor_threaded(binary(), byte()) -> result().
exor_threaded(Binary, Byte) -> fairnif:await(nif_exor_threaded(Binary, Byte)).

nif_exor_threaded(_Binary, _Byte) -> erlang:nif_error(not_loaded).

%% @doc Runs `{_, Yields} = Fun(Binary, Byte)' in a fresh process: how long it
%% took, how often it yielded, and the process's reductions before and after.
%% What goes wrong there is raised here.
-spec reds(binary(), byte(), fun((binary(), byte()) -> result())) ->
          {Microseconds :: non_neg_integer(), Yields :: non_neg_integer(),
           {reductions, non_neg_integer()}, {reductions, non_neg_integer()}}.
reds(Binary, Byte, Fun) ->
    {Pid, Monitor} =
        spawn_monitor(
          fun() ->
                  exit(try {done, measure(Binary, Byte, Fun)}
                       catch Class:Reason:Stack -> {raise, Class, Reason, Stack}
                       end)
          end),
    receive
        {'DOWN', Monitor, process, Pid, {done, Result}} -> Result;
        {'DOWN', Monitor, process, Pid, {raise, Class, Reason, Stack}} ->
            erlang:raise(Class, Reason, Stack);
        {'DOWN', Monitor, process, Pid, Reason} -> exit(Reason)
    end.

measure(Binary, Byte, Fun) ->
    Before = process_info(self(), reductions),
    T0 = erlang:monotonic_time(microsecond),
    {_, Yields} = Fun(Binary, Byte),
    T1 = erlang:monotonic_time(microsecond),
    {T1 - T0, Yields, Before, process_info(self(), reductions)}.
