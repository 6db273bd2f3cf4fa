%% luajit beside plain LuaJIT and Lua 5.4; and what others wait beside a thousand endless scripts.
%%
%%   make bench
-module(luajit_bench).

-export([main/0]).

-define(ROUNDS, 5).
-define(SCRIPTS, 1000).
-define(SECONDS, 5).

main() ->
    speed(),
    io:nl(),
    neighbours(),
    halt().

%% ---- How long a script takes ----

scripts() ->
    [{"loop", "local n = 0 for i = 1, 5000000 do n = n + i % 7 end return n"},
     {"calls", "local function fib(n) if n < 2 then return n end "
               "return fib(n - 1) + fib(n - 2) end return fib(29)"},
     {"tables", "local t = {} for i = 1, 300000 do t[i] = {i, tostring(i)} end "
                "local n = 0 for i = 1, #t do n = n + #t[i][2] end return n"},
     {"patterns", "local n = 0 for i = 1, 60000 do local s = ('key%d = value%d'):format(i, i) "
                  "local k, v = s:match('^(%w+)%s*=%s*(%w+)$') n = n + #k + #v end return n"},
     {"gsub", "local s = ('the quick brown fox '):rep(5000) local n = 0 "
              "for i = 1, 5 do local r, c = s:gsub('%w+', string.upper) n = n + c end return n"},
     {"sort", "local t = {} for i = 1, 100000 do t[i] = (i * 7919) % 100003 end table.sort(t) "
              "return t[1]"},
     {"concat", "local t = {} for i = 1, 200000 do t[#t + 1] = 'line ' .. i end "
                "return #table.concat(t, ',')"},
     {"closures", "local n = 0 for i = 1, 1000000 do local f = function() return i end "
                  "n = n + f() end return n"}].

speed() ->
    io:format("ms, median of ~b in turns; in brackets: here against it~n"
              "~-10s ~9s ~16s ~16s ~16s~n",
              [?ROUNDS, "", "here", "no compiler", "Lua 5.4", "LuaJIT"]),
    [begin
         Times = [[time(Form, Script) || Form <- [fair, interpreter, lua54, compiler]]
                  || _ <- lists:seq(1, ?ROUNDS)],
         [Fair | _] = All = [median([lists:nth(I, Round) || Round <- Times]) || I <- [1, 2, 3, 4]],
         io:format("~-10s ~9.1f ~ts~n", [Name, Fair, [figure(Ms, Fair) || Ms <- tl(All)]])
     end || {Name, Script} <- scripts()].

figure(none, _) -> io_lib:format("~17s", ["-"]);
figure(Ms, Fair) -> io_lib:format("~17s", [io_lib:format("~.1f (~.2f x)", [Ms, Fair / Ms])]).

time(fair, Script) ->
    {ok, State} = luajit:new(),
    ms(fun() -> luajit:eval(State, Script) end);
time(interpreter, Script) ->
    ms(fun() -> luajit:plain_eval(iolist_to_binary(["jit.off() ", Script])) end);
time(compiler, Script) ->
    ms(fun() -> luajit:plain_eval(list_to_binary(Script)) end);
time(lua54, Script) ->
    case os:find_executable("lua5.4") of
        false ->
            none;
        Lua ->
            File = "_build/bench.lua",
            ok = file:write_file(File, ["local c = os.clock() local f = function() ", Script,
                                        " end f() print((os.clock() - c) * 1000)"]),
            {Ms, _} = string:to_float(os:cmd([Lua, " ", File])),
            Ms
    end.

ms(Fun) ->
    {Us, {ok, _}} = timer:tc(Fun),
    Us / 1000.

median(List) ->
    lists:nth((length(List) + 1) div 2, lists:sort(List)).

%% ---- What others wait ----

%% A process that sleeps for a millisecond, again and again: how long that takes, us.
neighbours() ->
    io:format("a sleep of 1 ms beside ~b endless scripts, us~n~-28s ~9s ~9s ~9s~n",
              [?SCRIPTS, "", "median", "p99", "longest"]),
    [beside(Name, Options)
     || {Name, Options} <- [{"idle", none}, {"threaded", #{mode => threaded}}, {"normal", #{}},
                            {"normal, of low priority", low}]].

beside(Name, Options) ->
    Started = start(Options),
    timer:sleep(1000),
    Self = self(),
    spawn_link(fun() -> Self ! {slept, sleeps(now_us() + ?SECONDS * 1000000, [])} end),
    Slept = lists:sort(receive {slept, All} -> All end),
    N = length(Slept),
    io:format("~-28s ~9w ~9w ~9w~n",
              [Name, lists:nth(N div 2, Slept), lists:nth(ceil(N * 0.99), Slept),
               lists:last(Slept)]),
    {Us, _} = timer:tc(fun() ->
                           [exit(Pid, kill) || {Pid, _} <- Started],
                           [receive {'DOWN', Ref, _, _, _} -> ok end || {_, Ref} <- Started],
                           gone()
                       end),
    [io:format("~-28s all killed, and nothing left, after ~b ms~n", ["", Us div 1000])
     || Started =/= []].

start(none) ->
    [];
start(low) ->
    start(#{}, low);
start(Options) ->
    start(Options, normal).

start(Options, Priority) ->
    [spawn_monitor(fun() ->
                       process_flag(priority, Priority),
                       {ok, State} = luajit:new(Options),
                       luajit:eval(State, "while true do end")
                   end) || _ <- lists:seq(1, ?SCRIPTS)].

sleeps(End, Slept) ->
    Start = now_us(),
    timer:sleep(1),
    Now = now_us(),
    case Now > End of
        true -> [Now - Start | Slept];
        false -> sleeps(End, [Now - Start | Slept])
    end.

gone() ->
    fairnif:tasks() =:= [] orelse begin timer:sleep(1), gone() end.

now_us() ->
    erlang:monotonic_time(microsecond).
