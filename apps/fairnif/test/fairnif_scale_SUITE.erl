%% Very many tasks at once: what they take, where there is an end to them, whether they all get
%% their turns. In a tenth of the full size (100,000 suspended tasks; fairnif_soak_SUITE has it).
-module(fairnif_scale_SUITE).

-export([all/0, suite/0, init_per_suite/1, end_per_suite/1]).
-export([ten_thousand_suspended_tasks_take_16_kib_each_and_leave_nothing/1,
         each_of_a_thousand_busy_tasks_is_shown_at_any_moment/1,
         with_no_stack_left_to_map_a_call_fails_and_the_node_lives/1,
         thousands_of_callers_of_equal_work_end_at_about_the_same_time/1]).
-export([suspended/1]).

-define(RESIDENT_MOST, 16 * 1024).

suite() ->
    [{timetrap, {minutes, 15}}].

all() ->
    fairnif_test:cases(?MODULE) -- [suspended].

init_per_suite(Config) ->
    ok = fairnif_test:build(),
    Config.

end_per_suite(_Config) ->
    ok.

ten_thousand_suspended_tasks_take_16_kib_each_and_leave_nothing(_) ->
    suspended(10000).

%% With the processes themselves, 2.7 KiB each, and what the body holds, 4 KiB.
suspended(N) ->
    Seen = in_peer([], fairnif_test_scale, suspended, [N]),
    ct:log("~p", [Seen]),
    #{suspended := #{all := Each}, waiting := #{all := EachWaiting}, left := #{all := Left}} = Seen,
    true = Each =< ?RESIDENT_MOST,
    #{begun := N, ended := N, disorder := 0, tasks := 0, stacks_in_use := 0} = Seen,
    true = maps:get(stacks_idle, Seen) =< 100,
    %% The VM's allocators keep some of what processes and bodies had.
    true = Left < N * Each div 2 + 16 * 1024 * 1024,
    {comment, lists:flatten(
                io_lib:format("~b tasks: ~b bytes resident each; processes that wait in a "
                              "receive: ~b; left over: ~b", [N, Each, EachWaiting, Left div N]))}.

each_of_a_thousand_busy_tasks_is_shown_at_any_moment(_) ->
    1000 = in_peer([], fairnif_test_scale, listed, [1000, 100]).

%% Where guards are made with mprotect, as before Linux 6.13, they use up the mappings that a node
%% may have. The runtime stops at a quarter as many stacks, so that the VM has half of them.
with_no_stack_left_to_map_a_call_fails_and_the_node_lives(_) ->
    Library = fairnif_test:library(fairnif_test_old_kernel) ++ ".so",
    Seen = in_peer([{env, [{"LD_PRELOAD", Library}]}], fairnif_test_scale, fill, [100]),
    ct:log("~p", [Seen]),
    {ok, Text} = file:read_file("/proc/sys/vm/max_map_count"),
    Most = list_to_integer(string:trim(binary_to_list(Text))),
    Limit = Most div 4,
    #{guard := mprotect, limit := Limit, refused := Refused,
      at_limit := #{mappings := Mappings, vm := true, call := system_limit,
                    stacks_in_use := InUse},
      call_after_kills := ok, killed := Killed, rest := Rest} = Seen,
    [system_limit] = maps:keys(Refused),
    true = maps:get(system_limit, Refused) < 120,
    true = InUse > Limit - 20,
    true = Mappings < Most div 2 + 2000,
    [{killed, K}] = maps:to_list(Killed),
    [{answered, A}] = maps:to_list(Rest),
    InUse = K + A,
    #{slot := #{begun := InUse, ended := InUse, disorder := 0}} = Seen,
    {comment, lists:flatten(io_lib:format("~b stacks, ~b mappings of ~b",
                                          [InUse, Mappings, Most]))}.

%% Turn by turn, as Erlang processes would: half a millisecond each, some 20 slices, so that a slice
%% more or less is little. On one scheduler: on more, what the operating system gives to each thread
%% and how the VM moves processes between them count as well. Two thousand, `make soak': ten.
thousands_of_callers_of_equal_work_end_at_about_the_same_time(_) ->
    fairnif_test:retry(3, fun() ->
                                  Native = turns(native),
                                  Erlang = turns(erlang),
                                  ct:log("native ~p~nerlang ~p", [Native, Erlang]),
                                  case maps:get(ratio, Native) =< 1.5 of
                                      true -> ok;
                                      false -> {native, Native, erlang, Erlang}
                                  end
                          end).

turns(What) ->
    Callers = fairnif_test:env_number("SOAK_TASKS", 20000) div 10,
    in_peer("1:1", [], fairnif_test_scale, turns, [What, Callers, 500]).

in_peer(Options, Module, Function, Args) ->
    in_peer("2:2", Options, Module, Function, Args).

in_peer(Schedulers, Options, Module, Function, Args) ->
    Peer = fairnif_test:peer(["+S", Schedulers, "+P", "300000"], [], Options),
    Result = fairnif_test:call(Peer, Module, Function, Args),
    fairnif_test:stop(Peer),
    Result.
