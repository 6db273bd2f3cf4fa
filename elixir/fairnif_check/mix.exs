defmodule Mix.Tasks.Compile.FairnifCheck do
  # The checker's own NIFs. Not fairnif's compiler: as a dependency the checker may be compiled
  # before fairnif (see deps/0 below).
  @moduledoc false
  use Mix.Task.Compiler

  @impl true
  def run(_args) do
    Mix.Project.ensure_structure()
    priv = Path.join(Mix.Project.app_path(), "priv")
    # A make above this one has its own business.
    environment = for name <- ~w(MAKEFLAGS MAKELEVEL MFLAGS), do: {name, nil}
    environment = [{"MIX_APP_PATH", Mix.Project.app_path()} | environment]
    options = [env: environment, into: IO.binstream(:stdio, :line), stderr_to_stdout: true]
    script = "c_src/precompiled"

    installed? =
      File.exists?(script <> ".config") and
        match?({_, 0}, System.cmd("escript", [script], options))

    unless installed? do
      {_, status} = System.cmd("make", ["-s", "-C", "c_src", "all", "PRIV_DIR=#{priv}"], options)
      if status != 0, do: Mix.raise("fairnif_check: make ended with exit status #{status}")
    end

    # The report page, after `make page`; in the package it is in priv.
    if File.exists?("page/report.html") do
      File.mkdir_p!(Path.join(priv, "page"))
      File.cp!("page/report.html", Path.join(priv, "page/report.html"))
    end

    {:ok, []}
  end
end

defmodule FairnifCheck.MixProject do
  use Mix.Project

  # The checker for Mix projects: the OTP application of apps/fairnif_check, compiled by Mix itself, with
  # the Mix tasks and the ExUnit assertions in lib/. src, c_src and rebar.config are links to it.
  @resource Path.join(__DIR__, "src/fairnif_check.app.src")
  @external_resource @resource
  @properties (case :file.consult(String.to_charlist(@resource)) do
                 {:ok, [{:application, :fairnif_check, properties}]} ->
                   properties

                 {:error, reason} ->
                   # The links lead to the rest of the repository.
                   Mix.raise(
                     "fairnif_check: no #{@resource} (#{:file.format_error(reason)}); as a git " <>
                       "dependency it takes subdir:, and not sparse:"
                   )
               end)

  def project do
    [
      app: :fairnif_check,
      version: to_string(@properties[:vsn]),
      elixir: "~> 1.14",
      compilers: Mix.compilers() ++ [:fairnif_check],
      deps: deps()
    ]
  end

  # ExUnit: only where Fairnif.Test is used, and there it runs already.
  def application do
    [
      applications: @properties[:applications] ++ [:elixir],
      registered: @properties[:registered],
      env: @properties[:env]
    ]
  end

  # In the repository, and in a checkout of it, fairnif is next to this directory. Then a dependency
  # on the checker by path or git must not name where fairnif comes from: a project that has that
  # dependency names fairnif as well, from where it wants it, and Mix refuses two places. On Hex it
  # is a package like any other.
  defp deps do
    cond do
      File.exists?("hex_metadata.config") ->
        {:ok, config} = :file.consult("rebar.config")
        for {app, requirement} <- config[:deps], do: {app, to_string(requirement)}

      Mix.Project.get() == nil ->
        [{:fairnif, path: "../fairnif"}]

      true ->
        []
    end
  end
end
