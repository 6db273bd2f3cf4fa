defmodule SqliteTest do
  use ExUnit.Case

  setup do
    {:ok, conn} = Sqlite.open(":memory:", mode: [:readwrite, :create], busy_timeout: 10)
    :ok = Sqlite.execute(conn, "create table t(a integer primary key, b)")
    {:ok, conn: conn}
  end

  test "rows go in and come out", %{conn: conn} do
    {:ok, insert} = Sqlite.prepare(conn, "insert into t values(?, ?)")

    for {a, b} <- [{1, "one"}, {2, ~D[2026-11-25]}, {3, nil}, {4, {:blob, <<0>>}}, {5, :atom}] do
      :ok = Sqlite.bind(insert, [a, b])
      assert :done = Sqlite.step(conn, insert)
    end

    {:ok, select} = Sqlite.prepare(conn, "select b from t where a < :most order by a")
    :ok = Sqlite.bind(select, %{":most" => 10})
    assert {:ok, ["b"]} = Sqlite.columns(conn, select)
    assert {:rows, [["one"], ["2026-11-25"]]} = Sqlite.multi_step(conn, select, 2)
    assert {:ok, [[nil], [<<0>>], ["atom"]]} = Sqlite.fetch_all(conn, select)
    assert {:ok, 5} = Sqlite.last_insert_rowid(conn)
  end

  test "after close a statement still works, and nothing else does", %{conn: conn} do
    {:ok, insert} = Sqlite.prepare(conn, "insert into t values(?, 'late')")
    assert :ok = Sqlite.close(conn)
    assert :ok = Sqlite.bind(insert, [1])
    assert :done = Sqlite.step(conn, insert)
    assert {:error, :connection_closed} = Sqlite.prepare(conn, "select 1")
    assert :ok = Sqlite.release(conn, insert)
  end

  test "an empty database is serialized, and SQLite's log is heard" do
    {:ok, conn} = Sqlite.open(":memory:")
    {:ok, empty} = Sqlite.serialize(conn)
    assert :ok = Sqlite.deserialize(conn, empty)
    assert :ok = Sqlite.set_log_hook(self())
    assert {:error, _} = Sqlite.execute(conn, "no sql")
    assert_receive {:log, 1, "near \"no\": syntax error" <> _}
    assert :ok = Sqlite.set_log_hook(nil)
  end

  test "what is wrong raises as it does in exqlite", %{conn: conn} do
    {:ok, stmt} = Sqlite.prepare(conn, "select :a")

    assert_raise ArgumentError, "expected 1 arguments, got 0", fn -> Sqlite.bind(stmt, []) end
    assert_raise ArgumentError, ~r"expected 1 named", fn -> Sqlite.bind(stmt, %{}) end
    assert_raise ArgumentError, ~r"unknown named", fn -> Sqlite.bind(stmt, %{":b" => 1}) end
    assert_raise ArgumentError, ~r"unsupported type: #PID", fn -> Sqlite.bind(stmt, [self()]) end
    assert_raise ArgumentError, "argument error: 1", fn -> Sqlite.bind_text(stmt, 1, 1) end
    assert_raise Sqlite.Error, ~r"out of range", fn -> Sqlite.bind_text(stmt, 2, "x") end
    assert_raise ArgumentError, ~r"notamode", fn -> Sqlite.open("x", mode: :notamode) end
    {:ok, other} = Sqlite.open(":memory:")
    assert_raise ArgumentError, ~r"different connection", fn -> Sqlite.step(other, stmt) end
  end
end
