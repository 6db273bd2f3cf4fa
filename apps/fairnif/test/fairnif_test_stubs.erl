%% A parse transform: makes the functions of `-nifs', errors until their library is loaded. Those of
%% `-in_modes({Bodies, Modes, Suffix})' are Body_Mode with the suffix, for each body in each mode.
-module(fairnif_test_stubs).

-export([parse_transform/2]).

parse_transform(Forms, _Options) ->
    Expanded = [expand(Form) || Form <- Forms],
    Stubs = [stub(At, Nif) || {attribute, At, nifs, Nifs} <- Expanded, Nif <- Nifs],
    lists:droplast(Expanded) ++ Stubs ++ [lists:last(Expanded)].

expand({attribute, At, in_modes, {Bodies, Modes, Suffix}}) ->
    {attribute, At, nifs, [{list_to_atom(lists:concat([Body, "_", Mode, Suffix])), Arity}
                           || {Body, Arity} <- Bodies, Mode <- Modes]};
expand(Form) ->
    Form.

stub(At, {Name, Arity}) ->
    Error = erl_parse:abstract(not_loaded, At),
    Call = {call, At, {remote, At, {atom, At, erlang}, {atom, At, nif_error}}, [Error]},
    {function, At, Name, Arity,
     [{clause, At, lists:duplicate(Arity, {var, At, '_'}), [], [Call]}]}.
