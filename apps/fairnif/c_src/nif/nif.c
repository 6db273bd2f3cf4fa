/*
 * nif.c - the NIF library of module fairnif itself: configuration, what
 * fairnif:info/0 and fairnif:tasks/0 show, and two measurements for the
 * calibration.
 *
 * The module may be loaded anew, even from another file, while authors'
 * libraries are bound to this runtime.  So its NIFs go through the table that
 * priv_data points to, which an upgrade hands on; and the library is linked
 * with -z nodelete, so that the code behind the table stays.
 */
#include <stdio.h>
#include <stdlib.h>

#include "base/config.h"
#include "base/os.h"
#include "base/type.h"
#include "driver/drivers.h"
#include "life/await.h"
#include "life/end.h"
#include "life/park.h"
#include "nif/load.h"
#include "task/call.h"
#include "task/stack.h"
#include "term/binary.h"

#ifndef FAIRNIF_VERSION
#define FAIRNIF_VERSION "0.0.0"
#endif

typedef ERL_NIF_TERM (*nif)(ErlNifEnv *, int, const ERL_NIF_TERM[]);

/* What one loaded copy of this library offers to the module. */
struct runtime {
    uint32_t size;
    uint16_t abi_major, abi_minor;
    const char *version;
    void (*bind)(ErlNifEnv *env, struct fair__handshake *hs);
    bool (*open_types)(ErlNifEnv *env);
    nif set, info, tasks, reschedule_ns, dirty_trip_ns, await, expire,
        settle;
    const struct fair__driver_nifs *drivers;
    const struct fair__ops *(*ops)(void);
};
static const struct runtime this_runtime;

struct runtime_object {
    const struct runtime *runtime;
};
static ErlNifResourceType *runtime_type;

static ERL_NIF_TERM atom(ErlNifEnv *env, const char *name)
{
    return enif_make_atom(env, name);
}

/* -- settings ----------------------------------------------------------------*/

/* The settings as data: name, where, bounds. */
static const struct setting {
    const char *name;
    fair__u64 *number;
    _Atomic bool *flag;
    uint64_t least, most;
} settings[] = {
    {"slice_ns", &fair__config.slice_ns, NULL, 1000, 1000000000},
    {"fair_ns", &fair__config.fair_ns, NULL, 1000, 1000000},
    {"dirty_slice_ns", &fair__config.dirty_slice_ns, NULL, 10000, 1000000000},
    {"dirty_trip_ns", &fair__config.dirty_trip_ns, NULL, 1, 1000000000},
    {"adapt_gap_ns", &fair__config.adapt_gap_ns, NULL, 10000, 1000000000000},
    {"max_tasks", &fair__config.max_tasks, NULL, 0, INT32_MAX},
    {"dirty_cpus", &fair__config.dirty_cpus, NULL, 1, 4096},
    {"threads", &fair__config.threads, NULL, 1, 1024},
    {"max_queued", &fair__config.max_queued, NULL, 1, INT32_MAX},
    {"overload_ns", &fair__config.overload_ns, NULL, 1000000,
     86400000000000},
    {"spin", &fair__config.spin, NULL, 0, 1},
    {"pause_every_tick", NULL, &fair__config.pause_every_tick, 0, 1},
    {"check_terms", NULL, &fair__config.check_terms, 0, 1},
    {"measure_cpu", NULL, &fair__config.measure_cpu, 0, 1},
};
enum { SETTINGS = sizeof settings / sizeof *settings };

/* set(Name, Integer) -> ok | badarg */
static ERL_NIF_TERM set(ErlNifEnv *env, int argc, const ERL_NIF_TERM argv[])
{
    char name[32];
    ErlNifUInt64 value;

    (void)argc;
    if (!enif_get_atom(env, argv[0], name, sizeof name, ERL_NIF_LATIN1)
        || !enif_get_uint64(env, argv[1], &value))
        return enif_make_badarg(env);
    for (unsigned i = 0; i < SETTINGS; i++) {
        const struct setting *s = &settings[i];

        if (strcmp(s->name, name) != 0)
            continue;
        if (value < s->least || value > s->most)
            break;
        if (s->flag)
            SET(*s->flag, value != 0);
        else
            SET(*s->number, value);
        return atom(env, "ok");
    }
    return enif_make_badarg(env);
}

/* -- info ----------------------------------------------------------------------*/

