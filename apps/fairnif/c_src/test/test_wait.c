/*
 * test_wait.c - fair_wait and descriptors: what they answer, in every mode; who
 * is told when one is closed; what is left when somebody dies at any point,
 * memory is out at any place, or the VM cannot select.
 *
 * The stand-in sees to it that nothing is closed while it is selected, that no
 * object robs another of its descriptor, and that no message is left over.
 */
#include <dirent.h>
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

/* wait(Fd, Events, Ms): of a term, or of a number, which is somebody else's */
static ERL_NIF_TERM wait_body(fair_task *t)
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
    fair_tick(t, 1);
    return enif_make_int(fair_env(t), ms);
}

/* take(Fd, N): waits for an eventfd and takes one off it, so often */
static ERL_NIF_TERM take(fair_task *t)
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

static ERL_NIF_TERM term(fair_task *t)
{
    ERL_NIF_TERM made;
    int fd;

    if (!fair_get_int(t, fair_arg(t, 0), &fd))
        return fair_badarg(t);
    made = fair_make_fd(t, fd);
    return made ? made : enif_make_atom(fair_env(t), "none");
}

static ERL_NIF_TERM shut(fair_task *t)
{
    return enif_make_int(fair_env(t), fair_close_fd(t, fair_arg(t, 0)));
}

static ErlNifFunc nifs[] = {
    AWAITED_MODES("wait", 3, wait_body),
    AWAITED_MODES("take", 2, take),
    FAIR_NIF("plain", 3, wait_body, FAIR_AUTO),
    FAIR_NIF("term", 1, term, FAIR_AUTO),
    FAIR_NIF("shut", 1, shut, FAIR_AUTO),
};

FAIR_NIF_INIT(test_wait, nifs, NULL, NULL, NULL, NULL)

/* -- descriptors ----------------------------------------------------------- */

static int open_fds(void)
{
    DIR *dir = opendir("/proc/self/fd");
    int n = 0;

    while (readdir(dir))
        n++;
    closedir(dir);
    return n;
}

static int event(void)
{
    return eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC | EFD_SEMAPHORE);
}

static void pair(int fds[2])
{
    CHECK(socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0,
                     fds) == 0);
}

static void fill(int fd)
{
    static const char bytes[4096];

    while (send(fd, bytes, sizeof bytes, MSG_NOSIGNAL) > 0)
        ;
}

static void drain(int fd)
{
    char bytes[4096];

    while (read(fd, bytes, sizeof bytes) > 0)
        ;
}

static bool is_open(int fd)
{
    return fcntl(fd, F_GETFD) >= 0;
}

/* -- calls ------------------------------------------------------------------ */

/* Hands fd over; the term is a copy, in `env`. */
static vm_proc *owner_of(int fd, ErlNifEnv *env, vm_term *copy)
{
    vm_proc *p = vm_spawn();
    char args[16];

    snprintf(args, sizeof args, "%d", fd);
    vm_call(p, lib, "term", args);
    vm_finish(p);
    *copy = enif_make_copy(env, vm_result(p));
    return p;
}

static vm_proc *spawn_with(const char *name, vm_term fd, const char *rest)
{
    vm_proc *p = vm_spawn();
    vm_term args[3];
    int n;

    args[0] = enif_make_copy(vm_env(p), fd);
    n = vm_parse_args(vm_env(p), rest, args + 1, 2);
    node_await(p, name, n + 1, args);
    return p;
}

static vm_proc *spawn_wait(int mode, int fd, unsigned events, int ms)
{
    char args[64];

    snprintf(args, sizeof args, "%d,%u,%d", fd, events, ms);
    return spawn_await(in_nth_mode("wait", mode), args);
}

/* To where only a message can help. */
static void until_waiting(vm_proc *p)
{
    enum vm_state state = vm_state(p);

    while (state == VM_READY)
        state = vm_step(p);
}

/* The VM was asked: a threaded body takes a while until then. */
static void until_selected(vm_proc *p, long selects)
{
    until_waiting(p);
    EVENTUALLY(vm_step(p) == VM_WAITING && vm_counts().selects == selects);
}

