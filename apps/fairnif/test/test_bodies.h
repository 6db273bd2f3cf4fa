/*
 * test_bodies.h - the bodies of fairnif_test_nif.c.  Each is registered in
 * every mode and must give the same answer in all of them.
 */
#ifndef FAIRNIF_TEST_BODIES_H
#define FAIRNIF_TEST_BODIES_H

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

#include <fairnif.h>

#include "probe.h"

/* Not static: the compiler then believes that it is set elsewhere. */
__attribute__((visibility("hidden"))) struct probe *probe;
__attribute__((unused)) static ErlNifMutex *mutex;

struct object {
    long value;
    char text[120];
};

static ERL_NIF_TERM ok(fair_task *t)
{
    return enif_make_atom(fair_env(t), "ok");
}

/* Rounds of about a nanosecond that no compiler takes away. */
static void work(unsigned rounds)
{
    unsigned long x = rounds;

    for (unsigned i = 0; i < rounds; i++)
        x = x * 6364136223846793005u + 1442695040888963407u;
    __asm__ volatile("" : : "r"(x));
}

static void burn(long us)
{
    for (long end = probe_now() + us * 1000; probe_now() < end; )
        work(200);
}

/* -- counted ends: three defers, which must run in reverse order ----------- */

struct ending {
    struct slot *slot;
    int next;
};

static void ending(struct ending *e, int which)
{
    if (e->next != which)
        e->slot->disorder++;
    e->next = which - 1;
    e->slot->defers++;
}

static void third(void *e) { ending(e, 3); }
static void second(void *e) { ending(e, 2); }
static void first(void *ptr)
{
    struct ending *e = ptr;

    ending(e, 1);
    e->slot->end_ns = probe_now();
    e->slot->ended++;
}

static struct slot *count_ends(fair_task *t, unsigned arg)
{
    unsigned n;
    struct ending *e;

    if (!fair_get_uint(t, fair_arg(t, arg), &n) || n >= SLOTS
        || !(e = fair_alloc(t, sizeof *e)))
        return NULL;
    e->slot = &probe->slots[n];
    e->next = 3;
    e->slot->begun++;
    fair_defer(t, first, e);
    fair_defer(t, second, e);
    fair_defer(t, third, e);
    return e->slot;
}

/* -- time ------------------------------------------------------------------ */

/* A body with FAIR_CLEANUP: all that it would have to release is this.  Where
 * a node halts it must not come to it. */
static ERL_NIF_TERM clean_up(fair_task *t, struct slot *s)
{
    s->cleaned++;
    if (enif_thread_type() == ERL_NIF_THR_NORMAL_SCHEDULER)
        s->cleaned_normal++;
    fair_tick(t, 1);
    if (getenv("FAIRNIF_TEST_HALTS"))
        fputs("cleaned up\n", stderr);
    return 0;
}

/* spin(Slot, Us, Term) -> {Term, Yields}: works for Us microseconds of wall
 * time (0: until the slot's `finish`), holding memory of every kind. */
static ERL_NIF_TERM spin(fair_task *t)
{
    struct slot *s;
    unsigned long us;
    long end;
    fair_bytes arg;
    fair_bin bin;
    char *memory;
    unsigned root;

    if (!fair_get_ulong(t, fair_arg(t, 1), &us) || us > 60000000
        || !(s = count_ends(t, 0)))
        return fair_badarg(t);
    memory = fair_alloc(t, 1000);
    if (!memory || !fair_new_bin(t, 3000, &bin))
        return fair_enomem(t);
    memset(memory, 1, 1000);
    memset(bin.data, 2, 3000);
    if (!fair_get_bytes(t, fair_arg(t, 2), &arg))
        arg.size = 0;
    root = fair_root_new(t, fair_arg(t, 2));
    end = us ? probe_now() + (long)us * 1000 : INT64_MAX;
    while (!s->finish && probe_now() < end) {
        work(1000);
        if (fair_tick(t, 1000) < 0)
            return clean_up(t, s);
    }
    if (memory[999] != 1 || bin.data[2999] != 2
        || (arg.size > 0 && arg.data[arg.size - 1] == 255)
        || !enif_is_identical(fair_arg(t, 2), fair_root_get(t, root)))
        return fair_badarg(t);
    return enif_make_tuple2(fair_env(t), fair_arg(t, 2),
                            enif_make_uint64(fair_env(t), fair_yields(t)));
}

/* never_tick(Us) */
static ERL_NIF_TERM never_tick(fair_task *t)
{
    unsigned us;

    if (!fair_get_uint(t, fair_arg(t, 0), &us) || us > 1000000)
        return fair_badarg(t);
    burn(us);
    return ok(t);
}

