%% The lab says the right thing of every function in the zoo.
%%
%% Once each, with short times, so more verdicts are left open here than in a real check; `make zoo'
%% is the proof. What a busy machine spoils once, it does not spoil every time.
-module(fairnif_zoo_tests).

-include_lib("eunit/include/eunit.hrl").

-define(TIME_MS, 200).
-define(TRIES, 4).

the_lab_says_nothing_wrong_of_test_() ->
    {setup, fun fairnif_lab_zoo:build/0,
     [{atom_to_list(Name), {timeout, 300, fun() -> nothing_wrong(Row, ?TRIES, []) end}}
      || #{name := Name} = Row <- fairnif_zoo_table:rows()]}.

nothing_wrong(_, 0, Seen) ->
    error({wrong_each_time, lists:reverse(Seen)});
nothing_wrong(Row, Tries, Seen) ->
    Findings = fairnif_zoo_score:judge(Row, 1, fairnif_lab_zoo:check(Row, #{time_ms => ?TIME_MS})),
    case fairnif_zoo_score:wrong(Findings) of
        [] ->
            %% A lab that never has an opinion would not be wrong either.
            ?assert(lists:any(fun(#{kind := Kind}) -> Kind =:= right end, Findings));
        Wrong ->
            nothing_wrong(Row, Tries - 1, [[maps:with([property, observed, sentence], F)
                                            || F <- Wrong] | Seen])
    end.
