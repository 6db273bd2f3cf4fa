defmodule Mix.Tasks.Fairnif.Lab do
  @shortdoc "Runs an experiment of fairnif's lab"

  @moduledoc """
  Runs an experiment of the lab; without a name, lists them.

      mix fairnif.lab
      mix fairnif.lab NAME [--quick | --full] [--size BYTES] [--json FILE]

  Options and exit codes are those of `bin/fairnif lab`: 0 well, 1 not well-behaved or failed,
  2 usage, 3 this machine cannot say. Experiments on the examples of fairnif's repository need that
  repository, and say so.
  """

  use Mix.Task

  @impl true
  def run(args), do: Fairnif.CommandLine.run("lab", args)
end
