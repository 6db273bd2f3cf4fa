%% The driver under test, fairnif_test_driver.c: its ports, its orders, and the file in which it
%% counts.
-module(fairnif_test_driver).

-export([build/0, erl_args/0, once/1, kept/0, put_off/2, control/3, open/0, open/1, owner/0,
         order/1, order/4, journal/1, stopped/1, no_jobs/0, nothing_left/0, flushed/0, is_loaded/1,
         dir/0, mapped/0, fds/0, counters_file/0, new_counters/0, new_counters_in_place/0,
         counters/0, count/1, hold/0, release/0]).

-define(DRIVER, "fairnif_test_driver").
%% Of its control.
-define(WORK, 1).
-define(JOURNAL, 3).

%% The libraries that the tests load, beside those of fairnif's tests.
build() ->
    fairnif_test:build(?MODULE, fairnif_driver:include_dir()).

%% Arguments with which `erl' finds the application and its tests.
erl_args() ->
    fairnif_test:erl_args([fairnif_driver, ?MODULE]).

control(Port, Command, Data) ->
    fairnif_driver:control(Port, Command, Data).

open() ->
    open(?DRIVER " binary").

open(Command) ->
    open_port({spawn_driver, Command}, [binary]).

%% What is put off to there answers, through a port of its own; the driver is the caller's.
once(Where) ->
    ok = fairnif_driver:load(dir(), ?DRIVER),
    Port = open(),
    Answer = put_off(Port, Where),
    true = port_close(Port),
    Answer.

put_off(Port, Where) ->
    control(Port, ?WORK, order(Where)).

%% A port that stays open, and keeps its driver.
kept() ->
    ok = fairnif_driver:load(dir(), ?DRIVER),
    owner().

%% A port that another process owns.
owner() ->
    Self = self(),
    Owner = spawn(fun() -> Self ! {self(), open()}, receive stop -> ok end end),
    receive {Owner, Port} -> {Owner, Port} end.

order(Where) ->
    order(Where, 1, 0, 0).

order(Where, Ms, Ticks, Number) ->
    <<Where, Ms:32, Ticks, Number:32>>.

journal(Port) ->
    [N || <<N:32/little>> <= control(Port, ?JOURNAL, "")].

stopped(N) ->
    fairnif_test:eventually(fun() -> count(stops) =:= N orelse counters() end).

no_jobs() ->
    #{jobs := Jobs} = Counts = fairnif_driver:counts(),
    Jobs =:= 0 orelse Counts.

nothing_left() ->
    #{jobs := Jobs, ports := Ports, requests := Requests} = Counts = fairnif_driver:counts(),
    {Jobs, Ports, Requests} =:= {0, 0, 0} orelse Counts.

flushed() ->
    receive {'EXIT', Port, _} when is_port(Port) -> flushed();
            {'EXIT', _, normal} -> flushed();
            M -> [M | flushed()]
    after 0 -> [] end.

is_loaded(Name) ->
    {ok, Loaded} = erl_ddll:loaded_drivers(),
    lists:member(Name, Loaded).

dir() ->
    filename:dirname(fairnif_test:library(fairnif_test_driver)).

mapped() ->
    {ok, Maps} = file:read_file("/proc/self/maps"),
    string:find(Maps, "fairnif_test_driver.so") =/= nomatch.

fds() ->
    {ok, Files} = file:list_dir("/proc/self/fd"),
    length(Files).

%% -- counters ----------------------------------------------------------------

names() ->
    [release, inits, finishes, starts, stops, closings, begun, ended, cancelled, notified, overlaps,
     freed, moved].

counters_file() ->
    filename:join(dir(), "driver_counters").

new_counters() ->
    ok = file:write_file(counters_file(), <<0:(64 * length(names()))>>),
    true = os:putenv("FAIRNIF_TEST_COUNTERS", counters_file()).

new_counters_in_place() ->
    write(<<0:(64 * length(names()))>>).

%% From now on all work is over at once; until hold/0, or new counters.
release() ->
    write(<<1:64/native>>).

hold() ->
    write(<<0:64>>).

%% The driver has it mapped.
write(Bytes) ->
    {ok, File} = file:open(counters_file(), [read, write, raw, binary]),
    ok = file:pwrite(File, 0, Bytes),
    ok = file:close(File).

counters() ->
    {ok, Bytes} = file:read_file(counters_file()),
    maps:from_list(lists:zip(names(), [N || <<N:64/native>> <= Bytes])).

count(Name) ->
    maps:get(Name, counters()).
