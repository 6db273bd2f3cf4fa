defmodule Luajit do
  @moduledoc "Lua scripts in a sandbox: the module `:luajit` as Elixir has it."

  @doc """
  A state; options as of `:luajit.new/1`: `memory:` (bytes), `timeout:` (ms), `functions:` and more.

      iex> {:ok, state} = Luajit.new(functions: %{"double" => fn [n] -> [2 * n] end})
      iex> Luajit.eval(state, "local n = ... return double(n), {a = true}", [21])
      {:ok, [42, %{"a" => true}]}

  """
  @spec new(keyword()) :: {:ok, :luajit.state()} | {:error, :memory}
  def new(options \\ []), do: :luajit.new(Map.new(options))

  @doc """
  Runs a script with arguments, its `...`.

      iex> {:ok, state} = Luajit.new(timeout: 20)
      iex> Luajit.eval(state, "while true do end")
      {:error, :timeout}

  """
  @spec eval(:luajit.state(), iodata(), [:luajit.value()]) ::
          {:ok, [:luajit.value()]} | {:error, :luajit.reason()}
  defdelegate eval(state, text, arguments \\ []), to: :luajit

  @doc "Calls a function that a script has defined."
  @spec call(:luajit.state(), iodata(), [:luajit.value()]) ::
          {:ok, [:luajit.value()]} | {:error, :luajit.reason()}
  defdelegate call(state, name, arguments), to: :luajit
end
