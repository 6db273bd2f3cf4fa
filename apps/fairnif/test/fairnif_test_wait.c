/*
 * fairnif_test_wait.c - fair_wait and descriptors as the Erlang tests see them:
 * bodies that wait, and plain NIFs that make descriptors and use them.
 * VERSION 1 and 2 are two files of one library, for upgrades.
 */
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <unistd.h>

#include "fairnif.h"

/* -- bodies --------------------------------------------------------------- */

/* A descriptor's term, or its number: then it is not the runtime's. */
static int get_fd(fair_task *t, unsigned i, int *fd)
{
    return fair_get_fd(t, fair_arg(t, i), fd)
        || fair_get_int(t, fair_arg(t, i), fd);
}

/* wait(Fd, Events, Ms) -> what fair_wait answers, or closed */
static ERL_NIF_TERM wait_body(fair_task *t)
{
    int fd, ms;
    unsigned events;

    if (!fair_get_uint(t, fair_arg(t, 1), &events)
        || !fair_get_int(t, fair_arg(t, 2), &ms))
        return fair_badarg(t);
    if (!get_fd(t, 0, &fd))
        return enif_make_atom(fair_env(t), "closed");
    ms = fair_wait(t, fd, events, ms);
    return ms == 0 ? fair_badarg(t)     /* it has no such answer */
        : enif_make_int(fair_env(t), ms == -ETIMEDOUT ? 0 : ms);
}

/* take(Fd, N) -> N: waits for an eventfd and takes one off it, so often. */
static ERL_NIF_TERM take(fair_task *t)
{
    unsigned n, done;
    int fd;

    if (!get_fd(t, 0, &fd) || !fair_get_uint(t, fair_arg(t, 1), &n))
        return fair_badarg(t);
    for (done = 0; done < n; ) {
        eventfd_t value;
        int ready = fair_wait(t, fd, FAIR_READ, -1);

        if (ready < 0)
            return enif_make_int(fair_env(t), ready);
        if (read(fd, &value, sizeof value) == sizeof value)
            done++;
    }
    return enif_make_uint(fair_env(t), done);
}

/* term(Fd) -> the runtime's from now on, or none */
static ERL_NIF_TERM term(fair_task *t)
{
    ERL_NIF_TERM made;
    int fd;

    if (!fair_get_int(t, fair_arg(t, 0), &fd))
        return fair_badarg(t);
    made = fair_adopt_fd(t, fd);
    return made ? made : enif_make_atom(fair_env(t), "none");
}

/* number(Term) -> its descriptor's, or closed */
static ERL_NIF_TERM number(fair_task *t)
{
    int fd;

    if (!fair_get_fd(t, fair_arg(t, 0), &fd))
        return enif_make_atom(fair_env(t), "closed");
    return enif_make_int(fair_env(t), fd);
}

/* shut(Term) -> whether it was open */
static ERL_NIF_TERM shut(fair_task *t)
{
    return enif_make_atom(fair_env(t), fair_close_fd(t, fair_arg(t, 0)) ? "true"
        : "false");
}

/* -- plain NIFs ----------------------------------------------------------- */

static ERL_NIF_TERM error_or(ErlNifEnv *env, long value)
{
    return value < 0 ? enif_make_int(env, -errno) : enif_make_long(env, value);
}

static ERL_NIF_TERM version(ErlNifEnv *env, int argc, const ERL_NIF_TERM argv[])
{
    (void)argc, (void)argv;
    return enif_make_int(env, VERSION);
}

static ERL_NIF_TERM event(ErlNifEnv *env, int argc, const ERL_NIF_TERM argv[])
{
    unsigned value;

    (void)argc;
    if (!enif_get_uint(env, argv[0], &value))
        return enif_make_badarg(env);
    return error_or(env, eventfd(value,
                                 EFD_NONBLOCK | EFD_CLOEXEC | EFD_SEMAPHORE));
}

static ERL_NIF_TERM pair(ErlNifEnv *env, int argc, const ERL_NIF_TERM argv[])
{
    int fds[2];

    (void)argc, (void)argv;
    if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0, fds))
        return error_or(env, -1);
    return enif_make_tuple2(env, enif_make_int(env, fds[0]),
                            enif_make_int(env, fds[1]));
}

