%% Of what a node of the checker's died: a signal's number does not say where to look. Its last
%% words (c_src/fairnif_check_fault.c) tell the library, and the symbols of that file the function.
%%
%% A symbol counts where the fault is within its size. The nearest one may be any other function's,
%% where those of the library were stripped.
-module(fairnif_check_fault).

-export([arm/0, is_report/1, report/1, overflow/1]).
-nifs([arm/0]).

-on_load(init/0).

-export_type([stack/0]).

%% A kind of threads, and the flag that sets how large their stacks are.
-type stack() :: normal | dirty_cpu | dirty_io.

-define(TAG, "fairnif_check_fault ").
%% They do what they were asked to do; their caller is of interest.
-define(OF_THE_SYSTEM, "^(lib(c|m|gcc_s|stdc\\+\\+|pthread)[.-]|ld-|beam\\.|linux-vdso)").
-define(SYMTAB, 2).
-define(DYNSYM, 11).
-define(FUNCTION, 2).

init() ->
    erlang:load_nif(filename:join(code:priv_dir(fairnif_check), "fairnif_check_fault"), 0).

%% @doc From now on this node says of what fault it dies, on standard error.
-spec arm() -> ok.
arm() -> erlang:nif_error(not_loaded).

%% @doc Whether this line is such words.
-spec is_report(binary()) -> boolean().
is_report(Line) ->
    string:prefix(Line, ?TAG) =/= nomatch.

%% @doc What they say, as a phrase: `SIGILL in function f of my_nif.so'. Other words are as they
%% were.
-spec report(binary()) -> unicode:chardata().
report(Words) ->
    case parsed(Words) of
        {Signal, _, _, Frames} -> [signal(Signal), place(Frames)];
        none -> Words
    end.

%% @doc Whose stack was used up, by the address of the fault: `unknown' where nothing was said.
-spec overflow(binary()) -> stack() | no | unknown.
overflow(Words) ->
    case parsed(Words) of
        {_, true, Thread, _} -> maps:get(Thread, #{1 => normal, 2 => dirty_cpu, 3 => dirty_io}, no);
        {_, false, _, _} -> no;
        none when Words =:= <<>> -> unknown;
        none -> no
    end.

parsed(Words) ->
    case binary:split(Words, <<"\t">>, [global]) of
        [<<?TAG, Head/binary>> | Frames] ->
            [Signal, Overflow, Thread] = [binary_to_integer(N)
                                          || N <- binary:split(Head, <<" ">>, [global])],
            {Signal, Overflow =:= 1, Thread, [frame(F) || F <- Frames]};
        _ ->
            none
    end.

frame(Text) ->
    [File, Offset] = string:split(Text, "+", trailing),
    {File, binary_to_integer(Offset, 16)}.

signal(Number) ->
    maps:get(Number, #{4 => "SIGILL", 7 => "SIGBUS", 8 => "SIGFPE", 11 => "SIGSEGV"},
             ["signal ", integer_to_list(Number)]).

%% The first frame is where it happened, each other one called the one before.
place([]) ->
    " outside of any library";
place([First | _] = Frames) ->
    case lists:dropwhile(fun is_of_the_system/1, Frames) of
        [First | _] -> [" in ", named(First)];
        [Caller | _] -> [" in ", named(First), ", called by ", named(Caller)];
        [] -> [" in ", named(First)]
    end.

is_of_the_system({File, _}) ->
    re:run(filename:basename(File), ?OF_THE_SYSTEM, [{capture, none}]) =:= match.

named({File, Offset}) ->
    Library = filename:basename(File),
    case symbol(File, Offset) of
        none -> [Library, io_lib:format("+0x~.16b", [Offset])];
        Name -> ["function ", Name, " of ", Library]
    end.

%% ---- symbols of an ELF file: 64 bits, little-endian; of others none ----

symbol(File, Offset) ->
    try
        {ok, Bytes} = file:read_file(File),
        <<16#7f, "ELF", 2, 1, _:34/binary, At:64/little, _:10/binary, Size:16/little,
          Count:16/little, _/binary>> = Bytes,
        Sections = [section(binary:part(Bytes, At + N * Size, 64)) || N <- lists:seq(0, Count - 1)],
        hd([Name || Wanted <- [?SYMTAB, ?DYNSYM], {Type, Table, Length, Link} <- Sections,
                    Type =:= Wanted, {_, Names, NamesLength, _} <- [lists:nth(Link + 1, Sections)],
                    Name <- symbols(binary:part(Bytes, Table, Length),
                                    binary:part(Bytes, Names, NamesLength), Offset)])
    catch
        error:_ -> none
    end.

section(<<_:32, Type:32/little, _:16/binary, At:64/little, Length:64/little, Link:32/little,
          _/binary>>) ->
    {Type, At, Length, Link}.

symbols(Table, Names, Offset) ->
    [hd(binary:split(binary:part(Names, Name, byte_size(Names) - Name), <<0>>))
     || <<Name:32/little, _:4, Kind:4, _:24, Start:64/little, Size:64/little>> <= Table,
        Kind =:= ?FUNCTION, Offset >= Start, Offset < Start + Size].
