/* Functions that stay on the caller's scheduler to the end: short, long,
 * sometimes long, and those that wait there for a lock or for the kernel. */
#include "zoo.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <unistd.h>

#define EACH 5                  /* every fifth call is the bad one */
#define ABOVE 1000              /* microseconds: what counts as a large size */

/* block(Us): computes, and is charged for nothing. */
ERL_NIF_TERM zoo_block(ErlNifEnv *env, int argc, const ERL_NIF_TERM argv[])
{
    unsigned us;

    (void)argc;
    if (!zoo_us(env, argv[0], &us))
        return enif_make_badarg(env);
    zoo_work(us);
    return zoo_ok(env);
}

/* block_charged(Us): the same, charged by time; a call pays one turn at most. */
ERL_NIF_TERM zoo_block_charged(ErlNifEnv *env, int argc, const ERL_NIF_TERM argv[])
{
    unsigned us, percent;

    (void)argc;
    if (!zoo_us(env, argv[0], &us))
        return enif_make_badarg(env);
    zoo_work(us);
    percent = us < ZOO_FAIR_US ? us * 100 / ZOO_FAIR_US : 100;
    enif_consume_timeslice(env, percent > 0 ? (int)percent : 1);
    return zoo_ok(env);
}

/* ignores_timeslice(Us): asks every 100 us whether its time is up, and continues. */
ERL_NIF_TERM zoo_ignores_timeslice(ErlNifEnv *env, int argc, const ERL_NIF_TERM argv[])
{
    unsigned us;

    (void)argc;
    if (!zoo_us(env, argv[0], &us))
        return enif_make_badarg(env);
    for (; us > 0; us -= us < 100 ? us : 100) {
        zoo_work(us < 100 ? us : 100);
        enif_consume_timeslice(env, 100);
    }
    return zoo_ok(env);
}

/* block_sometimes(Us): 20 us of work, properly charged; every fifth call Us. */
ERL_NIF_TERM zoo_block_sometimes(ErlNifEnv *env, int argc, const ERL_NIF_TERM argv[])
{
    static atomic_uint calls;
    unsigned us;

    (void)argc;
    if (!zoo_us(env, argv[0], &us))
        return enif_make_badarg(env);
    zoo_work(atomic_fetch_add(&calls, 1) % EACH == EACH - 1 ? us : 20);
    enif_consume_timeslice(env, 100);
    return zoo_ok(env);
}

/* block_above(Us): slices as long as Us is small, one block above. */
ERL_NIF_TERM zoo_block_above(ErlNifEnv *env, int argc, const ERL_NIF_TERM argv[])
{
    unsigned us;

    if (!zoo_us(env, argv[0], &us))
        return enif_make_badarg(env);
    return us <= ABOVE ? zoo_slices_fair(env, argc, argv) : zoo_block(env, argc, argv);
}

/* block_first(Us): 20 us, charged; the first call of all Us: tables are made, say. */
ERL_NIF_TERM zoo_block_first(ErlNifEnv *env, int argc, const ERL_NIF_TERM argv[])
{
    static atomic_int called;
    unsigned us;

    (void)argc;
    if (!zoo_us(env, argv[0], &us))
        return enif_make_badarg(env);
    zoo_work(atomic_exchange(&called, 1) == 0 ? us : 20);
    enif_consume_timeslice(env, 100);
    return zoo_ok(env);
}

/* sleep(Us): waits in the kernel. Registered as a plain NIF and as a dirty one. */
ERL_NIF_TERM zoo_sleep_nif(ErlNifEnv *env, int argc, const ERL_NIF_TERM argv[])
{
    unsigned us;

    (void)argc;
    if (!zoo_us(env, argv[0], &us))
        return enif_make_badarg(env);
    zoo_sleep(us);
    return zoo_ok(env);
}

/* -- waiting for another thread ---------------------------------------------- */

struct pipe_job { int to; unsigned us; };

static void *write_later(void *arg)
{
    struct pipe_job *job = arg;

    zoo_sleep(job->us);
    /* Closing it wakes the reader as well, should this fail. */
    while (write(job->to, "", 1) < 0 && errno == EINTR)
        ;
    close(job->to);
    return NULL;
}

/* pipe(Us): reads from a pipe that a thread writes to after Us. */
ERL_NIF_TERM zoo_pipe(ErlNifEnv *env, int argc, const ERL_NIF_TERM argv[])
{
    struct pipe_job job;
    pthread_t writer;
    int ends[2], error;
    char byte;

    (void)argc;
    if (!zoo_us(env, argv[0], &job.us))
        return enif_make_badarg(env);
    if (pipe2(ends, O_CLOEXEC) != 0)
        return zoo_failed(env, errno);
    job.to = ends[1];
    error = pthread_create(&writer, NULL, write_later, &job);
    if (error == 0) {
        while (read(ends[0], &byte, 1) < 0 && errno == EINTR)
            ;
        pthread_join(writer, NULL);     /* job is on this stack */
    } else {
        close(ends[1]);
    }
    close(ends[0]);
    return error == 0 ? zoo_ok(env) : zoo_failed(env, error);
}

struct lock_job {
    pthread_mutex_t lock;
    atomic_int held;
    unsigned us;
};

static void *hold_lock(void *arg)
{
    struct lock_job *job = arg;

    pthread_mutex_lock(&job->lock);
    atomic_store(&job->held, 1);
    zoo_sleep(job->us);
    pthread_mutex_unlock(&job->lock);
    return NULL;
}

/* lock(Us): takes a lock that a thread holds for Us. */
ERL_NIF_TERM zoo_lock(ErlNifEnv *env, int argc, const ERL_NIF_TERM argv[])
{
    struct lock_job job = {.lock = PTHREAD_MUTEX_INITIALIZER};
    pthread_t holder;
    int error;

    (void)argc;
    if (!zoo_us(env, argv[0], &job.us))
        return enif_make_badarg(env);
    error = pthread_create(&holder, NULL, hold_lock, &job);
    if (error != 0)
        return zoo_failed(env, error);
    while (!atomic_load(&job.held))
        zoo_sleep(10);
    pthread_mutex_lock(&job.lock);
    pthread_mutex_unlock(&job.lock);
    pthread_join(holder, NULL);
    pthread_mutex_destroy(&job.lock);
    return zoo_ok(env);
}

/* free_lock(Us): a short time in a lock that is never held for longer; charged. */
ERL_NIF_TERM zoo_free_lock(ErlNifEnv *env, int argc, const ERL_NIF_TERM argv[])
{
    static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
    ERL_NIF_TERM answer;

    pthread_mutex_lock(&lock);
    answer = zoo_block_charged(env, argc, argv);
    pthread_mutex_unlock(&lock);
    return answer;
}

/* -- much in one go ------------------------------------------------------------ */

/* huge_list(N): a list of N integers, made without yielding. */
ERL_NIF_TERM zoo_huge_list(ErlNifEnv *env, int argc, const ERL_NIF_TERM argv[])
{
    ERL_NIF_TERM list;
    unsigned n;

    (void)argc;
    if (!enif_get_uint(env, argv[0], &n) || n > 20000000)
        return enif_make_badarg(env);
    list = enif_make_list(env, 0);
    while (n > 0)
        list = enif_make_list_cell(env, enif_make_uint(env, n--), list);
    return list;
}
