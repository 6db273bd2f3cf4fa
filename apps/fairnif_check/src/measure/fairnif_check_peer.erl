%% Peer nodes: where everything is measured.
%%
%% A function under measurement may block every scheduler, crash the VM or eat its memory.  It does
%% so in a node of its own, which is killed afterwards; whatever happens there is an error value
%% here, within a time limit, never a hang and never a crash of the checker.
%%
%% The connection is standard input and output: no epmd, no distribution, no name.  What a peer
%% prints goes to standard error, so that standard output keeps the checker's tables alone.
-module(fairnif_check_peer).

-export([start/1, start/2, call/3, cpu_clock/1, stop/1, run/3, with/2, with/3, format_error/1]).
-export([control/2]).
-export([served/3]).

-export_type([peer/0, reason/0, options/0]).

-opaque peer() :: #{control := pid(), os_pid := string(), last_words := none | file:filename()}.
-type options() :: #{memory => pos_integer(),   % bytes of data that the node may have
                     paths => [file:filename()], % more of the code path
                     env => [{string(), string()}], % more of the environment
                     quiet => boolean()}.       % what it prints as it dies goes into the reason
-type reason() :: {boot, term()}            % the node did not come up
                | {timeout, pos_integer()}  % milliseconds that were not enough
                | {down, ended()}           % the node died during the call
                | {down, ended(), binary()} % the same, and the last line it printed
                | {raised, error | exit | throw, term(), list()}.
-type ended() :: {exit_status, non_neg_integer()}
               | unknown.                  % it died while it printed

%% Slow machines take a second to boot a node.
-define(BOOT_MS, 30000).
%% For what is answered at once, on a machine that is very busy.
-define(AT_ONCE_MS, 10000).
%% How often a waiting call asks whether the node still lives.
-define(LOOK_MS, 100).
%% How long a killed node may take to be gone: the kernel frees gigabytes.
-define(GONE_MS, 10000).

%% @doc `start(Flags, #{})'.
-spec start([string()]) -> {ok, peer()} | {error, reason()}.
start(Flags) ->
    start(Flags, #{}).

%% @doc Starts a node with these emulator flags ("+S", "1:1") and the code path of this one.
%% ERL_FLAGS and its kin are not passed on: the flags of a measurement are those that its report
%% names.  Costs about 0.4 s.  The node ends with the calling process.
-spec start([string()], options()) -> {ok, peer()} | {error, reason()}.
start(Flags, Opts) ->
    LastWords = case Opts of
                    #{quiet := true} -> temporary();
                    _ -> none
                end,
    case control(whereis(standard_error),
                 #{peer_down => continue,
                   wait_boot => ?BOOT_MS,
                   exec => command(Opts, LastWords),
                   args => Flags ++ code_path(maps:get(paths, Opts, [])),
                   env => environment() ++ maps:get(env, Opts, [])}) of
        {ok, Control, _} ->
            started(Control, LastWords);
        {error, Reason} ->
            Words = last_words(LastWords),
            forget(LastWords),
            {error, {boot, case Words of <<>> -> Reason; _ -> Words end}}
    end.

%% @doc peer:start_link/1 over standard input and output, for a node that may die at any time: its
%% control process fails where the node dies while it prints, and ends who is linked to it.  So
%% another process is linked to it in place of the caller.  The node ends with the caller all the
%% same.  What it prints goes to Leader.
-spec control(Leader :: pid(), map()) -> {ok, Control :: pid(), node()} | {error, term()}.
control(Leader, Options) ->
    Caller = self(),
    {Owner, Monitor} = spawn_monitor(fun() ->
                                             group_leader(Leader, self()),
                                             own(Caller, Options)
                                     end),
    receive
        {Owner, Control, Node} ->
            erlang:demonitor(Monitor, [flush]),
            {ok, Control, Node};
        {'DOWN', Monitor, process, Owner, {shutdown, Reason}} ->
            {error, Reason};
        {'DOWN', Monitor, process, Owner, Reason} ->
            {error, Reason}
    end.

own(Caller, Options) ->
    process_flag(trap_exit, true),
    Monitor = erlang:monitor(process, Caller),
    try peer:start_link(Options#{connection => standard_io}) of
        {ok, Control, Node} ->
            Caller ! {self(), Control, Node},
            receive
                {'DOWN', Monitor, process, Caller, _} -> ok;
                {'EXIT', Control, _} -> ok
            end
    catch
        exit:Reason -> exit({shutdown, Reason}) % which is nothing to be logged
    end.

%% @doc Runs M:F(A...) in a fresh process of the peer and returns its value.
%% After a timeout the peer is of no further use: stop it.
-spec call(peer(), {module(), atom(), [term()]}, pos_integer()) ->
          {ok, term()} | {error, reason()}.
call(#{control := Control, last_words := LastWords}, MFA, LimitMs) ->
    %% To ask one that has gone would end its control process, which knows why it went.
    Answer = case state(Control) of
                 {down, _} = Down -> {error, Down};
                 _ -> asked(Control, MFA, LimitMs)
             end,
    case Answer of
        {error, {down, Reason}} ->
            Why = case Reason of {exit_status, _} -> Reason; _ -> unknown end,
            case last_words(LastWords) of
                <<>> -> {error, {down, Why}};
                Words -> {error, {down, Why, Words}}
            end;
        _ ->
            Answer
    end.

asked(Control, {M, F, A}, LimitMs) ->
    Me = self(),
    Ref = make_ref(),
    {Caller, Monitor} =
        spawn_monitor(fun() ->
                              Me ! {Ref, remote(Control, M, F, A)}
                      end),
    Answer = await(Ref, Monitor, Control, deadline(LimitMs), LimitMs),
    erlang:demonitor(Monitor, [flush]),
    exit(Caller, kill),
    receive {Ref, _} -> ok after 0 -> ok end,
    Answer.

%% @doc How much that node and the machine have computed, for
%% fairnif_check_machine:others/2; `unknown' of one that is too busy to say.
-spec cpu_clock(peer()) -> fairnif_check_machine:cpu_clock().
cpu_clock(Peer) ->
    case call(Peer, {fairnif_check_machine, cpu_clock, []}, ?AT_ONCE_MS) of
        {ok, Clock} -> Clock;
        {error, _} -> unknown
    end.

