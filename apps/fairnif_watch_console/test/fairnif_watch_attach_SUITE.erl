%% `fairnif watch' against real nodes: attaching, what is left afterwards, and the live view on a
%% pseudo-terminal.
-module(fairnif_watch_attach_SUITE).

-include_lib("common_test/include/ct.hrl").
-include_lib("stdlib/include/assert.hrl").

-export([all/0, suite/0, init_per_suite/1, end_per_suite/1, end_per_testcase/2]).

-export([leaves_a_node_as_it_was/1, leaves_it_so_when_killed/1,
         leaves_it_so_when_the_connection_is_lost_and_comes_back/1,
         leaves_what_a_node_had_loaded_itself/1, ends_with_its_session/1,
         attaches_by_long_names/1, attaches_over_tls/1,
         says_why_there_is_no_connection/1, says_what_is_no_epmd/1,
         names_what_blocks_a_node_that_never_answers/1,
         tells_a_node_that_refuses_from_one_that_does_not_finish/1,
         refuses_options_that_have_no_effect/1, never_shows_the_cookie/1,
         subscribes_where_the_application_runs/1, is_replaced_by_the_application/1,
         two_watchers_share_what_is_brought/1,
         brings_nothing_over_another_version/1, brings_no_native_part_when_asked/1,
         one_look_keeps_to_its_schema/1, tests_the_watch_of_a_node/1,
         shows_a_screen_and_puts_the_terminal_back/1,
         puts_the_terminal_back_when_it_is_killed/1, writes_lines_where_no_terminal_is/1,
         ends_quietly_without_a_reader/1]).

-import(fairnif_watch_test_node, [node_up/0, node_up/1, paths/0, state/1, as_before/2, as_before/3,
                                  attached/1, is_attached/1, subscribers/1, signal/2, until/2,
                                  contains/2]).

%% For its nodes.
-export([block_both/0]).

-define(COOKIE, "suite_cookie").

suite() -> [{timetrap, {minutes, 15}}].

all() ->
    fairnif_test:cases(?MODULE).

init_per_suite(Config) ->
    Root = fairnif_check_schema:root(),
    [{root, Root}, {fairnif, filename:join([Root, "bin", "fairnif"])} | Config].

end_per_suite(_) ->
    ok.

end_per_testcase(_, _) ->
    _ = net_kernel:stop(),
    ok.

%% ---- what is left ----

leaves_a_node_as_it_was(Config) ->
    {Peer, Node} = node_up(),
    Before = state(Peer),
    Taints = peer:call(Peer, erlang, system_info, [taints]),
    Text = looked(0, Config, [Node, "--once", "--seconds", "1"]),
    {match, _} = re:run(Text, "1 of 1 nodes seen for 1 s: 0 findings"),
    as_before(Peer, Before),
    %% What the manual says that stays.
    ?assertEqual([fairnif_watch_native, fairnif_watch_probe],
                 lists:sort(peer:call(Peer, erlang, system_info, [taints]) -- Taints)).

%% Its own code, not running: what is started is ended, and no module is taken.
leaves_what_a_node_had_loaded_itself(Config) ->
    {Peer, Node} = node_up(#{args => paths()}),
    ok = peer:call(Peer, application, load, [fairnif_watch]),
    {ok, Modules} = peer:call(Peer, application, get_key, [fairnif_watch, modules]),
    ok = peer:call(Peer, code, ensure_modules_loaded, [Modules]),
    Before = state(Peer),
    _ = looked(0, Config, [Node, "--once", "--seconds", "1"]),
    %% Its own module keeps the library that it was given.
    as_before(Peer, Before, [mapped]).

%% The code stays: no other process knows that it was brought.
ends_with_its_session(Config) ->
    {Peer, Node} = node_up(),
    #{threads := Threads, signals := Signals, system_monitor := Monitor} = state(Peer),
    {Port, Os} = watching(Config, [Node]),
    attached(Peer),
    signal(Os, "STOP"),
    true = peer:call(Peer, erlang, exit,
                     [peer:call(Peer, erlang, whereis, [fairnif_watch_session]), kill]),
    until(fun() -> not is_attached(Peer) end, "the watch ends"),
    until(fun() -> case state(Peer) of
                       #{threads := Threads, signals := Signals, system_monitor := Monitor} -> true;
                       #{} -> false
                   end
          end, "no thread, no handler, no monitor"),
    signal(Os, "KILL"),
    _ = ended(Port).

leaves_it_so_when_killed(Config) ->
    {Peer, Node} = node_up(),
    Before = state(Peer),
    {Port, Os} = watching(Config, [Node]),
    attached(Peer),
    signal(Os, "KILL"),
    as_before(Peer, Before),
    {137, _} = ended(Port).

%% A watcher that is stopped cannot connect again at once, which it would.
leaves_it_so_when_the_connection_is_lost_and_comes_back(Config) ->
    {Peer, Node} = node_up(),
    Before = state(Peer),
    {_, Os} = watching(Config, [Node]),
    attached(Peer),
    signal(Os, "STOP"),
    [Watcher] = peer:call(Peer, erlang, nodes, [connected]),
    true = peer:call(Peer, erlang, disconnect_node, [Watcher]),
    as_before(Peer, Before),
    signal(Os, "CONT"),
    attached(Peer),
    signal(Os, "KILL"),
    as_before(Peer, Before).

%% ---- connections ----

attaches_by_long_names(Config) ->
    {Peer, Node} = node_up(#{longnames => true, host => "127.0.0.1"}),
    Before = state(Peer),
    _ = looked(0, Config, [Node, "--once", "--seconds", "1"]),
    as_before(Peer, Before).

attaches_over_tls(Config) ->
    Options = tls_options(Config),
    {Peer, Node} = node_up(#{args => ["-proto_dist", "inet_tls", "-ssl_dist_optfile",
                                              Options]}),
    attached_by(Config, Peer, [Node, "--once", "--seconds", "1", "--tls", Options]),
    {Plain, PlainNode} = node_up(),
    at_once(fun({Args, Why}) ->
                    {3, Text} = watch(Config, Args),
                    contains(Text, Why)
            end, [{[Node, "--once"], "does it use TLS distribution"},
                  {[PlainNode, "--once", "--tls", Options], "leave out --tls"}]),
    peer:stop(Plain).

%% For what takes its time because it waits.
at_once(Fun, List) ->
    Monitors = [element(2, spawn_monitor(fun() -> Fun(One) end)) || One <- List],
    [receive {'DOWN', Monitor, process, _, Why} -> ?assertEqual(normal, Why) end
     || Monitor <- Monitors].

%% Processes of TLS itself live on for a while: that the watch is gone is what counts here.
attached_by(Config, Peer, Args) ->
    _ = looked(0, Config, Args),
    until(fun() -> not is_attached(Peer) end, "the watch is gone").

tls_options(Config) ->
    %% By itself it signs with SHA-1, which TLS refuses since OTP 27, and with a curve that TLS 1.3
    %% does not have.
    Strong = [{digest, sha256}, {key, {rsa, 2048, 65537}}],
    Chain = #{root => Strong, intermediates => [], peer => Strong},
    #{server_config := Server} =
        public_key:pkix_test_data(#{server_chain => Chain, client_chain => Chain}),
    {Type, Key} = proplists:get_value(key, Server),
    Pem = public_key:pem_encode([{'Certificate', proplists:get_value(cert, Server), not_encrypted},
                                 {Type, Key, not_encrypted}]),
    Folder = ?config(priv_dir, Config),
    File = filename:join(Folder, "node.pem"),
    ok = file:write_file(File, Pem),
    Options = filename:join(Folder, "tls.conf"),
    ok = file:write_file(Options, io_lib:format(
                                    "[{server, [{certfile, ~p}]}, {client, [{verify, "
                                    "verify_none}]}].~n", [File])),
    Options.

says_why_there_is_no_connection(Config) ->
    {Peer, Node} = node_up(),
    [Name, Host] = string:split(atom_to_list(Node), "@"),
    [begin
         {Time, {Code, Text}} = timer:tc(fun() -> watch(Config, [Arg | More]) end),
         ct:log("~ts (~b ms)", [Text, Time div 1000]),
         ?assertEqual({Arg, 3}, {Arg, Code}),
         contains(Text, Reason)
     end || {Arg, More, Reason} <-
                [{Node, ["--cookie", "another"], "does not take this cookie"},
                 {"nobody_" ++ Name ++ "@" ++ Host, [], "no node nobody_"},
                 {Name ++ "@127.0.0.1", [], "calls itself " ++ atom_to_list(Node)},
                 {Name ++ "@nohost", [], "the host nohost is not known here"}]],
    ok = peer:call(Peer, net_kernel, allow, [['friend@host']]),
    {3, Text} = watch(Config, [Node]),
    contains(Text, "admits only nodes with certain names"),
    looked(0, Config, [Node, "--once", "--seconds", "1", "--name", "friend@host"]).

%% As a forwarded port with nothing behind it does.
says_what_is_no_epmd(Config) ->
    {ok, Socket} = gen_tcp:listen(0, [{ip, {127, 0, 0, 1}}]),
    {ok, Number} = inet:port(Socket),
    Closer = spawn_link(fun Loop() ->
                                {ok, Accepted} = gen_tcp:accept(Socket),
                                ok = gen_tcp:close(Accepted),
                                Loop()
                        end),
    {3, Text} = run(?config(fairnif, Config), ["watch", "app@127.0.0.1"],
                    [{"FAIRNIF_COOKIE", ?COOKIE}, {"ERL_EPMD_PORT", integer_to_list(Number)}]),
    %% As the connection ended: with what it says read, or not.
    {{match, _}, _} = {re:run(Text, "it is not epmd|no epmd answers"), Text},
    true = unlink(Closer),
    true = exit(Closer, kill),
    ok = gen_tcp:close(Socket).

%% A node greets any client. What it makes of the answer shows whether it would have us.
tells_a_node_that_refuses_from_one_that_does_not_finish(Config) ->
    at_once(
      fun({After, Status, Why}) ->
         {Epmd, Pids} = stand_in(After),
         {3, Text} = run(?config(fairnif, Config),
                         ["watch", "app@127.0.0.1", "--once", "--seconds", "1"],
                         [{"FAIRNIF_COOKIE", ?COOKIE}, {"ERL_EPMD_PORT", integer_to_list(Epmd)}]),
         [exit(Pid, kill) || Pid <- Pids, unlink(Pid)],
         contains(Text, Status),
         contains(Text, Why)
      end, [{closes, "app@127.0.0.1 refused", "does not take this cookie"},
            {waits, "app@127.0.0.1 hanging", "takes a connection and does not finish it"},
            {has_another, "app@127.0.0.1 hanging", "does not finish it"}]).

%% An epmd that knows `app', and what answers there: it closes after our answer to its challenge, it
%% does nothing more, or it says that it has a connection of ours already.
stand_in(After) ->
    {Node, Pid} = listening([binary, {packet, 2}], fun(Socket) -> greets(After, Socket) end),
    {Epmd, Pid2} = listening([binary, {packet, 0}], fun(Socket) ->
        {ok, _} = gen_tcp:recv(Socket, 0),
        gen_tcp:send(Socket, <<119, 0, Node:16, 77, 0, 6:16, 5:16, 3:16, "app", 0:16>>)
    end),
    {Epmd, [Pid, Pid2]}.

