%% The subject of a check: what is to be known about, as a function without arguments that
%% peer nodes can call.
%%
%% An expression is compiled, never interpreted: erl_eval would be charged hundreds of reductions
%% for what costs the function itself one. Its data (Bin, N, Init) stand in a persistent term, so
%% that a process that calls it copies none of them, however large they are.
%%
%% The first half runs in the checker's node and never evaluates anything of the user's; the second
%% half runs in peers.
-module(fairnif_check_subject).

-export([new/2, text/1, notes/1]).
-export([install/3, function/1, idle/0]).

-export_type([subject/0, source/0, spec/0]).

-type source() :: unicode:chardata()                    % an expression of Bin, N and Init
                | fun(() -> term()) | fun((binary()) -> term())
                | {module(), atom(), [term()]}.
%% What it is to be measured with.
-type spec() :: #{init => unicode:chardata(),           % an expression of Bin and N
                  data => random | {file, binary()},    % what Bin is cut from
                  slot => atom()}.                      % two subjects in one node need two
-opaque subject() :: #{slot := atom(), text := binary(), data := random | {file, binary()},
                       run := {code, module(), binary()} | fun() | {module(), atom(), [term()]},
                       init := none | {code, module(), binary()},
                       calls := [call()], notes := [binary()]}.
-type call() :: {module(), atom(), arity(), Where :: unicode:chardata()}.

%% Random input repeats a block of this size: making it must not take longer than the check. No
%% compressor looks back so far.
-define(BLOCK, 1048576).
-define(KEY(Slot), {?MODULE, Slot}).

