defmodule Fairnif.Process do
  @moduledoc """
  Native processes: processes whose body is a fair function. They are started, supervised, named
  and called as any `GenServer` is.

      {:ok, pid} = Fairnif.Process.start_link(&MyApp.Counter.nif_counter/1, [0])
      GenServer.call(pid, :next)

  The body receives (`fair_receive`), replies, and returns the reason that the process exits with.
  docs/guide/processes.md explains it. This is the Erlang module `fairnif_process` for Elixir.

  ## In a supervisor

  With the function:

      children = [
        {Fairnif.Process, nif: &MyApp.Counter.nif_counter/1, args: [0], name: MyApp.Counter}
      ]

  or as a module, to which `use Fairnif.Process` adds a `child_spec/1`. Its options are `:id`, `:restart`
  and `:shutdown`, as for `use GenServer`:

      defmodule MyApp.Counter do
        use Fairnif, otp_app: :my_app
        use Fairnif.Process, restart: :transient

        def start_link(first) do
          Fairnif.Process.start_link(&__MODULE__.nif_counter/1, [first], name: __MODULE__)
        end

        def next, do: GenServer.call(__MODULE__, :next)

        @doc false
        defnif nif_counter(first)
      end

      children = [{MyApp.Counter, 0}]

  ## Options

    * `:name` - an atom, `{:global, term}` or `{:via, module, term}`
    * `:system` - `true`: the body receives the requests of `sys`, as `{:system, from, request}`
    * `:trap_exit` - `true`: exits of linked processes other than the parent are messages
    * `:timeout`, `:hibernate_after`, `:debug`, `:spawn_opt` - as for `GenServer.start_link/3`
  """

  @typedoc "A capture of a NIF, `&Module.name/arity`; without `Fairnif.await/1` around it."
  @type nif() :: function()

  @type option() ::
          {:name, GenServer.name() | nil}
          | {:system, boolean()}
          | {:trap_exit, boolean()}
          | {:timeout, timeout()}
          | {:hibernate_after, timeout()}
          | {:debug, [:sys.debug_option()]}
          | {:spawn_opt, [Process.spawn_opt()]}

  @typedoc "What `child_spec/1` takes beside the options of the process."
  @type child_option() ::
          {:nif, nif()}
          | {:args, [term()]}
          | {:id, term()}
          | {:restart, Supervisor.restart()}
          | {:shutdown, Supervisor.shutdown()}
          | option()

  @doc false
  defmacro __using__(options) do
    quote location: :keep, bind_quoted: [options: options] do
      unless Module.has_attribute?(__MODULE__, :doc) do
        @doc """
        Returns a specification to start this module under a supervisor.

        See `Supervisor`.
        """
      end

      def child_spec(argument) do
        Supervisor.child_spec(
          %{id: __MODULE__, start: {__MODULE__, :start_link, [argument]}},
          unquote(Macro.escape(options))
        )
      end

      defoverridable child_spec: 1
    end
  end

  @doc """
  A process that calls `nif` with `args`, linked to the caller.

  Answers once the body receives for the first time: `{:error, reason}` when it returned or raised
  before, `:ignore` when it returned that, `{:error, {:already_started, pid}}` when the name is
  taken.

  Raises `ArgumentError` for what is no capture of a NIF or no name, `Fairnif.Error` for any other
  wrong option.
  """
  @spec start_link(nif(), [term()], [option()]) :: GenServer.on_start()
  def start_link(nif, args, options \\ []) do
    begin(&:fairnif_process.start_link/3, nif, args, options)
  end

  @doc "As `start_link/3`, without a link."
  @spec start(nif(), [term()], [option()]) :: GenServer.on_start()
  def start(nif, args, options \\ []) do
    begin(&:fairnif_process.start/3, nif, args, options)
  end

  @doc """
  The specification for a supervisor, of keywords: `:nif` (required), `:args` (by default none),
  `:id`, `:restart`, `:shutdown`, and the options of the process.

  The id is by default the name, or the NIF's module where there is none.

      Fairnif.Process.child_spec(nif: &MyApp.Counter.nif_counter/1, args: [0], restart: :transient)

  """
  @spec child_spec([child_option()]) :: Supervisor.child_spec()
  def child_spec(options) do
    {nif, options} = Keyword.pop!(options, :nif)
    {args, options} = Keyword.pop(options, :args, [])
    {overrides, options} = Keyword.split(options, [:id, :restart, :shutdown])
    module = module_of(nif)

    Supervisor.child_spec(
      %{
        id: options[:name] || module,
        start: {__MODULE__, :start_link, [nif, args, options]},
        modules: [module]
      },
      overrides
    )
  end

  # In the caller, who is the parent.
  defp begin(start, nif, args, options) do
    _ = module_of(nif)
    Fairnif.native(fn -> start.(nif, args, erlang_options(options)) end)
  end

  defp module_of(nif) do
    with true <- is_function(nif),
         {:type, :external} <- Function.info(nif, :type) do
      Function.info(nif, :module) |> elem(1)
    else
      _ ->
        raise ArgumentError,
              "#{inspect(nif)} is not a capture of a NIF; write &Module.name/arity"
    end
  end

  defp erlang_options(options) do
    case Keyword.pop(options, :name) do
      {nil, rest} -> rest
      {name, rest} -> [{:name, erlang_name(name)} | rest]
    end
  end

  defp erlang_name(name) when is_atom(name), do: {:local, name}
  defp erlang_name({:global, _} = name), do: name
  defp erlang_name({:via, module, _} = name) when is_atom(module), do: name

  defp erlang_name(name) do
    raise ArgumentError,
          "expected :name to be an atom, {:global, term} or {:via, module, term}, " <>
            "got: #{inspect(name)}"
  end
end
