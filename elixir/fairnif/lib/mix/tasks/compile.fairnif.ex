defmodule Mix.Tasks.Compile.Fairnif do
  @shortdoc "Builds a project's NIFs with make"

  @moduledoc """
  Builds a project's NIFs with `make`, and needs no package but fairnif.

      def project do
        [
          app: :my_app,
          compilers: [:fairnif] ++ Mix.compilers(),
          make_clean: ["clean"],
          ...

  Before the other compilers: a module with NIFs may be loaded while the project compiles.

  It runs `make` in the project's directory, with the keys and the variables of the package
  `elixir_make`, so that a project goes over from one to the other by one word:

    * `:make_cwd` - the directory of the Makefile; default `"."`
    * `:make_targets` - what to make, a list of texts; default `[]`, the first target
    * `:make_args` - more arguments of make, a list of texts; default `[]`
    * `:make_env` - more variables: a map of texts, or a function that returns one
    * `:make_clean` - the targets that `mix clean` makes; default none: it makes nothing
    * `:make_executable` - default `$MAKE`, else `make`

  The Makefile finds in its environment

    * `MIX_APP_PATH` - what is built belongs into `$(MIX_APP_PATH)/priv`, objects below
      `$(MIX_APP_PATH)` as well: then each environment has its own, and the sources stay clean
    * `ERTS_INCLUDE_DIR` - the directory of `erl_nif.h`
    * `FAIRNIF_INCLUDE_DIR` - the directory of `fairnif.h`
    * `MIX_ENV`, `MIX_TARGET`, `MIX_BUILD_PATH`, `MIX_COMPILE_PATH`, `MIX_DEPS_PATH`

  With `elixir_make` itself (`compilers: [:elixir_make] ++ Mix.compilers()`) all of them are there
  but `FAIRNIF_INCLUDE_DIR`; `make_env: &Fairnif.make_env/0` adds it.

  Errors: when make fails, the task does, and names make's exit status. Paths must not have blanks:
  make splits them.
  """

  use Mix.Task.Compiler

  @impl true
  def run(_args) do
    config = Mix.Project.config()
    Mix.Project.ensure_structure()
    precompiled?(config) || make(config, Keyword.get(config, :make_targets, []))
    # What exists since before this call; what make has put into MIX_APP_PATH needs no link.
    if File.dir?("priv"), do: Mix.Project.build_structure()
    {:ok, []}
  end

  @impl true
  def clean do
    config = Mix.Project.config()

    case Keyword.get(config, :make_clean, []) do
      [] -> :ok
      targets -> make(config, targets)
    end
  end

  # A package that has this file brings libraries, and the program that installs them.
  defp precompiled?(config) do
    script = Path.join(directory(config), "precompiled")

    File.exists?(script <> ".config") and
      match?({_, 0}, System.cmd("escript", [script], options(environment(config))))
  end

  defp directory(config), do: Path.expand(Keyword.get(config, :make_cwd, "."))

  defp options(environment) do
    [env: environment, into: IO.binstream(:stdio, :line), stderr_to_stdout: true]
  end

  defp make(config, targets) do
    name = config[:make_executable] || System.get_env("MAKE") || "make"
    make = System.find_executable(name) || Mix.raise("fairnif: #{name} is not in PATH")
    directory = directory(config)
    arguments = targets ++ Keyword.get(config, :make_args, [])

    {_, status} = System.cmd(make, arguments, [cd: directory] ++ options(environment(config)))

    if status != 0 do
      Mix.raise("fairnif: `#{name}` in #{directory} ended with exit status #{status}")
    end

    :ok
  end

  defp environment(config) do
    %{
      "MIX_APP_PATH" => Mix.Project.app_path(config),
      "MIX_BUILD_PATH" => Mix.Project.build_path(config),
      "MIX_COMPILE_PATH" => Mix.Project.compile_path(config),
      "MIX_DEPS_PATH" => Mix.Project.deps_path(config),
      "MIX_ENV" => to_string(Mix.env()),
      "MIX_TARGET" => to_string(Mix.target()),
      # A make above this one (a Makefile that calls mix) has its own business.
      "MAKEFLAGS" => nil,
      "MAKELEVEL" => nil,
      "MFLAGS" => nil
    }
    |> Map.merge(Fairnif.make_env())
    |> Map.merge(authors(config[:make_env]))
  end

  defp authors(nil), do: %{}
  defp authors(function) when is_function(function, 0), do: function.()
  defp authors(map), do: Map.new(map)
end