static void put(ErlNifEnv *env, ERL_NIF_TERM *map, const char *key,
                ERL_NIF_TERM value)
{
    enif_make_map_put(env, *map, atom(env, key), value, map);
}

static void put_number(ErlNifEnv *env, ERL_NIF_TERM *map, const char *key,
                       uint64_t value)
{
    put(env, map, key, enif_make_uint64(env, value));
}

static void put_double(ErlNifEnv *env, ERL_NIF_TERM *map, const char *key,
                       double value)
{
    put(env, map, key, enif_make_double(env, value));
}

enum how { SUM, MAX };

static void gather(uint64_t *total, enum how how, uint64_t value)
{
    if (how == SUM)
        *total += value;
    else if (value > *total)
        *total = value;
}

struct totals {
#define COUNTER(NAME, HOW, UNIT, MEANING) uint64_t NAME;
#include "thread/counters.def"
#undef COUNTER
    uint64_t histogram[FAIR__BUCKETS];
};

static void gather_stat(struct totals *sum, const struct fair__fstat *st)
{
    if (!st)
        return;
#define COUNTER(NAME, HOW, UNIT, MEANING) \
    gather(&sum->NAME, HOW, GET(st->NAME));
#include "thread/counters.def"
#undef COUNTER
    for (unsigned i = 0; i < FAIR__BUCKETS; i++)
        sum->histogram[i] += GET(st->histogram[i]);
}

/* [{UpperNs, Count}], the empty ones left out */
static ERL_NIF_TERM histogram(ErlNifEnv *env, const uint64_t *counts)
{
    ERL_NIF_TERM list = enif_make_list(env, 0);

    for (unsigned i = FAIR__BUCKETS; i-- > 0; )
        if (counts[i] > 0)
            list = enif_make_list_cell(
                env, enif_make_tuple2(
                    env, enif_make_uint64(env, fair__bucket_ns(i)),
                    enif_make_uint64(env, counts[i])), list);
    return list;
}

/* [{Units, UnitNs}], by octave, the unknown ones left out */
static ERL_NIF_TERM work_costs(ErlNifEnv *env, const struct fair__func *f)
{
    ERL_NIF_TERM list = enif_make_list(env, 0);

    for (unsigned i = FAIR__OCTAVES; i-- > 0; ) {
        double unit_ns = GET(f->work_unit_ns[i]);

        if (unit_ns > 0)
            list = enif_make_list_cell(
                env, enif_make_tuple2(
                    env, enif_make_uint64(env, (uint64_t)1 << i),
                    enif_make_double(env, unit_ns)), list);
    }
    return list;
}

static ERL_NIF_TERM function_name(ErlNifEnv *env, const struct fair__func *f)
{
    return enif_make_tuple3(env, atom(env, f->module), atom(env, f->name),
                            enif_make_uint(env, f->arity));
}

