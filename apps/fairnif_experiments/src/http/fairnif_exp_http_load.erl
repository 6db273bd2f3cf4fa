%% h2load, as operating system processes of their own: the load of the experiment `http'.
%%
%% Such a process ends by itself after its time, is killed when it does not, and dies with this
%% node.  Its log is a file that goes when it is read.
-module(fairnif_exp_http_load).

-export([executable/0, version/0, start/1, wait/2, os_pid/1]).

-export_type([load/0, spec/0]).

-type spec() :: #{url := unicode:chardata(),
                  streams := pos_integer(),             % requests under way at most
                  per_s => pos_integer(),               % or as fast as they are answered
                  ms := pos_integer()}.
-opaque load() :: #{port := port(), os_pid := non_neg_integer() | undefined,
                    log := file:filename()}.

%% @doc Where h2load is; `false' when it is not installed.
-spec executable() -> file:filename() | false.
executable() ->
    os:find_executable("h2load").

%% @doc Its version, as it says it.
-spec version() -> binary() | undefined.
version() ->
    case re:run(os:cmd("h2load --version"), "nghttp2/(\\S+)",
                [{capture, all_but_first, binary}]) of
        {match, [Version]} -> Version;
        nomatch -> undefined
    end.

%% @doc Starts one connection's load.  What it prints comes to this process, which must `wait/2' for
%% it.  The kernel ends it with this node where the system has the command that asks for that;
%% elsewhere its own time does.
-spec start(spec()) -> load().
start(#{url := Url, streams := Streams, ms := Ms} = Spec) ->
    Log = filename:join(os:getenv("TMPDIR", "/tmp"),
                        lists:concat(["fairnif-http-", os:getpid(), "-",
                                      erlang:unique_integer([positive])])),
    Args = [lists:concat(["--", Option, "=", Value])
            || {Option, Value} <- [{clients, 1}, {'max-concurrent-streams', Streams},
                                   {duration, lists:concat([Ms, "ms"])}, {'log-file', Log}
                                   | [{rps, PerS} || #{per_s := PerS} <- [Spec]]]]
        ++ [unicode:characters_to_list(Url)],
    {Command, All} = case os:find_executable("setpriv") of
                         false -> {executable(), Args};
                         Setpriv -> {Setpriv, ["--pdeathsig", "KILL", executable() | Args]}
                     end,
    Port = open_port({spawn_executable, Command},
                     [{args, All}, exit_status, stderr_to_stdout, binary, hide]),
    OsPid = case erlang:port_info(Port, os_pid) of
                {os_pid, Pid} -> Pid;
                undefined -> undefined
            end,
    #{port => Port, os_pid => OsPid, log => Log}.

%% @doc The process; `undefined' when it was gone at once.
-spec os_pid(load()) -> non_neg_integer() | undefined.
os_pid(#{os_pid := OsPid}) ->
    OsPid.

%% @doc Waits until it has ended, and kills it at that time (erlang:monotonic_time/1, ms); its log,
%% and what became of it: its exit status and the last that it said.
-spec wait(load(), Deadline :: integer()) ->
          {Log :: binary(), ok | killed | {failed, integer(), binary()}}.
wait(#{port := Port, os_pid := OsPid, log := File}, Deadline) ->
    How = ended(Port, OsPid, Deadline, <<>>),
    Log = case file:read_file(File) of
              {ok, Text} -> Text;
              {error, _} -> <<>>
          end,
    _ = file:delete(File),
    {Log, How}.

ended(Port, OsPid, Deadline, Said) ->
    receive
        {Port, {data, Data}} ->
            ended(Port, OsPid, Deadline, <<Said/binary, Data/binary>>);
        {Port, {exit_status, 0}} ->
            ok;
        {Port, {exit_status, Status}} ->
            {failed, Status, string:trim(Said)}
    after max(0, Deadline - fairnif_exp:now_ms()) ->
            %% Its number is its own as long as its end was not collected.
            _ = is_integer(OsPid) andalso os:cmd("kill -9 " ++ integer_to_list(OsPid)),
            receive
                {Port, {exit_status, _}} -> ok
            after 1000 ->
                    try port_close(Port) catch error:badarg -> true end
            end,
            flush(Port),
            killed
    end.

flush(Port) ->
    receive {Port, _} -> flush(Port) after 0 -> ok end.
