%% @doc The operator's side of the watch. As an application it serves the live page of its own node,
%% where its setting `http' says so: docs/reference/watch-page.md.
-module(fairnif_watch_console).

-behaviour(application).
-behaviour(supervisor).

-export([report/0]).
-export([start/2, stop/1, init/1, start_page/0]).

%% @doc Prints the view of this node as text, for use in a shell. Raises what
%% {@link fairnif_watch:view/0} raises.
-spec report() -> ok.
report() ->
    io:put_chars(fairnif_watch_screen:report(fairnif_watch:view())).

%% @private
-spec start(application:start_type(), term()) -> {ok, pid()} | {error, term()}.
start(_Type, _Args) ->
    %% What the page needs, json from OTP 27 on: later it may have to wait for a file.
    {ok, Modules} = application:get_key(?MODULE, modules),
    lists:foreach(fun(Module) -> _ = code:ensure_loaded(Module) end, [json | Modules]),
    try supervisor:start_link({local, ?MODULE}, ?MODULE, {top, options() =/= off})
    catch throw:{error, _} = Error -> Error
    end.

%% @private
-spec stop(term()) -> ok.
stop(_State) ->
    ok.

%% @private Two, as a page that cannot be kept alive is given up, and not the node: an application
%% that is started permanently ends it when its top supervisor ends. The token is in neither's
%% arguments, since supervisors log those of their children.
-spec init({top, HasPage :: boolean()} | page) ->
          {ok, {supervisor:sup_flags(), [supervisor:child_spec()]}}.
init({top, HasPage}) ->
    {ok, {#{}, [#{id => page, type => supervisor, restart => temporary,
                  start => {supervisor, start_link, [?MODULE, page]}} || HasPage]}};
init(page) ->
    {ok, {#{intensity => 5, period => 60}, [#{id => web, start => {?MODULE, start_page, []}}]}}.

%% @private A page that cannot be served is logged and left out.
-spec start_page() -> {ok, pid()} | ignore.
start_page() ->
    Page = fairnif_watch_web:page(),
    case fairnif_watch_web:start_link(options()) of
        {ok, Pid} ->
            Url = fairnif_watch_web:url(Pid),
            case filelib:is_regular(Page) of
                true -> logger:notice("fairnif_watch: the live page is at ~ts", [Url]);
                false -> logger:warning("fairnif_watch: the live page is not built (~ts is not "
                                        "there): ~ts has only view, events and metrics",
                                        [Page, Url])
            end,
            {ok, Pid};
        {error, {http, Text}} ->
            logger:error("fairnif_watch: no live page: ~ts", [Text]),
            ignore
    end.

%% The application's environment. OTP puts a key of its own there.
options() ->
    Given = maps:from_list(proplists:delete(included_applications,
                                            application:get_all_env(?MODULE))),
    case {maps:keys(Given) -- [http, http_token], Given} of
        {[], #{http := {Ip, Port}}} ->
            Options = #{ip => Ip, port => Port, token => maps:get(http_token, Given, none)},
            case fairnif_watch_web:check(Options) of
                ok -> Options;
                {error, Text} -> throw({error, {bad_config, Text}})
            end;
        {[], #{http := Http}} when Http =/= off ->
            throw({error, {bad_config, {http, Http, "off, or {Address, Port}"}}});
        {[], _} -> off;
        {[Key | _], _} -> throw({error, {bad_config, {Key, "no such setting"}}})
    end.