/* p's answer; it has no message. */
static const char *answer(vm_proc *p)
{
    vm_finish(p);
    CHECK_NUMBERS(vm_messages(p), ==, 0);
    return finished(p);
}

static const char *shut_term(vm_term fd)
{
    vm_proc *p = vm_spawn();
    vm_term arg = enif_make_copy(vm_env(p), fd);

    node_await(p, "shut", 1, &arg);
    return finished(p);
}

/* -- it waits ----------------------------------------------------------------- */

static void one_wait(int mode, bool owned)
{
    ErlNifEnv *env = enif_alloc_env();
    vm_proc *owner = NULL, *p;
    int fds[2];
    vm_term fd;

    pair(fds);
    fd = enif_make_int(env, fds[0]);
    if (owned)
        owner = owner_of(fds[0], env, &fd);
#define WAIT(REST) spawn_with(in_nth_mode("wait", mode), fd, REST)
    CHECK_TEXT(answer(WAIT("1,0")), "0");
    CHECK_TEXT(answer(WAIT("2,-1")), "2");
    CHECK_TEXT(answer(WAIT("0,0")), "-22");
    CHECK_TEXT(answer(WAIT("4,-1")), "-22");
    CHECK_TEXT(answer(WAIT("1,20")), "0");
    p = WAIT("1,-1");
    until_selected(p, 1);
    CHECK_TEXT(answer(WAIT("1,-1")), "-16");
    CHECK_TEXT(answer(WAIT("3,100")), "2");         /* ready: no wait */
    fill(fds[0]);
    CHECK_TEXT(answer(WAIT("3,100")), "-16");
    CHECK_TEXT(answer(WAIT("2,10")), "0");
    CHECK(write(fds[1], "x", 1) == 1);
    CHECK_TEXT(answer(p), "1");
    drain(fds[0]);
    p = WAIT("3,20000");
    until_selected(p, 1);
    drain(fds[1]);
    CHECK_TEXT(answer(p), "2");
    fill(fds[0]);
    p = WAIT("3,-1");
    until_selected(p, 1);
    close(fds[1]);
    CHECK_TEXT(answer(p), "3");
    CHECK_TEXT(answer(WAIT("1,-1")), "1");
#undef WAIT
    enif_free_env(env);
    if (owner)
        vm_free(owner);
    else
        close(fds[0]);
    EVENTUALLY(!is_open(fds[0]) && node_stacks() == 0);
}

TEST(all_modes, "a body waits for a descriptor in every mode, and a second "
     "one that would is told that it is busy")
{
    int before = open_fds();

    CHECK_CALL("wait_auto", "-5,1,0", "-9");
    CHECK_CALL("wait_auto", "4444,1,0", "-9");
    for (int late = 0; late < 2; late++) {
        vm_options.late_stops = late;
        for (int i = 0; i < MODES; i++)
            for (int owned = 0; owned < 2; owned++)
                one_wait(i, owned);
    }
    /* The poller of the stand-in has one. */
    CHECK_NUMBERS(open_fds() - before, <=, 1);
}

TEST(plain, "a body that is not awaited looks, and raises where it would wait")
{
    int fd = event();
    char args[32];

    snprintf(args, sizeof args, "%d,1,0", fd);
    CHECK_CALL("plain", args, "0");
    snprintf(args, sizeof args, "%d,1,10", fd);
    CHECK_CALL("plain", args, "error:{fairnif,{not_awaited,{test_wait,plain,3}}"
               "}");
    close(fd);
}

TEST(in_a_row, "a body waits very often, for a message that comes late as well")
{
    int fd = event();

    for (int late = 0; late < 2; late++) {
        vm_options.late_events_us = late ? 300 : 0;
        for (int i = 0; i < MODES; i++) {
            char args[32];
            vm_proc *p;

            snprintf(args, sizeof args, "%d,20", fd);
            p = spawn_await(in_nth_mode("take", i), args);
            for (int k = 0; k < 20; k++) {
                eventfd_write(fd, 1);
                vm_run(p, 1);
            }
            CHECK_TEXT(answer(p), "20");
        }
    }
    close(fd);
}

