%% The forms are tested in the example `echo'; here it is that they are measured, that
%% a form which fails does not end the others, that nothing is left behind, and what
%% the table says of figures made up.
-module(fairnif_exp_latency_tests).
-tests(nodes).

-include_lib("eunit/include/eunit.hrl").

%% In the peer.
-export([some/0, bad/0, telling/0]).

-define(X, fairnif_exp_latency).
-define(P, fairnif_exp_latency_peer).
-define(SIZES, [0, 1024, 65536]).
-define(PLAN, #{rounds => 3, samples => 7, most_ms => 60000}).
-define(FILE_VARIABLE, "FAIRNIF_LATENCY_TEST").

every_round_gives_each_form_and_size_its_samples_test_() ->
    with_example(fun() ->
        #{rows := Rows, rounds := 3, clock_ns := Clock} = measure(some, 60000),
        ?assertEqual([{F, S} || F <- [nif, driver_outputv, port, tcp], S <- ?SIZES],
                     [{F, S} || #{form := F, bytes := S} <- Rows]),
        ?assert(Clock > 0),
        [begin
             #{samples := Samples, echoes_per_sample := Echoes} = Row,
             ?assertEqual(21, length(Samples)),
             ?assert(lists:all(fun(Ns) -> Ns >= 0 end, Samples)),
             ?assert(Echoes >= 1)
         end || Row <- Rows]
    end).

%% Whatever else the machine does, it does to both.
a_program_beside_the_vm_is_slower_than_a_nif_in_it_test_() ->
    with_example(fun() ->
        #{rows := Rows} = measure(some, 60000),
        Median = fun(Form) ->
                         [Samples] = [S || #{form := F, bytes := 1024, samples := S} <- Rows,
                                           F =:= Form],
                         fairnif_lab_stats:median(Samples)
                 end,
        ?assert(Median(port) > 5 * Median(nif)),
        ?assert(Median(tcp) > 5 * Median(nif))
    end).

a_form_that_fails_is_named_and_the_others_go_on_test_() ->
    with_example(fun() ->
        #{rows := Rows, rounds := 3} = measure(bad, 60000),
        Of = fun(Form) -> hd([R || #{form := F} = R <- Rows, F =:= Form]) end,
        ?assertMatch(#{error := <<"error:no_such_thing">>}, Of(does_not_open)),
        ?assertMatch(#{error := <<"error:{wrong_echo,1,for,0}">>}, Of(wrong)),
        ?assertMatch(#{error := <<"error:", _/binary>>}, Of(other_bytes)),
        ?assertMatch(#{error := <<"exit:", _/binary>>}, Of(ends_later)),
        ?assertMatch(#{left_out := <<"not here">>}, Of(absent)),
        [?assertEqual(21, length(maps:get(samples, R))) || #{form := good} = R <- Rows]
    end).

no_program_is_left_after_a_measurement_test_() ->
    with_example(fun() ->
        {#{rows := [_ | _]}, OsPids} = told(60000),
        ?assert(length(OsPids) >= 5),
        [gone(Pid) || Pid <- OsPids]
    end).

no_program_is_left_after_one_that_took_too_long_test_() ->
    with_example(fun() ->
        {#{error := _, timed_out := true}, OsPids} = told(3000),
        [gone(Pid) || Pid <- OsPids]
    end).

the_result_is_as_the_manual_describes_it_test_() ->
    with_example(fun() ->
        {ok, #{ok := true, rows := Rows}} = ?X:run(#{scale => quick}),
        {ok, Manual} = file:read_file(filename:join([fairnif_lab_schema:root(), "docs", "manual",
                                                     "lab-latency.md"])),
        [begin
             [?assertNotEqual({Key, nomatch},
                              {Key, binary:match(Manual, <<"`", (atom_to_binary(Key))/binary,
                                                           "`">>)})
              || Key <- [maps:get(form, Row) | maps:keys(Row)]],
             ?assert(is_figure(Row) orelse is_map_key(left_out, Row))
         end || Row <- Rows],
        ?assertEqual(2 * length(echo:forms()), length(Rows))
    end).

