%% @doc Native functions that share the BEAM.
%%
%% An author's module loads its NIF library with
%% ```
%% -include_lib("fairnif/include/fairnif.hrl").
%% -on_load(init/0).
%% init() -> ?FAIRNIF_LOAD.
%% '''
%% The first call of this module loads the runtime, `priv/fairnif.so'.  The runtime is
%% usable at once, with defaults.  Process `fairnif_calibration' then measures the fair
%% slice, which takes about 20 ms, and longer while all dirty CPU schedulers are busy.
%% This module has no `-on_load' of its own, since in a release in embedded mode an
%% author's on_load may run before it.
%%
%% Application environment of `fairnif'.  All settings are optional.  They are read when
%% the runtime is loaded, and again when the application starts:
%% <dl>
%% <dt>`slice_us'</dt><dd>length of a slice on normal schedulers in us, 1 to
%%   1000000; default: calibrated</dd>
%% <dt>`dirty_slice_us'</dt><dd>length of a slice on dirty schedulers in us;
%%   default 1000</dd>
%% <dt>`auto_gap_us'</dt><dd>a function in mode AUTO whose ticks are further
%%   apart than this, in us, begins on dirty schedulers; default 1000</dd>
%% <dt>`max_tasks'</dt><dd>the largest number of calls of all fair functions
%%   in progress at once.  A further call waits its turn, or raises `error:overloaded'
%%   if it is not awaited; default 0, no limit</dd>
%% <dt>`threads'</dt><dd>largest size of the pool, 1 to 1024.  Threads start when
%%   there is work, and all but one end after 10 s without any; default 16</dd>
%% <dt>`pool_nice'</dt><dd>how much lower than the schedulers' the priority of code that
%%   computes on these threads is, 0 to 19 (Linux).  With 10 it gets 9 to 12 % of the
%%   processors while all schedulers are busy; default 10</dd>
%% <dt>`scheduler_slice_us'</dt><dd>how long the kernel lets a scheduler's thread run
%%   before another thread, 0 to 100000 (Linux from 6.12 on, at least 100): a scheduler
%%   that looks for work waits in proportion to it.  0 leaves it alone; default 100</dd>
%% <dt>`max_queued'</dt><dd>how many jobs may be queued for a thread.  Further ones
%%   wait until there is room; default 1000</dd>
%% <dt>`overload_ms'</dt><dd>how long a call waits its turn, or for a thread, before
%%   it raises `error:overloaded'; default 5000</dd>
%% </dl>
-module(fairnif).

%% What users call, and the NIFs: these stand here, since this module's name is compiled into every
%% author's library (fairnif_abi.h). The rest is in fairnif_load, fairnif_await, fairnif_settings.
-export([path/1, path/2, load_info/0, load_info/1, loaded/1, include_dir/0]).
-export([await/1, with_error_info/2, format_error/2, with_heap/2]).
-export([info/0, info/1, tasks/0, debug/1, configure/0, calibrate/0]).

%% In words; more is left to the VM.
-define(MUCH_ROOM, (1 bsl 28)).

-export_type([info/0, function_info/0, task/0, pending/0]).

-nifs([nif_set/2, nif_info/0, nif_tasks/0, nif_outlived/0, nif_runtime/0,
       nif_start_pool/0, nif_reschedule_ns/1, nif_dirty_round_trip_ns/1, nif_await/2,
       nif_expire/1, nif_settle/1, nif_asked/2, nif_answer/3]).

%% For the other modules.
-export([nif_load/2, nif_set/2, nif_info/0, nif_tasks/0, nif_outlived/0, nif_runtime/0,
         nif_start_pool/0, nif_reschedule_ns/1, nif_dirty_round_trip_ns/1, nif_await/2,
         nif_expire/1, nif_settle/1, nif_asked/2, nif_answer/3]).

-type info() :: #{version := string(),
                  interface := {non_neg_integer(), non_neg_integer()},
                  calibration := fairnif_calibration:result(),
                  functions := [function_info()],
                  atom() => term()}.
