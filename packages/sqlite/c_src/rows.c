/*
 * rows.c - a statement runs, and its rows become terms.
 *
 * SQLite ticks by itself while it looks for a row (handlers.c); here each row
 * ticks for the terms it took.  A cell of more than BIG bytes is copied piece
 * by piece, and a row of many columns is built cell by cell.
 */
#include "stmt.h"

enum {
    CELL_COST = 2,              /* in opcodes */
    BYTES_PER_UNIT = 512,
    BIG = 32 * 1024,
    WIDE = 64,                  /* columns that are made between two ticks */
    DIRTY_BYTES = 1 << 20       /* bound: SQLite copies them in one go */
};

int conn_step(struct conn *conn, sqlite3_stmt *stmt, bool may_sort,
              size_t bound)
{
    fair_task *t = conn->task;
    int rc;

    if (!t)
        return sqlite3_step(stmt);
    conn->ops = 0;
    conn->may_sort = may_sort;
    if (bound > DIRTY_BYTES)
        to_dirty(conn);
    rc = sqlite3_step(stmt);
    to_normal(conn);
    return rc;
}

/* -- cells ----------------------------------------------------------------- */

static const void *cell_bytes(sqlite3_stmt *stmt, int i, size_t *size)
{
    const void *bytes = sqlite3_column_type(stmt, i) == SQLITE_BLOB
        ? sqlite3_column_blob(stmt, i) : sqlite3_column_text(stmt, i);

    *size = (size_t)sqlite3_column_bytes(stmt, i);
    return bytes;
}

/* In one go. */
ERL_NIF_TERM cell(ErlNifEnv *env, sqlite3_stmt *stmt, int i)
{
    ERL_NIF_TERM term;
    const void *bytes;
    size_t size;

    switch (sqlite3_column_type(stmt, i)) {
    case SQLITE_INTEGER:
        return enif_make_int64(env, sqlite3_column_int64(stmt, i));
    case SQLITE_FLOAT:
        return enif_make_double(env, sqlite3_column_double(stmt, i));
    case SQLITE_NULL:
        return enif_make_atom(env, "nil");
    }
    bytes = cell_bytes(stmt, i, &size);
    if (!bytes)
        size = 0;
    memcpy(enif_make_new_binary(env, size, &term), bytes ? bytes : "", size);
    return term;
}

static bool is_big(sqlite3_stmt *stmt, int i)
{
    int type = sqlite3_column_type(stmt, i);

    return (type == SQLITE_BLOB || type == SQLITE_TEXT)
        && sqlite3_column_bytes(stmt, i) > BIG;
}

/* Onto the list in the root. */
static bool push_big(fair_task *t, unsigned row, sqlite3_stmt *stmt, int i)
{
    size_t size;
    const unsigned char *bytes = cell_bytes(stmt, i, &size);
    fair_bin out;

    if (!bytes || !fair_new_bin(t, size, &out))
        return false;
    for (size_t at = 0, n; at < size; at += n) {
        n = size - at < BIG ? size - at : BIG;
        memcpy(out.data + at, bytes + at, n);
        if (fair_tick(t, n / BYTES_PER_UNIT) < 0)
            return false;
    }
    fair_list_push(t, row, fair_make_bin(t, &out));
    fair_release_bin(t, &out);
    return true;
}

/* -- rows ------------------------------------------------------------------ */

/* Cell by cell. */
static bool push_long_row(fair_task *t, unsigned rows, sqlite3_stmt *stmt,
                          int count)
{
    unsigned row = fair_root_new(t, enif_make_list(fair_env(t), 0));

    for (int i = count - 1; i >= 0; i--) {
        if (is_big(stmt, i)) {
            if (!push_big(t, row, stmt, i))
                return false;
        } else {
            fair_list_push(t, row, cell(fair_env(t), stmt, i));
        }
        if (fair_tick(t, CELL_COST) < 0)
            return false;
    }
    fair_list_push(t, rows, fair_root_get(t, row));
    fair_root_drop(t, row);
    return true;
}

/* The statement's row onto the list in the root.  False when memory is out, or
 * the task was cancelled. */
