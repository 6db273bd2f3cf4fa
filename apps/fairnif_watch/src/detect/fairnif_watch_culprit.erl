%% Who holds a thread: from the native frames, and from what fairnif knows of itself. Pure.
%%
%% Never guesses: a frame that no symbol covers is named by its library and offset, and a function
%% of the emulator without a symbol is `emulator+0x...'.
-module(fairnif_watch_culprit).

-export([none/0, of_event/1, is_called/1, os/1, complete/2, label/1, total/1,
         unlabelled/1, mfa/3, remedy/1]).

-export_type([facts/0]).

-type facts() :: #{registered => none | atom(), current_function => none | mfa(),
                   initial_call => none | mfa(), current_stacktrace => [tuple()],
                   drivers => [binary()], module => none | module(), candidates => [module()],
                   gc => boolean()}.
%% What a look at the process, the loaded drivers and modules adds.

%% @doc Nobody.
-spec none() -> fairnif_watch_finding:culprit().
none() ->
    #{kind => none, name => <<"unknown">>, mfa => none, pid => none, registered => none,
      current_function => none, library => none, symbol => none, offset => none, module => none,
      syscall => none}.

%% @doc The operating system, with the name given.
-spec os(binary()) -> fairnif_watch_finding:culprit().
os(Name) ->
    (none())#{kind := os, name := Name}.

%% @doc Of an event `held', `released' or `looked'.
-spec of_event(map()) -> fairnif_watch_finding:culprit().
of_event(#{fairnif := #{function := {M, F, A} = Function} = Fair} = Event) ->
    Frame = frame(maps:get(stack, Event, [])),
    (from_frame(Frame, Event))#{kind := fairnif, name := mfa(M, F, A),
                                mfa := Function, module := M, pid := maps:get(owner, Fair, none)};
of_event(Event) ->
    from_frame(frame(maps:get(stack, Event, [])), Event).

%% The NIF or driver callback: the library's frame nearest to the emulator, which is the outermost.
%% Frames are innermost first. Without one: the emulator's own function.
frame(Stack) ->
    case [F || #{in := In} = F <- Stack, In =:= library orelse In =:= fairnif] of
        [_ | _] = Libraries -> {library, lists:last(Libraries)};
        [] -> of_emulator(lists:splitwith(fun(F) -> maps:get(in, F, unknown) =/= jit end, Stack))
    end.

%% @doc Do the frames go on from the outermost one of a library to the emulator? Then that one is
%% what the emulator called, whatever it called in its turn.
-spec is_called([map()]) -> boolean().
is_called(Stack) ->
    Outward = fun(#{in := In}) -> In =/= library andalso In =/= fairnif end,
    lists:any(fun(#{in := In}) -> In =:= emulator orelse In =:= jit end,
              lists:takewhile(Outward, lists:reverse(Stack))).

%% What Erlang code called is a BIF: it is the outermost of the frames above the code. Where the
%% code is not reached, it is the outermost that is not the scheduler's own loop, if symbols tell
%% these apart, and otherwise the innermost: that one ran, whatever it is.
of_emulator({Above, [_Code | _]}) ->
    case emulator(Above) of
        [] -> none;
        Frames -> {emulator, lists:last(Frames)}
    end;
of_emulator({Stack, []}) ->
    case emulator(Stack) of
        [] ->
            none;
        [Inner | _] = Frames ->
            Named = [F || #{symbol := Symbol} = F <- Frames, is_binary(Symbol),
                          not lists:member(Symbol, loops())],
            {emulator, lists:last([Inner | Named])}
    end.

emulator(Stack) -> [F || #{in := emulator} = F <- Stack].

loops() ->
    [<<"process_main">>, <<"erts_dirty_process_main">>, <<"sched_thread_func">>,
     <<"sched_dirty_cpu_thread_func">>, <<"sched_dirty_io_thread_func">>, <<"thr_wrapper">>,
     <<"erts_schedule">>].

from_frame(none, #{stack := [_ | _] = Stack} = Event) ->
    case lists:last(Stack) of
        #{in := unknown, library := none} ->
            (base(Event))#{name := <<"code that belongs to no file">>};
        _ ->
            base(Event)
    end;
from_frame(none, Event) ->
    base(Event);
%% Nobody called it: the process that the thread ran before has nothing to do with it.
from_frame({library, #{destructor := {M, Type}} = Frame}, Event) ->
    (place(Frame, base(Event)))#{kind := destructor, module := M, pid := none,
                                 name := destructor(M, Type, Frame)};
from_frame({library, Frame}, Event) ->
    Base = place(Frame, base(Event)),
    case maps:get(nif, Frame, none) of
        {M, F, A} = Mfa ->
            Base#{kind := nif, mfa := Mfa, module := M, name := mfa(M, F, A)};
        {M} ->
            Base#{kind := nif, module := M,
                  name := iolist_to_binary([atom_to_binary(M), " (", label(Frame), ")"])};
        none ->
            Base#{kind := nif, name := label(Frame)}
    end;
from_frame({emulator, Frame}, Event) ->
    Base = place(Frame, base(Event)),
    case bif(maps:get(symbol, Frame, none)) of
        none -> Base#{kind := emulator, name := label(Frame)};
        {M, F, A} = Mfa ->
            Base#{kind := bif, mfa := Mfa, module := M, name := mfa(M, F, A)}
    end.

destructor(M, Type, #{library := Library}) ->
    unicode:characters_to_binary(io_lib:format("destructor of ~tp:~tp (~ts)",
                                               [M, Type, filename:basename(Library)])).

%% The emulator calls the C function of a BIF Module_Function_Arity, or Function_Arity where the
%% module is erlang. It is that BIF if exactly one reading of the name is one.
bif(Symbol) when is_binary(Symbol) ->
    case string:split(Symbol, "_", trailing) of
        [Name, Digits] ->
            try binary_to_integer(Digits) of
                Arity ->
                    Read = [{M, F, Arity} || {M, F} <- readings(Name),
                                             erlang:is_builtin(M, F, Arity)],
                    case Read of
                        [Mfa] -> Mfa;
                        _ -> none
                    end
            catch
                error:badarg -> none
            end;
        _ ->
            none
    end;
bif(none) ->
    none.

readings(Name) ->
    Splits = [{binary:part(Name, 0, At), binary:part(Name, At + 1, byte_size(Name) - At - 1)}
              || {At, 1} <- binary:matches(Name, <<"_">>)],
    lists:append([existing(M, F) || {M, F} <- [{<<"erlang">>, Name} | Splits]]).

existing(M, F) ->
    try [{binary_to_existing_atom(M), binary_to_existing_atom(F)}]
    catch error:badarg -> []
    end.

base(Event) ->
    Syscall = case maps:get(syscall, Event, none) of
                  {_, Name} when is_atom(Name) -> Name;
                  _ -> none
              end,
    (none())#{pid := maps:get(process, Event, none), syscall := Syscall}.

place(Frame, Culprit) ->
    Culprit#{library := maps:get(library, Frame, none), symbol := maps:get(symbol, Frame, none),
             offset := maps:get(offset, Frame, none)}.

%% @doc A frame in words: symbol and library, or library and offset: of the function, where the
%% unwind table tells where that begins, so that it is the same wherever in it the thread was.
-spec label(map()) -> binary().
label(Frame) ->
    File = case maps:get(library, Frame, none) of
               none -> <<"unknown code">>;
               Path -> filename:basename(Path)
           end,
    Where = case {maps:get(in, Frame, unknown), File} of
                {emulator, _} -> <<"emulator">>;
                {jit, _} -> <<"code of the JIT">>;
                _ -> File
            end,
    case {maps:get(symbol, Frame, none), maps:get(offset, Frame, none)} of
        {none, Offset} when is_integer(Offset) ->
            Start = case Frame of
                        #{function_offset := Within} when is_integer(Within) -> Offset - Within;
                        #{} -> Offset
                    end,
            iolist_to_binary([Where, "+0x", string:lowercase(integer_to_binary(Start, 16))]);
        {none, _} ->
            Where;
        {Symbol, _} ->
            iolist_to_binary([Symbol, " (", Where, ")"])
    end.

%% @doc The culprit with what was learned since: the process, whether the library is a driver's,
%% the module that loaded it, whether it was a collection.
-spec complete(fairnif_watch_finding:culprit(), facts()) -> fairnif_watch_finding:culprit().
complete(Culprit, Facts) ->
    named(maps:merge(Culprit, maps:with([registered, current_function], Facts)), Facts).

named(#{kind := emulator} = Culprit, #{gc := true}) ->
    Culprit#{kind := gc, name := <<"garbage collection">>};
named(#{kind := nif, mfa := none, library := Library} = Culprit, Facts) when is_binary(Library) ->
    Driver = driver_name(Library),
    case lists:member(Driver, maps:get(drivers, Facts, [])) of
        true ->
            Culprit#{kind := driver, module := none,
                     name := iolist_to_binary([Driver, ": ", maps:get(name, Culprit)])};
        false ->
            loaded_by(Culprit, maps:get(module, Facts, none))
    end;
named(Culprit, _) ->
    Culprit.

loaded_by(#{module := none, name := Name} = Culprit, Module) when Module =/= none ->
    Culprit#{module := Module, name := iolist_to_binary([atom_to_binary(Module), ": ", Name])};
loaded_by(Culprit, _) ->
    Culprit.

driver_name(Library) ->
    filename:basename(filename:basename(Library, <<".so">>), ".so").

%% @doc The name that totals are added up by. Places of one file that no symbol covers share one:
%% each of them is another number, and there is room for so many names only.
-spec total(fairnif_watch_finding:culprit()) -> binary().
total(#{kind := emulator, mfa := none, symbol := none, library := File}) when is_binary(File) ->
    unlabelled(<<"emulator">>);
total(#{kind := Kind, mfa := none, symbol := none, library := File})
  when is_binary(File), Kind =:= nif orelse Kind =:= driver ->
    unlabelled(filename:basename(File));
total(#{name := Name}) ->
    lists:last(binary:split(Name, <<": ">>, [global])).

%% @doc What all places of a file that no symbol covers are called together.
-spec unlabelled(File :: binary()) -> binary().
unlabelled(File) -> <<File/binary, " (no symbol)">>.

%% @doc `m:f/1', as Erlang would write it.
-spec mfa(module(), atom(), arity()) -> binary().
mfa(M, F, A) ->
    unicode:characters_to_binary(io_lib:format("~tp:~tp/~b", [M, F, A])).

%% @doc What to do about a culprit of that kind, which may become known later.
-spec remedy(atom()) -> binary().
remedy(fairnif) ->
    <<"Tick more often (fair_tick), or put the part that cannot tick into fair_call or "
      "FAIR_THREADED.">>;
remedy(destructor) ->
    <<"Free what takes long before the last reference goes, in a call that yields or is dirty. Or "
      "let the destructor hand it to a thread.">>;
remedy(driver) ->
    <<"Put the callback's work off: fairdrv.h, or driver_async.">>;
remedy(Kind) when Kind =:= bif; Kind =:= emulator ->
    <<"This is the emulator's own code: give it less in one call, or call it where nothing else "
      "waits.">>;
remedy(gc) ->
    <<"Keep that process's heap small: hand large terms to short-lived processes, or keep them in "
      "binaries or ETS.">>;
remedy(_) ->
    <<"Make the call yield (fair_tick), or run it on a dirty scheduler: "
      "ERL_NIF_DIRTY_JOB_CPU_BOUND, or _IO_BOUND where it sleeps.">>.
