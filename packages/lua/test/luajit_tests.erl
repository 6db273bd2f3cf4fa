%% What luajit promises: values both ways, errors, functions of Erlang's, limits; a caller can be
%% killed; and a VM that stays usable meanwhile. Attacks are in luajit_sandbox_tests.
-module(luajit_tests).

-include_lib("proper/include/proper.hrl").
-include_lib("eunit/include/eunit.hrl").

-import(luajit, [new/0, new/1, call/3]).
-import(example_test, [eventually/1, holds/2, beside/1, least_gap/1, begun/1, kill_task_after/2,
                       on_one_scheduler/1, with_pauses/1]).

state() ->
    state(#{}).

state(Options) ->
    {ok, State} = new(Options),
    State.

%% As luajit:eval: proper imports a function of that name.
run(State, Text) ->
    luajit:eval(State, Text).

run(State, Text, Arguments) ->
    luajit:eval(State, Text, Arguments).

%% In a new state, that ends what does not end.
run(Text) ->
    run(state(#{timeout => 10000}), Text).

%% ------------------------------------------------------------------
%% Values
%% ------------------------------------------------------------------

values_test_() ->
    Both = [nil, true, false, 0, 1, 255, 256, -1, 1 bsl 31, -(1 bsl 31), 1 bsl 32, 1 bsl 53,
            -(1 bsl 53), 0.5, -1.5e300, 5.0e-324, <<>>, <<"a">>, <<0, 255>>,
            binary:copy(<<"x">>, 100000), [], [1], [1, 2, 300], lists:seq(1, 1000), [[], [[]]],
            #{<<"a">> => 1}, #{1 => <<"x">>, 3 => #{2.5 => [true]}}, #{true => false},
            #{0 => 1}, #{-1 => 1, 1 => 2}],
    [?_assertEqual({ok, [Value, 1]}, run(state(), "return ...", [Value, 1])) || Value <- Both].

values_that_change_test_() ->
    [?_assertEqual({ok, [Answer]}, run(state(), "return (...)", [Value]))
     || {Value, Answer} <- [{1.0, 1}, {-0.0, 0}, {1.0e15, 1000000000000000}, {abc, <<"abc">>},
                            {#{}, []}, {#{1 => a, 2 => b}, [<<"a">>, <<"b">>]},
                            {undefined, <<"undefined">>}, {[a, nil], [<<"a">>]},
                            {'ä', <<"ä"/utf8>>}]].

no_arguments_and_many_test() ->
    ?assertEqual({ok, [0]}, run(state(), "return select('#', ...)", [])),
    ?assertEqual({ok, [3]}, run(state(), "return select('#', ...)", [1, 2, 3])),
    ?assertEqual({ok, [1000]}, run(state(), "return select('#', ...)", lists:duplicate(1000, a))),
    ?assertEqual({error, {value, <<"stack overflow (too many values)">>}},
                 run(state(), "return 1", lists:duplicate(1000000, a))).

no_value_test_() ->
    [?_assertMatch({error, {value, <<_/binary>>}}, run(state(), "return 1", [Value]))
     || Value <- [{}, {1, 2}, self(), make_ref(), fun() -> ok end, 1 bsl 54, -(1 bsl 54),
                  1 bsl 3000, [1 | 2], #{nil => 1}, <<1:3>>, nested(65)]] ++
    [?_assertMatch({error, {value, <<_/binary>>}}, run(Text))
     || Text <- ["return print or type", "return coroutine.create(type)", "return 0/0",
                 "return 1/0", "return -1/0", "return {type}", "return {[type] = 1}",
                 "local t = {} t.t = t return t", "return {[{}] = 1, [{}] = 2}"]].

nested(0) -> a;
nested(N) -> [nested(N - 1)].

depth_test() ->
    ?assertEqual({ok, [1]}, run(state(), "return 1", [nested(63)])),
    {ok, [Nested]} = run(state(), "return ...", [nested(63)]),
    ?assertMatch([[[[[_]]]]], Nested).

no_list_test() ->
    ?assertEqual({error, {value, <<"an improper list">>}}, run(state(), "return 1", [1, a | 2])),
    State = state(#{functions => #{<<"f">> => fun(_) -> [a | 2] end}}),
    ?assertEqual({error, {value, <<"an improper list">>}}, run(State, "return f()")).

%% Half of it shared with itself, 60 times.
a_value_is_as_large_as_the_memory_test() ->
    State = state(#{memory => 1048576}),
    ?assertEqual({error, memory},
                 run(State, "local a = {1} for i = 1, 60 do a = {a, a} end return a")),
    ?assertEqual({error, spent}, run(State, "return 1")).

what_is_not_a_term_is_refused_test_() ->
    {ok, State} = new(),
    Ref = element(2, State),
    [?_assertMatch({error, {value, _}},
                   fairnif:await(luajit:nif_run(Ref, <<"return 1">>, Bytes, 0, -1, -1)))
     || Bytes <- [<<>>, <<131>>, <<131, 97, 1>>, <<131, 108>>, <<131, 108, 255, 255, 255, 255>>,
                  <<131, 108, 0, 0, 0, 2, 97, 1>>, <<131, 107, 255, 255, 1>>,
                  <<131, 108, 0, 0, 0, 1, 116, 255, 255, 255, 255>>,
                  <<131, 108, 0, 0, 0, 1, 109, 0>>, <<131, 108, 0, 0, 0, 1, 109, 0, 0, 1, 0, 1>>,
                  <<131, 108, 0, 0, 0, 1, 200>>]].

any_value_comes_back_test_() ->
    {timeout, 600, fun() -> holds(300, any_value(state())) end}.

any_value_comes_back_with_pauses_test_() ->
    with_pauses({timeout, 600, fun() -> holds(100, any_value(state())) end}).

any_value(State) ->
    ?FORALL(Value, ?SIZED(Size, value(Size)),
            begin
                {ok, [Back]} = run(State, "return (...)", [Value]),
                Value =:= Back
            end).

%% Lists and maps of what is not nil; numbers as integers where they are whole.
value(Size) when Size < 2 ->
    oneof([boolean(), integer(), ?SUCHTHAT(F, float(), F /= trunc(F)), binary()]);
value(Size) ->
    oneof([value(0), list(value(Size div 4)),
           ?LET(Pairs, list({key(), value(Size div 4)}), maps:from_list([{<<"a">>, 1} | Pairs]))]).

key() ->
    oneof([binary(), integer(), boolean()]).

%% ------------------------------------------------------------------
%% Scripts
%% ------------------------------------------------------------------

a_state_keeps_globals_test() ->
    State = state(),
    ?assertEqual({ok, []}, run(State, "n = 0 function count(by) n = n + by return n end")),
    ?assertEqual({ok, [2]}, call(State, "count", [2])),
    ?assertEqual({ok, [5]}, call(State, <<"count">>, [3])),
    ?assertEqual({ok, [5]}, run(State, "return n")),
    ?assertEqual({error, {lua, <<"there is no function 'n'">>}}, call(State, "n", [])),
    ?assertEqual({error, {lua, <<"there is no function 'm'">>}}, call(State, "m", [])).

errors_test_() ->
    [?_assertEqual({error, Reason}, run(Text))
     || {Text, Reason} <- [{"error('x')", {lua, <<"script:1: x">>}},
                           {"error('x', 0)", {lua, <<"x">>}},
                           {"error(12, 0)", {lua, <<"12">>}},
                           {"error({})", {lua, <<"(an error that is a table)">>}},
                           {"error()", {lua, <<"(an error that is a nil)">>}},
                           {"local x = nil; return x.y",
                            {lua, <<"script:1: attempt to index local 'x' (a nil value)">>}},
                           {"x =", {syntax, <<"script:1: unexpected symbol near '<eof>'">>}},
                           {[27, "LJ"], {syntax, <<"attempt to load chunk with wrong mode">>}},
                           {"coroutine.yield(1)",
                            {lua, <<"attempt to yield from outside a coroutine">>}}]].

badarg_test_() ->
    State = state(),
    [?_assertError(badarg, Fun())
     || Fun <- [fun() -> new(#{memory => 262143}) end, fun() -> new(#{memory => 1.0}) end,
                fun() -> new(#{instructions => -1}) end, fun() -> new(#{timeout => x}) end,
                fun() -> new(#{functions => [f]}) end,
                fun() -> new(#{functions => #{f => fun(_) -> [] end}}) end,
                fun() -> new(#{functions => #{<<"f">> => fun() -> [] end}}) end,
                fun() -> new(#{x => 1}) end, fun() -> run(State, {}) end,
                fun() -> luajit:nif_resume(element(2, State), ok, term_to_binary([])) end,
                fun() -> luajit:nif_run(make_ref(), <<>>, <<>>, 0, -1, -1) end]].

coroutines_test() ->
    ?assertEqual({ok, [1, 2, <<"dead">>, false]},
                 run("local c = coroutine.create(function(a)
                          local b = coroutine.yield(a)
                          return b
                      end)
                      local _, a = coroutine.resume(c, 1)
                      local _, b = coroutine.resume(c, 2)
                      return a, b, coroutine.status(c), (coroutine.resume(c))")).

%% ------------------------------------------------------------------
%% Functions of Erlang's
%% ------------------------------------------------------------------

functions_test_() ->
    [functions(Mode) || Mode <- [normal, threaded]].

functions(Mode) ->
    Self = self(),
    State = state(#{mode => Mode, timeout => 10000, functions => #{
        <<"add">> => fun([A, B]) -> [A + B] end,
        <<"none">> => fun(_) -> [] end,
        <<"two">> => fun(All) -> [All, self() =:= Self] end,
        <<"fails">> => fun(_) -> exit(a) end,
        <<"wrong">> => fun(_) -> wrong end,
        <<"no_value">> => fun(_) -> [{}] end
    }}),
    [?_assertEqual(Answer, run(State, Text))
     || {Text, Answer} <- [{"return add(1, add(2, 3))", {ok, [6]}},
                           {"return select('#', none(1, 2))", {ok, [0]}},
                           {"local n = 0 for i = 1, 100 do n = add(n, i) end return n",
                            {ok, [5050]}},
                           {"return pcall(fails)", {ok, [false, <<"exit: a">>]}},
                           {"return pcall(wrong)", {ok, [false, <<"not a list: wrong">>]}},
                           {"fails()", {error, {lua, <<"exit: a">>}}},
                           {"return coroutine.wrap(function()
                                coroutine.yield(add(1, 2))
                             end)()", {ok, [3]}},
                           {"local f = coroutine.wrap(function()
                                local g = coroutine.wrap(function()
                                    coroutine.yield(add(1, 2)) return add(3, 4)
                                end)
                                coroutine.yield(g()) coroutine.yield(g())
                             end) return f(), f()", {ok, [3, 7]}},
                           {"local t = {__index = function(_, k) return add(k, 1) end}
                             return setmetatable({}, t)[1]",
                            {ok, [2]}}]] ++
    [?_assertMatch({ok, [[1, 2], _]}, run(State, "return two(1, 2)")),
     ?_assertMatch({error, {value, _}}, run(State, "return pcall(no_value)")),
     ?_assertMatch({error, {value, _}}, run(State, "return pcall(add, type)")),
     ?_assertMatch({error, {value, _}}, run(State, "return add({[{}] = 1, [{}] = 2})")),
     ?_assertEqual({ok, [[3, 2, 1]]},
                   run(State, "local t = {1, 2, 3}
                               table.sort(t, function(a, b) return add(a, -b) > 0 end) return t")),
     ?_assertEqual({ok, [<<"2 4">>, 2]},
                   run(State, "local function twice(d) return add(d * 1, d * 1) end
                               return ('1 2'):gsub('%d', twice)")),
     ?_assertEqual({ok, [<<"3">>]},
                   run(State, "return string.format('%s', setmetatable({}, {__tostring =
                                   function() return tostring(add(1, 2)) end}))")),
     ?_assertEqual({ok, [3]}, run(State, "return add(1, 2)"))].

who_is_asked_can_not_be_overtaken_test() ->
    Self = self(),
    State = state(#{functions => #{<<"ask">> => fun(_) ->
                                                    Self ! {asked, self()},
                                                    receive go_on -> [] end
                                                end}}),
    Asked = spawn_monitor(fun() -> exit(run(State, "ask() return 7")) end),
    receive {asked, _} -> ok end,
    ?assertEqual({error, busy}, run(State, "return 1")),
    element(1, Asked) ! go_on,
    ?assertEqual({ok, [7]}, reason(Asked)),
    %% One that dies while it is asked takes its call with it, and no more.
    Dies = spawn_monitor(fun() -> run(State, "n = 1 ask()") end),
    receive {asked, _} -> ok end,
    exit(element(1, Dies), kill),
    killed = reason(Dies),
    ?assertEqual({ok, [1]}, run(State, "return n")).

from_its_own_function_test() ->
    Again = fun(_) -> receive {state, S} -> [element(2, run(S, "return 1"))] end end,
    State = state(#{functions => #{<<"again">> => Again}}),
    self() ! {state, State},
    ?assertEqual({ok, [<<"busy">>]}, run(State, "return again()")).

reason({Pid, Ref}) ->
    receive {'DOWN', Ref, process, Pid, Reason} -> Reason end.

%% ------------------------------------------------------------------
%% Limits
%% ------------------------------------------------------------------

instructions_test() ->
    State = state(#{instructions => 1000000}),
    ?assertEqual({error, instructions}, run(State, "while true do end")),
    %% Counted again for each call.
    [?assertEqual({ok, [9]}, run(State, "local n for i = 1, 200000 do n = i end return 9"))
     || _ <- lists:seq(1, 5)].

timeout_test() ->
    {Us, Answer} = timer:tc(fun() -> run(state(#{timeout => 100}), "while true do end") end),
    ?assertEqual({error, timeout}, Answer),
    ?assert(Us >= 100000).

%% The time of a call runs on while a function of Erlang's runs.
timeout_of_a_function_test() ->
    Sleep = fun([Ms]) -> timer:sleep(Ms), [] end,
    State = state(#{timeout => 50, functions => #{<<"sleep">> => Sleep}}),
    ?assertEqual({error, timeout}, run(State, "sleep(100) while true do end")),
    eventually(fun() -> run(State, "sleep(1)") =:= {ok, []} end).

%% However few instructions there are between two of them.
a_script_that_calls_back_is_limited_test_() ->
    [?_assertEqual({error, Limit},
                   run(state(#{Limit => N, functions => #{<<"f">> => fun(_) -> [] end}}),
                       "while true do f() end"))
     || {Limit, N} <- [{timeout, 100}, {instructions, 1000000}]].

%% Its answers are garbage too.
a_script_that_calls_back_is_collected_test() ->
    State = state(#{memory => 1 bsl 19, functions => #{<<"f">> => fun(_) -> [] end}}),
    ?assertEqual({ok, []}, run(State, "for i = 1, 10000 do f() end")).

memory_test_() ->
    Small = fun() -> state(#{memory => 1 bsl 20}) end,
    Hold = "local t = {} for i = 1, ... do t[i] = ('%d'):format(i) end return #t",
    Large = binary:copy(<<"x">>, 2000000),
    [?_assertEqual({ok, [1000]}, run(Small(), Hold, [1000])),
     ?_assertEqual({error, memory}, run(Small(), Hold, [100000])),
     %% What is garbage does not count for long.
     ?_assertEqual({ok, []},
                   run(Small(), "for i = 1, 1000 do local s = ('x'):rep(100000 + i) end")),
     ?_assertEqual({error, memory}, run(Small(), "return 1", [Large])),
     ?_assertEqual({error, memory}, run(Small(), ["return '", Large, "'"])),
     ?_test(begin
                State = Small(),
                {error, memory} = run(State, "pcall(function() local s = 'x' while true do
                                                  s = s .. s end end) while true do end"),
                ?assertEqual({error, spent}, run(State, "return 1"))
            end)].

%% However little of it is garbage; each time a script sees one it keeps more. Answers how many kB
%% were made between two collections, at least.
collections_are_far_apart_test() ->
    Script = "local function used() return collectgarbage('count') end
              local kept, before, least, after = {}, used(), 1e9
              for i = 1, 300000 do
                  local garbage, now = {i}, used()
                  if now < before then
                      least, after = math.min(least, after and before - after or least), now
                      kept[#kept + 1] = ('x'):rep(4000 + #kept)
                  end
                  before = now
              end
              return least, #kept",
    {ok, [Least, Collections]} = run(Script),
    ?assert(Collections > 10),
    ?assertMatch({true, _}, {Least > 200, Least}).

%% Each allocation fails in turn: the call says so, whether its script caught it or not.
every_allocation_fails_once_test_() ->
    [{timeout, 600, ?_test(each_fails(Text))}
     || Text <- ["return 1", "return ...", "error('x' .. tostring({}))", "error({})", "x = ",
                 "local t = {} for i = 1, 100 do t[i] = {i, tostring(i)} end return t",
                 "local c = coroutine.wrap(function() coroutine.yield(ask(1)) return 2 end)
                  return c(), c()",
                 "return pcall(function() for i = 1, 60 do n = ('%d'):format(i) end return n end)",
                 "return ('a b c'):gsub('%w', function(x) return x .. x end)",
                 "return load('return {' .. ('1,'):rep(50) .. '}')()",
                 "local t = {} for i = 1, 150 do t[i] = 'k' .. i end table.sort(t) return t",
                 "collectgarbage() return ask({1, 2, 3}), ...",
                 "local c = coroutine.create(type) coroutine.resume(c, 1)
                  return coroutine.resume(c), coroutine.resume(coroutine.running())",
                 "local function f(n) return n == 0 and 0 or 1 + f(n - 1) end return f(500)",
                 "return xpcall(error, function(e) return e .. 'b' end, 'a')"]].

each_fails(Text) ->
    Expected = run(state(options()), Text, arguments()),
    each_fails(state(options()), Text, Expected, 1).

options() ->
    #{functions => #{<<"ask">> => fun(Asked) -> Asked end}}.

each_fails(State, Text, Expected, N) ->
    0 = fail_at(State, N),
    Answer = run(State, Text, arguments()),
    case fail_at(State, 0) of
        0 ->
            ?assertEqual({error, memory}, Answer),
            ?assertEqual({error, spent}, run(State, "return 1")),
            each_fails(state(options()), Text, Expected, N + 1);
        _ ->
            ?assertEqual(element(1, Expected), element(1, Answer)),
            ?assert(N > 5)
    end.

fail_at(State, N) ->
    fairnif:await(luajit:nif_fail(element(2, State), N)).

arguments() ->
    [lists:seq(1, 100), #{a => b, <<"c">> => [1, 2, 3]} | lists:duplicate(3000, <<"xyz">>)].

memory_is_released_test() ->
    Fill = "t = {} for i = 1, 1e5 do t[i] = {i} end return 1",
    There = states(),
    Before = erlang:memory(system),
    Pids = [spawn_monitor(fun() -> exit(run(state(), Fill)) end) || _ <- lists:seq(1, 20)],
    [?assertEqual({ok, [1]}, reason(Pid)) || Pid <- Pids],
    eventually(fun() -> states() =< There end),
    ?assert(erlang:memory(system) < Before + 20000000).

%% That there are, but for this process's own garbage.
states() ->
    garbage_collect(),
    [Objects] = [Objects || #{type := {luajit, script}, objects := Objects}
                                <- maps:get(resources, fairnif:info())],
    Objects.

%% ------------------------------------------------------------------
%% Killed, shared, beside others
%% ------------------------------------------------------------------

a_killed_caller_leaves_a_state_that_says_so_test() ->
    State = state(),
    {ok, []} = run(State, "function spin() while true do end end"),
    kill_task_after(5, fun() -> call(State, "spin", []) end),
    ?assertEqual({error, spent}, run(State, "return 1")),
    ?assertEqual({error, spent}, call(State, "spin", [])).

%% It has addresses of the library that made it.
a_state_of_an_earlier_load_says_so_test() ->
    State = state(),
    {ok, []} = run(State, "x = 1"),
    reload(),
    ?assertEqual({error, spent}, run(State, "return x")),
    ?assertEqual({ok, [2]}, run(state(), "return 2")).

%% While its alarm is set: a script continues in the old code, and ends where that is purged.
reloaded_under_an_alarm_test_() ->
    [{timeout, 600, fun() -> reloaded_under_an_alarm(Mode) end} || Mode <- [normal, threaded]].

reloaded_under_an_alarm(Mode) ->
    Long = "for i = 1, 2e8 do end return 1",            % most of a second
    Call = fun(Script) ->
               State = state(#{mode => Mode}),
               begun(fun() -> exit(run(State, Script)) end)
           end,
    _ = code:purge(luajit),
    Ends = Call(Long),
    {module, luajit} = code:load_file(luajit),
    ?assertEqual({ok, [1]}, reason(Ends)),
    Doomed = Call("while true do end"),
    reload(),
    ?assertEqual(killed, reason(Doomed)),
    eventually(fun() -> fairnif:tasks() =:= [] end),
    ?assertEqual({ok, [1]}, run(state(#{mode => Mode}), Long)).

reload() ->
    _ = code:purge(luajit),
    {module, luajit} = code:load_file(luajit),
    _ = code:purge(luajit).

killed_anywhere_test_() ->
    {timeout, 600,
     fun() ->
         There = states(),
         [kill_task_after(I rem 7, fun() -> run(state(#{mode => Mode}), Script) end)
          || I <- lists:seq(1, 5), Script <- long_scripts(), Mode <- [normal, threaded]],
         eventually(fun() -> states() =< There end)
     end}.

long_scripts() ->
    ["while true do end",
     "while true do local t = {} for i = 1, 50000 do t[i] = {i} end end",
     "while true do local s = 'x' for i = 1, 22 do s = s .. s end end",
     "return (('a'):rep(40)):find(('a-'):rep(30) .. 'b')",
     "local t = {} for i = 1, 1e5 do t[i] = -i end while true do table.sort(t) end",
     "while true do load(('x = {} '):rep(10000)) end",
     "while true do pcall(error, 'x') end",
     "while true do coroutine.wrap(function() pcall(error, {}) end)() end"].

calls_of_a_shared_state_come_in_turn_test() ->
    State = state(),
    {ok, []} = run(State, "n = 0
                           function slow() local m = n for i = 1, 30000 do end n = m + 1 end"),
    Callers = [spawn_monitor(fun() -> exit(call(State, "slow", [])) end) || _ <- lists:seq(1, 50)],
    [?assertEqual({ok, []}, reason(Caller)) || Caller <- Callers],
    ?assertEqual({ok, [50]}, run(State, "return n")).

%% In one go each would take its 300 ms.
a_neighbour_does_not_wait_test_() ->
    on_one_scheduler(
      [{timeout, 600,
        ?_test(begin
                   Run = fun() -> run(state(#{timeout => 300}), Script) end,
                   {Us, Gap} = least_gap(fun() -> beside(Run) end),
                   ?assertMatch({_, true}, {{Gap, Us, Script}, Gap < Us div 2})
               end)} || Script <- long_scripts()]).

%% An alarm takes a timer of the kernel's. Where there is none, or no more for other threads,
%% instructions are counted.
without_alarms_test_() ->
    [{timeout, 600, ?_assertEqual("all ended\n", in_node_without_timers(Before))}
     || Before <- [0, 1]].

%% How many threads have theirs by then.
in_node_without_timers(Before) ->
    Calls = "{ok, S} = luajit:new(#{timeout => 10000}),
             F = fun(_) -> luajit:eval(S, \"for i = 1, 3000000 do end return 1\") end,
             [F(1) || _ <- lists:seq(1, " ++ integer_to_list(Before) ++ ")],
             os:cmd(\"prlimit --sigpending=0: --pid \" ++ os:getpid()),
             G = fun(Mode) ->
                     {ok, New} = luajit:new(#{mode => Mode, timeout => 300}),
                     {error, timeout} = luajit:eval(New, \"while true do end\"),
                     {ok, [1]} = F(1)
                 end,
             All = [spawn_monitor(fun() -> G(Mode) end)
                    || Mode <- [normal, threaded], _ <- [1, 2, 3, 4]],
             [receive {_, Ref, _, _, normal} -> ok end || {_, Ref} <- All],
             io:put_chars(\"all ended\\n\"), halt().",
    in_node(Calls).

%% While alarms are set on all its threads.
a_node_halts_test_() ->
    Scripts = "[spawn(fun() ->
                          {ok, S} = luajit:new(#{mode => Mode}),
                          luajit:eval(S, \"while true do end\")
                      end) || Mode <- [normal, threaded], _ <- [1, 2, 3, 4]],
               timer:sleep(100), ",
    [{timeout, 600, ?_assertEqual("7\n", in_node([Scripts, Halt]))}
     || Halt <- ["halt(7).", "halt(7, [{flush, false}]).", "init:stop(7)."], _ <- [1, 2, 3]].

%% What a node of its own said, or else its exit status.
in_node(Calls) ->
    Paths = [[" -pa ", Dir] || Dir <- code:get_path(), lists:member($_, Dir)],
    Run = ["timeout -s KILL 30 erl -noinput", Paths, " -eval '", Calls, "'"],
    os:cmd(["said=$(", Run, "); status=$?; echo ${said:-$status}"]).

many_endless_scripts_test_() ->
    {timeout, 600,
     fun() ->
         There = states(),
         Scripts = [spawn_monitor(fun() -> run(state(#{mode => Mode}), "while true do end") end)
                    || _ <- lists:seq(1, 100), Mode <- [normal, threaded]],
         eventually(fun() -> length(fairnif:tasks()) =:= 200 end),
         [exit(Pid, kill) || {Pid, _} <- Scripts],
         [killed = reason(Script) || Script <- Scripts],
         eventually(fun() -> fairnif:tasks() =:= [] end),
         eventually(fun() -> states() =< There end)
     end}.
