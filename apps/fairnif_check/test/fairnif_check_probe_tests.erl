-module(fairnif_check_probe_tests).

-include_lib("eunit/include/eunit.hrl").

-define(P, fairnif_check_probe).

%% A call may take 32 s. {What it is, asked, known, the ms of a call by its size, found}.
a_size_is_found_that_a_function_can_be_judged_by_test_() ->
    [{What, ?_assertEqual(Found, ?P:smaller(Asked, Known, 32.0e9, tried(Ms)))}
     || {What, Asked, Known, Ms, Found} <-
            [{"it takes a second a KiB", 65536, [], fun(N) -> N / 1024 * 1000 end,
              {slow, {2048, 2.0e9}}},
             {"a known size saves others", 65536, [{1024, 1.0e9}, {512, 0.5e9}],
              fun(N) when N > 1024 -> N / 1024 * 1000 end, {slow, {2048, 2.0e9}}},
             {"nothing between is quick", 2048, [{1024, 5.0e9}], fun(_) -> 40000 end,
              {slow, {1024, 5.0e9}}},
             {"a known size that is larger does not help", 1024, [{2048, 1.0e9}],
              fun(_) -> 40000 end, none},
             {"it fails with less", 1024, [{512, fails}], fun(_) -> 1 end, none},
             {"as the cube of its size", 65536, [], fun(N) -> N * N * N / 1.0e9 end,
              {slow, {8192, 549.755813888e6}}},
             {"the least that is tried is slow", 65536, [], fun(N) -> N * 100 end,
              {slow, {64, 6.4e9}}},
             {"it hangs from a size on", 65536, [],
              fun(N) when N < 5000 -> 1; (_) -> 40000 end, {hangs, {4096, 1.0e6}}},
             {"it hangs with what was asked for", 65536, [], fun(_) -> 1 end,
              {hangs, {32768, 1.0e6}}},
             {"it never returns", 65536, [], fun(_) -> 40000 end, none},
             {"it raises with less", 65536, [], fun(_) -> raises end, none},
             {"there is no less", 1, [], fun(_) -> 1 end, none}]].

tried(Ms) ->
    fun(Size) ->
            case Ms(Size) of
                raises -> {error, <<"raises">>};
                Took when Took > 32000 -> {late, <<"late">>};
                Took -> {ok, Took * 1.0e6}
            end
    end.
