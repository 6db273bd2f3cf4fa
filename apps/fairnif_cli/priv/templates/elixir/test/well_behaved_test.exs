defmodule MyNif.WellBehavedTest do
  # Is the NIF well-behaved? The checker measures it in nodes of its own and judges how long it blocks a
  # scheduler, what it is charged, what it leaves to others, how soon it stops when it is killed.
  #
  # That happens while this file is loaded: so the test can be skipped, with the reason, on a machine
  # that is too busy to say. (`assert_well_behaved/2`, inside a test, would fail there.)
  use ExUnit.Case, async: false
  import Fairnif.Test

  test_well_behaved "counting", "'Elixir.MyNif':count(Bin, 97)",
    sizes: [1024, 64 * 1024 * 1024],
    time_ms: 500
end