TEST(both_at_once, "two events at once are one answer, and no message is left")
{
    ErlNifEnv *env = enif_alloc_env();

    for (int late = 0; late < 2; late++) {
        vm_options.late_events_us = late ? 2000 : 0;
        for (int i = 0; i < MODES; i++)
            for (int owned = 0; owned < 2; owned++) {
                vm_proc *owner = NULL, *p;
                int fds[2];
                vm_term fd;

                pair(fds);
                fill(fds[0]);
                fd = enif_make_int(env, fds[0]);
                if (owned)
                    owner = owner_of(fds[0], env, &fd);
                p = spawn_with(in_nth_mode("wait", i), fd, "3,-1");
                until_selected(p, 1);
                close(fds[1]);
                CHECK_TEXT(answer(p), "3");
                owner ? vm_free(owner) : (void)close(fds[0]);
                enif_clear_env(env);
            }
    }
    enif_free_env(env);
}

TEST(late, "an event that comes when the time is up leaves no message")
{
    int fd = event();

    vm_options.late_events_us = 5000;
    for (int i = 0; i < MODES; i++)
        for (int k = 0; k < 10; k++) {
            vm_proc *p = spawn_wait(i, fd, FAIR_READ, 3);
            const char *is;

            until_waiting(p);
            usleep((unsigned)k * 500);
            eventfd_write(fd, 1);
            is = answer(p);
            check_that(!strcmp(is, "0") || !strcmp(is, "1"), __FILE__,
                       __LINE__, "%s: %s", in_nth_mode("", i), is);
            drain(fd);
        }
    close(fd);
}

/* -- closing -------------------------------------------------------------------- */

TEST(closed, "who waits for a descriptor that is closed gets ebadf, wherever "
     "he has come to")
{
    ErlNifEnv *env = enif_alloc_env();

    for (int late = 0; late < 2; late++) {
        vm_options.late_stops = late;
        vm_options.late_events_us = late ? 1000 : 0;
        for (int i = 0; i < MODES; i++)
            for (int steps = 0; steps < 6; steps++) {
                int fd = event();
                vm_term fd_term;
                vm_proc *owner = owner_of(fd, env, &fd_term), *p;
                const char *is;

                p = spawn_with(in_nth_mode("wait", i), fd_term, "1,-1");
                for (int k = 0; k < steps; k++)
                    if (vm_state(p) == VM_READY || vm_state(p) == VM_WAITING)
                        vm_step(p);
                if (steps % 2)
                    CHECK_TEXT(shut_term(fd_term), "1");
                else
                    vm_kill(owner);
                CHECK_TEXT(shut_term(fd_term), "0");
                if (steps == 5)
                    eventfd_write(fd, 1);
                is = answer(p);
                check_that(!strcmp(is, "-9") || !strcmp(is, "closed"),
                           __FILE__, __LINE__, "%s after %d steps: %s",
                           in_nth_mode("", i), steps, is);
                enif_clear_env(env);
                vm_free(owner);
                EVENTUALLY(!is_open(fd));
            }
    }
    enif_free_env(env);
}

TEST(terms, "a descriptor is handed over once, and goes with its term")
{
    ErlNifEnv *env = enif_alloc_env();
    vm_proc *owner, *p;
    vm_term fd_term, second;
    int fd = event();
    char args[16];

    owner = owner_of(fd, env, &fd_term);
    snprintf(args, sizeof args, "%d", fd);
    CHECK_CALL("term", args, "none");
    CHECK_CALL("term", "4444", "none");
    CHECK(is_open(fd));
    vm_call(owner, lib, "plain", "1,1,0");      /* its heap holds it no more */
    vm_finish(owner);
    vm_gc(owner);
    CHECK(is_open(fd));
    p = spawn_with("wait_auto", fd_term, "1,-1");
    until_selected(p, 1);
    enif_clear_env(env);
    CHECK(is_open(fd));
    vm_free(p);
    EVENTUALLY(!is_open(fd));
    vm_free(owner);
    fd = event();
    owner = owner_of(fd, env, &second);
    vm_free(owner);
    EVENTUALLY(!is_open(fd));
    enif_free_env(env);
}

