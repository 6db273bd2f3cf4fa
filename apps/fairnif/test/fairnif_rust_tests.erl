%% The Rust crate in the VM, beside rustler's functions in one library (rust/tests/nif). Skipped,
%% aloud, where there is no cargo, or an older one than the crate wants.
-module(fairnif_rust_tests).

-include_lib("eunit/include/eunit.hrl").

-export([built/0, sleep_forever/1, call_with_large_tag/0]).

-define(T, fairnif_test_rust).
-define(BANANAS, binary:copy(<<"banana">>, 200000)).

rust_test_() ->
    {setup, fun built/0,
     fun(built) -> {timeout, 300, [{Name, {timeout, 60, Test}} || {Name, Test} <- tests()]};
        ({skipped, Why}) -> ?debugFmt("skipped: ~ts", [Why]), []
     end}.

tests() ->
    [{"an async function counts the same in every mode, and yields", fun modes/0},
     {"values go both ways, binaries without a copy", fun values/0},
     {"what is no argument is badarg, as in rustler", fun badarg/0},
     {"errors are what they are in rustler", fun errors/0},
     {"a panic is the same error as rustler's, and leaves nothing", fun panics/0},
     {"an iterator ticks for its caller; a callback may tick where it stands", fun iterators/0},
     {"a future is dropped once, on no normal scheduler, wherever its caller's death finds it",
      fun killed/0},
     {"it waits for times, descriptors, closures and other threads", fun waits/0},
     {"a crate that knows its thread's stack recurses on it, and on more", fun deep_recursion/0},
     {"a function that is not awaited cannot wait, and drops what it has", fun not_awaited/0},
     {"a body is a process that serves calls and casts", fun process/0},
     {"a reply survives that its receiver's tag is copied elsewhere", fun large_tag/0},
     {"the process that the guide shows", fun of_the_guide/0},
     {"a library that is loaded without load_info says what to call", fun forgotten/0},
     {"messages come by tag and in order, or not in time", fun receives/0},
     {"messages are sent to whom a term names", fun sends/0},
     {"Erlang's functions answer and raise as if called here", fun applies/0},
     {"a receive is joined and selected with others", fun joins/0},
     {"what safe code keeps, forgets or sends elsewhere does no harm", fun kept/0},
     {"five hundred calls at once", fun many/0},
     {"a call continues while its library is loaded again and again", fun reloaded/0},
     {"a purge ends its calls, and the library is loaded again", fun purged/0}].

%% -- the library -------------------------------------------------------------

built() ->
    ok = fairnif_test:build(),
    Rust = filename:join(fairnif_test:source_dir(), "../../../rust"),
    case wanting(Rust) of
        none -> build(Rust);
        Why -> {skipped, Why}
    end.

wanting(Rust) ->
    case os:find_executable("cargo") of
        false ->
            "there is no cargo";
        _ ->
            {ok, Text} = file:read_file(filename:join(Rust, "Cargo.toml")),
            {match, [Least]} = re:run(Text, "rust-version = \"([0-9.]+)\"",
                                      [{capture, all_but_first, list}]),
            Version = string:trim(os:cmd("rustc --version")),
            case number(Version) >= number(Least) of
                true -> none;
                false -> Version ++ ", Rust " ++ Least ++ " is needed"
            end
    end.

number(Text) ->
    {match, Parts} = re:run(Text, "([0-9]+)[.]([0-9]+)", [{capture, all_but_first, list}]),
    [list_to_integer(Part) || Part <- Parts].

%% A library that is loaded is not written to: what it has in memory would go with the file.
build(Rust) ->
    Library = fairnif_test:library(?T) ++ ".so",
    Target = filename:join(filename:dirname(Library), "rust"),
    Command = lists:flatten(
                io_lib:format("cargo build --release --quiet -p fairnif_rust_test "
                              "--manifest-path '~ts/Cargo.toml' --target-dir '~ts' 2>&1 "
                              "&& new='~ts/release/libfairnif_rust_test.so' to='~ts' "
                              "&& { cmp -s \"$new\" \"$to\" "
                              "|| { cp \"$new\" \"$to.new\" && mv \"$to.new\" \"$to\"; }; } "
                              "&& echo built",
                              [Rust, Target, Target, Library])),
    Output = os:cmd(Command),
    case string:find(Output, "built", trailing) of
        "built" ++ _ -> built;
        _ -> error({cargo, Command, Output})
    end.

%% -- results -----------------------------------------------------------------

