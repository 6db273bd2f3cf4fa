/*
 * test_descriptor.c - fair_wait: descriptors that get ready, do not, are closed, or
 * whose waiter dies, in every mode.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <unistd.h>

#include "check.h"

/* -- bodies -------------------------------------------------------------- */

/* waits(Fd, Events, Ms) -> what fair_wait answers */
static ERL_NIF_TERM waits(fair_task *t)
{
    int fd, ms, answer;
    unsigned events;

    if (!enif_get_int(fair_env(t), fair_arg(t, 0), &fd)
        || !enif_get_uint(fair_env(t), fair_arg(t, 1), &events)
        || !enif_get_int(fair_env(t), fair_arg(t, 2), &ms))
        return fair_badarg(t);
    answer = fair_wait(t, fd, events, ms);
    fair_tick(t, 1);
    return enif_make_int(fair_env(t), answer);
}

/* An eventfd with the least number that is free from there on. */
static int least;

static int numbered_event(void)
{
    int low = eventfd(0, 0), fd = fcntl(low, F_DUPFD, least);

    close(low);
    return fd;
}

/* opens() -> a term for an eventfd */
static int opened;

static ERL_NIF_TERM opens(fair_task *t)
{
    ERL_NIF_TERM term;

    opened = numbered_event();
    term = fair_make_fd(t, opened);
    if (term)
        return term;
    close(opened);
    return fair_enomem(t);
}

/* waits_for(Term, Ms): reads what comes */
static ERL_NIF_TERM waits_for(fair_task *t)
{
    int fd, ms, answer;
    eventfd_t value = 0;

    if (!enif_get_int(fair_env(t), fair_arg(t, 1), &ms)
        || !fair_get_fd(t, fair_arg(t, 0), &fd))
        return fair_badarg(t);
    answer = fair_wait(t, fd, FAIR_READ, ms);
    if (answer > 0)
        eventfd_read(fd, &value);
    return enif_make_tuple2(fair_env(t), enif_make_int(fair_env(t), answer),
                            enif_make_ulong(fair_env(t), value));
}

static ERL_NIF_TERM closes(fair_task *t)
{
    return enif_make_int(fair_env(t), fair_close_fd(t, fair_arg(t, 0)));
}

static ErlNifFunc nifs[] = {
    AWAITED_MODES("waits", 3, waits),
    AWAITED_MODES("waits_for", 2, waits_for),
    FAIR_NIF("waits_alone", 3, waits, FAIR_AUTO),
    FAIR_NIF("opens", 0, opens, FAIR_AUTO),
    FAIR_NIF("closes", 1, closes, FAIR_AUTO),
};
FAIR_NIF_INIT(test_descriptor, nifs, NULL, NULL, NULL, NULL)

/* -- calls --------------------------------------------------------------- */

static vm_proc *begin(int mode, int fd, int events, int ms)
{
    char args[64];
    vm_proc *p;

    snprintf(args, sizeof args, "%d, %d, %d", fd, events, ms);
    p = spawn_await(in_nth_mode("waits", mode), args);
    while (vm_state(p) == VM_READY)
        vm_step(p);
    return p;
}

/* Up to where the VM polls for it. */
static void until_selected(vm_proc *p, long selects)
{
    EVENTUALLY((vm_step(p), vm_armed() >= selects));
}

static const char *answer(int mode, int fd, int events, int ms)
{
    return finished(begin(mode, fd, events, ms));
}

static void ring(int fd)
{
    CHECK_NUMBERS(eventfd_write(fd, 3), ==, 0);
}

static void in_all_modes(void (*fn)(int mode))
{
    for (int late = 0; late < 2; late++) {
        vm_options.late_stops = late;
        vm_options.late_events_us = late ? 2000 : 0;
        for (int i = 0; i < MODES && !check_failures(); i++) {
            fn(i);
            check_that(!check_failures(), __FILE__, __LINE__, "in %s%s",
                       in_nth_mode("mode", i), late ? ", late" : "");
        }
    }
    EVENTUALLY(vm_counts().selects == 0);
    EVENTUALLY(strcmp(node_leftovers(), "") == 0);
}

