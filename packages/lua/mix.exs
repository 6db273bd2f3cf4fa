defmodule Luajit.MixProject do
  use Mix.Project

  def project do
    [
      app: :luajit,
      version: "1.0.0-rc.1",
      elixir: "~> 1.14",
      compilers: [:fairnif] ++ Mix.compilers(),
      make_cwd: "c_src",
      make_clean: ["clean"],
      deps: [{:fairnif, fairnif(Mix.Project.get())}]
    ]
  end

  # By itself it is built with the tree at hand; as a dependency with the repository's.
  defp fairnif(nil), do: [path: "../../elixir/fairnif"]

  defp fairnif(_) do
    [git: "https://github.com/fairnif/fairnif.git", branch: "main", subdir: "elixir/fairnif"]
  end
end
