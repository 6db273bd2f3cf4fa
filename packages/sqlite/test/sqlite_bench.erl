%% sqlite beside exqlite's NIF: lookups, inserts, what others wait, kills, a large result. The two
%% take turns, so that what else the machine does meets both.
%%
%%   FAIRNIF_EXQLITE=/path/to/exqlite make bench
%%
%% With Cowboy in the code path (tools/cowboy brings it to ../../_build/cowboy) a light route of a
%% web server is among what waits.
-module(sqlite_bench).

-export([main/0, delays/0]).
-export([init/2]).                      % Cowboy's handler

-define(ROUNDS, 5).
-define(KEYS, 100000).

main() ->
    Forms = forms(),
    Folder = "_build/bench",
    _ = file:del_dir_r(Folder),
    ok = filelib:ensure_dir(Folder ++ "/x"),
    try
        lookups(Folder, Forms),
        inserts(Folder, Forms),
        delays(Forms),
        kills(Forms),
        large(Folder, Forms)
    after
        file:del_dir_r(Folder)
    end,
    halt().

%% What others wait, alone.
delays() ->
    delays(forms()),
    halt().

forms() ->
    case sqlite_peer:load() of
        ok -> [fair, exqlite];
        {error, Why} -> io:format(standard_error, "sqlite: ~ts~n", [Why]), [fair]
    end.

%% ---- (a) and (b) ----

lookups(Folder, Forms) ->
    Path = filled(Folder, ?KEYS),
    [begin
         Rates = turns(Forms, fun(Form) -> lookup_rate(Form, Path, Processes) end),
         rates(io_lib:format("lookups, ~b process(es)", [Processes]), Rates)
     end || Processes <- [1, 8]].

filled(Folder, Rows) ->
    Path = list_to_binary(filename:join(Folder, "filled.db")),
    _ = file:delete(Path),
    {ok, C} = sqlite:open(Path),
    ok = sqlite:execute(C, ["pragma journal_mode = wal; create table t(k integer primary key, a, b "
                            "text); with recursive c(x) as (select 1 union all select x + 1 from c "
                            "where x < ", integer_to_list(Rows), ") insert into t select x, "
                            "random(), 'text ' || hex(randomblob(12)) from c; "
                            "pragma wal_checkpoint(truncate)"]),
    ok = sqlite:close(C),
    Path.

lookup_rate(Form, Path, Processes) ->
    N = 40000 div Processes,
    Workers = [fun() ->
                       {C, S} = opened(Form, Path, "select a, b from t where k = ?"),
                       _ = [lookup(Form, C, S, K) || K <- lists:seq(1, ?KEYS, 50)],
                       fun() ->
                               _ = rand:seed(exsss, {1, 2, P}),
                               looked_up(N, Form, C, S)
                       end
               end || P <- lists:seq(1, Processes)],
    rate(N * Processes, Workers).

looked_up(0, _, _, _) -> ok;
looked_up(N, Form, C, S) ->
    [[_, _]] = lookup(Form, C, S, rand:uniform(?KEYS)),
    looked_up(N - 1, Form, C, S).

inserts(Folder, Forms) ->
    Rates = turns(Forms, fun(Form) -> insert_rate(Form, Folder) end),
    rates("inserts in transactions of 1,000", Rates).

rates(What, Rates) ->
    row([What, ", a second"], [{F, [R || {R, _} <- L]} || {F, L} <- Rates]),
    row([What, ", us of CPU time"], [{F, [C || {_, C} <- L]} || {F, L} <- Rates]).

insert_rate(Form, Folder) ->
    Path = list_to_binary(filename:join(Folder, "inserts.db")),
    _ = [file:delete(<<Path/binary, End/binary>>) || End <- [<<>>, <<"-wal">>, <<"-shm">>]],
    {ok, Setup} = sqlite:open(Path),
    ok = sqlite:execute(Setup, "pragma journal_mode = wal; "
                        "create table t(k integer primary key, b)"),
    ok = sqlite:close(Setup),
    Worker = fun() ->
                     {C, S} = opened(Form, Path, "insert into t values(?, ?)"),
                     ok = execute(Form, C, "pragma synchronous = normal"),
                     fun() ->
                             [inserted(Form, C, S, I * 1000) || I <- lists:seq(0, 19)],
                             ok = close(Form, C)
                     end
             end,
    rate(20000, [Worker]).

inserted(Form, C, S, From) ->
    ok = execute(Form, C, "begin"),
    _ = [insert(Form, C, S, {From + I, <<"some text of a row">>}) || I <- lists:seq(1, 1000)],
    ok = execute(Form, C, "commit").

%% Of all workers, from when all are ready: how many a second, and us of CPU time for one.
rate(N, Workers) ->
    Parent = self(),
    Started = [spawn_monitor(fun() ->
                                     Work = Worker(),
                                     Parent ! ready,
                                     receive go -> ok end,
                                     Work()
                             end) || Worker <- Workers],
    [receive ready -> ok end || _ <- Started],
    {Begin, Cpu} = {erlang:monotonic_time(microsecond), cpu_ms()},
    [P ! go || {P, _} <- Started],
    [receive {'DOWN', M, process, _, normal} -> ok end || {_, M} <- Started],
    {N * 1.0e6 / (erlang:monotonic_time(microsecond) - Begin), (cpu_ms() - Cpu) * 1000 / N}.

