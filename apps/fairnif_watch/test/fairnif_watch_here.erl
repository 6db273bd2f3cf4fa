%% What several tests of the watch need.
-module(fairnif_watch_here).

-export([source_dir/0, root/0, with_watch/2, wait_finding/2, dirty_cpu/2]).

%% The directory of the tests' sources.
source_dir() ->
    filename:join([root(), "apps", "fairnif_watch", "test"]).

%% The repository's.
root() ->
    {ok, Dir} = file:get_cwd(),
    up(filename:split(Dir)).

up(Parts) ->
    Dir = filename:join(Parts),
    case filelib:is_file(filename:join([Dir, "apps", "fairnif_watch"])) of
        true -> Dir;
        false -> up(lists:droplast(Parts))
    end.

%% Runs Fun with a watch that has these settings.
with_watch(Config, Fun) ->
    {ok, _} = fairnif_watch:start(maps:merge(#{log => false, telemetry => false}, Config)),
    try Fun()
    after fairnif_watch:stop()
    end.

%% The first finding for which Is answers true, within so many ms; subscribes meanwhile.
wait_finding(Is, Ms) ->
    {ok, Ref} = fairnif_watch:subscribe(self()),
    Deadline = erlang:monotonic_time(millisecond) + Ms,
    Found = next(Is, Deadline),
    ok = fairnif_watch:unsubscribe(Ref),
    Found.

next(Is, Deadline) ->
    receive
        {fairnif_watch, _, {finding, Finding}} ->
            case Is(Finding) of
                true -> Finding;
                false -> next(Is, Deadline)
            end;
        {fairnif_watch, _, {view, _}} ->
            next(Is, Deadline)
    after max(0, Deadline - erlang:monotonic_time(millisecond)) ->
            {none, fairnif_watch:report()}
    end.

%% Processes, so many, each for so long in a NIF on a dirty CPU scheduler; asleep there, so that the
%% machine has room for the rest.
dirty_cpu(Count, Ms) ->
    ok = fairnif_watch_test:build(),
    {module, _} = code:ensure_loaded(fairnif_watch_block_nif),
    [spawn(fun() -> fairnif_watch_block_nif:sleep_dirty_cpu(Ms) end) || _ <- lists:seq(1, Count)].
