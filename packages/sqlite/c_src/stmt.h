/*
 * stmt.h - functions of statements, and how they get at one.
 */
#ifndef STMT_H
#define STMT_H

#include "answer.h"

/* The statement of argument `i`, and its connection, become the task's.  NULL
 * when they cannot: the body then returns `*answer`. */
struct stmt *stmt_enter(fair_task *t, unsigned i, ERL_NIF_TERM *answer);

/* The same of arguments 0, the connection, and 1: another connection's raises
 * error:cross_connection_call. */
struct stmt *stmt_enter_of(fair_task *t, ERL_NIF_TERM *answer);

/* As conn_leave. */
ERL_NIF_TERM stmt_leave(fair_task *t, struct stmt *s, ERL_NIF_TERM answer);

ERL_NIF_TERM stmt_prepare(fair_task *t);
ERL_NIF_TERM stmt_execute(fair_task *t);
ERL_NIF_TERM stmt_release(fair_task *t);
ERL_NIF_TERM stmt_reset(fair_task *t);
ERL_NIF_TERM stmt_columns(fair_task *t);

/* bind.c */
ERL_NIF_TERM stmt_bind(fair_task *t);
ERL_NIF_TERM stmt_bind_named(fair_task *t);
ERL_NIF_TERM stmt_bind_one(fair_task *t);
ERL_NIF_TERM stmt_parameter_count(fair_task *t);
ERL_NIF_TERM stmt_parameter_index(fair_task *t);

/* log.c */
ERL_NIF_TERM log_set(fair_task *t);

/* Before SQLite is initialized.  False when memory is out. */
bool log_open(void);

/* rows.c */
ERL_NIF_TERM rows_step(fair_task *t);
ERL_NIF_TERM rows_multi_step(fair_task *t);
ERL_NIF_TERM rows_fetch_all(fair_task *t);
ERL_NIF_TERM cell(ErlNifEnv *env, sqlite3_stmt *stmt, int i);

/* plain.c */
ERL_NIF_TERM plain_fetch_all(ErlNifEnv *env, int argc,
                             const ERL_NIF_TERM argv[]);

/* about.c */
ERL_NIF_TERM about_changes(fair_task *t);
ERL_NIF_TERM about_last_insert_rowid(fair_task *t);
ERL_NIF_TERM about_transaction_status(fair_task *t);
ERL_NIF_TERM about_error(fair_task *t);
ERL_NIF_TERM about_set(fair_task *t);
ERL_NIF_TERM about_interrupt(fair_task *t);
ERL_NIF_TERM about_errstr(fair_task *t);

/* whole.c */
ERL_NIF_TERM whole_serialize(fair_task *t);
ERL_NIF_TERM whole_deserialize(fair_task *t);

#endif
