/*
 * chain_nifs.c - the chain as a NIF library: its table is the one that
 * erl_nif.h makes.  Only the table is looked at; nothing here is loaded by a
 * VM.
 */
#include "chain.c"

#include <erl_nif.h>
#include <stdlib.h>
#include <string.h>

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

/* Not of the library's NIFs, though it looks like one of them. */
__attribute__((used, section(".data.rel.ro")))
static const ErlNifFunc other_table[] = {{"decoy", 1, climb, 0}};

#if defined(AS_LOAD)
/* Called as a callback of the library. */
APART static int load(ErlNifEnv *env, void **data, ERL_NIF_TERM info)
{
    (void)data, (void)info;
    chain_outer((struct chain *)env);
    NOT_A_TAIL();
    return 0;
}

ERL_NIF_INIT(mountain, functions, load, NULL, NULL, NULL)
#  define CALL(C, ARGC, ARGV)                                               \
    (unsigned long)nif_init()->load((ErlNifEnv *)(C), NULL, 0)
#elif defined(AS_DRIVER)
/* Called as a callback of a port driver. */
#  include <erl_driver.h>
APART static void output(ErlDrvData data, char *bytes, ErlDrvSizeT size)
{
    (void)bytes, (void)size;
    chain_outer((struct chain *)data);
    NOT_A_TAIL();
}

__attribute__((used)) static ErlDrvEntry driver = {
    .output = output, .driver_name = "mountain_drv",
    .extended_marker = ERL_DRV_EXTENDED_MARKER,
    .major_version = ERL_DRV_EXTENDED_MAJOR_VERSION
};
#  define CALL(C, ARGC, ARGV) (driver.output((ErlDrvData)(C), NULL, 0), 0)
#endif

#ifndef CALL
static const ErlNifFunc *table = functions;
#  define CALL(C, ARGC, ARGV) table[1].fptr((ErlNifEnv *)(C), ARGC, ARGV)

ERL_NIF_INIT(mountain, functions, NULL, NULL, NULL, NULL)
#endif

/* As the VM calls it: through the table. */
__attribute__((visibility("default")))
unsigned long chain_climb(struct chain *c, int argc, const unsigned long *argv)
{
    unsigned long n = CALL(c, argc, argv);

    (void)argc, (void)argv;
    NOT_A_TAIL();
    return n;
}

#ifdef AT_LOAD
/* As other languages do: nothing of the table is in the library. */
__attribute__((constructor)) static void make_table(void)
{
    ErlNifFunc *copy = malloc(sizeof functions);

    memcpy(copy, functions, sizeof functions);
    memset(functions, 0, sizeof functions);
    table = copy;
    nif_init()->funcs = copy;
}

__attribute__((destructor)) static void free_table(void)
{
    free((void *)table);
}
#endif