/* ticks(Units, Count): any 64-bit number as units, negative ones too */
static ERL_NIF_TERM ticks(fair_task *t)
{
    ErlNifSInt64 units;
    unsigned count;

    if (!fair_get_int64(t, fair_arg(t, 0), &units)
        || !fair_get_uint(t, fair_arg(t, 1), &count)
        || count > 1000000)
        return fair_badarg(t);
    for (unsigned i = 0; i < count; i++) {
        work(100);
        fair_tick(t, (size_t)units);
    }
    return ok(t);
}

/* -- terms ----------------------------------------------------------------- */

/* echo(Term) -> Term, some ticks later */
static ERL_NIF_TERM echo(fair_task *t)
{
    for (int i = 0; i < 20; i++)
        fair_tick(t, 1000);
    return fair_arg(t, 0);
}

static void seen(fair_task *t, unsigned list, const char *kind,
                 ERL_NIF_TERM value)
{
    ErlNifEnv *env = fair_env(t);

    fair_list_push(t, list,
                   enif_make_tuple2(env, enif_make_atom(env, kind), value));
}

/* kinds(Term) -> [{Kind, Value}]: every getter that takes it */
static ERL_NIF_TERM kinds(fair_task *t)
{
    int i; unsigned u; long l; unsigned long ul;
    ErlNifSInt64 i64; ErlNifUInt64 u64; double d; ErlNifPid pid;
    char name[1021]; void *obj; size_t length;
    unsigned list = fair_root_new(t, enif_make_list(fair_env(t), 0));

#define SEEN(NAME, MAKE, VALUE)                                             \
    if (fair_get_##NAME(t, fair_arg(t, 0), &(VALUE)))                       \
        seen(t, list, #NAME, MAKE(fair_env(t), VALUE));
    SEEN(int, enif_make_int, i)
    SEEN(uint, enif_make_uint, u)
    SEEN(long, enif_make_long, l)
    SEEN(ulong, enif_make_ulong, ul)
    SEEN(int64, enif_make_int64, i64)
    SEEN(uint64, enif_make_uint64, u64)
    SEEN(double, enif_make_double, d)
#undef SEEN
    if (enif_get_local_pid(fair_env(t), fair_arg(t, 0), &pid))
        seen(t, list, "pid", enif_make_pid(fair_env(t), &pid));
    if (fair_get_atom(t, fair_arg(t, 0), name, sizeof name, FAIR_UTF8))
        seen(t, list, "atom",
             enif_make_string(fair_env(t), name, ERL_NIF_LATIN1));
    if (fair_get_resource(t, fair_arg(t, 0), probe->object_type, &obj))
        seen(t, list, "object",
             enif_make_long(fair_env(t), ((struct object *)obj)->value));
    if (fair_get_list_length(t, fair_arg(t, 0), &length))
        seen(t, list, "length", enif_make_ulong(fair_env(t), length));
    fair_tick(t, 1);
    return fair_root_get(t, list);
}

/* walk(List) -> {Length, SumOfItsIntegers} */
static ERL_NIF_TERM walk(fair_task *t)
{
    unsigned long n = 0;
    ErlNifSInt64 value, sum = 0;
    ERL_NIF_TERM head;
    size_t length;
    unsigned list;

    if (!fair_get_list_length(t, fair_arg(t, 0), &length))
        return fair_badarg(t);
    list = fair_root_new(t, fair_arg(t, 0));
    while (fair_list_next(t, list, &head)) {
        if (enif_get_int64(fair_env(t), head, &value))
            sum = (ErlNifSInt64)((uint64_t)sum + (uint64_t)value);
        n++;
        fair_tick(t, 1);
    }
    if (n != length || !enif_is_empty_list(fair_env(t), fair_root_get(t, list)))
        return ok(t);
    return enif_make_tuple2(fair_env(t), enif_make_ulong(fair_env(t), n),
                            enif_make_int64(fair_env(t), sum));
}

/* build(N) -> lists:seq(1, N) */
static ERL_NIF_TERM build(fair_task *t)
{
    unsigned n, list = fair_root_new(t, enif_make_list(fair_env(t), 0));

    if (!fair_get_uint(t, fair_arg(t, 0), &n) || n > 10000000)
        return fair_badarg(t);
    for (unsigned i = 1; i <= n; i++) {
        fair_list_push(t, list, enif_make_uint(fair_env(t), i));
        fair_tick(t, 1);
    }
    if (!fair_list_reverse(t, list))
        return fair_badarg(t);
    return fair_root_get(t, list);
}

/* roots(N, Term) -> [{1, Term}, ..., {N, Term}]: each in a root of its own */
static ERL_NIF_TERM roots(fair_task *t)
{
    unsigned n, first = 0;
    ERL_NIF_TERM list;

    if (!fair_get_uint(t, fair_arg(t, 0), &n) || n > 10000)
        return fair_badarg(t);
    for (unsigned i = 1; i <= n; i++) {
        unsigned root = fair_root_new(t, enif_make_tuple2(
            fair_env(t), enif_make_uint(fair_env(t), i), fair_arg(t, 1)));

        first = i == 1 ? root : first;
        fair_tick(t, 100);
    }
    list = enif_make_list(fair_env(t), 0);
    for (unsigned i = n; i > 0; i--)
        list = enif_make_list_cell(fair_env(t), fair_root_get(t, first + i - 1),
                                   list);
    if (n > 0)
        fair_root_drop(t, first);
    return list;
}

/* reverse(List) */
static ERL_NIF_TERM reverse(fair_task *t)
{
    unsigned list = fair_root_new(t, fair_arg(t, 0));

    if (!fair_list_reverse(t, list))
        return fair_badarg(t);
    return fair_root_get(t, list);
}

/* bytes(Iolist) -> Binary */
static ERL_NIF_TERM bytes(fair_task *t)
{
    fair_bytes bin;

    if (!fair_get_iolist(t, fair_arg(t, 0), &bin))
        return fair_badarg(t);
    fair_tick(t, 1);
    return fair_make_bytes(t, &bin);
}

/* text(String) -> Binary, with its final zero */
static ERL_NIF_TERM text(fair_task *t)
{
    char *chars;
    size_t length;
    fair_bin bin;

    if (!fair_get_string(t, fair_arg(t, 0), &chars, &length, FAIR_UTF8))
        return fair_badarg(t);
    if (!fair_new_bin(t, length + 1, &bin))
        return fair_enomem(t);
    for (size_t i = 0, n; i <= length; i += n) {
        n = length + 1 - i < 8192 ? length + 1 - i : 8192;
        memcpy(bin.data + i, chars + i, n);
        fair_tick(t, n);
    }
    return fair_make_bin(t, &bin);
}

/* flip(Binary): all bits turned, by way of a binary that grows as it goes */
static ERL_NIF_TERM flip(fair_task *t)
{
    fair_bytes in, part;
    fair_bin out;

    if (!fair_get_bytes(t, fair_arg(t, 0), &in))
        return fair_badarg(t);
    if (!fair_new_bin(t, 0, &out))
        return fair_enomem(t);
    for (size_t i = 0, n; i < in.size; i += n) {
        n = in.size - i < 100 ? in.size - i : 100;
        if (!fair_resize_bin(t, &out, i + n))
            return fair_enomem(t);
        for (size_t k = i; k < i + n; k++)
            out.data[k] = (unsigned char)~in.data[k];
        if (fair_get_bytes(t, fair_arg(t, 0), &part))
            fair_release_bytes(t, &part);
        fair_tick(t, n);
    }
    return fair_make_bin(t, &out);
}

/* garbage(N, Size): N lists of Size small tuples, none kept */
static ERL_NIF_TERM garbage(fair_task *t)
{
    unsigned n, size;

    if (!fair_get_uint(t, fair_arg(t, 0), &n)
        || !fair_get_uint(t, fair_arg(t, 1), &size)
        || n > 1000000 || size > 10000)
        return fair_badarg(t);
    for (unsigned i = 0; i < n; i++) {
        ERL_NIF_TERM list = enif_make_list(fair_env(t), 0);

        for (unsigned k = 0; k < size; k++)
            list = enif_make_list_cell(
                fair_env(t), enif_make_tuple1(fair_env(t), list), list);
        fair_tick(t, size);
    }
    return ok(t);
}

/* fail(Term): error:Term, some ticks later */
static ERL_NIF_TERM fail(fair_task *t)
{
    for (int i = 0; i < 20; i++)
        fair_tick(t, 1000);
    return fair_raise(t, fair_arg(t, 0));
}

/* object(Object, Us) -> its value after Us of work */
static ERL_NIF_TERM object(fair_task *t)
{
    void *obj;
    unsigned us;

    if (!fair_get_resource(t, fair_arg(t, 0), probe->object_type, &obj)
        || !fair_get_uint(t, fair_arg(t, 1), &us) || us > 1000000)
        return fair_badarg(t);
    for (long end = probe_now() + us * 1000L; probe_now() < end; ) {
        work(1000);
        fair_tick(t, 1000);
    }
    return enif_make_long(fair_env(t), ((struct object *)obj)->value);
}

/* -- elsewhere ------------------------------------------------------------- */

static const char *const where_names[] = {
    [FAIR_NORMAL] = "normal", [FAIR_DIRTY_CPU] = "dirty_cpu",
    [FAIR_DIRTY_IO] = "dirty_io", [FAIR_THREADED] = "thread"
};

/* move(Rounds, Term) -> {Term, [Where]}: round and round, seen newest first */
static ERL_NIF_TERM move(fair_task *t)
{
    static const enum fair_mode places[] = {
        FAIR_DIRTY_CPU, FAIR_NORMAL, FAIR_DIRTY_IO, FAIR_DIRTY_CPU,
        FAIR_DIRTY_IO, FAIR_NORMAL, FAIR_NORMAL
    };
    unsigned rounds, seen = fair_root_new(t, enif_make_list(fair_env(t), 0));

    if (!fair_get_uint(t, fair_arg(t, 0), &rounds) || rounds > 1000)
        return fair_badarg(t);
    while (rounds-- > 0) {
        fair_root_set(t, seen, enif_make_list(fair_env(t), 0));
        for (unsigned i = 0; i < sizeof places / sizeof *places; i++) {
            fair_move(t, places[i]);
            fair_list_push(t, seen, enif_make_atom(fair_env(t),
                                                   where_names[fair_where(t)]));
            work(1000);
            fair_tick(t, 1000);
        }
    }
    return enif_make_tuple2(fair_env(t), fair_arg(t, 1), fair_root_get(t, seen));
}

struct errand {
    long us;
    int thread;
};

static void run_errand(void *arg)
{
    struct errand *e = arg;
    volatile char room[100000];         /* more than a small stack has */

    room[0] = room[sizeof room - 1] = 1;
    e->thread = enif_thread_type();
    burn(e->us);
}

/* call(Us, Units): fair_offload of Us microseconds -> where it ran */
static ERL_NIF_TERM call(fair_task *t)
{
    struct errand *e = fair_alloc(t, sizeof *e);
    unsigned us, units;

    if (!e || !fair_get_uint(t, fair_arg(t, 0), &us)
        || !fair_get_uint(t, fair_arg(t, 1), &units)
        || us > 1000000)
        return fair_badarg(t);
    e->us = us;
    fair_offload(t, FAIR_AUTO, units, run_errand, e);
    fair_tick(t, 1);
    return enif_make_int(fair_env(t), e->thread);
}

/* blocking(Us): the same with fair_offload in FAIR_DIRTY_IO */
static ERL_NIF_TERM blocking(fair_task *t)
{
    struct errand e = {0, 0};           /* on the task's own stack */
    unsigned us;

    if (!fair_get_uint(t, fair_arg(t, 0), &us) || us > 1000000)
        return fair_badarg(t);
    e.us = us;
    fair_offload(t, FAIR_DIRTY_IO, 0, run_errand, &e);
    return enif_make_int(fair_env(t), e.thread);
}

/* -- stacks ---------------------------------------------------------------- */

/* Frames of 32 KiB, each larger than a page. */
static __attribute__((noinline)) unsigned frames(fair_task *t, unsigned depth)
{
    volatile unsigned char frame[32 * 1024];

    frame[0] = (unsigned char)depth;
    if (t)
        fair_tick(t, 100);
    if (depth > 1)
        frame[1] = (unsigned char)frames(t, depth - 1);
    return depth + (frame[0] != (unsigned char)depth);
}

/* deep(Frames) -> Frames: overflows the stack when it is too small */
static ERL_NIF_TERM deep(fair_task *t)
{
    unsigned depth;

    if (!fair_get_uint(t, fair_arg(t, 0), &depth) || depth < 1)
        return fair_badarg(t);
    return enif_make_uint(fair_env(t), frames(t, depth));
}

static void burrow(void *depth)
{
    *(unsigned *)depth = frames(NULL, *(unsigned *)depth);
}

/* deep_called(Frames, Mode) -> Frames: the same by a fair_offload in that mode */
static ERL_NIF_TERM deep_called(fair_task *t)
{
    unsigned depth;
    int mode;

    if (!fair_get_uint(t, fair_arg(t, 0), &depth) || depth < 1
        || !fair_get_int(t, fair_arg(t, 1), &mode))
        return fair_badarg(t);
    fair_offload(t, (enum fair_mode)mode, 1, burrow, &depth);
    return enif_make_uint(fair_env(t), depth);
}

/* -- bodies that break the rules ------------------------------------------- */

/* keeps_term(Term) -> Term: from a C variable; harmless only because nothing
 * is collected when nothing is made */
static ERL_NIF_TERM keeps_term(fair_task *t)
{
    ERL_NIF_TERM term = fair_arg(t, 0);

    fair_tick(t, 1);
    return term;
}

/* holds_mutex() */
static ERL_NIF_TERM holds_mutex(fair_task *t)
{
    enif_mutex_lock(mutex);
    fair_tick(t, 1);
    fair_tick(t, (size_t)-1);
    enif_mutex_unlock(mutex);
    fair_tick(t, 1);
    return ok(t);
}

#endif
