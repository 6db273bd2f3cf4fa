%% Says what is being done while it takes long: one line that is overwritten on a terminal, plain
%% lines elsewhere.  Always on standard error, so that standard output holds the result alone.
%%
%% bin/fairnif sets FAIRNIF_STDERR=terminal when standard error is one: the VM
%% cannot tell without a shell.
-module(fairnif_check_progress).

-export([start/1, none/0, step/2, note/2, stop/1, line/4]).

-export_type([progress/0]).

-opaque progress() :: none | {terminal | plain, Total :: pos_integer(),
                              Done :: counters:counters_ref()}.

%% @doc A progress of `Total' steps.
-spec start(pos_integer()) -> progress().
start(Total) ->
    Kind = case os:getenv("FAIRNIF_STDERR") of
               "terminal" -> terminal;
               _ -> plain
           end,
    {Kind, Total, counters:new(1, [])}.

%% @doc A progress that says nothing (tests, a program that only wants the result).
-spec none() -> progress().
none() ->
    none.

%% @doc Begins the next step and says what it is.
-spec step(progress(), unicode:chardata()) -> ok.
step(none, _) ->
    ok;
step({Kind, Total, Done}, Text) ->
    counters:add(Done, 1, 1),
    io:put_chars(standard_error,
                 line(Kind, counters:get(Done, 1), Total, Text)).

%% @doc Says something else, which stays.
-spec note(progress(), unicode:chardata()) -> ok.
note(none, _) ->
    ok;
note({terminal, _, _}, Text) ->
    io:put_chars(standard_error, ["\r\e[K", Text, $\n]);
note({plain, _, _}, Text) ->
    io:put_chars(standard_error, [Text, $\n]).

%% @doc Takes the line off the terminal, so that what follows stands clean.
-spec stop(progress()) -> ok.
stop({terminal, _, _}) ->
    io:put_chars(standard_error, "\r\e[K");
stop(_) ->
    ok.

%% @private What one step writes.  On a terminal the line begins by erasing
%% the one before and stays within 79 columns: a wrapped line cannot be erased.
-spec line(terminal | plain, pos_integer(), pos_integer(),
           unicode:chardata()) -> unicode:chardata().
line(terminal, N, Total, Text) ->
    ["\r\e[K", string:slice(line_text(N, Total, Text), 0, 79)];
line(plain, N, Total, Text) ->
    [line_text(N, Total, Text), $\n].

line_text(N, Total, Text) ->
    io_lib:format("[~*b/~b] ~ts",
                  [length(integer_to_list(Total)), N, Total, Text]).
