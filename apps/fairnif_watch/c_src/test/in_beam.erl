%% Tries the parts of stack.h on the threads of a real VM: what is on a scheduler is known, and must
%% be found. main/1 prints a line for each check that failed, and the totals, as the C tests do.
-module(in_beam).

-export([main/1, cost/1, start/0, stop/0, here/1, look/1]).

start() -> erlang:nif_error(not_loaded).
stop() -> erlang:nif_error(not_loaded).
here(Term) -> erlang:nif_error({not_loaded, Term}).
look(Tid) -> erlang:nif_error({not_loaded, Tid}).

%% Who looks is not where scheduler 1 is blocked.
main(Args) ->
    spawn_opt(fun() -> run_all(Args) end, [{scheduler, 2}]).

run_all([Dir]) ->
    ok = erlang:load_nif(filename:join(Dir, "in_beam"), 0),
    ok = in_beam_block:load(filename:join(Dir, "in_beam_block")),
    0 = start(),
    Tests = [fun spinning/0, fun sleeping/0, fun dirty/0, fun bif/0, fun erlang_code/0,
             fun garbage/0, fun others_library/0, fun librarys_machine_code/0, fun stops/0],
    Results = [run(Test) || Test <- Tests],
    Failed = length([failed || failed <- Results]),
    io:format("in the BEAM of OTP ~s: ~b passed, ~b failed~n",
              [erlang:system_info(otp_release), length(Results) - Failed, Failed]),
    halt(min(Failed, 1)).

%% What a snapshot and its frames cost, in microseconds: with nothing kept (maps, tables and names
%% are read), and the median of 300 once they are.
cost(Args) ->
    spawn_opt(fun() -> measure(Args) end, [{scheduler, 2}]).

measure([Dir]) ->
    ok = erlang:load_nif(filename:join(Dir, "in_beam"), 0),
    ok = in_beam_block:load(filename:join(Dir, "in_beam_block")),
    io:format("~-16s ~6s ~8s ~8s ~8s ~8s~n",
              ["us", "take", "unwind:", "first", "again", "name"]),
    Data = binary:copy(<<"abcdefgh">>, 1 bsl 20),
    lists:foreach(fun({Name, Fun}) ->
                          0 = start(),
                          {First, Later} = times(Fun),
                          true = stop(),
                          show(Name ++ ", first", First),
                          show(Name, [median(Column) || Column <- columns(Later)])
                  end,
                  [{"spinning NIF", fun() -> in_beam_block:spin(4000) end},
                   {"sleeping NIF", fun() -> in_beam_block:nap(4000) end},
                   {"BIF", fun() -> [binary:copy(Data, 9) || _ <- lists:seq(1, 2000)] end}]),
    halt(0).

times(Fun) ->
    Self = self(),
    Pid = spawn_opt(fun() -> Self ! {self(), here(self())}, Fun() end, [{scheduler, 1}]),
    {Tid, _} = receive {Pid, Here} -> Here end,
    pause(50),
    [First | Later] = [tuple_to_list(element(5, Seen))
                       || Seen <- [look(Tid) || _ <- lists:seq(1, 301)], is_tuple(Seen)],
    exit(Pid, kill),
    {First, Later}.

columns([[] | _]) -> [];
columns(Rows) -> [[hd(Row) || Row <- Rows] | columns([tl(Row) || Row <- Rows])].

median(List) -> lists:nth(length(List) div 2 + 1, lists:sort(List)).

show(Name, Times) ->
    [Take, Unwind, Again, Names] = [T / 1000 || T <- Times],
    io:format("~-22s ~7.1f ~10.1f ~8.1f ~8.1f~n", [Name, Take, Unwind, Again, Names]).

run(Test) ->
    try Test() of
        _ -> passed
    catch
        Class:Reason:Stack ->
            {name, Name} = erlang:fun_info(Test, name),
            io:format("FAILED ~s: ~p:~p~n~p~n", [Name, Class, Reason, Stack]),
            failed
    end.

spinning() ->
    is_nif(<<"spin">>, false, fun() -> in_beam_block:spin(1000) end).

sleeping() ->
    is_nif(<<"nap">>, true, fun() -> in_beam_block:nap(1000) end).

%% The library has no symbols: the names are those of its table of NIFs. Where the frames reach the
%% JIT's code, the process is the one that called.
is_nif(Name, Slept, Fun) ->
    seen(Fun,
         fun({jit, IsSlept, Process, Frames, _}, Pid) ->
                 IsSlept =:= Slept andalso Process =:= Pid
                     andalso [{<<"in_beam_block">>, Name, 1}]
                         =:= [MFA || {library, <<"in_beam_block.so">>, _, {_, F, _} = MFA, _, _}
                                         <- Frames, F =/= <<>>]
                     andalso [] =:= [Symbol || {_, <<"in_beam_block.so">>, Symbol, _, _, _}
                                                   <- Frames, Symbol =/= <<>>];
            (_, _) -> false
         end).

