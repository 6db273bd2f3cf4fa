%% Loads the NIF library of a module:
%%
%%     -include_lib("fairnif/include/fairnif.hrl").
%%     -on_load(init/0).
%%     init() -> ?FAIRNIF_LOAD.
%%
%% The library has the module's name, and is in the priv directory of the module's application.
%% ?FAIRNIF_LOAD(Name) loads the library Name there, or at that absolute path;
%% ?FAIRNIF_LOAD(Name, Info) passes Info to the library's own load and upgrade functions.
%%
%% It is a macro since load_nif binds to the module that contains the call. It returns once it is
%% safe to call the library: see fairnif:loaded/1.
-define(FAIRNIF_LOAD, ?FAIRNIF_LOAD(?MODULE)).
-define(FAIRNIF_LOAD(Name), ?FAIRNIF_LOAD(Name, undefined)).
-define(FAIRNIF_LOAD(Name, Info),
        fairnif:loaded(erlang:load_nif(fairnif:path(?MODULE, Name), fairnif:load_info(Info)))).
