defmodule Sqlite.Error do
  defexception [:message]
end

defmodule Sqlite do
  @moduledoc """
  The module `:sqlite` with the names, answers and exceptions of `Exqlite.Sqlite3`: code written for
  that runs when the name is changed. What each function does: `src/sqlite.erl`.

  Dates and times are bound as ISO 8601 text. Type extensions are not there.
  """

  @type db :: :sqlite.connection()
  @type statement :: :sqlite.statement()

  @doc "`mode:`, `busy_timeout:` (ms), `killed:` (`:rollback` or `:keep`)."
  def open(path, opts \\ []) do
    mode = opts[:mode] || [:readwrite, :create]
    check_mode(mode)

    :sqlite.open(path, [
      {:mode, mode} | Keyword.take(opts |> keywords(), [:busy_timeout, :killed])
    ])
  end

  defp keywords(opts), do: Enum.filter(opts, &is_tuple/1)

  defp check_mode(:nomutex) do
    raise ArgumentError,
          "expected mode to be `:readwrite` or `:readonly`, can't use a single :nomutex mode"
  end

  defp check_mode(mode) when mode in [:readwrite, :readonly, :create], do: :ok

  defp check_mode([_ | _] = modes) do
    for mode <- modes, mode not in [:readwrite, :readonly, :create, :nomutex] do
      raise ArgumentError,
            "expected mode to be `:readwrite`, `:readonly`, `:nomutex` or `:create`, " <>
              "but received #{inspect(mode)}"
    end
  end

  defp check_mode(mode) do
    raise ArgumentError,
          "expected mode to be `:readwrite`, `:readonly` or list of modes, " <>
            "but received #{inspect(mode)}"
  end

  @doc "Statements can still be bound and run; the files are closed with the last of them."
  def close(conn), do: :sqlite.close(conn, statements: :keep)

  defdelegate execute(conn, sql), to: :sqlite
  defdelegate prepare(conn, sql), to: :sqlite
  defdelegate release(conn, stmt), to: :sqlite
  defdelegate reset(stmt), to: :sqlite
  defdelegate changes(conn), to: :sqlite
  defdelegate last_insert_rowid(conn), to: :sqlite
  defdelegate transaction_status(conn), to: :sqlite
  defdelegate interrupt(conn), to: :sqlite
  defdelegate cancel(conn), to: :sqlite
  defdelegate set_busy_timeout(conn, ms), to: :sqlite
  defdelegate set_progress_handler_steps(conn, steps), to: :sqlite
  defdelegate set_authorizer(conn, denied), to: :sqlite
  defdelegate set_update_hook(conn, pid), to: :sqlite
  defdelegate set_log_hook(pid), to: :sqlite
  defdelegate enable_load_extension(conn, flag), to: :sqlite
  defdelegate shrink_memory(conn), to: :sqlite
  defdelegate bind_parameter_count(stmt), to: :sqlite
  defdelegate errmsg(conn_or_stmt), to: :sqlite
  defdelegate errstr(code), to: :sqlite

  def serialize(conn, database \\ "main"), do: :sqlite.serialize(conn, database)

  def deserialize(conn, database \\ "main", serialized),
    do: :sqlite.deserialize(conn, database, serialized)

  def columns(conn, stmt), do: own(fn -> :sqlite.columns(conn, stmt) end)
  def step(conn, stmt), do: own(fn -> :sqlite.step(conn, stmt) end)
  def multi_step(conn, stmt, most \\ 50), do: own(fn -> :sqlite.multi_step(conn, stmt, most) end)
  def fetch_all(conn, stmt, chunk \\ 50), do: own(fn -> :sqlite.fetch_all(conn, stmt, chunk) end)

  defp own(call) do
    call.()
  rescue
    e in ErlangError ->
      case e.original do
        :cross_connection_call ->
          raise ArgumentError,
                "Statement was prepared for a different connection, which is illegal"

        _ ->
          reraise e, __STACKTRACE__
      end
  end

  @doc "Values in their order, or a map of names to values."
  def bind(stmt, nil), do: bind(stmt, [])

  def bind(stmt, values) when is_list(values) or is_map(values) do
    case :sqlite.bind(stmt, converted(values)) do
      {:error, message} when is_binary(message) -> raise Sqlite.Error, message: message
      answer -> answer
    end
  rescue
    e in ErlangError -> raise ArgumentError, refused(e.original, values)
  end

  defp refused({:arguments, wanted, given}, values) when is_map(values),
    do: "expected #{wanted} named arguments, got #{given}: #{inspect(Map.keys(values))}"

  defp refused({:arguments, wanted, given}, _), do: "expected #{wanted} arguments, got #{given}"
  defp refused({:unknown, name}, _), do: "unknown named parameter: #{inspect(name)}"

  defp refused({:unsupported, _}, values) do
    list = if is_map(values), do: Map.values(values), else: values
    "unsupported type: #{inspect(Enum.find(list, hd(list), &(not supported?(&1))))}"
  end

  defp supported?({:blob, _}), do: true
  defp supported?(v), do: is_number(v) or is_binary(v) or is_list(v) or is_atom(v)

  defp converted(values) when is_list(values), do: Enum.map(values, &convert/1)
  defp converted(values), do: Map.new(values, fn {name, value} -> {name, convert(value)} end)

  defp convert(%module{} = value) when module in [Date, Time, NaiveDateTime],
    do: module.to_iso8601(value)

  defp convert(%DateTime{time_zone: "Etc/UTC"} = value), do: NaiveDateTime.to_iso8601(value)
  defp convert(%DateTime{} = value), do: raise(ArgumentError, "#{inspect(value)} is not in UTC")
  defp convert(value), do: value

  def bind_text(stmt, index, text), do: one(:bind_text, stmt, index, text, &is_binary/1)
  def bind_blob(stmt, index, blob), do: one(:bind_blob, stmt, index, blob, &is_binary/1)
  def bind_integer(stmt, index, value), do: one(:bind_integer, stmt, index, value, &is_integer/1)
  def bind_float(stmt, index, value), do: one(:bind_float, stmt, index, value, &is_float/1)
  def bind_null(stmt, index), do: bound(stmt, :sqlite.bind_null(stmt, index))

  defp one(function, stmt, index, value, is_fit) do
    if not is_reference(stmt), do: raise(ArgumentError, "argument error: #{inspect(stmt)}")
    if not is_fit.(value), do: raise(ArgumentError, "argument error: #{inspect(value)}")
    bound(stmt, apply(:sqlite, function, [stmt, index, value]))
  end

  defp bound(_, :ok), do: :ok

  defp bound(stmt, {:error, :invalid_statement}) when not is_reference(stmt),
    do: raise(ArgumentError, "argument error: #{inspect(stmt)}")

  defp bound(_, {:error, message}) when is_binary(message),
    do: raise(Sqlite.Error, message: message)

  defp bound(_, {:error, _} = error), do: error
end
