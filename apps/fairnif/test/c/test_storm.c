/*
 * test_storm.c - many tasks that do anything at any time, while their callers
 * are killed, heaps move and threads change: nothing is lost, nothing is done
 * twice.
 *
 * Every decision comes from a seed that is printed; FAIRNIF_SEED repeats one.
 * The first storm has one thread at work at a time and is the same each time;
 * in the second all threads are, and the threads' timing is not ours.
 * FAIRNIF_STORM multiplies their length, 0.1 makes them shorter.
 */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#define NEEDS_TASKS
#include "check.h"

/* -- chance -------------------------------------------------------------- */

struct dice {
    uint64_t state;
};

static unsigned roll(struct dice *d, unsigned sides)
{
    d->state = d->state * 6364136223846793005u + 1442695040888963407u;
    return (unsigned)(d->state >> 33) % sides;
}

static unsigned long seed_of_run(void)
{
    const char *given = getenv("FAIRNIF_SEED");
    unsigned long seed = given ? strtoul(given, NULL, 10)
        : (unsigned long)vm_now() % 1000000;

    printf("seed %lu: FAIRNIF_SEED=%lu repeats it\n", seed, seed);
    return seed;
}

static long times(long n)
{
    const char *given = getenv("FAIRNIF_STORM");

    return given ? (long)((double)n * atof(given)) : n;
}

/* -- the body ------------------------------------------------------------ */

static ErlNifResourceType *type;
static long objects;

static void dtor(ErlNifEnv *env, void *obj)
{
    (void)env, (void)obj;
    __atomic_sub_fetch(&objects, 1, __ATOMIC_RELAXED);
}

static int load(ErlNifEnv *env, void **priv, ERL_NIF_TERM info)
{
    (void)priv, (void)info;
    type = enif_open_resource_type(env, NULL, "object", dtor,
                                   ERL_NIF_RT_CREATE, NULL);
    return type ? 0 : 1;
}

static void elsewhere(void *arg)
{
    ++*(unsigned *)arg;
}

enum { BINS = 6, BLOCKS = 4 };

/* What a body has in its hands, on its own stack. */
struct hands {
    fair_bin bins[BINS];
    unsigned char *blocks[BLOCKS];
    unsigned sizes[BLOCKS];
    unsigned list, last;        /* roots: a list, the last binary's term */
    unsigned pushed, called;
};

static void use_bin(fair_task *t, struct dice *d, struct hands *h)
{
    fair_bin *bin = &h->bins[roll(d, BINS)];
    unsigned size = roll(d, 3) ? roll(d, 130) : roll(d, 5000);

    if (!bin->ref) {
        if (!fair_new_bin(t, size, bin))
            return;
        memset(bin->data, (int)(size & 255), size);
        return;
    }
    for (size_t i = 0; i < bin->size; i++)
        if (bin->data[i] != (bin->size & 255)) {
            CHECK_NUMBERS(bin->data[i], ==, bin->size & 255);
            return;
        }
    switch (roll(d, 4)) {
    case 0:
        fair_release_bin(t, bin);
        bin->ref = NULL;
        break;
    case 1:
        if (fair_resize_bin(t, bin, size))
            memset(bin->data, (int)(size & 255), size);
        break;
    default:
        fair_root_set(t, h->last, fair_make_bin(t, bin));
    }
}

static void use_block(fair_task *t, struct dice *d, struct hands *h)
{
    unsigned i = roll(d, BLOCKS), size = 1 + roll(d, 500);
    unsigned char *block = h->blocks[i];

    if (block)
        CHECK(block[0] == i && block[h->sizes[i] - 1] == i);
    if (block && roll(d, 3) == 0) {
        fair_free(t, block);
        h->blocks[i] = NULL;
        return;
    }
    block = fair_realloc(t, block, size);
    if (!block)
        return;
    memset(block, (int)i, size);
    h->blocks[i] = block;
    h->sizes[i] = size;
}

static void use_list(fair_task *t, struct dice *d, struct hands *h)
{
    ERL_NIF_TERM head;

    switch (roll(d, 8)) {
    case 0:
        CHECK(fair_list_reverse(t, h->list));
        break;
    case 1:
        if (fair_list_next(t, h->list, &head))
            h->pushed--;
        else
            CHECK_NUMBERS(h->pushed, ==, 0);
        break;
    default:
        fair_list_push(t, h->list, fair_arg(t, roll(d, 5)));
        h->pushed++;
    }
}

static bool read_arguments(fair_task *t, struct dice *d)
{
    fair_bytes bin;
    size_t length;
    char *chars;
    void *obj;

    switch (roll(d, 5)) {
    case 0:
        return fair_get_bytes(t, fair_arg(t, 2), &bin)
            && bin.data[bin.size - 1] == 9;
    case 1:
        return fair_get_iolist(t, fair_arg(t, 3), &bin)
            && !memcmp(bin.data, "\1\2\3\4", 4) && bin.size == 4;
    case 2:
        return fair_get_string(t, fair_arg(t, 4), &chars, &length, FAIR_UTF8)
            && length == 3 && !strcmp(chars, "abc");
    case 3:
        return fair_get_list_length(t, fair_arg(t, 4), &length) && length == 3;
    default:
        return fair_get_resource(t, fair_arg(t, 5), type, &obj)
            && *(int *)obj == 17;
    }
}

