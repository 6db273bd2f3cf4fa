%% With figures made up, and what the tables say of them; and the stamps
%% themselves, which need no example.
-module(fairnif_exp_overhead_tests).
-tests(nodes).

-include_lib("eunit/include/eunit.hrl").

-define(X, fairnif_exp_overhead).
-define(P, fairnif_exp_overhead_peer).

every_call_gives_a_stamp_on_each_side_and_time_goes_forward_test_() ->
    {timeout, 60, fun() ->
        Kinds = [plain, dirty_cpu, dirty_io],
        Trips = ?P:trips(Kinds, 100),
        ?assertEqual(Kinds, [Kind || {Kind, _} <- Trips]),
        [begin
             ?assertEqual({100, 100}, {length(There), length(Back)}),
             ?assert(lists:all(fun(Ns) -> is_integer(Ns) andalso Ns >= 0 end, There ++ Back))
         end || {_, #{there := There, back := Back}} <- Trips]
    end}.

the_trips_stand_beside_what_was_published_test() ->
    Text = format(rows(), [], []),
    fairnif_lab_said:contains(Text,
      ["1.75 us", "7.5 us", "12 %", "~10 us", "2.5 to 3.75 us", "40,000 calls",
       "10.0 us and more", "3.00 us to 4.00 us",
       "takes 3.50 us under default flags, 3.50 us under tuned",
       "less than 35.0 us and 35.0 us"]).

flags_that_the_vm_refused_are_said_test() ->
    Flags = [#{set => default, title => <<"default">>, used => <<>>, refused => []},
             #{set => tuned, title => <<"tuned">>, used => <<"+A 10">>,
               refused => [<<"+K true">>, <<"+sbt db">>]}],
    Text = format(rows(), Flags, []),
    ?assertNotEqual(nomatch, string:find(Text, "left out of tuned: +K true, +sbt db\n")),
    ?assertNotEqual(nomatch, string:find(Text, "tuned: +A 10\n")).

a_cutoff_is_a_size_or_says_that_it_is_none_test() ->
    Points = [#{size => S, ns => 10 * S} || S <- [1000, 1000000]],
    Function = fun(Cutoff) ->
                       #{function => <<"f">>, points => Points,
                         cutoffs => [#{set => default, trip_ns => 3500, size => Cutoff}]}
               end,
    Text = fun(Cutoff) -> format(rows(), [], [Function(Cutoff)]) end,
    ?assertNotEqual(nomatch, string:find(Text(3500.0), "3.50 kB")),
    %% A millisecond of 10 ns a byte.
    ?assertNotEqual(nomatch, string:find(Text(3500.0), "100 kB")),
    ?assertNotEqual(nomatch, string:find(Text(below), "always worth it")),
    ?assertNotEqual(nomatch, string:find(Text(above), "> measured")).

what_failed_is_named_and_nothing_is_concluded_from_it_test() ->
    Failed = [#{set => default, kind => dirty_cpu, error => <<"the reason">>,
                timed_out => false} | tl(tl(rows()))],
    Text = format(Failed, [], []),
    ?assertNotEqual(nomatch, string:find(Text, "Failed: default CPU: the reason")),
    ?assertEqual(nomatch, string:find(Text, "What to see")).

format(Rows, Flags, Functions) ->
    unicode:characters_to_list(?X:format(#{ok => true, rows => Rows, flags => Flags,
                                           functions => Functions, calls => 40000,
                                           nodes => 2})).

rows() ->
    [#{set => Set, kind => Kind, there => distribution(1750), back => distribution(1750),
       both => distribution(3500), node_medians => [3000, 4000], others => 0.0}
     || {Set, Kind} <- [{default, plain}, {default, dirty_cpu}, {default, dirty_io},
                        {tuned, dirty_cpu}, {tuned, dirty_io}]].

distribution(Median) ->
    #{median => Median, p99 => 2 * Median, humps => [Median], over => 0.02,
      histogram => fairnif_lab_histogram:new([Median, Median, 12000], 250, 10000)}.
