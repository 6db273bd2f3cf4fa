defmodule CompileFairnifTest do
  # The compiler that runs make, in projects made for it. They change the working directory: no
  # other test at the same time.
  use ExUnit.Case, async: false
  import ExUnit.CaptureIO

  setup do
    root = Path.join(System.tmp_dir!(), "fairnif_compiler_#{System.unique_integer([:positive])}")
    on_exit(fn -> File.rm_rf!(root) end)
    {:ok, root: root}
  end

  # In a project with these options and this Makefile.
  defp in_project(root, options, makefile, function) do
    app = :"fairnif_compiler_#{System.unique_integer([:positive])}"
    directory = Path.join(root, to_string(options[:make_cwd]))
    File.mkdir_p!(directory)
    File.write!(Path.join(directory, "Makefile"), makefile)

    File.write!(Path.join(root, "mix.exs"), """
    defmodule #{Macro.camelize("#{app}")}.MixProject do
      use Mix.Project
      def project, do: [app: #{inspect(app)}, version: "1.0.0"] ++ #{inspect(options)}
    end
    """)

    # As in a project of its own, not in this one's build.
    Mix.Project.in_project(app, root, [build_path: Path.join(root, "_build")], fn _ ->
      capture_io(function)
    end)
  end

  defp compile, do: Mix.Tasks.Compile.Fairnif.run([])

  test "make gets targets, arguments and its directory", %{root: root} do
    options = [make_cwd: "native", make_targets: ["one", "two"], make_args: ["-s", "WHAT=x"]]
    makefile = "none:\n\tfalse\none two:\n\t@echo $@ $(WHAT) $(notdir $(CURDIR))\n"
    output = in_project(root, options, makefile, fn -> assert compile() == {:ok, []} end)
    assert output =~ "one x native\ntwo x native\n"
  end

  test "make gets the directories of both headers and of what is built", %{root: root} do
    makefile = """
    all:
    \t@test -f $(FAIRNIF_INCLUDE_DIR)/fairnif.h && test -f $(ERTS_INCLUDE_DIR)/erl_nif.h
    \t@mkdir -p $(MIX_APP_PATH)/priv && echo $(MIX_ENV) >$(MIX_APP_PATH)/priv/env
    """

    in_project(root, [], makefile, fn ->
      compile()
      assert File.read!(Path.join(Mix.Project.app_path(), "priv/env")) == "test\n"
    end)
  end

  test "make gets the author's variables, and none of a make above", %{root: root} do
    makefile = "all:\n\t@echo $(MINE) $(MAKELEVEL)\n"
    output = in_project(root, [make_env: %{"MINE" => "a map"}], makefile, fn -> compile() end)
    assert output =~ "a map 0\n"
  end

  test "make_env may be a function", %{root: root} do
    # A capture, as an author's mix.exs has it.
    output =
      in_project(root, [make_env: &__MODULE__.variables/0], "all:\n\t@echo $(MINE)\n", fn ->
        compile()
      end)

    assert output =~ "a function\n"
  end

  def variables, do: %{"MINE" => "a function"}

  test "what make's exit status was is said", %{root: root} do
    makefile = "all:\n\t@echo no such compiler; exit 3\n"

    output =
      in_project(root, [], makefile, fn ->
        assert_raise Mix.Error,
                     ~r/`make` in .*#{Path.basename(root)} ended with exit status 2/,
                     fn ->
                       compile()
                     end
      end)

    assert output =~ "no such compiler"
  end

  test "a make that is not there is named", %{root: root} do
    in_project(root, [make_executable: "no_such_make"], "all:\n", fn ->
      assert_raise Mix.Error, "fairnif: no_such_make is not in PATH", fn -> compile() end
    end)
  end

  test "clean makes the targets of make_clean, and nothing without them", %{root: root} do
    makefile = "all:\n\t@echo ALL\nclean:\n\t@echo CLEAN\n"
    clean = fn -> Mix.Tasks.Compile.Fairnif.clean() end
    assert in_project(root, [], makefile, clean) == ""
    assert in_project(root, [make_clean: ["clean"]], makefile, clean) =~ "CLEAN"
  end
end