/* -- ready, or not ------------------------------------------------------- */

static void ready_in(int mode)
{
    int fd = eventfd(0, 0);
    vm_proc *p;

    CHECK_TEXT(answer(mode, fd, FAIR_WRITE, -1), "2");
    CHECK_TEXT(answer(mode, fd, FAIR_READ, 0), "0");
    CHECK_TEXT(answer(mode, fd, FAIR_READ | FAIR_WRITE, -1), "2");
    p = begin(mode, fd, FAIR_READ, -1);
    until_selected(p, 1);
    ring(fd);
    CHECK_TEXT(finished(p), "1");
    CHECK_TEXT(answer(mode, fd, FAIR_READ, -1), "1");
    close(fd);
}

TEST(ready, "a descriptor is waited for until it is ready")
{
    in_all_modes(ready_in);
}

static void time_out_in(int mode)
{
    int fd = eventfd(0, 0);
    uint64_t begin_ns = vm_now();

    CHECK_TEXT(answer(mode, fd, FAIR_READ, 20), "0");
    CHECK_NUMBERS(vm_now() - begin_ns, >=, 20 * 1000000);
    close(fd);
}

TEST(time_out, "a wait that comes to its time answers 0, not before")
{
    in_all_modes(time_out_in);
}

static void both_in(int mode)
{
    int s[2];
    char full[4096] = {0};
    vm_proc *p;

    CHECK(socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0, s) == 0);
    while (write(s[0], full, sizeof full) > 0)
        ;
    p = begin(mode, s[0], FAIR_READ | FAIR_WRITE, -1);
    until_selected(p, 1);
    CHECK(write(s[1], "x", 1) == 1);
    CHECK_TEXT(finished(p), "1");
    CHECK(read(s[0], full, 1) == 1);
    p = begin(mode, s[0], FAIR_READ | FAIR_WRITE, -1);
    until_selected(p, 1);
    close(s[1]);                        /* a hang-up is both */
    CHECK_TEXT(finished(p), "3");
    close(s[0]);
}

TEST(both, "what comes first of two events ends the wait, an end counts as "
     "ready")
{
    in_all_modes(both_in);
}

static void mailbox_in(int mode)
{
    int fd = eventfd(0, 0);
    vm_proc *p = begin(mode, fd, FAIR_READ, 10);
    ErlNifPid pid = {vm_pid(p)};
    ErlNifEnv *m = enif_alloc_env();

    enif_send(NULL, &pid, m, vm_parse(m, "{other,settle}"));
    enif_free_env(m);
    until_selected(p, 1);
    ring(fd);
    vm_finish(p);
    CHECK_NUMBERS(vm_messages(p), ==, 1);
    vm_free(p);
    close(fd);
}

TEST(mailbox, "no message of a wait stays behind, when it is ready as its time "
     "is up")
{
    for (int i = 0; i < 5; i++)
        in_all_modes(mailbox_in);
}

/* -- refused ------------------------------------------------------------- */

static void errors_in(int mode)
{
    char text[16];
    int fd = eventfd(0, 0);
    vm_proc *p, *q;

    snprintf(text, sizeof text, "%d", -EBADF);
    CHECK_TEXT(answer(mode, 900, FAIR_READ, -1), text);
    CHECK_TEXT(answer(mode, -1, FAIR_READ, -1), text);
    snprintf(text, sizeof text, "%d", -EINVAL);
    CHECK_TEXT(answer(mode, fd, 0, -1), text);
    CHECK_TEXT(answer(mode, fd, 8, -1), text);
    snprintf(text, sizeof text, "%d", -EBUSY);
    p = begin(mode, fd, FAIR_READ, -1);
    until_selected(p, 1);
    q = begin(mode, fd, FAIR_READ, -1);
    CHECK_TEXT(finished(q), text);
    CHECK_TEXT(answer((mode + 1) % MODES, fd, FAIR_READ, 1000), text);
    ring(fd);
    CHECK_TEXT(finished(p), "1");
    close(fd);
}

