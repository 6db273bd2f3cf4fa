/*
 * chain_nifs.c - the chain as a NIF library: its table is the one that
 * erl_nif.h makes.  Only the table is looked at; nothing here is loaded by a
 * VM.
 */
#include "chain.c"

#include <erl_nif.h>

#ifndef NAME
#  define NAME "climb"
#endif

static ERL_NIF_TERM climb(ErlNifEnv *env, int argc, const ERL_NIF_TERM argv[])
{
    (void)env, (void)argv;
    chain_outer((struct chain *)env);
    NOT_A_TAIL();
    return (ERL_NIF_TERM)argc;
}

static ERL_NIF_TERM rest(ErlNifEnv *env, int argc, const ERL_NIF_TERM argv[])
{
    (void)env, (void)argc, (void)argv;
    return 0;
}

static ErlNifFunc functions[] = {
    {"rest", 0, rest, 0},
    {NAME, 3, climb, ERL_NIF_DIRTY_JOB_CPU_BOUND},
    {"rest", 1, rest, 0}
};

/* As the VM calls it: through the table. */
__attribute__((visibility("default")))
unsigned long chain_climb(struct chain *c, int argc, const unsigned long *argv)
{
    unsigned long n = functions[1].fptr((ErlNifEnv *)c, argc, argv);

    NOT_A_TAIL();
    return n;
}

ERL_NIF_INIT(mountain, functions, NULL, NULL, NULL, NULL)
