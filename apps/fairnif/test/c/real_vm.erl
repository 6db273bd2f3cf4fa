%% Runs the plain C tests in this emulator: what vm_*.c stands in for is the real thing here.
%%
%%     erl -noshell -pa DIR -run real_vm main -extra DIR TEST [-v] [PART OF A NAME OR SENTENCE ...]
%%
%% DIR has real_vm.so and TEST.so, the library of a test file, which is loaded as the NIF of a
%% module made for it; its tests run one after the other, and ask this process for calls and terms
%% (real.c).
-module(real_vm).
-export([main/0, bits/2]).
-export([functions/1, name/1, run/1, answer/1, ended/3]).
-nifs([functions/1, name/1, run/1, answer/1, ended/3]).

-define(LIMIT_MS, 60_000).

main() ->
    [Dir, Test | Parts] = init:get_plain_arguments(),
    %% nif_set/2 is not exported.
    {ok, {_, [{abstract_code, {_, Forms}}]}} =
        beam_lib:chunks(code:which(fairnif), [abstract_code]),
    {ok, fairnif, Beam} = compile:forms(Forms, [export_all, nowarn_export_all]),
    {module, fairnif} = code:load_binary(fairnif, code:which(fairnif), Beam),
    ok = erlang:load_nif(filename:join(Dir, "real_vm"), 0),
    _ = fairnif:info(),
    put(module, load(list_to_atom(Test), filename:join(Dir, Test))),
    Settings = element(1, fairnif:nif_info()),
    How = run_all(0, Parts, Settings, []),
    halt(total(How)).

%% The line that the Makefile adds up; answers the exit status.
total(How) ->
    [Passed, Failed, Skipped] =
        [length([H || H <- How, H =:= Which]) || Which <- [passed, failed, skipped]],
    io:format("OTP ~s: ~b passed, ~b failed, ~b skipped~n",
              [erlang:system_info(otp_release), Passed, Failed, Skipped]),
    case Failed of 0 -> 0; _ -> 1 end.

load(Module, Library) ->
    Functions = functions(Library ++ ".so"),
    Stub = fun({Name, Arity}) ->
                   Args = [{var, 1, '_'} || _ <- lists:seq(1, Arity)],
                   {function, 1, Name, Arity, [{clause, 1, Args, [], [{atom, 1, stub}]}]}
           end,
    Load = erl_parse_function("load(Path, Info) -> erlang:load_nif(Path, Info)."),
    Forms = [{attribute, 1, module, Module},
             {attribute, 1, export, [{load, 2} | Functions]},
             {attribute, 1, nifs, Functions},
             Load | lists:map(Stub, Functions)],
    {ok, Module, Beam} = compile:forms(Forms),
    {module, Module} = code:load_binary(Module, Library, Beam),
    ok = fairnif:loaded(Module:load(Library, fairnif:load_info())),
    Module.

erl_parse_function(Text) ->
    {ok, Tokens, _} = erl_scan:string(Text),
    {ok, Form} = erl_parse:parse_form(Tokens),
    Form.

run_all(N, Parts, Settings, How) ->
    case name(N) of
        false ->
            How;
        {File, Sentence} ->
            Chosen = Parts -- ["-v"],
            case Chosen =:= [] orelse
                lists:any(fun(Part) -> string:find(File ++ Sentence, Part) =/= nomatch end,
                          Chosen) of
                true ->
                    Watch = watch(Sentence, How),
                    One = run_one(N, Sentence, lists:member("-v", Parts)),
                    exit(Watch, kill),
                    restore(Settings),
                    run_all(N + 1, Parts, Settings, [One | How]);
                false ->
                    run_all(N + 1, Parts, Settings, How)
            end
    end.

