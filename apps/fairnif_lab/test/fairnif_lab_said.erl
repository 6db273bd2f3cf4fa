%% What a command line says, and its exit code.
-module(fairnif_lab_said).

-include_lib("eunit/include/eunit.hrl").

-export([said/2, says/4, run/2, contains/2]).

%% A text has each of these parts.
contains(Text, Parts) ->
    [?assertNotEqual({Part, nomatch}, {Part, string:find(Text, Part)}) || Part <- Parts].

%% What goes to standard output.
said(Module, Args) ->
    Leader = group_leader(),
    Server = spawn_link(fun() -> device([]) end),
    group_leader(Server, self()),
    try
        0 = Module:run(Args),
        Server ! {text, self()},
        receive {Server, Text} -> Text end
    after
        group_leader(Leader, self()),
        unlink(Server),
        exit(Server, kill)
    end.

%% A test: the command ends with that code and complains of that. The first that names an experiment
%% loads the whole lab, which takes seconds on a busy machine; a test that EUnit ends for its time
%% takes all that follow with it.
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
    Server = spawn_link(fun() -> device([]) end),
    register(standard_error, Server),
    try Module:run(Args) of
        Code ->
            Server ! {text, self()},
            receive {Server, Text} -> {Code, Text} end
    after
        unregister(standard_error),
        register(standard_error, Device),
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
