%% @doc Native functions that share the BEAM.
%%
%% An author's module loads its NIF library with
%% ```
%% -on_load(init/0).
%% init() ->
%%     fairnif:loaded(erlang:load_nif(fairnif:path(?MODULE), fairnif:load_info())).
%% '''
%% The first call of this module loads the runtime, `priv/fairnif.so'.  It is usable
%% at once; a process of its own, `fairnif_calibration', then measures the fair slice
%% (about 20 ms; later, where all dirty CPU schedulers are busy), and defaults hold
%% until that is done.  This module has no `-on_load' of its own: in a release in
%% embedded mode an author's on_load may run before it.
%%
%% Application environment of `fairnif' (all optional; read when the runtime is
%% loaded and again when the application starts):
%% <dl>
%% <dt>`slice_us'</dt><dd>length of a slice on normal schedulers, us, 1 to
%%   1000000; default: calibrated</dd>
%% <dt>`dirty_slice_us'</dt><dd>length of a slice on dirty schedulers, us;
%%   default 1000</dd>
%% <dt>`adapt_gap_us'</dt><dd>a function in mode AUTO whose ticks lie further
%%   apart than this, us, begins on dirty schedulers; default 1000</dd>
%% <dt>`max_tasks'</dt><dd>how many calls of all fair functions may be under
%%   way at once; one more waits its turn, or raises `error:overloaded' if it
%%   is not awaited; default 0, no limit</dd>
%% <dt>`threads'</dt><dd>threads of the pool, at most, 1 to 1024; they start when
%%   there is work and leave when idle for 10 s, all but one; default 16</dd>
%% <dt>`max_queued'</dt><dd>work that may wait for a thread; what comes then waits
%%   for room; default 1000</dd>
%% <dt>`overload_ms'</dt><dd>how long a call waits its turn, or for a thread, before
%%   it raises `error:overloaded'; default 5000</dd>
%% </dl>
-module(fairnif).

-export([path/1, load_info/0, load_info/1, loaded/1, include_dir/0]).
-export([await/1, checked/2, format_error/2, room/2]).
-export([info/0, info/1, tasks/0, debug/1, configure/0, calibrate/0]).

-include("fairnif_asks.hrl").

%% Who loads this module anew need not call it: the first who awaits may be the first of all.
-define(LOADED(Call), try Call
                      catch error:{fairnif, not_loaded} -> _ = set_up(), Call
                      end).

%% In words; more is left to the VM.
-define(MUCH_ROOM, (1 bsl 28)).

-export_type([info/0, function_info/0, task/0, pending/0]).

-nifs([nif_set/2, nif_info/0, nif_tasks/0, nif_outlived/0, nif_runtime/0,
       nif_reschedule_ns/1, nif_dirty_trip_ns/1, nif_await/2, nif_expire/1,
       nif_settle/1, nif_asked/2, nif_answer/3]).

%% For fairnif_process.
-export([until_receive/2, timeout_of/1, answer/3]).
%% For fairnif_driver.
-export([header_dir/2]).
%% For fairnif_calibration.
-export([nif_reschedule_ns/1, nif_dirty_trip_ns/1, use_figures/0]).

-type info() :: #{version := string(),
                  interface := {non_neg_integer(), non_neg_integer()},
                  calibration := fairnif_calibration:result(),
                  functions := [function_info()],
                  atom() => term()}.
%% What {@link info/0} returns: the settings in force, in ns, the calibration
%% they come from (`measured' in it: or the defaults), stacks, and every function.

-type function_info() :: #{function := mfa(),
                           mode := mode(),
                           flags := [no_yield | awaited | unwinds],
                           atom() => term()}.
%% One function: its counters (docs/manual/info.md lists them with their
%% units), what the runtime has learned of it, and the histogram of its slices
%% on normal schedulers as `[{UpToNs, Count}]'.

-type mode() :: normal | dirty_cpu | dirty_io | threaded | auto.

-type task() :: #{function := mfa(),
                  state := running | suspended | queued | waiting | unwinding,
                  owner := pid() | undefined,
                  age_ns := non_neg_integer(),
                  yields := non_neg_integer(),
                  where := place() | {place(), Scheduler :: non_neg_integer()}
                         | turn | pool | lock | descriptor | time | caller | await}.
