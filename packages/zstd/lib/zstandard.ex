defmodule Zstandard do
  @moduledoc "Compression by libzstd, in slices: the module `:zstandard` as Elixir has it."

  @doc """
  A frame of the data.

      iex> frame = Zstandard.compress(["so", " long"])
      iex> Zstandard.decompress(frame)
      {:ok, "so long"}

  """
  @spec compress(iodata(), :zstandard.level()) :: binary()
  defdelegate compress(data, level \\ 3), to: :zstandard

  @doc """
  What is in a frame, of up to that many bytes; a gigabyte by default.

      iex> Zstandard.decompress("no frame")
      {:error, "Unknown frame descriptor"}

  """
  @spec decompress(iodata(), non_neg_integer()) :: {:ok, binary()} | {:error, binary()}
  def decompress(frame, most \\ 1_073_741_824) do
    case :zstandard.decompress(frame, most) do
      {:error, why} -> {:error, why}
      data -> {:ok, data}
    end
  end
end
