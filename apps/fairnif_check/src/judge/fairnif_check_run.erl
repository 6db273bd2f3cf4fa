%% `bin/fairnif check': measures one function and says whether it is well-behaved.
%%
%% Each measurement has a peer node of its own, so that none finds what another left behind; timing
%% and tracing never meet. A peer that crashes, hangs or runs out of memory is a finding about the
%% function; this node continues whatever happens there.
-module(fairnif_check_run).

-export([run/2, steps/1]).

-export_type([options/0, result/0]).

-type options() :: #{sizes => [pos_integer()],          % bytes; default 1 KiB, 1 MiB, or the file's
                     init => unicode:chardata(), file => file:filename(),
                     against => fairnif_check_subject:source(),
                     beside => fairnif_check_subject:source(), % called meanwhile, under trace
                     flags => [string()], paths => [file:filename()],
                     time_ms => pos_integer(),          % of each measurement; default 1000
                     runs => pos_integer(),             % timed batches; default what time allows
                     limit_ns => pos_integer(),         % for blocks; default 1 ms
                     timeout_ms => pos_integer(),       % for one call; default 30 s
                     memory => pos_integer(),           % bytes of data that a node may have
                     strict => boolean(),
                     waive => #{fairnif_check_verdict:property() => unicode:chardata()},
                     progress => fairnif_check_progress:progress()}.
%% docs/reference/check.md describes every key, with its unit.
-type result() :: #{expression := binary(), options := map(), exit := 0 | 1 | 3,
                    thresholds := [map()], machine := map(), subjects := [map()]}.

-define(SIZES, [1024, 1048576]).
-define(TIME_MS, 1000).
-define(TIMEOUT_MS, 30000).
%% Nodes beside the first one in which a first call is looked at.
-define(MORE_FIRSTS, 2).
%% What starting the nodes of a size takes, and how many calls there are at least.
-define(NODES_MS, 4000).
-define(CALLS, 30).

%% @doc Measures and judges. `usage': the expression or an option is wrong; `unsure': this
%% machine cannot measure that; `failed': a peer could not be used. What the function does wrong, a
%% crash included, is no error but a verdict.
-spec run(fairnif_check_subject:source(), options()) ->
          {ok, result()} | {error, {usage | failed | unsure, unicode:chardata()}}.
run(Source, Opts) ->
    try
        folders(Opts),
        Data = data(Opts),
        Sizes = sizes(Opts, Data),
        Subjects = [{subject, subject(Source, subject, Data, Opts)}
                    | [{against, subject(Against, against, Data, Opts)}
                       || #{against := Against} <- [Opts]]],
        fairnif_check_node:enough_memory(Sizes),
        Filled = filled(Opts, Data),
        note(Filled, ["the check takes about ",
                      time(length(Sizes) * length(Subjects) * size_ms(0, Filled))]),
        %% From the smallest on: what is known of those helps where a larger one takes too long.
        {Results, _} = lists:mapfoldl(
                         fun(Size, Known) ->
                                 {Known1, Result} = size(Subjects, Size, Known, Filled),
                                 {{Size, Result}, Known1}
                         end, [], lists:usort(Sizes)),
        BySize = [proplists:get_value(Size, Results) || Size <- Sizes],
        fairnif_check_progress:stop(maps:get(progress, Filled)),
        {ok, result(Subjects, Sizes, BySize, Filled)}
    catch
        throw:{Kind, Text} when Kind =:= usage; Kind =:= failed; Kind =:= unsure ->
            {error, {Kind, Text}}
    end.

filled(Opts, Data) ->
    Filled = maps:merge(#{time_ms => ?TIME_MS, timeout_ms => ?TIMEOUT_MS, flags => [],
                          progress => fairnif_check_progress:none()}, Opts),
    case Opts of
        #{beside := Beside} -> Filled#{beside := subject(Beside, beside, Data, Opts)};
        _ -> Filled
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
    case fairnif_check_subject:new(Source, Spec) of
        {ok, Subject} -> Subject;
        {error, {usage, Text}} when Slot =/= subject ->
            throw({usage, ["--", atom_to_list(Slot), ": ", Text]});
        {error, Error} -> throw(Error)
    end.

%% ---- how long it takes ----

%% A measurement takes its time, and half as long again; or its calls do.
size_ms(CallNs, #{time_ms := TimeMs}) ->
    ?NODES_MS + max(8 * TimeMs, ?CALLS * CallNs / 1.0e6).

report_if_long([], _, _) ->
    ok;
report_if_long(Times, Size, Opts) ->
    Slow = [size_ms(Ns, Opts) || Ns <- Times],
    lists:max(Slow) > 1.5 * size_ms(0, Opts) andalso
        note(Opts, [fairnif_check_table:bytes(Size), " takes about ", time(lists:sum(Slow)),
                    ": a call takes ", fairnif_check_table:duration(lists:max(Times))]).

time(Ms) when Ms < 120000 -> io_lib:format("~b s", [ceil(Ms / 1000)]);
time(Ms) -> io_lib:format("~b minutes", [round(Ms / 60000)]).

note(#{progress := Progress}, Text) ->
    fairnif_check_progress:note(Progress, Text).

%% ---- one size ----

%% {Known, #{Role => SizeResult}}, and under `machine' what was learned about the machine.
size(Subjects, Asked, Known, Opts) ->
    step(Opts, Asked, "time"),
    {Size, Late, Probes} = fairnif_check_probe:probe(Subjects, Asked, Known, Opts),
    report_if_long([Ns || {_, _, {ok, Ns}} <- Probes], Size, Opts),
    Timed = timed(Probes, Size, Opts, start(Probes, Size, Asked, Late)),
    Measured = lists:foldl(
                 fun({Role, Subject}, Results) ->
                         #{Role := Figures} = Results,
                         All = rest(Subject, Size, Opts, Figures),
                         Results#{Role := All#{verdicts => fairnif_check_verdict:judge(All, Opts)}}
                 end, Timed, Subjects),
    {known(Probes, Size) ++ Known, Measured}.