%% A call under way.  `suspended': has given way and waits for its next slice
%% on a normal scheduler; `queued': waits for a dirty scheduler; `running': now
%% executes, on the scheduler or thread of the pool named; `waiting': holds no
%% scheduler while its caller is in {@link await/1}, and `where' is what for
%% (`caller': a message, or what it calls for the body; `await': nothing any more, the caller
%% has to come); `unwinding': its caller is dead, and its
%% body is about to clean up (FAIR_UNWINDS) on a thread of the pool.  `age_ns' is the time since the
%% call, late by up to 4 ms.  `owner' is `undefined' for a callback of a fair resource.

-type place() :: normal | dirty_cpu | dirty_io | thread | other.

-type pending() :: tuple().
%% What a call that waits answers, for {@link await/1} and nothing else.

%% @doc The path of the NIF library of `Module', for the first argument of
%% `erlang:load_nif/2': `Module' without extension, in the `priv' directory of
%% the application that `Module' belongs to.
-spec path(module()) -> file:filename().
path(Module) ->
    %% The code path first: during an upgrade code:which/1 still names the file of
    %% the version that is being replaced.
    Ebin = case code:where_is_file(atom_to_list(Module) ++ ".beam") of
               non_existing ->
                   case code:which(Module) of
                       File when is_list(File), File =/= [] -> filename:dirname(File);
                       _ -> "ebin"
                   end;
               File ->
                   filename:dirname(File)
           end,
    filename:join([filename:dirname(Ebin), "priv", atom_to_list(Module)]).

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
    {fairnif, 1, set_up(), AuthorsInfo}.

