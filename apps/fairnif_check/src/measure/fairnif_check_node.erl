%% The nodes of a check: each measurement has one of its own, with the subjects installed in it and
%% a limit on its memory.
-module(fairnif_check_node).

-export([enough_memory/1, measured/7, in_peer/5]).

-export_type([options/0, answer/0]).

%% Those of fairnif_check_run:options/0, filled in.
-type options() :: #{time_ms := pos_integer(), timeout_ms := pos_integer(), flags := [string()],
                     atom() => term()}.
-type call() :: fun((fairnif_check_peer:peer()) -> {ok, term()}
                                               | {error, fairnif_check_peer:reason()}).
%% With how many processors other programs kept busy meanwhile.
-type answer() :: {ok, term(), Others :: float() | undefined}
                | {error, fairnif_check_peer:reason()}.

%% Of the memory that is available the peer may use this part: the rest of the machine lives on.
-define(MEMORY_PART, 0.7).
%% What a node has mapped before it does anything, and room to work in.
-define(VM_BYTES, 536870912).
%% The least time for what has a limit of its own, or has returned before.
-define(BUSY_MS, 60000).

%% @doc Throws `{unsure, Text}' where a node would have too little for inputs of these sizes.
-spec enough_memory([pos_integer()]) -> true.
enough_memory(Sizes) ->
    enough_memory(lists:max(Sizes), fairnif_check_machine:memory_available()).

enough_memory(Largest, Available) when is_integer(Available) ->
    Needed = 3 * Largest + ?VM_BYTES,
    Needed =< Available orelse
        throw({unsure, io_lib:format("inputs of ~ts need ~ts of memory, and ~ts are available; "
                                         "give smaller sizes",
                                         [fairnif_check_table:bytes(B)
                                          || B <- [Largest, Needed, Available]])});
enough_memory(_, unknown) ->
    true.

%% @doc One measurement, a function of fairnif_check_in_peer, with time for slow calls and, as the
%% function has returned before, for a busy machine. Throws `{failed, Text}' where the checker could
%% not do its work.
-spec measured([string()], [fairnif_check_subject:subject()], pos_integer(), options(), atom(),
               [term()], number()) -> answer().
measured(Flags, Subjects, Size, Opts, Function, Args, CallNs) ->
    #{time_ms := TimeMs, timeout_ms := TimeoutMs} = Opts,
    LimitMs = max(?BUSY_MS, TimeoutMs + 20 * TimeMs + 20 * ceil(CallNs / 1.0e6)),
    Mfa = {fairnif_check_in_peer, Function, Args},
    in_peer(Flags, Subjects, Size, Opts,
            fun(Peer) -> fairnif_check_peer:call(Peer, Mfa, LimitMs) end).

%% @doc What Fun, which calls the node, answers. These flags come last, and prevail over the user's.
-spec in_peer([string()], [fairnif_check_subject:subject()], pos_integer(), options(), call()) ->
          answer().
in_peer(Flags, Subjects, Size, #{timeout_ms := TimeoutMs} = Opts, Fun) ->
    PeerOpts = maps:merge(#{quiet => true, paths => maps:get(paths, Opts, [])}, memory_limit(Opts)),
    Answer =
        fairnif_check_peer:with(
          maps:get(flags, Opts) ++ Flags, PeerOpts,
          fun(Peer) ->
                  installed(fairnif_check_peer:call(Peer, {fairnif_check_in_peer, install,
                                                         [Subjects, Size, TimeoutMs]},
                                                  max(?BUSY_MS, 2 * TimeoutMs + Size div 10000))),
                  Before = fairnif_check_peer:cpu_clock(Peer),
                  case Fun(Peer) of
                      {ok, Value} ->
                          {ok, Value, fairnif_check_machine:others(
                                        Before, fairnif_check_peer:cpu_clock(Peer))};
                      {error, _} = Error ->
                          Error
                  end
          end),
    case Answer of
        {error, {boot, _} = Reason} -> throw({failed, fairnif_check_peer:format_error(Reason)});
        %% What the function raises comes as a value.
        {error, {raised, _, _, [{M, F, _, _} | _]} = Reason} ->
            throw({failed, io_lib:format("the checker itself failed, in ~tw:~tw: ~ts",
                                         [M, F, fairnif_check_peer:format_error(Reason)])});
        _ -> Answer
    end.

installed({ok, ok}) -> ok;
installed({ok, {error, {Kind, Text}}}) -> throw({Kind, Text});
installed({error, Reason}) -> throw({failed, ["while the input was made: ",
                                              fairnif_check_peer:format_error(Reason)]}).

memory_limit(#{memory := Bytes}) ->
    #{memory => Bytes};
memory_limit(_) ->
    case fairnif_check_machine:memory_available() of
        Bytes when is_integer(Bytes) -> #{memory => max(?VM_BYTES, round(?MEMORY_PART * Bytes))};
        unknown -> #{}
    end.
