/*
 * nif.c - the face of the watchdog's native part, module fairnif_watch_native.
 *
 * Calls that may wait (new, stop) are dirty; all others are a few loads, and wait
 * for nobody: not for the thread either, which may be given no processor.  The
 * thread is ended by `stop`.  Where nobody calls that the object's destructor
 * does it: by then the monitor has told the thread to end.
 */
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "watch/watch.h"
#include "look/fair.h"
#include "look/term.h"
#include "look/wait.h"
#include "read/mem.h"

static ErlNifResourceType *watch_type;
#define TYPE_NAME "fairnif_watch"
static void watch_dtor(ErlNifEnv *env, void *obj);

static ERL_NIF_TERM error(ErlNifEnv *env, ERL_NIF_TERM reason)
{
    return enif_make_tuple2(env, atom(env, "error"), reason);
}

static struct watch *get_watch(ErlNifEnv *env, ERL_NIF_TERM term)
{
    void *obj;

    return enif_get_resource(env, term, watch_type, &obj) ? obj : NULL;
}

/* -- life ----------------------------------------------------------------------- */

static bool get_uint(ErlNifEnv *env, ERL_NIF_TERM map, const char *key,
                     uint64_t factor, uint64_t *value)
{
    ERL_NIF_TERM term;
    ErlNifUInt64 number;

    if (!enif_get_map_value(env, map, atom(env, key), &term)
        || !enif_get_uint64(env, term, &number))
        return false;
    *value = number * factor;
    return true;
}

static bool get_config(ErlNifEnv *env, ERL_NIF_TERM map,
                       struct watch__config *c, struct watch__tids *tids)
{
    uint64_t hz, rate, signals, n[K_KINDS];

    if (!get_uint(env, map, "period_ms", NS_PER_MS, &c->limits.period_ns)
        || !get_uint(env, map, "warn_ms", NS_PER_MS, &c->limits.warn_ns)
        || !get_uint(env, map, "error_ms", NS_PER_MS, &c->limits.error_ns)
        || !get_uint(env, map, "emergency_ms", NS_PER_MS, &c->emergency_ns)
        || !get_uint(env, map, "sample_hz", 1, &hz)
        || !get_uint(env, map, "events_per_s", 1, &rate)
        || !get_uint(env, map, "signals", 1, &signals)
        || !get_uint(env, map, "normal", 1, &n[K_NORMAL])
        || !get_uint(env, map, "dirty_cpu", 1, &n[K_DIRTY_CPU])
        || !get_uint(env, map, "dirty_io", 1, &n[K_DIRTY_IO]))
        return false;
    c->sample_hz = (unsigned)hz;
    c->events_per_s = (unsigned)rate;
    c->signals = signals != 0;
    for (unsigned k = 0; k < K_KINDS; k++) {
        if (n[k] > 4096)
            return false;
        tids->count[k] = (unsigned)n[k];
    }
    return c->limits.period_ns > 0 && rate > 0;
}

/* The names, as a list of binaries. */
static ERL_NIF_TERM name_list(ErlNifEnv *env, char *names)
{
    ERL_NIF_TERM list = enif_make_list(env, 0);
    char *rest, *name;

    for (name = strtok_r(names, " ", &rest); name;
         name = strtok_r(NULL, " ", &rest))
        list = enif_make_list_cell(env, binary(env, name), list);
    return list;
}

/* new(Config, Owner, Watchdog) -> {ok, Watch} | {error, term()}.  Dirty: reads
 * /proc. */
