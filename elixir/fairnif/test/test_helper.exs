# The tests' modules need a library each. It is compiled as an author's is, with what
# Fairnif.make_env/0 says, into the priv of this environment's build.
defmodule Fairnif.Probe do
  @doc "Compiles probe.c, or another source, for this module to that path in priv."
  def build(module, path, source \\ File.read!(Path.join(__DIR__, "probe.c"))) do
    library = "#{Fairnif.library(:fairnif, path)}.so"
    File.mkdir_p!(Path.dirname(library))
    %{"FAIRNIF_INCLUDE_DIR" => fairnif, "ERTS_INCLUDE_DIR" => erts} = Fairnif.make_env()
    flags = ~w(-std=gnu11 -O0 -Wall -Wextra -Werror -fPIC -fvisibility=hidden -shared)
    # FAIR_NIF_INIT makes a text of the name as it stands: the compiler must see it there.
    file = "#{library}.c"
    File.write!(file, String.replace(source, "PROBE_MODULE, nifs", "#{module}, nifs"))

    {output, status} =
      System.cmd("cc", flags ++ ["-I#{fairnif}", "-I#{erts}", "-o", library, file],
        stderr_to_stdout: true
      )

    if status != 0, do: raise("#{file}: #{output}")
    :ok
  end

  @doc """
  Has what is logged sent to the calling process, as `{:logged, text}`, and not printed, until the
  test ends. The code server logs from a process of its own, at any time.
  """
  def hear_log do
    :ok = :logger.add_handler(__MODULE__, __MODULE__, %{config: %{to: self()}})
    :ok = :logger.update_handler_config(:default, :level, :none)

    ExUnit.Callbacks.on_exit(fn ->
      :ok = :logger.update_handler_config(:default, :level, :all)
      :ok = :logger.remove_handler(__MODULE__)
    end)
  end

  # A handler of logger.
  def log(event, %{config: %{to: pid}}) do
    send(pid, {:logged, to_string(:logger_formatter.format(event, %{single_line: true}))})
  end

  @doc "Compiles an author's module, as its file would be."
  def compile(source) do
    Code.put_compiler_option(:docs, true)
    Code.put_compiler_option(:debug_info, true)
    Code.compile_string(source, "author.ex")
  end
end

# A busy machine takes longer than the 100 ms that are usual.
ExUnit.start(assert_receive_timeout: 10_000)
