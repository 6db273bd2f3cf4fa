%% `bin/fairnif check': measures one function and says whether it is well-behaved.
%%
%% Each measurement has a peer node of its own, so that none finds what another left behind; timing
%% and tracing never meet. A peer that crashes, hangs or runs out of memory is a finding about the
%% function; this node goes on whatever happens there.
-module(fairnif_lab_check).

-export([run/2, steps/1]).

-export_type([options/0, result/0]).

-type options() :: #{sizes => [pos_integer()],          % bytes; default 1 KiB, 1 MiB, or the file's
                     init => unicode:chardata(), file => file:filename(),
                     against => fairnif_lab_subject:source(),
                     flags => [string()], paths => [file:filename()],
                     time_ms => pos_integer(),          % of each measurement; default 1000
                     runs => pos_integer(),             % timed batches; default what time allows
                     limit_ns => pos_integer(),         % for holds; default 1 ms
                     timeout_ms => pos_integer(),       % for one call; default 30 s
                     memory => pos_integer(),           % bytes of data that a node may have
                     strict => boolean(),
                     waive => #{fairnif_lab_verdict:property() => unicode:chardata()},
                     progress => fairnif_lab_progress:progress()}.
%% docs/manual/check.md describes every key, with its unit.
-type result() :: #{expression := binary(), options := map(), exit := 0 | 1 | 3,
                    thresholds := [map()], machine := map(), subjects := [map()]}.

-define(SIZES, [1024, 1048576]).
-define(TIME_MS, 1000).
-define(TIMEOUT_MS, 30000).
%% Nodes beside the first one in which a first call is looked at.
-define(MORE_FIRSTS, 2).
%% Of the memory that is available the peer may use so much: the rest of the machine lives on.
-define(MEMORY_PART, 0.7).
%% What a node has mapped before it does anything, and room to work in.
-define(VM_BYTES, 536870912).

%% @doc Measures and judges. `usage': the expression or an option is wrong; `cannot_say': this
%% machine cannot measure that; `failed': a peer could not be used. What the function does wrong, a
%% crash included, is no error but a verdict.
-spec run(fairnif_lab_subject:source(), options()) ->
          {ok, result()} | {error, {usage | failed | cannot_say, unicode:chardata()}}.
run(Source, Opts) ->
    try
        folders(Opts),
        Data = data(Opts),
        Sizes = sizes(Opts, Data),
        Subjects = [{subject, subject(Source, subject, Data, Opts)}
                    | [{against, subject(Against, against, Data, Opts)}
                       || #{against := Against} <- [Opts]]],
        enough_memory(Sizes, fairnif_lab_machine:memory_available()),
        Filled = maps:merge(#{time_ms => ?TIME_MS, timeout_ms => ?TIMEOUT_MS, flags => [],
                              progress => fairnif_lab_progress:none()}, Opts),
        BySize = [size(Subjects, Size, Filled) || Size <- Sizes],
        fairnif_lab_progress:stop(maps:get(progress, Filled)),
        {ok, result(Subjects, Sizes, BySize, Filled)}
    catch
        throw:{Kind, Text} when Kind =:= usage; Kind =:= failed; Kind =:= cannot_say ->
            {error, {Kind, Text}}
    end.

%% @doc How many steps it tells its progress.
-spec steps(options()) -> pos_integer().
steps(Opts) ->
    Subjects = case Opts of #{against := _} -> 2; _ -> 1 end,
    Sizes = case Opts of
                #{sizes := Given} -> length(Given);
                #{file := _} -> 1;
                _ -> length(?SIZES)
            end,
    Sizes * (1 + length(measurements()) * Subjects).

%% ---- what is asked for ----

%% Code that is not found later would be blamed on the expression.
folders(Opts) ->
    [throw({usage, ["there is no folder ", Dir, " to take code from"]})
     || Dir <- maps:get(paths, Opts, []), not filelib:is_dir(Dir)].

data(#{file := File}) ->
    case file:read_file(File) of
        {ok, <<>>} -> throw({usage, [File, " is empty"]});
        {ok, Data} -> {file, Data};
        {error, Why} -> throw({usage, ["cannot read ", File, ": ", file:format_error(Why)]})
    end;
data(_) ->
    random.

sizes(#{sizes := Sizes} = Opts, {file, Data}) ->
    case [S || S <- Sizes, S > byte_size(Data)] of
        [] -> Sizes;
        [Size | _] ->
            throw({usage, io_lib:format("~ts has ~b bytes, and a size of ~b is asked for",
                                        [maps:get(file, Opts), byte_size(Data), Size])})
    end;
sizes(_, {file, Data}) -> [byte_size(Data)];
sizes(Opts, random) ->
    case maps:get(sizes, Opts, ?SIZES) of
        [_ | _] = Sizes -> Sizes;
        Other -> throw({usage, io_lib:format("~0tp is not a list of sizes", [Other])})
    end.

subject(Source, Slot, Data, Opts) ->
    Spec = maps:merge(#{slot => Slot, data => Data}, maps:with([init], Opts)),
    case fairnif_lab_subject:new(Source, Spec) of
        {ok, Subject} -> Subject;
        {error, {usage, Text}} when Slot =:= against -> throw({usage, ["--against: ", Text]});
        {error, Error} -> throw(Error)
    end.

enough_memory(Sizes, Available) when is_integer(Available) ->
    Needed = 3 * lists:max(Sizes) + ?VM_BYTES,
    Needed =< Available orelse
        throw({cannot_say, io_lib:format("inputs of ~ts need ~ts of memory, and ~ts are available; "
                                         "give smaller sizes",
                                         [fairnif_lab_table:bytes(B)
                                          || B <- [lists:max(Sizes), Needed, Available]])});
enough_memory(_, unknown) ->
    true.

%% ---- one size ----

%% #{Role => SizeResult}, and under `machine' what was learned about the machine.
size(Subjects, Size, Opts) ->
    step(Opts, Size, "time"),
    Start = maps:from_list([{Role, #{size => Size, error => undefined}} || {Role, _} <- Subjects]),
    Timed = timed(Subjects, Size, Opts, Start),
    lists:foldl(fun({Role, Subject}, Results) ->
                        #{Role := Figures} = Results,
                        Measured = rest(Subject, Size, Opts, Figures),
                        Results#{Role := Measured#{
                                   verdicts => fairnif_lab_verdict:judge(Measured, Opts)}}
                end, Timed, Subjects).

%% The first peer: does it return at all? Then the times of those that do.
timed(Subjects, Size, Opts, Start) ->
    Probes = [{Role, Subject, probe(Subject, Size, Opts)} || {Role, Subject} <- Subjects],
    Failed = lists:foldl(fun({Role, _, {error, Text}}, Acc) -> error_in(Role, Text, Acc);
                            ({_, _, {ok, _}}, Acc) -> Acc
                         end, Start, Probes),
    Good = [{Role, Subject, Ns} || {Role, Subject, {ok, Ns}} <- Probes],
    times(Good, Size, Opts, Failed).

probe(Subject, Size, #{timeout_ms := TimeoutMs} = Opts) ->
    Answer = in_peer([], [Subject], Size, Opts,
                     fun(Peer) -> fairnif_lab_peer:call(Peer, {fairnif_lab_check_peer, probe,
                                                               [Subject]}, TimeoutMs) end),
    case Answer of
        {ok, Outcome, _} -> Outcome;
        {error, {timeout, _}} ->
            {error, text(["had not returned after ",
                          fairnif_lab_table:duration(TimeoutMs * 1.0e6)])};
        {error, Reason} -> {error, text(fairnif_lab_peer:format_error(Reason))}
    end.

times([], _, _, Results) ->
    Results;
times(Good, Size, Opts, Results) ->
    case times_together(Good, Size, Opts, Results) of
        {ok, Timed} ->
            Timed;
        {error, Text} when length(Good) =:= 1 ->
            [{Role, _, _}] = Good,
            error_in(Role, ["while timed: ", Text], Results);
        {error, _} ->
            %% Which of them it was shows when each is alone.
            lists:foldl(fun(One, Acc) -> times([One], Size, Opts, Acc) end, Results, Good)
    end.

times_together(Good, Size, Opts, Results) ->
    Subjects = [Subject || {_, Subject, _} <- Good],
    Asked = maps:with([time_ms, runs], Opts),
    Slowest = lists:max([Ns || {_, _, Ns} <- Good]),
    case measured([], Subjects, Size, Opts, times, [Subjects, Asked], Slowest) of
        {ok, {ok, #{results := Times, erlang := Erlang, dirty_trip := Trip}}, Others} ->
            {ok, lists:foldl(
              fun({{Role, _, _}, #{time := Time, per_call := PerCall}}, Acc) ->
                      Charge = charge(PerCall, maps:get(mean, Time), Erlang),
                      add(Role, #{time => Time, charge => Charge, others => [Others]}, Acc)
              end, Results#{machine => #{dirty_trip => Trip, erlang => Erlang}},
              lists:zip(Good, Times))};
        {ok, {error, _} = Error, _} ->
            Error;
        {error, Reason} ->
            {error, fairnif_lab_peer:format_error(Reason)}
    end.

%% `ns': of one call, on schedulers.
charge(PerCall, Ns, Erlang) ->
    PerMs = PerCall * 1.0e6 / max(1, Ns),
    #{per_call => PerCall, ns => Ns, per_ms => PerMs, erlang => Erlang,
      ratio => PerMs / fairnif_lab_stats:median(maps:values(Erlang))}.

%% Time for which the caller waits in a receive is nobody's, and what others had of its processor is
%% not charged to anybody.
on_schedulers(#{charge := #{per_call := PerCall, erlang := Erlang}, time := #{mean := Ns},
                slices := #{normal := #{total := Normal}, dirty := #{total := Dirty},
                            hold := #{elapsed := Elapsed, taken := Taken}}} = Figures)
  when Elapsed > 0 ->
    Part = min(1.0, max(0, Normal + Dirty - Taken) / Elapsed),
    Figures#{charge := charge(PerCall, Part * Ns, Erlang)};
on_schedulers(Figures) ->
    Figures.

add(Role, More, Results) ->
    maps:update_with(Role, fun(Figures) -> maps:merge(Figures, More) end, Results).

error_in(Role, Text, Results) ->
    add(Role, #{error => text(Text)}, Results).

%% The measurements beside time: name, flags, function of the peer module, what its answer says, and
%% the properties that are judged by it. Adding one means adding a row.
measurements() ->
    [{"slices, under trace", fairnif_lab_hold:flags(), holds, fun slices/1,
      [hold, first, charge]},
     {"beside an Erlang neighbour", fairnif_lab_share:flags(), shares, fun shares/1, [share]},
     {"on all schedulers", [], crowd, fun crowd/1, [delay]},
     {"what it leaves behind", fairnif_lab_garbage:flags(), garbage, fun garbage/1, [garbage]},
     {"killed", fairnif_lab_kill:flags(), kills, fun kills/1, [kill, leak]}].

rest(Subject, Size, Opts, #{time := #{median := CallNs}} = Figures) ->
    TimeMs = maps:get(time_ms, Opts),
    Common = #{time_ms => TimeMs, call_ns => CallNs, limit_ns => limit(Opts),
               patience_ms => maps:get(timeout_ms, Opts)},
    Measured =
        lists:foldl(
          fun({Name, Flags, Function, Read, Properties}, Acc) ->
                  step(Opts, Size, Name),
                  case measured(Flags, [Subject], Size, Opts, Function, [Subject, Common],
                                CallNs) of
                      {ok, Answer, Others} ->
                          More = merged(Acc, Read(Answer)),
                          More#{others => [Others | maps:get(others, Acc)]};
                      {error, Reason} ->
                          Text = text([Name, ": ", fairnif_lab_peer:format_error(Reason)]),
                          merged(Acc, unanswered(Function, Reason, Properties, Text, Acc))
                  end
          end, Figures, measurements()),
    %% The slices tell which part of a call is spent on schedulers, and only that is charged for.
    on_schedulers(first_again(Measured, Subject, Size, Opts, Common, CallNs));
rest(_, Size, Opts, Figures) ->
    [step(Opts, Size, "not measured") || _ <- measurements()],
    Figures.

%% One first call that held its scheduler may be the machine's doing: so may it be in two other
%% nodes. What all of them show counts.
first_again(#{first := #{hold := Hold}} = Figures, Subject, Size, Opts, Common, CallNs) ->
    case Hold > limit(Opts) of
        true ->
            Firsts = [First || {ok, {ok, #{} = First}, _}
                                   <- [measured(fairnif_lab_hold:flags(), [Subject], Size, Opts,
                                                first, [Subject, Common], CallNs)
                                       || _ <- lists:seq(1, ?MORE_FIRSTS)]],
            Figures#{first := first([maps:get(first, Figures) | Firsts])};
        false ->
            Figures
    end;
first_again(Figures, _, _, _, _, _) ->
    Figures.

first(Firsts) ->
    #{nodes => length(Firsts), hold => lists:min([H || #{hold := H} <- Firsts]),
      elapsed => lists:min([E || #{elapsed := E} <- Firsts])}.

merged(#{unmeasured := Before} = Figures, #{unmeasured := Now} = More) ->
    maps:merge(Figures, More#{unmeasured := maps:merge(Before, Now)});
merged(Figures, More) ->
    maps:merge(Figures, More).

%% What a measurement that failed says about the function:
%%
%% - nobody answered while all schedulers ran it: that it delays others;
%% - no answer in time otherwise, after calls that did return: nothing. A function that gives way
%%   after each microsecond takes very long beside a neighbour;
%% - there was not enough memory for so many at once, or for the term in Erlang with which what it
%%   leaves is compared (of what a result has several times over the term has copies): nothing;
%% - the node died under trace alone: nothing. Tracing is no part of it, and has faults of its own
%%   (OTP 25 aborts when a traced process splits a binary in a quarter of a million parts);
%% - anything else: that it fails.
unanswered(crowd, {timeout, _}, _, _, _) ->
    #{delay => #{beside => unanswered}};
unanswered(Function, Reason, Properties, Text, Figures) ->
    Nothing = element(1, Reason) =:= timeout
        orelse Function =:= holds andalso element(1, Reason) =:= down
        orelse (Function =:= crowd orelse Function =:= garbage) andalso
               string:find(Text, "annot allocate") =/= nomatch,
    case Figures of
        _ when Nothing -> unmeasured(Properties, Text);
        #{error := undefined} -> #{error => Text};
        _ -> #{}
    end.

unmeasured(Properties, Text) ->
    #{unmeasured => maps:from_list([{Property, Text} || Property <- Properties])}.

slices({ok, #{first := First} = Slices}) ->
    maps:merge(#{slices => maps:remove(first, Slices)},
               case First of
                   undefined -> #{};
                   _ -> #{first => first([First])}
               end);
slices({error, Why}) ->
    #{error => text([raises(Why), " under trace"])}.

shares(Answers) ->
    Shares = [{Mix, Share} || {Mix, {ok, #{share := Share}}} <- Answers],
    case [Why || {_, {error, Why}} <- Answers] of
        [] -> #{share => maps:from_list([{median, fairnif_lab_stats:median([S || {_, S} <- Shares])}
                                         | Shares])};
        [Why | _] -> #{error => text([raises(Why), " beside an Erlang neighbour"])}
    end.

%% Many a function is not made to be called by several at once, or is so by its expression only.
crowd({ok, Crowd}) -> Crowd;
crowd({error, Why}) ->
    unmeasured([delay], text([raises(Why), " when several call it at once"])).

garbage({ok, #{control := Control} = Garbage}) when is_list(Control) ->
    #{garbage => Garbage};
garbage({ok, #{control := Why, bytes := Bytes} = Garbage}) ->
    Text = text(["what a call leaves could not be compared with ", fairnif_lab_table:bytes(Bytes),
                 " made in Erlang: ", unfinished(Why)]),
    (unmeasured([garbage], Text))#{garbage => Garbage#{control := []}};
garbage({error, {ended, _} = Why}) ->
    unmeasured([garbage], text([unfinished(Why), " when called once in a process"]));
garbage({error, {timeout, _} = Why}) ->
    unmeasured([garbage], text(["a call in a process of its own ", unfinished(Why),
                                ", though earlier ones did; try a longer --timeout"])).

unfinished({ended, Why}) -> raises(Why);
unfinished({timeout, Ms}) -> ["had not returned after ", fairnif_lab_table:duration(Ms * 1.0e6)].

kills({error, Why}) ->
    #{error => text([raises(Why), " where its callers are killed"])};
kills({ok, #{memory := Memory} = Kill}) ->
    {PerKill, Total, Resolution} = fairnif_lab_kill:growth(Kill),
    #{kill => maps:remove(memory, Kill),
      leak => #{kills => maps:get(count, Kill), per_kill => PerKill, total => Total,
                resolution => Resolution, memory => Memory}}.

raises({Class, Reason}) when Class =:= error; Class =:= exit; Class =:= throw ->
    io_lib:format("raises ~s:~0tP", [Class, Reason, 12]);
raises(Why) ->
    io_lib:format("its caller exits: ~0tP", [Why, 12]).

%% ---- peers ----

%% One measurement in a node of its own, with time for slow calls.
measured(Flags, Subjects, Size, Opts, Function, Args, CallNs) ->
    #{time_ms := TimeMs, timeout_ms := TimeoutMs} = Opts,
    LimitMs = TimeoutMs + 20 * TimeMs + 20 * ceil(CallNs / 1.0e6),
    Mfa = {fairnif_lab_check_peer, Function, Args},
    in_peer(Flags, Subjects, Size, Opts,
            fun(Peer) -> fairnif_lab_peer:call(Peer, Mfa, LimitMs) end).

%% The flags of a measurement come last, and prevail over the user's.
in_peer(Flags, Subjects, Size, #{timeout_ms := TimeoutMs} = Opts, Fun) ->
    PeerOpts = maps:merge(#{quiet => true, paths => maps:get(paths, Opts, [])}, memory_limit(Opts)),
    Answer =
        fairnif_lab_peer:with(
          maps:get(flags, Opts) ++ Flags, PeerOpts,
          fun(Peer) ->
                  installed(fairnif_lab_peer:call(Peer, {fairnif_lab_check_peer, install,
                                                         [Subjects, Size, TimeoutMs]},
                                                  2 * TimeoutMs + Size div 10000)),
                  Before = fairnif_lab_peer:cpu_clock(Peer),
                  case Fun(Peer) of
                      {ok, Value} ->
                          {ok, Value, fairnif_lab_machine:others(
                                        Before, fairnif_lab_peer:cpu_clock(Peer))};
                      {error, _} = Error ->
                          Error
                  end
          end),
    case Answer of
        {error, {boot, _} = Reason} -> throw({failed, fairnif_lab_peer:format_error(Reason)});
        %% What the function raises comes as a value.
        {error, {raised, _, _, [{M, F, _, _} | _]} = Reason} ->
            throw({failed, io_lib:format("the lab itself failed, in ~tw:~tw: ~ts",
                                         [M, F, fairnif_lab_peer:format_error(Reason)])});
        _ -> Answer
    end.

installed({ok, ok}) -> ok;
installed({ok, {error, {Kind, Text}}}) -> throw({Kind, Text});
installed({error, Reason}) -> throw({failed, ["while the input was made: ",
                                              fairnif_lab_peer:format_error(Reason)]}).

memory_limit(#{memory := Bytes}) ->
    #{memory => Bytes};
memory_limit(_) ->
    case fairnif_lab_machine:memory_available() of
        Bytes when is_integer(Bytes) -> #{memory => max(?VM_BYTES, round(?MEMORY_PART * Bytes))};
        unknown -> #{}
    end.

%% ---- all sizes ----

result(Subjects, Sizes, BySize, Opts) ->
    Machine = case [M || #{machine := M} <- BySize] of
                  [First | _] -> First;
                  [] -> #{}
              end,
    Rows = [begin
                Results = [maps:get(Role, R) || R <- BySize],
                #{role => Role, expression => fairnif_lab_subject:text(Subject),
                  sizes => Results,
                  verdicts => fairnif_lab_verdict:worst(
                                lists:append([V || #{verdicts := V} <- Results])),
                  growth => fairnif_lab_advice:growth(Results),
                  advice => fairnif_lab_advice:advise(Results, Machine, Opts)}
            end || {Role, Subject} <- Subjects],
    [#{expression := Expression, verdicts := Verdicts} | _] = Rows,
    #{expression => Expression, options => shown(Sizes, Opts), machine => Machine,
      exit => fairnif_lab_verdict:exit_code(Verdicts, Opts),
      thresholds => fairnif_lab_verdict:thresholds(Opts), subjects => Rows}.

shown(Sizes, Opts) ->
    #{sizes => Sizes, limit_ns => limit(Opts), time_ms => maps:get(time_ms, Opts),
      timeout_ms => maps:get(timeout_ms, Opts), strict => maps:get(strict, Opts, false),
      runs => maps:get(runs, Opts, undefined),
      flags => text(lists:join($\s, maps:get(flags, Opts))),
      init => optional(init, Opts), file => optional(file, Opts),
      waive => maps:map(fun(_, Reason) -> text(Reason) end, maps:get(waive, Opts, #{}))}.

optional(Key, Opts) ->
    case Opts of
        #{Key := Text} -> text(Text);
        _ -> undefined
    end.

limit(Opts) ->
    maps:get(limit_ns, Opts, 1000000).

step(#{progress := Progress}, Size, What) ->
    fairnif_lab_progress:step(Progress, [fairnif_lab_table:bytes(Size), ": ", What]).

text(Chardata) ->
    unicode:characters_to_binary(Chardata).
