defmodule Fairnif.PackageTest do
  # What Hex would get of both projects, and nothing else, builds: with Mix, and with rebar3. Not
  # beside others: in_project/3 changes the directory of the whole VM.
  use ExUnit.Case, async: false

  @moduletag timeout: 300_000

  setup do
    # Outside of this project: nothing of it may be found upwards from there.
    root = Path.join(System.tmp_dir!(), "fairnif_package_#{System.unique_integer([:positive])}")
    File.mkdir_p!(root)
    on_exit(fn -> File.rm_rf!(root) end)
    for project <- ["fairnif", "fairnif_check"], do: pack(project, root)
    {:ok, root: root}
  end

  # As `mix hex.build` does: what the patterns match, each file by what it holds.
  defp pack(project, root) do
    from = Path.expand("../#{project}")

    for pattern <- files(project),
        matches = Path.wildcard(Path.join(from, pattern), match_dot: true),
        matches != [] || flunk("#{pattern} matches no file of #{project}"),
        match <- matches,
        file <- if(File.dir?(match), do: Path.wildcard("#{match}/**"), else: [match]),
        File.regular?(file) do
      to = Path.join([root, project, Path.relative_to(file, from)])
      File.mkdir_p!(Path.dirname(to))
      File.cp!(file, to)
    end
  end

  defp files("fairnif_check"), do: Mix.Project.config()[:package][:files]

  defp files(project) do
    Mix.Project.in_project(:fairnif, "../#{project}", fn module ->
      module.project()[:package][:files]
    end)
  end

  defp run!(command, args, directory) do
    # As a user's, and not as these tests themselves.
    {output, status} =
      System.cmd(command, args,
        cd: directory,
        stderr_to_stdout: true,
        env: [{"MIX_ENV", "prod"}, {"MIX_BUILD_PATH", nil}, {"MIX_DEPS_PATH", nil}]
      )

    assert status == 0, output
    output
  end

  test "with Mix, and the checker finds its NIFs, the runtime and the report page", %{root: root} do
    checker = Path.join(root, "fairnif_check")
    refute run!("mix", ["compile"], checker) =~ "warning"

    code =
      "Fairnif.info().version |> IO.puts(); :fairnif_check_nif.now() |> is_integer |> IO.puts(); " <>
        ":fairnif_check_page.template() |> elem(0) |> IO.puts()"

    assert run!("mix", ["run", "-e", code], checker) =~ ~r/^0\.\d+\.\d+\S*\ntrue\nok\n/m
  end

  test "fairnif with rebar3, for those who use no Elixir", %{root: root} do
    fairnif = Path.join(root, "fairnif")
    run!("rebar3", ["compile"], fairnif)
    ebin = "_build/default/lib/fairnif/ebin"
    code = "io:format(\"~s~n\", [maps:get(version, fairnif:info())]), halt()."
    assert run!("erl", ["-noshell", "-pa", ebin, "-eval", code], fairnif) =~ ~r/^0\.\d+\.\d+/
  end
end
