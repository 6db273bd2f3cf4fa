defmodule Mix.Tasks.Fairnif.Check do
  @shortdoc "Checks whether a native function is well-behaved"

  @moduledoc """
  Measures a function in nodes of its own and says whether it is well-behaved, and why.

      mix fairnif.check EXPRESSION [OPTION ...]
      mix fairnif.check "'Elixir.MyApp.Bits':exor(Bin, 1)" --size 1k,1m
      mix fairnif.check --help

  Options and exit codes are those of `bin/fairnif check`: 0 well-behaved, 1 not, 2 wrong usage, 3
  this machine cannot say. `--help` lists the options; docs/reference/check.md explains them.

  EXPRESSION is **Erlang**, with `Bin` (random bytes), `N` (their number) and `Init` bound. A module
  of Elixir's may be called as in Elixir, too: `MyApp.Bits.exor(Bin, 1)`.

  The project is compiled first. The nodes that are measured have its code path, and start no
  application: `--init "application:ensure_all_started(my_app)"` does, where one is needed.
  """

  use Mix.Task

  @impl true
  def run(args), do: Fairnif.CommandLine.run("check", args)
end