TEST(renumbered, "the same number of another file is not busy")
{
    int a[2], b[2];
    vm_proc *p, *q;

    pair(a);
    p = spawn_wait(5, a[0], FAIR_READ, -1);
    until_selected(p, 1);
    close(a[0]);
    pair(b);
    CHECK_NUMBERS(b[0], ==, a[0]);
    q = spawn_wait(5, b[0], FAIR_READ, -1);
    until_selected(q, 2);
    CHECK(write(b[1], "x", 1) == 1);
    CHECK_TEXT(answer(q), "1");
    CHECK(write(a[1], "x", 1) == 1);
    CHECK_TEXT(answer(p), "1");
    close(a[1]);
    close(b[0]);
    close(b[1]);
}

/* -- the caller dies ---------------------------------------------------------------- */

static void kill_after(int mode, bool owned, int steps, bool event_first)
{
    ErlNifEnv *env = enif_alloc_env();
    vm_proc *owner = NULL, *p;
    int fd = event();
    vm_term fd_term = enif_make_int(env, fd);

    if (owned)
        owner = owner_of(fd, env, &fd_term);
    p = spawn_with(in_nth_mode("take", mode), fd_term, "2");
    for (int k = 0; k < steps; k++)
        if (vm_state(p) == VM_READY || vm_state(p) == VM_WAITING)
            vm_step(p);
    if (event_first)
        eventfd_write(fd, 1);
    vm_kill(p);
    vm_free(p);
    if (!event_first)
        eventfd_write(fd, 1);
    EVENTUALLY(node_stacks() == 0);
    drain(fd);
    /* Nobody waits for it any more, and it works. */
    p = spawn_with("wait_auto", fd_term, "1,20000");
    until_selected(p, 1);
    eventfd_write(fd, 1);
    CHECK_TEXT(answer(p), "1");
    enif_free_env(env);
    if (owner)
        vm_free(owner);
    else
        close(fd);
    EVENTUALLY(!is_open(fd));
    EVENTUALLY(strcmp(node_leftovers(), "") == 0);
    check_that(!check_failures(), __FILE__, __LINE__,
               "%s, %s, killed after %d steps", in_nth_mode("take", mode),
               owned ? "owned" : "not owned", steps);
}

TEST(kills, "a caller that dies at any point leaves a descriptor that others "
     "can wait for")
{
    for (int kind = 1; kind <= 3; kind++) {
        vm_options.dead_heaps_on = kind;
        vm_options.late_stops = kind == 2;
        vm_options.late_events_us = kind == 3 ? 500 : 0;
        for (int i = 0; i < MODES; i++)
            for (int steps = 0; steps < 7 && !check_failures(); steps++)
                for (int k = 0; k < 4; k++)
                    kill_after(i, k & 1, steps, k & 2);
    }
}

TEST(upgraded, "bodies wait on while their library is upgraded and purged")
{
    for (int i = 0; i < MODES; i++) {
        int fd = event();
        vm_proc *shell = vm_spawn(), *p = spawn_wait(i, fd, FAIR_READ, -1);
        vm_lib *old = lib;
        int error;

        until_selected(p, 1);
        lib = vm_load(shell, nif_init, node_load_info(shell, "x"), old,
                      &error);
        CHECK_NUMBERS(error, ==, 0);
        vm_free(shell);
        vm_purge(old);
        CHECK(!vm_unmapped(old));
        eventfd_write(fd, 1);
        CHECK_TEXT(answer(p), "1");
        EVENTUALLY(vm_unmapped(old));
        close(fd);
    }
}

