%% @doc Resource objects that take a given time to clean up, once no term refers to them any more.
%%
%% A plain one is cleaned up where the garbage collector is, in one go: a scheduler stands still
%% meanwhile. A fair one is left to a task of its own.
-module(cleanup).

-export([fair/2, plain/2, cleaned/0, garbage/3]).

-nifs([fair/2, plain/2, cleaned/0]).

-include_lib("fairnif/include/fairnif.hrl").
-on_load(init/0).

-export_type([kind/0]).

-type kind() :: works | computes | waits.
%% `works': computes, and ticks every two microseconds; `computes': the same without a tick;
%% `waits': sleeps in the system.

init() -> ?FAIRNIF_LOAD.

%% @doc A fair resource object, whose clean-up takes `Us' microseconds, 0 to 10,000,000; else
%% `badarg'. `enomem' when memory is out.
-spec fair(kind(), Us :: non_neg_integer()) -> reference().
fair(_Kind, _Us) -> erlang:nif_error(not_loaded).

%% @doc The same with a plain destructor, as NIFs have it.
-spec plain(kind(), Us :: non_neg_integer()) -> reference().
plain(_Kind, _Us) -> erlang:nif_error(not_loaded).

%% @doc How many objects have been cleaned up since the library was loaded, of both kinds.
-spec cleaned() -> non_neg_integer().
cleaned() -> erlang:nif_error(not_loaded).

%% @doc `Count' such objects are made by a process that ends at once: they are garbage when this
%% returns.
-spec garbage(fun(() -> reference()), Count :: non_neg_integer(), timeout()) -> ok.
garbage(Make, Count, Timeout) ->
    {Pid, Ref} = spawn_monitor(fun() ->
                                       exit([Make() || _ <- lists:seq(1, Count)] =:= [])
                               end),
    receive
        {'DOWN', Ref, process, Pid, IsNone} when is_boolean(IsNone) -> ok;
        {'DOWN', Ref, process, Pid, Reason} -> error(Reason)
    after Timeout ->
            error(timeout)
    end.
