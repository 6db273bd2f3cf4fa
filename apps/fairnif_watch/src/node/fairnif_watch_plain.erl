%% @doc The watch without its native part: the watchdog process itself probes the responders.
%%
%% It probes only schedulers that have something to do, by `statistics(active_tasks_all)', which
%% never waits: an idle one is never woken, but for the two whose clocks it needs, since timers
%% stand still with their scheduler. It cannot see what runs there, nor a dirty scheduler, nor
%% anything while all normal schedulers are blocked.
-module(fairnif_watch_plain).

-export([new/2, period_ms/1, tick/2, reply/4, blocked/1, threads/1, blind/1]).

-export_type([watch/0]).

-record(watch, {owner :: pid(),
                period :: pos_integer(),    % ns, as all times here
                warn :: pos_integer(),
                error :: pos_integer(),
                ticked :: integer(),
                next_id = 1 :: pos_integer(),
                probes = 0 :: non_neg_integer(),
                %% Probed and not answered yet, by scheduler.
                probed = #{} :: #{pos_integer() => probe()}}).

-type probe() :: #{n := pos_integer(), begin_at := integer(), id := none | pos_integer(),
                  level := 0..2, reported := integer()}.
-opaque watch() :: #watch{}.

-define(SECOND, 1000000000).

%% @doc A watch that tells `Owner'. Times in `Config' are ms.
-spec new(pid(), #{atom() => term()}) -> watch().
new(Owner, Config) ->
    #{period_ms := Period, warn_ms := Warn, error_ms := Error} = Config,
    #watch{owner = Owner, period = max(10, Period) * 1000000, warn = Warn * 1000000,
           error = Error * 1000000, ticked = now_ns()}.

