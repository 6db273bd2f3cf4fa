# spinsleep from Elixir, where any application with NIFs is called, watched and judged so. After
# `make all`, in elixir/fairnif_check: MIX_ENV=test mix run ../../examples/spinsleep/spinsleep.exs
true = Code.append_path(Path.join(__DIR__, "../_build/default/lib/spinsleep/ebin"))
ExUnit.start()

defmodule SpinsleepTest do
  use ExUnit.Case, async: false
  import Fairnif.Test

  # Measured while this file is loaded; skipped, with the reason, where the machine cannot say.
  test_well_behaved "spinwork_fair", {:spinsleep, :spinwork_fair, [20_000]},
    sizes: [1],
    time_ms: 200

  # An assertion that never fails proves nothing: the plain form blocks its scheduler for 20 ms.
  @tag timeout: 300_000
  test "spinwork is not well-behaved" do
    error =
      assert_raise ExUnit.AssertionError, fn ->
        assert_well_behaved({:spinsleep, :spinwork, [20_000]}, sizes: [1], time_ms: 200)
      end

    assert error.message =~ "blocks the scheduler" or error.message =~ "cannot say"
  end

  test "a fair call yields many times, a plain one is not counted" do
    before = Fairnif.info(&:spinsleep.spinwork_fair/1)
    :spinsleep.spinwork_fair(50_000)
    assert Fairnif.info(&:spinsleep.spinwork_fair/1).yields - before.yields >= 10
    assert_raise Fairnif.Error, fn -> Fairnif.info(&:spinsleep.spinwork/1) end
  end
end