%% A dirty scheduler has no code of the JIT below it. Which one it is, is seen by looking at all.
dirty() ->
    Blocked = spawn(fun() -> forever(fun() -> in_beam_block:spin_dirty(2000) end) end),
    until(fun() ->
                  lists:any(fun(Tid) ->
                                    case look(Tid) of
                                        {whole, false, 0, Frames, _} ->
                                            [] =/= [x || {_, _, _, {_, <<"spin", _/binary>>, 1},
                                                          _, _} <- Frames];
                                        _ -> false
                                    end
                            end, tids())
          end),
    exit(Blocked, kill).

tids() ->
    {ok, Names} = file:list_dir("/proc/self/task"),
    [list_to_integer(Name) || Name <- Names].

bif() ->
    Bin = binary:copy(<<"abcdefgh">>, 1 bsl 20),
    seen(fun() -> [binary:copy(Bin, 20) || _ <- lists:seq(1, 40)] end,
         fun({jit, false, Pid, [_ | _] = Frames, _}, Pid) ->
                 lists:all(fun(Frame) ->
                                   lists:member(element(1, Frame), [libc, emulator, jit])
                           end, Frames)
                     andalso lists:keymember(emulator, 1, Frames);
            (_, _) -> false
         end).

erlang_code() ->
    seen(fun() -> count(1 bsl 29) end,
         fun({jit, false, Pid, [{jit, <<>>, <<>>, _, _, _}], _}, Pid) -> true;
            (_, _) -> false
         end).

%% Not where the emulator has its own; or not with a process in its register.
librarys_machine_code() ->
    [seen(fun() -> in_beam_block:Name(1000) end,
          fun({machine, false, _, [{unknown, <<>>, <<>>, _, _, _}], _}, _) -> true;
             (_, _) -> false
          end)
     || Name <- [machine, machine_named]].

count(0) -> 0;
count(N) -> count(N - 1).

%% A collection is the emulator's; small ones are on the scheduler itself.
garbage() ->
    List = lists:seq(1, 40000),
    seen(fun() -> [{erlang:garbage_collect(), hd(List)} || _ <- lists:seq(1, 20000)] end,
         fun({jit, false, Pid, Frames, _}, Pid) -> lists:keymember(emulator, 1, Frames);
            (_, _) -> false
         end).

%% OTP's own, with the symbols that the distribution left in it.
others_library() ->
    {ok, _} = application:ensure_all_started(crypto),
    Data = binary:copy(<<"abcdefgh">>, 2000),
    seen(fun() -> [crypto:hash(sha256, Data) || _ <- lists:seq(1, 60000)] end,
         fun({jit, false, Pid, Frames, _}, Pid) ->
                 lists:any(fun({library, <<"crypto.so">>, _, {<<"crypto">>, <<"hash_nif">>, 2}, _,
                                _}) -> true;
                              (_) -> false
                           end, Frames);
            (_, _) -> false
         end).

%% Starts and stops beside busy schedulers.
stops() ->
    true = stop(),
    Busy = [spawn_link(fun() -> in_beam_block:spin(3000) end) || _ <- [1, 2]],
    lists:foreach(fun(_) ->
                          0 = start(),
                          _ = look(hd(tids())),
                          true = stop()
                  end, lists:seq(1, 50)),
    [begin unlink(Pid), exit(Pid, kill) end || Pid <- Busy].

%% Runs Fun on scheduler 1, again and again, and looks at that thread until what is seen Is what was
%% expected.
seen(Fun, Is) ->
    Self = self(),
    Pid = spawn_opt(fun() ->
                            Self ! {self(), here(self())},
                            forever(Fun)
                    end, [{scheduler, 1}]),
    {Tid, Word} = receive {Pid, Here} -> Here end,
    try
        until(fun() ->
                      is_process_alive(Pid) orelse error({ended, get(seen)}),
                      Seen = look(Tid),
                      put(seen, Seen),
                      Is(Seen, Word)
              end)
    after
        exit(Pid, kill)
    end.

%% Not once: on a busy machine it may end before it is looked at. A call of a NIF is one reduction,
%% however long: without the yield nobody could be killed for as long as 4000 of them take.
forever(Fun) ->
    _ = Fun(),
    true = erlang:yield(),
    forever(Fun).

until(Fun) -> until(Fun, erlang:monotonic_time(millisecond) + 30000).

until(Fun, Deadline) ->
    case {Fun(), erlang:monotonic_time(millisecond) > Deadline} of
        {true, _} -> ok;
        {false, true} -> error({never, get(seen)});
        {false, false} -> pause(1), until(Fun, Deadline)
    end.

%% Not timer:sleep/1: at its first call the module is loaded, which waits until the scheduler that
%% is blocked has come round.
pause(Ms) -> receive after Ms -> ok end.
