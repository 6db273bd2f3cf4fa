%% The command `fairnif watch': its options, and which of the views is wanted.
%%
%% bin/fairnif has taken a cookie and a token out of the arguments (`-' stands there, and they are
%% in the environment), named the terminal, and given the emulator what it needs for TLS.
%% Everything else is the application fairnif_watch_console's.
-module(fairnif_cli_watch).

-export([command/0, address/1]).

%% A node that is there is attached to in less than a second; this is for those that are busy.
-define(SETTLE_MS, 15000).
-define(SECONDS, 2).
-define(LEAVE_MS, 5000).

%% @doc The command.
-spec command() -> fairnif_check_cli:command().
command() ->
    #{name => "watch", args => "NODE [NODE ...] [OPTION ...]",
      about => "shows what blocks schedulers of live nodes",
      before => before(), options => options(), after_options => after_options(),
      run => fun run/2}.

before() ->
    "Shows which schedulers of live Erlang nodes are blocked, by which code, and what waits. NODE\n"
    "is name@host, or a name on this machine. The command loads what it needs into the node,\n"
    "and unloads it again; some atoms stay, and two names in its `taints'. Attach only to nodes\n"
    "that you trust: once connected, either side may run anything on the other.\n".

after_options() ->
    "Times end in us, ms or s. Exit code: 0 nothing found, 1 something found, 2 wrong usage, 3 a\n"
    "node could not be seen. The screen exits with 0.\n".

options() ->
    Text = fun(Value) -> Value end,
    [{"--cluster", cluster, {flag, true}, "",
      "watch also all nodes that these are connected to"},
     {"--once", once, {flag, true}, "", "watch for some seconds, print the findings, and exit"},
     {"--json", json, Text, "FILE", "with --once: write what was found; `-' is standard output"},
     {"--seconds", seconds, fun fairnif_check_cli_text:count/1, "N",
      "how long to watch (default: 2 with --once, else until you end it)"},
     {"--http", http, fun address/1, "IP:PORT", "serve the live page at this address"},
     {"--token", token, Text, "TOKEN", "the token of the page's readers (or FAIRNIF_TOKEN)"},
     {"--self-test", self_test, {flag, true}, "",
      "block a scheduler of the node for 300 ms, and check the finding"},
     {"--cookie", cookie, Text, "COOKIE", "the cookie of the nodes (or FAIRNIF_COOKIE)"},
     {"--cookie-file", cookie_file, Text, "FILE", "take the cookie from its first line "
      "(default ~/.erlang.cookie)"},
     {"--tls", tls, Text, "FILE", "use TLS distribution, with these options (ssl_dist_optfile)"},
     {"--name", name, Text, "NAME@HOST", "the name of this node, for a node that admits only some"},
     {"--warn", warn, fun fairnif_check_cli_text:duration/1, "TIME",
      "a scheduler blocked for longer is a warning (default 10ms)"},
     {"--error", error, fun fairnif_check_cli_text:duration/1, "TIME",
      "one blocked for longer is an error (default 100ms)"},
     {"--erlang-only", erlang_only, {flag, true}, "", "load no native code"},
     {"--plain", plain, {flag, true}, "", "print lines instead of the screen"}].

%% @doc An address and a port: 127.0.0.1:8080, [::1]:8080; without an address it is 127.0.0.1.
-spec address(string()) -> {inet:ip_address(), inet:port_number()}.
address(Text) ->
    {Host, Port} = case string:split(Text, ":", trailing) of
                       [P] -> {"127.0.0.1", P};
                       [H, P] -> {string:trim(string:trim(H, leading, "["), trailing, "]"), P}
                   end,
    case {inet:parse_strict_address(Host), string:to_integer(Port)} of
        {{ok, Ip}, {N, ""}} when N >= 0, N < 65536 -> {Ip, N};
        _ ->
            fairnif_check_cli_text:usage("`~ts' is not an address and port, such as 127.0.0.1:8080",
                                        [Text])
    end.

%% Watches. Exit codes as the help has them.
run(_, []) ->
    fairnif_check_cli_text:usage("watch needs the name of a node, such as app@host", []);
run(Opts, Names) ->
    case code:ensure_loaded(fairnif_watch_cluster) of
        {module, _} ->
            sensible(Opts),
            allowed(Opts),
            fairnif_check_cli_text:writable(Opts),
            quietly(fun() -> start(Opts, nodes_of(Names)) end);
        {error, _} ->
            fairnif_check_cli_text:complain("the application fairnif_watch_console is missing"),
            3
    end.

%% What the libraries log of connections says less than our sentences, and would stand amid the
%% screen.
quietly(Run) ->
    #{level := Level} = logger:get_primary_config(),
    ok = logger:set_primary_config(level, none),
    %% To end at once is in order: the node and the terminal are put back without us.
    ok = os:set_signal(sigterm, default),
    try Run()
    after
        ok = os:set_signal(sigterm, handle),
        ok = logger:set_primary_config(level, Level)
    end.

