defmodule Expat do
  @moduledoc "XML by expat, in slices: the module `:expat` as Elixir has it, in fast_xml's terms."

  @doc """
  The root of a document. `depth:`, `attributes:`: how many of them it may have, 1000 by default.

      iex> Expat.parse("<a x='1'>text<b/></a>")
      {:ok, {:xmlel, "a", [{"x", "1"}], [{:xmlcdata, "text"}, {:xmlel, "b", [], []}]}}
      iex> Expat.parse("<a></b>")
      {:error, {7, "mismatched tag"}}

  """
  @spec parse(iodata(), depth: non_neg_integer(), attributes: non_neg_integer()) ::
          {:ok, :expat.element()} | {:error, :expat.reason()}
  def parse(document, options \\ []) do
    case :expat.parse(document, Map.new(options)) do
      {:error, reason} -> {:error, reason}
      element -> {:ok, element}
    end
  end

  @doc """
  The text of an element.

      iex> Expat.to_binary({:xmlel, "a", [], [{:xmlcdata, "1 < 2"}]})
      "<a>1 &lt; 2</a>"

  """
  @spec to_binary(:expat.child()) :: binary()
  defdelegate to_binary(element), to: :expat
end
