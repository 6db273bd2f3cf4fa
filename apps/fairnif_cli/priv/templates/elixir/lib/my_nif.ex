defmodule MyNif do
  @moduledoc "Counts the bytes of a binary that have a given value."

  use Fairnif, otp_app: :my_nif, path: "my_nif"

  @doc """
  How often `byte` occurs in `binary`. Anything but a binary and a byte is an `ArgumentError`.

      iex> MyNif.count("banana", ?a)
      3

  """
  @spec count(binary(), byte()) :: non_neg_integer()
  {{count}}
end