static ERL_NIF_TERM new(ErlNifEnv *env, int argc, const ERL_NIF_TERM argv[])
{
    struct watch__config config;
    struct watch__tids tids;
    ErlNifPid owner, watchdog;
    struct watch *w;
    char names[1024];
    ERL_NIF_TERM answer = 0;
    bool all = true;

    (void)argc;
    if (!get_config(env, argv[0], &config, &tids)
        || !enif_get_local_pid(env, argv[1], &owner)
        || !enif_get_local_pid(env, argv[2], &watchdog))
        return enif_make_badarg(env);
    for (unsigned k = 0; k < K_KINDS; k++) {
        tids.tid[k] = calloc(tids.count[k] + 1, sizeof(int));
        all = all && tids.tid[k];
    }
    w = all ? enif_alloc_resource(watch_type, sizeof *w) : NULL;
    if (!w) {
        answer = error(env, atom(env, "enomem"));
    } else if (!watch__find_threads(&tids, names, sizeof names)) {
        memset(w, 0, sizeof *w);    /* for the destructor */
        answer = error(env, enif_make_tuple2(
            env, atom(env, "unknown_thread_names"), name_list(env, names)));
    } else if (!watch__init(w, &config, &tids)) {
        answer = error(env, atom(env, "enomem"));
    } else {
        w->owner = owner;
        SET(w->online, tids.count[K_NORMAL]);
        if (enif_monitor_process(env, w, &watchdog, &w->monitor) != 0)
            answer = error(env, atom(env, "noproc"));
        else
            answer = enif_make_tuple2(env, atom(env, "ok"),
                                      enif_make_resource(env, w));
    }
    if (w)
        enif_release_resource(w);
    for (unsigned k = 0; k < K_KINDS; k++)
        free(tids.tid[k]);
    return answer;
}

static int64_t clock_offset(void)
{
    ErlNifTime theirs = enif_monotonic_time(ERL_NIF_NSEC);

    return (int64_t)theirs - (int64_t)watch__now();
}

/* start(Watch) -> {ok, Errno, Hidden} | {error, busy | no_thread}.  Dirty:
 * makes a thread.  `Errno`: why signals are off, though asked for; 0: they are
 * not.  `Hidden`: the system does not show where threads sleep.  `busy`:
 * another watch of this library has not been stopped. */
static ERL_NIF_TERM start(ErlNifEnv *env, int argc, const ERL_NIF_TERM argv[])
{
    struct watch *w = get_watch(env, argv[0]);

    (void)argc;
    if (!w || w->started)
        return enif_make_badarg(env);
    w->started = true;
    SET(w->offset, clock_offset());
    watch__read_start();        /* where the system refuses the quick way */
    watch__types_learn(&w->types, watch_type, (uintptr_t)watch_dtor,
                       atom(env, "fairnif_watch_native"), atom(env, TYPE_NAME));
    switch (watch__start(w)) {
    case START_OK:
        return enif_make_tuple3(
            env, atom(env, "ok"), enif_make_int(env, w->signals_error),
            atom(env, w->sleepers_hidden ? "true" : "false"));
    case START_BUSY:
        w->started = false;
        return error(env, atom(env, "busy"));
    default:
        return error(env, atom(env, "no_thread"));
    }
}

/* stop(Watch) -> ok.  Dirty: waits for the thread. */
static ERL_NIF_TERM stop(ErlNifEnv *env, int argc, const ERL_NIF_TERM argv[])
{
    struct watch *w = get_watch(env, argv[0]);

    (void)argc;
    if (!w)
        return enif_make_badarg(env);
    watch__stop(w);
    return atom(env, "ok");
}

/* -- responders ------------------------------------------------------------ */

static struct watch__thread *get_normal(ErlNifEnv *env, struct watch *w,
                                        ERL_NIF_TERM term)
{
    unsigned number;

    if (!w || !enif_get_uint(env, term, &number) || number < 1
        || number > w->normal)
        return NULL;
    return &w->threads[number - 1];
}

/* The thread was seen giving way, whatever it has been probed for.  Its clock,
 * not the caller's: a responder whose scheduler is offline answers from another
 * one. */
static void gives_way(struct watch__thread *t, uint64_t now)
{
    SET(t->responder.roused, 0);
    SET(t->responder.reply_at, now);
    SET(t->responder.reply_cpu, watch__cpu(t->clock));
    atomic_store_explicit(&t->responder.replies, GET(t->responder.probed),
                          memory_order_release);
}

/* responder(Watch, Number) -> ok | {error, {thread, Named, Mine}}: the caller
 * is the responder of that scheduler, and runs on it. */
static ERL_NIF_TERM responder(ErlNifEnv *env, int argc,
                             const ERL_NIF_TERM argv[])
{
    struct watch *w = get_watch(env, argv[0]);
    struct watch__thread *t = get_normal(env, w, argv[1]);
    int tid = watch__gettid();
    ErlNifPid self;

    (void)argc;
    if (!t || enif_thread_type() != ERL_NIF_THR_NORMAL_SCHEDULER)
        return enif_make_badarg(env);
    if (tid != t->tid)
        return error(env, enif_make_tuple3(env, atom(env, "thread"),
                                           enif_make_int(env, t->tid),
                                           enif_make_int(env, tid)));
    enif_self(env, &self);
    SET(t->responder.pid, self.pid);
    gives_way(t, watch__now());
    atomic_store_explicit(&t->responder.there, 1, memory_order_release);
    return atom(env, "ok");
}

