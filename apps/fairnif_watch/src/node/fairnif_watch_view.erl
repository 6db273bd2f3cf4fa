%% The view of this node that everybody is shown: built from what is there. Asks no process.
-module(fairnif_watch_view).

-export([make/1]).

%% Of the application. On a node to which this was brought there is none to ask.
-define(VERSION, "1.0.0-rc.1").
%% Thousandths of the processors' time: what others may take unsaid.
-define(OTHERS, 250).

%% @doc The view, from the last sample, findings and counters.
-spec make(map()) -> map().
make(#{sample := #{threads := Threads, looks := Looks, native := Native} = Sample} = In) ->
    Look = lists:last(Looks),
    Findings = maps:get(findings, In),
    #{schema_version => 1,
      node => node(),
      at => maps:get(at, Sample),
      started => maps:get(started, In),
      otp => list_to_binary(erlang:system_info(otp_release)),
      version => <<?VERSION>>,
      native => Native =/= #{},
      blind => maps:get(blind, Sample),
      crowded => crowded(Native, maps:get(online, Sample)),
      schedulers => schedulers(Threads, Look, Sample),
      queues => queues(Look),
      pools => maps:from_list([{Kind, pool(Kind, Sample, Look)} || Kind <- [dirty_cpu, dirty_io]]),
      detectors => [detector(Detector, [F || #{detector := Of} = F <- Findings, Of =:= Name])
                    || #{name := Name} = Detector <- fairnif_watch_detector:all()],
      findings => Findings,
      top => maps:get(top, Sample),
      counters => (maps:merge(Native, maps:get(counters, In)))
                      #{subscribers => maps:get(subscribers, In)},
      memory => memory()}.

%% Do others leave fewer processors than there are schedulers? Then all that is measured here takes
%% longer than it would.
crowded(#{others := Others}, #{normal := Online}) when Others >= ?OTHERS ->
    Processors = fairnif_watch_sample:processors(logical_processors, Online),
    case (1000 - Others) * Processors < 1000 * Online of
        true ->
            iolist_to_binary(["Other programs take ", integer_to_binary(Others div 10),
                              " % of this machine's processors: what runs here takes longer."]);
        false ->
            none
    end;
crowded(_, _) ->
    none.

queues(#{queues := Queues, dirty_cpu := {Cpu, _}, dirty_io := {Io, _}}) ->
    #{normal => lists:sum(Queues), dirty_cpu => Cpu, dirty_io => Io}.

pool(Kind, #{online := Online, waits := Waits}, Look) ->
    {Queue, Active} = maps:get(Kind, Look),
    #{size => maps:get(Kind, Online), busy => max(0, Active - Queue), queue => Queue,
      wait_ms => case Waits of
                     #{Kind := {_, Ms}} -> Ms;
                     #{} -> none
                 end}.

%% Without the watchdog's threads all that is known of the normal ones is their queue.
schedulers([], #{queues := Queues}, _) ->
    [#{kind => normal, number => N, state => unknown, busy => none, run_queue => Queue,
       blocked_ms => 0.0, running => none, waiting => none}
     || {N, Queue} <- numbered(Queues)];
schedulers(Threads, #{queues := Queues}, Sample) ->
    Lengths = maps:from_list(numbered(Queues)),
    Waited = waited(Sample),
    [#{kind => Kind, number => N, state => State, busy => maps:get(busy, Thread, none),
       run_queue => case Kind of
                        normal -> maps:get(N, Lengths, none);
                        _ -> none
                    end,
       blocked_ms => maps:get(blocked_ns, Thread, 0) / 1.0e6,
       running => running(maps:get(fairnif, Thread, none)),
       waiting => maps:get({Kind, N}, Waited, none)}
     || #{kind := Kind, number := N, state := State} = Thread <- Threads].

%% For which part of the second each was ready and had no processor.
waited(#{delays := Delays, interval_ms := Ms}) ->
    maps:from_list([{{Kind, N}, min(1.0, Ns / (Ms * 1.0e6))}
                    || #{kind := Kind, number := N, waited_ns := Ns} <- Delays]);
waited(_) ->
    #{}.

numbered(List) -> lists:zip(lists:seq(1, length(List)), List).

running(#{function := {M, F, A}}) -> fairnif_watch_culprit:mfa(M, F, A);
running(_) -> none.

%% `verdict' is of now; `found', how many of its findings are kept, of before, too. Both are of the
%% findings, and so agree with them: one says more than the issue that it was updated by, and does
%% not become less grave.
detector(#{name := Name, looks_for := LooksFor, remedy := Usual}, Findings) ->
    Ongoing = [F || #{ongoing := true} = F <- Findings],
    {Sentence, Remedy} = said(Usual, Ongoing, Findings),
    #{name => Name, looks_for => LooksFor, found => length(Findings),
      verdict => fairnif_watch_detector:verdict(Ongoing), sentence => Sentence, remedy => Remedy}.

said(_, [], []) ->
    {<<"Nothing found.">>, none};
said(_, [], [#{sentence := Last} | _] = Findings) ->
    {iolist_to_binary(["Nothing now; found ", integer_to_binary(length(Findings)),
                       " times. The last: ", Last]), none};
said(Usual, [#{sentence := First} = Finding | More], _) ->
    {iolist_to_binary([First, [[" (and ", integer_to_binary(length(More)), " more)"]
                               || More =/= []]]),
     maps:get(remedy, Finding, Usual)}.

%% What the VM has at hand; erlang:memory/0 would wait for every scheduler.
memory() ->
    maps:from_list([{Key, erlang:system_info(Item)}
                    || {Key, Item} <- [{processes, process_count}, {process_limit, process_limit},
                                       {ports, port_count}, {port_limit, port_limit},
                                       {atoms, atom_count}, {atom_limit, atom_limit},
                                       {ets_tables, ets_count}, {ets_limit, ets_limit}]]).
