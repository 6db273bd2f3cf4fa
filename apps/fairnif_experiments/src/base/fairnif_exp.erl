%% What several experiments need: a peer node for one row of a table, the figures of what else the
%% machine did meanwhile, the table, and words for both.
-module(fairnif_exp).

-export([needs/1, missing/1, spinsleep/0, spin/2]).
-export([in_peer/3, ask/3, failed/1, failing/2, failing/3, result/2, forever/1, work/1]).
-export([table/2, shown/2, range/2, footnotes/2, doubted/1, doubt/2]).
-export([text/1, time/1, about/1, find/2, now_ms/0]).

-export_type([row/0, request/0, column/0, format/0]).

%% `error' (binary) where the measurement failed, and then neither `value' nor `others';
%% `timed_out' then: whether because it did not end in time.  `others': processors that other
%% programs kept busy, see fairnif_check_machine:others/2.
-type row() :: #{value => term(), others => float() | undefined,
                 error => binary(), timed_out => boolean()}.

%% What an experiment, by its module, does in a node of its own; or any call.
-type request() :: {module(), term()} | {module(), atom(), [term()]}.

%% A title, the side, and what stands in it: what the row has at that key, or behind those keys, and
%% a dash where that is nothing.
-type column() :: {unicode:chardata(), left | right, {Key :: term() | [Key :: term()], format()}}.
%% A duration in ns, us or s; 1.0 is all of it (percent); a factor (times).
-type format() :: text | count | percent | bytes | ns | us | s | times
                | fun((term()) -> unicode:chardata()).

%% More than this many processors' work of other programs spoils a figure; no more than this many
%% such figures are named.
-define(OTHERS, 0.2).
-define(NAMED, 4).

%% @doc The module whose functions most experiments call: a project of its own, found in the code
%% path when it is built.  Nothing here may depend on it, so they are called by this name alone.
-spec spinsleep() -> module().
spinsleep() -> spinsleep.

%% @doc Calls one of its forms.
-spec spin(atom(), Us :: pos_integer()) -> term().
spin(Form, Us) -> spinsleep:Form(Us).

%% @doc Throws an error of the experiment, unless these examples are built.  They are projects of
%% their own, found in the code path and called by name only.
-spec needs([module()]) -> ok.
needs(Examples) ->
    case missing([{E, atom_to_list(E)} || E <- Examples]) of
        none -> ok;
        {missing, Text} -> throw({failed, Text})
    end.

%% @doc The sentence that names the first of these examples that is not built.
-spec missing([{module(), Example :: string()}]) -> none | {missing, binary()}.
missing(Examples) ->
    case [Example || {Module, Example} <- Examples, code:which(Module) =:= non_existing] of
        [] ->
            none;
        [Missing | _] ->
            {missing, text([Missing, " is not built: run `make examples packages' in fairnif's "
                            "repository"])}
    end.

%% @doc One call in a node of its own, started with these emulator flags, within this time. Costs
%% half a second beside the call.  What the function returns as `{error, {Class, Reason}}' is an
%% error here too.
-spec in_peer([string()], request(), pos_integer()) -> row().
in_peer(Flags, Request, LimitMs) ->
    case fairnif_check_peer:with(Flags, fun(Peer) -> asked(Peer, Request, LimitMs) end) of
        {error, Reason} ->
            #{error => text(fairnif_check_peer:format_error(Reason)),
              timed_out => element(1, Reason) =:= timeout};
        #{value := {error, {Class, Reason}}} ->
            #{error => text(io_lib:format("~s:~0tp", [Class, Reason])), timed_out => false};
        Row ->
            Row
    end.

asked(Peer, Request, LimitMs) ->
    Before = fairnif_check_peer:cpu_clock(Peer),
    case fairnif_check_peer:call(Peer, mfa(Request), LimitMs) of
        {ok, Value} ->
            #{value => Value,
              others => fairnif_check_machine:others(Before, fairnif_check_peer:cpu_clock(Peer))};
        {error, _} = Error ->
            Error
    end.

mfa({Module, Request}) -> {fairnif_experiment, peer, [Module, Request]};
mfa(MFA) -> MFA.

%% @doc A call in a peer; throws `{failed, Text}' where it has no answer.
-spec ask(fairnif_check_peer:peer(), request(), pos_integer()) -> term().
ask(Peer, Request, LimitMs) ->
    case fairnif_check_peer:call(Peer, mfa(Request), LimitMs) of
        {ok, {error, {Class, Reason}}} when Class =:= error; Class =:= exit; Class =:= throw ->
            throw({failed, text(io_lib:format("~s:~0tp", [Class, Reason]))});
        {ok, Value} ->
            Value;
        {error, Reason} ->
            throw({failed, text(fairnif_check_peer:format_error(Reason))})
    end.

