%% What a command line says, and its exit code.
-module(fairnif_check_said).

-include_lib("eunit/include/eunit.hrl").

-export([said/2, says/4, run/2, printed/1, contains/2]).

%% A text has each of these parts.
contains(Text, Parts) ->
    [?assertNotEqual({Part, nomatch}, {Part, string:find(Text, Part)}) || Part <- Parts].

%% What goes to standard output.
said(Module, Args) ->
    {0, Text} = printed(fun() -> Module:run(Args) end),
    Text.

%% What a fun returns, and what goes to standard output meanwhile.
printed(Fun) ->
    Leader = group_leader(),
    with_device(fun(Server) -> group_leader(Server, self()), Fun() end,
                fun() -> group_leader(Leader, self()) end).

%% A test: the command ends with that code and complains of that. The first that names an experiment
%% loads the whole checker, which takes seconds on a busy machine; a test that EUnit ends for its
%% time takes all that follow with it.
says(Module, Code, Args, Part) ->
    {timeout, 60,
     fun() ->
             {Got, Complaint} = run(Module, Args),
             ?assertEqual({Code, Complaint}, {Got, Complaint}),
             ?assertNotEqual({Complaint, nomatch}, {Complaint, string:find(Complaint, Part)})
     end}.

%% The exit code, and what went to standard error; standard output is eunit's.
run(Module, Args) ->
    Device = whereis(standard_error),
    unregister(standard_error),
    with_device(fun(Server) -> register(standard_error, Server), Module:run(Args) end,
                fun() -> unregister(standard_error), register(standard_error, Device) end).

with_device(Fun, After) ->
    Server = spawn_link(fun() -> device([]) end),
    try Fun(Server) of
        Value ->
            Server ! {text, self()},
            receive {Server, Text} -> {Value, Text} end
    after
        After(),
        unlink(Server),
        exit(Server, kill)
    end.

%% The least of an I/O server: it remembers.
device(Text) ->
    receive
        {text, From} ->
            From ! {self(), unicode:characters_to_list(lists:reverse(Text))},
            device(Text);
        {io_request, From, Ref, {put_chars, _, Chars}} ->
            From ! {io_reply, Ref, ok},
            device([Chars | Text]);
        {io_request, From, Ref, {put_chars, _, M, F, A}} ->
            From ! {io_reply, Ref, ok},
            device([apply(M, F, A) | Text]);
        {io_request, From, Ref, _} ->
            From ! {io_reply, Ref, ok},
            device(Text)
    end.
