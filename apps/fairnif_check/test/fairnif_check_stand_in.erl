%% Folders of a test's own, and stand-ins for examples, whose manners are known: a module in a
%% directory that the peers' code path has, as that of a built example is.
-module(fairnif_check_stand_in).

-export([in_folder/1, with_module/3, with_spinsleep/2, compiled/1]).

-define(FORMS, [spinsleep, spinsleep_dirty, spinsleep_timeslice, spinsleep_timeslice_dirty,
                spinsleep_fair, spinsleep_fair_yield, spinsleep_fair_dirty_yield,
                spinsleep_threaded, spinwork, spinwork_dirty, spinwork_timeslice,
                spinwork_timeslice_dirty, spinwork_fair, spinwork_fair_yield,
                spinwork_fair_dirty_yield, spinwork_threaded]).

%% Calls Fun with a new folder, which is removed afterwards with all that is in it.
-spec in_folder(fun((file:filename()) -> Result)) -> Result.
in_folder(Fun) ->
    Folder = filename:join(os:getenv("TMPDIR", "/tmp"),
                           lists:concat(["fairnif-test-", os:getpid(), "-",
                                         erlang:unique_integer([positive])])),
    ok = file:make_dir(Folder),
    try Fun(Folder) after ok = file:del_dir_r(Folder) end.

%% Calls Fun while there is this module.
-spec with_module(module(), iolist(), fun(() -> Result)) -> Result.
with_module(Module, Source, Fun) ->
    in_folder(fun(Dir) ->
        Code = compiled(lists:flatten(Source)),
        ok = file:write_file(filename:join(Dir, atom_to_list(Module) ++ ".beam"), Code),
        true = code:add_patha(Dir),
        try Fun() after code:del_path(Dir) end
    end).

%% Calls Fun while there is a module `spinsleep'.  Its forms spin until their deadline, in Erlang,
%% but those that Bad has instead: {form, body}, in which Us is bound, or {form, absent}: there is
%% none of that name.
-spec with_spinsleep([{atom(), string() | absent}], fun(() -> Result)) -> Result.
with_spinsleep(Bad, Fun) ->
    with_module(
      spinsleep,
      ["-module(spinsleep). -compile([export_all]). ",
       [[atom_to_list(F), "(Us) -> ", Body, ". "]
        || F <- ?FORMS, Body <- [proplists:get_value(F, Bad, "spin(Us)")], Body =/= absent],
       "spin(Us) -> T = erlang:monotonic_time(), ",
       "spin(T, T + erlang:convert_time_unit(Us, microsecond, native)). ",
       "spin(T, End) -> case erlang:monotonic_time() of ",
       "Now when Now >= End -> erlang:convert_time_unit(Now - T, native, microsecond); ",
       "_ -> spin(T, End) end. "], Fun).

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
