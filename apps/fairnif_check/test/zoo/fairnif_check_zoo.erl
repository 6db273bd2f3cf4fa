%% The proof of the verdicts: checks every function of the zoo and scores what is said of it.
%%
%%     make test-verdicts [RUNS=10] [ROWS=long_block,segv] [LOAD=2]
%%
%% LOAD is a number of busy loops beside it: what they disturb may stay open, and be wrong never.
%%
%% A module of its own, since fairnif_zoo cannot be loaded before its library is built.
-module(fairnif_check_zoo).

-export([main/0, build/0, paths/0, check/2, rows/1, busy_loops/1]).

-define(TIME_MS, 500).

%% @doc What `make test-verdicts' runs: prints the score and ends the node, with 1 when a verdict
%% was wrong.
main() ->
    ok = io:setopts([{encoding, unicode}]),
    Runs = number("RUNS", 10),
    Opts = #{time_ms => number("TIME_MS", ?TIME_MS)},
    Rows = rows(string:lexemes(os:getenv("ROWS", ""), ", ")),
    ok = build(),
    Load = number("LOAD", 0),
    _ = busy_loops(Load),
    Progress = fairnif_check_progress:start(Runs * length(Rows)),
    Findings = [begin
                    fairnif_check_progress:step(Progress, io_lib:format("run ~b, ~s", [Run, Name])),
                    fairnif_zoo_score:judge(Row, Run, check(Row, Opts))
                end || Run <- lists:seq(1, Runs), #{name := Name} = Row <- Rows],
    fairnif_check_progress:stop(Progress),
    All = lists:append(Findings),
    io:put_chars([io_lib:format("~b functions, ~b runs of ~b ms beside ~b busy loops; ~ts~n",
                                [length(Rows), Runs, maps:get(time_ms, Opts), Load, context()]),
                  fairnif_zoo_score:format(All)]),
    halt(case fairnif_zoo_score:wrong(All) of [] -> 0; _ -> 1 end).

%% @doc Each a process of the operating system that ends when this node does.
busy_loops(Count) ->
    Loop = "while kill -0 " ++ os:getpid() ++ " 2>/dev/null; do :; done",
    [open_port({spawn_executable, "/bin/sh"}, [{args, ["-c", Loop]}])
     || _ <- lists:seq(1, Count)].

context() ->
    #{processor := Processor, logical_processors := Count, otp := Otp, date := Date} =
        fairnif_check_machine:context(),
    io_lib:format("~ts, ~b logical processors, OTP ~ts, ~ts", [Processor, Count, Otp, Date]).

%% @doc The rows with these names; all of them for none.
rows([]) ->
    fairnif_zoo_table:rows();
rows(Names) ->
    All = fairnif_zoo_table:rows(),
    Known = [atom_to_list(Name) || #{name := Name} <- All],
    [] =:= Names -- Known orelse error({not_in_the_zoo, Names -- Known}),
    [Row || #{name := Name} = Row <- All, lists:member(atom_to_list(Name), Names)].

%% @doc What the checker says of one row's function, by property.
check(#{expression := Expression, sizes := Sizes, init := Init, options := More}, Opts) ->
    Inits = case Init of undefined -> #{}; Text -> #{init => Text} end,
    fairnif_zoo_score:observed(
      fairnif_check_run:run(Expression, maps:merge(maps:merge(#{sizes => Sizes}, Inits),
                                                   maps:merge(More, Opts)))).

%% @doc Makes the libraries; takes no time when they are there.
build() ->
    Command = lists:flatten(
                io_lib:format("make -s -j~b -C '~ts' OUT='~ts' FAIRNIF_INCLUDE_DIR='~ts' "
                              "ERTS_INCLUDE_DIR='~ts/usr/include' 2>&1 && echo built",
                              [erlang:system_info(schedulers), source_dir(),
                               filename:join(dir(), "nifs"),
                               filename:absname(fairnif:include_dir()), code:root_dir()])),
    Output = os:cmd(Command),
    case string:find(Output, "built", trailing) of
        "built" ++ _ -> ok;
        _ -> error({make, Command, Output})
    end.

%% @doc What the code path of a node needs to call the zoo.
paths() ->
    [dir(), filename:absname(filename:dirname(code:which(fairnif)))].

dir() ->
    filename:absname(filename:dirname(code:which(?MODULE))).

%% rebar3 compiles a test from here or from a copy.
source_dir() ->
    Source = proplists:get_value(source, ?MODULE:module_info(compile)),
    Candidates = [filename:dirname(Source),
                  filename:join(fairnif:include_dir(), "../../fairnif_check/test/zoo")],
    [Dir | _] = [Dir || Dir <- Candidates, filelib:is_file(filename:join(Dir, "zoo.h"))],
    Dir.

number(Name, Default) ->
    case os:getenv(Name, "") of
        "" -> Default;
        Text -> list_to_integer(Text)
    end.
