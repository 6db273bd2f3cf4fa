/*
 * descriptors.h - bodies that wait for descriptors, and calls of them: what
 * test_wait.c and test_descriptor.c share.
 *
 * The stand-in sees to it that nothing is closed while it is selected, that no
 * object robs another of its descriptor, and that no message is left over.
 */
#ifndef FAIR_TEST_DESCRIPTORS_H
#define FAIR_TEST_DESCRIPTORS_H

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <unistd.h>

#include "check.h"

/* -- bodies --------------------------------------------------------------- */

/* wait(Fd, Events, Ms): of a term, or of a number that another module owns */
static inline ERL_NIF_TERM wait_body(fair_task *t)
{
    unsigned events;
    int fd, ms;

    if (!fair_get_uint(t, fair_arg(t, 1), &events)
        || !fair_get_int(t, fair_arg(t, 2), &ms))
        return fair_badarg(t);
    if (!fair_get_fd(t, fair_arg(t, 0), &fd)
        && !fair_get_int(t, fair_arg(t, 0), &fd))
        return enif_make_atom(fair_env(t), "closed");
    fair_tick(t, 1);
    ms = fair_wait(t, fd, events, ms);
    CHECK(ms != 0);
    fair_tick(t, 1);
    return enif_make_int(fair_env(t), ms == -ETIMEDOUT ? 0 : ms);
}

/* take(Fd, N): waits for an eventfd and takes one off it, so often */
static inline ERL_NIF_TERM take(fair_task *t)
{
    unsigned n, done = 0;
    int fd;

    if (!fair_get_uint(t, fair_arg(t, 1), &n)
        || (!fair_get_fd(t, fair_arg(t, 0), &fd)
        && !fair_get_int(t, fair_arg(t, 0), &fd)))
        return fair_badarg(t);
    while (done < n) {
        eventfd_t value;
        int ready = fair_wait(t, fd, FAIR_READ, -1);

        if (ready < 0)
            return enif_make_int(fair_env(t), ready);
        done += read(fd, &value, sizeof value) == sizeof value;
    }
    return enif_make_uint(fair_env(t), done);
}

static inline ERL_NIF_TERM term(fair_task *t)
{
    ERL_NIF_TERM made;
    int fd;

    if (!fair_get_int(t, fair_arg(t, 0), &fd))
        return fair_badarg(t);
    made = fair_adopt_fd(t, fd);
    return made ? made : enif_make_atom(fair_env(t), "none");
}

static inline ERL_NIF_TERM shut(fair_task *t)
{
    return enif_make_int(fair_env(t), fair_close_fd(t, fair_arg(t, 0)));
}

#define DESCRIPTOR_NIFS                                                      \
    AWAITED_MODES("wait", 3, wait_body),                                     \
    AWAITED_MODES("take", 2, take),                                          \
    FAIR_NIF("plain", 3, wait_body, FAIR_AUTO),                              \
    FAIR_NIF("term", 1, term, FAIR_AUTO),                                    \
    FAIR_NIF("shut", 1, shut, FAIR_AUTO)

/* -- descriptors ----------------------------------------------------------- */

static inline int event(void)
{
    return eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC | EFD_SEMAPHORE);
}

static inline void pair(int fds[2])
{
    CHECK(socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0,
                     fds) == 0);
}

static inline void fill(int fd)
{
    static const char bytes[4096];

    while (send(fd, bytes, sizeof bytes, MSG_NOSIGNAL) > 0)
        ;
}

static inline void drain(int fd)
{
    char bytes[4096];

    while (read(fd, bytes, sizeof bytes) > 0)
        ;
}

static inline bool is_open(int fd)
{
    return fcntl(fd, F_GETFD) >= 0;
}

/* -- calls ------------------------------------------------------------------ */

/* Hands fd over; the term is a copy, in `env`. */
static inline vm_proc *owner_of(int fd, ErlNifEnv *env, vm_term *copy)
{
    vm_proc *p = vm_spawn();
    char args[16];

    snprintf(args, sizeof args, "%d", fd);
    vm_call(p, lib, "term", args);
    vm_finish(p);
    *copy = enif_make_copy(env, vm_result(p));
    return p;
}

static inline vm_proc *spawn_with(const char *name, vm_term fd, const char *rest)
{
    vm_proc *p = vm_spawn();
    vm_term args[3];
    int n;

    args[0] = enif_make_copy(vm_env(p), fd);
    n = vm_parse_args(vm_env(p), rest, args + 1, 2);
    node_await(p, name, n + 1, args);
    return p;
}

static inline vm_proc *spawn_wait(int mode, int fd, unsigned events, int ms)
{
    char args[64];

    snprintf(args, sizeof args, "%d,%u,%d", fd, events, ms);
    return spawn_await(in_nth_mode("wait", mode), args);
}

/* The VM polls for that many: a threaded body takes a while until then. */
static inline void until_selected(vm_proc *p, long selects)
{
    until_waiting(p);
    EVENTUALLY(still_waits(p) && vm_armed() >= selects);
}

/* p's answer; it has no message. */
static inline const char *answer(vm_proc *p)
{
    vm_finish(p);
    CHECK_NUMBERS(vm_messages(p), ==, 0);
    return finished(p);
}

/* Once more with events and stops that come late. */
static inline void in_all_modes(void (*fn)(int mode))
{
    for (int late = 0; late < 2; late++) {
        VM_WORSE(late_stops, late);
        VM_WORSE(late_events_us, late ? 2000 : 0);
        for (int i = 0; i < MODES && !check_failures(); i++) {
            fn(i);
            check_that(!check_failures(), __FILE__, __LINE__, "in %s%s",
                       in_nth_mode("mode", i), late ? ", late" : "");
        }
    }
    ALL_OVER();
}

static inline const char *shut_term(vm_term fd)
{
    vm_proc *p = vm_spawn();
    vm_term arg = enif_make_copy(vm_env(p), fd);

    node_await(p, "shut", 1, &arg);
    return finished(p);
}

#endif