/* storm(Seed, Steps, Binary, IoList, String, Resource) -> {Seed, Steps} */
static ERL_NIF_TERM storm(fair_task *t)
{
    static const enum fair_mode wheres[] = {FAIR_NORMAL, FAIR_DIRTY_CPU,
                                            FAIR_DIRTY_IO};
    struct hands h;
    struct dice d = {0};
    unsigned long steps;
    unsigned length;

    memset(&h, 0, sizeof h);
    if (!fair_get_uint64(t, fair_arg(t, 0), &d.state)
        || !fair_get_ulong(t, fair_arg(t, 1), &steps) || !postpone(t))
        return fair_badarg(t);
    h.list = fair_root_new(t, enif_make_list(fair_env(t), 0));
    h.last = fair_root_new(t, fair_root_get(t, h.list));
    for (unsigned long i = 0; i < steps; i++) {
        switch (roll(&d, 16)) {
        case 0: case 1: case 2: case 3: case 4:
            fair_tick(t, roll(&d, 100));
            break;
        case 5: case 6:
            use_bin(t, &d, &h);
            break;
        case 7: case 8:
            use_block(t, &d, &h);
            break;
        case 9: case 10:
            use_list(t, &d, &h);
            break;
        case 11: case 12:
            CHECK(read_arguments(t, &d));
            break;
        case 13:
            if (!postpone(t))
                return fair_enomem(t);
            break;
        case 14:
            fair_move(t, wheres[roll(&d, 3)]);
            break;
        default:
            (roll(&d, 2) ? fair_offload(t, FAIR_DIRTY_IO, 0, elsewhere, &h.called)
             : fair_offload(t, FAIR_AUTO, roll(&d, 1000), elsewhere, &h.called));
        }
    }
    CHECK(enif_get_list_length(fair_env(t), fair_root_get(t, h.list), &length)
          || h.pushed == 0);
    if (h.pushed)
        CHECK_NUMBERS(length, ==, h.pushed);
    if (roll(&d, 8) == 0)
        return fair_raise(t, fair_arg(t, 4));
    if (roll(&d, 30) == 0)
        vm_kill(vm_current());
    return enif_make_tuple2(fair_env(t), fair_arg(t, 0), fair_arg(t, 1));
}

static ErlNifFunc nifs[] = {ALL_MODES("storm", 6, storm)};
FAIR_NIF_INIT(test_storm, nifs, load, NULL, NULL)

/* -- what both storms do ------------------------------------------------- */

static vm_proc *spawn_storm(struct dice *d)
{
    vm_proc *p = vm_spawn();
    ErlNifEnv *env = vm_env(p);
    unsigned char bytes[300] = {0};
    size_t size = 1 + roll(d, sizeof bytes);
    int *obj = enif_alloc_resource(type, sizeof *obj);
    vm_term args[6];

    *obj = 17;
    __atomic_add_fetch(&objects, 1, __ATOMIC_RELAXED);
    bytes[size - 1] = 9;
    args[0] = enif_make_uint64(env, d->state);
    args[1] = enif_make_uint(env, roll(d, 60));
    args[2] = vm_bits(env, bytes, size, roll(d, 3) ? 0 : roll(d, 8));
    args[3] = vm_parse(env, "[1,[<<2,3/3>>|<<4>>]]");
    args[4] = vm_parse(env, "\"abc\"");
    args[5] = enif_make_resource(env, obj);
    enif_release_resource(obj);
    vm_call_array(p, lib, in_mode("storm", &modes[roll(d, 6)]), 6, args);
    return p;
}

/* A process that looks on, or turns a knob. */
static vm_proc *spawn_observer(struct dice *d)
{
    char args[64];

    switch (roll(d, 3)) {
    case 0:
        return node_spawn("nif_tasks", "");
    case 1:
        return node_spawn("nif_info", "");
    default:
        snprintf(args, sizeof args, "slice_ns, %u", 1000 + roll(d, 25000));
        return node_spawn("nif_set", args);
    }
}

static void check_end(vm_proc *p)
{
    const char *text = outcome(p);

    if (vm_state(p) != VM_READY)        /* vm_free kills it then */
        CHECK(!strcmp(text, "dead") || !strcmp(text, "error:[97,98,99]")
              || !strcmp(text, "ok") || text[0] == '{' || text[0] == '[');
    vm_free(p);
}

