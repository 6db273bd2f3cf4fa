%% What the forms of spinsleep promise: the time or the work asked for, badarg
%% for anything else, and, where they yield, a VM that stays usable.
%%
%% Amounts of work are compared in CPU time, which other programs on the machine
%% do not take part in; what cannot be is a ratio with room, tried again.
-module(spinsleep_tests).

-include_lib("eunit/include/eunit.hrl").

-import(example_test, [retry/2, with_pauses/1]).

-define(FAIR_SLEEP, [spinsleep_fair, spinsleep_fair_yield,
                     spinsleep_fair_dirty_yield]).
-define(FAIR_WORK, [spinwork_fair, spinwork_fair_yield,
                    spinwork_fair_dirty_yield]).
-define(FAIR, ?FAIR_SLEEP ++ ?FAIR_WORK).
%% On threads of the pool: 16 at most at once, the others wait.
-define(THREADED, [spinsleep_threaded, spinwork_threaded]).
%% Those that yield once a millisecond at least.
-define(YIELDING_SLEEP, [spinsleep_timeslice, spinsleep_timeslice_dirty
                         | ?FAIR_SLEEP]).
-define(YIELDING_WORK, [spinwork_timeslice, spinwork_timeslice_dirty
                        | ?FAIR_WORK]).
-define(SLEEP, [spinsleep, spinsleep_dirty | ?YIELDING_SLEEP]).
-define(WORK, [spinwork, spinwork_dirty | ?YIELDING_WORK]).
-define(ALL, ?THREADED ++ ?SLEEP ++ ?WORK).

-define(MAX_US, 3600000000).

%% ------------------------------------------------------------------
%% Answers
%% ------------------------------------------------------------------

echo_answers_its_argument_test() ->
    [?assertEqual(Term, spinsleep:echo(Term))
     || Term <- [a, 1, -1.5, "abc", {1 bsl 100}, #{}, self(), <<1:7>>]].

%% A deadline is never early. Work may be, by what the processor's clock has
%% gained on the calibration.
no_form_answers_less_than_it_was_asked_for_test_() ->
    [{atom_to_list(Form),
      ?_test([?assertMatch({_, _, Took} when Took >= Us div Less,
                           {Form, Us, spinsleep:Form(Us)})
              || Us <- [0, 1, 2, 99, 100, 101, 999, 1000, 1001, 2500, 20000]])}
     || {Forms, Less} <- [{[spinsleep_threaded | ?SLEEP], 1},
                          {[spinwork_threaded | ?WORK], 2}],
        Form <- Forms].

with_a_pause_at_every_tick_the_work_is_done_test_() ->
    with_pauses(
     [{atom_to_list(Form),
       ?_test(retry(5, fun() ->
                           #{yields := Before} = fairnif:info({spinsleep, Form, 1}),
                           Took = spinsleep:Form(5000),
                           #{yields := After, rule_violations := 0} = fairnif:info({spinsleep,
                                                                                    Form, 1}),
                           Took >= 2500 andalso After - Before >= least_yields(Form)
                               orelse {Form, Took, After - Before}
                       end))}
      || Form <- ?FAIR]).

%% A tick for each microsecond of work; fewer for a deadline, as the pauses take their time from it.
least_yields(Form) ->
    case lists:member(Form, ?FAIR_WORK) of true -> 5000; false -> 50 end.

%% ------------------------------------------------------------------
%% Bad input
%% ------------------------------------------------------------------

