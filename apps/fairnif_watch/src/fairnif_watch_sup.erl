%% What runs and in which order it is restarted.
%%
%% Must never take the node down: an application that is started permanently ends the node when its
%% top supervisor does. So the parts stand under a supervisor of their own, which is temporary:
%% parts that cannot be kept alive are given up, and the node runs unwatched.
-module(fairnif_watch_sup).

-behaviour(supervisor).

-export([start_link/1, needed/0, not_loaded/0, start_watchdog/1, start_sysmon/1, init/1]).

%% @doc Starts the watch with settings that {@link fairnif_watch_config:check/1} has passed.
%% Error `{already_started, pid()}' where the node is watched already.
-spec start_link(fairnif_watch_config:config()) -> {ok, pid()} | {error, term()}.
start_link(Config) ->
    ok = load(),
    case supervisor:start_link({local, ?MODULE}, ?MODULE, top) of
        {ok, Top} ->
            Parts = #{id => parts, restart => temporary, type => supervisor, shutdown => infinity,
                      start => {supervisor, start_link, [?MODULE, {parts, Config}]}},
            case supervisor:start_child(Top, Parts) of
                {ok, _} ->
                    {ok, Top};
                {error, Reason} ->
                    true = unlink(Top),
                    exit(Top, shutdown),
                    {error, Reason}
            end;
        {error, _} = Error ->
            Error
    end.

%% Loading a module reads a file, on a dirty I/O scheduler, and waits until every scheduler has
%% yielded once: the watch would wait for what it has to report. OTP's modules too, where they are
%% loaded as they are used.
load() ->
    lists:foreach(fun(Module) -> _ = code:ensure_loaded(Module) end, ours() ++ not_loaded()).

%% Started without the application they stand in its file. Where all was brought there is none, and
%% all is loaded.
ours() ->
    case {whereis(fairnif_watch_session), application:get_key(fairnif_watch, modules)} of
        {Session, _} when is_pid(Session) -> [];
        {undefined, {ok, Modules}} -> Modules;
        {undefined, undefined} -> listed(file:path_consult(code:get_path(), "fairnif_watch.app"))
    end.

listed({ok, [{application, _, Keys}], _}) -> proplists:get_value(modules, Keys);
listed({error, _}) -> [].

%% @private What of it is in files only.
-spec not_loaded() -> [module()].
not_loaded() ->
    [Module || Module <- needed(), not erlang:module_loaded(Module)].

%% @private What of OTP a finding needs on its way: also what io_lib needs to write an atom.
-spec needed() -> [module()].
needed() ->
    [binary, calendar, epp, erl_ddll, erl_scan, erts_debug, filename, io, io_lib, io_lib_format,
     io_lib_pretty, logger_formatter, proplists, queue, re, string, timer, unicode, unicode_util].

%% @private
-spec init(top | {parts, fairnif_watch_config:config()}) ->
          {ok, {supervisor:sup_flags(), [supervisor:child_spec()]}}.
init(top) ->
    {ok, {#{strategy => one_for_one}, []}};
init({parts, Config}) ->
    {ok, {#{strategy => rest_for_one, intensity => 5, period => 60},
          [worker(fairnif_watch_out, start_link, Config),
           worker(fairnif_watch_collector, start_link, Config),
           (worker(?MODULE, start_watchdog, Config))#{id => watchdog, shutdown => 15000},
           (worker(?MODULE, start_sysmon, Config))#{id => sysmon}]}}.

worker(Module, Function, Config) ->
    #{id => Module, start => {Module, Function, [Config]}, shutdown => 5000}.

%% @private The watchdog reports to the collector, which is there by now. Where it cannot start, the
%% node must start all the same: the rest runs without, and says so.
-spec start_watchdog(fairnif_watch_config:config()) -> {ok, pid()} | ignore.
start_watchdog(Config) ->
    Options = #{owner => whereis(fairnif_watch_collector), config => Config},
    case fairnif_watch_watchdog:start_link(Options) of
        {ok, Pid} ->
            {ok, Pid};
        {error, Reason} ->
            logger:warning("fairnif_watch: no watchdog, so no scheduler is watched: ~0tp",
                           [Reason]),
            ignore
    end.

%% @private
-spec start_sysmon(fairnif_watch_config:config()) -> {ok, pid()} | ignore.
start_sysmon(#{system_monitor := true}) ->
    fairnif_watch_sysmon:start_link(whereis(fairnif_watch_collector));
start_sysmon(_) ->
    ignore.