static ERL_NIF_TERM function_info(ErlNifEnv *env, struct fair__func *f)
{
    ERL_NIF_TERM map = enif_make_new_map(env);
    struct totals sum = {0};
    uint64_t slice = GET(f->slice_ns);

    gather_stat(&sum, f->elsewhere);
    for (struct fair__thread *th = fair__threads(); th; th = th->next)
        gather_stat(&sum, fair__stat_of(th, f->index));
    put(env, &map, "function", function_name(env, f));
    put(env, &map, "mode", atom(env, fair__modes[GET(f->mode)].name));
    put(env, &map, "adapted", atom(env, GET(f->adapted) ? "true" : "false"));
    put_number(env, &map, "stack_size", fair__stack_size(GET(f->stack_class)));
    put_number(env, &map, "slice_ns",
               slice ? slice : GET(fair__config.slice_ns));
    put_number(env, &map, "max_tasks", GET(f->max_tasks));
    put_double(env, &map, "unit_ns", GET(f->unit_ns));
    put_double(env, &map, "call_ns", GET(f->call_ns));
    put(env, &map, "fair_call_unit_ns", work_costs(env, f));
    put_double(env, &map, "fair_call_cutoff_units", fair__call_cutoff(f));
#define COUNTER(NAME, HOW, UNIT, MEANING) \
    put_number(env, &map, #NAME, sum.NAME);
#include "thread/counters.def"
#undef COUNTER
    put(env, &map, "slice_histogram", histogram(env, sum.histogram));
    return map;
}

static void put_pool(ErlNifEnv *env, ERL_NIF_TERM *map)
{
    struct fair__pool_counts c = fair__pool_counts();

    put_number(env, map, "threads_started", c.threads);
    put_number(env, map, "threads_busy", c.busy);
    put_number(env, map, "threads_failed", c.failed_starts);
    put_number(env, map, "jobs_queued", c.queued);
    put_number(env, map, "jobs_waiting_for_room", c.overflowing);
    put_number(env, map, "jobs_done", c.done);
    put_number(env, map, "jobs_without_room", c.overflows);
    put_number(env, map, "jobs_wait_ns", c.wait_ns);
    put_number(env, map, "jobs_longest_wait_ns", c.longest_wait_ns);
}

/* info() -> {Runtime :: map(), [Function :: map()]} */
static ERL_NIF_TERM info(ErlNifEnv *env, int argc, const ERL_NIF_TERM argv[])
{
    ERL_NIF_TERM map = enif_make_new_map(env);
    ERL_NIF_TERM functions = enif_make_list(env, 0);
    struct fair__stack_counts c = fair__stack_counts();

    (void)argc, (void)argv;
    put(env, &map, "version",
        enif_make_string(env, FAIRNIF_VERSION, ERL_NIF_LATIN1));
    put(env, &map, "interface",
        enif_make_tuple2(env, enif_make_uint(env, FAIR_ABI_MAJOR),
                         enif_make_uint(env, FAIR_ABI_MINOR)));
    for (unsigned i = 0; i < SETTINGS; i++) {
        const struct setting *s = &settings[i];

        if (s->flag)
            put(env, &map, s->name, atom(env, GET(*s->flag) ? "true"
                                         : "false"));
        else
            put_number(env, &map, s->name, GET(*s->number));
    }
    put_pool(env, &map);
    put_number(env, &map, "stacks_mapped", c.mapped);
    put_number(env, &map, "stacks_idle", c.pooled);
    put(env, &map, "stacks_limit",
        c.limit ? enif_make_uint64(env, c.limit) : atom(env, "infinity"));
    put(env, &map, "stack_guard", atom(env, c.guard));
    put(env, &map, "stack_switch", atom(env, FAIR_SWITCH));
    for (unsigned i = fair__func_count(); i-- > 0; )
        functions = enif_make_list_cell(
            env, function_info(env, fair__func_nth(i)), functions);
    return enif_make_tuple2(env, map, functions);
}

/* -- tasks ---------------------------------------------------------------------*/

static const char *const where_names[] = {
    [W_NORMAL] = "normal", [W_DIRTY_CPU] = "dirty_cpu",
    [W_DIRTY_IO] = "dirty_io", [W_THREAD] = "thread", [W_OTHER] = "other"
};

enum {
    SEEN_RUNNING = 4096,        /* as many as scheduler threads, and more */
    TASKS_IN_PLACE = 64         /* 1 us each */
};

struct seen {
    size_t count;
    ERL_NIF_TERM owners[SEEN_RUNNING];
};

struct listing {
    ErlNifEnv *env;
    ERL_NIF_TERM list;
    uint64_t now;
};

static void list_task(struct listing *l, const struct fair__func *f,
                      const char *state, uint64_t since, uint64_t yields,
                      ERL_NIF_TERM owner, ERL_NIF_TERM where)
{
    ERL_NIF_TERM map = enif_make_new_map(l->env);

    put(l->env, &map, "function", function_name(l->env, f));
    put(l->env, &map, "state", atom(l->env, state));
    put_number(l->env, &map, "age_ns", l->now > since ? l->now - since : 0);
    put_number(l->env, &map, "yields", yields);
    put(l->env, &map, "owner", owner);
    put(l->env, &map, "where", where);
    l->list = enif_make_list_cell(l->env, map, l->list);
}

struct running {
    struct fair__func *func;
    uint64_t since, yields;
    ErlNifPid owner;
};

static bool is_listed(const struct seen *seen, ERL_NIF_TERM pid)
{
    for (size_t i = 0; i < seen->count; i++)
        if (seen->owners[i] == pid)
            return true;
    return false;
}

static bool is_suspended(const struct fair__seen_task *suspended, size_t count,
                         ERL_NIF_TERM pid)
{
    for (size_t i = 0; i < count; i++)
        if (suspended[i].state != S_RUNNING && suspended[i].state != S_WAITING
            && suspended[i].owner.pid == pid)
            return true;
    return false;
}

/* Whatever runs and was not met yet, neither running nor suspended. */
static void list_running(struct listing *l, struct seen *seen,
                         const struct fair__seen_task *suspended, size_t count)
{
    for (struct fair__thread *th = fair__threads(); th; th = th->next) {
        struct running r;

        if (!fair__slot_read(th, &r.func, &r.since, &r.yields,
                             &r.owner.pid)
            || is_listed(seen, r.owner.pid)
            || is_suspended(suspended, count, r.owner.pid))
            continue;
        if (seen->count < SEEN_RUNNING)
            seen->owners[seen->count++] = r.owner.pid;
        list_task(l, r.func, "running", r.since, r.yields,
                  enif_make_pid(l->env, &r.owner),
                  enif_make_tuple2(l->env, atom(l->env, where_names[th->where]),
                                   enif_make_uint(l->env, th->number)));
    }
}

static void list_suspended(struct listing *l, const struct fair__seen_task *t)
{
    bool waits = t->state == S_WAITING;
    bool queued = t->state == S_QUEUED
        || (t->state == S_RUNNING && t->target != W_NORMAL);

    list_task(l, t->func, waits ? "waiting" : queued ? "queued" : "suspended",
              t->since_ns, t->yields, enif_make_pid(l->env, &t->owner),
              atom(l->env, waits ? fair__stage_name(t->stage)
                   : where_names[t->target]));
}

/* tasks() -> [map()]
 * Tasks go on while they are listed.  The threads are looked at before and
 * after the suspended ones, so that none is missed, and a process, which has
 * one task at most that does not wait, is shown once.  One that was running when the suspended
 * ones were copied, and is not by now, has been suspended since. */
static ERL_NIF_TERM tasks(ErlNifEnv *env, int argc, const ERL_NIF_TERM argv[])
{
    struct listing l = {env, enif_make_list(env, 0), fair__now()};
    struct seen seen = {.count = 0};
    struct fair__seen_task *suspended;
    size_t count;

    (void)argc, (void)argv;
    list_running(&l, &seen, NULL, 0);
    suspended = fair__suspended(&count);
    list_running(&l, &seen, suspended, count);
    for (size_t i = 0; i < count; i++)
        if (suspended[i].state == S_WAITING
            || !is_listed(&seen, suspended[i].owner.pid))
            list_suspended(&l, &suspended[i]);
    free(suspended);
    return l.list;
}

/* -- measurements ----------------------------------------------------------------*/

/* reschedule_ns(N): N reschedules in a row -> nanoseconds of one */
static ERL_NIF_TERM reschedule_step(ErlNifEnv *env, int argc,
                                    const ERL_NIF_TERM argv[])
{
    ErlNifUInt64 begin;
    unsigned total, left;
    ERL_NIF_TERM next[3] = {argv[0], argv[1], 0};

    enif_get_uint64(env, argv[0], &begin);
    enif_get_uint(env, argv[1], &total);
    enif_get_uint(env, argv[2], &left);
    if (left == 0)
        return enif_make_uint64(env, (fair__now() - begin) / total);
    next[2] = enif_make_uint(env, left - 1);
    return enif_schedule_nif(env, "reschedule_ns", 0, reschedule_step, argc,
                             next);
}

/* dirty_trip_ns(N): N times to a dirty CPU scheduler and back -> of one.  Each
 * works there for a while, as calls do for which the trip is weighed: a
 * scheduler that waits so long goes to sleep, and waking it is most of it. */
enum { TRIP_WORK_NS = 50000 };

static ERL_NIF_TERM trip_step(ErlNifEnv *env, int argc,
                              const ERL_NIF_TERM argv[])
{
    ErlNifUInt64 begin;
    unsigned total, left;
    ERL_NIF_TERM next[3] = {argv[0], argv[1], 0};
    bool dirty = enif_thread_type() == ERL_NIF_THR_DIRTY_CPU_SCHEDULER;

    enif_get_uint64(env, argv[0], &begin);
    enif_get_uint(env, argv[1], &total);
    enif_get_uint(env, argv[2], &left);
    if (left == 0)
        return enif_make_uint64(env, (fair__now() - begin) / total
                                - TRIP_WORK_NS);
    if (dirty) {
        uint64_t end = fair__now() + TRIP_WORK_NS;

        while (fair__now() < end)
            ;
    }
    next[2] = enif_make_uint(env, left - (dirty ? 1 : 0));
    return enif_schedule_nif(env, "dirty_trip_ns",
                             dirty ? 0 : ERL_NIF_DIRTY_JOB_CPU_BOUND,
                             trip_step, argc, next);
}

static ERL_NIF_TERM measure(ErlNifEnv *env, const ERL_NIF_TERM argv[],
                            const char *name, nif step)
{
    unsigned n;

    if (!enif_get_uint(env, argv[0], &n) || n < 1 || n > 1000000)
        return enif_make_badarg(env);
    return enif_schedule_nif(env, name, 0, step, 3,
                             (ERL_NIF_TERM[]){
                                 enif_make_uint64(env, fair__now()),
                                 argv[0], argv[0]});
}

static ERL_NIF_TERM reschedule_ns(ErlNifEnv *env, int argc,
                                  const ERL_NIF_TERM argv[])
{
    (void)argc;
    return measure(env, argv, "reschedule_ns", reschedule_step);
}

static ERL_NIF_TERM dirty_trip_ns(ErlNifEnv *env, int argc,
                                  const ERL_NIF_TERM argv[])
{
    (void)argc;
    return measure(env, argv, "dirty_trip_ns", trip_step);
}

/* -- the module's entries ----------------------------------------------------------*/

static bool open_runtime_types(ErlNifEnv *env)
{
    return fair__await_open(env) && fair__drivers_open(env);
}

static const struct runtime this_runtime = {
    .size = sizeof this_runtime,
    .abi_major = FAIR_ABI_MAJOR,
    .abi_minor = FAIR_ABI_MINOR,
    .version = FAIRNIF_VERSION,
    .bind = fair__bind_library,
    .open_types = open_runtime_types,
    .set = set,
    .info = info,
    .tasks = tasks,
    .reschedule_ns = reschedule_ns,
    .dirty_trip_ns = dirty_trip_ns,
    .await = fair__await,
    .expire = fair__expire,
    .settle = fair__settle,
    .drivers = &fair__driver_nifs,
    .ops = fair__ops,
};

static const struct runtime *runtime_of(ErlNifEnv *env)
{
    return enif_priv_data(env);
}

#define ENTRY(NAME)                                                         \
    static ERL_NIF_TERM nif_##NAME(ErlNifEnv *env, int argc,                \
                                   const ERL_NIF_TERM argv[])               \
    {                                                                       \
        return runtime_of(env)->NAME(env, argc, argv);                      \
    }
