defmodule Fairnif.ProcessTest do
  # Names and what is logged are the whole node's.
  use ExUnit.Case, async: false

  @module Fairnif.TestProcess

  setup_all do
    source = File.read!(Path.join(__DIR__, "process.c"))
    Fairnif.Probe.build(@module, "fairnif/test_process", source)

    Fairnif.Probe.compile("""
    defmodule #{inspect(@module)} do
      use Fairnif, otp_app: :fairnif
      use Fairnif.Process, restart: :transient, shutdown: 100
      def start_link(options), do: Fairnif.Process.start_link(&__MODULE__.counter/1, [5], options)
      defnif counter(first)
    end
    """)

    :ok
  end

  # Compiled as the tests run: the compiler of this file cannot know them.
  defp counter, do: Function.capture(@module, :counter, 1)

  test "is linked and serves calls and casts" do
    {:ok, pid} = Fairnif.Process.start_link(counter(), [41])
    assert {:links, links} = Process.info(self(), :links)
    assert pid in links
    assert GenServer.call(pid, :next) == 42
    :ok = GenServer.cast(pid, :next)
    send(pid, :nonsense)
    assert GenServer.call(pid, :next) == 44
    monitor = Process.monitor(pid)
    assert GenServer.call(pid, :stop) == 45
    assert_receive {:DOWN, ^monitor, :process, ^pid, :normal}
  end

  test "has a name as Elixir has it, for itself alone" do
    start_supervised!({Registry, keys: :unique, name: Fairnif.TestRegistry})
    via = {:via, Registry, {Fairnif.TestRegistry, :counter}}

    for name <- [Fairnif.TestNamed, {:global, {:test, "counter"}}, via] do
      {:ok, pid} = Fairnif.Process.start_link(counter(), [0], name: name)
      assert GenServer.whereis(name) == pid
      assert GenServer.call(name, :next) == 1
      start = Fairnif.Process.start_link(counter(), [0], name: name)
      assert start == {:error, {:already_started, pid}}
      :ok = GenServer.stop(pid)
      assert GenServer.whereis(name) == nil
    end

    assert {:ok, pid} = Fairnif.Process.start_link(counter(), [0], name: nil)
    assert {:registered_name, []} = Process.info(pid, :registered_name)
  end

  test "what is wrong in a call is an exception that says so" do
    name = ~r/expected :name to be an atom, .*, got: "counter"/

    assert_raise ArgumentError, name, fn ->
      Fairnif.Process.start_link(counter(), [0], name: "counter")
    end

    for wrong <- [:counter, fn first -> first end] do
      assert_raise ArgumentError, ~r"is not a capture of a NIF; write &Module.name/arity", fn ->
        Fairnif.Process.start_link(wrong, [0])
      end
    end

    assert_raise Fairnif.Error, ~r/^\{:faster, true\} is not an option/, fn ->
      Fairnif.Process.start_link(counter(), [0], faster: true)
    end

    assert_raise Fairnif.Error, ~r/counter\/1 does not take these arguments: \[1, 2\]/, fn ->
      Fairnif.Process.start_link(counter(), [1, 2])
    end

    assert_raise KeyError, fn -> Fairnif.Process.child_spec(args: [0]) end
  end

  test "is a child by its options, and is restarted" do
    name = Fairnif.TestChild
    child = {Fairnif.Process, nif: counter(), args: [10], name: name, shutdown: 100}
    assert %{id: ^name, shutdown: 100, modules: [@module]} = Supervisor.child_spec(child, [])
    Fairnif.Probe.hear_log()
    start_supervised!(child)
    assert GenServer.call(name, :next) == 11
    pid = Process.whereis(name)
    Process.exit(pid, :kill)
    assert eventually(fn -> Process.whereis(name) not in [nil, pid] end)
    assert GenServer.call(name, :next) == 11
    :ok = stop_supervised!(name)
    assert Process.whereis(name) == nil
  end

  test "is a module that is a child" do
    spec = Supervisor.child_spec({@module, name: Fairnif.TestModule}, [])

    assert spec == %{
             id: @module,
             start: {@module, :start_link, [[name: Fairnif.TestModule]]},
             restart: :transient,
             shutdown: 100
           }

    start_supervised!({@module, name: Fairnif.TestModule})
    assert GenServer.call(Fairnif.TestModule, :next) == 6
    monitor = Process.monitor(Fairnif.TestModule)
    assert GenServer.call(Fairnif.TestModule, :stop) == 7
    assert_receive {:DOWN, ^monitor, :process, _, :normal}
    # It is transient.
    Process.sleep(20)
    assert Process.whereis(Fairnif.TestModule) == nil
  end

  # An application :tally there is none: the library is put where this one's are.
  test "is what the guide shows" do
    page = File.read!("../../docs/start/elixir.md")
    [_, section] = Regex.run(~r/^## Native processes\n(.*?)^## /ms, page)
    [_, source] = Regex.run(~r/^```c\n(.*?)^```/ms, section)
    [_, module] = Regex.run(~r/^```elixir\n(.*?)^```/ms, section)
    [_, names] = Regex.run(~r/`(NAME := .*?)`/, section)
    started = File.read!("../../docs/start/getting-started.md")
    [_, makefile] = Regex.run(~r/^```make\n(.*?)^```/ms, started)
    makefile = String.replace(makefile, "NAME := tally", names)
    [_, file] = Regex.run(~r/`(c_src\/\S+[.]c)`/, section)
    library = "#{Fairnif.library(:fairnif, "tally/counter")}.so"
    # As Mix would, with the files that the page has.
    app = Path.dirname(Path.dirname(Path.dirname(library)))
    File.rm_rf!(Path.dirname(library))
    sources = Path.join(System.tmp_dir!(), "fairnif-guide-#{System.pid()}")
    on_exit(fn -> File.rm_rf!(sources) end)
    File.mkdir_p!(Path.dirname(Path.join(sources, file)))
    File.write!(Path.join(sources, file), source)
    File.write!(Path.join(sources, "c_src/Makefile"), makefile)
    File.write!(Path.join(sources, "c_src/tally.c"), "")
    environment = Map.put(Fairnif.make_env(), "MIX_APP_PATH", app)
    {_, 0} = System.cmd("make", ["-s", "-C", "#{sources}/c_src"], env: environment)
    assert File.exists?(library)
    Fairnif.Probe.compile(String.replace(module, "otp_app: :tally", "otp_app: :fairnif"))
    counter = Tally.Counter
    start_supervised!({counter, 0})
    assert apply(counter, :next, []) == 1
    stop_supervised!(counter)
    nif = Function.capture(counter, :nif_counter, 1)
    start_supervised!({Fairnif.Process, nif: nif, args: [0], name: counter})
    assert apply(counter, :next, []) == 1
  end

  # Ten seconds: the machine may be busy.
  defp eventually(condition, tries \\ 1000) do
    cond do
      condition.() -> true
      tries == 0 -> flunk("waited in vain")
      true -> Process.sleep(10) && eventually(condition, tries - 1)
    end
  end
end