greets(has_another, Socket) ->
    {ok, <<$N, _/binary>>} = gen_tcp:recv(Socket, 0),
    gen_tcp:send(Socket, "salive"),
    gen_tcp:recv(Socket, 0);
greets(After, Socket) ->
    {ok, <<$N, Flags:8/binary, _/binary>>} = gen_tcp:recv(Socket, 0),
    ok = gen_tcp:send(Socket, "sok"),
    ok = gen_tcp:send(Socket, <<$N, Flags/binary, 1:32, 1:32, 13:16, "app@127.0.0.1">>),
    _ = gen_tcp:recv(Socket, 0),
    _ = After =:= waits andalso gen_tcp:recv(Socket, 0).

listening(Options, Answer) ->
    Self = self(),
    Pid = spawn_link(fun() ->
        {ok, Socket} = gen_tcp:listen(0, [{ip, {127, 0, 0, 1}}, {active, false} | Options]),
        {ok, Number} = inet:port(Socket),
        Self ! {self(), Number},
        (fun Loop() ->
                 {ok, Accepted} = gen_tcp:accept(Socket),
                 {One, _} = spawn_monitor(fun() -> receive go -> Answer(Accepted) end end),
                 ok = gen_tcp:controlling_process(Accepted, One),
                 One ! go,
                 Loop()
         end)()
    end),
    receive {Pid, Number} -> {Number, Pid} end.

