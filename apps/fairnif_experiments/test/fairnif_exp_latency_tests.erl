%% The forms are tested in the example `echo'; here it is that they are measured, and that a form
%% which fails does not end the others.
-module(fairnif_exp_latency_tests).

-include_lib("eunit/include/eunit.hrl").

%% In the peer.
-export([some/0, bad/0]).

-define(X, fairnif_exp_latency).
-define(SIZES, [0, 1024, 65536]).

every_round_gives_each_form_and_size_its_samples_and_a_program_is_slower_than_a_nif_test_() ->
    with_example(fun() ->
        #{rows := Rows, rounds := 3, clock_ns := Clock} = measure(some),
        ?assertEqual([{F, S} || F <- [nif, driver_outputv, port, c_node], S <- ?SIZES],
                     [{F, S} || #{form := F, bytes := S} <- Rows]),
        ?assert(Clock > 0),
        [begin
             #{samples := Samples, echoes_per_sample := Echoes} = Row,
             ?assertEqual(21, length(Samples)),
             ?assert(lists:all(fun(Ns) -> Ns >= 0 end, Samples)),
             ?assert(Echoes >= 1)
         end || Row <- Rows],
        %% Whatever else the machine does, it does to all.
        [Nif, _, Port, Node] = [fairnif_check_stats:median(S)
                               || #{bytes := 1024, samples := S} <- Rows],
        ?assert(Port > 5 * Nif andalso Node > 5 * Nif)
    end).

a_form_that_fails_is_named_and_the_others_continue_test_() ->
    with_example(fun() ->
        #{rows := Rows, rounds := 3} = measure(bad),
        Of = fun(Form) -> hd([R || #{form := F} = R <- Rows, F =:= Form]) end,
        ?assertMatch(#{error := <<"error:no_such_thing">>}, Of(does_not_open)),
        ?assertMatch(#{error := <<"error:{wrong_echo,1,for,0}">>}, Of(wrong)),
        ?assertMatch(#{error := <<"error:", _/binary>>}, Of(other_bytes)),
        ?assertMatch(#{error := <<"exit:", _/binary>>}, Of(ends_later)),
        ?assertMatch(#{left_out := <<"not here">>}, Of(absent)),
        [?assertEqual(21, length(maps:get(samples, R))) || #{form := good} = R <- Rows]
    end).

the_result_is_as_the_manual_describes_it_test_() ->
    with_example(fun() ->
        {ok, #{ok := true, rows := Rows}} = fairnif_experiment:run(?X, #{scale => quick}),
        {ok, Manual} = file:read_file(filename:join([fairnif_check_schema:root(), "docs",
                                                     "reference",
                                                     "experiments.md"])),
        [begin
             [?assertNotEqual({Key, nomatch},
                              {Key, binary:match(Manual, <<"`", (atom_to_binary(Key))/binary,
                                                           "`">>)})
              || Key <- [maps:get(form, Row) | maps:keys(Row)]],
             ?assert(is_figure(Row))
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

%% ---- forms for the peer ----

some() ->
    [F || #{form := Name} = F <- echo:forms(),
          lists:member(Name, [nif, driver_outputv, port, c_node])].

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

%% ---- helpers ----

measure(Function) ->
    Plan = #{rounds => 3, samples => 7, most_ms => 60000, forms => {?MODULE, Function}},
    #{value := Measured} = fairnif_exp:in_peer(echo:flags(), {?X, {Plan, ?SIZES}}, 60000),
    Measured.

with_example(Test) ->
    fairnif_exp_examples:with([{timeout, 120, Test}]).
