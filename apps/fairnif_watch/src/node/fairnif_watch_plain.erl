%% @doc The watch without its native part: the watchdog process itself pokes the hearts.
%%
%% It pokes only schedulers that have something to do, by `statistics(active_tasks_all)', which
%% waits for nobody: an idle one is never woken, but for the two whose clocks it needs, since timers
%% stand still with their scheduler. It cannot see what runs there, nor a dirty scheduler, nor
%% anything while all normal schedulers are blocked.
-module(fairnif_watch_plain).

-export([new/2, period_ms/1, tick/2, beat/4, held/1, threads/1, blind/1]).

-export_type([watch/0]).

-record(watch, {owner :: pid(),
                period :: pos_integer(),    % ns, as all times here
                warn :: pos_integer(),
                error :: pos_integer(),
                ticked :: integer(),
                next_id = 1 :: pos_integer(),
                pokes = 0 :: non_neg_integer(),
                %% Poked and not answered yet, by scheduler.
                poked = #{} :: #{pos_integer() => poke()}}).

-type poke() :: #{n := pos_integer(), begin_at := integer(), id := none | pos_integer(),
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

%% @doc Looks at all schedulers; pokes through `Hearts', by scheduler. More often than it is due, it
%% does nothing.
-spec tick(watch(), #{Scheduler :: pos_integer() => pid()}) -> watch().
tick(Watch = #watch{ticked = Before, period = Period}, Hearts) ->
    case now_ns() of
        Now when Now - Before < Period div 2 -> Watch;
        Now -> tick(Now, Watch, Hearts)
    end.

tick(Now, Watch = #watch{ticked = Before, period = Period}, Hearts) ->
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
    judge(Now, poke(Working, Hearts, Now, Watch2)).

%% Such a one holds nobody up.
offline(Online, Now, Watch = #watch{poked = Poked}) ->
    maps:fold(fun(N, #{n := K}, W) when N > Online -> beat(N, K, Now, W);
                 (_, _, W) -> W
              end, Watch, Poked).

%% Nothing is concluded from a time in which we did not run ourselves.
late(Gap, Watch = #watch{owner = Owner, poked = Poked}) ->
    Owner ! {fairnif_watch, #{event => late, gap_ns => Gap, throttled_ns => 0, stolen_ns => 0,
                              native => false}},
    Watch#watch{poked = maps:map(fun(_, P = #{begin_at := B}) -> P#{begin_at := B + Gap} end,
                                 Poked)}.

poke(Working, Hearts, Now, Watch) ->
    lists:foldl(
      fun(N, W = #watch{poked = Poked, pokes = Pokes})
            when not is_map_key(N, Poked), is_map_key(N, Hearts) ->
              map_get(N, Hearts) ! {poke, Pokes + 1},
              W#watch{pokes = Pokes + 1,
                      poked = Poked#{N => #{n => Pokes + 1, begin_at => Now, id => none,
                                            level => 0, reported => Now}}};
         (_, W) ->
              W
      end, Watch, Working).

judge(Now, Watch = #watch{poked = Poked}) ->
    maps:fold(fun(N, Poke, W) -> judge(N, Poke, Now, W) end, Watch, Poked).

judge(N, Poke = #{begin_at := Begin, level := Level, reported := Reported, id := Id}, Now,
      Watch = #watch{warn = Warn, error = Error, poked = Poked, next_id = Next}) ->
    Held = Now - Begin,
    Now2 = if Held >= Error -> 2; Held >= Warn -> 1; true -> 0 end,
    case Now2 > Level orelse (Level > 0 andalso Now - Reported >= ?SECOND) of
        true when Id =:= none ->
            tell(held, N, Next, Begin, Held, Watch),
            Watch#watch{next_id = Next + 1,
                        poked = Poked#{N := Poke#{id := Next, level := Now2, reported := Now}}};
        true ->
            tell(held, N, Id, Begin, Held, Watch),
            Watch#watch{poked = Poked#{N := Poke#{level := Now2, reported := Now}}};
        false ->
            Watch
    end.

%% @doc A heart's answer: to which poke, and when it was given.
-spec beat(pos_integer(), pos_integer(), integer(), watch()) -> watch().
beat(Scheduler, K, At, Watch = #watch{poked = Poked}) ->
    case Poked of
        #{Scheduler := #{n := K, id := Id, begin_at := Begin}} ->
            case Id of
                none -> ok;
                _ -> tell(released, Scheduler, Id, Begin, max(0, At - Begin), Watch)
            end,
            Watch#watch{poked = maps:remove(Scheduler, Poked)};
        _ ->
            Watch
    end.

tell(Event, N, Id, Begin, Held, #watch{owner = Owner}) ->
    Owner ! {fairnif_watch,
             #{event => Event, id => Id, kind => normal, number => N, since => Begin,
               held_ns => Held, cpu_ns => 0, delay_ns => 0, state => unknown, syscall => none,
               fairnif => none, process => none, cause => unknown, stack => [],
               stack_note => <<"no stack without the native part">>, native => false}},
    ok.

%% @doc The schedulers that were told to be held and are, and since when.
-spec held(watch()) -> #{Scheduler :: pos_integer() => Since :: integer()}.
held(#watch{poked = Poked}) ->
    maps:from_list([{N, Begin} || {N, #{id := Id, begin_at := Begin}} <- maps:to_list(Poked),
                                  Id =/= none]).

%% @doc The normal schedulers, as far as can be said: not how busy their threads are.
-spec threads(#{pos_integer() => integer()}) -> [#{atom() => term()}].
threads(Held) ->
    Online = erlang:system_info(schedulers_online),
    Now = now_ns(),
    [#{kind => normal, number => N, tid => 0,
       state => if N > Online -> offline; Tasks > 0 -> busy; true -> idle end,
       busy => none, busy_ns => none, fairnif => none, cpu_ns => none,
       held_ns => case Held of
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
