defmodule Fairnif.TestTest do
  use ExUnit.Case, async: false
  import Fairnif.Test

  # The shortest check that there is. What it says of this machine does not matter here.
  @short [sizes: [1024], time_ms: 50]

  describe "what the checker says becomes, in ExUnit," do
    test "a test that passes, of a function that is well-behaved" do
      assert judge(fn -> :ok end) == :ok
      assert conclude(:ok) == :ok
    end

    test "a failure with every line, of one that is not" do
      lines = [~c"f is not well-behaved", ~c"blocks the scheduler: größe", ~c"    calls 40"]
      outcome = judge(fn -> :erlang.error({:not_well_behaved, lines}) end)
      assert {:fail, text} = outcome
      error = assert_raise ExUnit.AssertionError, fn -> conclude(outcome) end
      assert error.message == text
      assert text == "f is not well-behaved\nblocks the scheduler: größe\n    calls 40"
    end

    test "a failure that says that nothing could be said, inside a test" do
      outcome = judge(fn -> throw({:skip, ~c"this machine cannot say: noisy"}) end)
      assert outcome == {:skip, "this machine cannot say: noisy"}
      error = assert_raise ExUnit.AssertionError, fn -> conclude(outcome) end
      assert error.message =~ "this machine cannot say: noisy\nThis test has neither passed"
    end

    test "exceptions of their own for a wrong question and a checker that failed" do
      assert_raise ArgumentError, "column 3: oh", fn ->
        judge(fn -> :erlang.error({:badarg, ~c"column 3: oh"}) end)
      end

      assert_raise RuntimeError, "no peer", fn ->
        judge(fn -> :erlang.error({:check_failed, ~c"no peer"}) end)
      end

      assert_raise ErlangError, fn -> judge(fn -> :erlang.error(:other) end) end
    end
  end

  describe "assert_well_behaved" do
    @tag timeout: 300_000
    test "fails for a function that crashes, whatever the machine is like" do
      error =
        assert_raise ExUnit.AssertionError, fn ->
          assert_well_behaved("erlang:halt(abort)", @short)
        end

      assert error.message =~ "erlang:halt(abort) is not well-behaved"
      assert error.message =~ "crashes or does not return"
    end

    @tag timeout: 300_000
    test "measures functions of Elixir in nodes of their own" do
      assert measure(&Base.encode16/1, @short) |> said?()
    end

    @tag timeout: 300_000
    test "passes the emulator's flags and a file on as Erlang's texts" do
      options = [flags: ["+S", "1:1"], file: __ENV__.file, waive: [block: "a test"]]
      assert measure("byte_size(Bin)", @short ++ options) |> said?()
    end

    test "refuses what is no subject and no option" do
      assert_raise ArgumentError, ~r/nothing that can be checked/, fn ->
        assert_well_behaved(:nothing)
      end

      assert_raise ArgumentError, ~r/size is not an option/, fn ->
        assert_well_behaved("ok", size: 1)
      end

      assert_raise ArgumentError, ~r/keyword list/, fn -> assert_well_behaved("ok", %{}) end

      assert_raise ArgumentError, ~r/needs a reason/, fn ->
        assert_well_behaved("ok", waive: [block: ""])
      end
    end

    test "refuses a function of a test file: no other node can load it" do
      assert_raise ArgumentError, ~r/in no file on the code path/, fn ->
        assert_well_behaved({__MODULE__, :anything, []})
      end
    end
  end

  describe "test_well_behaved" do
    # The suite of a project, run by ExUnit in a VM of its own; what the checker says is given.
    test "defines tests that pass, fail and are skipped, and ExUnit's closing line counts them" do
      output = suite(good: :ok, bad: {:fail, "BAD"}, unsure: {:skip, "NOISY"})
      assert output =~ "3 tests, 1 failure, 1 skipped"
      assert output =~ "test bad is well-behaved (Suite)"
      assert output =~ "BAD"
      assert output =~ "test unsure is well-behaved (skipped)"
    end
  end

  # Whether it is well-behaved, the machine of the moment says. It did run.
  defp said?(:ok), do: true
  defp said?({_, text}), do: not (text =~ "crashes or does not return")

  defp suite(tests) do
    script = """
    ExUnit.start(trace: true, seed: 0, colors: [enabled: false])

    defmodule Suite do
      use ExUnit.Case
      require Fairnif.Test
      #{Enum.map_join(tests, "\n", fn {name, outcome} -> "Fairnif.Test.define #{inspect(name)}, #{inspect(outcome)}" end)}
    end
    """

    paths = Enum.flat_map(:code.get_path(), &["-pa", to_string(&1)])
    {output, _} = System.cmd("elixir", paths ++ ["-e", script], stderr_to_stdout: true)
    output
  end
end
