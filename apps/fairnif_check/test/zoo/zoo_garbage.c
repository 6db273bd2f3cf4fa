/* Functions that are short, and whose results are not when they are collected: a
 * database statement, say, which its destructor closes. */
#include "zoo.h"

#include <stdlib.h>

struct statement { unsigned us; };

static ErlNifResourceType *statement_type;

static void statement_dtor(ErlNifEnv *env, void *object)
{
    (void)env;
    zoo_work(((struct statement *)object)->us);
}

int zoo_garbage_load(ErlNifEnv *env)
{
    statement_type = enif_open_resource_type(env, NULL, "zoo_statement", statement_dtor,
                                             ERL_NIF_RT_CREATE, NULL);
    return statement_type == NULL;
}

/* statement(Us): a resource whose destructor computes for Us. Charged as a turn. */
ERL_NIF_TERM zoo_statement(ErlNifEnv *env, int argc, const ERL_NIF_TERM argv[])
{
    struct statement *statement;
    ERL_NIF_TERM term;
    unsigned us;

    (void)argc;
    if (!zoo_us(env, argv[0], &us))
        return enif_make_badarg(env);
    if ((statement = enif_alloc_resource(statement_type, sizeof *statement)) == NULL)
        return zoo_enomem(env);
    statement->us = us;
    term = enif_make_resource(env, statement);
    enif_release_resource(statement);
    enif_consume_timeslice(env, 100);
    return term;
}
