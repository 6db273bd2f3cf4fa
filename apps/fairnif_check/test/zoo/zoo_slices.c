/* Functions sliced by hand, with enif_schedule_nif: rightly, with slices that
 * are too long, uncharged, and with memory that a kill loses. */
#include "zoo.h"

#include <limits.h>
#include <stdlib.h>

#define ENDLESS UINT_MAX

enum memory {
    NO_MEMORY,
    OWNED,                      /* by the resource: its destructor frees it */
    LOOSE_MALLOC,               /* known to the next slice alone: a kill loses it */
    LOOSE_ENIF,
    FORGOTTEN                   /* lost by every call */
};

struct manner {
    unsigned slice_us;
    int percent;                /* of a timeslice, charged for each slice; 0: nothing */
    enum memory memory;
    unsigned last_us;           /* the length of the end, in one go; 0: as the others */
};

struct job {
    const struct manner *manner;
    unsigned left_us;           /* ENDLESS stays */
    void *owned;
};

static ErlNifResourceType *job_type;

static void job_dtor(ErlNifEnv *env, void *object)
{
    (void)env;
    free(((struct job *)object)->owned);
}

int zoo_slices_load(ErlNifEnv *env)
{
    job_type = enif_open_resource_type(env, NULL, "zoo_job", job_dtor,
                                       ERL_NIF_RT_CREATE, NULL);
    return job_type == NULL;
}

static void free_loose(enum memory memory, ErlNifUInt64 address)
{
    if (memory == LOOSE_MALLOC)
        free((void *)(uintptr_t)address);
    else if (memory == LOOSE_ENIF)
        enif_free((void *)(uintptr_t)address);
}

/* slice(Job, Address): the next slice. Address is the loose memory, 0 without. */
static ERL_NIF_TERM slice(ErlNifEnv *env, int argc, const ERL_NIF_TERM argv[])
{
    const struct manner *manner;
    struct job *job;
    ErlNifUInt64 address;
    void *object;
    unsigned us;

    if (!enif_get_resource(env, argv[0], job_type, &object)
        || !enif_get_uint64(env, argv[1], &address))
        return enif_make_badarg(env);
    job = object;
    manner = job->manner;
    us = job->left_us < manner->slice_us || job->left_us <= manner->last_us ? job->left_us
        : manner->slice_us;
    zoo_work(us);
    if (job->left_us != ENDLESS)
        job->left_us -= us;
    if (manner->percent > 0)
        enif_consume_timeslice(env, manner->percent);
    if (job->left_us > 0)
        return enif_schedule_nif(env, "slice", 0, slice, argc, argv);
    free_loose(manner->memory, address);
    return zoo_ok(env);
}

/* Memory as the manner wants it, written to, so that it counts; 0 when there is
 * none left. */
static int take_memory(struct job *job, ErlNifUInt64 *address)
{
    enum memory memory = job->manner->memory;
    void *p;

    if (memory == NO_MEMORY)
        return 1;
    p = memory == LOOSE_ENIF ? enif_alloc(ZOO_KEPT) : malloc(ZOO_KEPT);
    if (p == NULL)
        return 0;
    memset(p, 1, ZOO_KEPT);
    __asm__ volatile("" : : "r"(p) : "memory");     /* or malloc is left out, as unused */
    if (memory == OWNED)
        job->owned = p;
    else if (memory != FORGOTTEN)
        *address = (uintptr_t)p;
    return 1;
}

static ERL_NIF_TERM begin(ErlNifEnv *env, const struct manner *manner, unsigned us)
{
    struct job *job = enif_alloc_resource(job_type, sizeof *job);
    ErlNifUInt64 address = 0;
    ERL_NIF_TERM args[2];
    int taken;

    if (job == NULL)
        return zoo_enomem(env);
    *job = (struct job){.manner = manner, .left_us = us};
    args[0] = enif_make_resource(env, job);
    taken = take_memory(job, &address);
    enif_release_resource(job);
    if (!taken)
        return zoo_enomem(env);
    args[1] = enif_make_uint64(env, address);
    /* The memory took part of this slice: a turn is paid for it. */
    if (manner->memory != NO_MEMORY) {
        enif_consume_timeslice(env, 100);
        return enif_schedule_nif(env, "slice", 0, slice, 2, args);
    }
    return slice(env, 2, args);
}

/* NAME(Us): Us of computing, in this manner. */
#define SLICES(NAME, ...)                                                          \
    ERL_NIF_TERM zoo_##NAME(ErlNifEnv *env, int argc, const ERL_NIF_TERM argv[])   \
    {                                                                              \
        static const struct manner manner = {__VA_ARGS__};                         \
        unsigned us;                                                               \
                                                                                   \
        (void)argc;                                                                \
        return zoo_us(env, argv[0], &us) ? begin(env, &manner, us)                 \
            : enif_make_badarg(env);                                               \
    }

SLICES(slices_fair, ZOO_FAIR_US, 100, NO_MEMORY, 0)
SLICES(slices_tiny, 5, 100, NO_MEMORY, 0)          /* pays five times what it uses */
SLICES(slices_700us, 700, 100, NO_MEMORY, 0)       /* within the documented 1 ms */
SLICES(slices_5ms, 5000, 100, NO_MEMORY, 0)
SLICES(slices_100ms, 100000, 100, NO_MEMORY, 0)
SLICES(slices_uncharged, 700, 0, NO_MEMORY, 0)     /* enif_schedule_nif alone yields */
SLICES(slices_then_5ms, ZOO_FAIR_US, 100, NO_MEMORY, 5000)
SLICES(keeps_in_resource, ZOO_FAIR_US, 100, OWNED, 0)
SLICES(leaks_malloc, ZOO_FAIR_US, 100, LOOSE_MALLOC, 0)
SLICES(leaks_enif, ZOO_FAIR_US, 100, LOOSE_ENIF, 0)
SLICES(leaks_always, ZOO_FAIR_US, 100, FORGOTTEN, 0)

/* slices_endless(Us): fair, and never done. */
ERL_NIF_TERM zoo_slices_endless(ErlNifEnv *env, int argc, const ERL_NIF_TERM argv[])
{
    static const struct manner manner = {ZOO_FAIR_US, 100, NO_MEMORY, 0};

    (void)argc, (void)argv;
    return begin(env, &manner, ENDLESS);
}

/* fills_cache(Us): the first call keeps memory for all that follow: no leak. */
ERL_NIF_TERM zoo_fills_cache(ErlNifEnv *env, int argc, const ERL_NIF_TERM argv[])
{
    static char cache[ZOO_KEPT];

    /* Racing calls write the same. */
    if (__atomic_load_n(&cache[0], __ATOMIC_ACQUIRE) == 0) {
        memset(cache + 1, 1, sizeof cache - 1);
        __atomic_store_n(&cache[0], 1, __ATOMIC_RELEASE);
    }
    return zoo_slices_fair(env, argc, argv);
}
