%% The plugin's own parts. That it runs inside of rebar3 is tested in a project of its own:
%% tools/install_test.
-module(rebar3_fairnif_tests).

-include_lib("eunit/include/eunit.hrl").

%% rebar3 refuses an option that it does not know.
rebar3_knows_every_option_that_check_takes_test() ->
    ?assertEqual(lists:sort([{Name, kind(Convert)}
                             || {Name, _, Convert, _, _}
                                    <- maps:get(options, fairnif_check_command:command())]),
                 lists:sort(known())).

what_was_typed_counts_and_not_what_rebar3_made_of_it_test_() ->
    Split = ["m:f(Bin"],
    [?_assertEqual(Expected, rebar3_fairnif:typed(Line, Split))
     || {Expected, Line} <-
            [{["m:f(Bin, 1)", "--size", "1k,2k"],
              ["/usr/bin/rebar3", "fairnif", "check", "m:f(Bin, 1)", "--size", "1k,2k"]},
             {["m:f(Bin, 1)"], ["rebar3", "do", "compile,", "fairnif", "check", "m:f(Bin, 1)"]},
             {[], ["rebar3", "as", "test", "fairnif", "check"]},
             {Split, ["rebar3", "fairnif", "other"]},
             {Split, []}]].

the_node_gets_each_code_path_once_and_the_arguments_as_they_are_test() ->
    ?assertEqual(["-pa", "b", "a", "-extra", "check", "m:f(Bin, 1)"],
                 rebar3_fairnif:arguments(["b", "a", "b", "a"], ["check", "m:f(Bin, 1)"])).

every_error_is_a_text_test_() ->
    [?_assertMatch([_ | _], lists:flatten(rebar3_fairnif:format_error(Reason)))
     || Reason <- [no_lab, no_sh, {exit_code, 2}]].

known() ->
    [{case {Short, Long} of
          {$p, undefined} -> "-pa";
          {undefined, _} -> "--" ++ Long
      end,
      case Type of
          string -> value;
          boolean -> flag
      end} || {_, Short, Long, Type, _} <- rebar3_fairnif:options()].

kind({flag, _}) -> flag;
kind(_) -> value.
