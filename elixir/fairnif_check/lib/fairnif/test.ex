defmodule Fairnif.Test do
  @moduledoc """
  Is this function well-behaved? For ExUnit suites: what `mix fairnif.check` measures, as an
  assertion.

      defmodule MyApp.BitsTest do
        use ExUnit.Case, async: false
        import Fairnif.Test

        @tag timeout: 300_000
        test "exor is well-behaved" do
          assert_well_behaved "'Elixir.MyApp.Bits':exor(Bin, 1)", sizes: [1024, 1_048_576]
        end
      end

  ## When the machine cannot say

  A machine that is too noisy or too small to judge gives no result, and no result is not a pass.
  ExUnit decides what is skipped before a test runs. So there are two forms:

    * `assert_well_behaved/2`, inside a test: where nothing can be said the test **fails**, and says
      that this is the reason.
    * `test_well_behaved/3`, instead of a test: it measures while the file is loaded, and the test
      is **skipped**, with the reason, and counted as such in ExUnit's closing line.

  ## Subject

    * a text: an expression in Erlang, with `Bin` (random bytes), `N` (their number) and `Init` bound
    * `{module, function, arguments}`
    * a capture, `&MyApp.Bits.sum/0` or `&MyApp.Bits.sum/1`; the latter gets the bytes

  It runs in other nodes, which load modules from files: the project's, not those that a test file
  (`.exs`) defines. Nor do they start applications.

  ## Options

    * `:sizes` - bytes of `Bin`, a list; default `[1024, 1_048_576]`
    * `:limit_ns` - the longest block of a scheduler that is allowed; default 1_000_000
    * `:waive` - properties that may fail, each with the reason why that is accepted:
      `[charge: "too short to matter"]`
    * `:strict` - every property decides; default `false`
    * `:time_ms` - of each measurement; default 1000
    * `:runs` - up to this many timed batches
    * `:timeout_ms` - for one call to return; default 30_000
    * `:init` - an expression, its value bound to `Init`
    * `:file` - `Bin` is taken from it
    * `:flags` - emulator flags of the nodes that are measured: `["+S", "4:4"]`
    * `:paths` - code beside this node's
    * `:against` - another subject, measured in turns with the first
    * `:beside` - another subject, called by another process while blocks are measured

  Cost: some ten seconds per size with the default times. Other work on the machine, other tests at
  the same time too, makes it more likely that nothing can be said: `async: false`.
  """

  @typedoc "What is measured: a text, a call, or a capture that takes nothing or the bytes."
  @type subject :: String.t() | mfargs() | fun()
  @type mfargs :: {module(), atom(), [term()]}
  @type outcome :: :ok | {:fail, String.t()} | {:skip, String.t()}

  @doc """
  Measures the function; returns `:ok` when it is well-behaved.

  Raises `ExUnit.AssertionError` when it is not, with the sentence and the evidence of each property
  that failed, and when this machine cannot say. Raises `ArgumentError` for a subject or an option
  that is none, `RuntimeError` when the checker could not do its work.

  It may take longer than the minute that ExUnit gives a test: `@tag timeout: 300_000`.
  """
  @spec assert_well_behaved(subject(), keyword()) :: :ok
  def assert_well_behaved(subject, options \\ []) do
    conclude(measure(subject, options))
  end

  @doc """
  Defines a test that passes when the function is well-behaved, fails when it is not, and is skipped
  when this machine cannot say.

      test_well_behaved "exor", "'Elixir.MyApp.Bits':exor(Bin, 1)", sizes: [1024]

  It measures while the file that has it is loaded, also when the test is excluded afterwards: put
  such tests into a file of their own. Subject, options and errors as in `assert_well_behaved/2`; the
  latter end the loading. Needs `use ExUnit.Case`.
  """
  defmacro test_well_behaved(name, subject, options \\ []) do
    quote do
      Fairnif.Test.define(
        unquote(name),
        Fairnif.Test.measure(unquote(subject), unquote(options))
      )
    end
  end

  @doc false
  defmacro define(name, outcome) do
    quote bind_quoted: [name: name, outcome: outcome] do
      with {:skip, text} <- outcome do
        @tag skip: text
      end

      @fairnif_outcome outcome
      test "#{name} is well-behaved" do
        Fairnif.Test.conclude(@fairnif_outcome)
      end
    end
  end

  @doc false
  @spec measure(subject(), keyword()) :: outcome()
  def measure(subject, options \\ []) do
    options = options(options)
    judge(fn -> :fairnif_check.assert_well_behaved(subject, options) end)
  end

  @doc false
  @spec conclude(outcome()) :: :ok
  def conclude(:ok), do: :ok
  def conclude({:fail, text}), do: raise(ExUnit.AssertionError, message: text)

  def conclude({:skip, text}) do
    raise ExUnit.AssertionError,
      message:
        text <>
          "\nThis test has neither passed nor found a fault. (ExUnit cannot skip a test that " <>
          "runs; one defined by test_well_behaved is skipped here.)"
  end

  @doc false
  # How fairnif_check says it, in Elixir. (The formatters of 1.14 and 1.18 write the type of a function
  # without arguments differently: fun().)
  @spec judge(fun()) :: outcome()
  def judge(work) do
    work.()
  catch
    :throw, {:skip, text} ->
      {:skip, to_string(text)}

    :error, {:not_well_behaved, lines} ->
      {:fail, Enum.map_join(lines, "\n", &to_string/1)}

    :error, {:badarg, text} ->
      reraise ArgumentError, [message: to_string(text)], __STACKTRACE__

    :error, {:check_failed, text} ->
      reraise RuntimeError, [message: to_string(text)], __STACKTRACE__
  end

  # What the checker takes as Erlang's texts.
  @doc false
  @spec options(keyword()) :: map()
  def options(options) do
    unless Keyword.keyword?(options) do
      raise ArgumentError, "the options are a keyword list, not #{inspect(options)}"
    end

    Map.new(options, fn
      {key, texts} when key in [:flags, :paths] -> {key, Enum.map(texts, &to_charlist/1)}
      {:file, file} -> {:file, to_charlist(file)}
      {:waive, reasons} -> {:waive, Map.new(reasons)}
      other -> other
    end)
  end
end
