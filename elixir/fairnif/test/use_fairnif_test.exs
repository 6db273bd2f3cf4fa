defmodule UseFairnifTest do
  # What an author writes, right and wrong.
  use ExUnit.Case, async: false

  @both "defnif info()\ndefnif count(n)\n"

  defp compile(body, name \\ "Fairnif.TestAuthor") do
    Fairnif.Probe.compile("defmodule #{name} do\n#{body}\nend")
  end

  defp wrong(body) do
    assert_raise CompileError, fn -> compile(body) end
  end

  # The first line logged with that text; other tests' may come as well.
  defp logged(text) do
    assert_receive {:logged, line}, 10_000
    if line =~ text, do: line, else: logged(text)
  end

  describe "a module that uses Fairnif" do
    test "loads the library of its own path in priv" do
      Fairnif.Probe.build(Fairnif.TestDefault, "fairnif/test_default")
      compile("use Fairnif, otp_app: :fairnif\n" <> @both, "Fairnif.TestDefault")
      assert apply(Fairnif.TestDefault, :info, []) == :undefined
    end

    test "loads the library that path: names, and tells it load_info:" do
      Fairnif.Probe.build(Fairnif.TestOptions, "elsewhere/options")

      compile(
        """
        use Fairnif, otp_app: :fairnif, path: "elsewhere/options",
          load_info: {:told, [1, 2], self()}
        defnif info()
        defnif count(n)
        """,
        "Fairnif.TestOptions"
      )

      assert {:told, [1, 2], pid} = apply(Fairnif.TestOptions, :info, [])
      assert is_pid(pid)
      assert is_integer(apply(Fairnif.TestOptions, :count, [10]))
      assert_raise ArgumentError, fn -> apply(Fairnif.TestOptions, :count, [:ten]) end
    end

    test "may name the application and the path by attributes" do
      Fairnif.Probe.build(Fairnif.TestAttribute, "elsewhere/attribute")

      compile(
        """
        @library "elsewhere/attribute"
        @application :fairnif
        use Fairnif, otp_app: @application, path: @library
        """ <> @both,
        "Fairnif.TestAttribute"
      )

      assert apply(Fairnif.TestAttribute, :info, []) == :undefined
    end

    test "without its library is not loaded, and the log says which file was missing" do
      Fairnif.Probe.hear_log()
      compile("use Fairnif, otp_app: :fairnif, path: \"no/such\"\ndefnif info()")
      refute Code.ensure_loaded?(Fairnif.TestAuthor)
      assert logged("on_load function for module Elixir.Fairnif.TestAuthor") =~ "priv/no/such"
    end

    test "that lacks a function of its library is not loaded, and the log says which" do
      Fairnif.Probe.build(Fairnif.TestLacking, "elsewhere/lacking")
      Fairnif.Probe.hear_log()

      compile(
        "use Fairnif, otp_app: :fairnif, path: \"elsewhere/lacking\"\ndefnif info()",
        "Fairnif.TestLacking"
      )

      refute Code.ensure_loaded?(Fairnif.TestLacking)

      assert logged("on_load function for module Elixir.Fairnif.TestLacking") =~
               "Function not found 'Elixir.Fairnif.TestLacking':count/1"
    end
  end

  describe "a NIF" do
    test "has its doc, its spec and its arguments' names" do
      compile = fn ->
        compile("""
        @compile {:autoload, false}
        use Fairnif, otp_app: :fairnif
        @doc "XORs."
        @spec exor(binary(), byte()) :: binary()
        defnif exor(binary, byte)
        """)
      end

      [{Fairnif.TestAuthor, beam}] = compile.()
      {:ok, {_, [{~c"Docs", docs}]}} = :beam_lib.chunks(beam, [~c"Docs"])
      {:docs_v1, _, _, _, _, _, functions} = :erlang.binary_to_term(docs)

      assert [{{:function, :exor, 2}, _, ["exor(binary, byte)"], %{"en" => "XORs."}, _}] =
               for({{_, :exor, _}, _, _, _, _} = function <- functions, do: function)

      assert {:ok, [{{:exor, 2}, [_]}]} = Code.Typespec.fetch_specs(beam)
    end

    test "has variables for arguments" do
      use_it = "use Fairnif, otp_app: :fairnif\n"
      assert %{line: 3, description: text} = wrong(use_it <> "defnif exor(binary, 1)")
      assert text =~ "`1` in defnif exor(binary, 1): the arguments are variables"
      assert wrong(use_it <> "defnif exor(binary, byte \\\\ 1)").description =~ "`byte \\\\ 1`"
      assert wrong(use_it <> "defnif exor(b) when b > 1").description =~ "no guard"
      assert wrong(use_it <> "defnif exor").description =~ "write defnif name(argument, ...)"
      assert wrong(use_it <> "defnif exor: 2").description =~ "write defnif name(argument, ...)"
    end

    test "needs use Fairnif" do
      assert wrong("import Fairnif\ndefnif f(x)").description =~ "defnif needs `use Fairnif"
    end
  end

  describe "a compile error tells of" do
    test "no application" do
      assert %{file: "author.ex", line: 2, description: text} = wrong("use Fairnif")
      assert text =~ "needs the application whose priv has the library: otp_app: :my_app"
      assert wrong("use Fairnif, path: \"x\"").description =~ "otp_app: :my_app"
    end

    test "an application that is no name of one" do
      assert wrong("use Fairnif, otp_app: \"my_app\"").description =~ "otp_app: \"my_app\" is not"
    end

    test "an option that does not exist, or stands twice" do
      text = wrong("use Fairnif, otp_app: :fairnif, crate: \"x\"").description
      assert text =~ ":crate is not an option of use Fairnif; the options are :otp_app, :path, "
      text = wrong("use Fairnif, otp_app: :fairnif, otp_app: :other").description
      assert text =~ ":otp_app stands twice"
    end

    test "options that are no list" do
      assert wrong("use Fairnif, :fairnif").description =~ "takes a list of options"
    end

    test "a path that leaves priv, or has an extension, or is no text" do
      path = fn path -> wrong("use Fairnif, otp_app: :fairnif, path: #{path}").description end
      assert path.(~s("/tmp/x")) =~ "is not a path within priv"
      assert path.(~s("../x")) =~ "is not a path within priv"
      assert path.(~s("")) =~ "is not a path within priv"
      assert path.(~s("x.so")) =~ "without its extension"
      assert path.(":x") =~ "path: :x is not a text"
    end

    test "a module without NIFs" do
      assert wrong("use Fairnif, otp_app: :fairnif").description =~
               "Fairnif.TestAuthor uses Fairnif and declares no NIF"
    end
  end
end
