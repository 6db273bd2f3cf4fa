defmodule Fairnif do
  @moduledoc """
  Native functions that share the BEAM, in Elixir.

      defmodule MyApp.Bits do
        use Fairnif, otp_app: :my_app

        @doc "XORs each byte of `binary` with `byte`."
        @spec exor(binary(), byte()) :: binary()
        defnif exor(binary, byte)
      end

  That is all on this side: the module loads `priv/my_app/bits.so` of `:my_app` when it is loaded
  itself, and `exor/2` is the library's. In C:

      static ErlNifFunc nifs[] = {
          FAIR_NIF("exor", 2, exor, FAIR_AUTO)
      };

      FAIR_NIF_INIT(Elixir.MyApp.Bits, nifs, NULL, NULL, NULL, NULL)

  `Mix.Tasks.Compile.Fairnif` builds the library; `Fairnif.Process` makes a process of a function that
  receives. The functions below are those of the Erlang module
  `fairnif` as Elixir has them: keywords, captures, exceptions.

  ## Options of `use Fairnif`

    * `:otp_app` (required) - the application whose `priv` has the library
    * `:path` - the library in `priv`, without extension; by default the module's own path, as its
      source file has it in `lib`: `"my_app/bits"` for `MyApp.Bits`
    * `:load_info` - a term for the library's own `load` and `upgrade` functions; the expression is
      evaluated each time the module is loaded; default `:undefined`

  Anything else is a `CompileError`.

  A library that cannot be loaded leaves the module undefined: calls raise `UndefinedFunctionError`,
  and the code server's warning of the `on_load` function says why.
  """

  @typedoc "Function, as `info/1` names it."
  @type function_name :: mfa() | function()

  @doc false
  defmacro __using__(options) do
    Fairnif.Nif.use(options, __CALLER__)
  end

  @doc """
  Declares a NIF: a function of the module that the library implements.

  Takes the head alone, whose arguments are variables: `defnif exor(binary, byte)`. `@doc`, `@spec`
  and the other attributes go before it, as before `def`. The function is public. In a module that
  was not loaded by its `on_load` (which `use Fairnif` sees to), it raises `:not_loaded`.
  """
  defmacro defnif(head) do
    Fairnif.Nif.define(head, __CALLER__)
  end

  @doc """
  What a fair function comes to. Wraps the calls of one that may wait: in mode `FAIR_THREADED`, or with
  `FAIR_AWAITED` or-ed to another.

      defmodule MyApp.Fetch do
        use Fairnif, otp_app: :my_app

        def fetch(url), do: Fairnif.await(nif_fetch(url))

        @doc false
        defnif nif_fetch(url)
      end

  A value that is not pending is returned as it is, so one wrapper serves every mode:

      iex> Fairnif.await({:ok, 42})
      {:ok, 42}

  A pending one is waited for in a `receive` that looks at no other message: no scheduler is held, and the
  mailbox stays as it was. The caller's death ends the call. A pending value can be awaited once, by
  the process that made the call; else this raises `Fairnif.Error`:

      iex> Fairnif.await({:fairnif_pending, :forged})
      ** (Fairnif.Error) not a pending value of fairnif's

  What the function itself raises is raised as it is: `:overloaded` as `ErlangError`, when its turn or a
  thread did not come within `overload_ms`.
  """
  @spec await(term()) :: term()
  def await(value), do: native(fn -> :fairnif.await(value) end)

  @doc """
  Calls `fun`, whose result takes so many words of heap, with room for them: the caller's heap is not
  grown, and copied, again and again as the result is made. Worth it from some 100,000 words on.

      iex> Fairnif.room(200_000, fn -> length(Enum.to_list(1..100_000)) end)
      100000
  """
  @spec room(non_neg_integer(), (() -> result)) :: result when result: term()
  def room(words, fun), do: :fairnif.room(words, fun)

  @doc """
  The second argument of `:erlang.load_nif/2`, for a module that has an `@on_load` of its own.

  The library's `load` and `upgrade` functions get `authors_info`. The first call loads the runtime:
  1 to 2 ms. Raises `Fairnif.Error` when the runtime cannot be loaded.
  """
  @spec load_info(term()) :: term()
  def load_info(authors_info \\ :undefined),
    do: native(fn -> :fairnif.load_info(authors_info) end)

  @doc """
  Returns what `:erlang.load_nif/2` returned, once a call of the library is safe.

      Fairnif.loaded(:erlang.load_nif(Fairnif.library(:my_app, "bits"), Fairnif.load_info()))

  `use Fairnif` does so. Without it, a call made just after the load that raises later can end the
  node, as with any dirty NIF: OTP 25 to 29 read memory then that they have freed. Takes 0.3 ms,
  1 to 2 ms where all schedulers are busy, and as long as a native function blocks one just then.
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
  What a Makefile needs to compile a NIF, as variables of its environment: `FAIRNIF_INCLUDE_DIR` has
  `fairnif.h`, `ERTS_INCLUDE_DIR` has `erl_nif.h`.

  For `make_env: &Fairnif.make_env/0` where `elixir_make` builds the NIFs; `Mix.Tasks.Compile.Fairnif`
  sets them by itself.

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
  Everything that the runtime knows of itself and of each fair function, as a map; docs/manual/info.md
  has the keys, with their units. Costs some microseconds for each function, on a dirty I/O scheduler.

      iex> %{version: version, functions: functions, slice_ns: slice} = Fairnif.info()
      iex> {Version.parse!(version) |> is_struct(), is_list(functions), slice >= 1000}
      {true, true, true}

  """
  @spec info() :: map()
  def info do
    native(fn -> :fairnif.info() end) |> Map.update!(:version, &List.to_string/1)
  end

  @doc """
  The part of `info/0` that belongs to one function, by its name or a capture of it:
  `Fairnif.info({MyApp.Bits, :exor, 2})`, `Fairnif.info(&MyApp.Bits.exor/2)`.

  Raises `Fairnif.Error` for one that no library has declared.

      iex> Fairnif.info(&String.upcase/1)
      ** (Fairnif.Error) no library that is loaded declares String.upcase/1 as fair

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
  The calls that are under way now: suspended, queued for a dirty scheduler, or running.
  docs/manual/tasks.md has the keys. Costs about a microsecond for each.

      iex> Fairnif.tasks()
      []

  """
  @spec tasks() :: [map()]
  def tasks, do: native(fn -> :fairnif.tasks() end)

  @doc """
  Switches for testing a body, for the whole node:

    * `:pause_every_tick` - every tick gives way, where the mode gives way at all
    * `:check_terms` - a term that a body kept across a pause is reported on standard error and
      counted in `:misuses`
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
  Reads the environment of the application `:fairnif` again. A value out of bounds raises
  `Fairnif.Error` and leaves the rest unread.

      iex> Fairnif.configure()
      :ok

  """
  @spec configure() :: :ok
  def configure, do: native(fn -> :fairnif.configure() end)

  @doc """
  Measures anew what 4000 reductions, a reschedule and a dirty call cost here, then configures. For
  nodes that moved to another machine or came up on a very busy one, and for who must not begin with the
  defaults. About 20 ms of the caller's time.

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