TEST(errors, "bad descriptors and events, and a second waiter, are refused")
{
    in_all_modes(errors_in);
}

TEST(alone, "a function that is not awaited looks, and raises where it would "
     "wait")
{
    int fd = eventfd(1, 0);
    char args[64];

    snprintf(args, sizeof args, "%d, 1, -1", fd);
    CHECK_CALL("waits_alone", args, "1");
    eventfd_read(fd, &(eventfd_t){0});
    CHECK_CALL("waits_alone", args,
               "error:{fairnif,{not_awaited,{test_descriptor,waits_alone,3}}}");
    close(fd);
}

/* -- closed by its owner, who never was asked ------------------------------ */

static void closed_in(int mode)
{
    int fd = eventfd(0, 0), copy = dup(fd);
    vm_proc *p = begin(mode, fd, FAIR_READ, -1);

    until_selected(p, 1);
    close(fd);
    ring(copy);
    CHECK_TEXT(finished(p), "1");
    close(copy);
}

TEST(closed, "the owner of a descriptor may close it while it is waited for")
{
    in_all_modes(closed_in);
}

/* -- deaths -------------------------------------------------------------- */

static void deaths_in(int mode)
{
    for (int at = 0; at < 4; at++) {
        int fd = eventfd(0, 0);
        vm_proc *p = begin(mode, fd, FAIR_READ, at == 3 ? 1 : -1);

        if (at > 0)
            until_selected(p, 1);
        if (at == 2)
            ring(fd);
        if (at == 2)
            EVENTUALLY(vm_messages(p) > 0);
        if (at == 3)
            usleep(3000);
        vm_free(p);
        EVENTUALLY(node_stacks() == 0);
        EVENTUALLY(vm_counts().selects == 0);
        close(fd);
    }
}

TEST(deaths, "a waiter that dies, at any point, leaves no descriptor selected")
{
    in_all_modes(deaths_in);
}

/* -- terms --------------------------------------------------------------- */

static vm_proc *with_term(vm_proc *owner, int mode, int ms)
{
    vm_proc *p = vm_spawn();
    vm_term args[2] = {enif_make_copy(vm_env(p), vm_result(owner)),
                       enif_make_int(vm_env(p), ms)};

    node_await(p, in_nth_mode("waits_for", mode), 2, args);
    while (vm_state(p) == VM_READY)
        vm_step(p);
    return p;
}

static vm_proc *spawn_owner(void)
{
    vm_proc *owner = spawn_call("opens", "");

    CHECK(vm_finish(owner) == VM_DONE);
    return owner;
}

static const char *closing(vm_proc *owner)
{
    vm_proc *p = vm_spawn();
    vm_term arg = enif_make_copy(vm_env(p), vm_result(owner));

    vm_call_array(p, lib, "closes", 1, &arg);
    return finished(p);
}

static bool is_open(void)
{
    struct { int fd; } probe = {dup(opened)};

    if (probe.fd >= 0)
        close(probe.fd);
    return probe.fd >= 0;
}

static void terms_in(int mode)
{
    vm_proc *owner = spawn_owner(), *p;
    char closed[32];

    snprintf(closed, sizeof closed, "{%d,0}", -EBADF);
    p = with_term(owner, mode, -1);
    until_selected(p, 1);
    ring(opened);
    CHECK_TEXT(finished(p), "{1,3}");
    CHECK_TEXT(finished(with_term(owner, mode, 1)), "{0,0}");

    /* closed while it is waited for */
    p = with_term(owner, mode, -1);
    until_selected(p, 1);
    CHECK_TEXT(closing(owner), "1");
    CHECK_TEXT(closing(owner), "0");
    CHECK(is_open());
    CHECK_TEXT(finished(p), closed);
    EVENTUALLY(!is_open());
    CHECK_TEXT(finished(with_term(owner, mode, -1)), "error:badarg");
    vm_free(owner);

    /* its owner dies */
    owner = spawn_owner();
    p = with_term(owner, mode, -1);
    until_selected(p, 1);
    vm_free(owner);
    CHECK_TEXT(finished(p), closed);
    EVENTUALLY(!is_open());

    /* the waiter dies, then the term is garbage */
    owner = spawn_owner();
    p = with_term(owner, mode, -1);
    until_selected(p, 1);
    vm_free(p);
    CHECK(is_open());
    vm_call(owner, lib, "opens", "");
    vm_finish(owner);
    vm_free(owner);
    EVENTUALLY(vm_counts().selects == 0);
}