%% An option that would have no effect must not look as if it had one.
sensible(Opts) ->
    Needs = [{json, once}, {token, http}],
    [fairnif_check_cli_text:usage("`~ts' needs `~ts'", [option(Key), option(Needed)])
     || {Key, Needed} <- Needs, is_map_key(Key, Opts), not is_map_key(Needed, Opts)],
    Excludes = [{once, http}, {once, plain}, {cookie, cookie_file}]
        ++ [{self_test, Key} || Key <- [once, cluster, http, erlang_only, warn, error, seconds,
                                        plain]],
    [fairnif_check_cli_text:usage("`~ts' contradicts `~ts'", [option(A), option(B)])
     || {A, B} <- Excludes, is_map_key(A, Opts), is_map_key(B, Opts)],
    case Opts of
        #{tls := File} ->
            filelib:is_regular(File)
                orelse fairnif_check_cli_text:usage("there is no file ~ts", [File]);
        #{} -> ok
    end.

%% What is wrong is said before any node is touched.
allowed(Opts) ->
    case fairnif_watch_config:check(config(Opts)) of
        {ok, _} ->
            ok;
        {error, {bad_config, [{Setting, _, Allowed} | _]}} ->
            {Setting, Key} = lists:keyfind(Setting, 1, [{warn_ms, warn}, {error_ms, error}]),
            fairnif_check_cli_text:usage("`~ts' must be ~ts (ms)", [option(Key), Allowed])
    end,
    case Opts of
        #{http := {Ip, Port}} ->
            case fairnif_watch_web:check(#{ip => Ip, port => Port, token => token(Opts)}) of
                ok -> ok;
                {error, Text} -> fairnif_check_cli_text:usage("~ts", [Text])
            end;
        #{} -> ok
    end.

option(Key) ->
    {Name, Key, _, _, _} = lists:keyfind(Key, 2, options()),
    Name.

nodes_of(Names) ->
    Parsed = [case fairnif_watch_connect:node_name(Name) of
                  {ok, Node, Form} -> {Node, Form};
                  {error, Why} -> fairnif_check_cli_text:usage("~ts", [Why])
              end || Name <- Names],
    case lists:uniq([Form || {_, Form} <- Parsed]) of
        [Form] -> {Form, [Node || {Node, _} <- Parsed]};
        _ ->
            fairnif_check_cli_text:usage("some of these names are long and some are short: no node "
                                        "can talk to both", [])
    end.

start(Opts, {Form, Nodes}) ->
    Cookie = case fairnif_watch_connect:cookie(cookie_source(Opts)) of
                 {ok, C} -> C;
                 {error, No} -> fairnif_check_cli_text:usage("~ts", [No])
             end,
    case fairnif_watch_connect:start(Form, own_name(Opts, Form)) of
        ok ->
            watch(Opts, #{nodes => Nodes, form => Form, cookie => Cookie,
                          follow => maps:get(cluster, Opts, false),
                          attach => #{config => config(Opts)}});
        {error, Why} ->
            fairnif_check_cli_text:complain(Why),
            3
    end.

cookie_source(#{cookie := Text}) when Text =/= "-" -> {text, Text};
cookie_source(#{cookie_file := File}) -> {file, File};
cookie_source(_) ->
    case os:getenv("FAIRNIF_COOKIE") of
        false -> default;
        Text -> {text, Text}
    end.

own_name(#{name := Text}, Form) ->
    case fairnif_watch_connect:node_name(Text) of
        {ok, Name, Form} -> Name;
        {ok, _, _} ->
            fairnif_check_cli_text:usage("our own name must have the form of the nodes' names: "
                                       "long with long ones, short with short ones", []);
        {error, Why} -> fairnif_check_cli_text:usage("~ts", [Why])
    end;
own_name(_, _) ->
    default.

config(Opts) ->
    Ms = [{Key, max(1, maps:get(Option, Opts) div 1000000)}
          || {Option, Key} <- [{warn, warn_ms}, {error, error_ms}], is_map_key(Option, Opts)],
    Native = [{native, false} || is_map_key(erlang_only, Opts)],
    Config = maps:from_list(Ms ++ Native),
    %% Later warnings imply later errors.
    case Config of
        #{warn_ms := Warn} when not is_map_key(error_ms, Config) ->
            Config#{error_ms => max(Warn, 100)};
        #{error_ms := Error} when not is_map_key(warn_ms, Config) ->
            Config#{warn_ms => min(Error, 10)};
        #{} ->
            Config
    end.

%% ---- the views ----

watch(#{self_test := true}, #{nodes := Nodes, form := Form, cookie := Cookie}) ->
    lists:max([self_test(Node, Cookie, Form) || Node <- Nodes]);
watch(Opts, Watch) ->
    {ok, Cluster} = fairnif_watch_cluster:start_link(Watch),
    Code = case Opts of
               #{once := true} -> once(Cluster, Opts);
               #{} -> live(Cluster, fairnif_watch_once:settled(Cluster, shown, ?SETTLE_MS), Opts)
           end,
    ok = fairnif_watch_cluster:stop(Cluster, ?LEAVE_MS),
    Code.

self_test(Node, Cookie, Form) ->
    case fairnif_watch_once:self_test(Node, Cookie, Form) of
        {ok, Said} -> io:format("~ts: passed~n~ts", [Node, facts(Said)]), 0;
        {failed, Why} -> io:format("~ts: failed: ~0tp~n", [Node, Why]), 1;
        {error, Why} -> not_seen(Node, Why), 3
    end.

%% In it may be names as another machine has sent them.
not_seen(Node, Why) ->
    fairnif_check_cli_text:complain([atom_to_list(Node), ": ", fairnif_watch_screen:text(Why)]).

facts(Said) when is_map(Said) ->
    [io_lib:format("  ~ts: ~0tp~n", [Key, Value]) || {Key, Value} <- maps:to_list(Said)];
facts(Said) ->
    io_lib:format("  ~0tp~n", [Said]).

%% One that hangs is tried for as long as it was to be watched, and no shorter than any.
once(Cluster, Opts) ->
    Seconds = maps:get(seconds, Opts, ?SECONDS),
    Views = fairnif_watch_once:settled(Cluster, seen, max(?SETTLE_MS, Seconds * 1000)),
    #{nodes := Nodes, findings := Findings} = Result =
        fairnif_watch_once:look(Cluster, #{views => Views, seconds => Seconds}),
    [fairnif_check_cli_text:complain(
       lists:join($\n, [fairnif_watch_terminal:status_line(Entry)
                        | fairnif_watch_terminal:outside_lines(Entry)]))
     || #{status := Status} = Entry <- Nodes, Status =/= up],
    case Opts of
        #{json := "-"} ->
            io:put_chars([fairnif_watch_once:json(Result), $\n]);
        #{json := File} ->
            ok = file:write_file(File, [fairnif_watch_once:json(Result), $\n]),
            text(Nodes, Findings, Seconds);
        #{} ->
            text(Nodes, Findings, Seconds)
    end,
    fairnif_watch_once:exit_code(Result).

text(Nodes, Findings, Seconds) ->
    Up = length([up || #{status := up} <- Nodes]),
    InOrder = lists:sort(fun(#{at := A}, #{at := B}) -> A =< B end, Findings),
    [io:format("~ts~n", [fairnif_watch_terminal:finding_line(F)]) || F <- InOrder],
    [io:format("~ts: not seen: ~ts~n", [Node, fairnif_watch_screen:text(Why)])
     || #{node := Node, status := up, view := #{blind := Blind}} <- Nodes, Why <- Blind],
    io:format("~b of ~b nodes seen for ~b s: ~b findings~n",
              [Up, length(Nodes), Seconds, length(Findings)]).

%% A name that was mistyped is reported as that, not shown as a node that is gone.
live(Cluster, #{nodes := Nodes}, Opts) ->
    case [Status || #{status := Status} <- Nodes, lists:member(Status, [up, hanging, replaced])] of
        [] ->
            [not_seen(Node, Why) || #{node := Node, reason := Why} <- Nodes],
            3;
        _ ->
            page(Cluster, Opts)
    end.

page(Cluster, #{http := {Ip, Port}} = Opts) ->
    Web = fairnif_watch_web,
    case Web:start_link(#{ip => Ip, port => Port, token => token(Opts),
                          source => fairnif_watch_cluster:source(Cluster)}) of
        {ok, Pid} ->
            Code = view(Cluster, iolist_to_binary(["the live page: ", Web:url(Pid)]), Opts),
            ok = Web:stop(Pid),
            Code;
        {error, {http, Why}} ->
            fairnif_check_cli_text:complain(Why),
            3
    end;
page(Cluster, Opts) ->
    view(Cluster, none, Opts).

token(#{token := Text}) when Text =/= "-" ->
    unicode:characters_to_binary(Text);
token(_) ->
    case os:getenv("FAIRNIF_TOKEN") of
        false -> none;
        Text -> unicode:characters_to_binary(Text)
    end.

view(Cluster, Note, Opts) ->
    Common = #{seconds => maps:get(seconds, Opts, infinity), note => Note},
    case terminal(Opts) of
        {ok, Tty} ->
            Screen = Common#{tty => Tty, style => fairnif_check_table:style(),
                             colour => os:getenv("NO_COLOR", "") =:= ""},
            case fairnif_watch_terminal:screen(Cluster, Screen) of
                ok -> 0;
                {error, no_terminal} -> lines(Cluster, Note, Common)
            end;
        none ->
            lines(Cluster, Note, Common)
    end.

terminal(#{plain := true}) -> none;
terminal(_) ->
    case {os:getenv("FAIRNIF_TTY"), os:getenv("TERM", "dumb")} of
        {false, _} -> none;
        {_, "dumb"} -> none;
        {Tty, _} -> {ok, Tty}
    end.

lines(Cluster, Note, Options) ->
    _ = Note =/= none andalso fairnif_check_cli_text:complain(Note),
    Found = fairnif_watch_terminal:lines(Cluster, Options),
    #{nodes := Nodes} = fairnif_watch_cluster:views(Cluster),
    fairnif_watch_once:exit_code(#{at => 0, seconds => 1, nodes => Nodes, findings => Found}).