modes() ->
    Count = 3 * 200000,
    [begin
         ?assertEqual(Count, fairnif:await(?T:F(?BANANAS, $a)), F),
         ?assertEqual(0, fairnif:await(?T:F(<<>>, $a)))
     end || F <- [count, count_normal, count_dirty_cpu, count_dirty_io, count_threaded,
                  count_awaited, count_no_yield, count_small, 'count another']],
    Large = binary:copy(?BANANAS, 20),
    ?assertEqual(20 * Count, ?T:count(Large, $a)),
    ?assertMatch(#{yields := Yields, flags := [cleanup], mode := auto, cleanups := 0}
                     when Yields >= 5, fairnif:info({?T, count, 2})),
    ?assertMatch(#{slice_ns := 50000, stack_size := 65536, max_tasks := 2},
                 fairnif:info({?T, count_small, 2})),
    ok = fairnif:debug(#{pause_every_tick => true, check_terms => true}),
    try
        ?assertEqual(Count, ?T:count(?BANANAS, $a))
    after
        ok = fairnif:debug(#{pause_every_tick => false, check_terms => false})
    end.

values() ->
    [?assertEqual(B, ?T:echo(B)) || B <- [<<>>, <<"short">>, ?BANANAS]],
    <<_:3, Odd:100000/binary, _/bitstring>> = ?BANANAS,
    ?assertEqual(Odd, ?T:echo(Odd)),
    ?assertEqual(?BANANAS, ?T:exor(?T:exor(?BANANAS, 17), 17)),
    ?assertEqual({a, [3, 2, 1], #{x => 2.0, y => 1.0}},
                 ?T:turned(#{x => 1.0, y => 2.0}, a, {<<"s">>, [1, 2, 3]})),
    ?assertEqual({}, ?T:nothing()),
    [begin
         Zeros = <<0:Size/unit:8, "end">>,
         <<_, Rest/binary>> = Zeros,
         ?assertEqual({Zeros, Zeros, Zeros, <<1, Rest/binary>>}, ?T:rewritten(Size))
     end || Size <- [1, 60, 100, 100000]],
    ?assertEqual(5, ?T:plain(2, 3)),
    ?assertEqual({1, 2, 7, 4}, {?T:body(1), ?T:enter(2), ?T:task(3, 4), ?T:args(4)}).

badarg() ->
    [?assertError(badarg, ?T:count(A, B)) || {A, B} <- [{a, 1}, {<<>>, a}, {<<1:3>>, 1}]],
    ?assertError(badarg, ?T:plain(a, 1)).

errors() ->
    Outcome = fun(F, Arg) ->
                      try {value, ?T:F(Arg)} catch Class:Reason -> {Class, Reason} end
              end,
    [?assertEqual(Outcome(fails_as_theirs, How), Outcome(fails, How))
     || How <- [<<"badarg">>, <<"atom">>, <<"raise_atom">>, <<"term">>, <<"raise">>, <<"none">>]],
    ?assertEqual({error, badarg}, Outcome(fails, <<"badarg">>)),
    ?assertEqual({error, an_atom}, Outcome(fails, <<"raise_atom">>)),
    ?assertEqual({error, {1, <<"two">>}}, Outcome(fails, <<"raise">>)),
    ?assertMatch({_, _}, Outcome(fails, <<"io">>)),
    ?assertEqual({ok, 7}, ?T:fails_as_a_term(true)),
    ?assertEqual({error, <<"no">>}, ?T:fails_as_a_term(false)).

panics() ->
    Reason = fun(F) -> try F() of V -> {value, V} catch error:R -> R end end,
    Theirs = Reason(fun() -> ?T:plain_panics() end),
    [?assertEqual(Theirs, Reason(fun() -> ?T:panics(Ticks) end)) || Ticks <- [0, 100000]],
    ?assertEqual(Theirs, Reason(fun() -> fairnif:await(?T:offloads_a_panic()) end)),
    ?assertEqual([], fairnif:tasks()).

iterators() ->
    ?assertEqual(100000, ?T:lines(binary:copy(<<"line\n\n">>, 100000))),
    Numbers = [erlang:phash2(N) || N <- lists:seq(1, 50000)],
    ?assertEqual(lists:sort(Numbers), ?T:sorted(Numbers)),
    ?assert(?T:threads_of(1000000) >= 1).

%% -- the caller dies ---------------------------------------------------------

killed() ->
    ?T:reset_guards(),
    ?assertEqual(7, ?T:ends()),
    ?assertEqual({1, 1, 1}, ?T:guards()),
    [killed(F, How, Guards)
     || F <- [lasts, lasts_dirty, lasts_threaded],
        {How, Guards} <- [{<<"ticks">>, 2}, {<<"ticks_here">>, 2 + 11}, {<<"swallows">>, any},
                          {<<"sleeps">>, 2}, {<<"reads">>, 2}, {<<"both">>, 2}, {<<"pends">>, 2},
                          {<<"receives">>, 2}, {<<"receives_both">>, 2}, {<<"applies">>, 2},
                          {<<"offloads">>, 2}, {<<"offloads_dirty">>, 2}]].

killed(F, How, Guards) ->
    ?T:reset_guards(),
    {Pid, Monitor} = spawn_monitor(fun() -> fairnif:await(?T:F(How)) end),
    fairnif_test:eventually(fun() -> element(1, ?T:guards()) >= 2 end),
    timer:sleep(5),
    exit(Pid, kill),
    receive {'DOWN', Monitor, process, Pid, _} -> ok end,
    fairnif_test:eventually(
      fun() ->
              case ?T:guards() of
                  {N, N, 0} when Guards =:= any; N =:= Guards ->
                      fairnif:tasks() =:= [] orelse fairnif:tasks();
                  Other ->
                      {F, How, Other}
              end
      end).

%% -- waiting -----------------------------------------------------------------

waits() ->
    [?assertEqual(20, fairnif:await(?T:F(20))) || F <- [sleeps, sleeps_threaded]],
    ?assertEqual(3000000, fairnif:await(?T:pumps(3000000))),
    ?assertEqual(<<"sleep">>, fairnif:await(?T:first(10, 2000))),
    ?assertEqual(<<"read">>, fairnif:await(?T:first(20000, 10))),
    ?assertEqual(500 * 501 div 2, fairnif:await(?T:hears(500))),
    ?assertEqual(1000 * 1001 div 2, fairnif:await(?T:sleeps_many(1000))),
    %% As enif_thread_type/0 has it.
    [?assertEqual(Kind, fairnif:await(?T:runs_on(Place)))
     || {Place, Kind} <- [{<<"normal">>, 1}, {<<"dirty_cpu">>, 2}, {<<"dirty_io">>, 3},
                          {<<"threaded">>, 0}]].

%% Of 100 MB: crate stacker continues on stacks of its own before the thread's ends.
deep_recursion() ->
    [?assertEqual(100000, fairnif:await(?T:F(100000))) || F <- [digs, digs_threaded], _ <- [1, 2]].

not_awaited() ->
    ?T:reset_guards(),
    ?assertError({fairnif, {not_awaited, {?T, sleeps_unawaited, 1}}}, ?T:sleeps_unawaited(10)),
    ?assertMatch({1, 1, _}, ?T:guards()).

%% -- messages ----------------------------------------------------------------

%% For a body to call.
sleep_forever(ok) -> timer:sleep(infinity).

process() ->
    [process(Nif) || Nif <- [fun ?T:keeper/1, fun ?T:keeper_threaded/1]].

process(Nif) ->
    ?T:reset_guards(),
    {ok, Pid} = fairnif_process:start_link(Nif, [[<<"a">>]], []),
    ?assertEqual([<<"a">>], gen_server:call(Pid, all)),
    ok = gen_server:cast(Pid, {add, ?BANANAS}),
    [ok = gen_server:cast(Pid, Nonsense) || Nonsense <- [nonsense, {add, 1}]],
    Pid ! nonsense,
    ?assertEqual(?BANANAS, gen_server:call(Pid, ?BANANAS)),
    ?assertEqual([<<"a">>, ?BANANAS], gen_server:call(Pid, all)),
    ?assertEqual({ok, 2}, gen_server:call(Pid, stop)),
    %% What it raises ends it, and its death drops it.
    {ok, Other} = fairnif_process:start(Nif, [[]], []),
    quietly(fun() -> ?assertExit({{badarg, _}, _}, gen_server:call(Other, 17)) end),
    {ok, Third} = fairnif_process:start(Nif, [[<<"a">>]], []),
    exit(Third, kill),
    fairnif_test:eventually(fun() -> {B, D, _} = ?T:guards(), {3, 3} =:= {B, D} orelse {B, D} end).

%% What a process does not own any more is unmapped in this node. The reply was copied when its
%% tag is, on another scheduler.
large_tag() ->
    Peer = fairnif_test:peer(["+MHsbct", "1", "+MHrsbcst", "0", "+MHsmbcs", "0", "+MMmcs", "0"],
                             [?T, ?MODULE]),
    ?assertEqual(ok, fairnif_test:call(Peer, ?MODULE, call_with_large_tag, [])),
    fairnif_test:stop(Peer).

call_with_large_tag() ->
    All = [binary:copy(<<I:16>>, 50) || I <- lists:seq(1, 450)],
    {ok, Pid} = fairnif_process:start_link(fun ?T:keeper/1, [All], []),
    Numbers = lists:seq(1, 30000),
    Tag = fun() -> Numbers end,
    [begin
         Pid ! {'$gen_call', {self(), Tag}, all},
         receive {Tag, Reply} -> All = Reply end
     end || _ <- lists:seq(1, 20)],
    ok.

of_the_guide() ->
    [{ok, Page}, {ok, Source}] =
        [file:read_file(filename:join([fairnif_test:source_dir(), "../../..", Path]))
         || Path <- ["docs/guide/rust.md", "rust/tests/nif/src/guide.rs"]],
    ?assertNotEqual(nomatch, string:find(Page, ["```rust\n", Source, "```\n"])),
    {ok, Pid} = fairnif_process:start_link(fun ?T:nif_counter/1, [1], []),
    ?assertEqual(4, gen_server:call(Pid, {add, 3})),
    Pid ! nonsense,
    ?assertEqual(ok, gen_server:call(Pid, stop)).

%% In a node of its own: this one has the module.
forgotten() ->
    Library = fairnif_test:library(?T),
    File = filename:join(fairnif_test:source_dir(), "fairnif_test_rust.erl"),
    {ok, Source} = file:read_file(File),
    Dir = filename:join(filename:dirname(Library), "forgotten"),
    ok = filelib:ensure_path(Dir),
    ok = file:write_file(filename:join(Dir, "fairnif_test_rust.erl"),
                         re:replace(Source, "fairnif:loaded[(]erlang:load_nif.*",
                                    ["erlang:load_nif(\"", Library, "\", 0)."])),
    Stubs = filename:absname(filename:dirname(code:which(fairnif_test_stubs))),
    Said = os:cmd("cd '" ++ Dir ++ "' && erlc -pa '" ++ Stubs ++ "' fairnif_test_rust.erl && "
                  "erl -noshell -eval 'code:load_file(fairnif_test_rust), halt().'"),
    [?assertNotEqual({nomatch, Said}, {string:find(Said, Word), Said})
     || Word <- ["fairnif_test_rust:", "fairnif:load_info()"]].

quietly(Fun) ->
    #{level := Level} = logger:get_primary_config(),
    ok = logger:set_primary_config(level, none),
    try Fun() after logger:set_primary_config(level, Level) end.

%% In a process of its own: this one has got other messages.
apart(Fun) ->
    {Pid, Monitor} = spawn_monitor(Fun),
    receive {'DOWN', Monitor, process, Pid, Why} -> ?assertEqual(normal, Why) end.

receives() ->
    apart(fun() ->
                  [self() ! Message || Message <- [{second, <<"2">>}, {first, <<"1">>}]],
                  ?assertEqual([<<"none">>, <<"1">>, <<"none">>, <<"2">>, <<"none">>, <<"none">>],
                               fairnif:await(?T:receives(make_ref(), first)))
          end),
    ?T:reset_guards(),
    [?assertError({fairnif, {not_awaited, {?T, F, 0}}}, ?T:F())
     || F <- [receives_unawaited, sends_unawaited]],
    ?assertMatch({2, 2, _}, ?T:guards()).

sends() ->
    Self = self(),
    Tag = make_ref(),
    To = spawn_link(fun() -> Self ! {Tag, [receive Message -> Message end || _ <- [1, 2]]} end),
    ?assert(fairnif:await(?T:sends(To, ?BANANAS))),
    receive {Tag, Came} -> ?assert(Came =:= [?BANANAS, {mine, 1}]) end.

applies() ->
    Apply = fun(How, Arg) -> fairnif:await(?T:applies(How, Arg)) end,
    ?T:reset_guards(),
    ?assertEqual(6, Apply(<<"sum">>, none)),
    ?assertEqual(self(), Apply(<<"none">>, none)),
    Dead = spawn(fun() -> ok end),
    ?assertMatch({'DOWN', _, process, Dead, _}, Apply(<<"monitor">>, Dead)),
    ?assertEqual(true, Apply(<<"link">>, self())),
    ?assertEqual({a, "reason"}, Apply(<<"caught">>, {a, "reason"})),
    ?assertError({a, "reason"}, Apply(<<"error">>, {a, "reason"})),
    ?assertError({throw, [1, 2]}, Apply(<<"throw">>, [1, 2])),
    ?assertError(noproc, Apply(<<"link">>, Dead)),
    ?assertError(undef, Apply(<<"no_such_function">>, 1)),
    ?assertMatch({9, 9, _}, ?T:guards()).

joins() ->
    apart(fun() ->
                  _ = erlang:send_after(1000, self(), {a, <<"message">>}),
                  ?assertEqual({<<"sleep">>, <<"message">>}, fairnif:await(?T:first_of(1))),
                  _ = [self() ! {a, Text} || Text <- [<<"1">>, <<"2">>]],
                  ?assertEqual({<<"1">>, <<"2">>}, fairnif:await(?T:first_of(20000)))
          end),
    Self = self(),
    {Pid, Monitor} = spawn_monitor(fun() -> exit(fairnif:await(?T:joins(Self))) end),
    Pid ! {a, <<"first">>},
    receive go -> ok end,
    [Pid ! Message || Message <- [{done, <<"tagged">>}, {a, <<"second">>}]],
    receive {'DOWN', Monitor, process, Pid, Seen} -> ok end,
    ?assertEqual([<<"first">>, <<"read">>, <<"answer">>, <<"slept">>, <<"second">>, <<"tagged">>],
                 lists:sublist(Seen, 4) ++ lists:sort(lists:nthtail(4, Seen))),
    apart(fun() ->
                  _ = erlang:send_after(20, self(), {a, <<"message">>}),
                  ?assertEqual(<<"message">>, fairnif:await(?T:ticks_beside())),
                  self() ! {a, <<"returned">>},
                  ?assertEqual(<<"returned">>, fairnif:await(?T:drops_one()))
          end).

%% -- what is kept ------------------------------------------------------------

kept() ->
    ?assertEqual(2000, ?T:ticks_by_a_static(1000)),
    ?assertEqual(byte_size(?BANANAS), ?T:forgets(?BANANAS)),
    ?assertEqual(1, ?T:keeps(<<1, 2, 3>>)),
    ?assertEqual(2, ?T:keeps(binary:copy(<<1>>, 1000))),
    erlang:garbage_collect(),
    ?assertEqual(1006, ?T:kept()),
    ?assertEqual(true, fairnif:await(?T:begins())),
    ?assertEqual(7, fairnif:await(?T:resumes())),
    ?assertEqual(0, fairnif:await(?T:resumes())),
    ?assertEqual([], fairnif:tasks()).

many() ->
    Call = fun(N) when N rem 3 =:= 0 -> 1 = fairnif:await(?T:sleeps(1));
              (N) when N rem 3 =:= 1 -> 55 = fairnif:await(?T:hears(10));
              (_) -> 600000 = fairnif:await(?T:count_awaited(?BANANAS, $a))
           end,
    Monitors = [element(2, spawn_monitor(fun() -> Call(N) end)) || N <- lists:seq(1, 500)],
    [?assertEqual(normal, fairnif_test:down(Monitor)) || Monitor <- Monitors],
    ?assertEqual([], fairnif:tasks()).

%% rustler has no upgrade: the old code goes first.  Its call stays, in fairnif:await/1.
reloaded() ->
    {_, Monitor} = spawn_monitor(fun() -> exit(fairnif:await(?T:sleeps(3000))) end),
    fairnif_test:eventually(fun() -> length(fairnif:tasks()) =:= 1 end),
    [begin
         true = code:delete(?T),
         true = code:soft_purge(?T),
         {module, ?T} = code:load_file(?T),
         ?assertEqual(3, ?T:count(<<"banana">>, $a)),
         ?assertEqual(1, fairnif:await(?T:sleeps(1)))
     end || _ <- lists:seq(1, 10)],
    ?assertEqual(3000, fairnif_test:down(Monitor)).

purged() ->
    ?assertNot(?T:loads_again(fairnif:load_info())),
    ?T:reset_guards(),
    {Pid, Monitor} = spawn_monitor(fun() -> fairnif:await(?T:lasts(<<"ticks">>)) end),
    fairnif_test:eventually(fun() -> element(1, ?T:guards()) =:= 2 end),
    fairnif_test:eventually(fun() -> fairnif:tasks() =/= [] end),
    true = code:delete(?T),
    _ = code:purge(?T),
    receive {'DOWN', Monitor, process, Pid, Why} -> ?assertEqual(killed, Why) end,
    fairnif_test:eventually(fun() -> fairnif:tasks() =:= [] end),
    ?assertEqual(3, ?T:count(<<"banana">>, $a)).