%% @doc Ends the node, whatever state it is in, and waits until it is gone.
-spec stop(peer()) -> ok.
stop(#{control := Control, os_pid := OsPid, last_words := LastWords}) ->
    State = state(Control),
    %% First who listens: it fails where the node dies while it prints.
    Monitor = erlang:monitor(process, Control),
    exit(Control, kill),
    receive {'DOWN', Monitor, process, Control, _} -> ok end,
    %% Asking a node to halt needs a scheduler that is free; a kill does not.
    _ = [os:cmd(kill(OsPid)) || State =:= running],
    forget(LastWords).

%% Ends that one and waits until it is gone.
kill(OsPid) ->
    lists:flatten(io_lib:format("kill -9 ~s; n=0; while kill -0 ~s && [ $n -lt ~b ]; "
                                "do sleep 0.01; n=$((n + 1)); done",
                                [OsPid, OsPid, ?GONE_MS div 10])).

%% @doc One call in a node of its own.
-spec run([string()], {module(), atom(), [term()]}, pos_integer()) ->
          {ok, term()} | {error, reason()}.
run(Flags, MFA, LimitMs) ->
    with(Flags, fun(Peer) -> call(Peer, MFA, LimitMs) end).

%% @doc Starts a node, hands it to Fun, and ends it however Fun ends.
-spec with([string()], fun((peer()) -> Result)) ->
          Result | {error, reason()}.
with(Flags, Fun) ->
    with(Flags, #{}, Fun).

%% @doc The same with options.
-spec with([string()], options(), fun((peer()) -> Result)) ->
          Result | {error, reason()}.
with(Flags, Opts, Fun) ->
    case start(Flags, Opts) of
        {ok, Peer} ->
            try Fun(Peer) after stop(Peer) end;
        {error, _} = Error ->
            Error
    end.

%% @doc The reason as a phrase for a person.
-spec format_error(reason()) -> unicode:chardata().
format_error({boot, Words}) when is_binary(Words) ->
    ["the peer node did not start: ", Words];
format_error({boot, Reason}) ->
    io_lib:format("the peer node did not start (~0p)", [Reason]);
format_error({timeout, Ms}) ->
    io_lib:format("no answer within ~b s", [max(1, Ms div 1000)]);
format_error({down, Why, Words}) ->
    [format_error({down, Why}), " (", fairnif_check_fault:report(Words), ")"];
format_error({down, {exit_status, Status}}) when Status > 128 ->
    io_lib:format("the peer node was killed by signal ~b", [Status - 128]);
format_error({down, {exit_status, Status}}) ->
    io_lib:format("the peer node ended with exit status ~b", [Status]);
format_error({down, unknown}) ->
    "the peer node went down";
format_error({raised, Class, Reason, _Stack}) ->
    io_lib:format("~s:~0tp", [Class, Reason]).

started(Control, LastWords) ->
    Early = #{control => Control, os_pid => "", last_words => LastWords},
    case call(Early, {os, getpid, []}, ?BOOT_MS) of
        {ok, OsPid} ->
            {ok, Early#{os_pid := OsPid}};
        {error, Reason} ->
            exit(Control, kill),
            forget(LastWords),
            {error, {boot, Reason}}
    end.

%% A node that eats memory is to die alone, and to say why: the limit is its
%% own, on data that it writes to (what it only reserves does not count).  Where
%% the shell cannot limit that there is none.
command(Opts, LastWords) ->
    Limit = case Opts of
                #{memory := Bytes} ->
                    ["ulimit -d ", integer_to_list(Bytes div 1024), " 2>/dev/null; "];
                _ -> []
            end,
    {To, File} = case LastWords of
                     none -> {"", "sh"};
                     Name -> {" 2>\"$0\"", Name}
                 end,
    {os:find_executable("sh"),
     %% -C: no other user's file, nor a link of that name, is written to.
     ["-c", lists:flatten(["set -C; ", Limit, "exec ", killed_with_this_node(), "erl \"$@\"", To]),
      File]}.

%% A node whose schedulers are all blocked does not see that its standard input was closed.  When
%% this node is killed the kernel ends that one, where the system has the command that asks for it.
killed_with_this_node() ->
    case os:find_executable("setpriv") of
        false -> "";
        Path -> [Path, " --pdeathsig KILL "]
    end.

temporary() ->
    Name = io_lib:format("fairnif-peer-~s-~b",
                         [os:getpid(), erlang:unique_integer([positive])]),
    filename:join(os:getenv("TMPDIR", "/tmp"), lists:flatten(Name)).

%% The last line that says something: of a crash it is the VM's slogan.
last_words(none) ->
    <<>>;
last_words(File) ->
    case file:read_file(File) of
        {ok, Text} ->
            %% Of a wrong flag the emulator says what is wrong, and then all that it knows.
            Relevant = lists:takewhile(fun(L) -> string:prefix(L, "Usage: ") =:= nomatch end,
                                       binary:split(Text, <<"\n">>, [global])),
            Lines = [L || L <- Relevant,
                          string:trim(L) =/= <<>>,
                          string:find(L, "rash dump") =:= nomatch],
            last_of([string:trim(L) || L <- lists:reverse(Lines)]);
        _ ->
            <<>>
    end.

%% The last one first. Of a task's stack the runtime knows more, and has spoken before.
last_of([Fault | Before]) ->
    case {fairnif_check_fault:is_report(Fault), Before} of
        {true, [<<"fairnif: ", _/binary>> = Runtime | _]} -> string:slice(Runtime, 0, 200);
        {true, _} -> Fault;
        {false, _} -> string:slice(Fault, 0, 200)
    end;
last_of([]) ->
    <<>>.

forget(none) -> ok;
forget(File) -> _ = file:delete(File), ok.

%% @private In the peer.
-spec served(module(), atom(), [term()]) -> {served, term()}.
served(M, F, A) ->
    {served, apply(M, F, A)}.

remote(Control, M, F, A) ->
    %% For a process that is ended by another one while it serves the call peer has no answer of its
    %% own: the reason, as if it were the value (hence the tag), or a case that it did not think of.
    try peer:call(Control, ?MODULE, served, [M, F, A], infinity) of
        {served, Value} -> {ok, Value};
        Reason -> {error, {raised, exit, Reason, []}}
    catch
        exit:{Why, {gen_server, call, _}} -> {error, {down, Why}};
        error:{case_clause, {crash, Why}} -> {error, {raised, exit, Why, []}};
        Class:Reason:Stack -> {error, {raised, Class, Reason, Stack}}
    end.

%% A call that is under way when the node dies is not answered (`continue'), so
%% the state is asked for again and again: that way the exit status of the node
%% is known, and no crash report is printed.
await(Ref, Monitor, Control, Deadline, LimitMs) ->
    Left = max(0, Deadline - now_ms()),
    receive
        {Ref, Answer} ->
            Answer;
        {'DOWN', Monitor, process, _, Reason} ->
            {error, {down, Reason}}
    after min(Left, ?LOOK_MS) ->
            case state(Control) of
                {down, Reason} -> {error, {down, Reason}};
                _ when Left =:= 0 -> {error, {timeout, LimitMs}};
                _ -> await(Ref, Monitor, Control, Deadline, LimitMs)
            end
    end.

state(Control) ->
    try peer:get_state(Control)
    catch exit:Reason -> {down, Reason}
    end.

code_path(More) ->
    Otp = code:lib_dir(),
    case [filename:absname(D) || D <- More ++ code:get_path(), D =/= ".",
                                 not lists:prefix(Otp, D)] of
        [] -> [];
        %% The flag puts each before the one that was given before it.
        Dirs -> ["-pa" | lists:reverse(Dirs)]
    end.

environment() ->
    [{"ERL_FLAGS", ""}, {"ERL_AFLAGS", ""}, {"ERL_ZFLAGS", ""},
     {"ERL_CRASH_DUMP_SECONDS", "0"}].

deadline(Ms) ->
    now_ms() + Ms.

now_ms() ->
    erlang:monotonic_time(millisecond).
