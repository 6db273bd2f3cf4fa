%% Lua scripts in a sandbox, by LuaJIT's interpreter. They run in slices on the caller's scheduler,
%% however long they are, within limits of memory, instructions and time. Their caller can be killed
%% meanwhile.
%%
%%     {ok, State} = luajit:new(#{functions => #{<<"now">> => fun([]) -> [1700000000] end}}),
%%     {ok, [<<"at 1700000000">>]} = luajit:eval(State, "return 'at ' .. now()").
%%
%% A script has Lua 5.1's basic functions, string, table, math, coroutine, LuaJIT's bit, and of os
%% time, clock and difftime. It has no files, no modules, no debug, no compiled code; and no print,
%% unless a function of that name is given.
%%
%% | Erlang | Lua |
%% |---|---|
%% | `nil', `true', `false' | nil, booleans |
%% | any other atom | a string, which comes back as a binary |
%% | an integer to 2^53, a float | a number; a whole one comes back as an integer |
%% | a binary | a string |
%% | a list | a table 1 to n; so does an empty table come back |
%% | a map | any other table |
%%
%% All else is no value: tuples, funs, pids; functions, coroutines; what is nested over 64 deep;
%% tables that are keys, when they are to be a map's.
-module(luajit).

-export([new/0, new/1, eval/2, eval/3, call/3]).
-export([plain_eval/1, dirty_eval/1]).

%% For tests.
-export([nif_run/6, nif_resume/3, nif_fail/2]).

-export_type([state/0, options/0, value/0, reason/0]).

-nifs([nif_new/2, nif_run/6, nif_resume/3, nif_run_threaded/6, nif_resume_threaded/3, nif_fail/2,
       plain_eval/1, dirty_eval/1]).

-include_lib("fairnif/include/fairnif.hrl").
-on_load(init/0).

-record(luajit, {
    ref :: reference(),
    functions :: #{binary() => fun(([value()]) -> [value()])},
    instructions :: integer(),
    timeout :: integer(),
    mode :: mode()
}).

-opaque state() :: #luajit{}.
-type value() :: nil | boolean() | atom() | number() | binary() | [value()] | #{value() => value()}.
-type mode() :: normal | threaded.
-type options() :: #{
    mode => mode(),
    memory => pos_integer(),
    instructions => pos_integer() | infinity,
    timeout => non_neg_integer() | infinity,
    functions => #{binary() => fun(([value()]) -> [value()])}
}.
%% mode: where scripts run. normal: on the caller's scheduler, in slices, as Erlang does. threaded:
%% on threads of the runtime's, for such as compute for long: a thousand of them take no turns of
%% Erlang's processes. A call costs some 20 us more there. normal if not given.
%% memory: bytes that the state may hold, 64 MiB if not given; 262144 at least.
%% instructions: how many a call may execute, counted by the thousand; infinity. To call a function
%% of Erlang's is a thousand.
%% timeout: how long a call may take, in ms; infinity.
%% functions: what the script can call, by the name that it has there.
-type reason() ::
    {lua, Message :: binary()}
    | {syntax, Message :: binary()}
    | {value, Message :: binary()}
    | memory
    | instructions
    | timeout
    | busy
    | spent.
%% lua: an error of the script that it did not catch.
%% value: an argument, or what the script returns or hands to a function, is no value.
%% busy: a call of another process waits for its function; or of this one, which is called from it.
%% memory: the state is of no more use.
%% spent: it is of no more use: it ran out of memory, a caller was killed in the middle of a call,
%% or the library was loaded again.

-define(MEMORY, 67108864).
-define(LEAST_MEMORY, 262144).

init() -> ?FAIRNIF_LOAD.

