%% JSON: examples/json beside jiffy and, where this Erlang has it, OTP's json.
%%
%% What is not installed is not compared: `peers/0'.  Each batch of calls has a
%% process of its own with the least heap, as with fairnif_bench_lists; the
%% document is a binary, and what is encoded a literal, outside of that heap.
-module(fairnif_bench_json).

-export([flags/0, run/0, hold/0, delay_flags/0, delay/0]).
-export([sizes/0, peers/0, directions/0]).

-import(fairnif_bench_series, [interleave/2, repeat/2]).

-define(BATCH_BYTES, 3000000).
-define(LARGE, 10000000).
-define(ROUNDS, 11).
-define(FEW_ROUNDS, 5).
-define(DELAY_ROUNDS, 7).
-define(DELAY_MS, 700).
-define(DELAY_SIZE, 1000000).
-define(LOADS, 4).

-spec flags() -> [string()].
flags() -> fairnif_bench_calls:flags().

-spec delay_flags() -> [string()].
delay_flags() -> fairnif_bench_delay:flags().

-spec sizes() -> [pos_integer()].
sizes() -> [1000, 10000, 100000, 1000000, ?LARGE, 50000000].

-spec directions() -> [decode | encode, ...].
directions() -> [decode, encode].

%% @doc The other libraries that are here.
-spec peers() -> [jiffy | json].
peers() ->
    [M || M <- [jiffy, json], code:ensure_loaded(M) =:= {module, M}].

%% @doc Ns of a call, `FORM DIRECTION KIND SIZE', FORM being fair, jiffy or
%% json: wall time; with ` cpu' after it CPU time of the node.
-spec run() -> fairnif_bench_series:samples().
run() ->
    ok = loaded(),
    lists:foldl(fun maps:merge/2, #{},
                [series(Kind, Size) || Kind <- fairnif_bench_documents:kinds(), Size <- sizes()]).

series(Kind, Size) ->
    Term = literal(Kind, fairnif_bench_documents:document(Kind, Size)),
    Json = iolist_to_binary(simdjson:encode(Term)),
    Calls = max(1, ?BATCH_BYTES div Size),
    Samples = interleave(rounds(Size),
                         [fun() -> timed(name("~s ~s ~s ~b", [Form, Direction, Kind, Size]), Calls,
                                         call(Form, Direction, Json, Term))
                          end
                          || Direction <- directions(), Form <- [fair | peers()]]),
    true = persistent_term:erase({?MODULE, Kind}),
    Samples.

rounds(Size) when Size >= ?LARGE -> ?FEW_ROUNDS;
rounds(_) -> ?ROUNDS.

call(fair, decode, Json, _) -> fun() -> simdjson:decode(Json) end;
call(jiffy, decode, Json, _) -> fun() -> jiffy:decode(Json, [return_maps]) end;
call(json, decode, Json, _) -> fun() -> json:decode(Json) end;
call(fair, encode, _, Term) -> fun() -> simdjson:encode(Term) end;
call(jiffy, encode, _, Term) -> fun() -> jiffy:encode(Term) end;
call(json, encode, _, Term) -> fun() -> json:encode(Term) end.

timed(Series, Calls, Fun) ->
    {Pid, Monitor} = spawn_monitor(fun() -> receive go -> ok end, repeat(Calls, Fun) end),
    {Cpu, Begin} = {fairnif_bench_nif:node_cpu(), fairnif_bench_nif:now()},
    Pid ! go,
    receive {'DOWN', Monitor, process, Pid, normal} -> ok end,
    [{Series, (fairnif_bench_nif:now() - Begin) / Calls},
     {<<Series/binary, " cpu">>, (fairnif_bench_nif:node_cpu() - Cpu) / Calls}].

%% @doc The slices of both directions with 10 MB, `DIRECTION KIND', and the longest
%% of each round by the length that is set.
-spec hold() -> {fairnif_bench_series:samples(), map()}.
hold() ->
    ok = loaded(),
    #{slice_ns := Slice} = Facts = maps:with([slice_ns], fairnif:info()),
    Samples = interleave(
                ?FEW_ROUNDS,
                [fun() -> slices(name("~s ~s", [Direction, Kind]), Slice, MFA, Fun) end
                 || Kind <- fairnif_bench_documents:kinds(),
                    Term <- [literal(Kind, fairnif_bench_documents:document(Kind, ?LARGE))],
                    Json <- [iolist_to_binary(simdjson:encode(Term))],
                    {Direction, MFA} <- [{decode, {simdjson, nif_decode, 2}},
                                         {encode, {simdjson, nif_encode, 1}}],
                    Fun <- [call(fair, Direction, Json, Term)]]),
    {Samples, Facts}.

slices(Name, Slice, MFA, Fun) ->
    Slices = fairnif_bench_hold:slices(MFA, fun() -> timed(Name, 1, Fun) end),
    [{Name, Slices}, {<<Name/binary, " longest">>, lists:max([Ns || {Ns, _} <- Slices]) / Slice}].

%% @doc p99 (ns) of a sleeper beside nothing, beside processes that decode 1 MB
%% again and again, and (`erlang') beside Erlang that makes the same terms: what
%% it waits there it waits for the VM, whose collections are of the caller's heap.
-spec delay() -> fairnif_bench_series:samples().
delay() ->
    ok = loaded(),
    Terms = [literal(Kind, fairnif_bench_documents:document(Kind, ?DELAY_SIZE))
             || Kind <- fairnif_bench_documents:kinds()],
    Jsons = [iolist_to_binary(simdjson:encode(Term)) || Term <- Terms],
    interleave(
      ?DELAY_ROUNDS,
      [fun() ->
               #{p99 := P99} = fairnif_lab_delay:beside(Loads, #{time_ms => ?DELAY_MS}),
               timer:sleep(100),
               [{Name, P99}]
       end || {Name, Calls} <- [{<<"idle">>, []},
                                {<<"erlang">>, [fun() -> made_anew(Term) end || Term <- Terms]}
                                | [{atom_to_binary(Form), [call(Form, decode, Json, none)
                                                           || Json <- Jsons]}
                                   || Form <- [fair | peers()]]],
              Loads <- [[fun() -> forever(Calls) end || Calls =/= [], _ <- lists:seq(1, ?LOADS)]]]).

made_anew(#{} = Map) -> maps:map(fun(_, Value) -> made_anew(Value) end, Map);
made_anew([Head | Tail]) -> [made_anew(Head) | made_anew(Tail)];
made_anew(Binary) when is_binary(Binary) -> <<Binary/binary, "x">>;
made_anew(Number) when is_float(Number) -> Number + 1.0;
made_anew(Other) -> Other.

%% No result outlives its call.
forever(Calls) ->
    lists:foreach(fun(Call) -> Call() end, Calls),
    forever(Calls).

%% With jiffy missing the others are still measured.
loaded() ->
    case code:ensure_loaded(simdjson) of
        {module, simdjson} ->
            case lists:member(jiffy, peers()) of
                true -> ok;
                false -> io:format(standard_error, "fairnif: there is no jiffy: JSON is not "
                                   "compared with it (Debian: erlang-jiffy)~n", [])
            end;
        {error, _} ->
            exit('examples/json is not built: install g++ and libsimdjson-dev, run make examples')
    end.

literal(Kind, Term) ->
    persistent_term:put({?MODULE, Kind}, Term),
    persistent_term:get({?MODULE, Kind}).

name(Format, Args) ->
    iolist_to_binary(io_lib:format(Format, Args)).
