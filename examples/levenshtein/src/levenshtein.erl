%% The Levenshtein distance of two binaries, in bytes: how many bytes must be
%% inserted, deleted or replaced to make one of the other.
%%
%% One algorithm in six forms.  Five are native and run the same C kernel; they
%% differ only in how they share the VM.  Time grows with the product of the two
%% sizes, memory with the shorter one (4 bytes a byte).  A common beginning and
%% end are skipped at memory speed by the native forms.
%%
%% Every form raises badarg when an argument is not a binary.  The native ones
%% raise enomem when there is no memory for the row, and system_limit when both
%% inputs, without what they begin and end with in common, are 2 GiB or longer:
%% that many cells would take a lifetime.
-module(levenshtein).

-export([levenshtein/2,
         unfair_levenshtein/2,
         yielding_levenshtein/2,
         dirty_levenshtein/2,
         threaded_levenshtein/2,
         erlang_levenshtein/2]).

-include_lib("fairnif/include/fairnif.hrl").
-on_load(init/0).

init() -> ?FAIRNIF_LOAD.

%% The one to use: starts at once, yields when its slice is up (FAIR_AUTO).
-spec levenshtein(binary(), binary()) -> non_neg_integer().
levenshtein(_A, _B) ->
    erlang:nif_error(not_loaded).

%% A plain NIF: holds its scheduler to the end.  Here to be measured against.
-spec unfair_levenshtein(binary(), binary()) -> non_neg_integer().
unfair_levenshtein(_A, _B) ->
    erlang:nif_error(not_loaded).

%% On normal schedulers, yielding after each slice (FAIR_NORMAL).
-spec yielding_levenshtein(binary(), binary()) -> non_neg_integer().
yielding_levenshtein(_A, _B) ->
    erlang:nif_error(not_loaded).

%% On a dirty CPU scheduler to the end (FAIR_DIRTY_CPU | FAIR_NO_YIELD).
-spec dirty_levenshtein(binary(), binary()) -> non_neg_integer().
dirty_levenshtein(_A, _B) ->
    erlang:nif_error(not_loaded).

%% On a thread of fairnif's pool, while the caller waits and holds no scheduler
%% (FAIR_THREADED).
-spec threaded_levenshtein(binary(), binary()) -> non_neg_integer().
threaded_levenshtein(A, B) ->
    fairnif:await(nif_threaded_levenshtein(A, B)).

nif_threaded_levenshtein(_A, _B) ->
    erlang:nif_error(not_loaded).

%% In Erlang, straight from the definition: what the others are tested against.
-spec erlang_levenshtein(binary(), binary()) -> non_neg_integer().
erlang_levenshtein(A, B) when is_binary(A), is_binary(B) ->
    case byte_size(A) =< byte_size(B) of
        true -> distance(A, B);
        false -> distance(B, A)
    end;
erlang_levenshtein(A, B) ->
    erlang:error(badarg, [A, B]).

%% Row J of the table holds the distances of every beginning of Short to the
%% first J bytes of Long.
distance(Short, Long) ->
    rows(Long, Short, lists:seq(0, byte_size(Short))).

rows(<<Byte, Long/binary>>, Short, [Diag | Ups]) ->
    Left = Diag + 1,
    rows(Long, Short, [Left | row(Short, Byte, Diag, Ups, Left)]);
rows(<<>>, _Short, Row) ->
    lists:last(Row).

row(<<Byte, Short/binary>>, Byte, Diag, [Up | Ups], Left) ->
    Cell = smallest(Left + 1, Up + 1, Diag),
    [Cell | row(Short, Byte, Up, Ups, Cell)];
row(<<_, Short/binary>>, Byte, Diag, [Up | Ups], Left) ->
    Cell = smallest(Left, Up, Diag) + 1,
    [Cell | row(Short, Byte, Up, Ups, Cell)];
row(<<>>, _Byte, _Diag, [], _Left) ->
    [].

smallest(A, B, C) when A =< B, A =< C -> A;
smallest(_, B, C) when B =< C -> B;
smallest(_, _, C) -> C.