%% The result of {@link info/0}: the settings in force, in ns, the calibration that
%% they come from (`measured' is false while they are defaults), stacks, and every
%% function.

-type function_info() :: #{function := mfa(),
                           mode := mode(),
                           flags := [no_yield | may_wait | cleanup | prompt],
                           atom() => term()}.
%% One function: its counters (docs/reference/info.md lists them with their
%% units), what the runtime has learned about it, and the histogram of its slices
%% on normal schedulers as `[{UpToNs, Count}]'.

-type mode() :: normal | dirty_cpu | dirty_io | threaded | auto.

-type task() :: #{function := mfa(),
                  state := running | suspended | queued | waiting | cleaning_up,
                  owner := pid() | undefined,
                  age_ns := non_neg_integer(),
                  yields := non_neg_integer(),
                  where := place() | {place(), Scheduler :: non_neg_integer()}
                         | turn | pool | lock | descriptor | time | caller | await}.
%% A call in progress.  `suspended': it has yielded, and its next slice is queued on a
%% normal scheduler.  `queued': it waits for a dirty scheduler.  `running': it executes
%% now, on the scheduler or thread of the pool that `where' names.  `waiting': it occupies
%% no scheduler while its caller is in {@link await/1}, and `where' says what it waits for
%% (`caller': a message, or an Erlang function that the caller runs for it; `await': its
%% wait is over, and the caller has to fetch the result).  `cleaning_up': its caller is dead,
%% and its body is about to clean up (FAIR_CLEANUP) on a thread of the pool.  `age_ns' is
%% the time since the call, and may be 4 ms late.  `owner' is `undefined' for a callback of
%% a fair resource.

-type place() :: normal | dirty_cpu | dirty_io | thread | other.

-opaque pending() :: tuple().
%% What a call that waits returns.  Only {@link await/1} can use it.

%% @doc The path of the NIF library of `Module', for the first argument of
%% `erlang:load_nif/2': `Module' without extension, in the `priv' directory of
%% the application that `Module' belongs to.
-spec path(module()) -> file:filename().
path(Module) ->
    path(Module, Module).

%% @doc The path of the NIF library `Name', without extension, in that directory. An absolute
%% `Name' is returned as it is.
-spec path(module(), Name :: module() | file:filename()) -> file:filename().
path(Module, Name) ->
    fairnif_load:path(Module, Name).

%% @equiv load_info(undefined)
-spec load_info() -> term().
load_info() ->
    load_info(undefined).

%% @doc The second argument of `erlang:load_nif/2' for a library made with
%% `FAIR_NIF_INIT'.  The library's own load and upgrade functions get
%% `AuthorsInfo'.
%%
%% Raises `error:{fairnif, Reason}' when the runtime cannot be loaded.
-spec load_info(AuthorsInfo :: term()) -> term().
load_info(AuthorsInfo) ->
    {fairnif, 1, fairnif_load:set_up(), AuthorsInfo}.

