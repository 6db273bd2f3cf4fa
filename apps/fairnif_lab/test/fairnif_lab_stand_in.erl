%% Stand-ins for examples, whose manners are known: a module written to a
%% directory that the peers' code path has, as that of a built example is.
-module(fairnif_lab_stand_in).

-export([with_spinsleep/2, compiled/1]).

-define(FORMS, [spinsleep, spinsleep_dirty, spinsleep_timeslice,
                spinsleep_timeslice_dirty, spinsleep_fair, spinsleep_fair_yield,
                spinsleep_fair_dirty_yield, spinwork, spinwork_dirty,
                spinwork_timeslice, spinwork_timeslice_dirty, spinwork_fair,
                spinwork_fair_yield, spinwork_fair_dirty_yield,
                spinsleep_threaded, spinwork_threaded]).

%% Calls Fun while there is a module `spinsleep'.  Its forms spin until their
%% deadline, in Erlang, but those that Bad has instead: {form, body}, in which Us
%% is bound, or {form, absent}: there is none of that name.
-spec with_spinsleep([{atom(), string() | absent}], fun(() -> Result)) -> Result.
with_spinsleep(Bad, Fun) ->
    Bodies = [proplists:get_value(F, Bad, "spin(Us)") || F <- ?FORMS],
    Source = ["-module(spinsleep). -compile([export_all]). ",
              [[atom_to_list(F), "(Us) -> ", Body, ". "]
               || {F, Body} <- lists:zip(?FORMS, Bodies), Body =/= absent],
              "spin(Us) -> T = erlang:monotonic_time(), ",
              "spin(T, T + erlang:convert_time_unit(Us, microsecond, native)). ",
              "spin(T, End) -> case erlang:monotonic_time() of ",
              "Now when Now >= End -> ",
              "erlang:convert_time_unit(Now - T, native, microsecond); ",
              "_ -> spin(T, End) end. "],
    Dir = filename:join([filename:basedir(user_cache, "fairnif_lab_test"),
                         "stand_in", os:getpid()]),
    File = filename:join(Dir, "spinsleep.beam"),
    ok = filelib:ensure_dir(File),
    ok = file:write_file(File, compiled(lists:flatten(Source))),
    true = code:add_patha(Dir),
    try
        Fun()
    after
        code:del_path(Dir),
        file:delete(File),
        file:del_dir(Dir)
    end.

%% @doc The code of a module from its source.
compiled(Source) ->
    {ok, Tokens, _} = erl_scan:string(Source),
    {ok, _, Beam} = compile:forms(forms(Tokens, []), [nowarn_export_all]),
    Beam.

forms([], []) ->
    [];
forms([{dot, _} = Dot | Tokens], Form) ->
    {ok, Parsed} = erl_parse:parse_form(lists:reverse(Form, [Dot])),
    [Parsed | forms(Tokens, [])];
forms([Token | Tokens], Form) ->
    forms(Tokens, [Token | Form]).