%% @doc Returns what `erlang:load_nif/2' returned, once a call of the library is safe.
%% Wraps it in the author's on_load.
%%
%% Just after load_nif the VM enters a NIF through memory that it frees soon (OTP 25 to 29).
%% A call that begins then, goes to another scheduler or gives way, and raises later makes
%% it read what was freed: nodes die.  That is so of every dirty NIF; here it is waited for.
%% Takes 0.3 ms, 1 to 2 ms where all schedulers are busy, and as long as a native function
%% blocks a scheduler just then, as loading code does anyway.
-spec loaded(Result) -> Result when Result :: ok | {error, term()}.
loaded(ok) ->
    %% The VM ends that state in two steps, each after thread progress and with the permission
    %% to change code.
    _ = [step() || _ <- [first, second]],
    %% As Erlang code that is two versions old: a native process that has not followed is killed.
    _ = [exit(Pid, kill) || Pid <- nif_outlived()],
    ok;
loaded(Error) ->
    Error.

%% Who sets a breakpoint, here on a function that is not there, holds that permission during
%% some thread progresses.  So a step that was due is done by then, or is what some scheduler
%% does next; and each scheduler answers statistics/1.
step() ->
    0 = erlang:trace_pattern({?MODULE, no_such_function, 0}, false, [local]),
    erlang:statistics(io).

%% @doc The directory that holds `fairnif.h', for the compiler's `-I'.
-spec include_dir() -> file:filename().
include_dir() ->
    header_dir(?MODULE, "fairnif.h").

%% @private
%% The folder of a header of the application that Module belongs to.
-spec header_dir(module(), file:filename()) -> file:filename().
header_dir(Module, Header) ->
    %% Not lib_dir/c_include: in rebar3's umbrella and checkout builds that
    %% directory has links to some folders only, and priv is one of them.
    Candidates = [filename:join([lib_dir(Module), "c_include"]),
                  filename:join([lib_dir(Module), "priv", "..", "c_include"]),
                  filename:join([source_dir(Module), "..", "c_include"])],
    case [Dir || Dir <- Candidates, filelib:is_file(filename:join(Dir, Header))] of
        [Dir | _] -> Dir;
        [] -> error({fairnif, {no_header_in, Candidates}})
    end.

%% @doc What a fair function comes to.  Wraps every call of one that may wait (mode
%% `FAIR_THREADED', or `FAIR_AWAITED' or-ed to another):
%%
%% ```
%% fetch(Url) -> fairnif:await(nif_fetch(Url)).
%% '''
%%
%% A value that is not pending is returned as it is, so one wrapper serves every
%% mode.  A pending one is waited for in a receive that looks at no other message:
%% no scheduler is held, the mailbox stays as it was, and its length does not
%% matter.  The caller's death ends the call.
%%
%% Raises what the function raises, and
%% <dl>
%% <dt>`error:overloaded'</dt><dd>the call had to wait its turn for longer than
%%   `overload_ms': for a thread of the pool to begin it, or for one
%%   of `max_tasks'</dd>
%% <dt>`error:{fairnif, not_pending}'</dt><dd>a value that looks pending and did
%%   not come from fairnif</dd>
%% <dt>`error:{fairnif, not_owner}'</dt><dd>another process made the call</dd>
%% <dt>`error:{fairnif, awaited_before}'</dt><dd>the value was awaited
%%   already</dd>
%% </dl>
%% A pending value that is never awaited is dropped with its task when the garbage
%% collector finds it.
-spec await(pending() | Value) -> Value.
await(Value) ->
    case until_receive(Value, caller) of
        Asks when ?ASKS(Asks) -> await(receive_for(Asks));
        Answer -> Answer
    end.

%% The body's fair_receive.
receive_for(Asks) ->
    Timeout = timeout_of(Asks),
    receive
        Message -> nif_answer(Asks, 1, Message)
    after Timeout -> nif_answer(Asks, 0, timeout)
    end.

%% @private
%% The same in a native process, which has received for it; as {@link until_receive/2}.
%% Outcome is 1, or 0: nothing came in time.
-spec answer(pending(), 0 | 1, term()) -> pending() | term().
answer(Asks, Outcome, Message) ->
    answered(Asks, ?LOADED(nif_answer(Asks, Outcome, Message)), process).

%% @private
%% What a call comes to; or, where its body wants the next message, whichever it is, what is to be
%% answered with it. All else that a body asks for is done here.
-spec until_receive(pending() | Value, caller | process) -> Value | pending().
until_receive(Pending, Role) when is_tuple(Pending), tuple_size(Pending) >= 2,
                                  element(1, Pending) =:= fairnif_pending ->
    %% Made here, handed over and received in one function: then the receive looks
    %% only at messages that came later.
    Ref = make_ref(),
    case ?LOADED(nif_await(Pending, Ref)) of
        {Ref, Timeout} ->
            receive
                {Ref, go} ->
                    until_receive(Pending, Role);
                {Ref, settle} ->
                    %% A descriptor is ready, maybe for more than one thing.
                    flush(Ref, nif_settle(Pending)),
                    until_receive(Pending, Role);
                {Ref, value, Value} ->
                    Value;
                {Ref, raise, Reason} ->
                    error(Reason)
            after Timeout ->
                    flush(Ref, nif_expire(Pending)),
                    until_receive(Pending, Role)
            end;
        Value ->
            until_receive(Value, Role)
    end;
until_receive(Asks, Role) when ?ASKS(Asks) ->
    give(Asks, ?LOADED(nif_asked(Asks, Role)), Role);
until_receive(Value, _Role) ->
    Value.

%% What the answer came to. It is the task's next request, if it has the object that was just
%% answered and counts one more. So nif_asked need not say so again, which takes 90 ns.
answered(Asks, Next, Role) when ?ASKS(Next), element(2, Next) =:= element(2, Asks),
                                element(4, Next) =:= element(4, Asks) + 1 ->
    give(Next, element(3, Next), Role);
answered(_Asks, Value, Role) ->
    until_receive(Value, Role).

%% fair_receive, fair_receive_tagged, fair_apply, or nothing but what was sent; with what was sent
%% before.
give(Asks, [Sent | Wanted], Role) ->
    send_all(Sent),
    give(Asks, Wanted, Role);
give(Asks, Timeout, _Role) when is_integer(Timeout) ->
    Asks;
give(Asks, {Tag, Timeout}, Role) ->
    answered(Asks, receive_tagged(Asks, Tag, timeout(Timeout)), Role);
give(Asks, {Module, Function, Args}, Role) ->
    answered(Asks, apply_for(Asks, Module, Function, Args), Role);
give(Asks, sent, Role) ->
    answered(Asks, nif_answer(Asks, 1, sent), Role).

receive_tagged(Asks, Tag, Timeout) ->
    receive
        Message when Message =:= Tag; element(1, Message) =:= Tag;
                     is_reference(Tag), element(2, Message) =:= Tag ->
            nif_answer(Asks, 1, Message)
    after Timeout -> nif_answer(Asks, 0, timeout)
    end.

apply_for(Asks, Module, Function, Args) ->
    try apply(Module, Function, Args) of
        Result -> nif_answer(Asks, 1, Result)
    catch
        Class:Reason -> nif_answer(Asks, 0, {Class, Reason})
    end.

%% fair_send and fair_reply. The last comes first. What cannot be sent is nobody's fault but the
%% body's, who can't hear of it any more.
send_all([]) ->
    ok;
send_all([Item | Before]) ->
    send_all(Before),
    try
        case Item of
            [From | Reply] -> gen_server:reply(From, Reply);
            {To, Message} -> To ! Message
        end
    catch
        error:_ -> ok
    end.

%% @private
%% How long the body of a value that {@link until_receive/2} gave wants to wait, ms.
-spec timeout_of(pending()) -> timeout().
timeout_of(Asks) ->
    timeout(case element(3, Asks) of
                [_ | Timeout] -> Timeout;
                Timeout -> Timeout
            end).

timeout(-1) -> infinity;
timeout(Ms) -> Ms.

%% @doc Applies `Fun', a fair function in C++ or an Erlang function around one, to `Args'; what it
%% found wrong with an argument becomes `error:badarg' with the explanation where the shell and
%% Elixir look for it: in the `error_info' of the stack trace.
%%
%% ```
%% smooth(Bin, Width) -> fairnif:checked(fun nif_smooth/2, [Bin, Width]).
%%
%% 1> my_nif:smooth(<<"abc">>, wide).
%% ** exception error: bad argument
%%      in function  my_nif:nif_smooth/2
%%         called as my_nif:nif_smooth(<<"abc">>,wide)
%%         *** argument 2: expected a number, got wide
%% '''
%% Without it the reason is `{badarg, #{2 => <<"expected a number, got wide">>}}': the VM offers a
%% NIF no means to put anything into a stack trace. Other exceptions are passed on as they are.
-spec checked(fun(), [term()]) -> term().
checked(Fun, Args) ->
    try apply(Fun, Args)
    catch
        error:{badarg, Causes}:Stack when is_map(Causes) ->
            [{Module, Function, _, Place} | Callers] = Stack,
            Info = #{module => ?MODULE, cause => Causes},
            erlang:raise(error, badarg, [{Module, Function, Args, [{error_info, Info} | Place]}
                                         | Callers])
    end.

%% @doc Calls Fun, whose result takes so many words, with room for them: the first collection in the
%% call gives the caller's heap that `min_heap_size'. A heap otherwise grows by a fifth when it is
%% full, and all that is there is copied each time; a body that gives way meets that at each growth.
%%
%% Worth it from some 100,000 words on. More than 2^28 are not asked for. A process with a
%% `max_heap_size' gets none: it would be killed for room that it may not need. When Fun has
%% returned, or raised, the caller's `min_heap_size' is what it was.
%%
%% ```
%% range(From, To) -> fairnif:room(2 * (To - From + 1), fun() -> native_range(From, To) end).
%% '''
-spec room(Words :: non_neg_integer(), fun(() -> Result)) -> Result.
room(Needed, Fun) ->
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

%% @private What {@link checked/2} has put there.
-spec format_error(term(), [tuple()]) -> #{pos_integer() | general => unicode:chardata()}.
format_error(_Reason, [{_, _, _, Place} | _]) ->
    #{cause := Causes} = proplists:get_value(error_info, Place),
    Causes.

%% Messages that are on their way all the same.
flush(_Ref, 0) -> ok;
flush(Ref, N) -> receive {Ref, _} -> flush(Ref, N - 1) end.

%% @doc Everything the runtime knows of itself and of each fair function.
%% Costs some microseconds for each function, on a dirty I/O scheduler: it waits
%% while all of those are busy.
-spec info() -> info().
info() ->
    _ = set_up(),
    {Runtime, Functions} = nif_info(),
    Runtime#{calibration => fairnif_calibration:figures(),
             functions => Functions}.

%% @doc The part of {@link info/0} that belongs to one function; raises
%% `error:{fairnif, {no_function, MFA}}' for one that no library declared.
-spec info(mfa()) -> function_info().
info(MFA) ->
    #{functions := Functions} = info(),
    case [F || F = #{function := Name} <- Functions, Name =:= MFA] of
        [Function] -> Function;
        [] -> error({fairnif, {no_function, MFA}})
    end.

%% @doc The calls that are under way now: suspended, queued for a dirty
%% scheduler, or running.  Costs about a microsecond for each; more than 64 are
%% listed on a dirty I/O scheduler, and wait for one.
-spec tasks() -> [task()].
tasks() ->
    _ = set_up(),
    nif_tasks().

%% @doc Switches for testing a body; they hold for the whole node.
%% <dl>
%% <dt>`pause_every_tick'</dt><dd>every tick gives way, where the mode gives way
%%   at all: shows what does not survive a pause</dd>
%% <dt>`check_terms'</dt><dd>reports, on standard error and in the counter
%%   `misuses', a term that a body kept across a pause</dd>
%% <dt>`measure_cpu'</dt><dd>slices are timed in CPU time of their thread
%%   instead of wall time, at 1 us a slice</dd>
%% </dl>
-spec debug(#{pause_every_tick | check_terms | measure_cpu => boolean()}) -> ok.
debug(Switches) ->
    _ = set_up(),
    maps:foreach(
      fun(Name, On) when is_boolean(On),
                         (Name =:= pause_every_tick orelse Name =:= check_terms
                          orelse Name =:= measure_cpu) ->
              ok = nif_set(Name, case On of true -> 1; false -> 0 end);
         (Name, Value) ->
              error({fairnif, {bad_switch, {Name, Value}}})
      end, Switches).

%% @doc Reads the application environment again.  A value out of bounds raises
%% `error:{fairnif, {bad_env, {Name, Value}}}' and leaves the rest unread.
-spec configure() -> ok.
configure() ->
    _ = set_up(),
    read_environment().

read_environment() ->
    ok = nif_set(dirty_cpus, erlang:system_info(dirty_cpu_schedulers_online)),
    use_figures(),
    set_env(dirty_slice_ns, dirty_slice_us, 1000, 1000000),
    ok = nif_set(spin, spin()),
    set_env(adapt_gap_ns, adapt_gap_us, 1000, 1000000),
    set_env(threads, threads, 1, 16),
    set_env(max_queued, max_queued, 1, 1000),
    set_env(overload_ns, overload_ms, 1000000, 5000000000),
    set_env(max_tasks, max_tasks, 1, 0).

%% @doc Measures anew what 4000 reductions, a reschedule and a dirty call cost
%% here, in the caller, and then does {@link configure/0}; for nodes that moved to
%% another machine or came up on a very busy one, and for who must not go on with the
%% defaults.  Takes about 20 ms of the caller's time, and waits for dirty CPU schedulers.
-spec calibrate() -> fairnif_calibration:result().
calibrate() ->
    _ = set_up(),
    Figures = fairnif_calibration:run(),
    ok = fairnif_calibration:put_figures(Figures),
    ok = configure(),
    Figures.

%% @private
%% What was measured, or the defaults.  They may change just then: a process of its own
%% measures.
-spec use_figures() -> ok.
use_figures() ->
    #{fair_ns := Fair, slice_ns := Slice, dirty_trip_ns := Trip} = Figures =
        fairnif_calibration:figures(),
    ok = nif_set(fair_ns, Fair),
    ok = nif_set(dirty_trip_ns, Trip),
    set_env(slice_ns, slice_us, 1000, Slice),
    case fairnif_calibration:figures() of
        Figures -> ok;
        _ -> use_figures()
    end.

%% -- the runtime -------------------------------------------------------------

%% The NIFs.  A stub may not load the runtime and go on: loading writes over its
%% code.
nif_set(_Name, _Value) -> erlang:nif_error(not_loaded).
nif_info() -> erlang:nif_error(not_loaded).
nif_tasks() -> erlang:nif_error(not_loaded).
nif_outlived() -> erlang:nif_error(not_loaded).
nif_runtime() -> erlang:nif_error(not_loaded).
%% No reason of an author's function.
nif_await(_Pending, _Ref) -> erlang:nif_error({fairnif, not_loaded}).
nif_expire(_Pending) -> erlang:nif_error(not_loaded).
nif_settle(_Pending) -> erlang:nif_error(not_loaded).
nif_asked(_Asks, _Role) -> erlang:nif_error({fairnif, not_loaded}).
nif_answer(_Asks, _Outcome, _Answer) -> erlang:nif_error({fairnif, not_loaded}).

%% @private
-spec nif_reschedule_ns(pos_integer()) -> non_neg_integer().
nif_reschedule_ns(_N) -> erlang:nif_error(not_loaded).

%% @private
-spec nif_dirty_trip_ns(pos_integer()) -> non_neg_integer().
nif_dirty_trip_ns(_N) -> erlang:nif_error(not_loaded).

%% Two processes may come here at once: the second finds it loaded.  Called on
%% a copy of this module that is being replaced, load_nif refuses (old_code);
%% the caller then goes on in the new one.
load_runtime() ->
    %% The object of an earlier load leads to the runtime that authors' libraries
    %% are bound to, also when this module was purged in between.
    Earlier = persistent_term:get({fairnif, runtime}, none),
    case erlang:load_nif(filename:join([lib_dir(?MODULE), "priv", "fairnif"]), Earlier) of
        ok ->
            ok;
        {error, {Reason, _}} when Reason =:= reload; Reason =:= old_code ->
            ok;
        {error, Reason} ->
            error({fairnif, Reason})
    end.

%% A runtime that is loaded and set up.  The caller may be killed after each step, and others
%% may be at the same one: so each looks for what there is to do, and may be done twice.  The
%% object is put last: who finds it finds the environment read.  Nothing here waits.
set_up() ->
    Runtime = runtime(),
    case persistent_term:get({fairnif, runtime}, none) of
        none ->
            configure_or_log(),
            persistent_term:put({fairnif, runtime}, Runtime);
        _ ->
            ok
    end,
    ok = fairnif_calibration:start(),
    Runtime.

%% A stub may not load and go on: see above.
runtime() ->
    try
        nif_runtime()
    catch
        error:not_loaded ->
            load_runtime(),
            nif_runtime()
    end.

%% A bad value in the environment must not keep an author's library from
%% loading: the defaults hold until the application starts, which then fails.
configure_or_log() ->
    try
        read_environment()
    catch
        error:{fairnif, {bad_env, {Key, Value}}} ->
            logger:error("fairnif: bad value of ~p in the application environment: ~p; "
                         "the default is used", [Key, Value])
    end.

%% A thread of the pool may spin for some microseconds where another processor
%% can make work for it meanwhile.
spin() ->
    case erlang:system_info(logical_processors_available) of
        N when is_integer(N), N > 1 -> 1;
        _ -> 0
    end.

set_env(Setting, Key, Factor, Default) ->
    case env(Key) of
        undefined ->
            ok = nif_set(Setting, Default);
        Value ->
            try
                ok = nif_set(Setting, Value * Factor)
            catch
                error:_ -> error({fairnif, {bad_env, {Key, Value}}})
            end
    end.

%% While a release boots in embedded mode there is no application controller
%% yet; the environment is then read when this application starts.
env(Key) ->
    try application:get_env(fairnif, Key) of
        {ok, Value} -> Value;
        undefined -> undefined
    catch
        error:badarg -> undefined
    end.

lib_dir(Module) ->
    case code:which(Module) of
        File when is_list(File), File =/= [] ->
            filename:dirname(filename:dirname(File));
        _ ->
            filename:join(source_dir(Module), "..")
    end.

source_dir(Module) ->
    filename:dirname(proplists:get_value(source, Module:module_info(compile), "src/x")).
