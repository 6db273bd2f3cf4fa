%% Does a call return, and with input of which size? What a check asks of its subjects first.
%%
%% A function that takes long for large input has done nothing wrong yet. So where a call does not
%% return in time, smaller sizes are tried, and the function is judged by one of those. That it
%% hangs is said where it was quick with half of the input.
-module(fairnif_check_probe).

-export([probe/4]).
%% For the tests.
-export([smaller/4]).

-export_type([probes/0]).

-type outcome() :: {ok, Ns :: number()} | {error, binary()} | {late, binary()}.
-type known() :: {pos_integer(), Ns :: number() | fails}.
%% The size that they are to be measured with, why it is not that which was asked for, and of each
%% subject the time of a call; `unmeasured' where that size was measured before.
-type probes() :: {pos_integer(), none | binary(),
                   [{atom(), fairnif_check_subject:subject(), {ok, number()} | {error, binary()}
                                                           | unmeasured}]}.

%% A call that takes this part of the time that it may take is too slow to be measured: there are
%% some thirty of them.
-define(SLOW, 0.1).
%% The time of a call grows by less than this factor with twice the input, or it hangs: eight times
%% where it grows as the cube of the input, and what a busy machine adds.
-define(STEEP, 32).
%% Without a size that is known to return, none is tried that is smaller than this part.
-define(LEAST, 1024).
-define(SIGNALS, [139, 135]).   % as exit status: SIGSEGV, SIGBUS
%% The largest that the VM takes, in kilowords.
-define(STACK, "8192").

%% @doc Calls each subject with that size of input, in nodes of their own, and with smaller ones
%% where a call is not back in time. Known are smaller sizes, with the time (ns) of a call.
-spec probe([{atom(), fairnif_check_subject:subject()}], pos_integer(), [known()],
            fairnif_check_node:options()) -> probes().
probe(Subjects, Asked, Known, #{timeout_ms := TimeoutMs} = Opts) ->
    Outcomes = [{Role, Subject, outcome(Subject, Asked, Opts)} || {Role, Subject} <- Subjects],
    case [Text || {_, _, {late, Text}} <- Outcomes] of
        [] ->
            {Asked, none, Outcomes};
        [Late | _] ->
            Try = fun(Size) -> slowest([outcome(S, Size, Opts) || {_, S} <- Subjects]) end,
            case smaller(Asked, Known, TimeoutMs * 1.0e6, Try) of
                {slow, {Size, Ns} = Found} ->
                    Outcome = case lists:member(Found, Known) of
                                  true -> unmeasured;
                                  false -> {ok, Ns}
                              end,
                    {case Outcome of unmeasured -> Asked; _ -> Size end, slow(Late, Asked, Found),
                     [{Role, Subject, Outcome} || {Role, Subject} <- Subjects]};
                {hangs, {Size, Ns}} ->
                    {Asked, none, hang(Outcomes, [", though one with ", bytes(Size), " takes ",
                                                  fairnif_check_table:duration(Ns)])};
                none ->
                    {Asked, none, hang(Outcomes, "")}
            end
    end.

slow(Late, Asked, {Size, Ns}) ->
    text(["a call with ", bytes(Asked), " ", Late, "; it is judged with ", bytes(Size),
          ", where one takes ", fairnif_check_table:duration(Ns), ". Give a longer --timeout, or "
          "smaller sizes"]).

hang(Outcomes, Though) ->
    [{Role, Subject, case Outcome of
                         {late, Text} -> {error, text([Text, Though])};
                         _ -> Outcome
                     end} || {Role, Subject, Outcome} <- Outcomes].

slowest(Outcomes) ->
    case [Other || {Kind, _} = Other <- Outcomes, Kind =/= ok] of
        [] -> lists:max(Outcomes);
        [Other | _] -> Other
    end.

%% @doc The largest of the sizes that come of halving one at which a call is quick, and whether the
%% time (ns) that it takes there tells why the whole is late.
-spec smaller(pos_integer(), [known()], number(), fun((pos_integer()) -> outcome())) ->
          {slow | hangs, {pos_integer(), number()}} | none.
smaller(Asked, Known, TimeoutNs, Try) ->
    case lists:max([none | [One || {Size, _} = One <- Known, Size < Asked]]) of
        {_, fails} -> none;
        none -> climb(halves(Asked div 2, max(1, Asked div ?LEAST) - 1, []), none, TimeoutNs, Try);
        {Size, _} = Best -> climb(halves(Asked div 2, Size, []), Best, TimeoutNs, Try)
    end.

%% The smallest first.
halves(Size, Above, Larger) when Size > Above -> halves(Size div 2, Above, [Size | Larger]);
halves(_, _, Larger) -> Larger.

climb([Size | More], Best, TimeoutNs, Try) ->
    case Try(Size) of
        {ok, Ns} when Ns =< ?SLOW * TimeoutNs -> climb(More, {Size, Ns}, TimeoutNs, Try);
        {ok, Ns} when Best =:= none -> {slow, {Size, Ns}};
        {ok, _} -> {slow, Best};
        _ -> why_late(Best, TimeoutNs)
    end;
climb([], Best, TimeoutNs, _) ->
    why_late(Best, TimeoutNs).

why_late({_, Ns} = Best, TimeoutNs) when Ns * ?STEEP >= TimeoutNs -> {slow, Best};
why_late({_, _} = Best, _) -> {hangs, Best};
why_late(none, _) -> none.

%% ---- one call ----

-spec outcome(fairnif_check_subject:subject(), pos_integer(), fairnif_check_node:options()) ->
          outcome().
outcome(Subject, Size, #{timeout_ms := TimeoutMs} = Opts) ->
    case called([], Subject, Size, Opts) of
        {ok, Outcome, _} ->
            Outcome;
        {error, {timeout, _}} ->
            {late, text(["had not returned after ",
                         fairnif_check_table:duration(TimeoutMs * 1.0e6)])};
        {error, Reason} ->
            {error, text([fairnif_check_peer:format_error(Reason),
                          used_up(Reason, Subject, Size, Opts)])}
    end.

called(Flags, Subject, Size, #{timeout_ms := TimeoutMs} = Opts) ->
    fairnif_check_node:in_peer(
      Flags, [Subject], Size, Opts,
      fun(Peer) ->
              fairnif_check_peer:call(Peer, {fairnif_check_in_peer, probe, [Subject]}, TimeoutMs)
      end).

%% A stack that is too small ends the node like any wild pointer does. With a larger one it shows.
used_up({down, {exit_status, Status}}, Subject, Size, Opts) ->
    used_up({down, {exit_status, Status}, <<>>}, Subject, Size, Opts);
used_up({down, {exit_status, Status}, Words}, Subject, Size, Opts) ->
    case lists:member(Status, ?SIGNALS) andalso fairnif_check_fault:overflow(Words) of
        false -> "";
        no -> "";
        Stack -> with_larger(Stack, Subject, Size, Opts)
    end;
used_up(_, _, _, _) ->
    "".

with_larger(Stack, Subject, Size, Opts) ->
    {Whose, Flags} = stack(Stack),
    Given = lists:append([[Flag, ?STACK] || Flag <- Flags]),
    %% Each thread has one: few of them fit into the node's memory.
    Few = ["+S", "2:2", "+SDcpu", "2:2", "+SDio", "2"],
    Tried = [", too small, and one of 64 MiB (", lists:join($\s, Given), ")"],
    case called(Few ++ Given, Subject, Size, Opts) of
        {ok, {ok, _}, _} -> ["; its stack is ", Whose, Tried, " suffices"];
        {error, {timeout, _}} -> ["; its stack is ", Whose, Tried, " suffices, or it takes long"];
        _ when Stack =:= unknown -> "";
        _ -> ["; its stack is ", Whose, Tried, " is, too"]
    end.

stack(normal) -> {"a normal scheduler's", ["+sss"]};
stack(dirty_cpu) -> {"a dirty CPU scheduler's", ["+sssdcpu"]};
stack(dirty_io) -> {"a dirty I/O scheduler's", ["+sssdio"]};
stack(unknown) -> {"a scheduler's", ["+sss", "+sssdcpu", "+sssdio"]}.

bytes(Size) -> fairnif_check_table:bytes(Size).

text(Chardata) -> unicode:characters_to_binary(Chardata).
