%% `fairnif record': where a node's time goes, in three formats; and that to be recorded
%% does nothing to a node, whatever becomes of it or of the recorder.
-module(fairnif_watch_record_SUITE).

-include_lib("stdlib/include/assert.hrl").

-export([all/0, suite/0, init_per_suite/1, end_per_suite/1]).
-export([erlang_and_native_code_are_in_one_stack_with_their_callers/1,
         what_there_is_is_written_when_it_ends_early/1,
         code_is_loaded_and_purged_meanwhile/1,
         no_thread_stays_stopped_when_the_recorder_is_killed/1,
         what_cannot_be_done_is_refused/1]).
-export([erlang_outer/0, native_outer/0]).

-import(fairnif_watch_test_outside, [if_traceable/1, program/0, run/1, start/2, collect/1, kill/2,
                                     python/2, is/2, peer/1, loaded_peer/1, is_unharmed/2]).

-define(HOSTILE, '<b>&"\x{e9};\n\x{1}').
-define(ROOT, "<b>&\"\x{e9},[?][?]").
-define(KILLS, 50).

suite() ->
    [{timetrap, {minutes, 10}}].

all() ->
    fairnif_test:cases(?MODULE).

init_per_suite(Config) ->
    ok = fairnif_watch_test:build(),
    if_traceable(Config).

end_per_suite(_Config) ->
    ok.

erlang_and_native_code_are_in_one_stack_with_their_callers(Config) ->
    {Peer, Pid} = peer(["+S", "2:2", "+SDcpu", "1"]),
    true = fairnif_watch_test:call(Peer, erlang, apply, [fun start/0, []]),
    Wanted = ["^" ?ROOT ";" ?MODULE_STRING ":erlang_outer/0;" ?MODULE_STRING
              ":erlang_inner/1 [1-9][0-9]*$",
              "^native;" ?MODULE_STRING ":native_outer/0;fairnif_watch_block_nif:spin_dirty_cpu/1"
              ".* [1-9][0-9]*$"],
    Idle = "^idle;dirty I/O [1-9][0-9]*$",
    [fairnif_test:eventually(
       fun() ->
               File = file(Config, "recorded" ++ Ending),
               {0, Said} = record([Pid, "--seconds", "1", "--out", File]),
               Lines = lines(Ending, File),
               Missing = [W || W <- Wanted, not is(W, Lines)],
               ?assert(is("samples, .* stops, at most: median .* p99 .* longest ", Said)),
               %% Idle ones are no samples of the others.
               ?assertEqual(Ending =:= ".txt", is(Idle, Lines)),
               Missing =:= [] orelse {Missing, Said, Lines}
       end) || Ending <- [".txt", ".svg", ".pb"]],
    {0, Printed} = record([Pid, "--seconds", "1", "--format", "svg"]),
    ?assert(is("^<svg ", Printed)),
    fairnif_watch_test:stop(Peer).

start() ->
    {module, _} = code:ensure_loaded(fairnif_watch_block_nif),
    register(?HOSTILE, spawn(?MODULE, erlang_outer, [])),
    register(native, spawn(?MODULE, native_outer, [])).

erlang_outer() ->
    0 = erlang_inner(100000),
    erlang_outer().

erlang_inner(0) -> 0;
erlang_inner(N) -> erlang_inner(N - 1).

native_outer() ->
    _ = fairnif_watch_block_nif:spin_dirty_cpu(60000),
    native_outer(),
    ok.

%% As lines, whatever the file has.
lines(".txt", File) ->
    {ok, Text} = file:read_file(File),
    Text;
lines(".svg", File) ->
    %% Boxes lie on what called them.
    python(
           "import xml.etree.ElementTree as E\n"
           "S = '{http://www.w3.org/2000/svg}'\n"
           "boxes = []\n"
           "for g in E.parse(sys.argv[1]).iter(S + 'g'):\n"
           "    r, t = g.find(S + 'rect'), g.find(S + 'title').text\n"
           "    name, rest = t.rsplit(' (', 1)\n"
           "    boxes.append((float(r.get('y')), float(r.get('x')), float(r.get('width')), name,\n"
           "                  int(rest.split()[0])))\n"
           "for y, x, w, name, n in boxes:\n"
           "    path = [b[3] for b in sorted(boxes, reverse=True)\n"
           "            if b[0] > y and b[1] <= x + 0.02 and b[1] + b[2] >= x + w - 0.02]\n"
           "    print(';'.join(path + [name]), n)\n",
           File);
lines(".pb", File) ->
    python(
           "def varint(b, i):\n"
           "    v = s = 0\n"
           "    while True:\n"
           "        v |= (b[i] & 127) << s; s += 7; i += 1\n"
           "        if b[i - 1] < 128: return v, i\n"
           "def fields(b):\n"
           "    i = 0\n"
           "    while i < len(b):\n"
           "        k, i = varint(b, i); v, i = varint(b, i)\n"
           "        if k & 7 == 2: v, i = b[i:i + v], i + v\n"
           "        yield k >> 3, v\n"
           "def packed(b):\n"
           "    i = 0\n"
           "    while i < len(b):\n"
           "        v, i = varint(b, i); yield v\n"
           "top = list(fields(open(sys.argv[1], 'rb').read()))\n"
           "strings = [v.decode() for k, v in top if k == 6]\n"
           "dicts = lambda n: [dict(fields(v)) for k, v in top if k == n]\n"
           "functions = {d[1]: strings[d[2]] for d in dicts(5)}\n"
           "places = {d[1]: functions[dict(fields(d[4]))[1]] for d in dicts(4)}\n"
           "for d in dicts(2):\n"
           "    n, ns = packed(d[2])\n"
           "    assert ns == n * 10000000\n"
           "    print(';'.join(reversed([places[p] for p in packed(d[1])])), n)\n",
           File).

%% -- whatever happens -------------------------------------------------------------

what_there_is_is_written_when_it_ends_early(Config) ->
    [fairnif_test:eventually(
       fun() ->
               {Peer, Pid} = peer([]),
               File = file(Config, Who),
               {Port, Recorder} = start_recording([Pid, "--seconds", "3600", "--out", File]),
               fairnif_test:eventually(fun() -> filelib:is_regular(File) end),
               timer:sleep(500),
               kill(Signal, case Who of "node" -> Pid; "recorder" -> Recorder end),
               {Code, Said} = collect(Port),
               {ok, Lines} = file:read_file(File),
               ok = file:delete(File),
               catch_stop(Peer),
               ?assertEqual({Exit, true}, {Code, is(Says, Said)}, Said),
               is("^idle;scheduler [1-9]", Lines) orelse {Lines, Said}
       end) || {Who, Signal, Exit, Says} <-
                   [{"node", "KILL", 3, "has ended while it was recorded"},
                    {"recorder", "INT", 0, "samples, "}]].

catch_stop(Peer) ->
    try fairnif_watch_test:stop(Peer) catch _:_ -> ok end.

code_is_loaded_and_purged_meanwhile(_) ->
    {Peer, Pid} = loaded_peer([code, ring, heap, garbage]),
    {0, Lines} = record([Pid, "--seconds", "5", "--hz", "200", "--format", "collapsed"]),
    ?assert(is("^[^;]+;([^;]+;)*[a-z_]+:[^;]+/[0-9]+(;.*)? [0-9]+$", Lines)),
    is_unharmed(Peer, Pid).

no_thread_stays_stopped_when_the_recorder_is_killed(_) ->
    {Peer, Pid} = loaded_peer([ring, spawns, garbage, ets, files, dirty_cpu, dirty_io]),
    [begin
         {Port, Recorder} = start_recording([Pid, "--hz", "1000"]),
         timer:sleep(rand:uniform(200)),
         kill("KILL", Recorder),
         collect(Port)
     end || _ <- lists:seq(1, ?KILLS)],
    is_unharmed(Peer, Pid).

what_cannot_be_done_is_refused(_) ->
    [?assertMatch({{2, _}, _}, {record(Args), Args})
     || Args <- [[], ["1", "2"], ["1", "--name", "a"], ["1", "--hz", "0"], ["1", "--hz", "1001"],
                 ["1", "--seconds", "-1"], ["1", "--seconds"], ["1", "--format", "png"],
                 ["1", "--what"]]],
    [begin
         {Code, Said} = record(Args),
         ?assertEqual({3, true}, {Code, is(Why, Said)}, Said)
     end || {Args, Why} <- [{["foo@bar"], "no number of a process"},
                            {["4194304"], "there is no process"},
                            {["1"], "no node of Erlang"},
                            {[os:getpid(), "--out", "/nonexistent/x"], "cannot write"},
                            {[os:getpid(), "--seconds", "1", "--out", "/dev/full"],
                             "cannot write"}]].

%% -- helpers ----------------------------------------------------------------------

record(Args) ->
    run(["record" | Args]).

start_recording(Args) ->
    start(program(), ["record" | Args]).

file(Config, Name) ->
    filename:join(proplists:get_value(priv_dir, Config), Name).