%% @doc Returns the result of `erlang:load_nif/2' once it is safe to call the library.
%% Wrap load_nif in it, in the on_load function.
%%
%% Just after load_nif the VM (OTP 25 to 29) enters a NIF through memory that it soon frees.
%% If a call begins then, moves to another scheduler or yields, and raises later, the VM
%% reads the freed memory and the node may die.  This holds for every dirty NIF.  This
%% function waits until the memory is gone: 0.3 ms, 1 to 2 ms if all schedulers are busy,
%% and, as code loading does, as long as a native function blocks a scheduler.
-spec loaded(Result) -> Result when Result :: ok | {error, term()}.
loaded(Result) ->
    fairnif_load:loaded(Result).

%% @doc The directory that holds `fairnif.h', for the compiler's `-I'.
-spec include_dir() -> file:filename().
include_dir() ->
    fairnif_load:header_dir(?MODULE, "fairnif.h").

%% @doc Returns the result of a fair function that may wait (mode `FAIR_THREADED', or
%% `FAIR_MAY_WAIT' or-ed to another mode).  Wrap every call of such a function in it:
%%
%% ```
%% fetch(Url) -> fairnif:await(nif_fetch(Url)).
%% '''
%%
%% A value that is not pending is returned unchanged, so one wrapper serves every
%% mode.  For a pending value the caller waits in a receive that matches one message
%% only: it occupies no scheduler, other messages stay in the mailbox, and the length of
%% the mailbox does not matter.  The call ends if the caller dies.
%%
%% Raises what the function raises, and
%% <dl>
%% <dt>`error:overloaded'</dt><dd>the call waited longer than `overload_ms' for
%%   its turn under `max_tasks', or for a thread of the pool</dd>
%% <dt>`error:{fairnif, not_pending}'</dt><dd>the value looks pending but was not
%%   made by fairnif</dd>
%% <dt>`error:{fairnif, not_owner}'</dt><dd>another process made the call</dd>
%% <dt>`error:{fairnif, awaited_before}'</dt><dd>the value was awaited
%%   already</dd>
%% </dl>
%% A pending value that is never awaited is dropped, with its task, by the garbage
%% collector.
-spec await(pending() | Value) -> Value.
await(Value) when element(1, Value) =:= fairnif_pending;
                  element(1, Value) =:= fairnif_asks -> fairnif_await:await(Value);
await(Value) -> Value.

%% @doc Applies `Fun', a fair function in C++ or an Erlang function around one, to `Args'.  If it
%% rejects an argument, that becomes `error:badarg' with the explanation in the `error_info' of the
%% stack trace, where the shell and Elixir look for it.
%%
%% ```
%% smooth(Bin, Width) -> fairnif:with_error_info(fun nif_smooth/2, [Bin, Width]).
%%
%% 1> my_nif:smooth(<<"abc">>, wide).
%% ** exception error: bad argument
%%      in function  my_nif:nif_smooth/2
%%         called as my_nif:nif_smooth(<<"abc">>,wide)
%%         *** argument 2: expected a number, got wide
%% '''
%% Without this function the reason is `{badarg, #{2 => <<"expected a number, got wide">>}}', since
%% a NIF cannot add to a stack trace.  Other exceptions are passed on unchanged.
-spec with_error_info(fun(), [term()]) -> term().
with_error_info(Fun, Args) ->
    try apply(Fun, Args)
    catch
        error:{badarg, Causes}:Stack when is_map(Causes) ->
            [{Module, Function, _, Place} | Callers] = Stack,
            Info = #{module => ?MODULE, cause => Causes},
            erlang:raise(error, badarg, [{Module, Function, Args, [{error_info, Info} | Place]}
                                         | Callers])
    end.

%% @doc Calls `Fun', whose result takes `Words' words, with room for them: the first garbage
%% collection in the call gives the caller a heap of that `min_heap_size'.  Without it the heap
%% grows by a fifth each time it is full, and everything on it is copied each time.
%%
%% It pays from some 100,000 words on.  It asks for up to 2^28 words, and for none in a process with
%% a `max_heap_size', which could be killed for memory that it may not need.  The caller's
%% `min_heap_size' is restored when `Fun' has returned or raised.
%%
%% ```
%% range(From, To) -> fairnif:with_heap(2 * (To - From + 1), fun() -> native_range(From, To) end).
%% '''
-spec with_heap(Words :: non_neg_integer(), fun(() -> Result)) -> Result.
with_heap(Needed, Fun) ->
    [{heap_size, Size}, {garbage_collection, Settings}] =
        process_info(self(), [heap_size, garbage_collection]),
    case proplists:get_value(max_heap_size, Settings) of
        #{size := 0} ->
            Words = min(Needed, ?MUCH_ROOM),
            %% Of the heap's size no more counts than that: it is what the last call asked for, too.
            %% A process that calls again and again would ask for more each time.
            Before = process_flag(min_heap_size, Words + min(Size, Words)),
            try Fun() after process_flag(min_heap_size, Before) end;
        _ ->
            Fun()
    end.

%% @private What {@link with_error_info/2} has put there.
-spec format_error(term(), [tuple()]) -> #{pos_integer() | general => unicode:chardata()}.
format_error(_Reason, [{_, _, _, Place} | _]) ->
    #{cause := Causes} = proplists:get_value(error_info, Place),
    Causes.

%% @doc Returns everything the runtime knows about itself and about each fair function.
%% It takes some microseconds for each function, on a dirty I/O scheduler, and waits
%% while all of those are busy.
-spec info() -> info().
info() ->
    _ = fairnif_load:set_up(),
    {Runtime, Functions} = nif_info(),
    Runtime#{calibration => fairnif_calibration:figures(),
             functions => Functions}.

%% @doc Returns the part of {@link info/0} about one function.  Raises
%% `error:{fairnif, {no_function, MFA}}' if no library declared the function.
-spec info(mfa()) -> function_info().
info(MFA) ->
    #{functions := Functions} = info(),
    case [F || F = #{function := Name} <- Functions, Name =:= MFA] of
        [Function] -> Function;
        [] -> error({fairnif, {no_function, MFA}})
    end.

%% @doc Returns the calls in progress.  It takes about a microsecond for each call.  More
%% than 64 are listed on a dirty I/O scheduler, for which the caller may have to wait.
-spec tasks() -> [task()].
tasks() ->
    _ = fairnif_load:set_up(),
    nif_tasks().

%% @doc Sets switches for testing bodies, for the whole node.
%% <dl>
%% <dt>`pause_every_tick'</dt><dd>every tick yields, in modes that yield: shows
%%   what does not survive a pause</dd>
%% <dt>`check_terms'</dt><dd>reports terms that a body got from a `fair_' function and
%%   kept across a pause, on standard error and in the counter `rule_violations'</dd>
%% <dt>`measure_cpu'</dt><dd>slices are timed in CPU time of their thread
%%   instead of wall time, at 1 us a slice</dd>
%% </dl>
-spec debug(#{pause_every_tick | check_terms | measure_cpu => boolean()}) -> ok.
debug(Switches) ->
    _ = fairnif_load:set_up(),
    fairnif_settings:debug(Switches).

%% @doc Reads the application environment again.  If a value is out of bounds, it stops and
%% raises `error:{fairnif, {bad_env, {Name, Value}}}'.
-spec configure() -> ok.
configure() ->
    _ = fairnif_load:set_up(),
    fairnif_settings:configure().

%% @doc Measures, in the caller, what 4000 reductions, a reschedule and a dirty call cost
%% here, and then calls {@link configure/0}.  Use it on a node that moved to another machine
%% or started on a very busy one, or that must not run with the defaults.  It takes about
%% 20 ms of the caller's time, and waits for dirty CPU schedulers.
-spec calibrate() -> fairnif_calibration:result().
calibrate() ->
    _ = fairnif_load:set_up(),
    fairnif_settings:calibrate().

%% -- the NIFs ----------------------------------------------------------------

%% @private
%% load_nif binds to the module that contains the call.
-spec nif_load(file:filename(), term()) -> ok | {error, {atom(), term()}}.
nif_load(Path, Earlier) -> erlang:load_nif(Path, Earlier).

%% A stub may not load the runtime and continue: loading writes over its code.
-spec nif_set(atom(), integer()) -> ok.
nif_set(_Name, _Value) -> erlang:nif_error(not_loaded).
-spec nif_info() -> {map(), [function_info()]}.
nif_info() -> erlang:nif_error(not_loaded).
-spec nif_tasks() -> [task()].
nif_tasks() -> erlang:nif_error(not_loaded).
-spec nif_outlived() -> [pid()].
nif_outlived() -> erlang:nif_error(not_loaded).
-spec nif_runtime() -> reference().
nif_runtime() -> erlang:nif_error(not_loaded).
%% No reason of an author's function.
-spec nif_await(tuple(), reference()) -> {reference(), timeout()} | term().
nif_await(_Pending, _Ref) -> erlang:nif_error({fairnif, not_loaded}).
-spec nif_expire(tuple()) -> non_neg_integer().
nif_expire(_Pending) -> erlang:nif_error(not_loaded).
-spec nif_settle(tuple()) -> non_neg_integer().
nif_settle(_Pending) -> erlang:nif_error(not_loaded).
-spec nif_asked(tuple(), caller | process) -> term().
nif_asked(_Asks, _Role) -> erlang:nif_error({fairnif, not_loaded}).
-spec nif_answer(tuple(), 0 | 1, term()) -> term().
nif_answer(_Asks, _Outcome, _Answer) -> erlang:nif_error({fairnif, not_loaded}).

%% @private
-spec nif_start_pool() -> ok.
nif_start_pool() -> erlang:nif_error(not_loaded).

%% @private
-spec nif_reschedule_ns(pos_integer()) -> non_neg_integer().
nif_reschedule_ns(_N) -> erlang:nif_error(not_loaded).

%% @private
-spec nif_dirty_round_trip_ns(pos_integer()) -> non_neg_integer().
nif_dirty_round_trip_ns(_N) -> erlang:nif_error(not_loaded).