static ERL_NIF_TERM add(ErlNifEnv *env, int argc, const ERL_NIF_TERM argv[])
{
    unsigned value;
    int fd;

    (void)argc;
    if (!enif_get_int(env, argv[0], &fd)
        || !enif_get_uint(env, argv[1], &value))
        return enif_make_badarg(env);
    return error_or(env, eventfd_write(fd, value));
}

static ERL_NIF_TERM put(ErlNifEnv *env, int argc, const ERL_NIF_TERM argv[])
{
    ErlNifBinary bin;
    int fd;

    (void)argc;
    if (!enif_get_int(env, argv[0], &fd)
        || !enif_inspect_binary(env, argv[1], &bin))
        return enif_make_badarg(env);
    return error_or(env, send(fd, bin.data, bin.size, MSG_NOSIGNAL));
}

/* drain(Fd) -> bytes that could be read at once */
static ERL_NIF_TERM drain(ErlNifEnv *env, int argc, const ERL_NIF_TERM argv[])
{
    static char buffer[65536];
    long total = 0, n;
    int fd;

    (void)argc;
    if (!enif_get_int(env, argv[0], &fd))
        return enif_make_badarg(env);
    while ((n = read(fd, buffer, sizeof buffer)) > 0)
        total += n;
    return enif_make_long(env, total);
}

/* fill(Fd) -> bytes that could be written at once */
static ERL_NIF_TERM fill(ErlNifEnv *env, int argc, const ERL_NIF_TERM argv[])
{
    static const char buffer[4096];
    long total = 0, n;
    int fd;

    (void)argc;
    if (!enif_get_int(env, argv[0], &fd))
        return enif_make_badarg(env);
    while ((n = send(fd, buffer, sizeof buffer, MSG_NOSIGNAL)) > 0)
        total += n;
    return enif_make_long(env, total);
}

static ERL_NIF_TERM close_fd(ErlNifEnv *env, int argc,
                             const ERL_NIF_TERM argv[])
{
    int fd;

    (void)argc;
    if (!enif_get_int(env, argv[0], &fd))
        return enif_make_badarg(env);
    return error_or(env, close(fd));
}

static ErlNifFunc nifs[] = {
    FAIR_NIF("nif_wait", 3, wait_body, FAIR_AUTO | FAIR_MAY_WAIT),
    FAIR_NIF("nif_wait_yielding", 3, wait_body, FAIR_NORMAL | FAIR_MAY_WAIT),
    FAIR_NIF("nif_wait_normal", 3, wait_body,
             FAIR_NORMAL | FAIR_NO_YIELD | FAIR_MAY_WAIT),
    FAIR_NIF("nif_wait_dirty_cpu", 3, wait_body,
             FAIR_DIRTY_CPU | FAIR_NO_YIELD | FAIR_MAY_WAIT),
    FAIR_NIF("nif_wait_dirty_io", 3, wait_body,
             FAIR_DIRTY_IO | FAIR_NO_YIELD | FAIR_MAY_WAIT),
    FAIR_NIF("nif_wait_threaded", 3, wait_body, FAIR_THREADED),
    FAIR_NIF("nif_take", 2, take, FAIR_AUTO | FAIR_MAY_WAIT),
    FAIR_NIF("nif_take_threaded", 2, take, FAIR_THREADED),
    FAIR_NIF("term", 1, term, FAIR_AUTO),
    FAIR_NIF("number", 1, number, FAIR_AUTO),
    FAIR_NIF("shut", 1, shut, FAIR_AUTO),
    {"version", 0, version, 0},
    {"event", 1, event, 0},
    {"pair", 0, pair, 0},
    {"add", 2, add, 0},
    {"put", 2, put, 0},
    {"drain", 1, drain, 0},
    {"fill", 1, fill, 0},
    {"close_fd", 1, close_fd, 0},
};

FAIR_NIF_INIT(fairnif_test_wait, nifs, NULL, NULL, NULL)
