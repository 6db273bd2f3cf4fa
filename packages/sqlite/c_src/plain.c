/*
 * plain.c - a query as a plain NIF runs it, in one go, to be measured against.
 * It is for a connection that no other task uses at the time.
 */
#include "stmt.h"

static ERL_NIF_TERM row_of(ErlNifEnv *env, sqlite3_stmt *stmt)
{
    ERL_NIF_TERM row = enif_make_list(env, 0);

    for (int i = sqlite3_data_count(stmt) - 1; i >= 0; i--)
        row = enif_make_list_cell(env, cell(env, stmt, i), row);
    return row;
}

/* plain_fetch_all(Connection, Statement) -> as fetch_all/2 */
ERL_NIF_TERM plain_fetch_all(ErlNifEnv *env, int argc,
                             const ERL_NIF_TERM argv[])
{
    ERL_NIF_TERM rows = enif_make_list(env, 0), answer;
    struct stmt *s;
    void *obj;
    int rc;

    (void)argc;
    if (!fair_resource_peek(env, argv[1], stmt_type, &obj))
        return enif_make_badarg(env);
    s = obj;
    if (!conn_try(s->conn))
        return enif_make_atom(env, "busy");
    if (!s->core->stmt) {
        conn_untry(s->conn);
        return enif_make_badarg(env);
    }
    while ((rc = conn_step(s->conn, s->core->stmt, false, 0)) == SQLITE_ROW)
        rows = enif_make_list_cell(env, row_of(env, s->core->stmt), rows);
    enif_make_reverse_list(env, rows, &rows);
    answer = rc == SQLITE_DONE
        ? enif_make_tuple2(env, enif_make_atom(env, "ok"), rows)
        : failed(env, s->conn->db, rc);
    sqlite3_reset(s->core->stmt);
    conn_untry(s->conn);
    return answer;
}