cpu_ms() ->
    {Ms, _} = erlang:statistics(runtime),
    Ms.

%% ---- (c): 20 queries of half a second at once ----

delays(Forms) ->
    Sql = half_a_second(),
    Port = web_server(),
    Waits = turns([idle, erlang, low | Forms], fun(Form) -> waits(Form, Sql, Port) end),
    row("sleeper of 1 ms, p99, ms", [{F, [S || {S, _, _} <- L]} || {F, L} <- Waits]),
    row("file:read_file, p99, ms", [{F, [R || {_, R, _} <- L]} || {F, L} <- Waits]),
    [row("light HTTP route, p99, ms", [{F, [H || {_, _, H} <- L]} || {F, L} <- Waits])
     || Port =/= none].

half_a_second() ->
    Sql = fun(N) -> ["with recursive c(x) as (select 1 union all select x + 1 from c where x < ",
                     integer_to_list(N), ") select count(*) from c"] end,
    {ok, C} = sqlite:open(":memory:"),
    {Us, ok} = timer:tc(fun() -> sqlite:execute(C, Sql(500000)) end),
    ok = sqlite:close(C),
    iolist_to_binary(Sql(round(500000 * 500000 / Us))).

waits(Form, Sql, Port) ->
    Queries = [spawn_monitor(fun() -> query(Form, Sql) end)
               || Form =/= idle, _ <- lists:seq(1, 20)],
    timer:sleep(50),
    File = code:which(?MODULE),
    End = erlang:monotonic_time(millisecond) + 3000,
    Parent = self(),
    Watchers = [spawn_monitor(fun() -> Parent ! {What, until(End, Begin(), [])} end)
                || {What, Begin} <- [{sleeper, fun() -> fun() -> timer:sleep(1) end end},
                                     {reader, fun() -> fun() -> read(File) end end} |
                                     [{client, fun() -> client(Port) end} || Port =/= none]]],
    Answer = {receive {sleeper, S} -> p99(S) end,
              receive {reader, R} -> max(0.0, p99(R) - 1.0) end,
              Port =/= none andalso receive {client, C} -> max(0.0, p99(C) - 1.0) end},
    [receive {'DOWN', M, process, _, _} -> ok end || {_, M} <- Queries ++ Watchers],
    Answer.

read(File) ->
    {ok, _} = file:read_file(File),
    timer:sleep(1).

%% ---- a web server ----

web_server() ->
    case application:ensure_all_started(cowboy) of
        {ok, _} ->
            Routes = cowboy_router:compile([{'_', [{"/", ?MODULE, []}]}]),
            Options = #{env => #{dispatch => Routes}, max_keepalive => infinity},
            {ok, _} = cowboy:start_clear(bench, [{ip, {127, 0, 0, 1}}], Options),
            ranch:get_port(bench);
        {error, _} ->
            io:format(standard_error, "sqlite: no HTTP route without Cowboy: tools/cowboy~n", []),
            none
    end.