%% @equiv new(#{})
-spec new() -> {ok, state()} | {error, memory}.
new() ->
    new(#{}).

%% @doc A state: what scripts leave in global variables stays for the next one. It may be shared:
%% calls come one after the other. It is freed a piece at a time when no process can reach it.
-spec new(options()) -> {ok, state()} | {error, memory}.
new(Options) ->
    Memory = maps:get(memory, Options, ?MEMORY),
    Functions = maps:get(functions, Options, #{}),
    Instructions = limit(maps:get(instructions, Options, infinity)),
    Timeout = limit(maps:get(timeout, Options, infinity)),
    Mode = maps:get(mode, Options, normal),
    lists:member(Mode, [normal, threaded])
        andalso is_integer(Memory) andalso Memory >= ?LEAST_MEMORY
        andalso are_functions(Functions)
        andalso is_integer(Instructions) andalso is_integer(Timeout)
        andalso #{} =:= maps:without([mode, memory, instructions, timeout, functions], Options)
        orelse erlang:error(badarg, [Options]),
    case nif_new(Memory, term_to_binary(maps:keys(Functions))) of
        {ok, Ref} ->
            {ok, #luajit{ref = Ref, functions = Functions, instructions = Instructions,
                         timeout = max(Timeout * 1000000, -1), mode = Mode}};
        Error ->
            Error
    end.

limit(infinity) -> -1;
limit(N) when is_integer(N), N >= 0, N < 1 bsl 40 -> N;
limit(_) -> bad.

are_functions(Functions) when is_map(Functions) ->
    lists:all(fun({Name, F}) -> is_binary(Name) andalso is_function(F, 1) end,
              maps:to_list(Functions));
are_functions(_) ->
    false.

%% @equiv eval(State, Text, [])
-spec eval(state(), iodata()) -> {ok, [value()]} | {error, reason()}.
eval(State, Text) ->
    eval(State, Text, []).

%% @doc Runs a script, which has Arguments as `...'. Answers what it returns.
%%
%% A function of Erlang's is run in the calling process, with a list of its arguments, and answers a
%% list. What it raises is an error in the script, as text.
-spec eval(state(), iodata(), [value()]) -> {ok, [value()]} | {error, reason()}.
eval(State, Text, Arguments) ->
    run(State, Text, Arguments, 0).

%% @doc Calls a global function of the state's.
-spec call(state(), iodata(), [value()]) -> {ok, [value()]} | {error, reason()}.
call(State, Name, Arguments) ->
    run(State, Name, Arguments, 1).

run(#luajit{ref = Ref, instructions = Instructions, timeout = Timeout, mode = Mode} = State, Text,
    Arguments, IsName) when is_list(Arguments) ->
    Script = iolist_to_binary(Text),
    Values = term_to_binary(Arguments),
    answer(State, fairnif:await(
        case Mode of
            normal -> nif_run(Ref, Script, Values, IsName, Instructions, Timeout);
            threaded -> nif_run_threaded(Ref, Script, Values, IsName, Instructions, Timeout)
        end)).

answer(_State, {return, Values}) ->
    {ok, binary_to_term(Values)};
answer(#luajit{ref = Ref, functions = Functions, mode = Mode} = State, {call, Name, Arguments}) ->
    {How, Answers} = try_function(maps:get(Name, Functions), binary_to_term(Arguments)),
    Values = term_to_binary(Answers),
    answer(State, fairnif:await(
        case Mode of
            normal -> nif_resume(Ref, How, Values);
            threaded -> nif_resume_threaded(Ref, How, Values)
        end));
answer(_State, {error, _} = Error) ->
    Error.

try_function(Function, Arguments) ->
    try Function(Arguments) of
        Values when is_list(Values) -> {ok, Values};
        Other -> {error, [text("not a list: ~tp", [Other])]}
    catch
        Class:Reason -> {error, [text("~p: ~tp", [Class, Reason])]}
    end.

text(Format, Arguments) ->
    unicode:characters_to_binary(io_lib:format(Format, Arguments)).

nif_new(_Memory, _Names) ->
    erlang:nif_error(not_loaded).

nif_run(_Ref, _Text, _Arguments, _IsName, _Instructions, _Timeout) ->
    erlang:nif_error(not_loaded).

nif_resume(_Ref, _How, _Values) ->
    erlang:nif_error(not_loaded).

nif_run_threaded(_Ref, _Text, _Arguments, _IsName, _Instructions, _Timeout) ->
    erlang:nif_error(not_loaded).

nif_resume_threaded(_Ref, _How, _Values) ->
    erlang:nif_error(not_loaded).

nif_fail(_Ref, _N) ->
    erlang:nif_error(not_loaded).

%% @doc A plain NIF as people write it: a new state with all libraries, LuaJIT with its compiler,
%% one call. It holds its scheduler to the end; no limits. Answers what the script returns, as text.
-spec plain_eval(binary()) -> {ok, binary()} | {error, binary()}.
plain_eval(_Text) ->
    erlang:nif_error(not_loaded).

%% @doc The same on a dirty CPU scheduler.
-spec dirty_eval(binary()) -> {ok, binary()} | {error, binary()}.
dirty_eval(_Text) ->
    erlang:nif_error(not_loaded).
