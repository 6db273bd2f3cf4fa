/*
 * conn.c - connections: taken by one user at a time, and their statements.
 */
#include <stdlib.h>

#include "answer.h"

/* -- statements of a connection: for its user ------------------------------ */

void core_link(struct conn *conn, struct core *core)
{
    core->prev = NULL;
    core->next = conn->first;
    if (conn->first)
        conn->first->prev = core;
    conn->first = core;
}

/* What the statement holds goes; the core stays while there is a term. */
void core_release(struct conn *conn, struct core *core)
{
    if (!core->stmt)
        return;
    sqlite3_finalize(core->stmt);
    core->stmt = NULL;
    for (int i = 0; i < core->kept_count; i++)
        if (core->kept[i])
            enif_free_env(core->kept[i]);
    free(core->kept);
    core->kept = NULL;
    core->kept_count = 0;
    if (core->next)
        core->next->prev = core->prev;
    if (core->prev)
        core->prev->next = core->next;
    else
        conn->first = core->next;
}

static void finalize_dropped(struct conn *conn)
{
    struct core *core = atomic_exchange(&conn->dropped, NULL), *next;

    for (; core; core = next) {
        next = core->next_dropped;
        core_release(conn, core);
        free(core);
    }
}

static bool claim(struct conn *conn, int use)
{
    int idle = IDLE;

    return atomic_compare_exchange_strong(&conn->use, &idle, use);
}

bool conn_try(struct conn *conn)
{
    return claim(conn, OTHER);
}

void conn_untry(struct conn *conn)
{
    atomic_store(&conn->use, IDLE);
}

/* The last statement that close/2 kept has gone: so do the files. */
static bool is_over(const struct conn *conn)
{
    return conn->closed && conn->db && !conn->first;
}

static void end_if_over(fair_task *t, struct conn *conn)
{
    if (is_over(conn))
        conn_end(t, conn, false);
}

void conn_drain(fair_task *t, struct conn *conn)
{
    bool claimed = true;

    while (claimed && atomic_load(&conn->dropped)
           && fair_mutex_trylock(t, &conn->lock)) {
        claimed = claim(conn, TASK);
        if (claimed) {
            finalize_dropped(conn);
            end_if_over(t, conn);
            atomic_store(&conn->use, IDLE);
        }
        fair_mutex_unlock(t, &conn->lock);
    }
}

void core_drop(fair_task *t, struct conn *conn, struct core *core)
{
    core->next_dropped = atomic_load(&conn->dropped);
    while (!atomic_compare_exchange_weak(&conn->dropped, &core->next_dropped,
                                         core))
        ;
    conn_drain(t, conn);
}

/* -- tasks ----------------------------------------------------------------- */

bool conn_take(fair_task *t, struct conn *conn, ERL_NIF_TERM *answer)
{
    *answer = atom(t, "error");
    fair_mutex_lock(t, &conn->lock);
    if (fair_cancelled(t))
        return false;
    while (!claim(conn, TASK)) {
        if (atomic_load(&conn->use) == TASK) {
            /* Memory was out when a task was to clean up: it left the library
             * in the middle of a statement. */
            fair_mutex_unlock(t, &conn->lock);
            *answer = error_with(t, "connection_lost");
            return false;
        }
        if (fair_sleep(t, 1) < 0) {
            fair_mutex_unlock(t, &conn->lock);
            return false;
        }
    }
    conn->task = t;
    atomic_store_explicit(&conn->cancelled, 0, memory_order_relaxed);
    return true;
}

struct conn *conn_enter(fair_task *t, unsigned i, ERL_NIF_TERM *answer)
{
    struct conn *conn;
    void *obj;

    if (!fair_resource_get(t, fair_arg(t, i), conn_type, &obj)) {
        *answer = error_with(t, "invalid_connection");
        return NULL;
    }
    conn = obj;
    if (!conn_take(t, conn, answer))
        return NULL;
    if (conn->db && !conn->closed)
        return conn;
    *answer = conn_leave(t, conn, NULL, error_with(t, "connection_closed"));
    return NULL;
}

/* The caller is dead.  What follows runs to its end, on a thread that is no
 * normal scheduler. */
static void abandon(struct conn *conn, sqlite3_stmt *stmt)
{
    conn->task = NULL;
    if (stmt)
        sqlite3_reset(stmt);
    if (conn->db && conn->rollback && !sqlite3_get_autocommit(conn->db))
        sqlite3_exec(conn->db, "ROLLBACK", NULL, NULL, NULL);
}

/* The answer as it is after what pauses. */
static ERL_NIF_TERM after(fair_task *t, struct conn *conn,
                          void (*fn)(fair_task *, struct conn *),
                          ERL_NIF_TERM answer)
{
    unsigned root = fair_root_new(t, answer);

    fn(t, conn);
    return fair_root_get(t, root);
}

ERL_NIF_TERM conn_leave(fair_task *t, struct conn *conn, sqlite3_stmt *stmt,
                        ERL_NIF_TERM answer)
{
    if (fair_cancelled(t))
        abandon(conn, stmt);
    if (is_over(conn))
        answer = after(t, conn, end_if_over, answer);
    conn->task = NULL;
    atomic_store(&conn->use, IDLE);
    fair_mutex_unlock(t, &conn->lock);
    if (atomic_load(&conn->dropped))
        answer = after(t, conn, conn_drain, answer);
    return answer;
}

struct call {
    void (*fn)(void *);
    void *arg;
    bool done;
};

static void call(void *arg)
{
    struct call *c = arg;

    c->fn(c->arg);
    c->done = true;
}

/* A task whose caller dies while it waits for a thread comes back with nothing
 * done; the second time it is done at once. */
void conn_call(fair_task *t, struct conn *conn, enum fair_mode where,
               size_t units, void (*fn)(void *), void *arg)
{
    struct call c = {fn, arg, false};
    fair_task *task = conn ? conn->task : NULL;

    if (conn)
        conn->task = NULL;
    while (!c.done)
        fair_offload(t, where, units, call, &c);
    if (conn)
        conn->task = task;
}
