%% What a node of this machine does that does not answer: what `bin/fairnif stacks' sees of it from
%% outside, without its help.
%%
%% A process of its own for each such node, since a look takes a second or more.
-module(fairnif_watch_outside).

-export([start/1, stop/1]).

-define(EVERY_MS, 5000).
%% No look takes as long; one that does is the last.
-define(LIMIT_MS, 60000).
%% The verdict comes first. Of the rest no more than this is kept, bytes.
-define(KEPT, 4096).

%% @doc Looks now and every five seconds, until it is stopped or the caller ends. The caller is sent
%% `{fairnif_watch_outside, Looker, Node, Sentences}' each time; never where the node is of another
%% machine, since one here could have its name.
-spec start(node()) -> pid().
start(Node) ->
    To = self(),
    spawn(fun() ->
                  Program = filename:join(code:priv_dir(fairnif_watch), "fairnif_stacks"),
                  case filelib:is_regular(Program) andalso is_here(Node) of
                      true -> looks(Program, Node, To, erlang:monitor(process, To));
                      false -> ok
                  end
          end).

%% @doc Ends it. A program that it runs ends by itself.
-spec stop(pid()) -> ok.
stop(Looker) ->
    true = exit(Looker, kill),
    ok.

is_here(Node) ->
    [_, Host] = string:split(atom_to_list(Node), "@"),
    {ok, Interfaces} = inet:getifaddrs(),
    Own = [Address || {_, Has} <- Interfaces, {addr, Address} <- Has],
    lists:any(fun({127, _, _, _}) -> true;
                 (Address) -> lists:member(Address, Own)
              end, fairnif_watch_connect:inet_addresses(Host)).

looks(Program, Node, To, Owner) ->
    Args = ["--name", atom_to_list(Node)],
    Ended = try open_port({spawn_executable, Program},
                          [{args, Args}, exit_status, stderr_to_stdout, binary]) of
                Port -> ended(Port, Owner, <<>>)
            catch
                error:Why -> {3, iolist_to_binary(io_lib:format("fairnif: ~tp", [Why]))}
            end,
    case Ended of
        none -> ok;
        late -> say([<<"not seen from outside: the program does not end">>], Node, To);
        {Code, Text} ->
            say(sentences(Code, Text), Node, To),
            receive {'DOWN', Owner, process, _, _} -> ok
            after ?EVERY_MS -> looks(Program, Node, To, Owner)
            end
    end.

say(Sentences, Node, To) ->
    To ! {?MODULE, self(), Node, Sentences},
    ok.

ended(Port, Owner, Text) ->
    receive
        {Port, {data, Data}} -> ended(Port, Owner, kept(<<Text/binary, Data/binary>>));
        {Port, {exit_status, Code}} -> {Code, Text};
        {'DOWN', Owner, process, _, _} -> none
    after ?LIMIT_MS -> late
    end.

kept(<<Text:?KEPT/binary, _/binary>>) -> Text;
kept(Text) -> Text.

%% In front of the first empty line; or why it sees nothing.
sentences(Code, Text) when Code =:= 0; Code =:= 1 ->
    [Verdict | _] = binary:split(Text, <<"\n\n">>),
    binary:split(Verdict, <<"\n">>, [global, trim_all]);
sentences(3, <<"fairnif: ", Text/binary>>) ->
    [Why | _] = binary:split(Text, <<"\n">>),
    [<<"not seen from outside: ", Why/binary>>];
sentences(Code, _) ->
    [iolist_to_binary(io_lib:format("not seen from outside: the program ended with ~b", [Code]))].