what_is_no_number_of_microseconds_up_to_an_hour_is_badarg_test_() ->
    [{atom_to_list(Form),
      ?_test([?assertError(badarg, spinsleep:Form(Bad))
              || Bad <- [-1, ?MAX_US + 1, 1 bsl 63, 1 bsl 64, -(1 bsl 64), 1 bsl 100,
                         1.0, a, [], "1", <<"1">>, {1}, #{}, self(), make_ref()]])}
     || Form <- ?ALL].

%% ------------------------------------------------------------------
%% A deadline is met by doing less, work is not
%% ------------------------------------------------------------------

%% Ten calls on each scheduler.
calls_that_yield_meet_a_deadline_together_by_not_doing_the_work_test_() ->
    [{atom_to_list(Form),
      {timeout, 600,
       ?_test(retry(3, fun() ->
                           Part = part_done(Form, 50000),
                           Part =< 0.4 orelse {Form, Part}
                       end))}}
     || Form <- ?YIELDING_SLEEP].

work_is_done_in_full_however_many_share_the_cores_test_() ->
    [{atom_to_list(Form),
      {timeout, 600,
       ?_test(retry(3, fun() ->
                           Part = part_done(Form, 20000),
                           (Part >= 0.7 andalso Part =< 2.0) orelse {Form, Part}
                       end))}}
     || Form <- [spinwork_threaded | ?WORK]].

%% The CPU time used, in parts of what was asked for. (Over 1 when hardware
%% threads share a core, and by the schedulers' looking for work.)
part_done(Form, Us) ->
    N = 10 * erlang:system_info(schedulers_online),
    #{cpu_ms := Cpu} = spinsleep:many(Form, Us, N),
    Cpu * 1000 / (N * Us).

%% ------------------------------------------------------------------
%% Slices
%% ------------------------------------------------------------------

forms_run_where_they_say_test_() ->
    [{atom_to_list(Form),
      ?_test(retry(5, fun() ->
                          Slices = slices(Form, 20000),
                          Elsewhere = lists:sum([Us || {Place, Us} <- Slices, Place =/= Where]),
                          Elsewhere * 4 < 20000 orelse {Form, Slices}
                      end))}
     || Form <- ?SLEEP ++ ?WORK,
        Where <- [case string:find(atom_to_list(Form), "dirty") of
                      nomatch -> normal;
                      _ -> dirty
                  end]].

the_caller_of_a_threaded_form_holds_no_scheduler_test_() ->
    [{atom_to_list(Form),
      fun() ->
          #{thread_ns := Before} = nif_info(Form),
          %% By the clock, so with what the operating system gave to others meanwhile.
          retry(5, fun() ->
                       Busy = lists:sum([Us || {_, Us} <- slices(Form, 20000)]),
                       Busy * 4 < 20000 orelse {Form, Busy}
                   end),
          #{thread_ns := After} = nif_info(Form),
          ?assertMatch({_, Ns} when Ns >= 10000000, {Form, After - Before})
      end}
     || Form <- ?THREADED].

%% One more, if the process had used a part of its turn before.
work_sliced_by_hand_takes_a_slice_a_millisecond_test_() ->
    [{atom_to_list(Form),
      ?_test(retry(5, fun() ->
                          Slices = slices(Form, 20000),
                          There = length([Us || {Place, Us} <- Slices, Place =:= Where]),
                          There >= 20 andalso There =< 21 orelse {Form, Slices}
                      end))}
     || {Form, Where} <- [{spinwork_timeslice, normal}, {spinwork_timeslice_dirty, dirty}]].

%% ------------------------------------------------------------------
%% Helpers
%% ------------------------------------------------------------------

nif_info(Form) ->
    Nif = case lists:member(Form, ?THREADED) of
              true -> list_to_atom("nif_" ++ atom_to_list(Form));
              false -> Form
          end,
    fairnif:info({spinsleep, Nif, 1}).

%% The turns that one call of Form was given: where, and for how many microseconds, in order. By a
%% trace of its process; those before and after the call (under 10 us) are left out.
slices(Form, Us) ->
    Parent = self(),
    Pid = spawn_link(fun() ->
                         receive go -> Parent ! {self(), spinsleep:Form(Us)} end,
                         receive stop -> ok end
                     end),
    1 = erlang:trace(Pid, true, [running, scheduler_id, monotonic_timestamp]),
    Pid ! go,
    receive {Pid, _} -> Pid ! stop end,
    Delivered = erlang:trace_delivered(Pid),
    receive {trace_delivered, Pid, Delivered} -> ok end,
    [Slice || {_, Length} = Slice <- turns(Pid), Length >= 10].

turns(Pid) ->
    receive
        {trace_ts, Pid, in, _, Scheduler, From} ->
            receive
                {trace_ts, Pid, out, _, Scheduler, To} ->
                    [{place(Scheduler), microseconds(To - From)} | turns(Pid)]
            after 0 -> []
            end
    after 0 -> []
    end.

%% The VM gives dirty schedulers no number here.
place(0) -> dirty;
place(_) -> normal.

microseconds(Native) ->
    erlang:convert_time_unit(Native, native, microsecond).
