/*
 * about.c - what a connection can say of itself, and what is set on one.
 */
#include <strings.h>

#include "stmt.h"

/* changes(Connection) -> {ok, integer()} */
ERL_NIF_TERM about_changes(fair_task *t)
{
    ERL_NIF_TERM answer;
    struct conn *conn = conn_enter(t, 0, &answer);

    if (!conn)
        return answer;
    answer = ok_with(t, enif_make_int64(fair_env(t),
                                        sqlite3_changes64(conn->db)));
    return conn_leave(t, conn, NULL, answer);
}

/* last_insert_rowid(Connection) -> {ok, integer()} */
ERL_NIF_TERM about_last_insert_rowid(fair_task *t)
{
    ERL_NIF_TERM answer;
    struct conn *conn = conn_enter(t, 0, &answer);

    if (!conn)
        return answer;
    answer = ok_with(t, enif_make_int64(fair_env(t),
                                        sqlite3_last_insert_rowid(conn->db)));
    return conn_leave(t, conn, NULL, answer);
}

/* transaction_status(Connection) -> {ok, idle | transaction | error}; `error`
 * of a closed one */
ERL_NIF_TERM about_transaction_status(fair_task *t)
{
    ERL_NIF_TERM answer;
    void *obj;
    struct conn *conn;

    if (!fair_resource_get(t, fair_arg(t, 0), conn_type, &obj))
        return error_with(t, "invalid_connection");
    conn = obj;
    if (!conn_take(t, conn, &answer))
        return answer;
    answer = ok_with(t, atom(t, !conn->db || conn->closed ? "error"
                             : sqlite3_get_autocommit(conn->db) ? "idle"
                             : "transaction"));
    return conn_leave(t, conn, NULL, answer);
}

/* error(Connection | Statement) -> {Code, Message} | {error, _} of the latest
 * call of the connection; the code is the extended one */
ERL_NIF_TERM about_error(fair_task *t)
{
    ERL_NIF_TERM answer;
    struct conn *conn;
    void *obj;

    if (fair_resource_get(t, fair_arg(t, 0), stmt_type, &obj)) {
        struct stmt *s = stmt_enter(t, 0, &answer);

        if (!s)
            return answer;
        conn = s->conn;
    } else if (!(conn = conn_enter(t, 0, &answer))) {
        return answer;
    }
    answer = enif_make_tuple2(
        fair_env(t),
        enif_make_int(fair_env(t), sqlite3_extended_errcode(conn->db)),
        text(fair_env(t), sqlite3_errmsg(conn->db)));
    return conn_leave(t, conn, NULL, answer);
}

/* errstr(Code) -> binary() */
ERL_NIF_TERM about_errstr(fair_task *t)
{
    int code;

    if (!fair_get_int(t, fair_arg(t, 0), &code))
        return fair_badarg(t);
    return text(fair_env(t), sqlite3_errstr(code));
}

/* interrupt(Connection, Cancel) -> ok: does not wait for who is at work */
ERL_NIF_TERM about_interrupt(fair_task *t)
{
    struct conn *conn;
    void *obj;
    int cancel;

    if (!fair_get_int(t, fair_arg(t, 1), &cancel))
        return fair_badarg(t);
    if (!fair_resource_get(t, fair_arg(t, 0), conn_type, &obj))
        return error_with(t, "invalid_connection");
    conn = obj;
    if (cancel)
        atomic_store(&conn->cancelled, 1);
    enif_mutex_lock(conn->closing);
    if (conn->db)
        sqlite3_interrupt(conn->db);
    enif_mutex_unlock(conn->closing);
    return atom(t, "ok");
}

/* -- settings -------------------------------------------------------------- */

