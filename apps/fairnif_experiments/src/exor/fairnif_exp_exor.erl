%% The experiment of Vinoski's talk: a large binary XORed by each form of the
%% example `bitwise', from the NIF that blocks its scheduler to the one that
%% shares it.
%%
%% Each form has two nodes of its own.  In the first its result is checked, it
%% is timed, and then, in other passes, its slices are traced.  In the second,
%% with one normal scheduler, it runs beside a busy Erlang neighbour.
-module(fairnif_exp_exor).

-behaviour(fairnif_experiment).

-export([about/0, steps/1, run/1, format/1]).
-export([default_size/0, memory_needed/1]).

-define(DEFAULT_SIZE, 536870912).
%% No further pass, beyond the least, after so long.
-define(PASSES_MS, 1500).
%% The VM itself, and the tables of slices.
-define(VM_BYTES, 268435456).

%% Steve Vinoski, "Tackling dirty jobs with Erlang's schedulers": the figures
%% on his slides, measured on his machine with a binary of 2,000,000,000
%% bytes.
talk() ->
    #{exor_bad => #{seconds => 5.86, yields => 0, reductions => 4},
      exor_chunks => #{seconds => 7.87, yields => 476, reductions => 1445},
      exor_yield => #{seconds => 5.41, yields => 3906, reductions => 7815912},
      exor_dirty => #{seconds => 5.95, yields => 0, reductions => 8}}.

%% Passes: {at least, at most}.  The first runs of a node get fresh memory from
%% the kernel, which can take longer than the XOR; with three, one is without.
%% The three mixes of the neighbour take no longer than two seconds.
scale(quick) ->
    #{size => 16777216, timed => {1, 1}, traced => {1, 1}, mixes => [sort],
      share => #{time_ms => 100, alone_ms => 50}};
scale(normal) ->
    #{size => ?DEFAULT_SIZE, timed => {3, 5}, traced => {2, 3},
      mixes => fairnif_lab_share:mixes(),
      share => #{time_ms => 400, alone_ms => 100}};
scale(full) ->
    (scale(normal))#{size := 2000000000}.

%% In the order of the table.
forms() ->
    [{exor_bad, "plain NIF"},
     {exor_chunks, "plain NIF, 4 MiB at a time"},
     {exor_dirty, "dirty CPU scheduler"},
     {exor_dirty_yield, "dirty, yielding"},
     {exor_flip, "normal, dirty, normal"},
     {exor_threaded, "thread of the pool"},
     {exor_yield, "fair slices"},
     {exor, "auto"}].

%% @doc Its name, and one line for the list of experiments.
-spec about() -> fairnif_experiment:about().
about() ->
    #{name => exor,
      description => "a large binary XORed by each form of the example bitwise (Vinoski's talk)",
      options => [size, scale]}.

%% @doc Two per form: alone, and beside a neighbour.
-spec steps(fairnif_experiment:options()) -> pos_integer().
steps(_) ->
    2 * length(forms()).

%% @doc Runs all forms; half a minute at the default size, `quick' with 16 MiB,
%% `full' with the 2,000,000,000 bytes of the talk.  A form that fails
%% has an `error' in its row, and the others go on.  `cannot_say' before
%% anything is started when memory does not suffice.
-spec run(fairnif_experiment:options()) -> fairnif_experiment:outcome().
run(Opts) ->
    Scale = scale(fairnif_exp:scale(Opts)),
    Size = maps:get(size, Opts, maps:get(size, Scale)),
    case enough_memory(Size, fairnif_lab_machine:memory_available()) of
        ok ->
            fairnif_exp:needs([fairnif_exp_exor_peer:example()],
                              fun() ->
                                      run(Scale#{size := Size}, fairnif_exp:progress(Opts))
                              end);
        {error, _} = Error ->
            Error
    end.

%% @doc The size of the binary in bytes when none is given.
-spec default_size() -> pos_integer().
default_size() ->
    ?DEFAULT_SIZE.

%% @doc Bytes that the hungriest form needs: exor_chunks holds input, chunks
%% and result at once.
-spec memory_needed(pos_integer()) -> pos_integer().
memory_needed(Size) ->
    3 * Size + ?VM_BYTES.

%% @doc The table and what to see in it.
-spec format(fairnif_experiment:result()) -> unicode:chardata().
format(#{size := Size, rows := Rows}) ->
    [fairnif_lab_table:render(columns(), [cells(R) || R <- Rows]),
     footnotes(Size, Rows), conclusion(Rows)].

%% ---- running ----

enough_memory(Size, Available) ->
    case memory_needed(Size) of
        Needed when Needed > Available ->      % true of no atom
            {error, {cannot_say, io_lib:format(
              "~ts of input need ~ts of memory, and ~ts are available; "
              "give a smaller size",
              [fairnif_lab_table:bytes(Size),
               fairnif_lab_table:bytes(Needed),
               fairnif_lab_table:bytes(Available)])}};
        _ ->
            ok
    end.

run(#{size := Size} = Scale, Progress) ->
    Rows = [row(Form, Note, Scale, Progress) || {Form, Note} <- forms()],
    fairnif_lab_progress:stop(Progress),
    {ok, fairnif_exp:result(
           Rows, #{size => Size,
                   flags => #{alone => flags(fairnif_lab_slices),
                              beside => flags(fairnif_lab_share)},
                   units => <<"elapsed in us; slices, holds in ns; share: 1 is all">>,
                   rows => Rows})}.

row(Form, Note, #{size := Size} = Scale, Progress) ->
    fairnif_lab_progress:step(
      Progress, io_lib:format("~s: time, reductions, slices", [Form])),
    Alone = in_peer(fairnif_lab_slices:flags(), Size,
                    fun(Peer) -> alone(Peer, Form, Scale) end),
    fairnif_lab_progress:step(
      Progress, io_lib:format("~s: beside an Erlang neighbour", [Form])),
    Beside = case Alone of
                 #{error := _} -> #{};
                 _ -> in_peer(fairnif_lab_share:flags(), Size,
                              fun(Peer) -> beside(Peer, Form, Scale) end)
             end,
    Row = maps:merge_with(fun(others, A, B) -> [A, B] end, Alone, Beside),
    Row#{form => Form, note => list_to_binary(Note),
         talk => maps:get(Form, talk(), undefined)}.

in_peer(Flags, Size, Fun) ->
    try fairnif_lab_peer:with(
          Flags, fun(Peer) ->
                         _ = ask(Peer, prepare, Size, Size),
                         Before = fairnif_lab_peer:cpu_clock(Peer),
                         Row = Fun(Peer),
                         Row#{others => fairnif_lab_machine:others(
                                          Before, fairnif_lab_peer:cpu_clock(Peer))}
                 end)
    of
        {error, Reason} -> #{error => fairnif_exp:text(fairnif_lab_peer:format_error(Reason))};
        Row -> Row
    catch
        throw:{failed, Text} -> #{error => fairnif_exp:text(Text)}
    end.

