defmodule Spinsleep.WellBehavedTest do
  # Measured while this file is loaded; skipped, with the reason, where the machine cannot say.
  use ExUnit.Case, async: false
  import Fairnif.Test

  test_well_behaved "spinwork_fair", {Spinsleep, :spinwork_fair, [20_000]},
    sizes: [1],
    time_ms: 200

  # An assertion that never fails proves nothing: the plain form holds its scheduler for 20 ms.
  @tag timeout: 300_000
  test "spinwork is not well-behaved" do
    error =
      assert_raise ExUnit.AssertionError, fn ->
        assert_well_behaved({Spinsleep, :spinwork, [20_000]}, sizes: [1], time_ms: 200)
      end

    assert error.message =~ "blocks the scheduler" or error.message =~ "cannot say"
  end
end
