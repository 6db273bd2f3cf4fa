/*
 * handlers.c - what SQLite calls back while it works: where a query pauses,
 * waits for a lock of the database's, and ends when its caller has died.
 *
 * The task is the connection's `task`.  It is NULL where nothing may pause: in
 * what conn_call runs, in destructors and in plain NIFs.
 */
#include <stdlib.h>
#include <strings.h>

#include "answer.h"

/* This many opcodes without a row take about a millisecond: what is sorted
 * after them is worth a dirty scheduler. */
enum { SORT_OPCODES = 20000 };

void to_dirty(struct conn *conn)
{
    if (fair_where(conn->task) != FAIR_NORMAL)
        return;
    conn->moved = true;
    fair_move(conn->task, FAIR_DIRTY_CPU);
}

void to_normal(struct conn *conn)
{
    if (!conn->moved)
        return;
    conn->moved = false;
    fair_move(conn->task, FAIR_NORMAL);
}

static int progress(void *arg)
{
    struct conn *conn = arg;
    fair_task *t = conn->task;

    if (t) {
        conn->ops += OPCODES;
        if (conn->may_sort && conn->ops > SORT_OPCODES)
            to_dirty(conn);
        if (fair_tick(t, OPCODES) < 0)
            return 1;
    }
    return atomic_load_explicit(&conn->cancelled, memory_order_relaxed);
}

/* Another connection has the lock.  SQLite's own handler would sleep on the
 * scheduler. */
int busy(void *arg, int count)
{
    static const unsigned char delays[] = {1, 2, 5, 10, 15, 20, 25, 25, 25, 50};
    enum { DELAYS = sizeof delays };
    struct conn *conn = arg;
    long waited = 0, ms;

    if (!conn->task || atomic_load(&conn->cancelled)
        || fair_cancelled(conn->task))
        return 0;
    for (int i = 0; i < count && i < DELAYS; i++)
        waited += delays[i];
    if (count > DELAYS)
        waited += (long)(count - DELAYS) * delays[DELAYS - 1];
    ms = delays[count < DELAYS ? count : DELAYS - 1];
    if (ms > conn->busy_ms - waited)
        ms = conn->busy_ms - waited;
    if (ms <= 0 || fair_sleep(conn->task, (int)ms) < 0)
        return 0;
    return !atomic_load(&conn->cancelled);
}

void install_busy(struct conn *conn)
{
    sqlite3_busy_handler(conn->db, busy, conn);
    conn->busy_replaced = false;
}

/* Sees each part of a statement that is prepared.  `view` is the view or
 * trigger that it comes from. */
static int authorize(void *arg, int action, const char *a, const char *b,
                     const char *database, const char *view)
{
    struct conn *conn = arg;

    (void)database;
    if (view)
        conn->sees_view = true;
    if (action == SQLITE_PRAGMA && a && strcasecmp(a, "busy_timeout") == 0) {
        if (b)
            conn->busy_ms = atoi(b);
        conn->busy_replaced = true;
    }
    return action >= 0 && action < (int)sizeof conn->denied
        && conn->denied[action] ? SQLITE_DENY : SQLITE_OK;
}

static void changed(void *arg, int what, const char *database,
                    const char *table, sqlite3_int64 rowid)
{
    struct conn *conn = arg;
    const char *name = what == SQLITE_INSERT ? "insert"
        : what == SQLITE_DELETE ? "delete" : "update";
    ErlNifEnv *env;

    if (!conn->has_hook || !(env = enif_alloc_env()))
        return;
    if (!enif_send(conn->task ? fair_env(conn->task) : NULL, &conn->hook, env,
                   enif_make_tuple4(env, enif_make_atom(env, name),
                                    text(env, database), text(env, table),
                                    enif_make_int64(env, rowid))))
        conn->has_hook = false;
    enif_free_env(env);
}

void install_hook(struct conn *conn)
{
    sqlite3_update_hook(conn->db, changed, conn);
}

void install_handlers(struct conn *conn)
{
    install_busy(conn);
    sqlite3_progress_handler(conn->db, OPCODES, progress, conn);
    sqlite3_set_authorizer(conn->db, authorize, conn);
    sqlite3_extended_result_codes(conn->db, 0);
    /* Recursion in C: the stack is a task's. */
    sqlite3_limit(conn->db, SQLITE_LIMIT_LIKE_PATTERN_LENGTH, 5000);
}
