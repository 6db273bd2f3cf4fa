%% The part of the experiment `exor' that runs inside its peer nodes: it makes
%% the input, calls a form of the example `bitwise', and measures.
-module(fairnif_exp_exor_peer).

-export([example/0, prepare/1, check/1, timed/1, sliced/1, shared/1]).

-define(BYTE, 16#5A).
%% The input repeats one block of random bytes: a generator would take longer
%% than all forms together.
-define(BLOCK, 1048576).
-define(INPUT, {?MODULE, input}).
%% Bytes of binaries beside the input that a run need not wait for.
-define(SLACK, 67108864).

%% @doc The module whose forms are called: a project of its own, found in the
%% code path when it is built.  Nothing here may depend on it, so its functions
%% are called by this name alone.
-spec example() -> module().
example() ->
    bitwise.

%% @doc Makes the input, once per node; a persistent term is not copied.
-spec prepare(pos_integer()) -> ok.
prepare(Size) ->
    Block = rand:bytes(?BLOCK),
    Whole = Size div ?BLOCK,
    Rest = binary:part(Block, 0, Size rem ?BLOCK),
    %% In one go: an iolist of whole blocks, copied once.
    Input = iolist_to_binary([lists:duplicate(Whole, Block), Rest]),
    persistent_term:put(?INPUT, {Input, Block}).

%% @doc Compares every byte of the result; a warm-up as well.
-spec check(atom()) -> ok | {wrong, unicode:chardata()} | {error, {exit, term()}}.
check(Form) ->
    {Input, Block} = persistent_term:get(?INPUT),
    Right = << <<(B bxor ?BYTE)>> || <<B>> <= Block >>,
    Answer = in_process(fun() -> compare(call(Form, Input), Input, Right) end),
    settle(Input),
    Answer.

compare({Result, Yields}, Input, Right)
  when byte_size(Result) =:= byte_size(Input), is_integer(Yields) ->
    compare_blocks(Result, Right, 0);
compare({Result, Yields}, Input, _) when is_binary(Result) ->
    {wrong, io_lib:format("~b bytes and ~0tp yields for ~b bytes",
                          [byte_size(Result), Yields, byte_size(Input)])};
compare(Other, _, _) ->
    {wrong, io_lib:format("~0tP", [Other, 8])}.

compare_blocks(Result, Right, At) ->
    case min(?BLOCK, byte_size(Result) - At) of
        0 ->
            ok;
        Size ->
            case binary:part(Result, At, Size) =:= binary:part(Right, 0, Size) of
                true -> compare_blocks(Result, Right, At + Size);
                false -> {wrong, io_lib:format("within ~b bytes from ~b",
                                               [Size, At])}
            end
    end.

%% @doc {Microseconds, Yields, Reductions} of one run, nothing else going on.
-spec timed(atom()) -> {non_neg_integer(), non_neg_integer(), integer()}.
timed(Form) ->
    {Input, _} = persistent_term:get(?INPUT),
    Example = example(),
    {Us, Yields, {reductions, R0}, {reductions, R1}} =
        Example:reds(Input, ?BYTE, fun Example:Form/2),
    settle(Input),
    {Us, Yields, R1 - R0}.

%% @doc The slices of one run.
-spec sliced(atom()) -> #{atom() => term()} | {error, {atom(), term()}}.
sliced(Form) ->
    {Input, _} = persistent_term:get(?INPUT),
    Call = fun() -> {_, Yields} = call(Form, Input), Yields end,
    Answer = case fairnif_lab_slices:trace(Call) of
                 {ok, #{slices := Slices} = Trace} ->
                     Summary = fairnif_lab_slices:summary(Trace),
                     Summary#{slices_normal => lengths(normal, Slices),
                              slices_dirty => lengths(dirty, Slices)};
                 {error, _} = Error ->
                     Error
             end,
    settle(Input),
    Answer.

lengths(Kind, Slices) ->
    [End - Start || {Start, End, K, _} <- Slices, K =:= Kind].

%% @doc The share left to a neighbour.
-spec shared({atom(), fairnif_lab_share:options()}) ->
          #{atom() => term()} | {error, {atom(), term()}}.
shared({Form, Opts}) ->
    {Input, _} = persistent_term:get(?INPUT),
    case fairnif_lab_share:measure(fun() -> call(Form, Input) end, Opts) of
        {ok, Result} -> Result;
        {error, _} = Error -> Error
    end.

call(Form, Input) ->
    Example = example(),
    Example:Form(Input, ?BYTE).

%% In a process that ends, so that what it made is freed.
in_process(Fun) ->
    {Pid, Monitor} = spawn_monitor(fun() -> exit({answer, Fun()}) end),
    receive
        {'DOWN', Monitor, process, Pid, {answer, Answer}} -> Answer;
        {'DOWN', Monitor, process, Pid, Reason} -> {error, {exit, Reason}}
    end.

%% A dead process's gigabytes take a while to go.  The next run waits for it:
%% results must not pile up, and freeing is not to be timed.
settle(Input) ->
    settle(byte_size(Input), 1000).

settle(_, 0) ->
    ok;
settle(Size, Left) ->
    case erlang:memory(binary) < Size + Size div 2 + ?SLACK of
        true -> ok;
        false -> timer:sleep(5), settle(Size, Left - 1)
    end.