/* By the number of the action; what has none is not denied. */
static const char *const actions[] = {
    [SQLITE_CREATE_INDEX] = "create_index",
    [SQLITE_CREATE_TABLE] = "create_table",
    [SQLITE_CREATE_TEMP_INDEX] = "create_temp_index",
    [SQLITE_CREATE_TEMP_TABLE] = "create_temp_table",
    [SQLITE_CREATE_TEMP_TRIGGER] = "create_temp_trigger",
    [SQLITE_CREATE_TEMP_VIEW] = "create_temp_view",
    [SQLITE_CREATE_TRIGGER] = "create_trigger",
    [SQLITE_CREATE_VIEW] = "create_view",
    [SQLITE_DELETE] = "delete", [SQLITE_DROP_INDEX] = "drop_index",
    [SQLITE_DROP_TABLE] = "drop_table",
    [SQLITE_DROP_TEMP_INDEX] = "drop_temp_index",
    [SQLITE_DROP_TEMP_TABLE] = "drop_temp_table",
    [SQLITE_DROP_TEMP_TRIGGER] = "drop_temp_trigger",
    [SQLITE_DROP_TEMP_VIEW] = "drop_temp_view",
    [SQLITE_DROP_TRIGGER] = "drop_trigger", [SQLITE_DROP_VIEW] = "drop_view",
    [SQLITE_INSERT] = "insert", [SQLITE_PRAGMA] = "pragma",
    [SQLITE_READ] = "read", [SQLITE_SELECT] = "select",
    [SQLITE_TRANSACTION] = "transaction", [SQLITE_UPDATE] = "update",
    [SQLITE_ATTACH] = "attach", [SQLITE_DETACH] = "detach",
    [SQLITE_ALTER_TABLE] = "alter_table", [SQLITE_REINDEX] = "reindex",
    [SQLITE_ANALYZE] = "analyze", [SQLITE_CREATE_VTABLE] = "create_vtable",
    [SQLITE_DROP_VTABLE] = "drop_vtable", [SQLITE_FUNCTION] = "function",
    [SQLITE_SAVEPOINT] = "savepoint", [SQLITE_RECURSIVE] = "recursive",
};

static bool deny(fair_task *t, unsigned list, unsigned char *denied)
{
    ERL_NIF_TERM head;
    char name[32];
    unsigned i;

    while (fair_list_next(t, list, &head)) {
        if (!fair_get_atom(t, head, name, sizeof name, FAIR_UTF8))
            return false;
        for (i = 0; i < sizeof actions / sizeof *actions; i++)
            if (actions[i] && strcmp(actions[i], name) == 0)
                break;
        if (i == sizeof actions / sizeof *actions)
            return false;
        denied[i] = 1;
        fair_tick(t, 5);
    }
    return enif_is_empty_list(fair_env(t), fair_root_get(t, list));
}

/* What is denied from now on, if all of it is known. */
static bool set_authorizer(fair_task *t, struct conn *conn)
{
    unsigned char denied[sizeof conn->denied] = {0};

    if (!deny(t, fair_root_new(t, fair_arg(t, 2)), denied))
        return false;
    memcpy(conn->denied, denied, sizeof denied);
    return true;
}

static bool set(fair_task *t, struct conn *conn, const char *what)
{
    int flag;

    if (strcmp(what, "busy_timeout") == 0)
        return fair_get_int(t, fair_arg(t, 2), &conn->busy_ms);
    if (strcmp(what, "load_extension") == 0)
        return fair_get_int(t, fair_arg(t, 2), &flag)
            && sqlite3_enable_load_extension(conn->db, flag) == SQLITE_OK;
    if (strcmp(what, "authorizer") == 0)
        return set_authorizer(t, conn);
    if (strcmp(what, "update_hook") == 0
        && enif_get_local_pid(fair_env(t), fair_arg(t, 2), &conn->hook)) {
        conn->has_hook = true;
        install_hook(conn);
        return true;
    }
    return false;
}

/* set(Connection, What, Value) -> ok | {error, _}; badarg */
ERL_NIF_TERM about_set(fair_task *t)
{
    ERL_NIF_TERM answer;
    struct conn *conn;
    char what[32];
    bool is_set;

    if (!fair_get_atom(t, fair_arg(t, 1), what, sizeof what, FAIR_UTF8))
        return fair_badarg(t);
    if (!(conn = conn_enter(t, 0, &answer)))
        return answer;
    is_set = set(t, conn, what);
    conn_leave(t, conn, NULL, answer);
    return is_set ? atom(t, "ok") : fair_badarg(t);
}
