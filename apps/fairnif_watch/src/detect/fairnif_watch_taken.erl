%% Who has the processors while schedulers wait for one, and what to do about it. Pure.
-module(fairnif_watch_taken).

-export([busy_waiting/1, sum/1, who/1, name/1, words/2, listed/1, quota/1, remedy/2]).

-export_type([taken/0, busy_waiting/0, who/0]).

-type taken() :: none | #{all := pos_integer(), usable := pos_integer(), native := float(),
                          ports := float(), others := float(), hypervisor := float(),
                          quota := float(), periods := non_neg_integer(),
                          throttled := non_neg_integer(), throttled_ns := non_neg_integer()}.
%% Of a second, in processors: `native' (threads of this node that are no normal schedulers),
%% `ports' (programs that it started), `others', `hypervisor'; how many there are, and how many this
%% node may use. `quota', too, 0 where there is none.

-type busy_waiting() :: on | off | unknown.
-type who() :: native | ports | others | several | quota | hypervisor | unknown.

%% One that has this part of the processors, and this many times what the rest has, has them.
-define(MUCH, 0.5).
-define(TIMES, 2).
%% The same where it is not known on which processors the others are.
-define(NEARLY_ALL, 0.8).

%% @doc Whether schedulers spin before they sleep, by the emulator's command line, arguments ended
%% by 0; `off' where all three kinds do not.
-spec busy_waiting(binary()) -> busy_waiting().
busy_waiting(<<>>) ->
    unknown;
busy_waiting(Line) ->
    Args = lists:takewhile(fun(Arg) -> Arg =/= <<"--">> end,
                           binary:split(Line, <<0>>, [global])),
    case lists:usort([set(Flag, Args, spins)
                      || Flag <- [<<"-sbwt">>, <<"-sbwtdcpu">>, <<"-sbwtdio">>]]) of
        [<<"none">>] -> off;
        _ -> on
    end.

%% The last one counts. Flag and value may be one argument: "-sbwtnone".
set(Flag, [Flag, Value | More], _) ->
    set(Flag, More, Value);
set(Flag, [Arg | More], So) ->
    set(Flag, More, case Arg =:= <<Flag/binary, "none">> of true -> <<"none">>; false -> So end);
set(_, [], So) ->
    So.

%% @doc What is known of several seconds.
-spec sum([taken()]) -> taken().
sum(Seconds) ->
    case [Taken || #{} = Taken <- Seconds] of
        [] ->
            none;
        [Last | _] = Known ->
            Of = fun(Key) -> lists:sum([maps:get(Key, Taken) || Taken <- Known]) end,
            lists:foldl(fun(Key, Acc) -> Acc#{Key := Of(Key) / length(Known)} end,
                        Last#{periods := Of(periods), throttled := Of(throttled),
                              throttled_ns := Of(throttled_ns)},
                        [native, ports, others, hypervisor])
    end.

%% @doc Who it is. Less than half is no accusation.
-spec who(taken()) -> who().
who(none) ->
    unknown;
who(#{periods := Periods, throttled := Throttled}) when Throttled > 0, 5 * Throttled >= Periods ->
    quota;
who(#{all := All, usable := All} = Taken) ->
    Sum = lists:sum([Part || {_, Part, _} <- parts(Taken)]),
    {Who, Most, _} = hd(lists:reverse(lists:keysort(2, parts(Taken)))),
    if Sum < ?MUCH * All -> unknown;
       Most >= ?MUCH * All, Most >= ?TIMES * (Sum - Most) -> Who;
       true -> several
    end;
who(Taken) ->
    %% On which processors the others are is not known.
    case [Who || {Who, Part, Of} <- parts(Taken), Part >= ?NEARLY_ALL * Of] of
        [Who] -> Who;
        _ -> unknown
    end.

%% And of how many processors.
parts(#{all := All, usable := Usable, native := Native, ports := Ports, others := Others,
        hypervisor := Stolen}) ->
    [{native, Native, Usable}, {ports, Ports, Usable}, {others, Others, All},
     {hypervisor, Stolen, All}].

%% @doc That, behind a colon; `Names': of native functions.
-spec words(taken(), [binary()]) -> iodata().
words(Taken, Names) ->
    case who(Taken) of
        unknown -> "who had the processors is not known";
        quota -> quota(Taken);
        several ->
            ["of the processors ", listed([part(P) || P <- parts(Taken), is_some(P)])];
        Who -> [part(lists:keyfind(Who, 1, parts(Taken))),
                " of the processors",
                [[" (", lists:join(", ", Names), ")"] || Who =:= native, Names =/= []]]
    end.

is_some({_, Part, Of}) -> Part >= 0.05 * Of.

%% @doc In words.
-spec name(native | ports | others | hypervisor | quota) -> string().
name(native) -> "native code of this node";
name(ports) -> "programs that this node started";
name(others) -> "other programs";
name(hypervisor) -> "the hypervisor's other guests";
name(quota) -> "the control group's quota".

part({Who, Part, Of}) ->
    [name(Who), io_lib:format(" took ~b %", [min(100, round(100 * Part / Of))])].

%% @doc "a, b and c".
-spec listed([iodata()]) -> iodata().
listed([One]) -> One;
listed(Several) -> [lists:join(", ", lists:droplast(Several)), " and ", lists:last(Several)].

%% @doc How often the control group's quota stopped the node.
-spec quota(taken()) -> iodata().
quota(#{quota := Quota, periods := Periods, throttled := Times, throttled_ns := Ns}) ->
    [name(quota), [io_lib:format(" of ~.2f processors", [Quota]) || Quota > 0],
     io_lib:format(" stopped it in ~b of ~b periods, for ", [Times, Periods]),
     fairnif_watch_finding:ms(Ns div max(1, Times)), " each on all its processors together"].

%% @doc What to do about it.
-spec remedy(who(), busy_waiting()) -> binary() | none.
remedy(native, off) ->
    <<"Busy waiting is off already: run fewer such jobs at once, or let them pause.">>;
remedy(native, Spins) ->
    iolist_to_binary([without_spinning(Spins), " A scheduler that spins before it sleeps lets "
                      "others pass again and again, and waits behind them. It costs a wake-up 1 "
                      "to 10 us more."]);
remedy(ports, _) ->
    <<"Start fewer of these programs at once, or with a lower priority (nice).">>;
remedy(quota, off) ->
    <<"Start only as many schedulers as the quota has processors (+S 2:2 for up to two). Else "
      "raise the quota.">>;
remedy(quota, Spins) ->
    iolist_to_binary([without_spinning(Spins),
                      " Or only as many schedulers as the quota has processors (+S 2:2 for up to "
                      "two). With 32 of them on 0.6 processors a node that did little was stopped "
                      "in 93 to 130 of 196 periods; in 1 of 195 without busy waiting, in 2 of 195 "
                      "with 2 schedulers. Else raise the quota."]);
remedy(hypervisor, _) ->
    <<"Ask whoever runs the host for processors of your own.">>;
remedy(unknown, _) ->
    none;
remedy(_, _) ->
    <<"Run fewer programs on this machine, or give this node more weight: nice, or the control "
      "group's cpu.weight (cpu.shares).">>.

without_spinning(Spins) ->
    <<"+sbwt none +sbwtdcpu none +sbwtdio none in vm.args",
      (case Spins of unknown -> <<", where they are not set yet.">>; _ -> <<".">> end)/binary>>.
