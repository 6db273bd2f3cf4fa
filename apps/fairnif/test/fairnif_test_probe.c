/*
 * fairnif_test_probe.c - counters that the bodies under test count in, and
 * gates that hold dirty schedulers.  No fair function: what is tested must not
 * be needed to test it.
 */
#include <erl_nif.h>
#include <string.h>

#include "probe.h"

static struct probe probe;

/* -- gates: a plain dirty NIF waits at one until it is let through --------- */

static struct gate {
    ErlNifMutex *lock;
    ErlNifCond *opened;
    long waiting, passes;
} gates[2];                     /* dirty CPU, dirty I/O */

static ERL_NIF_TERM block(ErlNifEnv *env, int argc, const ERL_NIF_TERM argv[])
{
    struct gate *g = &gates[enif_thread_type()
                            == ERL_NIF_THR_DIRTY_IO_SCHEDULER];

    (void)argc, (void)argv;
    enif_mutex_lock(g->lock);
    g->waiting++;
    while (g->passes == 0)
        enif_cond_wait(g->opened, g->lock);
    g->passes--;
    g->waiting--;
    enif_mutex_unlock(g->lock);
    return enif_make_atom(env, "ok");
}

static int get_gate(ErlNifEnv *env, ERL_NIF_TERM term, struct gate **gate)
{
    char name[16];

    if (!enif_get_atom(env, term, name, sizeof name, ERL_NIF_LATIN1))
        return 0;
    *gate = &gates[strcmp(name, "dirty_io") == 0];
    return 1;
}

/* pass(dirty_cpu | dirty_io, N): lets N through, now or when they come; 0
 * takes back what was left */
static ERL_NIF_TERM pass(ErlNifEnv *env, int argc, const ERL_NIF_TERM argv[])
{
    struct gate *g;
    long n;

    (void)argc;
    if (!get_gate(env, argv[0], &g) || !enif_get_long(env, argv[1], &n))
        return enif_make_badarg(env);
    enif_mutex_lock(g->lock);
    g->passes = n ? g->passes + n : 0;
    enif_cond_broadcast(g->opened);
    enif_mutex_unlock(g->lock);
    return enif_make_atom(env, "ok");
}

/* waiting(dirty_cpu | dirty_io) -> how many stand at the gate */
static ERL_NIF_TERM waiting(ErlNifEnv *env, int argc,
                            const ERL_NIF_TERM argv[])
{
    struct gate *g;
    long n;

    (void)argc;
    if (!get_gate(env, argv[0], &g))
        return enif_make_badarg(env);
    enif_mutex_lock(g->lock);
    n = g->passes > 0 ? g->waiting - g->passes : g->waiting;
    enif_mutex_unlock(g->lock);
    return enif_make_long(env, n);
}

/* -- counters -------------------------------------------------------------- */

static ERL_NIF_TERM address(ErlNifEnv *env, int argc,
                            const ERL_NIF_TERM argv[])
{
    (void)argc, (void)argv;
    return enif_make_uint64(env, (uintptr_t)&probe);
}

static ERL_NIF_TERM new_slot(ErlNifEnv *env, int argc,
                             const ERL_NIF_TERM argv[])
{
    long n = atomic_fetch_add(&probe.next_slot, 1) % SLOTS;

    (void)argc, (void)argv;
    memset(&probe.slots[n], 0, sizeof probe.slots[n]);
    return enif_make_long(env, n);
}

static int get_slot(ErlNifEnv *env, ERL_NIF_TERM term, struct slot **slot)
{
    unsigned n;

    if (!enif_get_uint(env, term, &n) || n >= SLOTS)
        return 0;
    *slot = &probe.slots[n];
    return 1;
}

static void put(ErlNifEnv *env, ERL_NIF_TERM *map, const char *key, long value)
{
    enif_make_map_put(env, *map, enif_make_atom(env, key),
                      enif_make_long(env, value), map);
}

static ERL_NIF_TERM slot(ErlNifEnv *env, int argc, const ERL_NIF_TERM argv[])
{
    ERL_NIF_TERM map = enif_make_new_map(env);
    struct slot *s;

    (void)argc;
    if (!get_slot(env, argv[0], &s))
        return enif_make_badarg(env);
    put(env, &map, "begun", s->begun);
    put(env, &map, "cleaned", s->cleaned);
    put(env, &map, "cleaned_normal", s->cleaned_normal);
    put(env, &map, "ended", s->ended);
    put(env, &map, "defers", s->defers);
    put(env, &map, "disorder", s->disorder);
    put(env, &map, "end_ns", s->end_ns);
    put(env, &map, "works", s->works);
    put(env, &map, "work_ns", s->work_ns);
    return map;
}

/* finish(Slot): endless bodies that were given this slot return */
static ERL_NIF_TERM finish(ErlNifEnv *env, int argc, const ERL_NIF_TERM argv[])
{
    struct slot *s;

    (void)argc;
    if (!get_slot(env, argv[0], &s))
        return enif_make_badarg(env);
    atomic_store(&s->finish, 1);
    return enif_make_atom(env, "ok");
}

/* alive() -> #{objects, privs} */
static ERL_NIF_TERM alive(ErlNifEnv *env, int argc, const ERL_NIF_TERM argv[])
{
    ERL_NIF_TERM map = enif_make_new_map(env);

    (void)argc, (void)argv;
    put(env, &map, "objects", probe.objects);
    put(env, &map, "privs", probe.privs);
    return map;
}

static ERL_NIF_TERM now_ns(ErlNifEnv *env, int argc, const ERL_NIF_TERM argv[])
{
    (void)argc, (void)argv;
    return enif_make_long(env, probe_now());
}

static int load(ErlNifEnv *env, void **priv, ERL_NIF_TERM info)
{
    (void)env, (void)priv, (void)info;
    for (int i = 0; i < 2 && !gates[i].lock; i++) {
        gates[i].lock = enif_mutex_create((char *)"fairnif_test_gate");
        gates[i].opened = enif_cond_create((char *)"fairnif_test_gate");
        if (!gates[i].lock || !gates[i].opened)
            return 1;
    }
    return 0;
}

/* Test runners load a module again: the counters stay. */
static int upgrade(ErlNifEnv *env, void **priv, void **old, ERL_NIF_TERM info)
{
    (void)old;
    return load(env, priv, info);
}

static ErlNifFunc nifs[] = {
    {"block_cpu", 0, block, ERL_NIF_DIRTY_JOB_CPU_BOUND},
    {"block_io", 0, block, ERL_NIF_DIRTY_JOB_IO_BOUND},
    {"pass", 2, pass, 0},
    {"waiting", 1, waiting, 0},
    {"address", 0, address, 0},
    {"new_slot", 0, new_slot, 0},
    {"slot", 1, slot, 0},
    {"finish", 1, finish, 0},
    {"alive", 0, alive, 0},
    {"now_ns", 0, now_ns, 0},
};

ERL_NIF_INIT(fairnif_test_probe, nifs, load, NULL, upgrade, NULL)
