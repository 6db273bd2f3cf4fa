/*
 * stmt.c - statements: compiled, described, released; scripts.
 */
#include <stdlib.h>
#include <strings.h>

#include "stmt.h"

enum {
    LONG_SQL = 2048,            /* bytes: from here on elsewhere */
    PREPARE_COST = 300,         /* in opcodes, and one for four bytes */
};

/* -- compiling ------------------------------------------------------------- */

struct preparing {
    struct conn *conn;
    const char *sql, *tail;
    size_t size;
    sqlite3_stmt *stmt;
    int rc;
};

static void prepare_now(void *arg)
{
    struct preparing *p = arg;

    p->conn->sees_view = false;
    p->rc = sqlite3_prepare_v3(p->conn->db, p->sql, (int)p->size, 0, &p->stmt,
                               &p->tail);
    if (p->conn->busy_replaced)
        install_busy(p->conn);
    /* What PRAGMA threads has just set: a sort would wait, on its scheduler, for
     * threads that are no tasks. */
    sqlite3_limit(p->conn->db, SQLITE_LIMIT_WORKER_THREADS, 0);
}

/* The schema is read in the body, where reading pauses, and not in the call
 * that follows, where it would not. */
static void read_schema(struct conn *conn)
{
    sqlite3_stmt *stmt = NULL;

    sqlite3_prepare_v2(conn->db, "SELECT 1 FROM sqlite_schema", -1, &stmt,
                       NULL);
    sqlite3_finalize(stmt);
}

int conn_prepare(struct conn *conn, const char *sql, size_t size,
                 sqlite3_stmt **stmt, const char **tail)
{
    struct preparing p = {conn, sql, sql, size, NULL, SQLITE_OK};
    fair_task *t = conn->task;

    if (size > INT32_MAX)
        return SQLITE_TOOBIG;
    if (!t || size < LONG_SQL) {
        prepare_now(&p);
    } else {
        read_schema(conn);
        for (int n = 0; n == 0 || (p.rc == SQLITE_BUSY && busy(conn, n - 1));
             n++)
            conn_call(t, conn, FAIR_AUTO, size, prepare_now, &p);
    }
    if (t)
        fair_tick(t, PREPARE_COST + (size_t)(p.tail - p.sql) / 4);
    *stmt = p.stmt;
    if (tail)
        *tail = p.tail;
    return p.rc;
}

/* Whether there is a word in it that may make it sort. */
static bool is_suspect(const char *sql, size_t size)
{
    static const char *const words[] = {"order", "group", "index", "over"};

    for (size_t i = 0; i + 4 <= size; i++)
        for (unsigned w = 0; w < sizeof words / sizeof *words; w++)
            if (i + strlen(words[w]) <= size
                && strncasecmp(sql + i, words[w], strlen(words[w])) == 0)
                return true;
    return false;
}

/* Whether the program has a sorter: the sort is one opcode, however much there
 * is to sort.  A view hides its words, and the library says only that there is
 * one (or a subquery). */
static bool may_sort(struct conn *conn, const char *sql, size_t size)
{
    sqlite3_stmt *program = NULL;
    bool found = false;
    char *explain;

    if (!conn->sees_view && !is_suspect(sql, size))
        return false;
    if (!(explain = malloc(size + 9)))
        return true;
    memcpy(explain, "EXPLAIN ", 8);
    memcpy(explain + 8, sql, size);
    explain[size + 8] = '\0';
    if (conn_prepare(conn, explain, size + 8, &program, NULL) == SQLITE_OK)
        while (!found && sqlite3_step(program) == SQLITE_ROW) {
            const char *name = (char *)sqlite3_column_text(program, 1);

            found = name && strcmp(name, "SorterOpen") == 0;
        }
    sqlite3_finalize(program);
    free(explain);
    return found;
}

static void release_stmt(void *stmt)
{
    fair_resource_release(stmt);
}

/* A statement's resource, which the task lets go of. */
static struct stmt *new_stmt(fair_task *t, struct conn *conn)
{
    struct stmt *s = fair_resource_new(stmt_type, sizeof *s);

    if (!s)
        return NULL;
    s->conn = NULL;
    s->core = calloc(1, sizeof *s->core);
    fair_defer(t, release_stmt, s);
    if (!s->core)
        return NULL;
    s->conn = conn;
    fair_resource_keep(conn);
    return s;
}

/* prepare(Connection, Sql) -> {ok, Statement} | {error, _} */
ERL_NIF_TERM stmt_prepare(fair_task *t)
{
    ERL_NIF_TERM answer;
    struct conn *conn;
    struct stmt *s;
    fair_bin sql;
    const char *tail;
    int rc;

    if (!get_bytes(t, 1, &sql))
        return error_with(t, "sql_not_iolist");
    if (!(conn = conn_enter(t, 0, &answer)))
        return answer;
    s = new_stmt(t, conn);
    if (!s)
        return conn_leave(t, conn, NULL, error_with(t, "out_of_memory"));
    rc = conn_prepare(conn, (char *)sql.data, sql.size, &s->core->stmt, &tail);
    if (rc == SQLITE_OK && s->core->stmt) {
        core_link(conn, s->core);
        s->core->may_sort = may_sort(conn, (char *)sql.data,
                                     (size_t)(tail - (char *)sql.data));
        answer = ok_with(t, fair_resource_term(fair_env(t), s));
    } else if (rc == SQLITE_OK) {
        answer = error_with(t, "empty_statement");
    } else {
        answer = failed(fair_env(t), conn->db, rc);
    }
    return conn_leave(t, conn, NULL, answer);
}

