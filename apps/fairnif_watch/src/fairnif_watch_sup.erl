%% What runs and in which order it is restarted.
%%
%% Must never take the node down: an application that is started permanently ends the node when its
%% top supervisor does. So the parts stand under a supervisor of their own, which is temporary:
%% parts that cannot be kept alive are given up, and the node goes on unwatched.
-module(fairnif_watch_sup).

-behaviour(supervisor).

-export([start_link/1, start_parts/1, start_watchdog/1, start_sysmon/1, start_web/1, init/1]).

%% Where the supervisors keep it: of children they log the arguments, and a fun among these, which
%% would hide it, would have them killed with the second upgrade of this module.
-define(TOKEN, fairnif_watch_token).

%% @doc Starts the watch with settings that {@link fairnif_watch_config:check/1} has passed.
%% Error `{already_started, pid()}' where the node is watched already.
-spec start_link(fairnif_watch_config:config()) -> {ok, pid()} | {error, term()}.
start_link(Config) ->
    ok = load(),
    {Token, Bare} = maps:take(http_token, Config),
    case supervisor:start_link({local, ?MODULE}, ?MODULE, {top, Token}) of
        {ok, Top} ->
            Parts = #{id => parts, restart => temporary, type => supervisor, shutdown => infinity,
                      start => {?MODULE, start_parts, [Bare]}},
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
%% given way once: the watch would wait for what it has to report. OTP's modules too, where they are
%% loaded as they are used.
load() ->
    lists:foreach(fun(Module) -> _ = code:ensure_loaded(Module) end, ours() ++ otp()).

%% Started without the application they stand in its file. Where all was brought there is none, and
%% all is loaded.
ours() ->
    case {application:get_key(fairnif_watch, modules), code:is_loaded(?MODULE)} of
        {{ok, Modules}, _} -> Modules;
        {undefined, {file, File}} when is_list(File) -> listed(filename:extension(File));
        {undefined, _} -> []
    end.

listed(".beam") ->
    case file:path_consult(code:get_path(), "fairnif_watch.app") of
        {ok, [{application, _, Keys}], _} -> proplists:get_value(modules, Keys);
        {error, _} -> []
    end;
listed(_) ->
    [].

%% What a finding needs on its way. json is there from OTP 27 on.
otp() ->
    [binary, calendar, filename, io, io_lib, io_lib_format, io_lib_pretty, json, logger_formatter,
     proplists, queue, re, string, unicode, unicode_util].

%% @private
-spec init({top, Token} | {parts, fairnif_watch_config:config(), Token}) ->
          {ok, {supervisor:sup_flags(), [supervisor:child_spec()]}} when Token :: none | binary().
init({top, Token}) ->
    _ = put(?TOKEN, Token),
    {ok, {#{strategy => one_for_one}, []}};
init({parts, #{http := Http} = Config, Token}) ->
    _ = put(?TOKEN, Token),
    {ok, {#{strategy => rest_for_one, intensity => 5, period => 60},
          [worker(fairnif_watch_out, start_link, Config),
           worker(fairnif_watch_collector, start_link, Config),
           (worker(?MODULE, start_watchdog, Config))#{id => watchdog, shutdown => 15000}]
              ++ [(worker(?MODULE, start_web, Config))#{id => web} || Http =/= off]
              ++ [(worker(?MODULE, start_sysmon, Config))#{id => sysmon}]}}.

worker(Module, Function, Config) ->
    #{id => Module, start => {Module, Function, [Config]}, shutdown => 5000}.

%% @private By the top supervisor.
-spec start_parts(fairnif_watch_config:config()) -> supervisor:startlink_ret().
start_parts(Config) ->
    supervisor:start_link(?MODULE, {parts, Config, get(?TOKEN)}).

%% @private The watchdog reports to the collector, which is there by now. Where it cannot start, the
%% node must start all the same: the rest goes on without, and says so.
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

%% @private By the supervisor of the parts.
-spec start_web(fairnif_watch_config:config()) -> {ok, pid()} | ignore.
start_web(#{http := {Ip, Port}}) ->
    fairnif_watch_web:child(#{ip => Ip, port => Port, token => get(?TOKEN)}).
