defmodule Fairnif.MixProject do
  use Mix.Project

  # fairnif for Mix projects: the OTP application of apps/fairnif, compiled by Mix itself (no rebar3
  # needed), with the Elixir face in lib/. src, include, c_src, c_include and rebar.config are links
  # to it: the same files in this repository, for a git dependency and in the package on Hex, which
  # either tool can build. Version and start-up are read from the application's own resource file,
  # so that there is one source of each.
  @resource Path.join(__DIR__, "src/fairnif.app.src")
  @external_resource @resource
  @properties (case :file.consult(String.to_charlist(@resource)) do
                 {:ok, [{:application, :fairnif, properties}]} ->
                   properties

                 {:error, reason} ->
                   # The links lead to the rest of the repository.
                   Mix.raise(
                     "fairnif: no #{@resource} (#{:file.format_error(reason)}); as a git " <>
                       "dependency it takes subdir:, and not sparse:"
                   )
               end)

  def project do
    [
      app: :fairnif,
      version: to_string(@properties[:vsn]),
      elixir: "~> 1.14",
      # After :elixir, which makes the compiler's own task.
      compilers: Mix.compilers() ++ [:fairnif],
      make_cwd: "c_src",
      # Nothing is written into the sources.
      make_args: [
        "-s",
        "BUILD_DIR=$(MIX_APP_PATH)/c_src",
        "PRIV_DIR=$(MIX_APP_PATH)/priv"
      ],
      make_targets: ["all"],
      deps: []
    ]
  end

  def application do
    [
      mod: @properties[:mod],
      env: @properties[:env],
      registered: @properties[:registered],
      # Mix adds these two by itself.
      extra_applications: @properties[:applications] -- [:kernel, :stdlib]
    ]
  end
end
