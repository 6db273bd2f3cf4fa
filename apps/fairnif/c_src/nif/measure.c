/*
 * measure.c - two measurements for the calibration.
 */
#include "nif/measure.h"

#include "base/os.h"

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

/* dirty_round_trip_ns(N): N times to a dirty CPU scheduler and back -> of one.
 * Each works there for a while, as calls do for which the trip is weighed: a
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
    return enif_schedule_nif(env, "dirty_round_trip_ns",
                             dirty ? 0 : ERL_NIF_DIRTY_JOB_CPU_BOUND,
                             trip_step, argc, next);
}

static ERL_NIF_TERM measure(ErlNifEnv *env, const ERL_NIF_TERM argv[],
                            const char *name, fair__nif_function *step)
{
    unsigned n;

    if (!enif_get_uint(env, argv[0], &n) || n < 1 || n > 1000000)
        return enif_make_badarg(env);
    return enif_schedule_nif(env, name, 0, step, 3,
                             (ERL_NIF_TERM[]){
                                 enif_make_uint64(env, fair__now()),
                                 argv[0], argv[0]});
}

ERL_NIF_TERM fair__reschedule_ns(ErlNifEnv *env, int argc,
                                 const ERL_NIF_TERM argv[])
{
    (void)argc;
    return measure(env, argv, "reschedule_ns", reschedule_step);
}

ERL_NIF_TERM fair__dirty_round_trip_ns(ErlNifEnv *env, int argc,
                                 const ERL_NIF_TERM argv[])
{
    (void)argc;
    return measure(env, argv, "dirty_round_trip_ns", trip_step);
}
