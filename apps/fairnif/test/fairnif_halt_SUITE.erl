%% A node that halts while tasks are suspended, queued and running: it ends with status 0, without a
%% core, and as fast as the same node without tasks (by init:stop/0: with Erlang processes instead).
%% A body that is NO_YIELD holds its scheduler as any plain NIF does: there is nothing to prove.
-module(fairnif_halt_SUITE).

-export([all/0, suite/0, init_per_suite/1, end_per_suite/1]).
-export([halt_without_flush_is_as_fast_with_tasks_in_every_mode/1,
         halt_with_flush_is_as_fast_with_tasks_in_every_mode/1,
         init_stop_is_as_fast_with_tasks_in_every_mode/1,
         no_body_runs_while_the_statics_of_its_library_are_destroyed/1]).

-define(ATTEMPTS, 4).

suite() ->
    [{timetrap, {minutes, 15}}].

all() ->
    fairnif_test:cases(?MODULE).

init_per_suite(Config) ->
    ok = fairnif_test:build(),
    Config.

end_per_suite(_Config) ->
    ok.

halt_without_flush_is_as_fast_with_tasks_in_every_mode(_) -> halts(halt).
halt_with_flush_is_as_fast_with_tasks_in_every_mode(_) -> halts(flush).
init_stop_is_as_fast_with_tasks_in_every_mode(_) -> halts(stop).

no_body_runs_while_the_statics_of_its_library_are_destroyed(_) ->
    case list_to_integer(erlang:system_info(otp_release)) >= 26 of
        true -> [destroyed_under(F) || F <- [use_threaded, use_dirty], _ <- [1, 2]];
        false -> {skip, "the VM does not report that it halts"}
    end.

destroyed_under(Function) ->
    Erl = lists:flatten(lists:join($ , ["erl", "-noshell" | fairnif_test:erl_args()])),
    Output = os:cmd("ulimit -c 0; " ++ Erl ++ " -eval 'fairnif_test_ends:halt_with("
                    ++ atom_to_list(Function) ++ ")' 2>&1; echo status: $?"),
    case string:find(Output, "status: 0") of
        nomatch -> ct:fail({Function, Output});
        _ -> ok
    end.

%% Time is wall time on a machine with other work: a slow one is tried again, a wrong status is not.
halts(How) ->
    Without = lists:min([halt_us(instead(How), How) || _ <- lists:seq(1, 3)]),
    Times = [{Mode, in_time(Mode, How, Without)}
             || Mode <- [yielding, dirty_cpu, dirty_io, yielding_dirty, auto, unwinding, threaded,
                         offloaded, waiting, descriptor]],
    {comment, io_lib:format("us: ~p without tasks, ~p", [Without, Times])}.

%% init:stop/0 is Erlang code, which shares the schedulers with what is at work. (In an idle node it
%% takes a second on OTP 25 and 27, and 10 ms on OTP 29.)
instead(stop) -> erlang;
instead(_) -> none.

in_time(Mode, How, Without) ->
    fairnif_test:retry(?ATTEMPTS, fun() ->
                                          Us = halt_us(Mode, How),
                                          put(us, Us),
                                          case Us < 2 * Without + 150000 of
                                              true -> ok;
                                              false -> {Mode, How, Us, without, Without}
                                          end
                                  end),
    erase(us).

%% At halt nothing is cleaned up: a body would say so. init:stop/0 kills the callers first.
tell(stop) -> [];
tell(_) -> [{"FAIRNIF_TEST_HALTS", "1"}].

%% From the call of halt to the end of the OS process.
halt_us(Mode, How) ->
    Args = ["+S", "2:2", "+SDcpu", "2:2", "+SDio", "8", "-noshell"]
        ++ fairnif_test:erl_args()
        ++ ["-s", "fairnif_test_halt", "main", atom_to_list(Mode), atom_to_list(How)],
    Port = open_port({spawn_executable, os:find_executable("erl")},
                     [{args, Args}, {env, tell(How)}, {line, 1000}, exit_status,
                      stderr_to_stdout]),
    {os_pid, Pid} = erlang:port_info(Port, os_pid),
    try await_end(Port, none)
    catch
        throw:Wrong ->
            _ = os:cmd("kill -9 " ++ integer_to_list(Pid)),
            ct:fail({Wrong, Mode, How})
    end.

await_end(Port, Began) ->
    receive
        {Port, {data, {eol, "{halting," ++ Rest}}} ->
            {Us, _} = string:to_integer(Rest),
            await_end(Port, Us);
        {Port, {exit_status, 0}} when Began =/= none ->
            os:system_time(microsecond) - Began;
        {Port, Other} ->
            throw(Other)
    after 240000 ->
            throw({no_end, Began})
    end.