static bool push_row(fair_task *t, unsigned rows, sqlite3_stmt *stmt)
{
    int count = sqlite3_data_count(stmt);
    ErlNifEnv *env = fair_env(t);
    ERL_NIF_TERM row = enif_make_list(env, 0);

    if (count > WIDE)
        return push_long_row(t, rows, stmt, count);
    for (int i = count - 1; i >= 0; i--) {
        if (is_big(stmt, i))
            return push_long_row(t, rows, stmt, count);
        row = enif_make_list_cell(env, cell(env, stmt, i), row);
    }
    fair_list_push(t, rows, row);
    fair_tick(t, (size_t)count * CELL_COST);
    return !fair_cancelled(t);
}

enum { NO_MEMORY = -1 };

/* Rows onto the list in the root, `most` at most: SQLite's last code, which is
 * SQLITE_ROW when there may be more. */
static int push_rows(fair_task *t, struct stmt *s, unsigned rows, size_t most)
{
    sqlite3_stmt *stmt = s->core->stmt;
    int rc = SQLITE_ROW;

    for (size_t i = 0; i < most && rc == SQLITE_ROW; i++) {
        rc = conn_step(s->conn, stmt, s->core->may_sort, s->core->kept_bytes);
        if (fair_cancelled(t))
            return SQLITE_INTERRUPT;
        if (rc == SQLITE_ROW && !push_row(t, rows, stmt))
            rc = NO_MEMORY;
    }
    return rc;
}

/* What a statement that ended otherwise than with a row answers; it is reset. */
static ERL_NIF_TERM ended(fair_task *t, struct stmt *s, int rc)
{
    sqlite3_reset(s->core->stmt);
    return rc == NO_MEMORY ? error_with(t, "out_of_memory")
        : rc == SQLITE_DONE ? atom(t, "done")
        : (rc & 0xff) == SQLITE_BUSY ? atom(t, "busy")
        : failed(fair_env(t), s->conn->db, rc);
}

/* -- bodies ---------------------------------------------------------------- */

/* step(Connection, Statement) -> {row, Row} | done | busy | {error, _} */
ERL_NIF_TERM rows_step(fair_task *t)
{
    ERL_NIF_TERM answer, row, rest;
    struct stmt *s = stmt_enter_of(t, &answer);
    unsigned rows;
    int rc;

    if (!s)
        return answer;
    rows = fair_root_new(t, enif_make_list(fair_env(t), 0));
    rc = push_rows(t, s, rows, 1);
    if (rc != SQLITE_ROW) {
        answer = ended(t, s, rc);
    } else {
        enif_get_list_cell(fair_env(t), fair_root_get(t, rows), &row, &rest);
        answer = enif_make_tuple2(fair_env(t), atom(t, "row"), row);
    }
    return stmt_leave(t, s, answer);
}

static ERL_NIF_TERM with_rows(fair_task *t, const char *tag, unsigned rows)
{
    fair_list_reverse(t, rows);
    return enif_make_tuple2(fair_env(t), atom(t, tag), fair_root_get(t, rows));
}

/* multi_step(Connection, Statement, Most) -> {rows | done, [Row]} | busy |
 * {error, _} */
ERL_NIF_TERM rows_multi_step(fair_task *t)
{
    ERL_NIF_TERM answer;
    struct stmt *s;
    unsigned rows, most;
    int rc;

    if (!fair_get_uint(t, fair_arg(t, 2), &most) || most == 0)
        return error_with(t, "invalid_chunk_size");
    if (!(s = stmt_enter_of(t, &answer)))
        return answer;
    rows = fair_root_new(t, enif_make_list(fair_env(t), 0));
    rc = push_rows(t, s, rows, most);
    if (rc != SQLITE_ROW)
        answer = ended(t, s, rc);
    answer = stmt_leave(t, s, answer);
    return rc == SQLITE_ROW ? with_rows(t, "rows", rows)
        : rc == SQLITE_DONE ? with_rows(t, "done", rows) : answer;
}

/* fetch_all(Connection, Statement) -> {ok, [Row]} | busy | {error, _} */
ERL_NIF_TERM rows_fetch_all(fair_task *t)
{
    ERL_NIF_TERM answer;
    struct stmt *s = stmt_enter_of(t, &answer);
    unsigned rows;
    int rc;

    if (!s)
        return answer;
    rows = fair_root_new(t, enif_make_list(fair_env(t), 0));
    rc = push_rows(t, s, rows, SIZE_MAX);
    answer = stmt_leave(t, s, ended(t, s, rc));
    return rc == SQLITE_DONE ? with_rows(t, "ok", rows) : answer;
}
