%% Work on lists of millions of elements in native code that yields: sum/1, range/2 and sort/1;
%% two of them beside a plain NIF with the same C kernel that does not.
%%
%% What makes long lists slow is less the native code than the collections of garbage while a list
%% is built, each of which copies what is there already. So the functions that build something
%% first ask for a heap that has room for it (fairnif:with_heap/2).
-module(big_lists).

-export([sum/1, range/2, sort/1, unfair_sum/1, unfair_range/2]).

-nifs([sum/1, native_range/2, native_sort/1, unfair_sum/1, unfair_range/2]).

-include_lib("fairnif/include/fairnif.hrl").
-on_load(init/0).

%% In words. Less is not worth the asking.
-define(LITTLE_ROOM, 100000).

init() -> ?FAIRNIF_LOAD.

%% @doc The sum of a list of integers; they and it have 64 bits. Raises badarg for anything else.
%% 6 ns an element.
-spec sum([integer()]) -> integer().
sum(_List) -> erlang:nif_error(not_loaded).

%% @doc The integers from From to To, each of which has 64 bits; none when To is From - 1. Raises
%% badarg for anything else, as lists:seq/2 does.
-spec range(integer(), integer()) -> [integer()].
range(From, To) when is_integer(From), is_integer(To) ->
    room(2 * (To - From + 1), fun() -> native_range(From, To) end);
range(From, To) ->
    erlang:error(badarg, [From, To]).

%% @doc The same elements in Erlang's order of terms; those that compare equal (1 and 1.0) stay in
%% their order. Raises badarg for anything that is no list. One comparison is not divided: it takes
%% what `=<' takes.
-spec sort([Term]) -> [Term].
sort(List) ->
    %% The answer, and one word an element to have them by number.
    room(3 * length(List) + length(List) div 64, fun() -> native_sort(List) end).

room(Words, Fun) when Words < ?LITTLE_ROOM -> Fun();
room(Words, Fun) -> fairnif:with_heap(Words, Fun).

native_range(_From, _To) -> erlang:nif_error(not_loaded).
native_sort(_List) -> erlang:nif_error(not_loaded).

%% @doc Plain NIFs: they hold their scheduler to the end. Here to be measured against.
unfair_sum(_List) -> erlang:nif_error(not_loaded).
unfair_range(_From, _To) -> erlang:nif_error(not_loaded).
