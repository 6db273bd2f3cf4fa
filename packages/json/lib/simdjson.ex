defmodule Simdjson do
  @moduledoc """
  JSON by simdjson, in slices: the module `:simdjson` as Elixir has it. Objects are maps with strings as
  keys, `null` is `:null`.
  """

  @type options :: [strings: :reference | :copy]

  @doc """
  The value of a JSON text; an `ErlangError` of what is none. `strings: :copy`: no string refers to the
  text.

      iex> Simdjson.decode!(~s({"a": [1, 2.5, null, "b"]}))
      %{"a" => [1, 2.5, :null, "b"]}

  """
  @spec decode!(iodata(), options()) :: :simdjson.value()
  def decode!(json, options \\ []), do: :simdjson.decode(json, Map.new(options))

  @doc """
  The same, or why it is none.

      iex> Simdjson.decode("[1, 2,, 3]")
      {:error, {:invalid_byte, ?,}}

  """
  @spec decode(iodata(), options()) :: {:ok, :simdjson.value()} | {:error, term()}
  def decode(json, options \\ []) do
    {:ok, decode!(json, options)}
  rescue
    error in ErlangError -> {:error, error.original}
  end

  @doc """
  JSON of lists, maps, strings, numbers and atoms.

      iex> Simdjson.encode!(%{a: [1, true, "b"]})
      ~s({"a":[1,true,"b"]})

  """
  @spec encode!(term()) :: binary()
  def encode!(term), do: term |> encode_to_iodata!() |> IO.iodata_to_binary()

  @doc "The same as iodata."
  @spec encode_to_iodata!(term()) :: iodata()
  def encode_to_iodata!(term), do: :simdjson.encode(term)
end
