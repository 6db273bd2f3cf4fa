defmodule Mix.Tasks.Compile.FairnifDriver do
  # The native part, into priv. It needs fairnif's headers and none of its modules: the order of the
  # two does not matter.
  @moduledoc false
  use Mix.Task.Compiler

  @impl true
  def run(_args) do
    Mix.Project.ensure_structure()
    priv = Path.join(Mix.Project.app_path(), "priv")
    # A make above this one has its own business.
    environment = for name <- ~w(MAKEFLAGS MAKELEVEL MFLAGS), do: {name, nil}

    {_, status} =
      System.cmd("make", ["-s", "-C", "c_src", "all", "PRIV=#{priv}"],
        env: environment,
        into: IO.binstream(:stdio, :line),
        stderr_to_stdout: true
      )

    if status != 0, do: Mix.raise("fairnif_driver: make ended with exit status #{status}")
    {:ok, []}
  end
end

defmodule FairnifDriver.MixProject do
  use Mix.Project

  # Port drivers for Mix projects and their releases: the OTP application of apps/fairnif_driver,
  # compiled by Mix itself. src, c_src, c_include and rebar.config are links to it. There is no
  # Elixir in it: its few functions are called as they are, :fairnif_driver.load(dir, name).
  @resource Path.join(__DIR__, "src/fairnif_driver.app.src")
  @external_resource @resource
  @properties (case :file.consult(String.to_charlist(@resource)) do
                 {:ok, [{:application, :fairnif_driver, properties}]} ->
                   properties

                 {:error, reason} ->
                   # The links lead to the rest of the repository.
                   Mix.raise(
                     "fairnif_driver: no #{@resource} (#{:file.format_error(reason)}); as a git " <>
                       "dependency it takes subdir:, and not sparse:"
                   )
               end)

  def project do
    [
      app: :fairnif_driver,
      version: to_string(@properties[:vsn]),
      description: to_string(@properties[:description]),
      elixir: "~> 1.14",
      source_url: "https://github.com/fairnif/fairnif",
      compilers: Mix.compilers() ++ [:fairnif_driver],
      # The application :elixir is not one of those it needs.
      language: :erlang,
      deps: deps()
    ]
  end

  def application do
    [
      applications: @properties[:applications],
      registered: @properties[:registered],
      env: @properties[:env]
    ]
  end

  # As the lab's: whoever depends on this by path or git names fairnif as well, from where they want
  # it, and Mix refuses two places.
  defp deps do
    if Mix.Project.get() == nil, do: [{:fairnif, path: "../fairnif"}], else: []
  end
end
