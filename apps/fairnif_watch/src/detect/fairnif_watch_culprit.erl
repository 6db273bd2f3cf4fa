%% Who blocks a thread: from the native frames, and from what fairnif knows of itself. Pure.
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

%% @doc No culprit.
-spec none() -> fairnif_watch_finding:culprit().
none() ->
    #{kind => none, name => <<"unknown">>, mfa => none, pid => none, registered => none,
      current_function => none, library => none, symbol => none, offset => none, module => none,
      syscall => none}.

%% @doc The operating system, with the name given.
-spec os(binary()) -> fairnif_watch_finding:culprit().
os(Name) ->
    (none())#{kind := os, name := Name}.

%% @doc Of an event `blocked', `unblocked' or `looked'.
-spec of_event(map()) -> fairnif_watch_finding:culprit().
of_event(#{fairnif := #{function := {M, F, A} = Function} = Fair} = Event) ->
    Frame = frame(maps:get(stack, Event, [])),
    (from_frame(Frame, Event))#{kind := fairnif, name := mfa(M, F, A),
                                mfa := Function, module := M, pid := maps:get(owner, Fair, none)};
of_event(Event) ->
    from_frame(frame(maps:get(stack, Event, [])), Event).

%% The NIF or driver callback: the library's frame nearest to the emulator, which is the outermost,
%% or what is linked to the emulator and called as one. Frames are innermost first. Without one: the
%% emulator's own function.
frame(Stack) ->
    {Above, Code} = lists:splitwith(fun(F) -> maps:get(in, F, unknown) =/= jit end, Stack),
    case lists:splitwith(fun(F) -> not is_foreign(F) end, lists:reverse(Above)) of
        {Outward, [Foreign | _]} ->
            case is_emulators(Foreign, Outward) of
                true -> of_emulator(lists:reverse(Outward), Code);
                false -> {library, Foreign}
            end;
        {_, []} ->
            of_emulator(Above, Code)
    end.

