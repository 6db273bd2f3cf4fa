/*
 * open.c - connections are opened, and closed: by close/1, or when no process
 * can reach them any more.
 *
 * Opening and closing call into the library in one go, on a thread of the
 * runtime's pool where there is a file: it reads, and copies back what WAL has.
 */
#include <stdlib.h>

#include "answer.h"
#include "vfs.h"

fair_resource_type *conn_type, *stmt_type;

/* -- closing --------------------------------------------------------------- */

struct closing {
    struct conn *conn;
    sqlite3 *db;
    bool keeps, is_open;
    int rc;
};

/* Also with statements in use: core->stmt knows their terms. */
static void close_database(void *arg)
{
    struct closing *c = arg;

    while (c->conn->first && !c->keeps)
        core_release(c->conn, c->conn->first);
    if (!sqlite3_get_autocommit(c->db))
        c->rc = sqlite3_exec(c->db, "ROLLBACK", NULL, NULL, NULL);
    if (c->rc == SQLITE_OK && !c->conn->first)
        c->rc = sqlite3_close(c->db);
    c->is_open = c->rc != SQLITE_OK || c->conn->first;
}

/* What takes long to close: a file, or pages in memory. */
static size_t pages_of(sqlite3 *db)
{
    int bytes = 0, most;

    sqlite3_db_status(db, SQLITE_DBSTATUS_CACHE_USED, &bytes, &most, 0);
    return (unsigned)bytes;
}

static void set_db(struct conn *conn, sqlite3 *db)
{
    enif_mutex_lock(conn->closing);
    conn->db = db;
    enif_mutex_unlock(conn->closing);
}

int conn_end(fair_task *t, struct conn *conn, bool keeps)
{
    struct closing c = {conn, conn->db, keeps, false, SQLITE_OK};

    set_db(conn, NULL);
    conn_call(t, conn, conn->on_disk ? FAIR_THREADED : FAIR_AUTO,
              pages_of(c.db), close_database, &c);
    if (c.is_open)
        set_db(conn, c.db);
    conn->closed = c.rc == SQLITE_OK;
    return c.rc;
}

/* close(Connection, Keep) -> ok.  Its files are closed when it returns, and
 * what WAL has is copied; when Keep is 1, and there are statements, when the
 * last of them has gone. */
ERL_NIF_TERM conn_close(fair_task *t)
{
    ERL_NIF_TERM answer;
    struct conn *conn;
    int keep, rc = SQLITE_OK;
    void *obj;

    if (!fair_get_int(t, fair_arg(t, 1), &keep))
        return fair_badarg(t);
    if (!fair_resource_get(t, fair_arg(t, 0), conn_type, &obj))
        return error_with(t, "invalid_connection");
    conn = obj;
    if (!conn_take(t, conn, &answer))
        return answer;
    if (conn->db && !(keep && conn->closed))
        rc = conn_end(t, conn, keep);
    answer = rc == SQLITE_OK ? atom(t, "ok")
        : failed(fair_env(t), conn->db, rc);
    return conn_leave(t, conn, NULL, answer);
}

/* -- forgotten ones -------------------------------------------------------- */

/* No other task can get at it.  Its statements are gone, but for those on
 * `dropped`.  One that was lost in the middle of a statement is left alone. */
static void clean_conn(fair_task *t, void *obj)
{
    struct conn *conn = obj;

    conn_drain(t, conn);
    if (conn->db && atomic_load(&conn->use) == IDLE
        && conn_end(t, conn, false) != SQLITE_OK)
        sqlite3_close_v2(conn->db);
    if (conn->closing)
        enif_mutex_destroy(conn->closing);
}

/* The task that uses the connection finalizes it; it is not waited for here. */
static void clean_stmt(fair_task *t, void *obj)
{
    struct stmt *s = obj;

    if (!s->conn)
        return;
    core_drop(t, s->conn, s->core);
    fair_resource_release(s->conn);
}

int conn_types(ErlNifEnv *env)
{
    static const fair_resource_options conns = {
        .name = "connection", .cleanup = clean_conn, .stack_size = STACK
    }, stmts = {
        .name = "statement", .cleanup = clean_stmt, .stack_size = STACK
    };
    fair_resource_type *conn = fair_resource_open(env, &conns);
    fair_resource_type *stmt = fair_resource_open(env, &stmts);

    if (!conn || !stmt)
        return 0;
    conn_type = conn;
    stmt_type = stmt;
    return 1;
}

/* -- opening --------------------------------------------------------------- */

struct opening {
    char *path;
    int flags, rc;
    sqlite3 *db;
};

static void open_database(void *arg)
{
    struct opening *o = arg;

    o->rc = sqlite3_open_v2(o->path, &o->db, o->flags, VFS_NAME);
}

static void release(void *conn)
{
    fair_resource_release(conn);
}

static bool is_memory(const char *path)
{
    return strcmp(path, ":memory:") == 0 || *path == '\0';
}

/* open(Path, Flags, BusyMs, Rollback) -> {ok, Connection} | {error, _} */
ERL_NIF_TERM conn_open(fair_task *t)
{
    struct opening o = {0};
    struct conn *conn;
    fair_bytes path;
    int busy_ms, rollback;

    if (!fair_get_bytes(t, fair_arg(t, 0), &path)
        || memchr(path.data, 0, path.size))
        return error_with(t, "invalid_filename");
    if (!fair_get_int(t, fair_arg(t, 1), &o.flags)
        || !fair_get_int(t, fair_arg(t, 2), &busy_ms)
        || !fair_get_int(t, fair_arg(t, 3), &rollback))
        return fair_badarg(t);
    o.flags = (o.flags & ~(SQLITE_OPEN_FULLMUTEX | SQLITE_OPEN_SHAREDCACHE))
        | SQLITE_OPEN_NOMUTEX | SQLITE_OPEN_PRIVATECACHE;
    o.path = fair_alloc(t, path.size + 1);
    conn = fair_resource_new(conn_type, sizeof *conn);
    if (!conn)
        return fair_enomem(t);
    fair_defer(t, release, conn);
    conn->closing = enif_mutex_create("sqlite.closing");
    if (!o.path || !conn->closing)
        return fair_enomem(t);
    memcpy(o.path, path.data, path.size);
    o.path[path.size] = '\0';
    conn_call(t, NULL, is_memory(o.path) ? FAIR_AUTO : FAIR_THREADED, 1,
              open_database, &o);
    /* From here on the resource closes it, whatever happens. */
    conn->db = o.db;
    if (o.rc != SQLITE_OK)
        return error_with(t, o.db ? "database_open_failed" : "out_of_memory");
    conn->on_disk = !is_memory(o.path);
    conn->busy_ms = busy_ms;
    conn->rollback = rollback;
    install_handlers(conn);
    return ok_with(t, fair_resource_term(fair_env(t), conn));
}