%% @doc How often tick/2 wants to be called.
-spec period_ms(watch()) -> pos_integer().
period_ms(#watch{period = Period}) ->
    Period div 1000000.

%% @doc Looks at all schedulers; probes through `Responders', by scheduler. More often than it is
%% due, it does nothing.
-spec tick(watch(), #{Scheduler :: pos_integer() => pid()}) -> watch().
tick(Watch = #watch{ticked = Before, period = Period}, Responders) ->
    case now_ns() of
        Now when Now - Before < Period div 2 -> Watch;
        Now -> tick(Now, Watch, Responders)
    end.

tick(Now, Watch = #watch{ticked = Before, period = Period}, Responders) ->
    Gap = Now - Before,
    Late = Gap > 4 * Period + 20000000,
    Watch1 = case Late of
                 true -> late(Gap, Watch);
                 false -> Watch
             end,
    Online = erlang:system_info(schedulers_online),
    Active = lists:enumerate(lists:sublist(erlang:statistics(active_tasks_all), Online)),
    Working = [N || {N, Tasks} <- Active, Tasks > 0],
    Watch2 = offline(Online, Now, Watch1#watch{ticked = Now}),
    judge(Now, probe(Working, Responders, Now, Watch2)).

%% Such a one delays no process.
offline(Online, Now, Watch = #watch{probed = Probed}) ->
    maps:fold(fun(N, #{n := K}, W) when N > Online -> reply(N, K, Now, W);
                 (_, _, W) -> W
              end, Watch, Probed).

%% Nothing is concluded from a time in which we did not run ourselves.
late(Gap, Watch = #watch{owner = Owner, probed = Probed}) ->
    Owner ! {fairnif_watch, #{event => late, gap_ns => Gap, throttled_ns => 0, stolen_ns => 0,
                              native => false}},
    Watch#watch{probed = maps:map(fun(_, P = #{begin_at := B}) -> P#{begin_at := B + Gap} end,
                                 Probed)}.

probe(Working, Responders, Now, Watch) ->
    lists:foldl(
      fun(N, W = #watch{probed = Probed, probes = Probes})
            when not is_map_key(N, Probed), is_map_key(N, Responders) ->
              map_get(N, Responders) ! {probe, Probes + 1},
              W#watch{probes = Probes + 1,
                      probed = Probed#{N => #{n => Probes + 1, begin_at => Now, id => none,
                                            level => 0, reported => Now}}};
         (_, W) ->
              W
      end, Watch, Working).

judge(Now, Watch = #watch{probed = Probed}) ->
    maps:fold(fun(N, Probe, W) -> judge(N, Probe, Now, W) end, Watch, Probed).

judge(N, Probe = #{begin_at := Begin, level := Level, reported := Reported, id := Id}, Now,
      Watch = #watch{warn = Warn, error = Error, probed = Probed, next_id = Next}) ->
    Blocked = Now - Begin,
    Now2 = if Blocked >= Error -> 2; Blocked >= Warn -> 1; true -> 0 end,
    case Now2 > Level orelse (Level > 0 andalso Now - Reported >= ?SECOND) of
        true when Id =:= none ->
            tell(blocked, N, Next, Begin, Blocked, Watch),
            Watch#watch{next_id = Next + 1,
                        probed = Probed#{N := Probe#{id := Next, level := Now2, reported := Now}}};
        true ->
            tell(blocked, N, Id, Begin, Blocked, Watch),
            Watch#watch{probed = Probed#{N := Probe#{level := Now2, reported := Now}}};
        false ->
            Watch
    end.

%% @doc A responder's answer: to which probe, and when it was given.
-spec reply(pos_integer(), pos_integer(), integer(), watch()) -> watch().
reply(Scheduler, K, At, Watch = #watch{probed = Probed}) ->
    case Probed of
        #{Scheduler := #{n := K, id := Id, begin_at := Begin}} ->
            case Id of
                none -> ok;
                _ -> tell(unblocked, Scheduler, Id, Begin, max(0, At - Begin), Watch)
            end,
            Watch#watch{probed = maps:remove(Scheduler, Probed)};
        _ ->
            Watch
    end.

tell(Event, N, Id, Begin, Blocked, #watch{owner = Owner}) ->
    Owner ! {fairnif_watch,
             #{event => Event, id => Id, kind => normal, number => N, since => Begin,
               blocked_ns => Blocked, cpu_ns => 0, delay_ns => 0, state => unknown, syscall => none,
               fairnif => none, process => none, cause => unknown, stack => [],
               stack_note => <<"no stack without the native part">>, native => false}},
    ok.

%% @doc The schedulers that were reported as blocked and are, and since when.
-spec blocked(watch()) -> #{Scheduler :: pos_integer() => Since :: integer()}.
blocked(#watch{probed = Probed}) ->
    maps:from_list([{N, Begin} || {N, #{id := Id, begin_at := Begin}} <- maps:to_list(Probed),
                                  Id =/= none]).

%% @doc The normal schedulers, as far as can be said: not how busy their threads are.
-spec threads(#{pos_integer() => integer()}) -> [#{atom() => term()}].
threads(Blocked) ->
    Online = erlang:system_info(schedulers_online),
    Now = now_ns(),
    [#{kind => normal, number => N, tid => 0,
       state => if N > Online -> offline; Tasks > 0 -> busy; true -> idle end,
       busy => none, busy_ns => none, fairnif => none, cpu_ns => none,
       blocked_ns => case Blocked of
                      #{N := Since} -> max(0, Now - Since);
                      #{} -> 0
                  end}
     || {N, Tasks} <- lists:enumerate(
                        lists:sublist(erlang:statistics(active_tasks_all),
                                      erlang:system_info(schedulers)))].

%% @doc What cannot be seen so, and why it is so.
-spec blind(Why :: term()) -> [binary()].
blind(Why) ->
    Reason = case Why of
                 off -> <<"it is switched off">>;
                 no_folder -> <<"there is no folder that it could be put into">>;
                 dirty_io_full ->
                     <<"all dirty I/O schedulers are taken, without which there are no files">>;
                 {Kind, Text} when is_atom(Kind), is_list(Text) ->
                     unicode:characters_to_binary(io_lib:format("~ts: ~ts", [Kind, Text]));
                 _ ->
                     unicode:characters_to_binary(io_lib:format("~0tp", [Why]))
             end,
    [<<"the native part is not loaded (", Reason/binary, "): nothing that blocks is named">>,
     <<"a scheduler that native code blocks is seen, but not what it runs there">>,
     <<"while all normal schedulers are blocked nothing is seen">>,
     <<"what dirty schedulers run, and how busy threads are, is not seen">>].

now_ns() ->
    erlang:monotonic_time(nanosecond).
