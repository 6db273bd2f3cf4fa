defmodule Fairnif do
  @moduledoc """
  Native functions that share the BEAM, in Elixir.

      defmodule MyApp.Bits do
        use Fairnif, otp_app: :my_app

        @doc "XORs each byte of `binary` with `byte`."
        @spec exor(binary(), byte()) :: binary()
        defnif exor(binary, byte)
      end

  The module loads `priv/my_app/bits.so` of `:my_app` when it is loaded itself, and the library
  implements `exor/2`. In C:

      static ErlNifFunc nifs[] = {
          FAIR_NIF("exor", 2, exor, FAIR_AUTO)
      };

      FAIR_NIF_INIT(Elixir.MyApp.Bits, nifs, NULL, NULL, NULL)

  `Mix.Tasks.Compile.Fairnif` builds the library. `Fairnif.Process` runs a function that receives as a
  process. The functions below are those of the Erlang module `fairnif`, with keywords, captures and
  exceptions.

  ## Options of `use Fairnif`

    * `:otp_app` (required) - the application whose `priv` has the library
    * `:path` - the library in `priv`, without extension. The default is the path of the module's
      source file in `lib`: `"my_app/bits"` for `MyApp.Bits`
    * `:load_info` - a term for the library's own `load` and `upgrade` functions. The expression is
      evaluated each time the module is loaded. The default is `:undefined`

  Any other option is a `CompileError`.

  If the library cannot be loaded, the module is undefined: calls raise `UndefinedFunctionError`, and
  the code server's warning about the `on_load` function says why.
  """

  @typedoc "Function, as `info/1` names it."
  @type function_name :: mfa() | function()

  @doc false
  defmacro __using__(options) do
    Fairnif.Nif.use(options, __CALLER__)
  end

  @doc """
  Declares a NIF: a function of the module that the library implements.

  Takes only the head, whose arguments are variables: `defnif exor(binary, byte)`. `@doc`, `@spec` and
  the other attributes go before it, as before `def`. The function is public. It raises `:not_loaded` in
  a module that was not loaded by the `on_load` of `use Fairnif`.
  """
  defmacro defnif(head) do
    Fairnif.Nif.define(head, __CALLER__)
  end

  @doc """
  Returns the result of a fair function that may wait: in mode `FAIR_THREADED`, or with
  `FAIR_MAY_WAIT` or-ed to another mode.

      defmodule MyApp.Fetch do
        use Fairnif, otp_app: :my_app

        def fetch(url), do: Fairnif.await(nif_fetch(url))

        @doc false
        defnif nif_fetch(url)
      end

  A value that is not pending is returned unchanged, so one wrapper serves every mode:

      iex> Fairnif.await({:ok, 42})
      {:ok, 42}

  For a pending value the caller waits in a `receive` that matches one message only. It occupies no
  scheduler, and other messages stay in the mailbox. The call ends if the caller dies. A pending value
  can be awaited once, by the process that made the call. Otherwise this raises `Fairnif.Error`:

      iex> Fairnif.await({:fairnif_pending, :forged})
      ** (Fairnif.Error) not a pending value of fairnif's

  What the function itself raises is passed on unchanged: `:overloaded` as an `ErlangError`, if it
  waited longer than `overload_ms` for its turn or for a thread.
  """
  @spec await(term()) :: term()
  def await(value), do: native(fn -> :fairnif.await(value) end)

  @doc """
  Calls `fun`, whose result takes `words` words of heap, with room for them, so that the caller's heap
  is not grown and copied repeatedly. It pays from about 100,000 words on.

      iex> Fairnif.with_heap(200_000, fn -> length(Enum.to_list(1..100_000)) end)
      100000
  """
  @spec with_heap(non_neg_integer(), (() -> result)) :: result when result: term()
  def with_heap(words, fun), do: :fairnif.with_heap(words, fun)

  @doc """
  Loads a library, in a module with an `@on_load` of its own: `path`, without extension, in the `priv`
  directory of the application. Returns once the library can be called.

      require Fairnif
      @on_load :load
      def load, do: Fairnif.load(:my_app, "bits")

  The library's `load` and `upgrade` functions get `authors_info`. It is a macro since
  `:erlang.load_nif/2` binds to the module that contains the call.
  """
  defmacro load(otp_app, path, authors_info \\ :undefined) do
    quote do
      :fairnif.loaded(
        :erlang.load_nif(
          Fairnif.library(unquote(otp_app), unquote(path)),
          :fairnif.load_info(unquote(authors_info))
        )
      )
    end
  end

  @doc """
  The second argument of `:erlang.load_nif/2`.

  The library's `load` and `upgrade` functions get `authors_info`. The first call loads the runtime:
  1 to 2 ms. Raises `Fairnif.Error` when the runtime cannot be loaded.
  """
  @spec load_info(term()) :: term()
  def load_info(authors_info \\ :undefined),
    do: native(fn -> :fairnif.load_info(authors_info) end)

  @doc """
  Returns the result of `:erlang.load_nif/2` once it is safe to call the library.

  `use Fairnif` and `load/3` do this. Without it, a call just after the load that raises later can end the node,
  as with any dirty NIF, since OTP 25 to 29 read freed memory in that case. It takes 0.3 ms, 1 to 2 ms
  if all schedulers are busy, and as long as a native function blocks a scheduler.
  """
  @spec loaded(result) :: result when result: :ok | {:error, term()}
  def loaded(result), do: :fairnif.loaded(result)

  @doc """
  The first argument of `:erlang.load_nif/2`: `path`, without extension, in the `priv` directory of
  the application.

      iex> Fairnif.library(:fairnif, "fairnif") |> List.to_string() |> Path.basename()
      "fairnif"

  Raises `ArgumentError` for an application that is not on the code path.
  """
  @spec library(Application.app(), Path.t()) :: charlist()
  def library(otp_app, path) do
    case :code.priv_dir(otp_app) do
      {:error, :bad_name} ->
        raise ArgumentError,
              "no application #{inspect(otp_app)} on the code path: is it the :otp_app?"

      priv ->
        :filename.join(priv, to_charlist(path))
    end
  end

  @doc """
  The directory of `fairnif.h`, for the compiler's `-I`.

      iex> Fairnif.include_dir() |> Path.join("fairnif.h") |> File.regular?()
      true

  """
  @spec include_dir() :: Path.t()
  def include_dir do
    native(fn -> :fairnif.include_dir() end) |> List.to_string() |> Path.expand()
  end

  @doc """
  The environment that a Makefile needs to compile a NIF: `FAIRNIF_INCLUDE_DIR` has `fairnif.h`,
  `ERTS_INCLUDE_DIR` has `erl_nif.h`.

  Use it as `make_env: &Fairnif.make_env/0` if `elixir_make` builds the NIFs. `Mix.Tasks.Compile.Fairnif`
  sets both by itself.

      iex> Fairnif.make_env() |> Map.keys()
      ["ERTS_INCLUDE_DIR", "FAIRNIF_INCLUDE_DIR"]

  """
  @spec make_env() :: %{String.t() => Path.t()}
  def make_env do
    erts = "erts-#{:erlang.system_info(:version)}"

    %{
      "FAIRNIF_INCLUDE_DIR" => include_dir(),
      "ERTS_INCLUDE_DIR" => Path.join([:code.root_dir(), erts, "include"])
    }
  end

  @doc """
  Returns everything the runtime knows about itself and about each fair function, as a map.
  docs/reference/info.md lists the keys with their units. It takes some microseconds for each function,
  on a dirty I/O scheduler.

      iex> %{version: version, functions: functions, slice_ns: slice} = Fairnif.info()
      iex> {Version.parse!(version) |> is_struct(), is_list(functions), slice >= 1000}
      {true, true, true}

  """
  @spec info() :: map()
  def info do
    native(fn -> :fairnif.info() end) |> Map.update!(:version, &List.to_string/1)
  end

  @doc """
  Returns the part of `info/0` about one function, given its name or a capture:
  `Fairnif.info({MyApp.Bits, :exor, 2})`, `Fairnif.info(&MyApp.Bits.exor/2)`.

  Raises `Fairnif.Error` if no library has declared the function.

      iex> Fairnif.info(&String.upcase/1)
      ** (Fairnif.Error) no loaded library declares String.upcase/1 as fair

  """
  @spec info(function_name()) :: map()
  def info({module, name, arity} = mfa)
      when is_atom(module) and is_atom(name) and arity in 0..255,
      do: native(fn -> :fairnif.info(mfa) end)

  def info(function) when is_function(function) do
    case :erlang.fun_info(function, :type) do
      {:type, :external} ->
        info(Function.info(function) |> then(&{&1[:module], &1[:name], &1[:arity]}))

      _ ->
        raise ArgumentError,
              "#{inspect(function)} is not a capture of a NIF; write &Module.name/arity"
    end
  end

  @doc """
  Returns the calls under way now. docs/reference/info.md#tasks0 lists the keys. It takes about a
  microsecond for each call.

      iex> Fairnif.tasks()
      []

  """
  @spec tasks() :: [map()]
  def tasks, do: native(fn -> :fairnif.tasks() end)

  @doc """
  Sets switches for testing bodies, for the whole node:

    * `:pause_every_tick` - every tick yields, in modes that yield
    * `:check_terms` - reports terms that a body got from a `fair_` function and kept across a pause, on
      standard error and in `:rule_violations`
    * `:measure_cpu` - slices are timed in CPU time of their thread; 1 us a slice

  An unknown one raises `Fairnif.Error`.

      iex> Fairnif.debug(check_terms: true)
      :ok
      iex> Fairnif.debug(check_terms: false)
      :ok

  """
  @spec debug(keyword(boolean()) | %{atom() => boolean()}) :: :ok
  def debug(switches), do: native(fn -> :fairnif.debug(Map.new(switches)) end)

  @doc """
  Reads the environment of the application `:fairnif` again. At a value out of bounds it stops and
  raises `Fairnif.Error`.

      iex> Fairnif.configure()
      :ok

  """
  @spec configure() :: :ok
  def configure, do: native(fn -> :fairnif.configure() end)

  @doc """
  Measures what 4000 reductions, a reschedule and a dirty call cost here, then configures. Use it on a
  node that moved to another machine or started on a very busy one, or that must not run with the
  defaults. Takes about 20 ms.

      iex> %{slice_ns: slice} = Fairnif.calibrate()
      iex> slice > 0
      true

  """
  @spec calibrate() :: map()
  def calibrate, do: native(fn -> :fairnif.calibrate() end)

  # Not for authors: what the runtime refuses, as an exception.
  @doc false
  def native(call) do
    call.()
  catch
    :error, {:fairnif, reason} -> reraise Fairnif.Error, [reason: reason], __STACKTRACE__
  end
end