ENTRY(set)
ENTRY(info)
ENTRY(tasks)
ENTRY(reschedule_ns)
ENTRY(dirty_trip_ns)
ENTRY(await)
ENTRY(expire)
ENTRY(settle)

#define DRIVER_ENTRY(NAME)                                                  \
    static ERL_NIF_TERM nif_driver_##NAME(ErlNifEnv *env, int argc,         \
                                          const ERL_NIF_TERM argv[])        \
    {                                                                       \
        return runtime_of(env)->drivers->NAME(env, argc, argv);             \
    }
DRIVER_ENTRY(bind)
DRIVER_ENTRY(known)
DRIVER_ENTRY(request)
DRIVER_ENTRY(deferred)
DRIVER_ENTRY(abandon)
DRIVER_ENTRY(counts)

static ERL_NIF_TERM nif_runtime(ErlNifEnv *env, int argc,
                                const ERL_NIF_TERM argv[])
{
    struct runtime_object *obj =
        enif_alloc_resource(runtime_type, sizeof *obj);
    ERL_NIF_TERM term;

    (void)argc, (void)argv;
    if (!obj)
        return enif_raise_exception(env, atom(env, "enomem"));
    obj->runtime = runtime_of(env);
    term = enif_make_resource(env, obj);
    enif_release_resource(obj);
    return term;
}

