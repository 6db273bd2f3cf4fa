/*
 * in_beam_block.c - NIFs that block their thread; stripped of symbols.
 */
#define _GNU_SOURCE
#include <erl_nif.h>
#include <time.h>
#include <unistd.h>

#include "../../test/c_src/machine.h"

static ErlNifTime ms_of(ErlNifEnv *env, ERL_NIF_TERM term)
{
    int ms = 0;

    enif_get_int(env, term, &ms);
    return ms;
}

static __attribute__((noinline)) void spin_until(ErlNifTime end)
{
    while (enif_monotonic_time(ERL_NIF_MSEC) < end)
        ;
}

static ERL_NIF_TERM spin(ErlNifEnv *env, int argc, const ERL_NIF_TERM argv[])
{
    (void)argc;
    spin_until(enif_monotonic_time(ERL_NIF_MSEC) + ms_of(env, argv[0]));
    return enif_make_atom(env, "ok");
}

static ERL_NIF_TERM nap(ErlNifEnv *env, int argc, const ERL_NIF_TERM argv[])
{
    (void)argc;
    usleep((useconds_t)ms_of(env, argv[0]) * 1000);
    return enif_make_atom(env, "ok");
}

static ERL_NIF_TERM machine(ErlNifEnv *env, int argc, const ERL_NIF_TERM argv[])
{
    (void)argc;
    return machine_code(0, ms_of(env, argv[0])) ? enif_make_badarg(env)
        : enif_make_atom(env, "ok");
}

static ERL_NIF_TERM machine_named(ErlNifEnv *env, int argc,
                                  const ERL_NIF_TERM argv[])
{
    (void)argc;
    return machine_code(1, ms_of(env, argv[0])) ? enif_make_badarg(env)
        : enif_make_atom(env, "ok");
}

static ErlNifFunc functions[] = {
    {"machine", 1, machine, 0},
    {"machine_named", 1, machine_named, 0},
    {"spin", 1, spin, 0},
    {"nap", 1, nap, 0},
    {"spin_dirty", 1, spin, ERL_NIF_DIRTY_JOB_CPU_BOUND},
    {"nap_dirty", 1, nap, ERL_NIF_DIRTY_JOB_IO_BOUND}
};

ERL_NIF_INIT(in_beam_block, functions, NULL, NULL, NULL, NULL)
