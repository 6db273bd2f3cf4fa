/*
 * bind.c - values for the parameters of a statement.
 *
 * A large binary is not copied: a copy of its term, in an environment of the
 * statement's own, keeps its bytes where they are until the parameter is bound
 * again or the statement is released.
 */
#include <stdlib.h>

#include "stmt.h"

enum { LARGE = 4096 };          /* bytes that cost more to copy than to keep */

static void forget(struct core *core, int i)
{
    if (i <= core->kept_count && core->kept[i - 1]) {
        enif_free_env(core->kept[i - 1]);
        core->kept[i - 1] = NULL;
    }
}

static bool make_room(struct core *core)
{
    int count = sqlite3_bind_parameter_count(core->stmt);

    if (!core->kept && (core->kept = calloc((size_t)count, sizeof(void *))))
        core->kept_count = count;
    return core->kept != NULL;
}

static int bind_bytes(struct core *core, int i, const ErlNifBinary *bin,
                      bool is_blob, sqlite3_destructor_type how)
{
    return is_blob
        ? sqlite3_bind_blob64(core->stmt, i, bin->data, bin->size, how)
        : sqlite3_bind_text64(core->stmt, i, (char *)bin->data, bin->size, how,
                              SQLITE_UTF8);
}

static int bind_large(struct core *core, int i, ERL_NIF_TERM term,
                      bool is_blob)
{
    ErlNifEnv *env = enif_alloc_env();
    ErlNifBinary bin;
    int rc = SQLITE_NOMEM;

    if (env && enif_inspect_binary(env, enif_make_copy(env, term), &bin)
        && make_room(core)) {
        rc = bind_bytes(core, i, &bin, is_blob, SQLITE_STATIC);
        if (rc == SQLITE_OK) {
            forget(core, i);
            core->kept[i - 1] = env;
            core->kept_bytes += bin.size;
            return rc;
        }
    }
    if (env)
        enif_free_env(env);
    return rc;
}

static int bind_binary(fair_task *t, struct core *core, int i,
                       ERL_NIF_TERM term, bool is_blob)
{
    ErlNifBinary bin;
    int rc;

    if (!enif_inspect_binary(fair_env(t), term, &bin))
        return -1;
    if (bin.size > LARGE && i >= 1
        && i <= sqlite3_bind_parameter_count(core->stmt))
        return bind_large(core, i, term, is_blob);
    rc = bind_bytes(core, i, &bin, is_blob, SQLITE_TRANSIENT);
    if (rc == SQLITE_OK)
        forget(core, i);
    return rc;
}

/* An SQLite code; or -1 when the term is none of integer, float, binary (text),
 * {blob, binary}, nil, undefined. */
static int bind_value(fair_task *t, struct core *core, int i, ERL_NIF_TERM term)
{
    ErlNifEnv *env = fair_env(t);
    const ERL_NIF_TERM *pair;
    ErlNifSInt64 integer;
    double number;
    int arity, rc = -1;

    if (enif_is_binary(env, term))
        return bind_binary(t, core, i, term, false);
    if (enif_get_int64(env, term, &integer))
        rc = sqlite3_bind_int64(core->stmt, i, integer);
    else if (enif_get_double(env, term, &number))
        rc = sqlite3_bind_double(core->stmt, i, number);
    else if (enif_get_tuple(env, term, &arity, &pair) && arity == 2
             && enif_is_identical(pair[0], enif_make_atom(env, "blob")))
        return bind_binary(t, core, i, pair[1], true);
    else if (is_nil(env, term))
        rc = sqlite3_bind_null(core->stmt, i);
    if (rc == SQLITE_OK)
        forget(core, i);
    return rc;
}

static ERL_NIF_TERM bound(fair_task *t, struct stmt *s, int rc)
{
    ERL_NIF_TERM answer = rc == SQLITE_OK ? atom(t, "ok")
        : rc == -1 ? atom(t, "unsupported")
        : failed(fair_env(t), s->conn->db, rc);

    return stmt_leave(t, s, answer);
}

/* bind(Statement, [Value]) -> ok | {error, Message} | {arguments, Wanted} |
 * unsupported */