static void settings(struct dice *d)
{
    node_set("pause_every_tick", roll(d, 2));
    node_set("slice_ns", 1000 + roll(d, 25000));
    node_set("dirty_slice_ns", 10000 + roll(d, 100000));
    node_set("dirty_cpus", 1 + roll(d, 3));
    vm_options.dead_heaps_on = 1 + (int)roll(d, 3);
    vm_options.gc_every = 1 + (int)roll(d, 4);
}

static void check_all(unsigned long seed)
{
    char what[512];

    vm_run_destructors();
    CHECK(all_undone());
    CHECK_NUMBERS(objects, ==, 0);
    CHECK_NUMBERS(node_stacks(), ==, 0);
    CHECK_TEXT(node_leftovers(), "");
    CHECK_NUMBERS(node_stacks_mapped(), <=, 64 + 7 * 4);
    CHECK_TEXT(node_tasks(what, sizeof what), "[]");
    if (check_failures())
        printf("FAILED with seed %lu\n", seed);
}

/* -- one thread at a time ------------------------------------------------ */

TEST(one_by_one, "a storm, one slice at a time: nothing is lost")
{
    enum { PROCS = 100 };
    vm_proc *procs[PROCS] = {NULL};
    unsigned long seed = seed_of_run();
    struct dice d = {seed};

    vm_options.virtual_time = true;
    for (long step = times(20000); step > 0 && !check_failures(); step--) {
        vm_proc **p = &procs[roll(&d, PROCS)];

        if (step % 500 == 0)
            settings(&d);
        if (step % 100 == 0) {
            vm_options.late_destructors = roll(&d, 2);
            vm_run_destructors();
        }
        if (!*p)
            *p = roll(&d, 50) ? spawn_storm(&d) : spawn_observer(&d);
        else if (vm_state(*p) != VM_READY || roll(&d, 40) == 0)
            check_end(*p), *p = NULL;
        else if (roll(&d, 40) == 0)
            vm_kill(*p);
        else if (roll(&d, 10) == 0)
            vm_gc(*p);
        else
            vm_step(*p);
    }
    for (int i = 0; i < PROCS; i++)
        if (procs[i])
            vm_free(procs[i]);
    check_all(seed);
}

/* -- all threads at once ------------------------------------------------- */

enum { CROWD = 64 };

static struct {
    pthread_mutex_t lock;
    vm_proc *procs[CROWD];      /* all of this round */
    vm_proc *queue[CROWD];      /* those that wait for a thread */
    int queued, unfinished;
} crowd = {.lock = PTHREAD_MUTEX_INITIALIZER};

static vm_proc *next_for(int kind)
{
    vm_proc *p = NULL;

    pthread_mutex_lock(&crowd.lock);
    for (int i = 0; i < crowd.queued; i++) {
        vm_proc *q = crowd.queue[i];

        if (vm_next_kind(q) != kind && vm_state(q) != VM_DEAD)
            continue;
        p = q;
        crowd.queue[i] = crowd.queue[--crowd.queued];
        break;
    }
    pthread_mutex_unlock(&crowd.lock);
    return p;
}

static void scheduler(void *arg)
{
    struct dice *d = arg;
    int kind = enif_thread_type();

    while (__atomic_load_n(&crowd.unfinished, __ATOMIC_ACQUIRE) > 0) {
        vm_proc *p = next_for(kind);

        if (roll(d, 100) == 0)
            vm_kill(crowd.procs[roll(d, CROWD)]);
        if (!p) {
            usleep(50);
            continue;
        }
        if (vm_slice(p) == VM_READY) {
            pthread_mutex_lock(&crowd.lock);
            crowd.queue[crowd.queued++] = p;
            pthread_mutex_unlock(&crowd.lock);
        } else {
            __atomic_sub_fetch(&crowd.unfinished, 1, __ATOMIC_RELEASE);
        }
    }
}

TEST(all_at_once, "a storm on all threads at once: nothing is lost")
{
    unsigned long seed = seed_of_run();
    struct dice d = {seed}, of_thread[VM_KINDS][8];

    for (long round = times(60); round > 0 && !check_failures(); round--) {
        settings(&d);
        for (int i = 0; i < CROWD; i++)
            crowd.queue[i] = crowd.procs[i] =
                roll(&d, 16) ? spawn_storm(&d) : spawn_observer(&d);
        crowd.queued = crowd.unfinished = CROWD;
        for (int kind = 1; kind < VM_KINDS; kind++)
            for (int n = 0; n < vm_thread_count(kind); n++) {
                of_thread[kind][n].state = d.state + (unsigned)(kind * 8 + n);
                vm_post(vm_nth_thread(kind, n), scheduler,
                        &of_thread[kind][n]);
            }
        for (int kind = 1; kind < VM_KINDS; kind++)
            for (int n = 0; n < vm_thread_count(kind); n++)
                vm_wait(vm_nth_thread(kind, n));
        for (int i = 0; i < CROWD; i++)
            check_end(crowd.procs[i]);
    }
    check_all(seed);
}
