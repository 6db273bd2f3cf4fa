/*
 * stmt.c - statements: prepared, described, released; scripts.
 */
#include <stdlib.h>

#include "stmt.h"

static void release_stmt(void *stmt)
{
    fair_resource_release(stmt);
}

/* A statement's resource, which the task releases. */
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
    fair_bytes sql;
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
    fair_bytes sql;
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

    if (!fair_resource_get(t, fair_arg(t, i), stmt_type, &obj)) {
        *answer = error_with(t, "invalid_statement");
        return NULL;
    }
    s = obj;
    if (!conn_take(t, s->conn, answer))
        return NULL;
    if (s->core->stmt)
        return s;
    *answer = conn_leave(t, s->conn, NULL,
                         error_with(t, s->conn->closed ? "connection_closed"
                                    : "invalid_statement"));
    return NULL;
}

struct stmt *stmt_enter_of(fair_task *t, ERL_NIF_TERM *answer)
{
    void *conn, *s;

    if (!fair_resource_get(t, fair_arg(t, 0), conn_type, &conn)) {
        *answer = error_with(t, "invalid_connection");
        return NULL;
    }
    if (fair_resource_get(t, fair_arg(t, 1), stmt_type, &s)
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

    if (!fair_resource_get(t, fair_arg(t, 0), conn_type, &obj))
        return error_with(t, "invalid_connection");
    if (!fair_resource_get(t, fair_arg(t, 1), stmt_type, &obj))
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
