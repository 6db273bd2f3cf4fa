defmodule Fairnif.Error do
  @moduledoc """
  What the functions of `Fairnif` raise when the runtime refuses.

  `reason` is the term that the Erlang module `fairnif` raises as `{fairnif, Reason}`: for example
  `{:no_function, {module, name, arity}}`, `{:bad_switch, {name, value}}`,
  `{:bad_env, {key, value}}`, or what `:erlang.load_nif/2` said of the runtime's library.
  """

  defexception [:reason]

  @type t :: %__MODULE__{reason: term()}

  @impl true
  def message(%{reason: {:no_function, {module, name, arity}}}),
    do: "no library that is loaded declares #{Exception.format_mfa(module, name, arity)} as fair"

  def message(%{reason: {:bad_switch, {name, value}}}),
    do:
      "#{inspect(name)}: #{inspect(value)} is no switch; pause_every_tick, check_terms and " <>
        "measure_cpu are, and are true or false"

  def message(%{reason: {:bad_env, {key, value}}}),
    do: "#{inspect(value)} is out of bounds for #{inspect(key)} in the environment of :fairnif"

  def message(%{reason: {reason, text}}) when is_atom(reason) and is_list(text),
    do: "the runtime cannot be loaded: #{text}"

  def message(%{reason: reason}), do: inspect(reason)
end
