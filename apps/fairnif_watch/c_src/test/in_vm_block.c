/*
 * in_vm_block.c - NIFs that sleep in their thread.
 */
#include <erl_nif.h>
#include <unistd.h>

static ERL_NIF_TERM nap(ErlNifEnv *env, int argc, const ERL_NIF_TERM argv[])
{
    int ms = 0;

    (void)argc;
    enif_get_int(env, argv[0], &ms);
    usleep((useconds_t)ms * 1000);
    return enif_make_atom(env, "ok");
}

static ErlNifFunc functions[] = {
    {"nap", 1, nap, 0},
    {"nap_dirty", 1, nap, ERL_NIF_DIRTY_JOB_IO_BOUND}
};

ERL_NIF_INIT(in_vm_block, functions, NULL, NULL, NULL, NULL)