/* Asks a runtime object, maybe of another copy of this library, what runs. */
struct query {
    uint32_t size;              /* as that of a handshake, and different */
    const struct runtime *runtime;
};

_Static_assert(sizeof(struct query) != sizeof(struct fair__watcher)
               && sizeof(struct query) != sizeof(struct fair__handshake)
               && sizeof(struct fair__watcher) != sizeof(struct fair__handshake),
               "what calls the runtime object is told by its size");

static void bind_watcher(const struct runtime *runtime,
                         struct fair__watcher *watcher)
{
    if (watcher->abi_major == FAIR_ABI_MAJOR
        && watcher->abi_minor <= FAIR_ABI_MINOR)
        watcher->ops = runtime->ops();
}

static void bind(ErlNifEnv *env, void *obj, void *data)
{
    const struct runtime *runtime = ((struct runtime_object *)obj)->runtime;
    struct query *query = data;

    if (query->size == sizeof *query)
        query->runtime = runtime;
    else if (query->size == sizeof(struct fair__watcher))
        bind_watcher(runtime, data);
    else
        runtime->bind(env, data);
}

static int open_types(ErlNifEnv *env, const struct runtime *runtime)
{
    ErlNifResourceTypeInit init = {.dyncall = bind};
    ErlNifResourceType *type = fair__open_type(env, "fairnif_runtime", init);

    if (!type || !runtime->open_types(env))
        return FAIR_E_NOMEM;
    runtime_type = type;
    return 0;
}