/* reply(Watch, Number) -> ok: the responder's answer to any message. */
static ERL_NIF_TERM reply(ErlNifEnv *env, int argc, const ERL_NIF_TERM argv[])
{
    struct watch *w = get_watch(env, argv[0]);
    struct watch__thread *t = get_normal(env, w, argv[1]);
    uint64_t now = watch__now();

    (void)argc;
    if (!t)
        return enif_make_badarg(env);
    SET(w->offset, (int64_t)enif_monotonic_time(ERL_NIF_NSEC) - (int64_t)now);
    gives_way(t, now);
    return atom(env, "ok");
}

/* -- what is known ------------------------------------------------------------------------ */

static const char *const state_names[] = {
    [ST_UNKNOWN] = "unknown", [ST_IDLE] = "idle", [ST_BUSY] = "busy",
    [ST_NATIVE] = "native", [ST_SLEEPS_NATIVE] = "sleeping_in_native"
};

static ERL_NIF_TERM thread_map(ErlNifEnv *env, struct watch *w,
                               const struct watch__thread *t,
                               const struct fair_running *fair, uint64_t now)
{
    ERL_NIF_TERM map = enif_make_new_map(env), waits = enif_make_list(env, 0);
    uint64_t begin = GET(t->shown_begin), busy = GET(t->shown_busy_since);

    put(env, &map, "kind", atom(env, watch__kind_names[t->kind]));
    put(env, &map, "number", enif_make_uint(env, t->number));
    put(env, &map, "tid", enif_make_int(env, t->tid));
    put(env, &map, "state", atom(env, state_names[GET(t->state)]));
    put(env, &map, "busy",
        enif_make_double(env, (double)GET(t->shown_share) / 1000));
    put(env, &map, "busy_ns",
        enif_make_uint64(env, busy ? watch__less(now, busy) : 0));
    put(env, &map, "blocked_ns",
        enif_make_uint64(env, begin ? watch__less(now, begin) : 0));
    put(env, &map, "fairnif", fairnif_term(env, w, fair));
    put(env, &map, "cpu_ns", enif_make_uint64(env, GET(t->shown_cpu)));
    for (unsigned i = WATCH__WAITS; i-- > 0; )
        waits = enif_make_list_cell(env, enif_make_tuple2(env,
            enif_make_uint(env, watch__wait_ms[i]),
            enif_make_uint64(env, GET(t->long_waits[i]))), waits);
    put(env, &map, "long_waits", waits);
    put(env, &map, "long_wait_ns",
        enif_make_uint64(env, GET(t->long_wait_ns)));
    put(env, &map, "waited_ns", enif_make_uint64(env, GET(t->shown_waited)));
    put(env, &map, "runs", enif_make_uint64(env, GET(t->shown_runs)));
    return map;
}

/* threads(Watch) -> [map()] | busy: the thread writes what is asked for. */
static ERL_NIF_TERM threads(ErlNifEnv *env, int argc,
                            const ERL_NIF_TERM argv[])
{
    struct watch *w = get_watch(env, argv[0]);
    ERL_NIF_TERM list = enif_make_list(env, 0);
    uint64_t now = watch__now();
    struct fair_running *fair;

    (void)argc;
    if (!w)
        return enif_make_badarg(env);
    fair = enif_alloc(w->count * sizeof *fair);
    if (!fair)
        return enif_raise_exception(env, atom(env, "enomem"));
    if (!watch__try_lock(w)) {
        enif_free(fair);
        return atom(env, "busy");
    }
    memcpy(fair, w->shown_fair, w->count * sizeof *fair);
    watch__unlock(w);
    for (unsigned i = w->count; i-- > 0; )
        list = enif_make_list_cell(env, thread_map(env, w, &w->threads[i],
                                                   &fair[i], now), list);
    enif_free(fair);
    return list;
}