run_one(N, Sentence, Verbose) ->
    put(base, element(2, fairnif:nif_info())),
    Started = erlang:monotonic_time(millisecond),
    ok = run(N),
    {How, Why} = serve(#{}),
    Took = erlang:monotonic_time(millisecond) - Started,
    case How of
        skipped -> io:format("skipped in the real emulator: ~s: ~s~n", [Sentence, Why]);
        _ when Verbose -> io:format("~-6s ~s (~b ms)~n", [How, Sentence, Took]);
        _ -> ok
    end,
    How.

%% What the tests changed with nif_set.
restore(Settings) ->
    maps:foreach(fun(Name, Value) when is_integer(Value); is_boolean(Value) ->
                         %% Not all that is shown can be set.
                         try fairnif:nif_set(Name, number(Value)) catch error:badarg -> ok end;
                    (_, _) ->
                         ok
                 end, Settings).

number(true) -> 1;
number(false) -> 0;
number(N) -> N.

%% A test that does not end has failed, and so have those after it in this emulator: what it left
%% cannot be taken back. On a process of its own, since the runner may wait for a dirty scheduler.
watch(Sentence, How) ->
    spawn(fun() ->
                  receive after ?LIMIT_MS -> ok end,
                  io:format("FAILED ~s: it does not end in ~b s; none after it ran~n",
                            [Sentence, ?LIMIT_MS div 1000]),
                  Status = total([failed | How]),
                  timer:sleep(200),
                  halt(Status, [{flush, false}])
          end).

%% The tests' processes: #{Proc => Pid, Monitor => Proc}. Each makes its calls one after the other,
%% until it is killed.
serve(Procs) ->
    receive
        {done, How, Why} ->
            {How, Why};
        {call, {Proc, Name, Args, Awaited}} ->
            Known = known(Proc, Procs),
            map_get(Proc, Known) ! {call, Name, Args, Awaited},
            answer(ok),
            serve(Known);
        {ended, Proc, {How, Value}} ->
            ended(Proc, How, Value),
            serve(Procs);
        {kill, Proc} ->
            [exit(Pid, kill) || #{Proc := Pid} <- [Procs]],     % or it has ended just now
            answer(ok),
            serve(Procs);
        {gc, Proc} ->
            erlang:garbage_collect(map_get(Proc, Procs)),
            erlang:garbage_collect(),
            answer(ok),
            serve(Procs);
        {pid, Proc} ->
            Known = known(Proc, Procs),
            answer(map_get(Proc, Known)),
            serve(Known);
        {waiting, Proc} ->
            answer([{status, waiting}, {current_function, fairnif_await}]
                       =:= [case Info of {What, {M, _, _}} -> {What, M}; _ -> Info end
                            || #{Proc := Pid} <- [Procs],
                               Info <- info(Pid, [status, current_function])]),
            serve(Procs);
        {messages, Proc} ->
            [answer(N) || {_, N} <- info(map_get(Proc, Procs), [message_queue_len])],
            serve(Procs);
        {'DOWN', Monitor, process, _, Reason} ->
            {Proc, Rest} = maps:take(Monitor, Procs),
            erlang:garbage_collect(),           % holds nothing of it
            ended(Proc, dead, Reason),
            serve(maps:remove(Proc, Rest));
        {What, Term} ->
            answer(try reply(What, Term) catch _:Reason -> {failed, Reason} end),
            serve(Procs)
    end.

info(Pid, Items) ->
    case process_info(Pid, Items) of undefined -> []; Infos -> Infos end.

known(Proc, Procs) when is_map_key(Proc, Procs) ->
    Procs;
known(Proc, Procs) ->
    Runner = self(),
    Module = get(module),
    {Pid, Monitor} = spawn_monitor(fun() -> calls(Runner, Proc, Module) end),
    Procs#{Proc => Pid, Monitor => Proc}.

%% A process that was killed in a call learns of it when it yields.
calls(Runner, Proc, Module) ->
    receive
        {call, Name, Args, Awaited} ->
            Result = try
                         {done, answer_of(called(Module, Name, Args), Awaited)}
                     catch
                         error:Error -> {raised, Error}
                     end,
            erlang:yield(),
            Runner ! {ended, Proc, Result},
            calls(Runner, Proc, Module)
    end.

called(_Module, await, [Term]) -> fairnif:await(Term);
called(Module, Name, Args) -> apply(Module, Name, Args).

answer_of(Value, true) -> fairnif:await(Value);
answer_of(Value, false) -> Value.

reply(parse, Text) ->
    Erlang = re:replace(Text, "<<([0-9,]*)/([0-9]+)>>", "real_vm:bits(<<\\1>>,\\2)",
                        [global, {return, list}]),
    Made = string:replace(string:replace(Erlang, "#Fun", "fun() -> ok end", all),
                          "#Ref", "make_ref()", all),
    {ok, Tokens, _} = erl_scan:string(lists:flatten(["[", Made, "]."])),
    {ok, Exprs} = erl_parse:parse_exprs(Tokens),
    {value, Terms, _} = erl_eval:exprs(Exprs, []),
    Terms;
reply(print, Term) ->
    iolist_to_binary(text(Term));
reply(bits, {Bin, Bit}) ->
    bits(Bin, Bit);
reply(tasks, _) ->
    fairnif:nif_tasks();
reply(armed, _) ->
    length([1 || #{state := waiting, where := descriptor} <- fairnif:tasks()]);
reply(set, {Name, Value}) ->
    fairnif:nif_set(Name, Value);
reply(info, {Key, Key}) ->
    maps:get(Key, element(1, fairnif:nif_info()), -1);
reply(counter, {Function, Counter}) ->
    {_, Functions} = fairnif:nif_info(),
    case values(Function, Counter, Functions) of
        [] -> -1;
        Now -> lists:sum(Now) - lists:sum(values(Function, Counter, get(base)))
    end.

%% The same bytes, but beginning within one.
bits(Bin, Bit) ->
    Size = byte_size(Bin),
    <<_:Bit, Part:Size/binary, _/bits>> = <<0:Bit, Bin/binary, 0:(8 - Bit)>>,
    Part.

values(Function, Counter, Functions) ->
    Module = get(module),
    [Value || #{function := {M, F, _}, Counter := Value} <- Functions,
              M =:= Module, F =:= Function].

%% As the stand-in writes terms: no lists as strings, no blanks.
text(Term) when is_binary(Term) ->
    ["<<", lists:join(",", [integer_to_list(Byte) || <<Byte>> <= Term]), ">>"];
text(Term) ->
    re:replace(io_lib:format("~w", [Term]), " => ", "=>", [global]).

functions(_File) -> erlang:nif_error(not_loaded).
name(_N) -> erlang:nif_error(not_loaded).
run(_N) -> erlang:nif_error(not_loaded).
answer(_Term) -> erlang:nif_error(not_loaded).
ended(_Proc, _How, _Result) -> erlang:nif_error(not_loaded).
