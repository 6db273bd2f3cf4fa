%% Lists of five million elements: examples/lists beside its plain NIFs and beside Erlang.
%%
%% Room for a list is made before it is written, by the fair forms: what they spend on collections
%% is shown apart.
-module(fairnif_exp_bench_lists).
-behaviour(fairnif_exp_bench).

-export([runs/0]).

-import(fairnif_exp_series, [apart/4, interleave/2, merged/1, name/2]).

-define(COUNT, 5000000).
-define(ROUNDS, 5).

%% @doc The run.
-spec runs() -> [fairnif_exp_bench:run()].
runs() ->
    [#{id => lists, flags => one, needs => [{big_lists, "lists"}],
       about => "lists of 5,000,000 elements", samples => fun samples/0,
       all => #{unit => times, clock => cpu,
                how => "5,000,000 elements, each call in a process of its own with the least heap, "
                       "whose collections are part of it; CPU time of the whole node with one "
                       "scheduler"},
       rows =>
           [#{id => name("lists-~s-~s", [Call, Form]),
              what => name("~s, 5,000,000 elements", [What]), peer => Peer, bound => Bound,
              value => {ratio, name("~s fair", [Call]), name("~s ~s", [Call, Form])}}
            || {Call, What, Aim, {M, F}} <- calls(),
               {Form, Peer, Bound} <- [{plain, "the plain NIF", Aim},
                                       {erlang, erlang_name(M, F), none}],
               {Call, Form} =/= {sort, plain}]
           ++ [#{id => name("lists-~s-~s-gc", [Call, Form]), peer => What, unit => ns,
                 clock => wall, what => name("collections in it, ~s", [Text]),
                 how => "wall time between the begin and the end of each, from trace events",
                 value => {value, name("~s ~s gc", [Call, Form])}}
               || {Call, What, _, _} <- calls(),
                  {Form, Text} <- [{fair, "fair"}, {plain, "plain NIF"}, {erlang, "Erlang"}],
                  {Call, Form} =/= {sort, plain}]}].

%% The function of the example, what the table calls it, the aim, the same in Erlang.
calls() ->
    [{sum, "sum/1", {at_most, 1.1}, {lists, sum}},
     {range, "range/2", {at_most, 1.5}, {lists, seq}},
     {sort, "sort/1 of integers", none, {lists, sort}}].

erlang_name(lists, seq) -> "lists:seq/2";
erlang_name(M, F) -> name("~s:~s/1", [M, F]).

samples() ->
    ok = code:ensure_modules_loaded([big_lists, lists]),
    {Random, _} = lists:mapfoldl(fun(_, S) -> rand:uniform_s(1 bsl 40, S) end,
                                 rand:seed_s(exsss, 1), lists:seq(1, ?COUNT)),
    Ints = literal(ints, Random),
    Args = #{sum => [Ints], range => [1, ?COUNT], sort => [Ints]},
    merged([interleave(?ROUNDS,
                       [apart(name("~s ~s", [Call, Form]), 1,
                              fun() -> apply(M, F, maps:get(Call, Args)) end, [gc])
                        || {Form, {M, F}} <- [{fair, {big_lists, Call}}, {erlang, Erlang}
                                              | [{plain, {big_lists, name_of_plain(Call)}}
                                                 || Call =/= sort]]])
            || {Call, _, _, Erlang} <- calls()]).

name_of_plain(Call) ->
    list_to_existing_atom("unfair_" ++ atom_to_list(Call)).

literal(Key, Term) ->
    persistent_term:put({?MODULE, Key}, Term),
    persistent_term:get({?MODULE, Key}).