init(Request, State) ->
    {ok, cowboy_req:reply(200, #{}, <<"ok">>, Request), State}.

%% One request, on a connection that stays open.
client(Port) ->
    Options = [binary, {active, false}, {nodelay, true}],
    {ok, Socket} = gen_tcp:connect({127, 0, 0, 1}, Port, Options),
    fun() -> request(Socket), timer:sleep(1) end.

request(Socket) ->
    ok = inet:setopts(Socket, [{packet, http_bin}]),
    ok = gen_tcp:send(Socket, "GET / HTTP/1.1\r\nhost: bench\r\n\r\n"),
    {ok, {http_response, _, 200, _}} = gen_tcp:recv(Socket, 0),
    headers(Socket, gen_tcp:recv(Socket, 0)).

headers(Socket, {ok, http_eoh}) ->
    ok = inet:setopts(Socket, [{packet, raw}]),
    {ok, <<"ok">>} = gen_tcp:recv(Socket, 2);
headers(Socket, {ok, {http_header, _, _, _, _}}) ->
    headers(Socket, gen_tcp:recv(Socket, 0)).

%% In Erlang that works, for comparison, everybody is busy for as long.
query(erlang, _) ->
    busy(erlang:monotonic_time(millisecond) + 5000);
%% As background work may be: whatever else is to run comes first, mostly.
query(low, Sql) ->
    process_flag(priority, low),
    query(fair, Sql);
query(Form, Sql) ->
    {C, S} = opened(Form, <<":memory:">>, Sql),
    fetch_all(Form, C, S).

busy(End) ->
    erlang:monotonic_time(millisecond) < End andalso busy(End).

until(End, Fun, Times) ->
    {Us, _} = timer:tc(Fun),
    case erlang:monotonic_time(millisecond) < End of
        true -> until(End, Fun, [Us / 1000 | Times]);
        false -> [Us / 1000 | Times]
    end.

%% ---- (d) ----

kills(Forms) ->
    Sql = half_a_second(),
    row("a killed query: the connection is free after, ms",
        turns(Forms, fun(Form) -> median([free_after(Form, Sql) || _ <- lists:seq(1, 15)]) end)).

free_after(Form, Sql) ->
    {C, S} = opened(Form, <<":memory:">>, Sql),
    P = spawn(fun() -> fetch_all(Form, C, S) end),
    timer:sleep(20 + rand:uniform(20)),
    Begin = erlang:monotonic_time(microsecond),
    exit(P, kill),
    {ok, _} = changes(Form, C),
    (erlang:monotonic_time(microsecond) - Begin) / 1000.

%% ---- (e) ----

large(Folder, Forms) ->
    Path = filled(Folder, 1000000),
    Runs = turns(Forms, fun(Form) -> fetched(Form, Path) end, 3),
    [row("a million rows at once: " ++ What, [{F, [element(I, R) || R <- L]} || {F, L} <- Runs])
     || {I, What} <- [{1, "seconds"}, {2, "another process waits at most, ms"},
                      {3, "memory at most, MB"}]].

fetched(Form, Path) ->
    erlang:garbage_collect(),
    Before = erlang:memory(total),
    {Us, Gap, Most} = beside(fun() ->
                                     {C, S} = opened(Form, Path, "select k, a, b from t"),
                                     Rows = fetch_all(Form, C, S),
                                     1000000 = length(Rows),
                                     ok = close(Form, C)
                             end),
    {Us / 1.0e6, Gap / 1000, (Most - Before) / 1.0e6}.

beside(Call) ->
    Parent = self(),
    Sleeper = spawn_link(fun() -> Parent ! {self(), watched(0, 0)} end),
    {P, M} = spawn_monitor(fun() -> {Us, _} = timer:tc(Call), exit({us, Us}) end),
    receive {'DOWN', M, process, P, {us, Us}} -> ok end,
    Sleeper ! stop,
    receive {Sleeper, {Gap, Most}} -> {Us, Gap, Most} end.

%% The longest sleep of a millisecond, and the most memory of the VM's.
watched(Longest, Most) ->
    receive stop -> {Longest, Most}
    after 0 ->
        {Us, _} = timer:tc(fun() -> timer:sleep(1) end),
        watched(max(Longest, Us), max(Most, erlang:memory(total)))
    end.

%% ---- both forms ----

opened(fair, Path, Sql) ->
    {ok, C} = sqlite:open(Path),
    {ok, S} = sqlite:prepare(C, Sql),
    {C, S};
opened(exqlite, Path, Sql) ->
    {ok, C} = sqlite_peer:open(Path),
    {ok, S} = sqlite_peer:prepare(C, Sql),
    {C, S}.

execute(fair, C, Sql) -> sqlite:execute(C, Sql);
execute(exqlite, C, Sql) -> sqlite_peer:execute(C, Sql).

lookup(fair, C, S, Key) ->
    ok = sqlite:bind(S, [Key]),
    {ok, Rows} = sqlite:fetch_all(C, S),
    Rows;
lookup(exqlite, C, S, Key) ->
    sqlite_peer:lookup(C, S, Key).

insert(fair, C, S, {Key, Text}) ->
    ok = sqlite:bind(S, [Key, Text]),
    done = sqlite:step(C, S);
insert(exqlite, C, S, Row) ->
    sqlite_peer:insert(C, S, Row).

fetch_all(fair, C, S) -> {ok, Rows} = sqlite:fetch_all(C, S), Rows;
fetch_all(exqlite, C, S) -> sqlite_peer:fetch_all(C, S).

changes(fair, C) -> sqlite:changes(C);
changes(exqlite, C) -> sqlite_peer:changes(C).

close(fair, C) -> sqlite:close(C);
close(exqlite, C) -> sqlite_peer:close(C).

%% ---- figures ----

turns(Forms, Fun) ->
    turns(Forms, Fun, ?ROUNDS).

turns(Forms, Fun, Rounds) ->
    Samples = [{Form, Fun(Form)} || _ <- lists:seq(1, Rounds), Form <- Forms],
    [{Form, proplists:get_all_values(Form, Samples)} || Form <- Forms].

row(What, Samples) ->
    io:format("~-50s", [What]),
    [io:format(" ~s ~s", [Form, number(median(L))]) || {Form, L} <- Samples],
    case {lists:keyfind(fair, 1, Samples), lists:keyfind(exqlite, 1, Samples)} of
        {{_, Ours}, {_, Theirs}} ->
            Ratios = [A / max(B, 0.001) || {A, B} <- lists:zip(Ours, Theirs)],
            io:format("  (~.2f x)~n", [median(Ratios)]);
        _ -> io:format("~n")
    end.

number(N) when N >= 1000 -> integer_to_list(round(N));
number(N) -> io_lib:format("~.2f", [float(N)]).

median(L) -> lists:nth((length(L) + 1) div 2, lists:sort(L)).

p99(L) -> lists:nth(max(1, length(L) * 99 div 100), lists:sort(L)).
