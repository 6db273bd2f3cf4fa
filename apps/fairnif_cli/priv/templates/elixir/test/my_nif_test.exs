defmodule MyNifTest do
  # What the NIF answers, wherever it pauses, and that a killed call leaves nothing.
  use ExUnit.Case, async: false
  doctest MyNif

  @inputs ["", "banana", String.duplicate("banana", 100_000)]

  test "it counts what Elixir counts" do
    for input <- @inputs, do: assert(MyNif.count(input, ?a) == model(input, ?a))
  end

  # The debug build, which `make test` tests as well, reports an argument that was kept across a
  # pause. Not all that must not be kept is seen: docs/guide/hazards.md of fairnif.
  test "a pause at every tick changes nothing" do
    Fairnif.debug(pause_every_tick: true, check_terms: true)
    on_exit(fn -> Fairnif.debug(pause_every_tick: false, check_terms: false) end)
    for input <- @inputs, do: assert(MyNif.count(input, ?a) == model(input, ?a))
    assert Fairnif.info(&MyNif.{{nif}}/2).rule_violations == 0
  end

  test "anything else is an ArgumentError" do
    for {binary, byte} <- [{:a, ?a}, {"a", -1}, {"a", 256}, {<<1::7>>, 1}] do
      assert_raise ArgumentError, fn -> MyNif.count(binary, byte) end
    end
  end

  test "a killed caller leaves no call behind" do
    binary = String.duplicate("banana", 1_000_000)
    {caller, monitor} = spawn_monitor(fn -> forever(binary) end)
    assert wait_until(fn -> Enum.any?(Fairnif.tasks(), &(&1.owner == caller)) end)
    Process.exit(caller, :kill)
    assert_receive {:DOWN, ^monitor, :process, ^caller, :killed}, 10_000
    assert wait_until(fn -> not Enum.any?(Fairnif.tasks(), &(&1.owner == caller)) end)
  end

  defp model(binary, byte), do: Enum.count(:binary.bin_to_list(binary), &(&1 == byte))

  defp forever(binary) do
    MyNif.count(binary, ?a)
    forever(binary)
  end

  defp wait_until(condition, tries \\ 10_000) do
    cond do
      condition.() -> true
      tries == 0 -> false
      true -> Process.sleep(1) && wait_until(condition, tries - 1)
    end
  end
end
