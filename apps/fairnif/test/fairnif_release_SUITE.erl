%% fairnif in a release: booted in embedded mode with an author's application (`fairrel', made here
%% in two versions), upgraded; and libraries that do not fit the runtime.
-module(fairnif_release_SUITE).

-export([all/0, suite/0, init_per_suite/1, end_per_suite/1]).
-export([a_release_boots_in_embedded_mode_with_an_authors_on_load/1,
         an_application_is_upgraded_under_its_suspended_tasks/1,
         a_library_of_another_interface_does_not_load_and_says_why/1,
         a_library_works_with_the_next_minor_version_of_the_runtime/1,
         a_bad_entry_does_not_load_and_says_why/1]).

suite() ->
    [{timetrap, {minutes, 15}}].

all() ->
    fairnif_test:cases(?MODULE).

init_per_suite(Config) ->
    ok = fairnif_test:build(),
    Dir = proplists:get_value(priv_dir, Config),
    [make_application(Dir, Version) || Version <- ["1", "2"]],
    make_release(Dir),
    Config.

end_per_suite(_Config) ->
    ok.

%% -- the release -------------------------------------------------------------

a_release_boots_in_embedded_mode_with_an_authors_on_load(Config) ->
    Peer = boot(Config),
    embedded = call(Peer, code, get_mode, []),
    Started = [App || {App, _, _} <- call(Peer, application, which_applications, [])],
    [] = [kernel, stdlib, sasl, fairrel, fairnif] -- Started,
    {1, Yields} = call(Peer, fairrel, count, [20000]),
    true = Yields > 0,
    {1, _} = call(Peer, fairrel, count_dirty, [20000]),
    #{calls := 1} = call(Peer, fairnif, info, [{fairrel, count, 1}]),
    #{slice_ns := 123000, dirty_slice_ns := 2345000} = call(Peer, fairnif, info, []),
    fairnif_test:stop(Peer).

an_application_is_upgraded_under_its_suspended_tasks(Config) ->
    Peer = boot(Config),
    Tasks = start_tasks(Peer, 3000000),
    New = filename:join([proplists:get_value(priv_dir, Config), "lib", "fairrel-2"]),
    %% It names the modules whose old code is still in use.
    {ok, [{fairrel, soft_purge}]} = call(Peer, release_handler, upgrade_app, [fairrel, New]),
    {2, _} = call(Peer, fairrel, count, [1000]),
    {2, _} = call(Peer, fairrel, count_dirty, [1000]),
    [{1, _} = answer(Peer, Task) || Task <- Tasks],
    fairnif_test:eventually(fun() -> call(Peer, fairnif, tasks, []) =:= [] end),
    true = call(Peer, code, soft_purge, [fairrel]),
    {2, _} = call(Peer, fairrel, count, [1000]),
    fairnif_test:eventually(fun() -> not is_mapped(Peer, "fairrel-1") end),
    true = is_mapped(Peer, "fairrel-2"),
    fairnif_test:stop(Peer).

%% One on a normal scheduler, one on a dirty one, both seen at work and with pauses. Where others
%% have the processors one may be over before the other begins: then longer ones.
start_tasks(Peer, Us) ->
    Tasks = [call(Peer, fairrel, start, [Function, Us]) || Function <- [count, count_dirty]],
    case both_seen(Peer, erlang:monotonic_time(microsecond) + Us) of
        true ->
            Tasks;
        false ->
            _ = [answer(Peer, Task) || Task <- Tasks],
            start_tasks(Peer, 2 * Us)
    end.

