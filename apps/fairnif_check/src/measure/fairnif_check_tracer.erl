%% A tracer that writes down when one process ran: c_src/fairnif_check_tracer.c says why it is
%% native.
%%
%% One table for one traced process; read it after that process has ended.
%%
%% The callbacks are those of erl_tracer; no `behaviour' says so, since the compiler cannot find
%% that module, which is part of the emulator.
-module(fairnif_check_tracer).

-export([new/1, events/1, later/1]).
-export([enabled/3, trace/5]).
-nifs([new/1, events_as_bytes/1, later_as_bytes/1, enabled/3, trace/5]).

-on_load(init/0).

-export_type([event/0, later/0]).

-opaque table() :: reference().
-export_type([table/0]).
%% When (the VM's monotonic time), and how long its thread had waited for a processor by then: ns.
-type event() :: {in | out | gc_begin | gc_end, normal | dirty, At :: integer(),
                  Waited :: integer()}.
%% What came after the table was full: from when to when (0 without any), how many slices were seen
%% and not kept, with their time, and the longest that were, in order of time: from, to, kind, how
%% long its thread waited, how long garbage was collected in it. All times in ns; those that count
%% are without waiting and without collection.
-type later() :: #{since := integer(), until := integer(),
                   normal := {non_neg_integer(), non_neg_integer()},
                   dirty := {non_neg_integer(), non_neg_integer()},
                   longest := [{integer(), integer(), normal | dirty, non_neg_integer(),
                                non_neg_integer()}]}.

init() ->
    erlang:load_nif(filename:join(code:priv_dir(fairnif_check), "fairnif_check_tracer"), 0).

%% @doc A table for that many events (24 bytes each; of what comes after, see later/1), to be given
%% to erlang:trace/3 as `{tracer, fairnif_check_tracer, Table}'. Error `enomem'.
-spec new(non_neg_integer()) -> table().
new(_Limit) -> erlang:nif_error(not_loaded).

%% @doc The events that had a place, in order of time.
-spec events(table()) -> [event()].
events(Table) ->
    [{tag(Tag), kind(Kind), At, Waited}
     || <<At:64/signed-native, Waited:64/signed-native, Tag:32/native, Kind:32/native>>
            <= events_as_bytes(Table)].

%% @doc What came after them: the 4096 longest slices, and how many others.
-spec later(table()) -> later().
later(Table) ->
    {Since, Until, Normal, Dirty, Slices} = later_as_bytes(Table),
    #{since => Since, until => Until, normal => Normal, dirty => Dirty,
      longest => lists:sort(
                   [{Start, End, kind(Kind), Waited, Collected}
                    || <<Start:64/signed-native, End:64/signed-native, Waited:64/signed-native,
                         Collected:64/signed-native, Kind:64/native>> <= Slices])}.

tag(0) -> in;
tag(1) -> out;
tag(2) -> gc_begin;
tag(3) -> gc_end.

kind(0) -> normal;
kind(1) -> dirty.

events_as_bytes(_Table) -> erlang:nif_error(not_loaded).
later_as_bytes(_Table) -> erlang:nif_error(not_loaded).

%% @private
-spec enabled(atom(), table(), pid()) -> trace | discard.
enabled(_Tag, _Table, _Tracee) -> erlang:nif_error(not_loaded).

%% @private
-spec trace(atom(), table(), pid(), term(), map()) -> term().
trace(_Tag, _Table, _Tracee, _Term, _Opts) -> erlang:nif_error(not_loaded).