is_figure(#{median_us := Median, p99_us := P99, count := Count, quantiles := Quantiles,
            samples_us := Samples, echoes_per_sample := Echoes}) ->
    Of = fun(Percent) -> hd([Us || #{p := P, us := Us} <- Quantiles, P =:= Percent]) end,
    Count > 0 andalso Count =:= length(Samples) andalso Echoes > 0
        andalso Of(0) =:= lists:min(Samples) andalso Of(100) =:= lists:max(Samples)
        andalso Of(0) =< Median andalso Median =< P99 andalso Of(99) =:= P99;
is_figure(_) ->
    false.

the_table_has_isolation_and_published_orders_test() ->
    Text = format(rows()),
    fairnif_lab_said:contains(Text,
      ["shared", "process", "network", "0.1 us", "100 us", "1 KiB", "64 KiB",
       "20.0 ns", "40.0 ns *", "In turns, 100 rounds",
       "a NIF 20.0 ns (published 0.1 us)", "a port 12.0 us (published 100 us)",
       "costs 4.0 times what one of fairnif's"]).

what_was_left_out_or_failed_is_named_with_its_reason_test() ->
    Row = maps:with([isolation, published_us], hd(rows())),
    Text = format([Row#{form => Form, title => Title, bytes => Bytes, Why => Reason}
                   || {Form, Title, Why, Reason} <- [{a, <<"A">>, left_out, <<"no javac">>},
                                                     {b, <<"B">>, error, <<"error:timeout">>}],
                      Bytes <- [1024, 65536]]),
    ?assertNotEqual(nomatch, string:find(Text, "Left out: A: no javac\n")),
    ?assertNotEqual(nomatch, string:find(Text, "Failed: B: error:timeout\n")),
    ?assertEqual(nomatch, string:find(Text, "What to see")).

a_machine_that_others_kept_busy_is_said_test() ->
    ?assertEqual(nomatch, string:find(format(rows()), "doubt")),
    ?assertNotEqual(nomatch, string:find(format(rows(), 1.5), "busy: doubt all")).

%% ---- forms for the peer ----

some() ->
    [F || #{form := Name} = F <- echo:forms(),
          lists:member(Name, [nif, driver_outputv, port, tcp])].

bad() ->
    [form(does_not_open, fun() -> error(no_such_thing) end, fun(_, Bin) -> Bin end),
     form(wrong, opens(), fun(_, Bin) -> <<Bin/binary, 0>> end),
     form(other_bytes, opens(), fun(_, Bin) -> binary:copy(<<0>>, byte_size(Bin)) end),
     form(ends_later, opens(),
          fun(none, Bin) -> get(absent_was_opened) =:= true andalso exit(over), Bin end),
     form(absent, fun() -> put(absent_was_opened, true), {left_out, "not here"} end,
          fun(_, Bin) -> Bin end),
     form(good, opens(), fun(_, Bin) -> Bin end)].

opens() ->
    fun() -> {ok, none, []} end.

form(Name, Open, Echo) ->
    #{form => Name, title => atom_to_list(Name), isolation => shared, published_us => undefined,
      open => Open, echo => Echo, close => fun(_) -> ok end}.

%% All forms, which write down the processes that they start.
telling() ->
    [F#{open => fun() ->
                        case Open() of
                            {ok, _, OsPids} = Opened ->
                                Text = [[integer_to_list(P), $\n] || P <- OsPids],
                                ok = file:write_file(os:getenv(?FILE_VARIABLE), Text, [append]),
                                Opened;
                            LeftOut ->
                                LeftOut
                        end
                end} || #{open := Open} = F <- echo:forms()].

%% ---- helpers ----

measure(Function, LimitMs) ->
    #{value := Measured} = row(Function, ?PLAN, LimitMs),
    Measured.

row(Function, Plan, LimitMs) ->
    fairnif_exp:in_peer(?P:flags(),
                        {?P, measure, [Plan#{forms => {?MODULE, Function}}, ?SIZES]},
                        LimitMs).

told(LimitMs) ->
    File = filename:join(os:getenv("TMPDIR", "/tmp"), "fairnif-latency-" ++ os:getpid()),
    ok = file:write_file(File, ""),
    true = os:putenv(?FILE_VARIABLE, File),
    try
        %% More rounds than can be done in 3 s.
        Rounds = case LimitMs of 3000 -> 1000000; _ -> 3 end,
        Row = row(telling, maps:put(rounds, Rounds, ?PLAN), LimitMs),
        {ok, Text} = file:read_file(File),
        {maps:get(value, Row, Row),
         [binary_to_integer(P) || P <- binary:split(Text, <<"\n">>, [global, trim])]}
    after
        os:unsetenv(?FILE_VARIABLE),
        file:delete(File)
    end.

gone(OsPid) ->
    gone(OsPid, erlang:monotonic_time(millisecond) + 10000).

%% One that has ended may wait for its parent to hear of it.
gone(OsPid, Until) ->
    case file:read_file("/proc/" ++ integer_to_list(OsPid) ++ "/stat") of
        {error, _} ->
            ok;
        {ok, Stat} ->
            case re:run(Stat, "\\) Z ") of
                {match, _} ->
                    ok;
                nomatch ->
                    erlang:monotonic_time(millisecond) < Until
                        orelse error({still_lives, OsPid}),
                    timer:sleep(20),
                    gone(OsPid, Until)
            end
    end.

format(Rows) ->
    format(Rows, 0.0).

format(Rows, Others) ->
    unicode:characters_to_list(?X:format(#{ok => true, rows => Rows, sizes => [1024, 65536],
                                           rounds => 100, clock_ns => 40, others => Others})).

rows() ->
    [#{form => Form, title => atom_to_binary(Form), isolation => Isolation, published_us => P,
       bytes => Bytes, median_us => Us, p99_us => 2 * Us, count => 100,
       echoes_per_sample => Echoes}
     || {Form, Isolation, P, Us, Echoes} <- [{nif, shared, 0.1, 0.02, 50},
                                             {fair_threaded, shared, undefined, 5.0, 1},
                                             {thread, shared, undefined, 20.0, 1},
                                             {port, process, 100, 12.0, 1},
                                             {tcp, network, undefined, 15.0, 1}],
        Bytes <- [1024, 65536]].

%% Its build holds a copy of fairnif: this repository's stays first.
with_example(Test) ->
    Dir = filename:join([code:lib_dir(fairnif_lab), "..", "..", "..", "..", "examples", "echo",
                         "_build", "default", "lib", "echo", "ebin"]),
    {setup, fun() -> true = code:add_pathz(Dir) end, fun(_) -> code:del_path(Dir) end,
     {timeout, 120, Test}}.
