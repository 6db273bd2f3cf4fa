defmodule FairnifTest do
  # Switches and counters are the whole node's.
  use ExUnit.Case, async: false
  doctest Fairnif

  @counter Fairnif.TestCounter

  setup_all do
    Fairnif.Probe.build(@counter, "fairnif/test_counter")

    Fairnif.Probe.compile("""
    defmodule Fairnif.TestCounter do
      use Fairnif, otp_app: :fairnif
      defnif info()
      defnif count(n)
    end
    """)

    :ok
  end

  # Compiled as the tests run: the compiler of this file cannot know it.
  defp count(n), do: apply(@counter, :count, [n])

  test "a fair function yields and is counted under the module's name" do
    count = Function.capture(@counter, :count, 1)
    before = Fairnif.info(count)
    assert before == Fairnif.info({@counter, :count, 1})
    assert before.mode == :normal
    assert count(20_000_000) > 0
    later = Fairnif.info(count)
    assert later.calls == before.calls + 1
    assert later.yields > before.yields
    assert later.function == {@counter, :count, 1}
    assert later in Fairnif.info().functions
  end

  test "a call under way is among the tasks until its caller is killed" do
    caller = spawn(fn -> count(1_000_000_000_000) end)
    assert %{function: {@counter, :count, 1}, owner: ^caller} = await(fn -> task_of(caller) end)
    Process.exit(caller, :kill)
    assert await(fn -> task_of(caller) == nil end)
  end

  test "an unknown switch is an exception that names those that exist" do
    error = assert_raise Fairnif.Error, fn -> Fairnif.debug(faster: true) end
    assert error.reason == {:bad_switch, {:faster, true}}
    assert Exception.message(error) =~ ":faster: true is not a switch; pause_every_tick, "
  end

  test "a value out of bounds in the environment is an exception that names it" do
    Application.put_env(:fairnif, :slice_us, 0)

    try do
      assert_raise Fairnif.Error,
                   "0 is out of bounds for :slice_us in the environment of :fairnif",
                   fn -> Fairnif.configure() end
    after
      Application.delete_env(:fairnif, :slice_us)
      Fairnif.configure()
    end
  end

  test "info of something that is no capture is refused" do
    assert_raise ArgumentError, ~r/is not a capture of a NIF/, fn ->
      Fairnif.info(fn -> :ok end)
    end
  end

  test "the library of an unknown application is refused by name" do
    assert_raise ArgumentError, ~r/no application :no_such_app on the code path/, fn ->
      Fairnif.library(:no_such_app, "x")
    end
  end

  test "the version is the one of the Erlang application" do
    {:ok, [{:application, :fairnif, properties}]} =
      :file.consult(~c"../../apps/fairnif/src/fairnif.app.src")

    version = to_string(properties[:vsn])
    assert Fairnif.info().version == version
    assert to_string(Application.spec(:fairnif, :vsn)) == version
    assert Mix.Project.config()[:version] == version
  end

  defp task_of(pid), do: Enum.find(Fairnif.tasks(), &(&1.owner == pid))

  # Ten seconds: the machine may be busy.
  defp await(condition, tries \\ 1000) do
    cond do
      value = condition.() -> value
      tries == 0 -> flunk("waited in vain")
      true -> Process.sleep(10) && await(condition, tries - 1)
    end
  end
end
