/* Waiting as it should be done: a timer's descriptor, watched by the VM while the
 * caller waits in a receive and occupies no scheduler. */
#include "zoo.h"

#include <errno.h>
#include <stdatomic.h>
#include <sys/timerfd.h>
#include <unistd.h>

struct timer {
    int fd;
    atomic_int stopped;
};

static ErlNifResourceType *timer_type;

/* The caller's wait_done and its death may both want it. */
static void stop_once(ErlNifEnv *env, struct timer *timer)
{
    if (atomic_exchange(&timer->stopped, 1) == 0)
        enif_select(env, timer->fd, ERL_NIF_SELECT_STOP, timer, NULL,
                    enif_make_atom(env, "undefined"));
}

static void timer_stop(ErlNifEnv *env, void *object, ErlNifEvent fd, int is_direct_call)
{
    (void)env, (void)object, (void)is_direct_call;
    close(fd);
}

static void timer_down(ErlNifEnv *env, void *object, ErlNifPid *pid, ErlNifMonitor *monitor)
{
    (void)pid, (void)monitor;
    stop_once(env, object);
}

int zoo_waits_load(ErlNifEnv *env)
{
    ErlNifResourceTypeInit callbacks = {.stop = timer_stop, .down = timer_down};

    timer_type = enif_open_resource_type_x(env, "zoo_timer", &callbacks,
                                           ERL_NIF_RT_CREATE | ERL_NIF_RT_TAKEOVER, NULL);
    return timer_type == NULL;
}

static int timer_fd(unsigned us, int *error)
{
    struct itimerspec at = {.it_value = {us / 1000000, us % 1000000 * 1000L}};
    int fd = timerfd_create(CLOCK_MONOTONIC, TFD_CLOEXEC | TFD_NONBLOCK);

    if (us == 0)
        at.it_value.tv_nsec = 1;        /* 0 would never fire */
    if (fd >= 0 && timerfd_settime(fd, 0, &at, NULL) == 0)
        return fd;
    *error = errno;
    if (fd >= 0)
        close(fd);
    return -1;
}

/* wait(Us): {Ref, Timer}; the caller gets {select, Timer, Ref, ready_input}. */
ERL_NIF_TERM zoo_wait(ErlNifEnv *env, int argc, const ERL_NIF_TERM argv[])
{
    struct timer *timer;
    ERL_NIF_TERM ref, term;
    ErlNifPid self;
    unsigned us;
    int error = 0;

    (void)argc;
    if (!zoo_us(env, argv[0], &us))
        return enif_make_badarg(env);
    if ((timer = enif_alloc_resource(timer_type, sizeof *timer)) == NULL)
        return zoo_enomem(env);
    atomic_init(&timer->stopped, 0);
    timer->fd = timer_fd(us, &error);
    if (timer->fd < 0) {
        term = zoo_failed(env, error);
    } else {
        ref = enif_make_ref(env);
        enif_self(env, &self);
        if (enif_select(env, timer->fd, ERL_NIF_SELECT_READ, timer, NULL, ref) < 0) {
            close(timer->fd);
            term = zoo_failed(env, EBADF);
        } else if (enif_monitor_process(env, timer, &self, NULL) != 0) {
            stop_once(env, timer);
            term = zoo_failed(env, ESRCH);
        } else {
            term = enif_make_tuple2(env, ref, enif_make_resource(env, timer));
        }
    }
    enif_release_resource(timer);
    return term;
}

/* wait_done(Timer) */
ERL_NIF_TERM zoo_wait_done(ErlNifEnv *env, int argc, const ERL_NIF_TERM argv[])
{
    void *timer;

    (void)argc;
    if (!enif_get_resource(env, argv[0], timer_type, &timer))
        return enif_make_badarg(env);
    stop_once(env, timer);
    return zoo_ok(env);
}
