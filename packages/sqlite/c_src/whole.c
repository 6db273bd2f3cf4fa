/*
 * whole.c - a database as one binary, and back.
 *
 * Each is one call of the library's that works and waits for as long as the
 * database is large: it goes to a thread of the runtime's pool.
 */
#include "stmt.h"

struct whole {
    struct conn *conn;
    char *name;
    ErlNifBinary bin;           /* made by serialize */
    const unsigned char *data;  /* given to deserialize */
    size_t size;
    bool done;
    int rc;
};

/* The name of argument 1, with its zero; NULL when it is none. */
static char *get_name(fair_task *t)
{
    fair_bytes name;
    char *copy;

    if (!get_bytes(t, 1, &name) || !(copy = fair_alloc(t, name.size + 1)))
        return NULL;
    memcpy(copy, name.data, name.size);
    copy[name.size] = '\0';
    return copy;
}

/* A database that nothing was written to has no page, and SQLite before 3.46
 * answers nothing for it.  Newer ones have its first page made, and so does
 * this; in a transaction nothing can be done. */
static unsigned char *bytes_of(struct whole *w, sqlite3_int64 *size)
{
    unsigned char *bytes = sqlite3_serialize(w->conn->db, w->name, size, 0);

    w->rc = SQLITE_OK;
    if (bytes || *size != 0)
        return bytes;
    w->rc = sqlite3_exec(w->conn->db, "BEGIN IMMEDIATE; COMMIT", NULL, NULL,
                         NULL);
    return w->rc == SQLITE_OK
        ? sqlite3_serialize(w->conn->db, w->name, size, 0) : NULL;
}

static void serialize(void *arg)
{
    struct whole *w = arg;
    sqlite3_int64 size = 0;
    unsigned char *bytes = bytes_of(w, &size);

    if (!bytes)
        return;
    w->done = enif_alloc_binary((size_t)size, &w->bin);
    if (w->done)
        memcpy(w->bin.data, bytes, (size_t)size);
    sqlite3_free(bytes);
}

/* serialize(Connection, Name) -> {ok, binary()} | {error, _} */
ERL_NIF_TERM whole_serialize(fair_task *t)
{
    struct whole w = {.name = get_name(t)};
    ERL_NIF_TERM answer;

    if (!w.name)
        return error_with(t, "database_name_not_iolist");
    if (!(w.conn = conn_enter(t, 0, &answer)))
        return answer;
    for (int n = 0; n == 0 || (w.rc == SQLITE_BUSY && busy(w.conn, n - 1)); n++)
        conn_call(t, w.conn, FAIR_THREADED, 1, serialize, &w);
    conn_leave(t, w.conn, NULL, answer);
    if (!w.done)
        return error_with(t, "serialization_failed");
    if (fair_cancelled(t)) {
        enif_release_binary(&w.bin);
        return atom(t, "error");
    }
    return ok_with(t, enif_make_binary(fair_env(t), &w.bin));
}

/* SQLite frees the copy, also when it does not take it. */
static void deserialize(void *arg)
{
    struct whole *w = arg;
    unsigned char *copy = sqlite3_malloc64(w->size);

    if (!copy)
        return;
    memcpy(copy, w->data, w->size);
    w->rc = sqlite3_deserialize(w->conn->db, w->name, copy,
                                (sqlite3_int64)w->size, (sqlite3_int64)w->size,
                                SQLITE_DESERIALIZE_FREEONCLOSE
                                | SQLITE_DESERIALIZE_RESIZEABLE);
    w->done = true;
}

/* deserialize(Connection, Name, Binary) -> ok | {error, _} */
ERL_NIF_TERM whole_deserialize(fair_task *t)
{
    struct whole w = {.name = get_name(t)};
    ERL_NIF_TERM answer;
    fair_bytes bin;

    if (!w.name)
        return error_with(t, "database_name_not_iolist");
    if (!fair_get_bytes(t, fair_arg(t, 2), &bin))
        return fair_badarg(t);
    if (!(w.conn = conn_enter(t, 0, &answer)))
        return answer;
    w.data = bin.data;
    w.size = bin.size;
    conn_call(t, w.conn, FAIR_THREADED, 1, deserialize, &w);
    answer = !w.done ? error_with(t, "deserialization_failed")
        : w.rc == SQLITE_OK ? atom(t, "ok")
        : failed(fair_env(t), NULL, w.rc);
    return conn_leave(t, w.conn, NULL, answer);
}
