%% What a plain destructor does to others, and a fair resource does not.
-module(cleanup_tests).

-include_lib("eunit/include/eunit.hrl").

-import(example_test, [eventually/1]).

all_test_() ->
    [{timeout, 600, Test}
     || Test <- [fun every_kind_is_cleaned_up/0, fun what_is_short_is_cleaned_up_at_once/0,
                 fun all_of_many_are_cleaned_up/0,
                 fun a_scheduler_stands_still_for_plain_ones_only/0,
                 fun a_reload_takes_over_the_objects/0, fun bad_arguments_are_refused/0,
                 fun nothing_holds_up_the_halt/0]].

every_kind_is_cleaned_up() ->
    [begin
         Before = cleanup:cleaned(),
         cleanup:garbage(fun() -> cleanup:Form(Kind, 2000) end, 3, 5000),
         eventually(fun() -> cleanup:cleaned() =:= Before + 3 end)
     end || Form <- [plain, fair], Kind <- [works, computes, waits]].

%% By the first ones it is learned that they are. Some are not, where other programs take the
%% processors.
what_is_short_is_cleaned_up_at_once() ->
    InPlace = fun() -> [#{normal_ns := Ns}] = callbacks(), Ns end,
    Before = InPlace(),
    ?assert(lists:any(fun(_) ->
                              Cleaned = cleanup:cleaned(),
                              cleanup:garbage(fun() -> cleanup:fair(works, 0) end, 1, 5000),
                              eventually(fun() -> cleanup:cleaned() =:= Cleaned + 1 end),
                              InPlace() > Before
                      end, lists:seq(1, 1000))).

callbacks() ->
    [F || #{function := {cleanup, 'fair_object cleanup', 1}} = F
              <- maps:get(functions, fairnif:info())].

all_of_many_are_cleaned_up() ->
    Before = cleanup:cleaned(),
    cleanup:garbage(fun() -> cleanup:fair(computes, 200) end, 1000, 10000),
    eventually(fun() -> cleanup:cleaned() =:= Before + 1000 end),
    eventually(fun() ->
                       [#{objects => 0, due => 0, under_way => 0}] =:=
                           [maps:with([objects, due, under_way], R)
                            || #{type := {cleanup, fair_object}} = R
                                   <- maps:get(resources, fairnif:info())]
               end).

%% Of 50 objects of 10 ms each, half a second of work. A dead process's heap is freed on one
%% scheduler: what waits for that one waits for all of them.
a_scheduler_stands_still_for_plain_ones_only() ->
    Online = erlang:system_flag(schedulers_online, 1),
    try
        Longest = [{Form, longest(Form)} || _ <- [1, 2, 3], Form <- [plain, fair]],
        Plain = lists:min([Ms || {plain, Ms} <- Longest]),
        Fair = lists:min([Ms || {fair, Ms} <- Longest]),
        ?assert(Plain >= 400),
        ?assert(Plain > 3 * Fair)
    after
        erlang:system_flag(schedulers_online, Online)
    end.

%% The longest that a process of 1 ms sleeps was late, while these are cleaned up; ms.
longest(Form) ->
    Done = cleanup:cleaned() + 50,
    Self = self(),
    Sleeper = spawn_link(fun() -> Self ! {self(), longest(Done, 0)} end),
    timer:sleep(10),
    cleanup:garbage(fun() -> cleanup:Form(computes, 10000) end, 50, 20000),
    receive {Sleeper, Longest} -> Longest end.

longest(Done, Longest) ->
    Begin = erlang:monotonic_time(millisecond),
    timer:sleep(1),
    Now = max(Longest, erlang:monotonic_time(millisecond) - Begin),
    case cleanup:cleaned() of
        Done -> Now;
        _ -> longest(Done, Now)
    end.

%% The new code cleans up what the old one made, and what had begun continues in the old one.
a_reload_takes_over_the_objects() ->
    Before = cleanup:cleaned(),
    Kept = cleanup:fair(works, 100),
    cleanup:garbage(fun() -> cleanup:fair(waits, 300000) end, 3, 5000),
    code:purge(cleanup),
    {module, cleanup} = code:load_file(cleanup),
    code:purge(cleanup),
    ?assert(is_reference(Kept)),
    %% The same file: one library, one count.
    eventually(fun() -> cleanup:cleaned() =:= Before + 3 end),
    ?assert(is_reference(Kept)),
    cleanup:garbage(fun() -> cleanup:fair(works, 100) end, 2, 5000),
    eventually(fun() -> cleanup:cleaned() >= Before + 5 end).

bad_arguments_are_refused() ->
    [?assertError(badarg, cleanup:Form(Kind, Us))
     || Form <- [plain, fair], {Kind, Us} <- [{sleeps, 1}, {works, -1}, {works, 10000001}, {1, 1}]].

%% With a hundred seconds of work left.
nothing_holds_up_the_halt() ->
    Paths = lists:append([["-pa", Path] || Path <- code:get_path(), filelib:is_dir(Path)]),
    Args = Paths ++ ["-noshell", "-eval",
                     "application:ensure_all_started(fairnif),"
                     "cleanup:garbage(fun() -> cleanup:fair(waits, 1000000) end, 100, 5000),"
                     "halt(3)."],
    Port = open_port({spawn_executable, os:find_executable("erl")}, [{args, Args}, exit_status]),
    receive
        {Port, {exit_status, Status}} -> ?assertEqual(3, Status)
    after 20000 ->
            error(timeout)
    end.