%% @doc The subject of an expression, a fun of no argument or of one (Bin), or {M, F, A}. Text that
%% is no Erlang is `{usage, Text}' with its place.
-spec new(source(), spec()) -> {ok, subject()} | {error, {usage, unicode:chardata()}}.
new(Source, Spec) ->
    Slot = maps:get(slot, Spec, subject),
    Data = maps:get(data, Spec, random),
    try
        {Run, Calls, Notes} = runnable(Source, Slot),
        {Init, InitCalls, InitNotes} = case Spec of
                                           #{init := Text} -> compiled(Text, Slot, init);
                                           _ -> {none, [], []}
                                       end,
        {ok, #{slot => Slot, text => describe(Source), data => Data, run => Run, init => Init,
               calls => Calls ++ InitCalls, notes => lists:uniq(Notes ++ InitNotes)}}
    catch
        throw:{usage, _} = Usage -> {error, Usage}
    end.

%% @doc How the subject is called in reports.
-spec text(subject()) -> binary().
text(#{text := Text}) ->
    Text.

%% @doc What is allowed, and may not be meant.
-spec notes(subject()) -> [binary()].
notes(#{notes := Notes}) ->
    Notes.

%% What is called, the functions in it, notes.
runnable({M, F, A} = Mfa, _) when is_atom(M), is_atom(F), is_list(A) ->
    {Mfa, [{M, F, length(A), ""}], []};
runnable(Fun, _) when is_function(Fun, 0); is_function(Fun, 1) ->
    case erlang:fun_info(Fun, type) of
        {type, external} ->
            [{_, M}, {_, F}, {_, A}] = [erlang:fun_info(Fun, Item)
                                        || Item <- [module, name, arity]],
            {Fun, [{M, F, A, ""}], []};
        {type, local} ->
            {Fun, [], []}
    end;
runnable(Fun, _) when is_function(Fun) ->
    usage("~0p takes other than no argument or one (Bin)", [Fun]);
runnable(Text, Slot) ->
    case is_list(Text) orelse is_binary(Text) of
        true -> compiled(Text, Slot, run);
        false -> usage("~0tp is not an expression, a fun or {Module, Function, Arguments}",
                       [Text])
    end.

describe({M, F, A}) -> unicode:characters_to_binary(io_lib:format("~tw:~tw/~b", [M, F, length(A)]));
describe(Fun) when is_function(Fun) -> unicode:characters_to_binary(io_lib:format("~tp", [Fun]));
describe(Text) -> string:trim(unicode:characters_to_binary(Text)).

%% ---- from text to code ----

%% An option is named where its text is wrong.
name_of(run) -> "the expression";
name_of(init) -> "--init".

compiled(Text, Slot, Kind) ->
    Expressions = parsed(Text, Kind),
    Module = list_to_atom(lists:concat(["fairnif_check_", Slot, "_", Kind])),
    Variables = case Kind of
                    run -> ['Bin', 'N', 'Init'];
                    init -> ['Bin', 'N']
                end,
    Anno = erl_anno:new(0),
    Clause = {clause, Anno, [{var, Anno, V} || V <- Variables], [], Expressions},
    Forms = [{attribute, Anno, module, Module},
             {attribute, Anno, export, [{Kind, length(Variables)}]},
             {function, Anno, Kind, length(Variables), [Clause]}],
    %% What ERL_COMPILER_OPTIONS says is for the user's own modules.
    case compile:noenv_forms(Forms, [binary, return_errors, {error_location, column}]) of
        {ok, Module, Beam} ->
            {{code, Module, Beam}, calls(Expressions, Kind), charlists(Expressions)};
        {error, [{_, [{Where, Compiler, What} | _]} | _], _} ->
            usage("~ts, ~ts: ~ts", [name_of(Kind), place(Where), Compiler:format_error(What)])
    end.

parsed(Text, Kind) ->
    Chars = case unicode:characters_to_list(Text) of
                List when is_list(List) -> List;
                _ -> usage("~ts is not UTF-8", [name_of(Kind)])
            end,
    %% The full stop may be there; a comment may be the last thing.
    Tokens = case erl_scan:string(Chars, {1, 1}) of
                 {ok, [], _} -> usage("~ts is empty", [name_of(Kind)]);
                 {ok, Ts, End} -> without_stop(Ts) ++ [{dot, End}];
                 {error, {Where, Scan, What}, _} ->
                     usage("~ts, ~ts: ~ts", [name_of(Kind), place(Where), Scan:format_error(What)])
             end,
    case erl_parse:parse_exprs(elixir_calls(Tokens)) of
        {ok, Expressions} -> Expressions;
        {error, {Where1, Parse, What1}} ->
            usage("~ts, ~ts: ~ts", [name_of(Kind), place(Where1), Parse:format_error(What1)])
    end.

without_stop(Tokens) ->
    case lists:last(Tokens) of
        {dot, _} -> lists:droplast(Tokens);
        _ -> Tokens
    end.

%% Elixir's way to write a call, Sprouts.Seeds.count(Bin), is read as
%% 'Elixir.Sprouts.Seeds':count(Bin). In Erlang no dot can follow a variable.
elixir_calls([{var, Anno, Name}, {'.', _} = Dot | Rest] = Tokens) ->
    case elixir_function(Rest, [Name]) of
        {Names, Function, After} ->
            Module = list_to_atom(lists:flatten(lists:join($., ["Elixir" | Names]))),
            [{atom, Anno, Module}, setelement(1, Dot, ':'), Function | elixir_calls(After)];
        none ->
            [hd(Tokens) | elixir_calls(tl(Tokens))]
    end;
elixir_calls([Token | Rest]) ->
    [Token | elixir_calls(Rest)];
elixir_calls([]) ->
    [].

%% The names of the module, the function, and what follows it. Names of functions may end in ? or !.
elixir_function([{var, _, Name}, {'.', _} | Rest], Names) ->
    elixir_function(Rest, [Name | Names]);
elixir_function([{atom, Anno, Name}, {Mark, _}, {'(', _} = Open | Rest], Names)
  when Mark =:= '?'; Mark =:= '!' ->
    elixir_function([{atom, Anno, list_to_atom(lists:concat([Name, Mark]))}, Open | Rest], Names);
elixir_function([{atom, _, _} = Function, {'(', _} = Open | Rest], Names) ->
    {[atom_to_list(Name) || Name <- lists:reverse(Names)], Function, [Open | Rest]};
elixir_function(_, _) ->
    none.

place({1, Column}) -> io_lib:format("column ~b", [Column]);
place({Line, Column}) -> io_lib:format("line ~b, column ~b", [Line, Column]);
place(_) -> "at its end".

%% The functions of other modules that are named in it: whether they exist only the peer can say.
calls(Expressions, Kind) ->
    lists:usort(lists:flatten([calls_in(E, Kind) || E <- Expressions])).

calls_in({call, Anno, {remote, _, {atom, _, M}, {atom, _, F}}, Args}, Kind) ->
    [{M, F, length(Args), where(Anno, Kind)} | [calls_in(A, Kind) || A <- Args]];
calls_in({'fun', Anno, {function, {atom, _, M}, {atom, _, F}, {integer, _, Arity}}}, Kind) ->
    [{M, F, Arity, where(Anno, Kind)}];
calls_in(Tuple, Kind) when is_tuple(Tuple) ->
    [calls_in(E, Kind) || E <- tuple_to_list(Tuple)];
calls_in([Head | Tail], Kind) ->
    [calls_in(Head, Kind) | calls_in(Tail, Kind)];
calls_in(_, _) ->
    [].

%% In an Elixir call Erlang's "text" looks like Elixir's, and is another thing.
charlists({call, _, {remote, _, {atom, _, Module}, _}, Args} = Call) ->
    case atom_to_list(Module) of
        "Elixir." ++ _ -> [charlist(Text) || Text <- strings(Args)];
        _ -> charlists(tuple_to_list(Call))
    end;
charlists(Tuple) when is_tuple(Tuple) -> charlists(tuple_to_list(Tuple));
charlists(List) when is_list(List) -> lists:append([charlists(E) || E <- List]);
charlists(_) -> [].

strings({bin, _, _}) -> [];
strings({string, _, Text}) -> [Text];
strings(Tuple) when is_tuple(Tuple) -> strings(tuple_to_list(Tuple));
strings([Head | Tail]) -> strings(Head) ++ strings(Tail);
strings(_) -> [].

charlist(Text) ->
    unicode:characters_to_binary(
      io_lib:format("~0tp is a charlist, as the expression is Erlang; Elixir's string is "
                    "<<~0tp~s>>.",
                    [Text, Text, ["/utf8" || lists:max([0 | Text]) > 127]])).

where(Anno, Kind) ->
    [name_of(Kind), ", ", place(erl_anno:location(Anno)), ": "].

-spec usage(io:format(), [term()]) -> no_return().
usage(Format, Args) ->
    throw({usage, io_lib:format(Format, Args)}).

%% ---- in a peer ----

%% @doc Loads the code, makes the input of Size bytes, evaluates the init expression in a process
%% that stays (what it opened stays open), and keeps all of it for `function/1'.
-spec install(subject(), pos_integer(), timeout()) -> ok | {error, {usage | failed, binary()}}.
install(#{slot := Slot, run := Run, init := Init, calls := Calls} = Subject, Size, TimeoutMs) ->
    _ = [load(Code) || Code <- [Run, Init]],
    case missing(Calls) ++ stale(Run) of
        [] ->
            Me = self(),
            {Keeper, Monitor} =
                spawn_monitor(fun() ->
                                      Bin = input(Subject, Size),
                                      Value = init_value(Init, Bin, Size),
                                      persistent_term:put(?KEY(Slot), {Bin, Size, Value, Run}),
                                      Me ! {self(), installed},
                                      timer:sleep(infinity)
                              end),
            receive
                {Keeper, installed} -> erlang:demonitor(Monitor, [flush]), ok;
                {'DOWN', Monitor, process, _, Why} -> failed("--init failed: ~0tP", [Why, 12])
            after TimeoutMs ->
                    failed("--init has not returned within ~b ms", [TimeoutMs])
            end;
        [First | _] ->
            {error, {usage, unicode:characters_to_binary(First)}}
    end.

failed(Format, Args) ->
    {error, {failed, unicode:characters_to_binary(io_lib:format(Format, Args))}}.

load({code, Module, Beam}) ->
    {module, Module} = code:load_binary(Module, "expression", Beam);
load(_) ->
    ok.

init_value(none, _, _) -> undefined;
init_value({code, Module, _}, Bin, N) ->
    %% An exit is in our message only; an error would also be in a report of the logger's.
    try Module:init(Bin, N)
    catch
        error:Reason:Stack -> exit({Reason, Stack});
        throw:Value -> exit({nocatch, Value})
    end.

input(#{data := {file, Data}}, Size) ->
    binary:part(Data, 0, Size);
input(#{data := random}, Size) ->
    Block = rand:bytes(min(Size, ?BLOCK)),
    Whole = Size div byte_size(Block),
    iolist_to_binary([lists:duplicate(Whole, Block),
                      binary:part(Block, 0, Size rem byte_size(Block))]).

%% A fun is a place in a module; the peer has that module from its file.
stale(Fun) when is_function(Fun) ->
    {module, M} = erlang:fun_info(Fun, module),
    case {code:ensure_loaded(M), erlang:fun_info(Fun, name)} of
        {{module, M}, {name, []}} ->
            [io_lib:format("the module ~tw of the function is another than its file (compiled in "
                           "memory? by cover?): give {Module, Function, Arguments}", [M])];
        {{module, M}, _} ->
            [];
        {{error, Why}, _} ->
            [io_lib:format("the module ~tw of the function cannot be loaded in another node: ~0tp",
                           [M, Why])]
    end;
stale(_) ->
    [].

missing(Calls) ->
    lists:append([missing(M, F, A, Where) || {M, F, A, Where} <- Calls]).

missing(M, F, A, Where) ->
    case code:ensure_loaded(M) of
        {module, M} ->
            case erlang:function_exported(M, F, A) orelse erlang:is_builtin(M, F, A) of
                true -> [];
                false -> [io_lib:format("~tsthere is no function ~tw:~tw/~b", [Where, M, F, A])]
            end;
        {error, nofile} ->
            [io_lib:format("~tsthere is no module ~tw (add its directory with -pa)", [Where, M])];
        {error, Why} ->
            [io_lib:format("~tsthe module ~tw does not load: ~0tp", [Where, M, Why])]
    end.

%% @doc What is measured: one call, its value and all. Adds some 50 ns and 3 reductions, which are
%% those of `idle/0' too.
-spec function(subject()) -> fun(() -> term()).
function(#{slot := Slot}) ->
    Key = ?KEY(Slot),
    {_, _, _, Run} = persistent_term:get(Key),
    case Run of
        {code, Module, _} ->
            fun() ->
                    {Bin, N, Init, _} = persistent_term:get(Key),
                    Module:run(Bin, N, Init)
            end;
        {M, F, _} ->
            fun() ->
                    {_, _, _, {_, _, A}} = persistent_term:get(Key),
                    apply(M, F, A)
            end;
        Fun when is_function(Fun, 0) ->
            Fun;
        Fun when is_function(Fun, 1) ->
            fun() ->
                    {Bin, _, _, _} = persistent_term:get(Key),
                    Fun(Bin)
            end
    end.

%% @doc A subject that does nothing: what calling one costs.
-spec idle() -> subject().
idle() ->
    {ok, Idle} = new("ok", #{slot => idle}),
    Idle.