TEST(runtime_again, "a descriptor outlives the module that knows it")
{
    ErlNifEnv *env = enif_alloc_env();
    vm_proc *shell = vm_spawn(), *owner, *p;
    int fd = event(), error;
    vm_term fd_term;

    owner = owner_of(fd, env, &fd_term);
    p = spawn_with("wait_auto", fd_term, "1,-1");
    until_selected(p, 1);
    node_runtime_again(shell, false, &error);
    CHECK_NUMBERS(error, ==, 0);
    vm_free(shell);
    eventfd_write(fd, 1);
    CHECK_TEXT(answer(p), "1");
    CHECK_TEXT(shut_term(fd_term), "1");
    EVENTUALLY(!is_open(fd));
    vm_free(owner);
    enif_free_env(env);
}

/* -- what fails ---------------------------------------------------------------------- */

static bool is_one_of(const char *is, const char *const *those)
{
    while (*those && strcmp(is, *those) != 0)
        those++;
    return *those;
}

/* The nth such call fails; true when there were so many. */
static bool without(int mode, bool owned, unsigned what, long n)
{
    static const char *const fine[] = {
        "1", "-12", "-5", "error:enomem", "closed", "error:badarg", "none",
        NULL
    };
    ErlNifEnv *env = enif_alloc_env();
    vm_proc *owner = NULL, *p;
    int fd = event();
    vm_term fd_term = enif_make_int(env, fd);
    const char *is = "none";
    bool failed;

    vm_fail(what, n, false);
    if (owned)
        owner = owner_of(fd, env, &fd_term);
    if (!owned || enif_is_ref(env, fd_term)) {
        p = spawn_with(in_nth_mode("wait", mode), fd_term, "1,20000");
        /* To where it waits, fails, or ends. */
        for (int i = 0; i < 2000 && !vm_failed() && !vm_counts().selects; i++)
            vm_run(p, 1);
        eventfd_write(fd, 1);
        vm_run(p, 10000);
        CHECK_NUMBERS(vm_messages(p), ==, 0);
        is = finished(p);
    }
    failed = vm_failed();
    vm_fail(0, 0, false);
    check_that(is_one_of(is, fine), __FILE__, __LINE__, "%s when call %ld of "
               "%u fails: %s", in_nth_mode("wait", mode), n, what, is);
    owned = enif_is_ref(env, fd_term);
    enif_free_env(env);
    if (owner)
        vm_free(owner);
    if (owned)
        EVENTUALLY(!is_open(fd));
    else
        CHECK(close(fd) == 0);          /* it stayed the author's */
    EVENTUALLY(node_stacks() == 0);
    EVENTUALLY(strcmp(node_leftovers(), "") == 0);
    return failed;
}

TEST(no_memory, "memory out at any place is an answer or an error, and nothing "
     "is lost")
{
    for (int i = 0; i < MODES && !check_failures(); i++)
        for (int owned = 0; owned < 2; owned++) {
            long n = 1;

            while (without(i, owned, VM_F_MEMORY, n) && !check_failures())
                n++;
            CHECK_NUMBERS(n, >, 1);
        }
}

TEST(no_select, "a descriptor that the VM cannot watch is an error, and no "
     "wait")
{
    for (int i = 0; i < MODES && !check_failures(); i++)
        for (int owned = 0; owned < 2; owned++)
            CHECK(without(i, owned, VM_F_SELECT, 1));
}

TEST(no_second_select, "the second of two that the VM cannot watch is an "
     "error, and the first leaves no message")
{
    vm_options.late_events_us = 1000;
    for (int i = 0; i < MODES; i++) {
        int fds[2];
        vm_proc *p;

        pair(fds);
        fill(fds[0]);
        p = spawn_wait(i, fds[0], FAIR_READ | FAIR_WRITE, -1);
        vm_fail(VM_F_SELECT, 2, false);
        CHECK_TEXT(answer(p), "-5");
        CHECK(vm_failed());
        vm_fail(0, 0, false);
        close(fds[0]);
        close(fds[1]);
    }
}