/* pool(Watch) -> [map()] | busy: what fairnif runs on threads of its own. */
static ERL_NIF_TERM pool(ErlNifEnv *env, int argc, const ERL_NIF_TERM argv[])
{
    struct watch *w = get_watch(env, argv[0]);
    ERL_NIF_TERM list = enif_make_list(env, 0);
    struct fair_running *fair;
    unsigned n;

    (void)argc;
    if (!w)
        return enif_make_badarg(env);
    fair = enif_alloc(WATCH__POOL * sizeof *fair);
    if (!fair)
        return enif_raise_exception(env, atom(env, "enomem"));
    if (!watch__try_lock(w)) {
        enif_free(fair);
        return atom(env, "busy");
    }
    n = w->shown_pools;
    memcpy(fair, w->shown_pool, n * sizeof *fair);
    watch__unlock(w);
    while (n-- > 0) {
        ERL_NIF_TERM map = enif_make_new_map(env);

        put(env, &map, "kind", atom(env, "thread"));
        put(env, &map, "number", enif_make_uint(env, fair[n].number));
        put(env, &map, "fairnif", fairnif_term(env, w, &fair[n]));
        list = enif_make_list_cell(env, map, list);
    }
    enif_free(fair);
    return list;
}

/* top(Watch) -> {All, Other, [{Function, Samples}]} | busy: of the last ten seconds
 * or twenty. */
static ERL_NIF_TERM top(ErlNifEnv *env, int argc, const ERL_NIF_TERM argv[])
{
    struct watch *w = get_watch(env, argv[0]);
    ERL_NIF_TERM list = enif_make_list(env, 0), numbers[2];
    struct watch__tally *tallies;

    (void)argc;
    if (!w)
        return enif_make_badarg(env);
    tallies = enif_alloc(sizeof w->tallies);
    if (!tallies)
        return enif_raise_exception(env, atom(env, "enomem"));
    if (!watch__try_lock(w)) {
        enif_free(tallies);
        return atom(env, "busy");
    }
    memcpy(tallies, w->tallies, sizeof w->tallies);
    numbers[0] = enif_make_uint64(env, w->tallied);
    numbers[1] = enif_make_uint64(env, w->other);
    watch__unlock(w);
    for (unsigned i = 0; i < WATCH__TALLIES; i++) {
        const struct watch__tally *x = &tallies[i];

        if (x->samples)
            list = enif_make_list_cell(env, enif_make_tuple2(
                env, x->is_mfa ? mfa(env, x->library, x->name, x->arity)
                : enif_make_tuple2(env, binary(env, x->library),
                                   binary(env, x->name)),
                enif_make_uint64(env, x->samples)), list);
    }
    enif_free(tallies);
    return enif_make_tuple3(env, numbers[0], numbers[1], list);
}

/* look(Watch, Kind, Number, Ref) -> ok | busy: too many are asked for. */
static ERL_NIF_TERM look(ErlNifEnv *env, int argc, const ERL_NIF_TERM argv[])
{
    struct watch *w = get_watch(env, argv[0]);
    ErlNifEnv *ref_env;
    bool taken = false;
    unsigned number, thread = 0;

    (void)argc;
    if (!w || !enif_get_uint(env, argv[2], &number))
        return enif_make_badarg(env);
    while (thread < w->count
           && !(w->threads[thread].number == number
                && enif_is_identical(argv[1], atom(env, watch__kind_names[
                    w->threads[thread].kind]))))
        thread++;
    if (thread == w->count)
        return enif_make_badarg(env);
    if (!(ref_env = enif_alloc_env()))
        return atom(env, "busy");
    for (unsigned i = 0; i < WATCH__LOOKS && !taken; i++) {
        struct watch__look *l = &w->looks[i];
        int unused = LOOK_FREE;

        taken = atomic_compare_exchange_strong(&l->state, &unused,
                                               LOOK_FILLED);
        if (taken) {
            l->env = ref_env;
            l->ref = enif_make_copy(ref_env, argv[3]);
            l->thread = thread;
            atomic_store_explicit(&l->state, LOOK_ASKED, memory_order_release);
            watch__wake(w);
        }
    }
    if (!taken)
        enif_free_env(ref_env);
    return atom(env, taken ? "ok" : "busy");
}

/* libstdc++'s or libc++'s, where the emulator has one (the JIT is C++).  The
 * loader looks for it when this library is loaded: a search later would wait
 * for whoever loads one meanwhile. */
