%% Work on lists of millions of elements in native code that gives way: sum/1,
%% range/2, sort/1 and to_map/1, each beside a plain NIF with the same C kernel
%% that does not.
%%
%% What makes long lists slow is less the native code than the collections of
%% garbage while a list is built, each of which copies what is there already.
%% So the functions that build something first ask for a heap that has room for
%% it (fairnif:room/2); what they make is then written once and never copied.
-module(big_lists).

-export([sum/1, range/2, sort/1, to_map/1,
         unfair_sum/1, unfair_range/2, unfair_sort/1, unfair_to_map/1]).

-nifs([sum/1, native_range/2, native_sort/1, native_to_maps/1,
       unfair_sum/1, unfair_range/2, unfair_sort/1, unfair_to_map/1]).

-on_load(init/0).

%% In words.  Less is not worth the asking.
-define(LITTLE_ROOM, 100000).

init() ->
    fairnif:loaded(erlang:load_nif(fairnif:path(?MODULE), fairnif:load_info())).

%% @doc The sum of a list of integers from -2^63 to 2^64-1; it may be larger.
%% Raises badarg for anything else.  6 ns an element.
-spec sum([integer()]) -> integer().
sum(_List) ->
    erlang:nif_error(not_loaded).

%% @doc The integers from From to To, each of which has 64 bits; none when To is
%% From - 1.  Raises badarg for anything else, as lists:seq/2 does.
-spec range(integer(), integer()) -> [integer()].
range(From, To) when is_integer(From), is_integer(To) ->
    room(2 * (To - From + 1), fun() -> native_range(From, To) end);
range(From, To) ->
    erlang:error(badarg, [From, To]).

%% @doc The same elements in Erlang's order of terms; those that compare equal
%% (1 and 1.0) stay in their order.  Raises badarg for anything that is no list.
%% One comparison is not divided: it takes what `=<' takes.
-spec sort([Term]) -> [Term].
sort(List) when is_list(List) ->
    %% The answer, and one word an element to have them by number.
    room(3 * length(List) + length(List) div 64, fun() -> native_sort(List) end);
sort(List) ->
    erlang:error(badarg, [List]).

%% @doc A map of {Key, Value} pairs; of a key that comes several times the last
%% value.  Raises badarg for anything else.
-spec to_map([{Key, Value}]) -> #{Key => Value}.
to_map(Pairs) when is_list(Pairs) ->
    %% 4 to 5.2 words a key; one, to have the pairs by number; a list of parts.
    room(7 * length(Pairs), fun() -> merge(native_to_maps(Pairs)) end);
to_map(Pairs) ->
    erlang:error(badarg, [Pairs]).

%% Maps with no key in common.  Neighbours, and neighbours of neighbours, share
%% few nodes: see c_src/map.c.
merge([Map]) -> Map;
merge(Maps) -> merge(merge_pairs(Maps)).

merge_pairs([A, B | Maps]) -> [maps:merge(A, B) | merge_pairs(Maps)];
merge_pairs(Maps) -> Maps.

room(Words, Fun) when Words < ?LITTLE_ROOM -> Fun();
room(Words, Fun) -> fairnif:room(Words, Fun).

native_range(_From, _To) ->
    erlang:nif_error(not_loaded).

native_sort(_List) ->
    erlang:nif_error(not_loaded).

native_to_maps(_Pairs) ->
    erlang:nif_error(not_loaded).

%% @doc Plain NIFs: they hold their scheduler to the end.  Here to be measured
%% against.
-spec unfair_sum([integer()]) -> integer().
unfair_sum(_List) ->
    erlang:nif_error(not_loaded).

-spec unfair_range(integer(), integer()) -> [integer()].
unfair_range(_From, _To) ->
    erlang:nif_error(not_loaded).

-spec unfair_sort([Term]) -> [Term].
unfair_sort(_List) ->
    erlang:nif_error(not_loaded).

-spec unfair_to_map([{Key, Value}]) -> #{Key => Value}.
unfair_to_map(_Pairs) ->
    erlang:nif_error(not_loaded).