/* execute(Connection, Sql) -> ok | {error, _}: all of a script's statements */
ERL_NIF_TERM stmt_execute(fair_task *t)
{
    ERL_NIF_TERM answer;
    struct conn *conn;
    sqlite3_stmt *stmt = NULL;
    const char *at, *tail, *end;
    fair_bin sql;
    bool sorts;
    int rc = SQLITE_OK;

    if (!get_bytes(t, 1, &sql))
        return error_with(t, "sql_not_iolist");
    if (!(conn = conn_enter(t, 0, &answer)))
        return answer;
    at = (char *)sql.data;
    for (end = at + sql.size; rc == SQLITE_OK && at < end; at = tail) {
        rc = conn_prepare(conn, at, (size_t)(end - at), &stmt, &tail);
        if (rc != SQLITE_OK || !stmt)
            continue;
        sorts = may_sort(conn, at, (size_t)(tail - at));
        do
            rc = conn_step(conn, stmt, sorts, 0);
        while (rc == SQLITE_ROW && !fair_cancelled(t));
        rc = sqlite3_finalize(stmt);
        if (fair_cancelled(t))
            rc = SQLITE_INTERRUPT;
    }
    answer = rc == SQLITE_OK ? atom(t, "ok")
        : failed(fair_env(t), conn->db, rc);
    return conn_leave(t, conn, NULL, answer);
}

/* -- a statement and its connection ---------------------------------------- */

struct stmt *stmt_enter(fair_task *t, unsigned i, ERL_NIF_TERM *answer)
{
    struct stmt *s;
    void *obj;

    if (!fair_resource_hold(t, fair_arg(t, i), stmt_type, &obj)) {
        *answer = error_with(t, "invalid_statement");
        return NULL;
    }
    s = obj;
    if (!conn_take(t, s->conn, answer))
        return NULL;
    if (s->core->stmt)
        return s;
    *answer = conn_leave(t, s->conn, NULL,
                         error_with(t, s->conn->db ? "invalid_statement"
                                    : "connection_closed"));
    return NULL;
}

struct stmt *stmt_enter_of(fair_task *t, ERL_NIF_TERM *answer)
{
    void *conn, *s;

    if (!fair_resource_hold(t, fair_arg(t, 0), conn_type, &conn)) {
        *answer = error_with(t, "invalid_connection");
        return NULL;
    }
    if (fair_resource_hold(t, fair_arg(t, 1), stmt_type, &s)
        && ((struct stmt *)s)->conn != conn) {
        *answer = fair_raise(t, atom(t, "cross_connection_call"));
        return NULL;
    }
    return stmt_enter(t, 1, answer);
}

ERL_NIF_TERM stmt_leave(fair_task *t, struct stmt *s, ERL_NIF_TERM answer)
{
    return conn_leave(t, s->conn, s->core->stmt, answer);
}

/* release(Connection, Statement) -> ok, also when it was released before */
ERL_NIF_TERM stmt_release(fair_task *t)
{
    ERL_NIF_TERM answer;
    struct stmt *s;
    void *obj;

    if (!fair_resource_hold(t, fair_arg(t, 0), conn_type, &obj))
        return error_with(t, "invalid_connection");
    if (!fair_resource_hold(t, fair_arg(t, 1), stmt_type, &obj))
        return error_with(t, "invalid_statement");
    s = obj;
    if (!conn_take(t, s->conn, &answer))
        return answer;
    core_release(s->conn, s->core);
    return conn_leave(t, s->conn, NULL, atom(t, "ok"));
}

/* reset(Statement) -> ok */
ERL_NIF_TERM stmt_reset(fair_task *t)
{
    ERL_NIF_TERM answer;
    struct stmt *s = stmt_enter(t, 0, &answer);

    if (!s)
        return answer;
    sqlite3_reset(s->core->stmt);
    return stmt_leave(t, s, atom(t, "ok"));
}

/* columns(Connection, Statement) -> {ok, [Name]} */
ERL_NIF_TERM stmt_columns(fair_task *t)
{
    ERL_NIF_TERM answer, list;
    struct stmt *s = stmt_enter_of(t, &answer);
    const char *name = "";

    if (!s)
        return answer;
    list = enif_make_list(fair_env(t), 0);
    for (int i = sqlite3_column_count(s->core->stmt) - 1; i >= 0 && name; i--)
        if ((name = sqlite3_column_name(s->core->stmt, i)))
            list = enif_make_list_cell(fair_env(t), text(fair_env(t), name),
                                       list);
    answer = name ? ok_with(t, list) : error_with(t, "out_of_memory");
    return stmt_leave(t, s, answer);
}