%% The emulator calls libraries for itself, too (zlib's, in a BIF): such a one is in no table, and a
%% BIF that calls no callback has called it.
is_emulators(#{nif := none, driver := none, destructor := none}, Outward) ->
    Bifs = [bif(Symbol) || #{in := emulator, symbol := Symbol} <- Outward],
    lists:any(fun is_call_bif/1, Outward) orelse lists:any(fun calls_no_callback/1, Bifs);
is_emulators(_, _) ->
    false.

calls_no_callback({erts_internal, port_command, 3}) -> false;
calls_no_callback({erts_internal, port_control, 3}) -> false;
calls_no_callback({erts_internal, port_call, 3}) -> false;
calls_no_callback({erts_internal, port_close, 1}) -> false;
calls_no_callback({erts_internal, open_port, 2}) -> false;
calls_no_callback({erlang, load_nif, 2}) -> false;
calls_no_callback({_, _, _}) -> true;
calls_no_callback(none) -> false.

is_foreign(#{in := In}) when In =:= library; In =:= fairnif -> true;
is_foreign(#{driver := Driver}) when is_binary(Driver) -> true;
is_foreign(#{in := emulator, nif := {_, _, _}}) -> true;
is_foreign(#{}) -> false.

%% @doc Do the frames continue from the outermost one of a library to the emulator? Then that one is
%% what the emulator called, whatever it called in its turn.
-spec is_called([map()]) -> boolean().
is_called(Stack) ->
    lists:any(fun(#{in := In}) -> In =:= emulator orelse In =:= jit end,
              lists:takewhile(fun(F) -> not is_foreign(F) end, lists:reverse(Stack))).

%% What Erlang code called is a BIF: it is the outermost of the frames above the code. Where the
%% code is not reached, it is the outermost that is not the scheduler's own loop, if symbols tell
%% these apart, and otherwise the innermost: that one ran, whatever it is. Two things the emulator
%% does by itself, within any of these: it collects garbage, and it ends processes.
of_emulator(Above, Code) ->
    Frames = emulator(Above),
    case [{Kind, F} || F <- Frames, Kind <- [does(symbol(F))], Kind =/= none] of
        [Does | _] -> Does;
        [] -> outermost(Code, [F || F <- Frames, not is_call_bif(F), not is_loop(F)], Frames)
    end.

outermost(_, _, []) -> none;
outermost([_ | _], [], Frames) -> {emulator, lists:last(Frames)};
outermost([_ | _], Own, Frames) ->
    Kind = case lists:any(fun is_call_bif/1, Frames) of
               true -> bif;
               false -> emulator
           end,
    {Kind, lists:last(Own)};
outermost([], Own, [Inner | _]) ->
    {emulator, lists:last([Inner | [F || F <- Own, symbol(F) =/= none]])}.

emulator(Stack) -> [F || #{in := emulator} = F <- Stack].

symbol(Frame) -> maps:get(symbol, Frame, none).

does(<<"erts_garbage_collect", _/binary>>) -> gc;
does(<<"erts_gc_", _/binary>>) -> gc;
does(<<"erts_continue_exit_process">>) -> exit;
does(<<"erts_do_exit_process">>) -> exit;
does(_) -> none.

%% Between the code and any BIF that is not written into it.
is_call_bif(#{symbol := <<"beam_jit_call_bif", _/binary>>}) -> true;
is_call_bif(#{}) -> false.

is_loop(Frame) ->
    lists:member(symbol(Frame),
                 [<<"process_main">>, <<"erts_dirty_process_main">>, <<"sched_thread_func">>,
                  <<"sched_dirty_cpu_thread_func">>, <<"sched_dirty_io_thread_func">>,
                  <<"thr_wrapper">>, <<"erts_schedule">>]).

from_frame(none, #{stack := [_ | _] = Stack} = Event) ->
    case lists:last(Stack) of
        #{in := unknown, library := none} ->
            (base(Event))#{name := <<"code that belongs to no file">>};
        _ ->
            base(Event)
    end;
from_frame(none, Event) ->
    base(Event);
%% No process called it: the one that the thread ran before has nothing to do with it.
from_frame({library, #{destructor := {M, Type}} = Frame}, Event) ->
    (place(Frame, base(Event)))#{kind := destructor, module := M, pid := none,
                                 name := destructor(M, Type, Frame)};
from_frame({library, #{driver := Driver, callback := Callback} = Frame}, Event)
  when is_binary(Driver) ->
    (place(Frame, base(Event)))#{kind := driver, name := callback(Callback, Driver, Frame)};
from_frame({library, #{nif := {M}, callback := Callback} = Frame}, Event) when Callback =/= none ->
    (place(Frame, base(Event)))#{kind := load, module := M,
                                 name := callback(Callback, atom_to_binary(M), Frame)};
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
from_frame({gc, Frame}, Event) ->
    (place(Frame, base(Event)))#{kind := gc, name := <<"garbage collection">>};
from_frame({exit, Frame}, Event) ->
    (place(Frame, base(Event)))#{kind := exit, name := <<"the end of a process">>};
from_frame({Kind, Frame}, Event) ->
    Base = place(Frame, base(Event)),
    case {bif(symbol(Frame)), Kind} of
        {none, bif} -> Base#{kind := bif, name := iolist_to_binary(["a BIF: ", label(Frame)])};
        {none, emulator} -> Base#{kind := emulator, name := label(Frame)};
        {{M, F, A} = Mfa, _} -> Base#{kind := bif, mfa := Mfa, module := M, name := mfa(M, F, A)}
    end.

destructor(M, Type, #{library := Library}) ->
    unicode:characters_to_binary(io_lib:format("destructor of ~tp:~tp (~ts)",
                                               [M, Type, filename:basename(Library)])).

callback(Callback, Whose, Frame) ->
    unicode:characters_to_binary([atom_to_binary(Callback), " of ", Whose, " (", file(Frame), ")"]).

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
    %% Between two processes it is the one before.
    Pid = case lists:any(fun(F) -> symbol(F) =:= <<"erts_schedule">> end,
                         maps:get(stack, Event, [])) of
              true -> none;
              false -> maps:get(process, Event, none)
          end,
    (none())#{pid := Pid, syscall := Syscall}.

place(Frame, Culprit) ->
    Culprit#{library := maps:get(library, Frame, none), symbol := maps:get(symbol, Frame, none),
             offset := maps:get(offset, Frame, none)}.

%% @doc A frame in words: symbol and library, or library and offset: of the function, where the
%% unwind table tells where that begins, so that it is the same wherever in it the thread was.
-spec label(map()) -> binary().
label(Frame) ->
    Where = file(Frame),
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
            iolist_to_binary([bare(Where, Symbol), " (", Where, ")"])
    end.

%% The emulator's C++ functions are known by their names.
bare(<<"emulator">>, Symbol) -> hd(binary:split(Symbol, <<"(">>));
bare(_, Symbol) -> Symbol.

file(#{in := emulator}) -> <<"emulator">>;
file(#{in := jit}) -> <<"code of the JIT">>;
file(#{library := Path}) when is_binary(Path) -> filename:basename(Path);
file(#{}) -> <<"unknown code">>.

%% @doc The culprit with what was learned since: the process, whether the library is a driver's,
%% the module that loaded it, whether it was a collection.
-spec complete(fairnif_watch_finding:culprit(), facts()) -> fairnif_watch_finding:culprit().
complete(Culprit, Facts) ->
    named(maps:merge(Culprit, maps:with([registered, current_function], Facts)), Facts).

named(#{kind := Kind, mfa := none} = Culprit, #{gc := true})
  when Kind =:= emulator; Kind =:= bif ->
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
%% each of them is another number, and there is room for few names only.
-spec total(fairnif_watch_finding:culprit()) -> binary().
total(#{kind := Kind, mfa := none, symbol := none, library := File})
  when is_binary(File), Kind =:= emulator orelse Kind =:= bif ->
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

%% @doc Returns what to do about a culprit of that kind.
-spec remedy(atom()) -> binary().
remedy(fairnif) ->
    <<"Tick more often (fair_tick), or run the part that cannot tick with fair_offload or "
      "FAIR_THREADED.">>;
remedy(destructor) ->
    <<"Free the large parts before the last reference is dropped, in a call that yields or is "
      "dirty. Or have the destructor pass them to a thread.">>;
remedy(load) ->
    <<"Do slow initialisation in the first call, or on a thread. While a library is loaded, "
      "nothing else runs on that scheduler and no other code can be loaded.">>;
remedy(driver) ->
    <<"Do the callback's work elsewhere: fairdrv.h, or driver_async.">>;
remedy(exit) ->
    <<"The VM frees everything that a process owns in one piece when it ends. Let it own less "
      "(binaries, messages, links), or release them step by step before.">>;
remedy(Kind) when Kind =:= bif; Kind =:= emulator ->
    <<"This is the emulator's own code. Pass it less in one call, or call it where nothing else "
      "waits.">>;
remedy(gc) ->
    <<"Keep that process's heap small: pass large terms to short-lived processes, or keep them in "
      "binaries or ETS.">>;
remedy(_) ->
    <<"Make the call yield (fair_tick), or run it on a dirty scheduler: "
      "ERL_NIF_DIRTY_JOB_CPU_BOUND, or _IO_BOUND where it sleeps.">>.
