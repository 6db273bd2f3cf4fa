%% @doc The watchdog's native part: stubs of the NIFs in `priv/fairnif_watch.so'.
%%
%% There is no `-on_load': the module may come to a node as bare code, with the library at a path
%% that only the watchdog knows.  {@link load/1} is called before anything else.  Only
%% {@link fairnif_watch_watchdog} calls the rest; {@link demangle/1} is fairnif_watch_symbol's.
-module(fairnif_watch_native).

-export([load/1, new/3, start/1, stop/1, responder/2, reply/2, threads/1, pool/1, counters/1,
         online/2, top/1, look/4, fairnif/2, demangle/1]).

-export_type([watch/0]).

-nifs([new/3, start/1, stop/1, responder/2, reply/2, threads/1, pool/1, counters/1, online/2,
       top/1, look/4, fairnif/2, demangle/1]).

-opaque watch() :: reference().
%% The watch thread, with all that it knows.

%% @doc Loads the library; `Path' is without extension.  Loaded already is as good.
-spec load(Path :: file:filename()) -> ok | {error, term()}.
load(Path) ->
    case erlang:load_nif(Path, 0) of
        {error, {reload, _}} -> ok;
        Answer -> Answer
    end.

%% @doc Finds all scheduler threads; the watch sends to `Owner' and ends when `Watchdog' does.
%% Reads /proc, on a dirty I/O scheduler.
-spec new(Config :: #{atom() => non_neg_integer()}, Owner :: pid(), Watchdog :: pid()) ->
          {ok, watch()} | {error, {unknown_thread_names, [binary()]} | enomem | noproc}.
new(_Config, _Owner, _Watchdog) -> erlang:nif_error(not_loaded).

%% @doc Starts the thread; once. `Errno' is why running threads cannot be looked at by signal though
%% the configuration wants it; 0: they can. `Hidden': the system does not show where they sleep.
%% `busy': another watch was not stopped yet.
-spec start(watch()) ->
          {ok, Errno :: non_neg_integer(), Hidden :: boolean()} | {error, busy | no_thread}.
start(_Watch) -> erlang:nif_error(not_loaded).

%% @doc Ends the thread and waits for it, some milliseconds on a dirty I/O scheduler.
-spec stop(watch()) -> ok.
stop(_Watch) -> erlang:nif_error(not_loaded).

%% @doc Says that the caller is the responder of that normal scheduler, and runs on it.
-spec responder(watch(), Scheduler :: pos_integer()) ->
          ok | {error, {thread, Named :: integer(), Mine :: integer()}}.
responder(_Watch, _Scheduler) -> erlang:nif_error(not_loaded).

%% @doc The responder's answer to a probe; under a microsecond.
-spec reply(watch(), Scheduler :: pos_integer()) -> ok.
reply(_Watch, _Scheduler) -> erlang:nif_error(not_loaded).

%% @doc What is known of each scheduler thread; about 2 us each. `busy': the thread is writing it.
-spec threads(watch()) -> [#{atom() => term()}] | busy.
threads(_Watch) -> erlang:nif_error(not_loaded).

%% @doc What fairnif runs on threads of its own: `kind', `number' and `fairnif' as in
%% {@link threads/1}.
-spec pool(watch()) -> [#{atom() => term()}] | busy.
pool(_Watch) -> erlang:nif_error(not_loaded).

%% @doc The thread's counters.
-spec counters(watch()) -> #{atom() => non_neg_integer()}.
counters(_Watch) -> erlang:nif_error(not_loaded).

%% @doc Tells the thread how many normal schedulers are online.
-spec online(watch(), pos_integer()) -> ok.
online(_Watch, _Number) -> erlang:nif_error(not_loaded).

%% @doc Of the stacks that were taken of busy threads: how many, how many of functions that are not
%% in the table, and the table. `busy': the thread is writing it.
-spec top(watch()) -> {non_neg_integer(), non_neg_integer(),
                       [{mfa() | {Library :: binary(), Place :: binary()}, pos_integer()}]} | busy.
top(_Watch) -> erlang:nif_error(not_loaded).

%% @doc Asks for the stack of a thread; the event `looked' follows. `busy': sixteen are asked for.
%% Raises `error:badarg' where there is no such thread.
-spec look(watch(), normal | dirty_cpu | dirty_io, pos_integer(), Ref :: term()) -> ok | busy.
look(_Watch, _Kind, _Number, _Ref) -> erlang:nif_error(not_loaded).

%% @doc Binds the thread to fairnif's runtime; `false': its version is another.
-spec fairnif(watch(), Runtime :: term()) -> boolean().
fairnif(_Watch, _Runtime) -> erlang:nif_error(not_loaded).

%% @doc The C++ name that a symbol stands for; `none': it stands for none, is longer than the watch
%% keeps, or the emulator has no C++ library. Takes some microseconds, and up to twice as long for
%% each two references back in the symbol.
-spec demangle(Symbol :: binary()) -> binary() | none.
demangle(_Symbol) -> erlang:nif_error(not_loaded).
