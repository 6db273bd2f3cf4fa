/*
 * answer.h - the terms that functions answer, and arguments they share.
 */
#ifndef ANSWER_H
#define ANSWER_H

#include "conn.h"

ERL_NIF_TERM atom(fair_task *t, const char *name);
ERL_NIF_TERM text(ErlNifEnv *env, const char *bytes);
ERL_NIF_TERM ok_with(fair_task *t, ERL_NIF_TERM value);
ERL_NIF_TERM error_with(fair_task *t, const char *reason);

/* {error, Message}, as SQLite says it of the connection's last call. */
ERL_NIF_TERM failed(ErlNifEnv *env, sqlite3 *db, int rc);

/* nil, or undefined. */
bool is_nil(ErlNifEnv *env, ERL_NIF_TERM term);

/* The bytes of an iolist. */
bool get_bytes(fair_task *t, unsigned i, fair_bytes *bytes);

#endif