TEST(terms, "a descriptor with a term is closed when it is told, its owner "
     "dies, or nobody has the term, and never under a waiter")
{
    in_all_modes(terms_in);
}

/* -- numbers ------------------------------------------------------------- */

/* What is known of a number is in memory that is made for 256 at once. */
TEST(numbers, "a descriptor may have any number; the first that is far from the "
     "others needs memory")
{
    enum { FAR = 512, FARTHER = 768 };
    vm_proc *p;
    const char *is = "";
    char no_memory[16];
    int fd;

    snprintf(no_memory, sizeof no_memory, "%d", -ENOMEM);
    terms_in(1);                /* the functions have their records */
    least = FARTHER;
    p = spawn_call("opens", "");
    vm_fail(VM_F_MALLOC, 1, true);
    vm_finish(p);
    vm_fail(0, 0, false);
    CHECK_TEXT(outcome(p), "error:enomem");
    CHECK(!is_open());
    vm_free(p);
    least = FAR;
    fd = numbered_event();
    for (long n = 1; n < 10 && strcmp(is, no_memory); n++) {
        vm_fail(VM_F_MALLOC, n, false);
        is = answer(1, fd, FAIR_READ, 1);
        vm_fail(0, 0, false);
    }
    CHECK_TEXT(is, no_memory);
    CHECK_TEXT(answer(1, fd, FAIR_READ, 1), "0");
    close(fd);
    for (int i = 0; i < 3 && !check_failures(); i++) {
        least = (const int[]){254, FAR, FARTHER}[i];
        terms_in(1);
    }
    least = 0;
}

/* -- memory -------------------------------------------------------------- */

static void memory_in(int mode)
{
    bool failed = true;

    for (long n = 1; n < 300 && failed && !check_failures(); n++) {
        int fd = eventfd(0, 0);
        char tasks[4096];
        const char *is;
        vm_proc *p;

        vm_fail(VM_F_MEMORY | VM_F_THREAD | VM_F_SELECT, n, n % 2);
        p = begin(mode, fd, FAIR_READ, 30);
        if (vm_state(p) == VM_WAITING)
            ring(fd);
        vm_run(p, 20000);
        failed = vm_failed();
        vm_fail(0, 0, false);
        is = outcome(p);
        if (vm_state(p) == VM_WAITING)
            printf("%s\n", node_tasks(tasks, sizeof tasks));
        check_that(!strcmp(is, "1") || !strcmp(is, "0") || is[0] == '-'
                   || !strcmp(is, "error:enomem"), __FILE__, __LINE__,
                   "without call %ld for memory: %s", n, is);
        vm_free(p);
        close(fd);
    }
}

TEST(memory, "a wait without memory, thread or selection ends with an error")
{
    in_all_modes(memory_in);
}

/* The thread has no record of its own then, and gets one from its work. */
TEST(poor_thread, "a thread that started without memory takes the work that "
     "comes later")
{
    for (int k = 0; k < 60 && !check_failures(); k++) {
        int fd = eventfd(0, 0);
        vm_proc *p;

        vm_fail(VM_F_MEMORY | VM_F_THREAD | VM_F_SELECT, 1 + k % 6, k % 2);
        p = begin(MODES - 1, fd, FAIR_READ, 30);
        if (vm_state(p) == VM_WAITING)
            ring(fd);
        vm_run(p, 10000);
        vm_fail(0, 0, false);
        CHECK(strcmp(outcome(p), "waiting"));
        vm_free(p);
        close(fd);
    }
}