%% @doc Runs Fun with a peer of these flags; what fails in it is the row's error.
-spec failing([string()], fun((fairnif_check_peer:peer()) -> Row)) -> Row | row().
failing(Flags, Fun) ->
    failing(Flags, #{}, Fun).

%% @doc The same with options of the peer's.
-spec failing([string()], fairnif_check_peer:options(),
              fun((fairnif_check_peer:peer()) -> Row)) -> Row | row().
failing(Flags, Opts, Fun) ->
    try fairnif_check_peer:with(Flags, Opts, Fun) of
        {error, Reason} -> #{error => text(fairnif_check_peer:format_error(Reason))};
        Row -> Row
    catch
        throw:{failed, Text} -> #{error => text(Text)}
    end.

%% @doc Whether a row has no figures.
-spec failed(#{atom() => term()}) -> boolean().
failed(Row) -> is_map_key(error, Row).

%% @doc The result of an experiment; not `ok' when a row failed.  One marked with `may_time_out' may
%% do that: it is what the row is to show.
-spec result([#{atom() => term()}], #{atom() => term()}) -> fairnif_experiment:result().
result(Rows, More) ->
    More#{ok => not lists:any(fun(R) -> failed(R) andalso not excused(R) end, Rows)}.

excused(#{may_time_out := true, timed_out := true}) -> true;
excused(_) -> false.

%% @doc Calls Fun again and again.
-spec forever(fun(() -> term())) -> no_return().
forever(Fun) ->
    _ = Fun(),
    forever(Fun).

%% @doc How much Erlang work as many processes get done in that time as there are schedulers online.
-spec work(Ms :: pos_integer()) -> non_neg_integer().
work(Ms) ->
    Until = now_ms() + Ms,
    Workers = [spawn_monitor(fun() -> exit({done, work(Until, 0)}) end)
               || _ <- lists:seq(1, erlang:system_info(schedulers_online))],
    lists:sum([receive {'DOWN', Monitor, process, Pid, {done, N}} -> N end
               || {Pid, Monitor} <- Workers]).

work(Until, N) ->
    _ = fairnif_check_share:work(sort),
    case now_ms() < Until of
        true -> work(Until, N + 1);
        false -> N
    end.

%% @doc A table of rows; of one that failed its first column and why.
-spec table([column()], [#{atom() => term()}]) -> unicode:chardata().
table(Columns, Rows) ->
    fairnif_check_table:render([{Title, Side} || {Title, Side, _} <- Columns],
                             [cells(Row, Columns) || Row <- Rows]).

cells(#{error := Error} = Row, [First, _ | More]) ->
    [cell(Row, First), ["failed: ", string:slice(Error, 0, 40)] | ["" || _ <- More]];
cells(Row, Columns) ->
    [cell(Row, Column) || Column <- Columns].

cell(Row, {_, _, {Keys, Format}}) ->
    shown(Format, at(if is_list(Keys) -> Keys; true -> [Keys] end, Row)).

at([], Value) -> Value;
at([Key | Keys], #{} = Map) -> at(Keys, maps:get(Key, Map, undefined));
at(_, _) -> undefined.

%% @doc A figure for people; `undefined' is a dash, and a text itself.
-spec shown(format(), term()) -> unicode:chardata().
shown(_, undefined) -> "-";
shown(Fun, Value) when is_function(Fun) -> Fun(Value);
shown(_, Text) when is_binary(Text); is_list(Text) -> Text;
shown(text, Atom) -> atom_to_list(Atom);
shown(count, N) -> fairnif_check_table:count(round(N));
shown(percent, Part) -> fairnif_check_table:percent(Part);
shown(bytes, N) -> fairnif_check_table:bytes(round(N));
shown(ns, Ns) -> fairnif_check_table:duration(Ns);
shown(us, Us) -> fairnif_check_table:duration(Us * 1000);
shown(s, S) -> fairnif_check_table:duration(S * 1.0e9);
shown(times, X) when X >= 9.95 -> [fairnif_check_table:count(round(X)), "x"];
shown(times, X) -> [float_to_list(float(X), [{decimals, 1}]), "x"].

%% @doc From the least of these figures to the greatest, with their unit once; a dash of none.
-spec range(format(), [number()]) -> unicode:chardata().
range(_, []) ->
    "-";
range(Format, Values) ->
    case [shown(Format, F(Values)) || F <- [fun lists:min/1, fun lists:max/1]] of
        [Same, Same] ->
            Same;
        [Least, Most] ->
            case [string:split(text(T), " ") || T <- [Least, Most]] of
                [[Number, Unit], [_, Unit]] -> [Number, " to ", Most];
                _ -> [Least, " to ", Most]
            end
    end.

%% @doc Which rows failed, and which are to be doubted because other programs kept the machine busy;
%% Label is what a row is called.
-spec footnotes(fun((Row) -> unicode:chardata()), [Row]) -> unicode:chardata()
              when Row :: #{atom() => term()}.
footnotes(Label, Rows) ->
    [[["Failed: ", Label(R), ": ", E, $\n] || #{error := E} = R <- Rows, not excused(R)],
     case [Label(R) || #{others := N} = R <- Rows, doubted(N)] of
         Noisy when length(Noisy) > ?NAMED ->
             io_lib:format("Other programs kept the machine busy: doubt ~b of ~b figures.~n",
                           [length(Noisy), length(Rows)]);
         Noisy -> doubt(", ", Noisy)
     end].

%% @doc Whether other programs kept that many processors busy that a figure is spoiled.
-spec doubted(number() | undefined) -> boolean().
doubted(Others) ->
    is_number(Others) andalso Others > ?OTHERS.

%% @doc The sentence that names the figures which are to be doubted; none of none.
-spec doubt(Separator :: string(), [unicode:chardata()]) -> unicode:chardata().
doubt(_, []) ->
    "";
doubt(Separator, Noisy) ->
    ["Other programs kept the machine busy: doubt ", lists:join(Separator, Noisy), ".\n"].

%% @doc The first of the rows that has all of this, or `none'.
-spec find(#{atom() => term()}, [Row]) -> Row | none when Row :: #{atom() => term()}.
find(Wanted, Rows) ->
    hd([R || R <- Rows, maps:with(maps:keys(Wanted), R) =:= Wanted] ++ [none]).

%% @doc As a binary.
-spec text(unicode:chardata()) -> binary().
text(Chardata) ->
    unicode:characters_to_binary(Chardata).

%% @doc A duration that is a whole number of milliseconds, in us: no digits behind the point.
-spec time(Us :: non_neg_integer()) -> unicode:chardata().
time(Us) when Us rem 1000000 =:= 0 -> [integer_to_list(Us div 1000000), " s"];
time(Us) -> [integer_to_list(Us div 1000), " ms"].

%% @doc About how long that is.
-spec about(Ms :: non_neg_integer()) -> unicode:chardata().
about(Ms) when Ms >= 120000 -> [integer_to_list(round(Ms / 60000)), " min"];
about(Ms) -> [integer_to_list(ceil(Ms / 1000)), " s"].

%% @doc Milliseconds of the node's own clock.
-spec now_ms() -> integer().
now_ms() ->
    erlang:monotonic_time(millisecond).