%% Also those that the shell script takes away.
refuses_options_that_have_no_effect(Config) ->
    [begin
         {2, Text} = watch(Config, ["app@127.0.0.1" | Args]),
         contains(Text, Part)
     end || {Args, Part} <-
                [{["--token", "0123456789abcdef"], "`--token' needs `--http'"},
                 {["--token=0123456789abcdef", "--once"], "`--token' needs `--http'"},
                 {["--cookie", "c", "--cookie-file", "f"],
                  "`--cookie' contradicts `--cookie-file'"}]].

never_shows_the_cookie(Config) ->
    {Peer, Node} = node_up(),
    [begin
         {Port, Os} = watching(Config, [Node | Args], Env),
         attached(Peer),
         {ok, Line} = file:read_file(["/proc/", integer_to_list(Os), "/cmdline"]),
         ?assertEqual(nomatch, binary:match(Line, <<?COOKIE>>)),
         ?assertNotEqual(nomatch, binary:match(Line, <<"fairnif_cli">>)),
         signal(Os, "TERM"),
         _ = ended(Port),
         until(fun() -> not is_attached(Peer) end, "the watch is gone")
     end || {Args, Env} <- [{["--cookie", ?COOKIE], [{"FAIRNIF_COOKIE", false}]},
                            {["--cookie=" ++ ?COOKIE], [{"FAIRNIF_COOKIE", false}]},
                            {["--cookie-file", cookie_file(Config)], [{"FAIRNIF_COOKIE", false}]}]].

