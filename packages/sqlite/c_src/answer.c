#include "answer.h"

ERL_NIF_TERM atom(fair_task *t, const char *name)
{
    return enif_make_atom(fair_env(t), name);
}

ERL_NIF_TERM text(ErlNifEnv *env, const char *bytes)
{
    ERL_NIF_TERM term;
    size_t size = strlen(bytes);

    memcpy(enif_make_new_binary(env, size, &term), bytes, size);
    return term;
}

ERL_NIF_TERM ok_with(fair_task *t, ERL_NIF_TERM value)
{
    return enif_make_tuple2(fair_env(t), atom(t, "ok"), value);
}

ERL_NIF_TERM error_with(fair_task *t, const char *reason)
{
    return enif_make_tuple2(fair_env(t), atom(t, "error"), atom(t, reason));
}

ERL_NIF_TERM failed(ErlNifEnv *env, sqlite3 *db, int rc)
{
    const char *why = (rc & 0xff) == SQLITE_MISUSE || !db ? sqlite3_errstr(rc)
        : sqlite3_errmsg(db);

    return enif_make_tuple2(env, enif_make_atom(env, "error"), text(env, why));
}

bool get_bytes(fair_task *t, unsigned i, fair_bytes *bytes)
{
    return fair_get_bytes(t, fair_arg(t, i), bytes)
        || fair_get_iolist(t, fair_arg(t, i), bytes);
}

bool is_nil(ErlNifEnv *env, ERL_NIF_TERM term)
{
    return enif_is_identical(term, enif_make_atom(env, "nil"))
        || enif_is_identical(term, enif_make_atom(env, "undefined"));
}
