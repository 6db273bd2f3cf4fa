%% The part of the experiment `levenshtein' that runs inside its peer nodes: the
%% forms of the example `levenshtein', how many calls a second one process makes,
%% and how late others are beside endless callers.
-module(fairnif_exp_levenshtein_peer).

-export([example/0, rates/3, jitter/3]).

%% However slow a form is, its calls of one length take about so long together.
-define(PATIENCE_MS, 4000).

%% @doc The module whose forms are called: a project of its own, found in the
%% code path when it is built, and called by this name alone.
-spec example() -> module().
example() ->
    levenshtein.

%% @doc Calls per second of each form on two binaries of Length random bytes,
%% one process calling: so many rounds of Ms milliseconds each, form after form,
%% so that what else the machine does hits all alike.  Of a call that takes
%% longer than that fewer rounds, at least one.  All forms give the same answer,
%% or it is an error `{differ, ...}'.
-spec rates([atom()], pos_integer(), {Ms :: pos_integer(), Rounds :: pos_integer()}) ->
          [{atom(), [float()]}].
rates(Forms, Length, {Ms, Rounds}) ->
    {A, B} = {rand:bytes(Length), rand:bytes(Length)},
    First = [{Form, timer:tc(fun() -> call(Form, A, B) end)} || Form <- Forms],
    case lists:usort([Distance || {_, {_, Distance}} <- First]) of
        [_] -> ok;
        _ -> error({differ, First})
    end,
    Samples = [{Form, per_second(Form, A, B, Ms)}
               || Round <- lists:seq(1, Rounds), {Form, {Us, _}} <- First,
                  Round =:= 1 orelse Round * max(Ms, Us div 1000) =< ?PATIENCE_MS],
    [{Form, [Rate || {F, Rate} <- Samples, F =:= Form]} || Form <- Forms].

per_second(Form, A, B, Ms) ->
    From = erlang:monotonic_time(nanosecond),
    Calls = calls(Form, A, B, From + Ms * 1000000, 1, 0),
    Calls * 1.0e9 / (erlang:monotonic_time(nanosecond) - From).

%% The clock is read after batches, which grow while they are short.
calls(Form, A, B, Until, Batch, Done) ->
    Example = example(),
    repeat(Example, Form, A, B, Batch),
    case erlang:monotonic_time(nanosecond) of
        Now when Now >= Until -> Done + Batch;
        Now -> calls(Form, A, B, Until, next_batch(Batch, Done, Until - Now), Done + Batch)
    end.

%% Only while as much again is a small part of what is left.
next_batch(Batch, Done, LeftNs) when Done >= 8 * Batch, LeftNs > 5000000, Batch < 1024 ->
    2 * Batch;
next_batch(Batch, _, _) ->
    Batch.

repeat(_, _, _, _, 0) ->
    ok;
repeat(Example, Form, A, B, N) ->
    _ = Example:Form(A, B),
    repeat(Example, Form, A, B, N - 1).

%% @doc How late a sleeper is beside endless callers of a form, as many as there
%% are schedulers, on a binary of zeros and one of ones of Length bytes; `idle'
%% is beside nothing.  Does not return where the callers leave no scheduler to
%% anybody.
-spec jitter(atom(), pos_integer(), fairnif_lab_delay:options()) -> fairnif_lab_delay:result().
jitter(idle, _, Opts) ->
    fairnif_lab_delay:measure(Opts);
jitter(Form, Length, Opts) ->
    {A, B} = {binary:copy(<<0>>, Length), binary:copy(<<1>>, Length)},
    _ = code:ensure_loaded(example()),
    Caller = fun() -> forever(Form, A, B) end,
    fairnif_lab_delay:beside(lists:duplicate(erlang:system_info(schedulers_online), Caller), Opts).

-spec forever(atom(), binary(), binary()) -> no_return().
forever(Form, A, B) ->
    _ = call(Form, A, B),
    forever(Form, A, B).

call(Form, A, B) ->
    Example = example(),
    Example:Form(A, B).