alone(Peer, Form, #{size := Size, timed := Timings, traced := Traces}) ->
    case ask(Peer, check, Form, Size) of
        ok -> ok;
        {wrong, What} -> throw({failed, ["wrong result: ", What]})
    end,
    Timed = passes(Timings, fun() -> ask(Peer, timed, Form, Size) end),
    Traced = passes(Traces, fun() -> ask(Peer, sliced, Form, Size) end),
    %% The fastest run: whatever else the machine does, it only adds.
    {Us, Yields, Reductions} = lists:min(Timed),
    #{elapsed_us => Us, yields => Yields, reductions => Reductions,
      hold_longest => hold(longest, Traced),
      hold_p99 => hold(p99, Traced),
      timed => [#{elapsed_us => U, yields => Y, reductions => R}
                || {U, Y, R} <- Timed],
      traced => Traced}.

beside(Peer, Form, #{size := Size, mixes := Mixes, share := Share}) ->
    _ = ask(Peer, check, Form, Size),   % a warm-up here
    Neighbours = [ask(Peer, shared, {Form, Share#{mix => Mix}}, Size)
                  || Mix <- Mixes],
    #{share => [S || #{share := S} <- Neighbours], neighbours => Neighbours}.

%% Of several passes the smallest: what the function does, every pass shows;
%% what the operating system took away in the middle of a slice, one.
hold(Which, Traced) ->
    lists:min([maps:get(Which, N) || #{normal := N} <- Traced]).

passes({Least, Most}, Fun) ->
    passes(Least, Most, Fun, erlang:monotonic_time(millisecond) + ?PASSES_MS).

passes(_, 0, _, _) ->
    [];
passes(Least, Most, Fun, Until) ->
    case Least > 0 orelse erlang:monotonic_time(millisecond) < Until of
        true -> [Fun() | passes(Least - 1, Most - 1, Fun, Until)];
        false -> []
    end.

ask(Peer, Function, Arg, Size) ->
    %% Slow is 10 MB/s.
    LimitMs = 60000 + Size div 10000,
    case fairnif_exp:ask(Peer, {fairnif_exp_exor_peer, Function, [Arg]}, LimitMs) of
        {error, {Class, Reason}} -> throw({failed, io_lib:format("~s:~0tp", [Class, Reason])});
        Value -> Value
    end.

flags(Module) ->
    list_to_binary(lists:join($\s, Module:flags())).

%% ---- the table ----

columns() ->
    [{"form of bitwise", left}, {"elapsed", right}, {"yields", right},
     {"reductions\ncharged", right}, {"scheduler\nblocked, longest", right},
     {"CPU left to\na neighbour", right},
     {"the talk: elapsed,\nyields, reductions", right}].

cells(#{form := Form, error := Error}) ->
    [atom_to_list(Form), ["failed: ", string:slice(Error, 0, 40)]
    | ["" || _ <- lists:seq(3, length(columns()))]];
cells(#{form := Form, elapsed_us := Us, yields := Yields,
        reductions := Reductions, hold_longest := Longest, share := Share,
        talk := Talk}) ->
    [atom_to_list(Form), fairnif_lab_table:duration(Us * 1000),
     fairnif_lab_table:count(Yields), fairnif_lab_table:count(Reductions),
     fairnif_lab_table:duration(Longest), share_range(Share),
     talk_cell(Talk)].

talk_cell(undefined) ->
    "-";
talk_cell(#{seconds := S, yields := Y, reductions := R}) ->
    io_lib:format("~.2f s, ~s, ~s", [S, fairnif_lab_table:count(Y),
                                     fairnif_lab_table:count(R)]).

footnotes(Size, Rows) ->
    ["Binary: ", fairnif_lab_table:count(Size), " bytes; the talk's had "
     "2,000,000,000, on Steve Vinoski's machine\n(\"Tackling dirty jobs with "
     "Erlang's schedulers\").  Elapsed: the fastest run, in memory that the VM\n"
     "had used before.  Blocked: a normal one, without a pause, garbage "
     "collection apart, in every pass.\nNeighbours: one that sorts, one that "
     "updates maps, one that builds binaries.\n",
     [["Failed: ", atom_to_list(F), ": ", E, $\n]
      || #{form := F, error := E} <- Rows],
     fairnif_exp:doubt(", ", [atom_to_list(F) || #{form := F, others := Others} <- Rows,
                                                 lists:any(fun fairnif_exp:doubted/1, Others)])].

%% Written from the figures, so that it cannot say what they do not.
conclusion(Rows) ->
    Find = fun(Form) -> [R || #{form := F, share := _} = R <- Rows,
                              F =:= Form] end,
    case {Find(exor_bad), Find(exor)} of
        {[Bad], [Fair]} ->
            io_lib:format(
              "~nWhat to see: exor_bad, a plain NIF, blocks its scheduler for "
              "~ts and leaves ~ts of it~nto the neighbour; exor, the same "
              "loop with a tick in it, takes ~ts times as long, yields~n"
              "after ~ts at most (99 % of its slices) and leaves ~ts.~n",
              [fairnif_lab_table:duration(maps:get(hold_longest, Bad)),
               share_range(maps:get(share, Bad)),
               float_to_list(maps:get(elapsed_us, Fair)
                             / maps:get(elapsed_us, Bad), [{decimals, 2}]),
               fairnif_lab_table:duration(maps:get(hold_p99, Fair)),
               share_range(maps:get(share, Fair))]);
        _ ->
            ""
    end.

share_range(Shares) ->
    case {percent(lists:min(Shares)), percent(lists:max(Shares))} of
        {Same, Same} -> Same ++ " %";
        {Least, Most} -> Least ++ " to " ++ Most ++ " %"
    end.

percent(Share) ->
    integer_to_list(round(100 * Share)).
