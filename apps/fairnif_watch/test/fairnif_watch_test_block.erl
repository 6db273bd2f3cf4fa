%% Blocks schedulers, in a peer node that is watched, and says what was seen meanwhile.
%%
%% A keeper process holds the watch and collects its messages from start/1 to stop/0; observe/1
%% makes one observation: who blocked what, for how long by the blocker's own clock, and every
%% finding of that time. It judges nothing: fairnif_watch_SUITE does, in another node.
-module(fairnif_watch_test_block).

-export([start/1, stop/0, observe/1, garbage/2, seen/0, subject/1, is/2]).

-define(NIF, fairnif_watch_block_nif).
-define(STRIPPED, fairnif_watch_block_stripped).
-define(FAIR, fairnif_watch_block_fair).
-define(DRV, fairnif_watch_block_drv).
%% How long findings may take to come to their end after the blockers'; ms.
-define(SETTLE, 5000).
%% Of those that are queued; ms.
-define(MOMENT, 20).

%% -- what blocks -------------------------------------------------------------

%% @doc What blocks, and what the finding's culprit is: for each key a value, {contains, Texts} (one
%% of them) or {any, Values}. `call' takes ms and what `prepare' answered.
subject({fair, Function}) ->
    #{call => fun(Ms, _) -> ?FAIR:Function(Ms) end,
      culprit => #{kind => fairnif, mfa => {?FAIR, Function, 1}, module => ?FAIR}};
subject({plain, vfork}) ->
    %% Where it came from is in a register that a sleeping thread does not show.
    #{call => fun(Ms, _) -> ?NIF:vfork(Ms) end, culprit => #{syscall => vfork}};
subject({plain, Function}) when Function =:= machine; Function =:= machine_named ->
    %% No file has that code, and it leads nowhere.
    #{call => fun(Ms, _) -> ?NIF:Function(Ms) end,
      culprit => #{kind => none, name => <<"code that belongs to no file">>}};
subject({plain, Function}) ->
    plain(?NIF, Function, names(?NIF, Function));
subject({stripped, Function}) ->
    plain(?STRIPPED, Function, [nif(?STRIPPED, Function)]);
subject({driver, Operation}) ->
    #{call => fun(Ms, _) -> driver(Operation, Ms) end,
      culprit => #{kind => driver, library => {contains, [<<"fairnif_watch_block_drv">>]}}};
subject(mod_pow) ->
    %% A NIF of OTP's, in a library of OTP's, on a normal scheduler in every release.
    #{prepare => fun(Ms) -> rounds(fun mod_pow/1, 2000, Ms) end,
      call => fun(_, Bits) -> timed(fun() -> mod_pow(Bits) end) end,
      culprit => #{kind => nif, library => {contains, [<<"crypto.so">>]}, module => crypto}};
%% C of the emulator, which compares in one go in every release: called by compiled code, and by a
%% BIF.
subject(compare) ->
    emulator(fun(N) -> true = trees(N) =:= trees(N) end, 10);
subject(member) ->
    emulator(fun(N) -> true = lists:member(trees(N), [trees(N)]) end, 10).

%% @doc Is that value of a culprit the one expected?
is({contains, Texts}, Value) ->
    is_binary(Value) andalso binary:match(Value, Texts) =/= nomatch;
is({any, Values}, Value) ->
    lists:member(Value, Values);
is(Wanted, Value) ->
    Wanted =:= Value.

emulator(Fun, Some) ->
    #{prepare => fun(Ms) -> rounds(Fun, Some, Ms) end,
      call => fun(_, N) -> timed(fun() -> Fun(N) end) end,
      culprit => #{kind => {any, [bif, emulator]}, library => {contains, [<<"beam">>]}}}.

%% Shared when they are made, but compared as if they were not: 4096 leaves each.
trees(N) ->
    list_to_tuple(lists:duplicate(N, tree(12))).

tree(0) -> {};
tree(Depth) -> Tree = tree(Depth - 1), {Tree, Tree}.

plain(Module, Function, Names) ->
    #{call => fun(Ms, _) -> Module:Function(Ms) end,
      culprit => #{kind => nif, module => Module, library => {contains, [atom_to_binary(Module)]},
                   name => {contains, Names}}}.

%% The NIF, from its table. 32 KiB of stack is all that is copied: where that does not reach it,
%% what is found is the library's outermost function before that.
names(Module, deep) -> [nif(Module, deep), <<"way_down (">>];
names(Module, Function) -> [nif(Module, Function)].

nif(Module, Function) ->
    list_to_binary(io_lib:format("~s:~s/1", [Module, Function])).

driver(Operation, Ms) ->
    _ = erl_ddll:load_driver(fairnif_watch_test:out_dir(), ?DRV),
    Port = open_port({spawn_driver, ?DRV}, []),
    <<Since:64/signed, Until:64/signed>> = port_control(Port, Operation, integer_to_list(Ms)),
    port_close(Port),
    {Since, Until, 0}.

mod_pow(Bits) ->
    crypto:mod_pow(3, 1 bsl Bits - 1, 1 bsl 4096 - 1).

timed(Fun) ->
    Since = now_ns(),
    _ = Fun(),
    {Since, now_ns(), 0}.

%% How many rounds take that many ms; the fastest of three, as other programs only add.
rounds(Fun, Some, Ms) ->
    Ns = lists:min([took(fun() -> Fun(Some) end) || _ <- [1, 2, 3]]),
    max(1, Some * Ms * 1000000 div Ns).

