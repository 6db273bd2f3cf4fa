%% What the forms of the driver promise: one answer, and a VM that stays usable where they yield.
%% What the checker says of them is in the suite of the checker that judges the examples.
-module(driver_example_tests).

-include_lib("eunit/include/eunit.hrl").

-define(CALLBACKS, [control, call, outputv]).
-define(FORMS, [blocking, normal, dirty_cpu, dirty_io]).

every_form_of_every_callback_comes_to_the_same_test_() ->
    {timeout, 600,
     fun() ->
             [begin
                  Answers = [{Callback, Form, driver_example:Callback(Form, Us)}
                             || Callback <- ?CALLBACKS, Form <- ?FORMS],
                  ?assertMatch([_], lists:usort([Answer || {_, _, Answer} <- Answers]))
              end || Us <- [0, 1, 1000, 20000]]
     end}.

an_unknown_form_is_badarg_test_() ->
    [?_assertError(badarg, driver_example:Callback(fast, 1)) || Callback <- ?CALLBACKS].

work_put_off_is_given_up_when_its_caller_dies_test_() ->
    [{lists:concat([Callback, " ", Form]),
      fun() ->
              {Caller, Monitor} = spawn_monitor(driver_example, Callback, [Form, 60000000]),
              timer:sleep(50),
              exit(Caller, kill),
              receive {'DOWN', Monitor, process, Caller, killed} -> ok end,
              eventually(fun() -> maps:get(jobs, fairnif_driver:counts()) =:= 0 end)
      end} || Callback <- ?CALLBACKS, Form <- [normal, dirty_cpu, dirty_io]].

nothing_is_left_test_() ->
    {timeout, 600,
     fun() ->
             Ports = erlang:system_info(port_count),
             [driver_example:Callback(Form, 10) || _ <- lists:seq(1, 100),
                                                   Callback <- ?CALLBACKS, Form <- ?FORMS],
             garbage_collect(),
             ?assertEqual(Ports, erlang:system_info(port_count)),
             eventually(fun() ->
                                #{jobs := Jobs, ports := Open, requests := Requests} =
                                    fairnif_driver:counts(),
                                {Jobs, Open, Requests} =:= {0, 0, 0}
                        end)
     end}.

eventually(Fun) ->
    Fun() orelse begin timer:sleep(10), eventually(Fun) end.
