/*
 * A tracer that writes down when one process ran, and nothing else.
 *
 * Trace messages to a process would cost the traced one a lock that it may have
 * to wait for, a wait that looks like its own. Here an event is 24
 * bytes in a table of its own; what the thread lost to other threads so far is
 * among them.
 *
 * A table has room for Limit events. What comes later is still seen: of the
 * slices after that the longest are kept, exactly, and the others are counted.
 * So memory is bounded, and no stretch is too late to be found.
 *
 * A table belongs to one traced process, so only one thread writes at a time,
 * and the VM's own locks order one writer after another. It is read after that
 * process has ended, or was suspended. Who breaks these rules loses events and
 * reads nonsense; nothing is ever written or read outside of the table.
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
    int64_t start, end;         /* VM's monotonic time, ns */
    int64_t waited;             /* of that time */
    int64_t collected;          /* garbage, in part of that time */
    int64_t thread;             /* as above */
} slice;

#define LONGEST 4096            /* slices kept after the table is full: 160 KiB */

/* Of the slices that were seen and not kept, by thread. */
typedef struct { int64_t count, ns; } sum;

typedef struct {
    atomic_flag writing;
    atomic_size_t used;         /* events */
    size_t limit;
    event *events;
    /* The slice under way: 0 where there is none. */
    int64_t in_at, in_waited, gc_at, collected;
    /* After the table was full: of the longest slices a heap, the shortest at its root. */
    size_t longest;
    slice *slices;
    int64_t since, until;       /* from the first event without a place to the last one */
    sum others[2];
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
    table *t = object;

    (void)env;
    enif_free(t->events);
    enif_free(t->slices);
}

/* new(Limit): a table for Limit events, 24 bytes each, and for what comes later */
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
    memset(t, 0, sizeof *t);
    atomic_flag_clear(&t->writing);
    atomic_init(&t->used, 0);
    t->limit = limit;
    t->events = enif_alloc((limit ? limit : 1) * sizeof(event));
    t->slices = enif_alloc(LONGEST * sizeof(slice));
    term = t->events != NULL && t->slices != NULL ? enif_make_resource(env, t)
        : enif_raise_exception(env, enif_make_atom(env, "enomem"));
    enif_release_resource(t);
    return term;
}

/* Asked by the VM before an event: whether it shall be sent. */
static ERL_NIF_TERM enabled(ErlNifEnv *env, int argc, const ERL_NIF_TERM argv[])
{
    table *t;

    (void)argc;
    return enif_get_resource(env, argv[1], table_type, (void **)&t) ? atom_trace : atom_discard;
}

/* -- after the table is full -------------------------------------------------- */

static int64_t own(const slice *s)
{
    return s->end - s->start - s->waited - s->collected;
}

/* A collection of a large heap is sent to a dirty scheduler: no native code ran there. */
static void count(table *t, const slice *s)
{
    if (s->thread && 2 * (s->end - s->start - s->collected) < s->end - s->start)
        return;
    t->others[s->thread].count++;
    t->others[s->thread].ns += own(s) > 0 ? own(s) : 0;
}

/* Puts `s` at place i, or where it belongs below. */
static void sift_down(slice *heap, size_t size, size_t i, slice s)
{
    size_t child;

    for (; (child = 2 * i + 1) < size; i = child) {
        if (child + 1 < size && own(&heap[child + 1]) < own(&heap[child]))
            child++;
        if (own(&s) <= own(&heap[child]))
            break;
        heap[i] = heap[child];
    }
    heap[i] = s;
}

static void sift_up(slice *heap, size_t i, slice s)
{
    for (; i > 0 && own(&s) < own(&heap[(i - 1) / 2]); i = (i - 1) / 2)
        heap[i] = heap[(i - 1) / 2];
    heap[i] = s;
}

static void keep_if_long(table *t, slice s)
{
    if (t->longest < LONGEST) {
        sift_up(t->slices, t->longest, s);
        t->longest++;
    } else if (own(&s) > own(&t->slices[0])) {
        count(t, &t->slices[0]);
        sift_down(t->slices, LONGEST, 0, s);
    } else {
        count(t, &s);
    }
}

/* -- an event ------------------------------------------------------------------ */

/* The slice under way, by its events, whether they have a place in the table or not. One
 * that began in the table and ended after it belongs to the later ones. */