extern char *__cxa_demangle(const char *name, char *to, size_t *size,
                            int *status) __attribute__((weak));

/* demangle(Symbol) -> binary() | none. */
static ERL_NIF_TERM demangle(ErlNifEnv *env, int argc,
                             const ERL_NIF_TERM argv[])
{
    ErlNifBinary symbol;
    char name[WATCH__NAME], *found = NULL;
    ERL_NIF_TERM answer = atom(env, "none");
    int status;

    (void)argc;
    if (!enif_inspect_binary(env, argv[0], &symbol))
        return enif_make_badarg(env);
    if (__cxa_demangle && symbol.size < sizeof name) {
        memcpy(name, symbol.data, symbol.size);
        name[symbol.size] = 0;
        found = __cxa_demangle(name, NULL, NULL, &status);
    }
    if (found)
        answer = binary(env, found);
    free(found);
    return answer;
}

/* fairnif(Watch, Runtime) -> boolean(): the object of fairnif:load_info/0. */
static ERL_NIF_TERM fairnif(ErlNifEnv *env, int argc,
                            const ERL_NIF_TERM argv[])
{
    struct watch *w = get_watch(env, argv[0]);
    const struct fair_ops *ops;

    (void)argc;
    if (!w)
        return enif_make_badarg(env);
    ops = watch__fair_bind(env, argv[1]);
    if (ops)
        atomic_store_explicit(&w->fair, ops, memory_order_release);
    return atom(env, ops ? "true" : "false");
}

/* counters(Watch) -> #{atom() => non_neg_integer()} */
static ERL_NIF_TERM counters(ErlNifEnv *env, int argc,
                             const ERL_NIF_TERM argv[])
{
    struct watch *w = get_watch(env, argv[0]);
    ERL_NIF_TERM map = enif_make_new_map(env);

    (void)argc;
    if (!w)
        return enif_make_badarg(env);
#define COUNTER(NAME)                                                       \
    put(env, &map, #NAME, enif_make_uint64(env, GET(w->counters.NAME)));
    WATCH__COUNTERS(COUNTER)
#undef COUNTER
    return map;
}

/* online(Watch, Number) -> ok: how many normal schedulers are online. */
static ERL_NIF_TERM online(ErlNifEnv *env, int argc, const ERL_NIF_TERM argv[])
{
    struct watch *w = get_watch(env, argv[0]);
    unsigned number;

    (void)argc;
    if (!w || !enif_get_uint(env, argv[1], &number))
        return enif_make_badarg(env);
    SET(w->online, number);
    return atom(env, "ok");
}

/* -- the library -------------------------------------------------------------------------- */

static void watch_dtor(ErlNifEnv *env, void *obj)
{
    (void)env;
    if (((struct watch *)obj)->threads)
        watch__free(obj);
}

/* The watchdog process is dead; the thread is joined by who notices. */
static void watch_down(ErlNifEnv *env, void *obj, ErlNifPid *pid,
                       ErlNifMonitor *monitor)
{
    (void)env, (void)pid, (void)monitor;
    watch__ask_to_stop(obj);
}

static int load(ErlNifEnv *env, void **priv, ERL_NIF_TERM info)
{
    ErlNifResourceTypeInit init = {.dtor = watch_dtor, .down = watch_down,
                                   .members = 3};

    (void)priv, (void)info;
    watch_type = enif_init_resource_type(env, TYPE_NAME, &init,
                                         ERL_NIF_RT_CREATE, NULL);
    return watch_type ? 0 : 1;
}

static ErlNifFunc nifs[] = {
    {"new", 3, new, ERL_NIF_DIRTY_JOB_IO_BOUND},
    {"start", 1, start, ERL_NIF_DIRTY_JOB_IO_BOUND},
    {"stop", 1, stop, ERL_NIF_DIRTY_JOB_IO_BOUND},
    {"responder", 2, responder, 0},
    {"reply", 2, reply, 0},
    {"threads", 1, threads, 0},
    {"pool", 1, pool, 0},
    {"counters", 1, counters, 0},
    {"online", 2, online, 0},
    {"top", 1, top, 0},
    {"look", 4, look, 0},
    {"fairnif", 2, fairnif, 0},
    {"demangle", 1, demangle, 0},
};

ERL_NIF_INIT(fairnif_watch_native, nifs, load, NULL, NULL, NULL)