cookie_file(Config) ->
    File = filename:join(?config(priv_dir, Config), "cookie"),
    ok = file:write_file(File, ?COOKIE "\n"),
    File.

%% ---- what is brought ----

subscribes_where_the_application_runs(Config) ->
    {Peer, Node} = node_up(#{args => paths()}),
    {ok, _} = peer:call(Peer, application, ensure_all_started, [fairnif_watch]),
    Before = state(Peer),
    {Port, Os} = watching(Config, [Node, "--seconds", "60"]),
    until(fun() -> #{counters := #{subscribers := N}} = peer:call(Peer, fairnif_watch, view, []),
                   N =:= 1
          end, "a subscriber"),
    ?assertEqual(undefined, peer:call(Peer, erlang, whereis, [fairnif_watch_session])),
    signal(Os, "KILL"),
    _ = ended(Port),
    %% What the watch that runs there holds is not all there from its first second on.
    as_before(Peer, Before, [descriptors, persistent_terms, system_monitor]),
    until(fun() -> #{counters := #{subscribers := N}} = peer:call(Peer, fairnif_watch, view, []),
                   N =:= 0
          end, "no subscriber").

is_replaced_by_the_application(Config) ->
    {Peer, Node} = node_up(#{args => paths()}),
    {Port, Os} = watching(Config, [Node, "--seconds", "60"]),
    attached(Peer),
    {ok, _} = peer:call(Peer, application, ensure_all_started, [fairnif_watch], 30000),
    until(fun() -> subscribers(Peer) =:= 1 end, "the watcher is there again"),
    ?assertEqual(undefined, peer:call(Peer, erlang, whereis, [fairnif_watch_session])),
    until(fun() -> #{native := Native, schedulers := [#{state := State} | _]} =
                       peer:call(Peer, fairnif_watch, view, []),
                   Native andalso State =/= unknown
          end, "its own library works"),
    signal(Os, "KILL"),
    _ = ended(Port).

two_watchers_share_what_is_brought(Config) ->
    {Peer, Node} = node_up(),
    Before = state(Peer),
    %% At the same time, so that one finds the other at work.
    {First, Os1} = watching(Config, [Node]),
    {Second, Os2} = watching(Config, [Node]),
    until(fun() -> is_attached(Peer) andalso subscribers(Peer) =:= 2 end, "both are attached"),
    signal(Os1, "KILL"),
    until(fun() -> subscribers(Peer) =:= 1 end, "one is left"),
    timer:sleep(500),
    ?assert(is_attached(Peer)),
    signal(Os2, "KILL"),
    as_before(Peer, Before),
    _ = ended(First),
    _ = ended(Second).

brings_nothing_over_another_version(Config) ->
    {Peer, Node} = node_up(),
    Forms = [{attribute, 1, module, fairnif_watch_json}],
    {ok, fairnif_watch_json, Beam} = compile:forms(Forms),
    {module, _} = peer:call(Peer, code, load_binary, [fairnif_watch_json, "x", Beam]),
    Before = state(Peer),
    {3, Text} = watch(Config, [Node]),
    contains(Text, "another version of fairnif_watch"),
    as_before(Peer, Before).

brings_no_native_part_when_asked(Config) ->
    {Peer, Node} = node_up(),
    %% Erlang alone cannot tell a scheduler that is starved from one that is blocked.
    {0, Text} = watch(Config, [Node, "--once", "--seconds", "1", "--erlang-only", "--warn", "2s"]),
    contains(Text, "not seen: "),
    ?assertNot(lists:member(fairnif_watch_native, peer:call(Peer, erlang, system_info, [taints]))).

%% ---- what is shown ----

one_look_keeps_to_its_schema(Config) ->
    {_, Node} = node_up(),
    File = filename:join(?config(priv_dir, Config), "watch.json"),
    Text = looked(3, Config, [Node, "nobody_" ++ atom_to_list(Node), "--once", "--json", File]),
    contains(Text, "1 of 2 nodes seen"),
    keeps_to_the_schema(File, Config),
    Json = looked(0, Config, [Node, "--once", "--seconds", "1", "--json", "-"]),
    {match, _} = re:run(Json, "^{\"schema_version\":1,.*}\n\\z", [dotall]).

keeps_to_the_schema(File, Config) ->
    Root = ?config(root, Config),
    Validate = filename:join([Root, "apps", "fairnif_check", "test", "fairnif_check_validate.py"]),
    Schema = filename:join([Root, "apps", "fairnif_watch_console", "priv", "watch-1.schema.json"]),
    ?assertEqual({0, ""}, run("/usr/bin/python3", [Validate, Schema, File], [])).

%% By what is seen from outside. Again where a look on a busy machine comes too late.
names_what_blocks_a_node_that_never_answers(Config) ->
    ok = fairnif_watch_test:build(),
    Args = fairnif_watch_test:erl_args() ++ ["-pa", filename:dirname(code:which(?MODULE)),
                                             "+S", "2:2"],
    {Peer, Node} = node_up(#{args => Args}),
    true = unlink(Peer),
    Os = peer:call(Peer, os, getpid, []),
    {module, _} = peer:call(Peer, code, ensure_loaded, [fairnif_watch_block_nif]),
    ok = peer:cast(Peer, ?MODULE, block_both, []),
    File = filename:join(?config(priv_dir, Config), "blocked.json"),
    Culprit = "cheduler[^\n\"]* fairnif_watch_block_nif:sleep/1",
    fairnif_test:retry(
      4,
      fun() ->
              {3, Text} = watch(Config, [Node, "--once", "--json", File]),
              case re:run(Text, " hanging: .*\n  [^\n]*" ++ Culprit) of
                  {match, _} -> {ok, Text};
                  nomatch -> Text
              end
      end),
    {ok, Json} = file:read_file(File),
    {match, _} = re:run(Json, "\"outside\":\\[\"[^]]*" ++ Culprit),
    keeps_to_the_schema(File, Config),
    signal(Os, "KILL").

block_both() ->
    [spawn_opt(fairnif_watch_block_nif, sleep, [3600000], [{scheduler, N}]) || N <- [1, 2]].

%% On a machine that is busy with other things its time can be off: once more, then.
tests_the_watch_of_a_node(Config) ->
    {Peer, Node} = node_up(),
    Before = state(Peer),
    Text = fairnif_test:retry(
             4,
             fun() ->
                     case watch(Config, [Node, "--self-test"]) of
                         {0, Passed} -> {ok, Passed};
                         Failed -> Failed
                     end
             end),
    contains(Text, "passed"),
    contains(Text, "fairnif_watch_probe:block/1"),
    as_before(Peer, Before).

shows_a_screen_and_puts_the_terminal_back(Config) ->
    {Peer, Node} = node_up(),
    Before = state(Peer),
    [First, Second, _] = fairnif_test:retry(4, fun() -> screens(Config, Node) end),
    contains(First, "fairnif watch  " ++ atom_to_list(Node) ++ "  up"),
    ?assertEqual(24, length(binary:split(First, <<"\n">>, [global]))),
    contains(lists:last(binary:split(Second, <<"\n">>, [global])), "q: quit"),
    ?assertEqual(30, length(binary:split(Second, <<"\n">>, [global]))),
    as_before(Peer, Before).

%% With no findings; again where there is one that a busy machine is starved.
screens(Config, Node) ->
    #{screens := [First | _] = Screens, exit := 0, restored := true, entered := true,
      overflow := false, error := null} =
        terminal(Config, [Node], ["{\"wait\": \"run queues\"}",
                                  "{\"size\": [30, 100], \"sleep\": 2.5}",
                                  "{\"keys\": \"q\"}"]),
    case string:find(First, "no findings") of
        nomatch ->
            match = re:run(First, "findings: [1-3]\n", [{capture, none}]),
            match = re:run(First, " (no_cpu_time|late_wakeups|quota) node ", [{capture, none}]),
            First;
        _ ->
            {ok, Screens}
    end.

puts_the_terminal_back_when_it_is_killed(Config) ->
    {Peer, Node} = node_up(),
    [begin
         #{restored := true, entered := true, exit := Exit, error := null} =
             terminal(Config, [Node], ["{\"wait\": \"run queues\"}", Step])
     end || {Step, Exit} <- [{"{\"signal\": 9}", -9}, {"{\"signal\": 15}", -15},
                             {"{\"keys\": \"\\u0003\"}", 0}]],
    until(fun() -> not is_attached(Peer) end, "the watch is gone").

writes_lines_where_no_terminal_is(Config) ->
    {_, Node} = node_up(),
    Text = looked(0, Config, [Node, "--seconds", "2"]),
    {match, _} = re:run(Text, "^20[^ ]+ " ++ atom_to_list(Node) ++ " up\n\\z").

%% As before a pipe's other end that has gone.
ends_quietly_without_a_reader(Config) ->
    {_, Node} = node_up(),
    Script = "cd $0 && { $1 watch $2 nobody --seconds 5; echo \"was $?\" >&2; } | true",
    Folder = ?config(priv_dir, Config),
    {0, Text} = run("/bin/sh", ["-c", Script, Folder, ?config(fairnif, Config) | text([Node])],
                    [{"FAIRNIF_COOKIE", ?COOKIE}]),
    contains(Text, "was 3"),
    ?assertEqual(nomatch, string:find(Text, "terminat")),
    ?assertEqual([], filelib:wildcard(filename:join(Folder, "erl_crash*"))).

%% ---- the command ----

%% What was written, with that exit code: again where all that was found is that a busy machine's
%% schedulers were starved, which is true.
looked(Code, Config, Args) ->
    fairnif_test:retry(
      4,
      fun() ->
              case watch(Config, Args) of
                  {Code, Text} -> {ok, Text};
                  {1, Text} ->
                      [] = found(Text) -- [[D] || D <- ["no_cpu_time", "late_wakeups", "quota"]],
                      Text
              end
      end).

%% The detectors of what was found: of lines, or of JSON.
found(Text) ->
    {match, Detectors} = re:run(Text, "(?:^20\\S+ \\S+ [a-z]+ (?=\\w+: )|\"detector\":\")(\\w+)",
                                [global, multiline, {capture, all_but_first, list}]),
    lists:usort(Detectors).

watch(Config, Args) ->
    run(?config(fairnif, Config), ["watch" | text(Args)], [{"FAIRNIF_COOKIE", ?COOKIE}]).

text(Args) ->
    [case A of _ when is_atom(A) -> atom_to_list(A); _ -> A end || A <- Args].

run(Program, Args, Env) ->
    Port = open_port({spawn_executable, Program},
                     [{args, Args}, {env, Env}, exit_status, stderr_to_stdout, binary]),
    {Status, Text} = ended(Port),
    ct:log("~ts: ~b~n~ts", [lists:join(" ", Args), Status, Text]),
    {Status, Text}.

ended(Port) ->
    ended(Port, []).

ended(Port, Text) ->
    receive
        {Port, {data, Data}} -> ended(Port, [Text, Data]);
        {Port, {exit_status, Status}} ->
            {Status, unicode:characters_to_list(iolist_to_binary(Text))}
    after 240000 -> error({no_end, Text})
    end.

watching(Config, Args) ->
    watching(Config, Args, [{"FAIRNIF_COOKIE", ?COOKIE}]).

watching(Config, Args, Env) ->
    Port = open_port({spawn_executable, ?config(fairnif, Config)},
                     [{args, ["watch" | text(Args)]}, {env, Env}, exit_status, stderr_to_stdout,
                      binary]),
    {os_pid, Os} = erlang:port_info(Port, os_pid),
    {Port, Os}.

terminal(Config, Args, Steps) ->
    Script = filename:join([?config(root, Config), "apps", "fairnif_watch_console", "test",
                            "fairnif_watch_pty.py"]),
    {Status, Text} = run("/usr/bin/python3",
                         [Script, "24", "80", lists:flatten(["[", lists:join(",", Steps), "]"]),
                          ?config(fairnif, Config), "watch" | text(Args)],
                         [{"FAIRNIF_COOKIE", ?COOKIE}, {"TERM", "xterm"}]),
    ?assertEqual({0, Text}, {Status, Text}),
    json(Text).

%% What the script writes is read by Erlang's own reader: JSON of strings, numbers, true, null,
%% lists and one object is nearly Erlang.
json(Text) ->
    Swapped = re:replace(Text, "\"([a-z]+)\": ", "'\\1' => ", [global, {return, binary}]),
    Term = re:replace(Swapped, "^{(.*)}\\s*\\z", "#{\\1}.", [dotall, {return, list}]),
    {ok, Tokens, _} = erl_scan:string(unescaped(Term)),
    {ok, Map} = erl_parse:parse_term(Tokens),
    maps:map(fun(screens, Screens) -> [unicode:characters_to_binary(S) || S <- Screens];
                (_, Value) -> Value
             end, Map).

unescaped([$\\, $u, A, B, C, D | Rest]) -> "\\x{" ++ [A, B, C, D] ++ "}" ++ unescaped(Rest);
unescaped([C | Rest]) -> [C | unescaped(Rest)];
unescaped([]) -> [].
