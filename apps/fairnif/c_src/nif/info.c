/*
 * info.c - settings, and what fairnif:info/0 shows.
 */
#include "nif/info.h"

#include <stdlib.h>

#include "base/config.h"
#include "base/os.h"
#include "life/listed.h"
#include "resource/type.h"
#include "task/call.h"
#include "task/cancel.h"
#include "task/stack.h"
#include "thread/pool.h"

/* -- settings ----------------------------------------------------------------*/

/* The settings as data: name, where, bounds. */
static const struct setting {
    const char *name;
    fair__u64 *number;
    _Atomic bool *flag;
    uint64_t least, most;
} settings[] = {
    {"slice_ns", &fair__config.slice_ns, NULL, 1000, 1000000000},
    {"turn_ns", &fair__config.turn_ns, NULL, 1000, 1000000},
    {"dirty_slice_ns", &fair__config.dirty_slice_ns, NULL, 10000, 1000000000},
    {"dirty_round_trip_ns", &fair__config.dirty_round_trip_ns, NULL, 1,
     1000000000},
    {"auto_gap_ns", &fair__config.auto_gap_ns, NULL, 10000, 1000000000000},
    {"max_tasks", &fair__config.max_tasks, NULL, 0, INT32_MAX},
    {"dirty_cpus", &fair__config.dirty_cpus, NULL, 1, 4096},
    {"threads", &fair__config.threads, NULL, 1, 1024},
    {"pool_nice", &fair__config.pool_nice, NULL, 0, 19},
    {"scheduler_slice_ns", &fair__config.scheduler_slice_ns, NULL, 0,
     100000000},
    {"max_queued", &fair__config.max_queued, NULL, 1, INT32_MAX},
    {"overload_ns", &fair__config.overload_ns, NULL, 1000000,
     86400000000000},
    {"spin", &fair__config.spin, NULL, 0, 1},
    {"pause_every_tick", NULL, &fair__config.pause_every_tick, 0, 1},
    {"check_terms", NULL, &fair__config.check_terms, 0, 1},
    {"measure_cpu", NULL, &fair__config.measure_cpu, 0, 1},
};
enum { SETTINGS = sizeof settings / sizeof *settings };

static void set_number(fair__u64 *number, uint64_t value)
{
    uint64_t before = GET(*number);

    SET(*number, value);
    /* Threads of schedulers stay as they are: once, some us each. */
    if (number == &fair__config.scheduler_slice_ns && value != before)
        fair__os_slice_schedulers(value);
}

/* set(Name, Integer) -> ok | badarg */
ERL_NIF_TERM fair__set(ErlNifEnv *env, int argc, const ERL_NIF_TERM argv[])
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
            set_number(s->number, value);
        return enif_make_atom(env, "ok");
    }
    return enif_make_badarg(env);
}

/* start_pool() -> ok, also where no thread could be started */
ERL_NIF_TERM fair__start_pool(ErlNifEnv *env, int argc,
                              const ERL_NIF_TERM argv[])
{
    (void)argc, (void)argv;
    fair__pool_start();
    return enif_make_atom(env, "ok");
}

/* -- info ----------------------------------------------------------------------*/

void fair__put(ErlNifEnv *env, ERL_NIF_TERM *map, const char *key,
               ERL_NIF_TERM value)
{
    enif_make_map_put(env, *map, enif_make_atom(env, key), value, map);
}

void fair__put_number(ErlNifEnv *env, ERL_NIF_TERM *map, const char *key,
                      uint64_t value)
{
    fair__put(env, map, key, enif_make_uint64(env, value));
}

