%% The same echo in every way that Erlang has to reach code, as a table: how to open a form, how to
%% send bytes there and have them back, how to close it.
%%
%% The process that opens a form is the one that uses and closes it: ports and sockets are its own.
-module(echo).

-export([forms/0, flags/0, with/2]).

-export_type([form/0, isolation/0]).

%% `shared': it lives in the VM, and takes it along when it crashes. `process': a program of its
%% own beside the VM. `network': as well on another machine.
-type isolation() :: shared | process | network.
%% What `open' returns goes to the others; with it, the operating system's numbers of the
%% processes that were started. `published_us': the published order of magnitude, us, where
%% there is one.
-type form() :: #{form := atom(), title := string(), isolation := isolation(),
                  published_us := number() | undefined,
                  open := fun(() -> {ok, State :: term(), [non_neg_integer()]}
                                        | {left_out, string()}),
                  echo := fun((State :: term(), binary()) -> binary()),
                  close := fun((State :: term()) -> ok)}.

%% @doc All forms, in the order of a table. Those that are nodes need flags/0.
-spec forms() -> [form()].
forms() ->
    [in_vm(bif, "BIF", undefined, fun(_, Bin) -> iolist_to_binary(Bin) end),
     in_vm(nif, "NIF", 0.1, fun(_, Bin) -> echo_nif:nif(Bin) end),
     in_vm(rescheduled, "NIF, rescheduled once", undefined,
           fun(_, Bin) -> echo_nif:rescheduled(Bin) end),
     in_vm(dirty_cpu, "NIF, dirty CPU scheduler", undefined,
           fun(_, Bin) -> echo_nif:dirty_cpu(Bin) end),
     in_vm(dirty_io, "NIF, dirty I/O scheduler", undefined,
           fun(_, Bin) -> echo_nif:dirty_io(Bin) end),
     in_vm(fair_auto, "fairnif, AUTO", undefined, fun(_, Bin) -> echo_fair:fair_auto(Bin) end),
     in_vm(fair_threaded, "fairnif, THREADED", undefined,
           fun(_, Bin) -> echo_fair:fair_threaded(Bin) end),
     process(native_process, "native process", fun echo_fair:start_process/0),
     process(gen_server, "gen_server", fun echo_gen_server:start_link/0),
     in_vm(thread, "NIF, a thread per call", undefined, fun(_, Bin) -> echo_thread:echo(Bin) end),
     driver(driver_control, "driver, control", fun echo_driver:control/2),
     driver(driver_call, "driver, call", fun echo_driver:call/2),
     driver(driver_outputv, "driver, outputv", fun echo_driver:outputv/2),
     #{form => port, title => "port program", isolation => process, published_us => 100,
       open => fun() ->
                       Port = echo_program:open_port_program(),
                       {ok, Port, [echo_program:os_pid(Port)]}
               end,
       echo => fun echo_program:port/2, close => fun echo_program:stop/1},
     node(c_node, "C node", fun echo_dist:open_c/0),
     socket(tcp, "TCP, C server", fun echo_program:open_tcp/0, fun echo_program:tcp/2),
     socket(udp, "UDP, C server", fun echo_program:open_udp/0, fun echo_program:udp/2),
     #{form => erlang_node, title => "Erlang node", isolation => network, published_us => 100,
       open => fun() ->
                       {State, OsPid} = echo_dist:open_erlang(),
                       {ok, State, [OsPid]}
               end,
       echo => fun({Echo, _, _}, Bin) -> echo_dist:echo(Echo, Bin) end,
       close => fun echo_dist:close_erlang/1},
     node(jinterface, "Java node, Jinterface",
          fun() ->
                  case echo_dist:java() of
                      {ok, _, _} -> echo_dist:open_java();
                      {left_out, _} = LeftOut -> LeftOut
                  end
          end)].

%% @doc The emulator flags of a node that is to open them all.
-spec flags() -> [string()].
flags() ->
    echo_dist:flags().

%% @doc Fun is called with a function that sends bytes there and back through a form that is open
%% meanwhile, and with the numbers of its processes. What cannot be had here is `{left_out, Why}'.
-spec with(atom(), fun((fun((binary()) -> binary()), [non_neg_integer()]) -> Result)) ->
          Result | {left_out, string()}.
with(Name, Fun) ->
    [#{open := Open, echo := Echo, close := Close}] = [F || #{form := N} = F <- forms(),
                                                            N =:= Name],
    case Open() of
        {ok, State, OsPids} ->
            try Fun(fun(Bin) -> Echo(State, Bin) end, OsPids)
            after Close(State)
            end;
        {left_out, _} = LeftOut ->
            LeftOut
    end.

in_vm(Form, Title, Published, Echo) ->
    #{form => Form, title => Title, isolation => shared, published_us => Published,
      open => fun() -> {ok, none, []} end, echo => Echo, close => fun(_) -> ok end}.

process(Form, Title, Start) ->
    #{form => Form, title => Title, isolation => shared, published_us => undefined,
      open => fun() -> {ok, Pid} = Start(), {ok, Pid, []} end,
      echo => fun(Pid, Bin) -> gen_server:call(Pid, Bin, infinity) end,
      close => fun gen_server:stop/1}.

driver(Form, Title, Echo) ->
    #{form => Form, title => Title, isolation => shared, published_us => 10,
      open => fun() -> {ok, echo_driver:open(), []} end, echo => Echo,
      close => fun echo_driver:close/1}.

node(Form, Title, Open) ->
    #{form => Form, title => Title, isolation => network, published_us => 100,
      open => fun() ->
                      case Open() of
                          {left_out, _} = LeftOut -> LeftOut;
                          {_, _, Port} = State -> {ok, State, [echo_program:os_pid(Port)]}
                      end
              end,
      echo => fun({Remote, _, _}, Bin) -> echo_dist:echo(Remote, Bin) end,
      close => fun echo_dist:close_program/1}.

socket(Form, Title, Open, Echo) ->
    #{form => Form, title => Title, isolation => network, published_us => undefined,
      open => fun() ->
                      {_, _, Port} = State = Open(),
                      {ok, State, [echo_program:os_pid(Port)]}
              end,
      echo => Echo, close => fun echo_program:close_socket/1}.
