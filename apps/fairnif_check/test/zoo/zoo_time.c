/* How the zoo's functions spend their time, and what they answer. */
#include "zoo.h"

#include <errno.h>

#define ROUNDS 250              /* a fraction of a microsecond: the clock takes as long */

static int64_t cpu_ns(void)
{
    struct timespec t;

    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
    return t.tv_sec * INT64_C(1000000000) + t.tv_nsec;
}

/* By the thread's own clock: on a busy machine the work stays the same, it only
 * takes longer, as any computation does. */
void zoo_work(unsigned us)
{
    int64_t end = cpu_ns() + us * INT64_C(1000);
    uint64_t x = 88172645463325252u;

    while (cpu_ns() < end) {
        for (int i = 0; i < ROUNDS; i++) {
            x ^= x << 13;
            x ^= x >> 7;
            x ^= x << 17;
        }
        __asm__ volatile("" : "+r"(x));     /* or it is left out, as unused */
    }
}

void zoo_sleep(unsigned us)
{
    struct timespec left = {us / 1000000, us % 1000000 * 1000L};

    while (nanosleep(&left, &left) != 0 && errno == EINTR)
        ;
}

int zoo_us(ErlNifEnv *env, ERL_NIF_TERM term, unsigned *us)
{
    return enif_get_uint(env, term, us) && *us <= ZOO_MAX_US;
}

ERL_NIF_TERM zoo_ok(ErlNifEnv *env)
{
    return enif_make_atom(env, "ok");
}

ERL_NIF_TERM zoo_enomem(ErlNifEnv *env)
{
    return enif_raise_exception(env, enif_make_atom(env, "enomem"));
}

/* The machine is short of something: an exception with the errno. */
ERL_NIF_TERM zoo_failed(ErlNifEnv *env, int error)
{
    return enif_raise_exception(env, enif_make_tuple2(env, enif_make_atom(env, "errno"),
                                                      enif_make_int(env, error)));
}
