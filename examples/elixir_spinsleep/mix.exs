defmodule Spinsleep.MixProject do
  use Mix.Project

  def project do
    [
      app: :spinsleep,
      version: "0.1.0",
      elixir: "~> 1.14",
      # fairnif's own compiler: make, in c_src. With the package elixir_make in deps it is
      #   compilers: [:elixir_make] ++ Mix.compilers(), make_env: &Fairnif.make_env/0
      # and all else stays.
      compilers: [:fairnif] ++ Mix.compilers(),
      make_cwd: "c_src",
      make_clean: ["clean"],
      deps: deps()
    ]
  end

  # In this repository the tree at hand takes the place of
  #   {:fairnif, git: "https://github.com/fairnif/fairnif.git", subdir: "elixir/fairnif"}
  # and of the same with fairnif_lab.
  defp deps do
    [
      {:fairnif, path: "../../elixir/fairnif"},
      {:fairnif_lab, path: "../../elixir/fairnif_lab", only: [:dev, :test], runtime: false}
    ]
  end
end
