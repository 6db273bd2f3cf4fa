defmodule Fairnif.Error do
  @moduledoc """
  Raised by the functions of `Fairnif` when the runtime refuses.

  `reason` is the term that the Erlang module `fairnif` raises as `{fairnif, Reason}`: for example
  `{:no_function, {module, name, arity}}`, `{:bad_switch, {name, value}}`,
  `{:bad_env, {key, value}}`, or the error of `:erlang.load_nif/2` for the runtime's library.
  """

  defexception [:reason]

  @type t :: %__MODULE__{reason: term()}

  @impl true
  def message(%{reason: {:no_function, {module, name, arity}}}),
    do: "no loaded library declares #{Exception.format_mfa(module, name, arity)} as fair"

  def message(%{reason: {:bad_switch, {name, value}}}),
    do:
      "#{inspect(name)}: #{inspect(value)} is not a switch; pause_every_tick, check_terms and " <>
        "measure_cpu are, and are true or false"

  def message(%{reason: {:bad_env, {key, value}}}),
    do: "#{inspect(value)} is out of bounds for #{inspect(key)} in the environment of :fairnif"

  def message(%{reason: :not_pending}), do: "not a pending value of fairnif's"

  def message(%{reason: :not_owner}),
    do: "another process made the call, and only that process can await it"

  def message(%{reason: :awaited_before}), do: "this pending value was awaited before"

  def message(%{reason: {:not_awaited, {module, name, arity}}}),
    do:
      "#{Exception.format_mfa(module, name, arity)} has to wait and is not FAIR_MAY_WAIT: add that " <>
        "to its mode, and pass what it returns to Fairnif.await/1"

  def message(%{reason: {:deadlock, {module, name, arity}}}),
    do: "#{Exception.format_mfa(module, name, arity)} waits for a lock that it holds"

  def message(%{reason: {:bad_option, option}}),
    do: "#{inspect(option)} is not an option of a native process, or has an invalid value"

  def message(%{reason: {:bad_nif, {nif, args}}}),
    do: "#{inspect(nif)} does not take these arguments: #{inspect(args)}"

  def message(%{reason: {:no_caller, {module, name, arity}}}),
    do: "#{Exception.format_mfa(module, name, arity)} has no caller that could do this for it"

  def message(%{reason: {reason, text}}) when is_atom(reason) and is_list(text),
    do: "the runtime cannot be loaded: #{text}"

  def message(%{reason: reason}), do: inspect(reason)
end