ERL_NIF_TERM stmt_bind(fair_task *t)
{
    ERL_NIF_TERM answer, value;
    struct stmt *s;
    size_t given;
    unsigned left;
    int rc = SQLITE_OK, i = 0, count;

    if (!fair_get_list_length(t, fair_arg(t, 1), &given))
        return fair_badarg(t);
    if (!(s = stmt_enter(t, 0, &answer)))
        return answer;
    count = sqlite3_bind_parameter_count(s->core->stmt);
    if (given != (size_t)count) {
        answer = enif_make_tuple2(fair_env(t), atom(t, "arguments"),
                                  enif_make_int(fair_env(t), count));
        return stmt_leave(t, s, answer);
    }
    s->core->kept_bytes = 0;
    left = fair_root_new(t, fair_arg(t, 1));
    while (rc == SQLITE_OK && !fair_cancelled(t)
           && fair_list_next(t, left, &value)) {
        rc = bind_value(t, s->core, ++i, value);
        fair_tick(t, 2);
    }
    return bound(t, s, rc);
}

static int parameter_index(fair_task *t, struct core *core, ERL_NIF_TERM term)
{
    ErlNifBinary name;
    char *copy;
    int i = 0;

    if (!enif_inspect_binary(fair_env(t), term, &name)
        || !(copy = malloc(name.size + 1)))
        return 0;
    memcpy(copy, name.data, name.size);
    copy[name.size] = '\0';
    i = sqlite3_bind_parameter_index(core->stmt, copy);
    free(copy);
    return i;
}

/* bind_named(Statement, [{Name, Value}]) -> as bind/2 | {unknown, Name} */
ERL_NIF_TERM stmt_bind_named(fair_task *t)
{
    ERL_NIF_TERM answer, item;
    const ERL_NIF_TERM *pair;
    struct stmt *s;
    unsigned left;
    int rc = SQLITE_OK, i, arity;

    if (!(s = stmt_enter(t, 0, &answer)))
        return answer;
    s->core->kept_bytes = 0;
    left = fair_root_new(t, fair_arg(t, 1));
    while (rc == SQLITE_OK && !fair_cancelled(t)
           && fair_list_next(t, left, &item)) {
        if (!enif_get_tuple(fair_env(t), item, &arity, &pair) || arity != 2) {
            rc = -1;
            break;
        }
        i = parameter_index(t, s->core, pair[0]);
        if (i == 0) {
            answer = enif_make_tuple2(fair_env(t), atom(t, "unknown"),
                                      pair[0]);
            return stmt_leave(t, s, answer);
        }
        rc = bind_value(t, s->core, i, pair[1]);
        fair_tick(t, 10);
    }
    return bound(t, s, rc);
}

/* bind_one(Statement, Index, Value) -> ok | {error, Message} | unsupported */
ERL_NIF_TERM stmt_bind_one(fair_task *t)
{
    ERL_NIF_TERM answer;
    struct stmt *s;
    int i;

    if (!fair_get_int(t, fair_arg(t, 1), &i))
        return fair_badarg(t);
    if (!(s = stmt_enter(t, 0, &answer)))
        return answer;
    return bound(t, s, bind_value(t, s->core, i, fair_arg(t, 2)));
}

/* bind_parameter_count(Statement) -> integer() */
ERL_NIF_TERM stmt_parameter_count(fair_task *t)
{
    ERL_NIF_TERM answer;
    struct stmt *s = stmt_enter(t, 0, &answer);

    if (!s)
        return answer;
    answer = enif_make_int(fair_env(t),
                           sqlite3_bind_parameter_count(s->core->stmt));
    return stmt_leave(t, s, answer);
}

/* bind_parameter_index(Statement, Name) -> integer(), 0 for none */
ERL_NIF_TERM stmt_parameter_index(fair_task *t)
{
    ERL_NIF_TERM answer;
    struct stmt *s = stmt_enter(t, 0, &answer);

    if (!s)
        return answer;
    answer = enif_make_int(fair_env(t),
                           parameter_index(t, s->core, fair_arg(t, 1)));
    return stmt_leave(t, s, answer);
}