both_seen(Peer, Until) ->
    length([1 || #{yields := N} <- call(Peer, fairnif, tasks, []), N > 0]) =:= 2
        orelse erlang:monotonic_time(microsecond) < Until andalso both_seen(Peer, Until).

answer(Peer, Task) ->
    call(Peer, fairrel, answer, [Task]).

is_mapped(Peer, Name) ->
    {ok, Maps} = call(Peer, file, read_file, ["/proc/self/maps"]),
    string:find(Maps, Name) =/= nomatch.

call(Peer, Module, Function, Args) ->
    fairnif_test:call(Peer, Module, Function, Args).

boot(Config) ->
    Dir = proplists:get_value(priv_dir, Config),
    {ok, Peer, _} = fairnif_check_peer:control(
                      group_leader(),
                      #{wait_boot => 300000,
                        args => ["-mode", "embedded", "-boot", filename:join(Dir, "release"),
                                 "-config", filename:join(Dir, "sys"), "+S", "2:2"]}),
    Peer.

%% -- making it ---------------------------------------------------------------

make_application(Dir, Version) ->
    Lib = filename:join([Dir, "lib", "fairrel-" ++ Version]),
    Source = filename:join([Lib, "src", "fairrel.erl"]),
    [ok = filelib:ensure_dir(filename:join([Lib, Sub, "x"])) || Sub <- ["ebin", "priv", "src"]],
    ok = file:write_file(Source, source()),
    {ok, fairrel} = compile:file(Source, [{outdir, filename:join(Lib, "ebin")}]),
    {ok, _} = file:copy(fairnif_test:library(list_to_atom("fairrel_" ++ Version)) ++ ".so",
                        filename:join([Lib, "priv", "fairrel.so"])),
    write_term(filename:join([Lib, "ebin", "fairrel.app"]),
               {application, fairrel, [{description, "an author's"}, {vsn, Version},
                                       {modules, [fairrel]}, {registered, []},
                                       {applications, [kernel, stdlib, fairnif]}]}),
    Load = [{load_module, fairrel, soft_purge, soft_purge, []}],
    write_term(filename:join([Lib, "ebin", "fairrel.appup"]), {"2", [{"1", Load}], [{"1", Load}]}).

source() ->
    "-module(fairrel).\n"
    "-export([count/1, count_dirty/1, start/2, answer/1]).\n"
    "-on_load(init/0).\n"
    "init() -> fairnif:loaded(erlang:load_nif(fairnif:path(?MODULE), fairnif:load_info())).\n"
    "count(_) -> erlang:nif_error(not_loaded).\n"
    "count_dirty(_) -> erlang:nif_error(not_loaded).\n"
    "start(F, Us) ->\n"
    "    spawn(fun() -> R = apply(fairrel, F, [Us]),\n"
    "                   receive {answer, To} -> To ! {self(), R} end\n"
    "          end).\n"
    "answer(Pid) -> Pid ! {answer, self()}, receive {Pid, R} -> R after 240000 -> none end.\n".

make_release(Dir) ->
    Versions = [{App, vsn(App)} || App <- [kernel, stdlib, sasl, fairnif]],
    write_term(filename:join(Dir, "release.rel"),
               {release, {"release", "1"}, {erts, erlang:system_info(version)},
                Versions ++ [{fairrel, "1"}]}),
    write_term(filename:join(Dir, "sys.config"),
               [{fairnif, [{slice_us, 123}, {dirty_slice_us, 2345}]},
                {sasl, [{sasl_error_logger, false}]}]),
    Path = [filename:join([Dir, "lib", "fairrel-1", "ebin"]),
            filename:absname(filename:dirname(code:which(fairnif)))],
    case systools:make_script(filename:join(Dir, "release"),
                              [{path, Path}, {outdir, Dir}, local, silent, no_warn_sasl]) of
        {ok, _, _} -> ok;
        ok -> ok
    end.

vsn(App) ->
    _ = application:load(App),
    {ok, Vsn} = application:get_key(App, vsn),
    Vsn.

write_term(File, Term) ->
    ok = file:write_file(File, io_lib:format("~p.~n", [Term])).

%% -- libraries that do not fit -----------------------------------------------

a_library_of_another_interface_does_not_load_and_says_why(_) ->
    {"ok", _} = refused(good),
    [begin
         {Result, Output} = refused(Case),
         expect(Result, ["{error,{load,", "4703"]),
         expect(Output, ["fairnif_test_refused was compiled with fairnif.h of interface " ++ Theirs,
                         "the loaded runtime has 3.", "compile it again"])
     end || {Case, Theirs} <- [{other_abi, "99."}, {newer_minor, "3.99"}]],
    {Result, Output} = refused(interface_2),
    expect(Result, ["{error,{load,", "4703"]),
    expect(Output, ["a fairnif.h that this runtime does not know", "compile it again"]).

%% The library was compiled with the header of this version, options and all; the runtime has a
%% larger table and larger options. Every body gives the same answers, also when it pauses.
a_library_works_with_the_next_minor_version_of_the_runtime(_) ->
    Next = fairnif_test:library(next_minor),
    Ebin = filename:join(Next, "ebin"),
    Here = filename:dirname(code:which(fairnif)),
    ok = filelib:ensure_path(Ebin),
    [{ok, _} = file:copy(filename:join(Here, File), filename:join(Ebin, File))
     || File <- filelib:wildcard("*.{beam,app}", Here)],
    Peer = fairnif_test:peer(["-pa", Ebin]),
    #{interface := {3, 99}} = call(Peer, fairnif, info, []),
    true = lists:prefix(Next, call(Peer, fairnif, path, [fairnif])),
    [] = call(Peer, fairnif_test_cases, wrong, [[yielding, yielding_dirty, auto]]),
    ok = call(Peer, fairnif_test_interface_3, check, []),
    fairnif_test:stop(Peer).

a_bad_entry_does_not_load_and_says_why(_) ->
    [begin
         {Result, Output} = refused(Case),
         expect(Result, ["{error,{load,", "4704"]),
         expect(Output, ["fairnif_test_refused:f/0", Why])
     end || {Case, Why} <- [{bad_mode, "unknown mode 13"}, {big_stack, "asks for a stack of"},
                            {small_stack, "asks for a stack of 100 bytes"},
                            {long_slice, "asks for slices of 1000001 us"}, {no_body, "no body"}]].

%% What load_nif returned, and all that was printed. The function is then what it was before.
refused(Case) ->
    Erl = lists:flatten(lists:join($ , ["erl", "-noshell" | fairnif_test:erl_args()])),
    Eval = "R = fairnif_test_refused:load(" ++ atom_to_list(Case) ++ ", fairnif:load_info()), "
        "F = try fairnif_test_refused:f() catch error:E -> E end, "
        "timer:sleep(100), io:format(\"~nresult: ~0p ~0p~n\", [R, F])",
    Output = os:cmd(Erl ++ " -eval '" ++ Eval ++ "' -s erlang halt 2>&1"),
    ct:log("~p:~n~ts", [Case, Output]),
    {match, [Result, F]} = re:run(Output, "^result: (.*) (\\S+)$",
                                  [multiline, {capture, all_but_first, list}]),
    case Case of
        good -> F = "ok";
        _ -> expect(Output, ["not_loaded"])
    end,
    {Result, Output}.

expect(Text, Words) ->
    [] = [{Word, not_in, Text} || Word <- Words, string:find(Text, Word) =:= nomatch].