/* The runtime that is loaded stays: authors' libraries point to it. */
static int adopt(ErlNifEnv *env, void **priv, const struct runtime *old)
{
    if (old->abi_major != FAIR_ABI_MAJOR || old->size != sizeof *old
        || strcmp(old->version, FAIRNIF_VERSION) != 0) {
        fprintf(stderr, "fairnif: runtime %s (interface %u.%u) is loaded and "
                "cannot be replaced by %s (%u.%u) in a running node: restart "
                "it\n", old->version, (unsigned)old->abi_major,
                (unsigned)old->abi_minor, FAIRNIF_VERSION, FAIR_ABI_MAJOR,
                FAIR_ABI_MINOR);
        return FAIR_E_ABI;
    }
    *priv = (void *)(uintptr_t)old;
    return open_types(env, old);
}

/* load_info: the runtime object of an earlier load, which outlives the module,
 * or something else when there was none. */
static int load(ErlNifEnv *env, void **priv, ERL_NIF_TERM load_info)
{
    struct query query = {.size = sizeof query};
    int error;

    if (enif_dynamic_resource_call(env, atom(env, "fairnif"),
                                   atom(env, "fairnif_runtime"), load_info,
                                   &query) == 0 && query.runtime)
        return adopt(env, priv, query.runtime);
    if ((error = fair__stack_init()) != 0) {
        fprintf(stderr, "fairnif: cannot prepare stacks: %s\n",
                strerror(error));
        return FAIR_E_NOMEM;
    }
    if (!fair__stay_loaded()) {
        fprintf(stderr, "fairnif: cannot keep the runtime loaded\n");
        return FAIR_E_RUNTIME;
    }
    fair__bins_init();
    *priv = (void *)(uintptr_t)&this_runtime;
    return open_types(env, &this_runtime);
}

static int upgrade(ErlNifEnv *env, void **priv, void **old_priv,
                   ERL_NIF_TERM load_info)
{
    (void)load_info;
    return adopt(env, priv, *old_priv);
}

/* Few tasks are listed in place: then this answers also while all dirty
 * schedulers are busy, which is when somebody asks. */
static ERL_NIF_TERM nif_tasks_here(ErlNifEnv *env, int argc,
                                   const ERL_NIF_TERM argv[])
{
    if (fair__suspended_count() <= TASKS_IN_PLACE)
        return nif_tasks(env, argc, argv);
    return enif_schedule_nif(env, "nif_tasks", ERL_NIF_DIRTY_JOB_IO_BOUND,
                             nif_tasks, argc, argv);
}

static ErlNifFunc nifs[] = {
    {"nif_set", 2, nif_set, 0},
    {"nif_info", 0, nif_info, ERL_NIF_DIRTY_JOB_IO_BOUND},
    {"nif_tasks", 0, nif_tasks_here, 0},
    {"nif_runtime", 0, nif_runtime, 0},
    {"nif_reschedule_ns", 1, nif_reschedule_ns, 0},
    {"nif_dirty_trip_ns", 1, nif_dirty_trip_ns, 0},
    {"nif_await", 2, nif_await, 0},
    {"nif_expire", 1, nif_expire, 0},
    {"nif_settle", 1, nif_settle, 0},
    {"nif_driver_bind", 1, nif_driver_bind, ERL_NIF_DIRTY_JOB_IO_BOUND},
    {"nif_driver_known", 1, nif_driver_known, 0},
    {"nif_driver_request", 2, nif_driver_request, 0},
    {"nif_driver_deferred", 1, nif_driver_deferred, 0},
    {"nif_driver_abandon", 1, nif_driver_abandon, 0},
    {"nif_driver_counts", 0, nif_driver_counts, 0},
};

ERL_NIF_INIT(fairnif, nifs, load, NULL, upgrade, NULL)