known(Probes, Size) ->
    Outcomes = [Outcome || {_, _, Outcome} <- Probes],
    case {[Ns || {ok, Ns} <- Outcomes], lists:member(unmeasured, Outcomes)} of
        {_, true} -> [];
        {Times, false} when length(Times) =:= length(Outcomes) -> [{Size, lists:max(Times)}];
        {_, false} -> [{Size, fails}]
    end.

start(Probes, Size, Asked, Late) ->
    Result = case Late of
                 none -> #{size => Size, error => undefined};
                 _ -> #{size => Size, asked => Asked, late => Late, error => undefined}
             end,
    maps:from_list([{Role, case Outcome of
                               {error, Text} -> Result#{error := Text};
                               _ -> Result
                           end} || {Role, _, Outcome} <- Probes]).

timed(Probes, Size, Opts, Start) ->
    times([{Role, Subject, Ns} || {Role, Subject, {ok, Ns}} <- Probes], Size, Opts, Start).

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
    case fairnif_check_node:measured([], Subjects, Size, Opts, times, [Subjects, Asked],
                                         Slowest) of
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
            {error, fairnif_check_peer:format_error(Reason)}
    end.

%% `ns': of one call, on schedulers.
charge(PerCall, Ns, Erlang) ->
    PerMs = PerCall * 1.0e6 / max(1, Ns),
    #{per_call => PerCall, ns => Ns, per_ms => PerMs, erlang => Erlang,
      ratio => PerMs / fairnif_check_stats:median(maps:values(Erlang))}.

%% Time for which the caller waits in a receive is not counted, and what others had of its processor
%% is not charged to anybody.
on_schedulers(#{charge := #{per_call := PerCall, erlang := Erlang}, time := #{mean := Ns},
                slices := #{normal := #{total := Normal}, dirty := #{total := Dirty},
                            block := #{elapsed := Elapsed, taken := Taken}}} = Figures)
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
    [{"slices, under trace", fairnif_check_block:flags(), blocks, fun slices/1,
      [block, first_call, undercharge]},
     {"beside an Erlang neighbour", fairnif_check_share:flags(), shares, fun shares/1, [unfair]},
     {"on all schedulers", [], crowd, fun crowd/1, [latency]},
     {"what it leaves behind", fairnif_check_garbage:flags(), garbage, fun garbage/1, [destructor]},
     {"killed", fairnif_check_kill:flags(), kills, fun kills/1, [unkillable, leak]}].

rest(Subject, Size, Opts, #{time := #{median := CallNs}} = Figures) ->
    TimeMs = maps:get(time_ms, Opts),
    Common = #{time_ms => TimeMs, call_ns => CallNs, limit_ns => limit(Opts),
               patience_ms => maps:get(timeout_ms, Opts)},
    Measured =
        lists:foldl(
          fun({Name, Flags, Function, Read, Properties}, Acc) ->
                  step(Opts, Size, Name),
                  case measured(Flags, Subject, Size, Opts, Function, Common, CallNs) of
                      {ok, Answer, Others} ->
                          More = merged(Acc, Read(Answer)),
                          More#{others => [Others | maps:get(others, Acc)]};
                      {error, Reason} ->
                          Text = text([Name, ": ", fairnif_check_peer:format_error(Reason)]),
                          merged(Acc, unanswered(Function, Reason, Properties, Text, Acc))
                  end
          end, Figures, measurements()),
    %% The slices tell which part of a call is spent on schedulers, and only that is charged for.
    on_schedulers(first_again(Measured, Subject, Size, Opts, Common, CallNs));
rest(_, Size, Opts, Figures) ->
    [step(Opts, Size, "not measured") || _ <- measurements()],
    Figures.

%% One first call that blocked its scheduler may be the machine's doing: so may it be in two other
%% nodes. What all of them show counts.
first_again(#{first := #{block := Block}} = Figures, Subject, Size, Opts, Common, CallNs) ->
    case Block > limit(Opts) of
        true ->
            Firsts = [First || {ok, {ok, #{} = First}, _}
                                   <- [measured(fairnif_check_block:flags(), Subject, Size, Opts,
                                                first, Common, CallNs)
                                       || _ <- lists:seq(1, ?MORE_FIRSTS)]],
            Figures#{first := first([maps:get(first, Figures) | Firsts])};
        false ->
            Figures
    end;
first_again(Figures, _, _, _, _, _) ->
    Figures.

%% Beside is what calls something else meanwhile: where blocks are seen, and what it waits for.
measured(Flags, Subject, Size, #{beside := Beside} = Opts, Function, Common, CallNs)
  when Function =:= blocks; Function =:= first ->
    fairnif_check_node:measured(Flags, [Subject, Beside], Size, Opts, Function,
                                    [Subject, Common#{beside => Beside}], CallNs);
measured(Flags, Subject, Size, Opts, Function, Common, CallNs) ->
    fairnif_check_node:measured(Flags, [Subject], Size, Opts, Function, [Subject, Common],
                                    CallNs).

first(Firsts) ->
    #{nodes => length(Firsts), block => lists:min([H || #{block := H} <- Firsts]),
      elapsed => lists:min([E || #{elapsed := E} <- Firsts])}.

merged(#{unmeasured := Before} = Figures, #{unmeasured := Now} = More) ->
    maps:merge(Figures, More#{unmeasured := maps:merge(Before, Now)});
merged(Figures, More) ->
    maps:merge(Figures, More).

%% What a measurement that failed says about the function:
%%
%% - no process answered while all schedulers ran it: that it delays others;
%% - no answer in time otherwise, after calls that did return: nothing. A function that yields
%%   after each microsecond takes very long beside a neighbour;
%% - there was not enough memory for that many at once, or for the term in Erlang with which what it
%%   leaves is compared (of what a result has several times over the term has copies): nothing;
%% - the node died under trace alone: nothing. Tracing is no part of it, and has faults of its own
%%   (OTP 25 aborts when a traced process splits a binary in a quarter of a million parts);
%% - anything else: that it fails.
unanswered(crowd, {timeout, _}, _, _, _) ->
    #{delay => #{beside => unanswered}};
unanswered(Function, Reason, Properties, Text, Figures) ->
    Nothing = element(1, Reason) =:= timeout
        orelse Function =:= blocks andalso element(1, Reason) =:= down
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
slices({beside, Why}) ->
    throw({failed, ["--beside: ", raises(Why)]});
slices({error, Why}) ->
    #{error => text([raises(Why), " under trace"])}.

shares(Answers) ->
    Shares = [{Mix, Share} || {Mix, {ok, #{share := Share}}} <- Answers],
    case [Why || {_, {error, Why}} <- Answers] of
        [] -> #{share => maps:from_list([{median,
                                          fairnif_check_stats:median([S || {_, S} <- Shares])}
                                         | Shares])};
        [Why | _] -> #{error => text([raises(Why), " beside an Erlang neighbour"])}
    end.

%% Many a function is not made to be called by several at once, or is so by its expression only.
crowd({ok, Crowd}) -> Crowd;
crowd({error, Why}) ->
    unmeasured([latency], text([raises(Why), " when several call it at once"])).

garbage({ok, #{control := Control} = Garbage}) when is_list(Control) ->
    #{garbage => Garbage};
garbage({ok, #{control := Why, bytes := Bytes} = Garbage}) ->
    Text = text(["what a call leaves could not be compared with ", fairnif_check_table:bytes(Bytes),
                 " made in Erlang: ", unfinished(Why)]),
    (unmeasured([destructor], Text))#{garbage => Garbage#{control := []}};
garbage({error, {ended, _} = Why}) ->
    unmeasured([destructor], text([unfinished(Why), " when called once in a process"]));
garbage({error, {timeout, _} = Why}) ->
    unmeasured([destructor], text(["a call in a process of its own ", unfinished(Why),
                                ", though earlier ones did; try a longer --timeout"])).

unfinished({ended, Why}) -> raises(Why);
unfinished({timeout, Ms}) -> ["had not returned after ", fairnif_check_table:duration(Ms * 1.0e6)].

kills({error, Why}) ->
    #{error => text([raises(Why), " where its callers are killed"])};
kills({ok, #{memory := Memory, alone := Alone} = Kill}) ->
    {PerKill, Total, Resolution} = fairnif_check_kill:growth(Kill),
    Leak = #{kills => maps:get(count, Kill), per_kill => PerKill, total => Total,
             resolution => Resolution, memory => Memory},
    #{kill => maps:without([memory, alone], Kill),
      leak => case Alone of
                  [] -> Leak;
                  _ -> Leak#{alone => alone(Alone)}
              end}.

alone(Memory) ->
    {PerCall, Total, Resolution} = fairnif_check_kill:growth(calls, Memory),
    #{calls := First} = hd(Memory),
    #{calls := Calls} = lists:last(Memory),
    #{calls => Calls - First, per_call => PerCall, total => Total, resolution => Resolution,
      memory => Memory}.

raises({Class, Reason}) when Class =:= error; Class =:= exit; Class =:= throw ->
    io_lib:format("raises ~s:~0tP", [Class, Reason, 12]);
raises(Why) ->
    io_lib:format("its caller exits: ~0tP", [Why, 12]).

%% ---- all sizes ----

result(Subjects, Sizes, BySize, Opts) ->
    Machine = case [M || #{machine := M} <- BySize] of
                  [First | _] -> First;
                  [] -> #{}
              end,
    Rows = [begin
                Results = [maps:get(Role, R) || R <- BySize],
                #{role => Role, expression => fairnif_check_subject:text(Subject),
                  sizes => Results,
                  verdicts => fairnif_check_verdict:worst(
                                lists:append([V || #{verdicts := V} <- Results]), Opts),
                  growth => fairnif_check_advice:growth(Results),
                  advice => fairnif_check_subject:notes(Subject)
                      ++ fairnif_check_advice:advise(Results, Machine, Opts)}
            end || {Role, Subject} <- Subjects],
    [#{expression := Expression, verdicts := Verdicts} | _] = Rows,
    #{expression => Expression, options => shown(Sizes, Opts), machine => Machine,
      exit => fairnif_check_verdict:exit_code(Verdicts, Opts),
      thresholds => fairnif_check_verdict:thresholds(Opts), subjects => Rows}.

shown(Sizes, Opts) ->
    #{sizes => Sizes, limit_ns => limit(Opts), time_ms => maps:get(time_ms, Opts),
      timeout_ms => maps:get(timeout_ms, Opts), strict => maps:get(strict, Opts, false),
      runs => maps:get(runs, Opts, undefined),
      flags => text(lists:join($\s, maps:get(flags, Opts))),
      init => optional(init, Opts), file => optional(file, Opts),
      beside => case Opts of
                    #{beside := Beside} -> fairnif_check_subject:text(Beside);
                    _ -> undefined
                end,
      waive => maps:map(fun(_, Reason) -> text(Reason) end, maps:get(waive, Opts, #{}))}.

optional(Key, Opts) ->
    case Opts of
        #{Key := Text} -> text(Text);
        _ -> undefined
    end.

limit(Opts) ->
    maps:get(limit_ns, Opts, 1000000).

step(#{progress := Progress}, Size, What) ->
    fairnif_check_progress:step(Progress, [fairnif_check_table:bytes(Size), ": ", What]).

text(Chardata) ->
    unicode:characters_to_binary(Chardata).
