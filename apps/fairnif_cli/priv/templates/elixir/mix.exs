defmodule MyNif.MixProject do
  use Mix.Project

  # Where fairnif is from: :hex, :git, or the directory of a checkout. Where that is not there it is
  # :git.
  @fairnif {{from}}

  def project do
    [
      app: :my_nif,
      version: "0.1.0",
      elixir: "~> 1.14",
      # fairnif's own compiler: make, in {{sources}}. With the package elixir_make in deps it is
      #   compilers: [:elixir_make] ++ Mix.compilers(), make_env: &Fairnif.make_env/0
      # and all else stays.
      compilers: [:fairnif] ++ Mix.compilers(),
      make_cwd: "{{sources}}",
      make_clean: ["clean"],
      start_permanent: Mix.env() == :prod,
      deps: deps()
    ]
  end

  # The checker judges the NIF in test/well_behaved_test.exs and for `mix fairnif.check`.
  defp deps do
    [
      {:fairnif, "{{requirement}}", from(@fairnif, "fairnif")},
      {:fairnif_check, "{{requirement}}",
       [only: [:dev, :test], runtime: false] ++ from(@fairnif, "fairnif_check")}
    ]
  end

  defp from(:hex, _app), do: []

  defp from(:git, app) do
    [git: "https://github.com/fairnif/fairnif.git", branch: "main", subdir: "elixir/#{app}"]
  end

  defp from(checkout, app) do
    directory = Path.join([checkout, "elixir", app])
    if File.dir?(directory), do: [path: directory], else: from(:git, app)
  end
end
