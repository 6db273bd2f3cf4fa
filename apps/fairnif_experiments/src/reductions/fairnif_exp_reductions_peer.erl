%% The part of the experiment `reductions' that runs inside its peer node: what
%% a process is charged for one call, made by compiled code and by an evaluator,
%% as a shell is one.
-module(fairnif_exp_reductions_peer).

-export([charged/2]).
%% What is called in Erlang.
-export([echo/1, replies/1, work/1]).

%% {Module, Function, Arguments}; none: what the two looks at the count cost.
-type call() :: {module(), atom(), [term()]} | none.

%% So large that no collection, which is charged too, comes between.
-define(HEAP_WORDS, 1000000).

%% @doc The reductions that a fresh process is charged for a call of one or two
%% arguments.  `compiled': the call alone, what the looks at the count cost
%% taken off.  `evaluated': with them, and all that erl_eval does meanwhile, as
%% somebody would see who types `{reductions, R0} = ..., CALL, {reductions, R1}
%% = ...' and subtracts.
-spec charged(compiled | evaluated, call()) -> integer().
charged(compiled, none) ->
    in_process(none, fun() -> compiled(none) end);
charged(compiled, Call) ->
    in_process(Call, fun() -> compiled(Call) end) - charged(compiled, none);
charged(evaluated, Call) ->
    %% The rest of a time slice is all that a NIF can say it used: so the slice
    %% is a new one.
    Source = ["erlang:yield(), {reductions, R0} = process_info(self(), reductions), ",
              text(Call),
              ", {reductions, R1} = process_info(self(), reductions), R1 - R0."],
    {ok, Tokens, _} = erl_scan:string(lists:flatten(Source)),
    {ok, Exprs} = erl_parse:parse_exprs(Tokens),
    in_process(Call, fun() ->
        {value, Charged, _} = erl_eval:exprs(Exprs, erl_eval:new_bindings()),
        Charged
    end).

%% Nothing between the looks but the call.
-define(CHARGED(Call), begin
                           {reductions, R0} = process_info(self(), reductions),
                           _ = Call,
                           {reductions, R1} = process_info(self(), reductions),
                           R1 - R0
                       end).

compiled(none) -> ?CHARGED(ok);
compiled({M, F, [A]}) -> ?CHARGED(M:F(A));
compiled({M, F, [A, B]}) -> ?CHARGED(M:F(A, B)).

text(none) ->
    "ok";
text({M, F, Args}) ->
    io_lib:format("~s:~s(~s)", [M, F, lists:join(", ", [io_lib:format("~0p", [A])
                                                        || A <- Args])]).

%% Modules are loaded, and messages there, before anything is charged.
in_process(Call, Fun) ->
    _ = [code:ensure_loaded(M) || M <- [erl_eval | [element(1, Call) || Call =/= none]]],
    fairnif_lab_machine:apart([{min_heap_size, ?HEAP_WORDS}],
                              fun() ->
                                      prepare(Call),
                                      erlang:yield(),
                                      Fun()
                              end).

prepare({?MODULE, replies, [N]}) ->
    Me = self(),
    {Pid, Monitor} = spawn_monitor(fun() -> [Me ! {reply, I} || I <- lists:seq(1, N)] end),
    %% Behind all messages of the same sender; looking for it has moved them to
    %% where the next receive finds them.
    receive {'DOWN', Monitor, process, Pid, normal} -> ok end;
prepare(_) ->
    ok.

%% ---- what is called ----

%% @doc Its argument.
-spec echo(T) -> T.
echo(Term) -> Term.

%% @doc Receives so many messages that are there already.
-spec replies(non_neg_integer()) -> ok.
replies(0) -> ok;
replies(N) -> receive {reply, _} -> replies(N - 1) end.

%% @doc Ordinary Erlang work until so many microseconds of the wall's time are
%% over.
-spec work(non_neg_integer()) -> ok.
work(Us) -> work_until(erlang:monotonic_time(microsecond) + Us).

work_until(Until) ->
    _ = fairnif_lab_share:work(sort),
    case erlang:monotonic_time(microsecond) < Until of
        true -> work_until(Until);
        false -> ok
    end.