static void follow(table *t, const event *e, int is_late)
{
    slice s;

    switch (e->tag) {
    case IN:
        t->in_at = e->at;
        t->in_waited = e->waited;
        t->gc_at = t->collected = 0;
        break;
    case GC_BEGIN:
        t->gc_at = e->at;
        break;
    case GC_END:
        if (t->gc_at != 0)
            t->collected += e->at - t->gc_at;
        t->gc_at = 0;
        break;
    case OUT:
        if (is_late && t->in_at != 0) {
            s = (slice){.start = t->in_at, .end = e->at, .collected = t->collected,
                        .thread = e->thread,
                        .waited = e->waited > t->in_waited ? e->waited - t->in_waited : 0};
            keep_if_long(t, s);
        }
        t->in_at = 0;
        break;
    }
}

static void note(table *t, const event *e)
{
    size_t used = atomic_load_explicit(&t->used, memory_order_relaxed);
    int is_late = used >= t->limit;

    follow(t, e, is_late);
    if (!is_late) {
        t->events[used] = *e;
        atomic_store_explicit(&t->used, used + 1, memory_order_relaxed);
        return;
    }
    if (t->since == 0)
        t->since = e->at;
    t->until = e->at;
}

static ERL_NIF_TERM trace(ErlNifEnv *env, int argc, const ERL_NIF_TERM argv[])
{
    table *t;
    event e;
    size_t i;

    (void)argc;
    if (!enif_get_resource(env, argv[1], table_type, (void **)&t))
        return atom_discard;
    for (i = 0; i < TAGS && tags[i].atom != argv[0]; i++)
        ;
    if (i == TAGS)
        return atom_discard;
    e.tag = tags[i].tag;
    e.thread = enif_thread_type() != ERL_NIF_THR_NORMAL_SCHEDULER;
    /* A thread loses its processor at the end of a system call, such as the one
     * that asks how long it waited. Taken in this order, what is lost then counts
     * as waiting if it counts at all. */
    if (e.tag == OUT || e.tag == GC_BEGIN) {
        e.at = enif_monotonic_time(ERL_NIF_NSEC);
        e.waited = thread_waited();
    } else {
        e.waited = thread_waited();
        e.at = enif_monotonic_time(ERL_NIF_NSEC);
    }
    /* Never waits: a second writer is against the rules, and its event is lost. */
    if (atomic_flag_test_and_set_explicit(&t->writing, memory_order_acquire))
        return atom_discard;
    note(t, &e);
    atomic_flag_clear_explicit(&t->writing, memory_order_release);
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
    if ((bytes = enif_make_new_binary(env, used * sizeof(event), &term)) == NULL)
        return enif_raise_exception(env, enif_make_atom(env, "enomem"));
    memcpy(bytes, t->events, used * sizeof(event));
    return term;
}

/* later_as_bytes(Table): {Since, Until, {Count, Ns}, {Count, Ns}, Slices}: of what came after
 * the table was full, the slices that were not kept (normal, dirty) and those that were */
static ERL_NIF_TERM later(ErlNifEnv *env, int argc, const ERL_NIF_TERM argv[])
{
    table *t;
    ERL_NIF_TERM slices, others[2];
    unsigned char *bytes;
    size_t kept;

    (void)argc;
    if (!enif_get_resource(env, argv[0], table_type, (void **)&t))
        return enif_make_badarg(env);
    kept = t->longest;
    if ((bytes = enif_make_new_binary(env, kept * sizeof(slice), &slices)) == NULL)
        return enif_raise_exception(env, enif_make_atom(env, "enomem"));
    memcpy(bytes, t->slices, kept * sizeof(slice));
    for (int i = 0; i < 2; i++)
        others[i] = enif_make_tuple2(env, enif_make_int64(env, t->others[i].count),
                                     enif_make_int64(env, t->others[i].ns));
    return enif_make_tuple5(env, enif_make_int64(env, t->since), enif_make_int64(env, t->until),
                            others[0], others[1], slices);
}

/* Without it the VM may write beyond an object that is made during a takeover: see
 * docs/internals/nif.md. */
static void ignore_down(ErlNifEnv *env, void *obj, ErlNifPid *pid, ErlNifMonitor *monitor)
{
    (void)env, (void)obj, (void)pid, (void)monitor;
}

static int load(ErlNifEnv *env, void **priv, ERL_NIF_TERM info)
{
    ErlNifResourceTypeInit init = {.dtor = free_table, .down = ignore_down, .members = 3};

    (void)priv, (void)info;
    for (size_t i = 0; i < TAGS; i++)
        tags[i].atom = enif_make_atom(env, tags[i].name);
    atom_trace = enif_make_atom(env, "trace");
    atom_discard = enif_make_atom(env, "discard");
    /* Change the table and the number grows, or tables of an older library would be taken over. */
    table_type = enif_init_resource_type(env, "fairnif_check_trace_2", &init,
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
    {"later_as_bytes", 1, later, 0},
};

ERL_NIF_INIT(fairnif_check_tracer, nifs, load, NULL, upgrade, NULL)
