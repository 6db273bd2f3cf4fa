defmodule Fairnif.PackageTest do
  # What is in the Hex packages of both projects, and nothing else, builds with Mix. That Mix gets them
  # from Hex, and rebar3: tools/install_test.
  use ExUnit.Case, async: true

  @moduletag timeout: 300_000

  setup do
    # Outside of this project: nothing of it may be found upwards from there.
    root = Path.join(System.tmp_dir!(), "fairnif_package_#{System.unique_integer([:positive])}")
    File.mkdir_p!(root)
    on_exit(fn -> File.rm_rf!(root) end)
    run!(Path.expand("../../tools/hex"), [Path.join(root, "hex")], ".")

    for project <- ["fairnif", "fairnif_check"] do
      [tarball] = Path.wildcard(Path.join(root, "hex/tarballs/#{project}-1*"))
      to = Path.join(root, project)
      File.mkdir_p!(to)
      run!("tar", ["xf", tarball, "contents.tar.gz"], to)
      run!("tar", ["xzf", "contents.tar.gz"], to)
    end

    {:ok, root: root}
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

    assert run!("mix", ["run", "-e", code], checker) =~ ~r/^1\.\d+\.\d+\S*\ntrue\nok\n/m
  end
end
