%% What several experiments need: a peer node for one row of a table, the figures of
%% what else the machine did meanwhile, and words for both.
-module(fairnif_exp).

-export([scale/1, progress/1, needs/2, spinsleep/0]).
-export([in_peer/3, ask/3, failed/1, result/2]).
-export([footnotes/2, doubted/1, doubt/2, text/1, time/1, about/1]).

-export_type([row/0]).

%% `error' (binary) where the measurement failed, and then neither `value' nor
%% `others'; `timed_out' then: whether because it did not end in time.
%% `others': processors that other programs kept busy, see
%% fairnif_lab_machine:others/2.
-type row() :: #{value => term(), others => float() | undefined,
                 error => binary(), timed_out => boolean()}.

%% More than so many processors' work of other programs spoils a figure; no more
%% than so many such figures are named.
-define(OTHERS, 0.2).
-define(NAMED, 4).

%% @doc How much is to be done.
-spec scale(fairnif_experiment:options()) -> quick | normal | full.
scale(Opts) ->
    maps:get(scale, Opts, normal).

%% @doc Where to say what is being done.
-spec progress(fairnif_experiment:options()) -> fairnif_lab_progress:progress().
progress(Opts) ->
    maps:get(progress, Opts, fairnif_lab_progress:none()).

%% @doc The module whose functions most experiments call: a project of its own, found
%% in the code path when it is built.  Nothing here may depend on it, so they are
%% called by this name alone.
-spec spinsleep() -> module().
spinsleep() ->
    spinsleep.

%% @doc Fun(), unless one of these examples is not built.  They are projects of
%% their own, found in the code path and called by name only.
-spec needs([module()], fun(() -> T)) -> T | {error, fairnif_experiment:error()}.
needs(Examples, Fun) ->
    case [E || E <- Examples, code:which(E) =:= non_existing] of
        [] ->
            Fun();
        [Missing | _] ->
            {error, {failed, io_lib:format("examples/~s is not built: run `make examples' in "
                                           "fairnif's repository", [Missing])}}
    end.

%% @doc Calls one function in a node of its own, started with these emulator
%% flags, within this time.  Costs half a second beside the call.  What the
%% function returns as `{error, {Class, Reason}}' is an error here too.
-spec in_peer([string()], {module(), atom(), [term()]}, pos_integer()) -> row().
in_peer(Flags, MFA, LimitMs) ->
    row(fairnif_lab_peer:with(
          Flags, fun(Peer) ->
                         Before = fairnif_lab_peer:cpu_clock(Peer),
                         case fairnif_lab_peer:call(Peer, MFA, LimitMs) of
                             {ok, Value} ->
                                 {ok, Value,
                                  fairnif_lab_machine:others(
                                    Before, fairnif_lab_peer:cpu_clock(Peer))};
                             {error, _} = Error ->
                                 Error
                         end
                 end)).

row({ok, {error, {Class, Reason}}, _}) ->
    #{error => text(io_lib:format("~s:~0tp", [Class, Reason])), timed_out => false};
row({ok, Value, Others}) ->
    #{value => Value, others => Others};
row({error, Reason}) ->
    #{error => text(fairnif_lab_peer:format_error(Reason)),
      timed_out => element(1, Reason) =:= timeout}.

%% @doc A call in a peer; throws `{failed, Text}' where it has no answer.
-spec ask(fairnif_lab_peer:peer(), {module(), atom(), [term()]}, pos_integer()) -> term().
ask(Peer, MFA, LimitMs) ->
    case fairnif_lab_peer:call(Peer, MFA, LimitMs) of
        {ok, Value} -> Value;
        {error, Reason} -> throw({failed, text(fairnif_lab_peer:format_error(Reason))})
    end.

%% @doc Whether a row has no figures.
-spec failed(#{atom() => term()}) -> boolean().
failed(Row) ->
    is_map_key(error, Row).

%% @doc The result of an experiment; not `ok' when a row failed.  One marked with
%% `may_time_out' may do that: it is what the row is to show.
-spec result([#{atom() => term()}], #{atom() => term()}) -> fairnif_experiment:result().
result(Rows, More) ->
    More#{ok => not lists:any(fun(R) -> failed(R) andalso not excused(R) end, Rows)}.

excused(#{may_time_out := true, timed_out := true}) -> true;
excused(_) -> false.

%% @doc Which rows failed, and which are to be doubted because other programs
%% kept the machine busy; Label is what a row is called.
-spec footnotes(fun((Row) -> unicode:chardata()), [Row]) -> unicode:chardata()
              when Row :: #{atom() => term()}.
footnotes(Label, Rows) ->
    [[["Failed: ", Label(R), ": ", E, $\n]
      || #{error := E} = R <- Rows, not excused(R)],
     case [Label(R) || #{others := N} = R <- Rows, doubted(N)] of
         Noisy when length(Noisy) > ?NAMED ->
             io_lib:format("Other programs kept the machine busy: doubt ~b of ~b figures.~n",
                           [length(Noisy), length(Rows)]);
         Noisy -> doubt(", ", Noisy)
     end].

%% @doc Whether other programs kept so many processors busy that a figure is spoiled.
-spec doubted(number() | undefined) -> boolean().
doubted(Others) ->
    is_number(Others) andalso Others > ?OTHERS.

%% @doc The sentence that names the figures which are to be doubted; none of none.
-spec doubt(Separator :: string(), [unicode:chardata()]) -> unicode:chardata().
doubt(_, []) ->
    "";
doubt(Separator, Noisy) ->
    ["Other programs kept the machine busy: doubt ", lists:join(Separator, Noisy), ".\n"].

%% @doc As a binary.
-spec text(unicode:chardata()) -> binary().
text(Chardata) ->
    unicode:characters_to_binary(Chardata).

%% @doc A duration that is a whole number of milliseconds, in us: no digits behind
%% the point.
-spec time(Us :: non_neg_integer()) -> unicode:chardata().
time(Us) when Us rem 1000000 =:= 0 -> [integer_to_list(Us div 1000000), " s"];
time(Us) -> [integer_to_list(Us div 1000), " ms"].

%% @doc About how long that is.
-spec about(Ms :: non_neg_integer()) -> unicode:chardata().
about(Ms) when Ms >= 120000 -> [integer_to_list(round(Ms / 60000)), " min"];
about(Ms) -> [integer_to_list(ceil(Ms / 1000)), " s"].
