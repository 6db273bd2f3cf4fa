%% The part of the experiment `latency' that runs inside its peer node: opens the
%% forms of the example `echo', and measures their round trips in rounds, so that
%% what disturbs the machine disturbs all alike.
%%
%% A sample is one echo, or of a form that is too fast for the clock, the mean of
%% several in a row.  What reading the clock and the loop take, measured beside each
%% block in the same way with a function that returns its argument, is taken off.
-module(fairnif_exp_latency_peer).

-export([example/0, flags/0, measure/2]).

-export_type([plan/0, row/0]).

%% `samples': of each form and size in a round; `most_ms': no round but the first is begun
%% after that, opening and warming up included; `forms': where they come from, if not from
%% the example.
-type plan() :: #{rounds := pos_integer(), samples := pos_integer(), most_ms := pos_integer(),
                  forms => {module(), atom()}}.
-type row() :: #{form := atom(), title := binary(), isolation := atom(),
                 published_us := number() | undefined, bytes := non_neg_integer(),
                 samples => [number()],         % ns, in order of time
                 echoes_per_sample => pos_integer(),
                 error => binary(), left_out => binary()}.

%% Echoes before any counts: code is loaded, the other side has been compiled (Java).
-define(WARM_ECHOES, 2000).
-define(WARM_MS, 200).
%% Before each block: what has slept wakes, what was displaced from caches returns.
-define(WAKE, 3).
%% An echo that takes so long is timed alone; a sample of shorter ones takes at least
%% that: the clock is then some per cent of it.
-define(SAMPLE_NS, 2000).
-define(MOST_ECHOES, 1000).
-define(TRIES, 31).
%% Of the loop that does nothing, beside each block.
-define(IDLE_TRIES, 9).
-define(TABLE, ?MODULE).

%% @doc The module that knows the forms: a project of its own, found in the code path
%% when it is built, and called by this name alone.
-spec example() -> module().
example() ->
    echo.

%% @doc The flags that this node needs.
-spec flags() -> [string()].
flags() ->
    (example()):flags().

%% @doc A row for each form and size, in the order of the forms.  A form that fails
%% has an error, and the others go on.  With it: rounds that were done, what reading
%% the clock takes (ns), and the processors that other programs kept busy, which those
%% of the forms do not count as.
-spec measure(plan(), [non_neg_integer()]) ->
          #{rows := [row()], rounds := non_neg_integer(), clock_ns := number(),
            others := float() | undefined}.
measure(Plan, Sizes) ->
    %% A process that ends with all that it has opened.
    fairnif_lab_machine:apart([], fun() -> measured(Plan, Sizes) end).

measured(#{most_ms := Ms} = Plan, Sizes) ->
    %% The end of a form is that form's failure.
    process_flag(trap_exit, true),
    ?TABLE = ets:new(?TABLE, [named_table, ordered_set, private]),
    Until = now_ns() + Ms * 1000000,
    Bins = [{Size, rand:bytes(Size)} || Size <- Sizes],
    Opened = [opened(Form, Bins) || Form <- forms(Plan)],
    OsPids = lists:append([Pids || #{os_pids := Pids} <- Opened]),
    Before = fairnif_lab_machine:cpu_clock(OsPids),
    {Rounds, Left} = rounds(Plan, Opened, Until, 0),
    After = fairnif_lab_machine:cpu_clock(OsPids),
    _ = [close(Form) || Form <- Left],
    #{rows => lists:append([rows(Form, Bins) || Form <- Left]), rounds => Rounds,
      clock_ns => idle_ns(1, ?TRIES, <<>>), others => fairnif_lab_machine:others(Before, After)}.

forms(#{forms := {Module, Function}}) ->
    Module:Function();
forms(_) ->
    (example()):forms().

%% ---- before ----

%% The form with what is needed to measure it: its state and, for each size, how many
%% echoes make a sample.
opened(#{open := Open} = Form, Bins) ->
    try Open() of
        {ok, State, OsPids} -> warm(Form#{state => State, os_pids => OsPids}, Bins);
        {left_out, Why} -> Form#{left_out => text(Why)}
    catch
        Class:Reason -> failed(Class, Reason, Form)
    end.

warm(Form, Bins) ->
    try Form#{blocks => [begin
                             warm_up(Form, Bin, now_ns() + ?WARM_MS * 1000000, ?WARM_ECHOES),
                             {Size, Bin, echoes(Form, Bin)}
                         end || {Size, Bin} <- Bins]}
    catch
        Class:Reason -> failed(Class, Reason, Form)
    end.

warm_up(_, _, _, 0) ->
    ok;
warm_up(Form, Bin, Until, Left) ->
    right(Form, Bin),
    case now_ns() < Until of
        true -> warm_up(Form, Bin, Until, Left - 1);
        false -> ok
    end.

%% Every byte.
right(#{echo := Echo, state := State}, Bin) ->
    case Echo(State, Bin) of
        Bin -> ok;
        Other when is_binary(Other) ->
            error({wrong_echo, byte_size(Other), for, byte_size(Bin)});
        Other ->
            error({wrong_echo, Other})
    end.

echoes(#{echo := Echo, state := State}, Bin) ->
    One = fairnif_lab_stats:median([sample(Echo, State, Bin, 1) || _ <- lists:seq(1, ?TRIES)]),
    case One >= ?SAMPLE_NS of
        true ->
            1;
        false ->
            Ten = fairnif_lab_stats:median([sample(Echo, State, Bin, 10)
                                            || _ <- lists:seq(1, ?TRIES)]),
            min(?MOST_ECHOES, max(1, ceil(?SAMPLE_NS * 10 / max(1, Ten))))
    end.

idle_ns(Echoes, Tries, Bin) ->
    Idle = fun(_, B) -> B end,
    fairnif_lab_stats:median([sample(Idle, none, Bin, Echoes) || _ <- lists:seq(1, Tries)]).

%% ---- the rounds ----

rounds(#{rounds := Most} = Plan, Forms, Until, Done) ->
    case Done < Most andalso (Done =:= 0 orelse now_ns() < Until) of
        true ->
            %% A form does not always come after the same one.
            {Later, First} = lists:split(Done rem length(Forms), Forms),
            Went = [{Name, went(Plan, Form, Done)} || #{form := Name} = Form <- First ++ Later],
            rounds(Plan, [proplists:get_value(Name, Went) || #{form := Name} <- Forms], Until,
                   Done + 1);
        false ->
            {Done, Forms}
    end.

%% The form, or what has become of it.
went(#{samples := Samples}, #{blocks := Blocks} = Form, Round) ->
    try
        _ = [block(Form, Block, Samples, Round) || Block <- Blocks],
        Form
    catch
        Class:Reason ->
            close(Form),
            failed(Class, Reason, maps:without([state, blocks], Form))
    end;
went(_, Form, _) ->
    Form.

block(#{form := Name, echo := Echo, state := State} = Form, {Size, Bin, Echoes}, Samples,
      Round) ->
    Idle = idle_ns(Echoes, ?IDLE_TRIES, Bin),
    _ = [right(Form, Bin) || _ <- lists:seq(1, ?WAKE)],
    erlang:garbage_collect(),
    Ns = samples(Echo, State, Bin, Echoes, Samples, []),
    right(Form, Bin),
    true = ets:insert(?TABLE, {{Name, Size, Round}, [max(0, N - Idle) / Echoes || N <- Ns]}).

samples(_, _, _, _, 0, Acc) ->
    lists:reverse(Acc);
samples(Echo, State, Bin, Echoes, Left, Acc) ->
    samples(Echo, State, Bin, Echoes, Left - 1, [sample(Echo, State, Bin, Echoes) | Acc]).

sample(Echo, State, Bin, Echoes) ->
    T0 = now_ns(),
    repeat(Echo, State, Bin, Echoes),
    now_ns() - T0.

repeat(Echo, State, Bin, 1) ->
    Echo(State, Bin);
repeat(Echo, State, Bin, N) ->
    _ = Echo(State, Bin),
    repeat(Echo, State, Bin, N - 1).

%% ---- after ----

%% Whatever state it is in: what does not close ends with this process.
close(#{state := State, close := Close}) ->
    _ = try Close(State) catch _:_ -> failed end,
    ok;
close(_) ->
    ok.

rows(#{form := Name, title := Title, isolation := Isolation, published_us := Published} = Form,
     Bins) ->
    [maps:merge(#{form => Name, title => text(Title), isolation => Isolation,
                  published_us => Published, bytes => Size}, figures(Form, Size))
     || {Size, _} <- Bins].

figures(#{left_out := Why}, _) ->
    #{left_out => Why};
figures(#{error := Error}, _) ->
    #{error => Error};
figures(#{form := Name, blocks := Blocks}, Size) ->
    {_, _, Echoes} = lists:keyfind(Size, 1, Blocks),
    #{samples => lists:append(ets:select(?TABLE, [{{{Name, Size, '_'}, '$1'}, [], ['$1']}])),
      echoes_per_sample => Echoes}.

failed(Class, Reason, Form) ->
    Form#{error => text(io_lib:format("~s:~0tP", [Class, Reason, 20]))}.

text(Chardata) ->
    unicode:characters_to_binary(Chardata).

now_ns() ->
    erlang:monotonic_time(nanosecond).
