/* Functions that leave the work to a thread while the caller waits in a receive:
 * one thread continues when the caller is killed, the other one stops. */
#include "zoo.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>

#define LOOK_US 100

/* Shared by the thread and the caller's resource; the last one frees it. */
struct work {
    atomic_int owners;
    atomic_int cancelled;
    int heeds;                  /* whether the thread looks at `cancelled` */
    unsigned us;
    ErlNifPid caller;
    ErlNifEnv *env;             /* of the message */
    ERL_NIF_TERM message;
};

struct handle { struct work *work; };

static ErlNifResourceType *handle_type;

static void release(struct work *work)
{
    if (atomic_fetch_sub(&work->owners, 1) != 1)
        return;
    enif_free_env(work->env);
    free(work);
}

/* The caller is dead, or has its answer. */
static void handle_dtor(ErlNifEnv *env, void *object)
{
    struct handle *handle = object;

    (void)env;
    if (handle->work == NULL)
        return;
    atomic_store(&handle->work->cancelled, 1);
    release(handle->work);
}

int zoo_threads_load(ErlNifEnv *env)
{
    handle_type = enif_open_resource_type(env, NULL, "zoo_thread", handle_dtor,
                                          ERL_NIF_RT_CREATE, NULL);
    return handle_type == NULL;
}

static void *thread(void *arg)
{
    struct work *work = arg;
    unsigned us = work->us;

    for (; us > 0 && !(work->heeds && atomic_load(&work->cancelled));
         us -= us < LOOK_US ? us : LOOK_US)
        zoo_work(us < LOOK_US ? us : LOOK_US);
    enif_send(NULL, &work->caller, work->env, work->message);
    release(work);
    return NULL;
}

static int start(struct work *work)
{
    pthread_attr_t attributes;
    pthread_t id;
    int error = pthread_attr_init(&attributes);

    if (error != 0)
        return error;
    pthread_attr_setdetachstate(&attributes, PTHREAD_CREATE_DETACHED);
    atomic_fetch_add(&work->owners, 1);
    error = pthread_create(&id, &attributes, thread, work);
    pthread_attr_destroy(&attributes);
    if (error != 0)
        release(work);
    return error;
}

/* {Ref, Handle}: the caller gets {Ref, done}. */
static ERL_NIF_TERM offload(ErlNifEnv *env, ERL_NIF_TERM argument, int heeds)
{
    struct handle *handle;
    struct work *work;
    ERL_NIF_TERM ref, term;
    unsigned us;
    int error;

    if (!zoo_us(env, argument, &us))
        return enif_make_badarg(env);
    if ((handle = enif_alloc_resource(handle_type, sizeof *handle)) == NULL)
        return zoo_enomem(env);
    handle->work = work = calloc(1, sizeof *work);
    if (work != NULL && (work->env = enif_alloc_env()) == NULL) {
        free(work);
        handle->work = work = NULL;
    }
    if (work == NULL) {
        enif_release_resource(handle);
        return zoo_enomem(env);
    }
    ref = enif_make_ref(env);
    atomic_init(&work->owners, 1);
    work->heeds = heeds;
    work->us = us;
    enif_self(env, &work->caller);
    work->message = enif_make_tuple2(work->env, enif_make_copy(work->env, ref),
                                     enif_make_atom(work->env, "done"));
    error = start(work);
    enif_consume_timeslice(env, 100);       /* a thread takes some time to start */
    term = error != 0 ? zoo_failed(env, error)
        : enif_make_tuple2(env, ref, enif_make_resource(env, handle));
    enif_release_resource(handle);
    return term;
}

ERL_NIF_TERM zoo_thread_goes_on(ErlNifEnv *env, int argc, const ERL_NIF_TERM argv[])
{
    (void)argc;
    return offload(env, argv[0], 0);
}

ERL_NIF_TERM zoo_thread_stops(ErlNifEnv *env, int argc, const ERL_NIF_TERM argv[])
{
    (void)argc;
    return offload(env, argv[0], 1);
}