took(Fun) ->
    {Since, Until, 0} = timed(Fun),
    max(1, Until - Since).

%% -- the keeper --------------------------------------------------------------

%% @doc Starts the watch with this configuration, until stop/0.
start(Config) ->
    Me = self(),
    {Keeper, Monitor} =
        spawn_monitor(fun() ->
                              true = register(?MODULE, self()),
                              {ok, _} = application:ensure_all_started(crypto),
                              Started = fairnif_watch:start(Config),
                              {ok, _} = fairnif_watch:subscribe(self()),
                              Me ! {self(), Started},
                              keep(#{})
                      end),
    receive
        {Keeper, Started} -> erlang:demonitor(Monitor, [flush]), Started;
        {'DOWN', Monitor, process, _, Why} -> error(Why)
    end.

stop() ->
    Monitor = monitor(process, ?MODULE),
    ?MODULE ! stop,
    receive {'DOWN', Monitor, process, _, _} -> ok end.

%% Of each finding when it first came and what it then said, and the latest version.
keep(Seen) ->
    receive
        {fairnif_watch, _, {finding, #{id := Id} = Finding}} ->
            First = case Seen of
                        #{Id := {Was, _}} -> Was;
                        _ -> {now_ns(), Finding}
                    end,
            keep(Seen#{Id => {First, Finding}});
        {fairnif_watch, _, {view, _}} ->
            keep(Seen);
        {From, forget} ->
            From ! {self(), ok},
            keep(maps:filter(fun(_, {_, #{ongoing := Ongoing}}) -> Ongoing end, Seen));
        {From, seen} ->
            From ! {self(), Seen},
            keep(Seen);
        stop ->
            fairnif_watch:stop()
    end.

ask(What) ->
    Keeper = whereis(?MODULE),
    Keeper ! {self(), What},
    receive {Keeper, Answer} -> Answer end.

%% @doc The latest version of each finding since start/1, or since the last observation began.
seen() ->
    [Finding#{received_ns => Ns, first => First}
     || {_, {{Ns, First}, Finding}} <- lists:sort(maps:to_list(ask(seen)))].

%% -- an observation ----------------------------------------------------------

%% @doc `blockers' processes block schedulers of `kind' for `ms', each bound to one of them where
%% `kind' is normal; soon after them come as many as `queued' says, for a moment each. What is
%% answered: `answers' of all, `findings' of that time, the `view' afterwards, and that time itself.
observe(#{subject := Name, kind := Kind, blockers := N, ms := Ms} = Case) ->
    #{call := Call} = Subject = subject(Name),
    Prepared = case Subject of
                   #{prepare := Prepare} -> Prepare(Ms);
                   _ -> none
               end,
    _ = over(),
    ok = ask(forget),
    Old = [Id || #{id := Id} <- seen()],
    T0 = now_ns(),
    Answers = blocked(Kind, lists:duplicate(N, {50, fun() -> Call(Ms, Prepared) end})
                      ++ lists:duplicate(maps:get(queued, Case, 0),
                                         {100, fun() -> Call(?MOMENT, Prepared) end})),
    T1 = now_ns(),
    Settled = settled(),
    #{answers => Answers, began_ns => T0, ended_ns => T1, settled => Settled,
      system_us => erlang:time_offset(microsecond),
      findings => [F || #{id := Id} = F <- seen(), not lists:member(Id, Old)],
      view => fairnif_watch:view()}.

%% @doc What is found when an object's destructor blocks for `ms': a process makes one of `Module'
%% and ends.
garbage(Module, Ms) ->
    _ = Module:module_info(),
    _ = over(),
    ok = ask(forget),
    {Pid, Monitor} = spawn_monitor(fun() -> [Module:object(Ms)] end),
    receive {'DOWN', Monitor, process, Pid, _} -> ok end,
    timer:sleep(Ms),
    #{settled => settled(), findings => seen()}.

blocked(Kind, Blocks) ->
    Me = self(),
    Now = erlang:monotonic_time(millisecond),
    Blockers =
        [begin
             {Pid, Monitor} = spawn_opt(fun() -> blocker(Me, Fun) end,
                                        [monitor | bound(Kind, I)]),
             _ = erlang:start_timer(Now + In, Pid, go, [{abs, true}]),
             {Pid, Monitor, I}
         end || {I, {In, Fun}} <- lists:zip(lists:seq(1, length(Blocks)), Blocks)],
    [receive
         {Pid, Answer} -> erlang:demonitor(Monitor, [flush]), Answer#{pid => Pid, number => I};
         {'DOWN', Monitor, process, _, Why} -> error(Why)
     end || {Pid, Monitor, I} <- Blockers].

bound(normal, I) -> [{scheduler, I}];
bound(_, _) -> [].

blocker(To, Fun) ->
    receive {timeout, _, go} -> ok end,
    {Since, Until, Interrupted} = Fun(),
    To ! {self(), #{since => Since, until => Until, interrupted => Interrupted}}.

%% Waits until no finding of a block lasts, nor of one that has just ended; answers whether that
%% came.
settled() ->
    timer:sleep(200),
    over().

over() ->
    over(erlang:monotonic_time(millisecond) + ?SETTLE).

over(Deadline) ->
    Ongoing = [F || #{ongoing := true} = F <- seen()],
    case {Ongoing, erlang:monotonic_time(millisecond) > Deadline} of
        {[], _} -> true;
        {_, true} -> {still, Ongoing};
        {_, false} -> timer:sleep(50), over(Deadline)
    end.

now_ns() ->
    erlang:monotonic_time(nanosecond).
