%% @doc A port driver whose control, call and outputv work for as long as is asked for,
%% where the VM calls them (`blocking'), or put off: to later turns of the port
%% (`normal'), or to a thread (`dirty_cpu', `dirty_io').
%%
%% Each function opens a port of its own, so its caller is the owner: when that dies,
%% the work is given up.
-module(driver_example).

-export([control/2, call/2, outputv/2]).

-export_type([form/0]).

-type form() :: blocking | normal | dirty_cpu | dirty_io.
-type us() :: 0..16#ffffffff.

%% @doc `Us' microseconds of work in the driver's control; what it came to.
-spec control(form(), us()) -> binary().
control(Form, Us) ->
    with_port(fun(Port) -> fairnif_driver:control(Port, number(Form), <<Us:32>>) end).

%% @doc The same in its call.
-spec call(form(), us()) -> binary().
call(Form, Us) ->
    with_port(fun(Port) -> fairnif_driver:call(Port, number(Form), <<Us:32>>) end).

%% @doc The same in its outputv, which answers by a message to the owner.
-spec outputv(form(), us()) -> binary().
outputv(Form, Us) ->
    with_port(fun(Port) ->
                      true = port_command(Port, <<(number(Form)), Us:32>>),
                      receive {Port, {done, Answer}} -> Answer end
              end).

number(blocking) -> 0;
number(normal) -> 1;
number(dirty_cpu) -> 2;
number(dirty_io) -> 3;
number(_) -> error(badarg).

with_port(Fun) ->
    Port = open(),
    try
        Fun(Port)
    after
        true = port_close(Port)
    end.

open() ->
    try
        open_port({spawn_driver, "driver_example"}, [binary])
    catch
        error:badarg ->
            load(),
            open_port({spawn_driver, "driver_example"}, [binary])
    end.

%% A driver is unloaded when all who loaded it are dead. The first caller has it loaded by a
%% process that stays; two that come at once load it twice, which does no harm.
load() ->
    {Loader, Monitor} = spawn_monitor(fun() ->
                                              keep(fairnif_driver:load(dir(), "driver_example")),
                                              receive {loaded, From} -> From ! {self(), loaded} end,
                                              receive stop -> ok end
                                      end),
    Loader ! {loaded, self()},
    receive
        {Loader, loaded} -> true = erlang:demonitor(Monitor, [flush]);
        {'DOWN', Monitor, process, Loader, Reason} -> error(Reason)
    end.

keep(ok) -> ok;
keep({error, Reason}) -> exit({load_driver, Reason}).

dir() ->
    filename:dirname(fairnif:path(?MODULE)).
