defmodule Fairnif.CommandLine do
  # What the Mix tasks share: bin/fairnif's commands, run in the VM of Mix.
  @moduledoc false

  @doc "Compiles the project, runs the command, and ends Mix with its exit code if it is not 0."
  @spec run(String.t(), [String.t()]) :: :ok | no_return()
  def run(command, args) do
    # Alone, and also in a folder without a project: what is measured may be Erlang's own.
    if Mix.Project.get(), do: Mix.Task.run("loadpaths", []) && Mix.Task.run("compile", [])

    terminals()

    case quietly(fn -> :fairnif_check_cli.run(Enum.map([command | args], &to_charlist/1)) end) do
      0 -> :ok
      code -> exit({:shutdown, code})
    end
  end

  # This VM only starts others and waits for them. With one scheduler it takes next to nothing from
  # the cores that are measured.
  defp quietly(work) do
    before = :erlang.system_flag(:schedulers_online, 1)

    try do
      work.()
    after
      :erlang.system_flag(:schedulers_online, before)
    end
  end

  # The checker shows progress where this variable says that it writes to a terminal, which bin/fairnif
  # asks the shell. Linux says it here; elsewhere there is none.
  defp terminals do
    with {:ok, file} <- File.read_link("/proc/self/fd/2"),
         true <- String.starts_with?(file, ["/dev/pts/", "/dev/tty", "/dev/console"]) do
      System.put_env("FAIRNIF_STDERR", "terminal")
    end
  end
end
