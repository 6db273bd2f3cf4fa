%% The checker says the right thing of functions in the zoo: of some of each kind, good and bad.
%%
%% Once each, with short times, so more verdicts are left open here than in a real check; `make
%% test-verdicts' is the proof, with all of them. What a busy machine spoils once, it does not spoil
%% every time.
-module(fairnif_check_verdicts_tests).

-include_lib("eunit/include/eunit.hrl").

-define(TIME_MS, 200).
-define(TRIES, 4).
%% At least one for each property that can fail, with twins; the others take minutes more.
-define(ROWS, [short, block_sometimes, block_first, slow_destructor, yields_uncharged, leaks_malloc,
               fair_list, segv]).

the_lab_says_nothing_wrong_of_test_() ->
    {setup, fun fairnif_check_zoo:build/0,
     [{atom_to_list(Name), {timeout, 300, fun() -> nothing_wrong(Row, ?TRIES, []) end}}
      || #{name := Name} = Row <- fairnif_zoo_table:rows(), lists:member(Name, ?ROWS)]}.

the_rows_tested_here_are_in_the_table_and_fail_in_every_way_test() ->
    Rows = [Row || #{name := Name} = Row <- fairnif_zoo_table:rows(), lists:member(Name, ?ROWS)],
    ?assertEqual(length(?ROWS), length(Rows)),
    [?assert(lists:any(fun(#{expected := #{Property := Expected}}) ->
                               Expected =:= fail orelse Expected =:= warn
                       end, Rows), Property)
     || Property <- fairnif_zoo_table:properties()].

nothing_wrong(_, 0, Seen) ->
    error({wrong_each_time, lists:reverse(Seen)});
nothing_wrong(Row, Tries, Seen) ->
    Findings = fairnif_zoo_score:judge(Row, 1, fairnif_check_zoo:check(Row,
                                                                       #{time_ms => ?TIME_MS})),
    case fairnif_zoo_score:wrong(Findings) of
        [] ->
            %% A checker that never has an opinion would not be wrong either.
            ?assert(lists:any(fun(#{kind := Kind}) -> Kind =:= right end, Findings));
        Wrong ->
            nothing_wrong(Row, Tries - 1, [[maps:with([property, observed, sentence], F)
                                            || F <- Wrong] | Seen])
    end.
