%% tty on a real pseudo-terminal: the test is the user at its other end, by the port program pty.c.
-module(tty_tests).

-include_lib("eunit/include/eunit.hrl").

-import(example_test, [eventually/1, async/1, fds/0]).

all_test_() ->
    {setup, fun build/0,
     fun(Program) ->
             {timeout, 120, [{atom_to_list(Name), fun() -> with_terminal(Program, Test) end}
                             || {Name, Test} <- tests()]}
     end}.

tests() ->
    [{a_line_comes_when_enter_is_pressed, fun line/1},
     {what_the_user_erased_does_not_come, fun erased/1},
     {lines_typed_at_once_come_one_by_one, fun lines/1},
     {control_d_is_the_end_of_input, fun end_of_input/1},
     {a_time_out_loses_nothing, fun timeout/1},
     {a_secret_is_not_shown, fun secret/1},
     {a_caller_killed_at_a_secret_leaves_a_terminal_that_shows_what_is_typed, fun killed/1},
     {the_window_has_the_size_it_has_now, fun window/1},
     {what_is_written_is_shown, fun written/1},
     {a_terminal_that_takes_nothing_is_waited_for, fun stopped/1},
     {a_hang_up_ends_the_wait, fun hang_up/1},
     {closing_ends_the_wait, fun closing/1},
     {a_second_reader_gets_ebusy, fun second/1},
     {a_file_that_is_no_terminal_is_refused, fun no_terminal/1}].

line({User, Tty}) ->
    Reading = async(fun() -> tty:read_line(Tty) end),
    type(User, "hel"),
    ?assertEqual(nothing, result(Reading, 50)),
    type(User, "lo\n"),
    ?assertEqual({ok, <<"hello\n">>}, result(Reading, 5000)),
    shown(User, <<"hello\r\n">>).

erased({User, Tty}) ->
    type(User, "helk\177lo\n"),                 % Backspace
    ?assertEqual({ok, <<"hello\n">>}, tty:read_line(Tty, 5000)),
    type(User, "wrong\025right\n"),              % Ctrl-U
    ?assertEqual({ok, <<"right\n">>}, tty:read_line(Tty, 5000)).

lines({User, Tty}) ->
    type(User, "one\ntwo\n\nfour\n"),
    ?assertEqual([{ok, <<"one\n">>}, {ok, <<"two\n">>}, {ok, <<"\n">>}, {ok, <<"four\n">>}],
                 [tty:read_line(Tty, 5000) || _ <- [1, 2, 3, 4]]).

end_of_input({User, Tty}) ->
    Reading = async(fun() -> tty:read_line(Tty) end),
    type(User, "\004"),
    ?assertEqual(eof, result(Reading, 5000)),
    %% It is not the end of the terminal.
    type(User, "more\004"),
    ?assertEqual({ok, <<"more">>}, tty:read_line(Tty, 5000)).

timeout({User, Tty}) ->
    ?assertEqual({error, timeout}, tty:read_line(Tty, 0)),
    type(User, "be"),
    ?assertEqual({error, timeout}, tty:read_line(Tty, 50)),
    type(User, "gun\n"),
    ?assertEqual({ok, <<"begun\n">>}, tty:read_line(Tty, 5000)).

secret({User, Tty}) ->
    Reading = async(fun() -> tty:read_secret(Tty) end),
    type(User, "xyzzy\n"),
    ?assertEqual({ok, <<"xyzzy\n">>}, result(Reading, 5000)),
    type(User, "open\n"),
    ?assertEqual({ok, <<"open\n">>}, tty:read_line(Tty, 5000)),
    shown(User, <<"open\r\n">>).

killed({User, Tty}) ->
    {Pid, Monitor} = async(fun() -> tty:read_secret(Tty) end),
    exit(Pid, kill),
    receive {'DOWN', Monitor, process, _, killed} -> ok end,
    eventually(fun() -> [] =:= fairnif:tasks() end),
    type(User, "seen\n"),
    ?assertEqual({ok, <<"seen\n">>}, tty:read_line(Tty, 5000)),
    shown(User, <<"seen\r\n">>).

window({User, Tty}) ->
    [begin
         User ! {self(), {command, <<"s", Columns:16, Rows:16>>}},
         eventually(fun() -> tty:size(Tty) =:= {ok, {Columns, Rows}} end)
     end || {Columns, Rows} <- [{80, 24}, {132, 43}, {1, 1}]].

written({User, Tty}) ->
    ok = tty:write(Tty, ["Name", [$:, <<" ">>]]),
    shown(User, <<"Name: ">>).

%% Ctrl-S and Ctrl-Q.
stopped({User, Tty}) ->
    type(User, "\023"),
    eventually(fun() -> tty:write(Tty, <<"x">>, 10) =:= {error, timeout} end),
    Writing = async(fun() -> tty:write(Tty, <<"done">>) end),
    type(User, "\021"),
    ?assertEqual(ok, result(Writing, 5000)).

hang_up({User, Tty}) ->
    Reading = async(fun() -> tty:read_line(Tty) end),
    User ! {self(), {command, <<"x">>}},
    ?assert(lists:member(result(Reading, 5000), [eof, {error, closed}])),
    ?assertEqual({error, closed}, tty:write(Tty, <<"is anybody there?">>)).

closing({_User, Tty}) ->
    Reading = async(fun() -> tty:read_line(Tty) end),
    ok = tty:close(Tty),
    ?assertEqual({error, closed}, result(Reading, 5000)),
    ?assertEqual({error, closed}, tty:size(Tty)).

second({User, Tty}) ->
    Reading = async(fun() -> tty:read_line(Tty) end),
    ?assertEqual({error, ebusy}, tty:read_line(Tty)),
    type(User, "first\n"),
    ?assertEqual({ok, <<"first\n">>}, result(Reading, 5000)).

no_terminal(_) ->
    ?assertEqual({error, enotty}, tty:open("/dev/null")),
    ?assertEqual({error, enoent}, tty:open("/dev/no_such_terminal")),
    ?assertError(badarg, tty:open("/dev/with\0zero")).

%% -- the user ------------------------------------------------------------------

build() ->
    Source = filename:join(filename:dirname(proplists:get_value(source, module_info(compile))),
                           "pty.c"),
    Program = filename:absname(filename:join(filename:dirname(code:which(?MODULE)), "pty")),
    "" = os:cmd("${CC:-cc} -Wall -Wextra -o '" ++ Program ++ "' '" ++ Source ++ "'"),
    Program.

with_terminal(Program, Test) ->
    User = open_port({spawn_executable, Program}, [{packet, 2}, binary]),
    Name = receive {User, {data, Bytes}} -> Bytes end,
    Fds = fds(),
    {ok, Tty} = tty:open(Name),
    Test({User, Tty}),
    ok = tty:close(Tty),
    eventually(fun() -> fds() =:= Fds end),
    port_close(User),
    ok.

type(User, Keys) ->
    User ! {self(), {command, [<<"w">>, Keys]}}.

%% Nothing else was.
shown(User, Bytes) ->
    shown(User, Bytes, <<>>).

shown(_User, Bytes, Bytes) ->
    ok;
shown(User, Bytes, Sofar) ->
    receive {User, {data, More}} -> shown(User, Bytes, <<Sofar/binary, More/binary>>)
    after 5000 -> ?assertEqual(Bytes, Sofar)
    end.

%% -- helpers -------------------------------------------------------------------

result({_Pid, Monitor}, Ms) ->
    receive {'DOWN', Monitor, process, _, {result, Result}} -> Result
    after Ms -> nothing
    end.
