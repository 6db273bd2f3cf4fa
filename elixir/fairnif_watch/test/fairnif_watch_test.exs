defmodule FairnifWatchTest do
  use ExUnit.Case

  @moduletag timeout: 300_000

  # Started with this project, as with any that depends on it.
  test "it watches with its native part, sees a block of its own and names it" do
    assert {:ok, seen} = :fairnif_watch.self_test()
    assert seen.culprit == "fairnif_watch_probe:block/1"
  end

  test "it is the application that rebar3 builds" do
    sources = for file <- Path.wildcard("src/**/*.erl"), do: Path.basename(file, ".erl")
    modules = Application.spec(:fairnif_watch, :modules)
    assert Enum.sort(sources) == modules |> Enum.map(&to_string/1) |> Enum.sort()
    {:ok, [{:application, :fairnif_watch, resource}]} = :file.consult('src/fairnif_watch.app.src')

    for key <- [:vsn, :registered, :applications, :mod] do
      assert Application.spec(:fairnif_watch, key) == resource[key]
    end
  end

  describe "in a release" do
    setup do
      root = Path.join(System.tmp_dir!(), "shop_#{System.unique_integer([:positive])}")
      on_exit(fn -> File.rm_rf!(root) end)
      for {name, text} <- project(), do: write!(Path.join(root, name), text)
      assert {output, 0} = run("mix", ["release"], root, [])
      refute output =~ "warning"
      {:ok, bin: Path.join(root, "_build/prod/rel/shop/bin/shop")}
    end

    test "it runs with the settings of config/runtime.exs; a wrong one is named", %{bin: bin} do
      http = free_port()

      code = """
      {:ok, _} = Application.ensure_all_started(:fairnif_watch)
      {:ok, seen} = :fairnif_watch.self_test()
      {:ok, config} = :fairnif_watch_config.read()
      {:ok, _} = Application.ensure_all_started(:inets)
      {:ok, {{_, 200, _}, _, page}} = :httpc.request('http://127.0.0.1:#{http}/')
      IO.inspect({seen.culprit, config.warn_ms, to_string(page) =~ "<html"})
      """

      set = [{"WARN_MS", "25"}, {"HTTP_PORT", to_string(http)}]
      assert {output, 0} = run(bin, ["eval", code], ".", set)
      assert output =~ ~s({"fairnif_watch_probe:block/1", 25, true})
      # As Elixir's Logger writes it.
      assert output =~ "[error] error: scheduler_blocked: Scheduler"
      assert output =~ "[notice] fairnif_watch: the live page is at http://127.0.0.1:#{http}/"

      start = "IO.inspect(Application.ensure_all_started(:fairnif_watch))"
      assert {output, 0} = run(bin, ["eval", start], ".", [{"WARN_MS", "0"}])
      assert output =~ ~s({:warn_ms, 0, 'an integer from 1 to 60000'})
    end
  end

  defp project do
    [
      {"mix.exs",
       """
       defmodule Shop.MixProject do
         use Mix.Project
         def project, do: [app: :shop, version: "1.0.0", deps: deps()]
         def application, do: [extra_applications: [:logger, :inets]]
         defp deps, do: [{:fairnif_watch, path: #{inspect(File.cwd!())}}]
       end
       """},
      {"config/runtime.exs",
       """
       import Config

       config :fairnif_watch,
         warn_ms: String.to_integer(System.get_env("WARN_MS", "10")),
         # The first line of a hold is an error, however late the next would be on a busy machine.
         error_ms: 25,
         http: {{127, 0, 0, 1}, String.to_integer(System.get_env("HTTP_PORT", "0"))}
       """},
      {"lib/shop.ex", "defmodule Shop do\nend\n"}
    ]
  end

  defp free_port do
    {:ok, socket} = :gen_tcp.listen(0, ip: {127, 0, 0, 1})
    {:ok, port} = :inet.port(socket)
    :ok = :gen_tcp.close(socket)
    port
  end

  defp write!(path, text) do
    File.mkdir_p!(Path.dirname(path))
    File.write!(path, text)
  end

  # As a user's, and not as these tests themselves.
  defp run(command, args, directory, env) do
    System.cmd(command, args,
      cd: directory,
      stderr_to_stdout: true,
      env: env ++ [{"MIX_ENV", "prod"}, {"MIX_BUILD_PATH", nil}, {"MIX_DEPS_PATH", nil}]
    )
  end
end
