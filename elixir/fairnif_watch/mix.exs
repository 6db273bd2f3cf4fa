defmodule Mix.Tasks.Compile.FairnifWatch do
  # The native part, into priv, with what else is kept there.
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

    if status != 0, do: Mix.raise("fairnif_watch: make ended with exit status #{status}")

    # The live page, where it has been built: in the package, and after `make page`.
    for file <- ["grafana.json", "page/live.html"], File.exists?(file) do
      File.mkdir_p!(Path.dirname(Path.join(priv, file)))
      File.cp!(file, Path.join(priv, file))
    end

    {:ok, []}
  end
end

defmodule FairnifWatch.MixProject do
  use Mix.Project

  # The watch for Mix projects and their releases: the OTP application of apps/fairnif_watch,
  # compiled by Mix itself. src, c_src, rebar.config, page and grafana.json are links to it. There is
  # no Elixir in it: its few functions are called as they are, :fairnif_watch.report().
  @resource Path.join(__DIR__, "src/fairnif_watch.app.src")
  @external_resource @resource
  @properties (case :file.consult(String.to_charlist(@resource)) do
                 {:ok, [{:application, :fairnif_watch, properties}]} ->
                   properties

                 {:error, reason} ->
                   # The links lead to the rest of the repository.
                   Mix.raise(
                     "fairnif_watch: no #{@resource} (#{:file.format_error(reason)}); as a git " <>
                       "dependency it takes subdir:, and not sparse:"
                   )
               end)

  def project do
    [
      app: :fairnif_watch,
      version: to_string(@properties[:vsn]),
      description: to_string(@properties[:description]),
      elixir: "~> 1.14",
      source_url: "https://github.com/fairnif/fairnif",
      # The library is not loaded before the application starts: the order does not matter.
      compilers: Mix.compilers() ++ [:fairnif_watch],
      # The application :elixir is not one of those it needs.
      language: :erlang,
      deps: []
    ]
  end

  # inets serves the live page where `http` is set: who sets it has :inets in his own
  # extra_applications.
  def application do
    [
      mod: @properties[:mod],
      applications: @properties[:applications],
      registered: @properties[:registered],
      env: @properties[:env]
    ]
  end
end
