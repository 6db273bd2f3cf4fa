defmodule Spinsleep do
  @moduledoc """
  NIFs that take a given time: some of `examples/spinsleep`, for Elixir.

  Each takes microseconds, 0 to 3,600,000,000 (an hour), and returns how many it really took from
  its first step to its last, by the clock on the wall. Anything else is an `ArgumentError`.

  `spinsleep` spins until that much time has passed, whoever had the core meanwhile. `spinwork` does
  what takes that much CPU time when nothing interrupts it: the number of its steps is fixed.
  """

  use Fairnif, otp_app: :spinsleep

  @type microseconds :: 0..3_600_000_000

  @doc "Until a deadline, as a plain NIF: holds its scheduler to the end."
  @spec spinsleep(microseconds()) :: non_neg_integer()
  defnif spinsleep(us)

  @doc "Until a deadline, as a plain dirty CPU NIF."
  @spec spinsleep_dirty(microseconds()) :: non_neg_integer()
  defnif spinsleep_dirty(us)

  @doc "Until a deadline, fair: gives way after each slice."
  @spec spinsleep_fair(microseconds()) :: non_neg_integer()
  defnif spinsleep_fair(us)

  @doc "A fixed amount of work, as a plain NIF."
  @spec spinwork(microseconds()) :: non_neg_integer()
  defnif spinwork(us)

  @doc """
  A fixed amount of work, fair.

      iex> Spinsleep.spinwork_fair(500) > 0
      true
      iex> Spinsleep.spinwork_fair(-1)
      ** (ArgumentError) argument error

  """
  @spec spinwork_fair(microseconds()) :: non_neg_integer()
  defnif spinwork_fair(us)
end
