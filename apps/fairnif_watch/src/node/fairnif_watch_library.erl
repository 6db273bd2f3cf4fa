%% Where the native library of a module is, by its setting. Loads nothing: `load_nif' binds to the
%% module that calls it.
-module(fairnif_watch_library).

-export([path/2]).

%% @doc The path without extension, for `erlang:load_nif/2'. By default the library has the name
%% given, in the `priv' of this application; `false' is none.
-spec path(default | false | unicode:chardata(), Name :: atom()) ->
          {ok, file:filename()} | {error, off | no_library}.
path(false, _) ->
    {error, off};
path(default, Name) ->
    case code:which(?MODULE) of
        Beam when is_list(Beam), Beam =/= [] ->
            {ok, filename:join([filename:dirname(filename:dirname(Beam)), "priv", Name])};
        _ ->
            {error, no_library}
    end;
path(Path, _) ->
    {ok, unicode:characters_to_list(Path)}.
