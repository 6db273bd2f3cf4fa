/*
 * sqlite.c - SQLite as functions that yield: the table of functions, and
 * what is done when the library is loaded.
 *
 * For a first reading: conn.h says who may touch a connection, handlers.c where
 * a query pauses, rows.c how its rows become terms, vfs.c how files are read.
 */
#include "stmt.h"
#include "vfs.h"

#define BODY(NAME) static const fair_options NAME##_options = \
    {.body = NAME, .stack_size = STACK}

BODY(stmt_prepare);
BODY(stmt_execute);
BODY(rows_step);
BODY(rows_multi_step);
BODY(rows_fetch_all);

/* Not FAIR_AUTO: one statement whose ticks lie too far apart would send all
 * others to dirty schedulers. */
#define MODE (FAIR_NORMAL | FAIR_MAY_WAIT | FAIR_CLEANUP)
#define RUNS(NAME, ARITY, BODY) \
    FAIR_NIF_OPTIONS(NAME, ARITY, &BODY##_options, MODE)
#define ASKS(NAME, ARITY, BODY) FAIR_NIF(NAME, ARITY, BODY, MODE)

static ErlNifFunc nifs[] = {
    ASKS("nif_open", 4, conn_open),
    ASKS("nif_close", 2, conn_close),
    RUNS("nif_execute", 2, stmt_execute),
    RUNS("nif_prepare", 2, stmt_prepare),
    RUNS("nif_step", 2, rows_step),
    RUNS("nif_multi_step", 3, rows_multi_step),
    RUNS("nif_fetch_all", 2, rows_fetch_all),
    ASKS("nif_bind", 2, stmt_bind),
    ASKS("nif_bind_named", 2, stmt_bind_named),
    ASKS("nif_bind_one", 3, stmt_bind_one),
    ASKS("nif_parameter_count", 1, stmt_parameter_count),
    ASKS("nif_parameter_index", 2, stmt_parameter_index),
    ASKS("nif_columns", 2, stmt_columns),
    ASKS("nif_reset", 1, stmt_reset),
    ASKS("nif_release", 2, stmt_release),
    ASKS("nif_changes", 1, about_changes),
    ASKS("nif_last_insert_rowid", 1, about_last_insert_rowid),
    ASKS("nif_transaction_status", 1, about_transaction_status),
    ASKS("nif_error", 1, about_error),
    ASKS("nif_set", 3, about_set),
    ASKS("nif_serialize", 2, whole_serialize),
    ASKS("nif_deserialize", 3, whole_deserialize),
    FAIR_NIF("nif_interrupt", 2, about_interrupt, FAIR_NORMAL),
    FAIR_NIF("nif_errstr", 1, about_errstr, FAIR_NORMAL),
    FAIR_NIF("set_log_hook", 1, log_set, FAIR_NORMAL),
    {"plain_fetch_all", 2, plain_fetch_all, 0},
    {"dirty_fetch_all", 2, plain_fetch_all, ERL_NIF_DIRTY_JOB_IO_BOUND},
};

/* MEMSTATUS counts every allocation under one lock of the process.  It is
 * refused when another part of the process has used SQLite before, and then
 * only costs time: no lock of SQLite's is held over a callback. */
static int load(ErlNifEnv *env, void **priv, ERL_NIF_TERM info)
{
    (void)priv;
    (void)info;
    if (sqlite3_threadsafe() == 0)
        return 1;
    sqlite3_config(SQLITE_CONFIG_MEMSTATUS, 0);
    if (!log_open() || sqlite3_initialize() != SQLITE_OK
        || vfs_register() != SQLITE_OK)
        return 2;
    return conn_types(env) ? 0 : 3;
}

static int upgrade(ErlNifEnv *env, void **priv, void **old, ERL_NIF_TERM info)
{
    (void)old;
    return load(env, priv, info);
}

FAIR_NIF_INIT(sqlite, nifs, load, upgrade, NULL)
