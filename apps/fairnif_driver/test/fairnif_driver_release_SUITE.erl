%% Releases booted in embedded mode: one of fairnif alone, which has nothing of the port drivers,
%% and one with them.
-module(fairnif_driver_release_SUITE).

-export([all/0, suite/0, init_per_suite/1, end_per_suite/1]).
-export([who_does_not_use_drivers_does_not_load_them/1,
         a_release_with_drivers_boots_and_loads_the_library_at_first_use/1,
         the_ports_of_a_library_stay_when_the_module_comes_from_another_folder/1]).

-define(LIBRARY, "fairnif_driver.so").

suite() ->
    [{timetrap, {minutes, 15}}].

all() ->
    fairnif_test:cases(?MODULE).

init_per_suite(Config) ->
    ok = fairnif_test:build(),
    ok = fairnif_test_driver:build(),
    Config.

end_per_suite(_Config) ->
    ok.

%% The code path has them, and the runtime is loaded and used.
who_does_not_use_drivers_does_not_load_them(Config) ->
    Peer = boot(Config, "without", [fairnif]),
    #{functions := []} = call(Peer, fairnif, info, []),
    [] = call(Peer, fairnif, tasks, []),
    true = is_mapped(Peer, "fairnif.so"),
    false = is_mapped(Peer, ?LIBRARY),
    false = call(Peer, code, is_loaded, [fairnif_driver]),
    {ok, Runtime} = file:read_file(filename:join([code:priv_dir(fairnif), "fairnif.so"])),
    [nomatch = string:find(Runtime, Word)
     || Word <- [<<"fair_drv">>, <<"fairnif_driver">>, <<"driver_select">>]],
    fairnif_test:stop(Peer).

a_release_with_drivers_boots_and_loads_the_library_at_first_use(Config) ->
    Peer = boot(Config, "with", [fairnif, fairnif_driver]),
    embedded = call(Peer, code, get_mode, []),
    [] = [fairnif, fairnif_driver]
        -- [App || {App, _, _} <- call(Peer, application, which_applications, [])],
    false = is_mapped(Peer, ?LIBRARY),
    ok = call(Peer, fairnif_driver, load, [fairnif_test_driver:dir(), "fairnif_test_driver"]),
    true = is_mapped(Peer, ?LIBRARY),
    <<1>> = call(Peer, fairnif_test_driver, once, [1]),
    fairnif_test:stop(Peer).

%% Another file is another copy of the library, with no port in it.
the_ports_of_a_library_stay_when_the_module_comes_from_another_folder(Config) ->
    Peer = boot(Config, "other_folder", [fairnif, fairnif_driver]),
    {_, Port} = call(Peer, fairnif_test_driver, kept, []),
    Copy = filename:join(proplists:get_value(priv_dir, Config), "copy"),
    [begin
         To = filename:join([Copy, Dir, File]),
         ok = filelib:ensure_dir(To),
         {ok, _} = file:copy(filename:join([code:lib_dir(fairnif_driver), Dir, File]), To)
     end || {Dir, File} <- [{"ebin", "fairnif_driver.beam"}, {"priv", ?LIBRARY}]],
    true = call(Peer, code, add_patha, [filename:join(Copy, "ebin")]),
    {module, _} = call(Peer, code, load_file, [fairnif_driver]),
    <<1>> = call(Peer, fairnif_test_driver, put_off, [Port, 1]),
    true = is_mapped(Peer, "copy/priv/" ?LIBRARY),
    #{ports := 1, libraries := 1} = call(Peer, fairnif_driver, counts, []),
    true = call(Peer, code, soft_purge, [fairnif_driver]),
    <<0>> = call(Peer, fairnif_test_driver, put_off, [Port, 0]),
    fairnif_test:stop(Peer).

boot(Config, Name, Apps) ->
    Dir = proplists:get_value(priv_dir, Config),
    Release = filename:join(Dir, Name),
    Versions = [{App, vsn(App)} || App <- [kernel, stdlib, sasl | Apps]],
    Path = [filename:absname(filename:dirname(code:which(App)))
            || App <- [fairnif, fairnif_driver]],
    ok = file:write_file(Release ++ ".rel",
                         io_lib:format("~p.~n", [{release, {Name, "1"},
                                                  {erts, erlang:system_info(version)}, Versions}])),
    ok = systools:make_script(Release, [{path, Path}, {outdir, Dir}, local, no_warn_sasl]),
    {ok, Peer, _} = fairnif_check_peer:control(
                      group_leader(),
                      #{wait_boot => 300000,
                        args => ["-mode", "embedded", "-boot", Release, "+S", "2:2",
                                 "-sasl", "sasl_error_logger", "false"]
                        ++ fairnif_test_driver:erl_args()}),
    %% The tests' own modules are not part of the release.
    [{module, _} = call(Peer, code, load_abs, [filename:rootname(code:which(Module))])
     || Module <- [fairnif_test, fairnif_test_driver]],
    Peer.

vsn(App) ->
    _ = application:load(App),
    {ok, Vsn} = application:get_key(App, vsn),
    Vsn.

is_mapped(Peer, Name) ->
    {ok, Maps} = call(Peer, file, read_file, ["/proc/self/maps"]),
    string:find(Maps, "/" ++ Name) =/= nomatch.

call(Peer, Module, Function, Args) ->
    fairnif_test:call(Peer, Module, Function, Args).
