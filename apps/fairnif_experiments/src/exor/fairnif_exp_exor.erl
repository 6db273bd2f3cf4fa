%% The experiment of Vinoski's talk: a large binary XORed by each form of the example `bitwise',
%% from the NIF that blocks its scheduler to the one that shares it.
%%
%% Each form has two nodes of its own.  In the first its result is checked, it is timed, and then,
%% in other passes, its slices are traced.  In the second, with one normal scheduler, it runs beside
%% a busy Erlang neighbour.
-module(fairnif_exp_exor).

-behaviour(fairnif_experiment).

-export([experiment/0, default_size/0, memory_needed/1]).

-import(fairnif_exp, [now_ms/0, range/2, shown/2]).

-define(DEFAULT_SIZE, 536870912).
%% No further pass, beyond the least, after so long.
-define(PASSES_MS, 1500).
%% The VM itself, and the tables of slices.
-define(VM_BYTES, 268435456).
-define(BYTE, 16#5A).
%% The input repeats one block of random bytes: a generator would take longer than all forms
%% together.
-define(BLOCK, 1048576).
-define(INPUT, {?MODULE, input}).
%% Bytes of binaries beside the input that a run need not wait for.
-define(SLACK, 67108864).

%% In the order of the table; all, if the option `forms' does not name some.  Steve Vinoski,
%% "Tackling dirty jobs with Erlang's schedulers": seconds, yields and reductions on his slides,
%% measured on his machine with a binary of 2,000,000,000 bytes.
forms(Opts) ->
    [Row || {Form, _, _} = Row <- all_forms(),
            lists:member(Form, maps:get(forms, Opts, [Form]))].

all_forms() ->
    [{exor_bad, "plain NIF", {5.86, 0, 4}},
     {exor_chunks, "plain NIF, 4 MiB at a time", {7.87, 476, 1445}},
     {exor_dirty, "dirty CPU scheduler", {5.95, 0, 8}},
     {exor_dirty_yield, "dirty, yielding", undefined},
     {exor_flip, "normal, dirty, normal", undefined},
     {exor_threaded, "thread of the pool", undefined},
     {exor_yield, "fair slices", {5.41, 3906, 7815912}},
     {exor, "auto", undefined}].

%% Passes: {at least, at most}.  The first runs of a node get fresh memory from the kernel, which
%% can take longer than the XOR; with three, one is without.  The three mixes of the neighbour take
%% no longer than two seconds.
scale(quick) ->
    #{size => 16777216, timed => {1, 1}, traced => {1, 1}, mixes => [sort],
      share => #{time_ms => 100, alone_ms => 50}};
scale(normal) ->
    #{size => ?DEFAULT_SIZE, timed => {3, 5}, traced => {2, 3},
      mixes => fairnif_check_share:mixes(),
      share => #{time_ms => 400, alone_ms => 100}};
scale(full) ->
    (scale(normal))#{size := 2000000000}.

%% @doc Runs the forms; all take half a minute at the default size, `quick' with 16 MiB, `full' with
%% the 2,000,000,000 bytes of the talk.  `unsure' before anything is started when memory does not
%% suffice.
-spec experiment() -> fairnif_experiment:experiment().
experiment() ->
    #{name => exor, options => [size, scale],
      description => "a large binary XORed by each form of the example bitwise (Vinoski's talk)",
      %% Two per form: alone, and beside a neighbour.
      steps => fun(Opts) -> 2 * length(forms(Opts)) end,
      measure => fun measure/3, peer => fun peer/1, format => fun format/1}.

%% @doc The size of the binary in bytes when none is given.
-spec default_size() -> pos_integer().
default_size() -> ?DEFAULT_SIZE.

%% @doc Bytes that the hungriest form needs: exor_chunks holds input, chunks and result at once.
-spec memory_needed(pos_integer()) -> pos_integer().
memory_needed(Size) -> 3 * Size + ?VM_BYTES.

%% Called by this name alone.
-spec example() -> module().
example() -> bitwise.

measure(Name, Opts, Step) ->
    #{size := Default} = Scale = scale(Name),
    Size = maps:get(size, Opts, Default),
    {Needed, Available} = {memory_needed(Size), fairnif_check_machine:memory_available()},
    Needed > Available                         % true of no atom
        andalso throw({unsure, io_lib:format(
                  "~ts of input need ~ts of memory, and ~ts are available; give a smaller size",
                  [shown(bytes, N) || N <- [Size, Needed, Available]])}),
    fairnif_exp:needs([example()]),
    Rows = [row(Form, Scale#{size := Size}, Step) || Form <- forms(Opts)],
    fairnif_exp:result(Rows, #{size => Size, rows => Rows,
                               units => <<"elapsed: us; slices, blocks: ns; share: 1 is all">>}).

row({Form, Note, Talk}, #{mixes := Mixes, share := Share} = Scale, Step) ->
    Step(io_lib:format("~s: time, reductions, slices", [Form])),
    Alone = in_peer(fairnif_check_slices:flags(), Scale, fun(Ask) -> alone(Ask, Form, Scale) end),
    Step(io_lib:format("~s: beside an Erlang neighbour", [Form])),
    Beside = case fairnif_exp:failed(Alone) of
                 true -> #{};
                 false ->
                     in_peer(fairnif_check_share:flags(), Scale,
                             fun(Ask) ->
                                     _ = Ask({check, Form}),   % a warm-up here
                                     #{share => [Ask({shared, Form, Share#{mix => M}})
                                                 || M <- Mixes]}
                             end)
             end,
    Row = maps:merge_with(fun(others, A, B) -> [A, B] end, Alone, Beside),
    Row#{form => Form, note => list_to_binary(Note),
         talk => case Talk of
                     {S, Y, R} -> #{seconds => S, yields => Y, reductions => R};
                     undefined -> undefined
                 end}.

in_peer(Flags, #{size := Size}, Fun) ->
    fairnif_exp:failing(
      Flags, fun(Peer) ->
                     %% Slow is 10 MB/s.
                     Ask = fun(Request) ->
                                   fairnif_exp:ask(Peer, {?MODULE, Request}, 60000 + Size div 10000)
                           end,
                     ok = Ask({prepare, Size}),
                     Before = fairnif_check_peer:cpu_clock(Peer),
                     Row = Fun(Ask),
                     Row#{others => fairnif_check_machine:others(
                                      Before, fairnif_check_peer:cpu_clock(Peer))}
             end).

alone(Ask, Form, #{timed := Timings, traced := Traces}) ->
    case Ask({check, Form}) of
        ok -> ok;
        {wrong, What} -> throw({failed, ["wrong result: ", What]})
    end,
    Timed = passes(Timings, fun() -> Ask({timed, Form}) end),
    Traced = passes(Traces, fun() -> Ask({sliced, Form}) end),
    %% The fastest run: whatever else the machine does, it only adds.  Of blocks too the smallest of
    %% several passes: what the function does, every pass shows; what the operating system took
    %% away in the middle of a slice, one.
    {Us, Yields, Reductions} = lists:min(Timed),
    Block = fun(Which) -> lists:min([maps:get(Which, N) || #{normal := N} <- Traced]) end,
    #{elapsed_us => Us, yields => Yields, reductions => Reductions,
      block_longest => Block(longest), block_p99 => Block(p99),
      timed => [#{elapsed_us => U, yields => Y, reductions => R} || {U, Y, R} <- Timed],
      traced => Traced}.

passes({Least, Most}, Fun) ->
    passes(Least, Most, Fun, now_ms() + ?PASSES_MS).

passes(_, 0, _, _) ->
    [];
passes(Least, Most, Fun, Until) ->
    case Least > 0 orelse now_ms() < Until of
        true -> [Fun() | passes(Least - 1, Most - 1, Fun, Until)];
        false -> []
    end.

%% ---- in the peers ----

%% Makes the input, once per node; a persistent term is not copied.
peer({prepare, Size}) ->
    Block = rand:bytes(?BLOCK),
    Rest = binary:part(Block, 0, Size rem ?BLOCK),
    %% In one go: an iolist of whole blocks, copied once.
    Input = iolist_to_binary([lists:duplicate(Size div ?BLOCK, Block), Rest]),
    persistent_term:put(?INPUT, {Input, Block});
peer(Request) ->
    {Input, Block} = persistent_term:get(?INPUT),
    Answer = asked(Request, Input, Block),
    settle(byte_size(Input), 1000),
    Answer.

%% Compares every byte of the result; a warm-up as well.  In a process that ends, so that what it
%% made is freed.
asked({check, Form}, Input, Block) ->
    Right = << <<(B bxor ?BYTE)>> || <<B>> <= Block >>,
    try fairnif_check_machine:apart([], fun() -> compare(call(Form, Input), Input, Right) end)
    catch exit:Reason -> {error, {exit, Reason}}
    end;
%% {Microseconds, Yields, Reductions} of one run, with nothing else at work.
asked({timed, Form}, Input, _) ->
    Example = example(),
    {Us, Yields, {reductions, R0}, {reductions, R1}} =
        Example:reds(Input, ?BYTE, fun Example:Form/2),
    {Us, Yields, R1 - R0};
%% The slices of one run.
asked({sliced, Form}, Input, _) ->
    case fairnif_check_slices:trace(fun() -> {_, Yields} = call(Form, Input), Yields end) of
        {ok, #{slices := Slices} = Trace} ->
            (fairnif_check_slices:summary(Trace))#{
              slices_normal => [End - Start || {Start, End, normal, _} <- Slices]};
        {error, _} = Error ->
            Error
    end;
%% The share left to a neighbour.
asked({shared, Form, Opts}, Input, _) ->
    case fairnif_check_share:measure(fun() -> call(Form, Input) end, Opts) of
        {ok, #{share := Share}} -> Share;
        {error, _} = Error -> Error
    end.

call(Form, Input) ->
    Example = example(),
    Example:Form(Input, ?BYTE).

compare({Result, Yields}, Input, Right)
  when byte_size(Result) =:= byte_size(Input), is_integer(Yields) ->
    compare_blocks(Result, Right, 0);
compare({Result, Yields}, Input, _) when is_binary(Result) ->
    {wrong, io_lib:format("~b bytes and ~0tp yields for ~b bytes",
                          [byte_size(Result), Yields, byte_size(Input)])};
compare(Other, _, _) ->
    {wrong, io_lib:format("~0tP", [Other, 8])}.

compare_blocks(Result, Right, At) ->
    Size = min(?BLOCK, byte_size(Result) - At),
    case binary:part(Result, At, Size) =:= binary:part(Right, 0, Size) of
        true when Size =:= 0 -> ok;
        true -> compare_blocks(Result, Right, At + Size);
        false -> {wrong, io_lib:format("within ~b bytes from ~b", [Size, At])}
    end.

%% A dead process's gigabytes take a while to go.  The next run waits for it: results must not pile
%% up, and freeing is not to be timed.
settle(Size, Left) ->
    case Left =:= 0 orelse erlang:memory(binary) < Size + Size div 2 + ?SLACK of
        true -> ok;
        false -> timer:sleep(5), settle(Size, Left - 1)
    end.

%% ---- the table ----

format(#{size := Size, rows := Rows}) ->
    [fairnif_exp:table(
       [{"form of bitwise", left, {form, text}}, {"elapsed", right, {elapsed_us, us}},
        {"yields", right, {yields, count}}, {"reductions\ncharged", right, {reductions, count}},
        {"scheduler\nblocked, longest", right, {block_longest, ns}},
        {"CPU left to\na neighbour", right, {share, fun share/1}},
        {"the talk: elapsed,\nyields, reductions", right,
         {talk, fun(#{seconds := S, yields := Y, reductions := R}) ->
                        io_lib:format("~.2f s, ~s, ~s", [S, shown(count, Y), shown(count, R)])
                end}}], Rows),
     "Binary: ", shown(count, Size), " bytes; the talk's had 2,000,000,000, on Steve Vinoski's "
     "machine\n(\"Tackling dirty jobs with Erlang's schedulers\").  Elapsed: the fastest run, in "
     "memory that the VM\nhad used before.  Blocked: a normal one, without a pause, garbage "
     "collection apart, in every pass.\nNeighbours: one that sorts, one that updates maps, one "
     "that builds binaries.\n",
     %% Two nodes have two figures.
     fairnif_exp:footnotes(fun(#{form := F}) -> atom_to_list(F) end,
                           [R#{others => lists:max([0 | [N || N <- lists:flatten([Others]),
                                                              is_number(N)]])}
                            || R <- Rows, Others <- [maps:get(others, R, [])]]),
     conclusion(fairnif_exp:find(#{form => exor_bad}, Rows),
                fairnif_exp:find(#{form => exor}, Rows))].

%% Written from the figures, so that it cannot say what they do not.
conclusion(#{share := BadShare, block_longest := Longest, elapsed_us := BadUs},
           #{share := Share, block_p99 := P99, elapsed_us := Us}) ->
    io_lib:format(
      "~nWhat to see: exor_bad, a plain NIF, blocks its scheduler for ~ts and leaves ~ts of it~n"
      "to the neighbour; exor, the same loop with a tick in it, takes ~.2f times as long, yields~n"
      "after ~ts at most (99 % of its slices) and leaves ~ts.~n",
      [shown(ns, Longest), share(BadShare), Us / BadUs, shown(ns, P99), share(Share)]);
conclusion(_, _) ->
    "".

share(Shares) ->
    range(fun(S) -> [integer_to_list(round(100 * S)), " %"] end, Shares).
