/*
 * A tracer that writes down when one process ran, and nothing else.
 *
 * Trace messages to a process would cost the traced one a lock that it may have
 * to wait for, a wait that nobody could tell from its own. Here an event is 24
 * bytes in a table of its own; what the thread lost to other threads so far is
 * among them.
 *
 * A table belongs to one traced process, so only one thread writes at a time,
 * and the VM's own locks order one writer after another. It is read after that
 * process has ended. Who breaks these rules reads nonsense, but the place of an
 * event is taken atomically, so nothing is ever written or read outside.
 */
#define _GNU_SOURCE
#include <erl_nif.h>
#include <stdatomic.h>
#include <string.h>
#include "thread_clock.h"

enum tag { IN, OUT, GC_BEGIN, GC_END };

typedef struct {
    int64_t at;                 /* VM's monotonic time, ns */
    int64_t waited;             /* of the thread, ns */
    int32_t tag;
    int32_t thread;             /* 0 normal scheduler, 1 dirty */
} event;

typedef struct {
    atomic_size_t used;         /* more than `limit` where threads race for the last */
    size_t limit;
    event *events;
} table;

/* No allocator's arithmetic overflows below it. */
#define MAX_EVENTS (SIZE_MAX / 4 / sizeof(event))

static ErlNifResourceType *table_type;

/* The tags that the VM gives; those of processes that exit are the same to us. */
static struct {
    const char *name;
    enum tag tag;
    ERL_NIF_TERM atom;
} tags[] = {
    {"in", IN, 0}, {"in_exiting", IN, 0},
    {"out", OUT, 0}, {"out_exiting", OUT, 0}, {"out_exited", OUT, 0},
    {"gc_minor_start", GC_BEGIN, 0}, {"gc_major_start", GC_BEGIN, 0},
    {"gc_minor_end", GC_END, 0}, {"gc_major_end", GC_END, 0},
};

#define TAGS (sizeof tags / sizeof *tags)

static ERL_NIF_TERM atom_trace, atom_discard;

static void free_table(ErlNifEnv *env, void *object)
{
    (void)env;
    enif_free(((table *)object)->events);
}

/* new(Limit): a table for so many events, 24 bytes each */
static ERL_NIF_TERM new(ErlNifEnv *env, int argc, const ERL_NIF_TERM argv[])
{
    unsigned long limit;
    table *t;
    ERL_NIF_TERM term;

    (void)argc;
    if (!enif_get_ulong(env, argv[0], &limit) || limit > MAX_EVENTS)
        return enif_make_badarg(env);
    if ((t = enif_alloc_resource(table_type, sizeof *t)) == NULL)
        return enif_raise_exception(env, enif_make_atom(env, "enomem"));
    atomic_init(&t->used, 0);
    t->limit = limit;
    t->events = enif_alloc((limit ? limit : 1) * sizeof(event));
    term = t->events != NULL ? enif_make_resource(env, t)
        : enif_raise_exception(env, enif_make_atom(env, "enomem"));
    enif_release_resource(t);
    return term;
}

static int is_full(table *t)
{
    return atomic_load_explicit(&t->used, memory_order_relaxed) >= t->limit;
}

/* Asked by the VM before an event: whether it is to be told. */
static ERL_NIF_TERM enabled(ErlNifEnv *env, int argc, const ERL_NIF_TERM argv[])
{
    table *t;

    (void)argc;
    if (!enif_get_resource(env, argv[1], table_type, (void **)&t) || is_full(t))
        return atom_discard;
    return atom_trace;
}

static ERL_NIF_TERM trace(ErlNifEnv *env, int argc, const ERL_NIF_TERM argv[])
{
    table *t;
    event *e;
    size_t i, place;

    (void)argc;
    if (!enif_get_resource(env, argv[1], table_type, (void **)&t) || is_full(t))
        return atom_discard;
    for (i = 0; i < TAGS && tags[i].atom != argv[0]; i++)
        ;
    if (i == TAGS)
        return atom_discard;
    place = atomic_fetch_add_explicit(&t->used, 1, memory_order_relaxed);
    if (place >= t->limit)
        return atom_discard;
    e = &t->events[place];
    e->tag = tags[i].tag;
    e->thread = enif_thread_type() != ERL_NIF_THR_NORMAL_SCHEDULER;
    /* A thread loses its processor at the end of a system call, such as the one
     * that asks how long it waited. Taken in this order, what is lost then counts
     * as waiting if it counts at all. */
    if (e->tag == OUT || e->tag == GC_BEGIN) {
        e->at = enif_monotonic_time(ERL_NIF_NSEC);
        e->waited = thread_waited();
    } else {
        e->waited = thread_waited();
        e->at = enif_monotonic_time(ERL_NIF_NSEC);
    }
    return atom_trace;
}

/* events_as_bytes(Table): what was written, as it stands in memory */
static ERL_NIF_TERM events(ErlNifEnv *env, int argc, const ERL_NIF_TERM argv[])
{
    table *t;
    ERL_NIF_TERM term;
    unsigned char *bytes;
    size_t used;

    (void)argc;
    if (!enif_get_resource(env, argv[0], table_type, (void **)&t))
        return enif_make_badarg(env);
    used = atomic_load_explicit(&t->used, memory_order_relaxed);
    if (used > t->limit)
        used = t->limit;
    if ((bytes = enif_make_new_binary(env, used * sizeof(event), &term)) == NULL)
        return enif_raise_exception(env, enif_make_atom(env, "enomem"));
    memcpy(bytes, t->events, used * sizeof(event));
    return term;
}

/* Without it the VM may write beyond an object that is made during a takeover: see
 * docs/internals/loading.md. */
static void nobody_down(ErlNifEnv *env, void *obj, ErlNifPid *pid, ErlNifMonitor *monitor)
{
    (void)env, (void)obj, (void)pid, (void)monitor;
}

static int load(ErlNifEnv *env, void **priv, ERL_NIF_TERM info)
{
    ErlNifResourceTypeInit init = {.dtor = free_table, .down = nobody_down, .members = 3};

    (void)priv, (void)info;
    for (size_t i = 0; i < TAGS; i++)
        tags[i].atom = enif_make_atom(env, tags[i].name);
    atom_trace = enif_make_atom(env, "trace");
    atom_discard = enif_make_atom(env, "discard");
    table_type = enif_init_resource_type(env, "fairnif_lab_trace", &init,
                                         ERL_NIF_RT_CREATE | ERL_NIF_RT_TAKEOVER, NULL);
    return table_type == NULL;
}

static int upgrade(ErlNifEnv *env, void **priv, void **old_priv, ERL_NIF_TERM info)
{
    (void)old_priv;
    return load(env, priv, info);
}

static ErlNifFunc nifs[] = {
    {"new", 1, new, 0},
    {"enabled", 3, enabled, 0},
    {"trace", 5, trace, 0},
    {"events_as_bytes", 1, events, 0},
};

ERL_NIF_INIT(fairnif_lab_tracer, nifs, load, NULL, upgrade, NULL)
