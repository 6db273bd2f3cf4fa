defmodule SpinsleepTest do
  use ExUnit.Case, async: false
  doctest Spinsleep

  @forms [:spinsleep, :spinsleep_dirty, :spinsleep_fair, :spinwork, :spinwork_fair]

  for form <- @forms do
    test "#{form} takes no argument but microseconds up to an hour" do
      for wrong <- [-1, 3_600_000_001, 1.0, :soon, "1", nil] do
        assert_raise ArgumentError, fn -> apply(Spinsleep, unquote(form), [wrong]) end
      end
    end

    test "#{form} of nothing returns at once, and what it took" do
      assert apply(Spinsleep, unquote(form), [0]) >= 0
    end
  end

  for form <- [:spinsleep, :spinsleep_dirty, :spinsleep_fair] do
    test "#{form} lasts until its deadline" do
      {took, answered} = :timer.tc(Spinsleep, unquote(form), [5000])
      assert answered >= 5000
      # The clock of timer:tc and the clock of the NIF may round differently.
      assert took + 2 >= answered
    end
  end

  test "a fair call gives way many times, a plain one never" do
    before = Fairnif.info(&Spinsleep.spinwork_fair/1)
    Spinsleep.spinwork_fair(50_000)
    later = Fairnif.info(&Spinsleep.spinwork_fair/1)
    assert later.yields - before.yields >= 10
    assert_raise Fairnif.Error, fn -> Fairnif.info(&Spinsleep.spinwork/1) end
  end

  test "a fair call ends when its caller is killed" do
    {caller, monitor} = spawn_monitor(fn -> Spinsleep.spinsleep_fair(3_600_000_000) end)
    assert wait_until(fn -> Enum.any?(Fairnif.tasks(), &(&1.owner == caller)) end)
    Process.exit(caller, :kill)
    assert_receive {:DOWN, ^monitor, :process, ^caller, :killed}, 10_000
    assert wait_until(fn -> Fairnif.tasks() == [] end)
  end

  defp wait_until(condition, tries \\ 1000) do
    cond do
      condition.() -> true
      tries == 0 -> false
      true -> Process.sleep(10) && wait_until(condition, tries - 1)
    end
  end
end