static void put_double(ErlNifEnv *env, ERL_NIF_TERM *map, const char *key,
                       double value)
{
    fair__put(env, map, key, enif_make_double(env, value));
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

ERL_NIF_TERM fair__function_name(ErlNifEnv *env, const struct fair__func *f)
{
    return enif_make_tuple3(env, enif_make_atom(env, f->module),
                            enif_make_atom(env, f->name),
                            enif_make_uint(env, f->arity));
}

/* As they are or-ed to a mode. */
static ERL_NIF_TERM flags_of(ErlNifEnv *env, struct fair__func *f)
{
    ERL_NIF_TERM flags = enif_make_list(env, 0);

    if (GET(f->prompt))
        flags = enif_make_list_cell(env, enif_make_atom(env, "prompt"), flags);
    if (GET(f->cleans_up))
        flags = enif_make_list_cell(env, enif_make_atom(env, "cleanup"),
                                    flags);
    if (GET(f->may_wait))
        flags = enif_make_list_cell(env, enif_make_atom(env, "may_wait"),
                                    flags);
    if (!GET(f->yields))
        flags = enif_make_list_cell(env, enif_make_atom(env, "no_yield"),
                                    flags);
    return flags;
}

static ERL_NIF_TERM function_info(ErlNifEnv *env, struct fair__func *f)
{
    ERL_NIF_TERM map = enif_make_new_map(env);
    struct totals sum = {0};
    uint64_t slice = GET(f->slice_ns);

    gather_stat(&sum, f->elsewhere);
    for (struct fair__thread *th = fair__threads(); th; th = th->next)
        gather_stat(&sum, fair__stat_of(th, f->index));
    fair__put(env, &map, "function", fair__function_name(env, f));
    fair__put(env, &map, "mode",
              enif_make_atom(env, fair__modes[GET(f->mode)].name));
    fair__put(env, &map, "flags", flags_of(env, f));
    fair__put(env, &map, "adapted",
              enif_make_atom(env, GET(f->adapted) ? "true" : "false"));
    fair__put_number(env, &map, "stack_size", fair__stack_size(GET(f->stack_class)));
    fair__put_number(env, &map, "slice_ns",
               slice ? slice : GET(fair__config.slice_ns));
    fair__put_number(env, &map, "max_tasks", GET(f->max_tasks));
    put_double(env, &map, "unit_ns", GET(f->unit_ns));
    put_double(env, &map, "call_ns", GET(f->call_ns));
    fair__put(env, &map, "offload_unit_ns", work_costs(env, f));
    put_double(env, &map, "offload_cutoff_units", fair__call_cutoff(f));
#define COUNTER(NAME, HOW, UNIT, MEANING) \
    fair__put_number(env, &map, #NAME, sum.NAME);
#include "thread/counters.def"
#undef COUNTER
    fair__put(env, &map, "slice_histogram", histogram(env, sum.histogram));
    return map;
}

static void put_pool(ErlNifEnv *env, ERL_NIF_TERM *map)
{
    struct fair__pool_counts c = fair__pool_counts();

    fair__put_number(env, map, "threads_started", c.threads);
    fair__put_number(env, map, "threads_busy", c.busy);
    fair__put_number(env, map, "threads_failed", c.failed_starts);
    fair__put_number(env, map, "jobs_queued", c.queued);
    fair__put_number(env, map, "jobs_waiting_for_room", c.overflowing);
    fair__put_number(env, map, "jobs_done", c.done);
    fair__put_number(env, map, "jobs_without_room", c.overflows);
    fair__put_number(env, map, "jobs_wait_ns", c.wait_ns);
    fair__put_number(env, map, "jobs_longest_wait_ns", c.longest_wait_ns);
}

/* [#{type, objects, due, under_way, max_concurrent, refused}], of the fair
 * resources */
static ERL_NIF_TERM resources(ErlNifEnv *env)
{
    enum { MOST = 256 };
    struct fair__seen_type *all = enif_alloc(MOST * sizeof *all);
    ERL_NIF_TERM list = enif_make_list(env, 0);
    unsigned count = all ? fair__resource_types(all, MOST) : 0;

    for (unsigned i = 0; i < count && i < MOST; i++) {
        ERL_NIF_TERM map = enif_make_new_map(env);

        fair__put(env, &map, "type",
                  enif_make_tuple2(env, enif_make_atom(env, all[i].module),
                                   enif_make_atom(env, all[i].name)));
        fair__put_number(env, &map, "objects", all[i].objects);
        fair__put_number(env, &map, "due", all[i].due);
        fair__put_number(env, &map, "under_way", all[i].under_way);
        fair__put_number(env, &map, "max_concurrent", all[i].max_concurrent);
        fair__put_number(env, &map, "refused", all[i].refused);
        list = enif_make_list_cell(env, map, list);
    }
    enif_free(all);
    return list;
}

enum { SLOW_CLEANUP_NS = 1000000000 };

/* [#{function, owner, age_ns}]: of the bodies that clean up, those that take
 * long. */
static ERL_NIF_TERM cleaning_up(ErlNifEnv *env)
{
    ERL_NIF_TERM list = enif_make_list(env, 0);
    struct fair__seen_task *all;
    uint64_t now = fair__now();
    size_t count = 0;

    if (fair_likely(GET(fair__cancelled_now) == 0))
        return list;
    all = fair__suspended(&count);
    for (size_t i = 0; i < count; i++) {
        ERL_NIF_TERM map = enif_make_new_map(env);
        uint64_t since = all[i].cancelled_ns;

        if (!since || since + SLOW_CLEANUP_NS > now)
            continue;
        fair__put(env, &map, "function",
                  fair__function_name(env, all[i].func));
        fair__put(env, &map, "owner", enif_make_pid(env, &all[i].owner));
        fair__put_number(env, &map, "age_ns", now - since);
        list = enif_make_list_cell(env, map, list);
    }
    free(all);
    return list;
}

/* info() -> {Runtime :: map(), [Function :: map()]} */
ERL_NIF_TERM fair__info(ErlNifEnv *env, int argc, const ERL_NIF_TERM argv[])
{
    ERL_NIF_TERM map = enif_make_new_map(env);
    ERL_NIF_TERM functions = enif_make_list(env, 0);
    struct fair__stack_counts c = fair__stack_counts();

    (void)argc, (void)argv;
    fair__put(env, &map, "version",
              enif_make_string(env, FAIRNIF_VERSION, ERL_NIF_LATIN1));
    fair__put(env, &map, "interface",
              enif_make_tuple2(env, enif_make_uint(env, FAIR_ABI_MAJOR),
                               enif_make_uint(env, FAIR_ABI_MINOR)));
    for (unsigned i = 0; i < SETTINGS; i++) {
        const struct setting *s = &settings[i];

        if (s->flag)
            fair__put(env, &map, s->name,
                      enif_make_atom(env, GET(*s->flag) ? "true" : "false"));
        else
            fair__put_number(env, &map, s->name, GET(*s->number));
    }
    put_pool(env, &map);
    fair__put_number(env, &map, "stacks_mapped", c.mapped);
    fair__put_number(env, &map, "stacks_idle", c.pooled);
    fair__put(env, &map, "stacks_limit",
              c.limit ? enif_make_uint64(env, c.limit)
              : enif_make_atom(env, "infinity"));
    fair__put(env, &map, "cleaning_up", cleaning_up(env));
    fair__put(env, &map, "resources", resources(env));
    fair__put(env, &map, "stack_guard", enif_make_atom(env, c.guard));
    fair__put(env, &map, "overflow_handler", enif_make_atom(env, c.handler));
    fair__put(env, &map, "stack_switch", enif_make_atom(env, FAIR_SWITCH));
    for (unsigned i = fair__func_count(); i-- > 0; )
        functions = enif_make_list_cell(
            env, function_info(env, fair__func_nth(i)), functions);
    return enif_make_tuple2(env, map, functions);
}
