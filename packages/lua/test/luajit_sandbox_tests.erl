%% What a script can reach, and that it ends, whatever it does.
-module(luajit_sandbox_tests).

-include_lib("eunit/include/eunit.hrl").

%% New libraries of LuaJIT's are not let in unseen.
what_a_script_can_reach_test() ->
    {ok, [Names]} = run(element(2, file:read_file(script("reach.lua")))),
    ?assertEqual(
       ["_G", "_VERSION", "assert", "bit.arshift", "bit.band", "bit.bnot", "bit.bor",
        "bit.bswap", "bit.bxor", "bit.lshift", "bit.rol", "bit.ror", "bit.rshift", "bit.tobit",
        "bit.tohex", "collectgarbage", "coroutine.create", "coroutine.resume",
        "coroutine.running", "coroutine.status", "coroutine.wrap", "coroutine.yield", "error",
        "getmetatable", "ipairs", "load", "math.abs", "math.acos", "math.asin", "math.atan",
        "math.atan2", "math.ceil", "math.cos", "math.cosh", "math.deg", "math.exp", "math.floor",
        "math.fmod", "math.frexp", "math.huge", "math.ldexp", "math.log", "math.log10",
        "math.max", "math.min", "math.modf", "math.pi", "math.pow", "math.rad", "math.random",
        "math.randomseed", "math.sin", "math.sinh", "math.sqrt", "math.tan", "math.tanh", "next",
        "os.clock", "os.difftime", "os.time", "pairs", "pcall", "rawequal", "rawget", "rawset",
        "select", "setmetatable", "string.byte", "string.char", "string.find", "string.format",
        "string.gmatch", "string.gsub", "string.len", "string.lower", "string.match",
        "string.rep", "string.reverse", "string.sub", "string.upper", "table.concat",
        "table.insert", "table.maxn", "table.remove", "table.sort", "tonumber", "tostring",
        "type", "unpack", "xpcall"],
       string:lexemes(binary_to_list(Names), " ")).

closed_test_() ->
    [?_assertEqual({ok, Values}, run(Text))
     || {Text, Values} <-
            [{"return io, require, package, debug, ffi, jit, dofile, loadfile, loadstring, print",
              lists:duplicate(10, nil)},
             {"return getfenv, setfenv, newproxy, string.dump, os.execute, os.getenv, os.exit",
              lists:duplicate(7, nil)},
             {"return getmetatable('')", [<<"string">>]},
             {"return pcall(setmetatable, '', {})",
              [false, <<"bad argument #1 to '?' (table expected, got string)">>]},
             {"return load(string.char(27) .. 'LJ')",
              [nil, <<"attempt to load chunk with wrong mode">>]},
             {"return load('return x', 'c', 'b', {x = 1})()", [1]},
             {"return load('x =')", [nil, <<"(load):1: unexpected symbol near '<eof>'">>]}]].

%% Functions that are not LuaJIT's.
replaced_test_() ->
    [?_assertEqual({ok, Values}, run(Text))
     || {Text, Values} <-
            [{"return ('x'):rep(3), (''):rep(1e9), ('a'):rep(2, ',')",
              [<<"xxx">>, <<>>, <<"a,a">>]},
             {"local t = {3, 1, 2} table.sort(t) return t", [[1, 2, 3]]},
             {"local t = {3, 1, 2} table.sort(t, function(a, b) return a > b end) return t",
              [[3, 2, 1]]},
             {"local t = {} for i = 1, 1000 do t[i] = i * 7 % 1000 end table.sort(t) return t",
              [lists:seq(0, 999)]},
             {"local ok, why = pcall(table.sort, {1, 'x'}) return ok, why:gsub(':%d+:', '')",
              [false, <<"sandbox attempt to compare string with number">>, 1]},
             {"return ('a1 b2'):gsub('(%a)(%d)', function(a, b) return b .. a end)",
              [<<"1a 2b">>, 2]},
             {"return ('ab'):gsub('()', function(at) return at end)", [<<"1a2b3">>, 3]},
             {"return ('a.b.c'):gsub('%.', {['.'] = '/'}, 1)", [<<"a/b.c">>, 1]},
             {"return ('abab'):gsub('(a)(b)', {a = 'x'})", [<<"xx">>, 2]},
             {"return xpcall(function(a) return a end, type, 5)", [true, 5]},
             {"return xpcall(function() error('e', 0) end, function(e) return e .. '!' end)",
              [false, <<"e!">>]},
             {"return collectgarbage('count') > 10, collectgarbage(), collectgarbage('step')",
              [true, 0, 0]}]].

%% The state is good after each, but where memory was out.
attacks_test_() ->
    {ok, Attacks} = file:consult(script("attacks.eterm")),
    [{timeout, 600,
      ?_test(begin
                 {ok, State} = luajit:new(#{timeout => time_for(Expected), memory => 32 bsl 20}),
                 ?assertEqual({Text, Expected}, {Text, kind(luajit:eval(State, Text))}),
                 example_test:retry(5, fun() -> still_works(after_one(Expected), State) end)
             end)} || {Expected, Text} <- Attacks].

%% Within its time, which is short for some.
still_works(Expected, State) ->
    case luajit:eval(State, "return 1") of
        Expected -> true;
        Other -> Other
    end.

%% Others end by themselves, on a busy machine later.
time_for(timeout) -> 300;
time_for(_) -> 20000.

after_one(memory) -> {error, spent};
after_one(_) -> {ok, [1]}.

kind({ok, _}) -> ok;
kind({error, {Kind, _}}) -> Kind;
kind({error, Kind}) -> Kind.

run(Text) ->
    {ok, State} = luajit:new(#{timeout => 10000}),
    luajit:eval(State, Text).

script(Name) ->
    filename:join([code:lib_dir(luajit), "test/scripts", Name]).
