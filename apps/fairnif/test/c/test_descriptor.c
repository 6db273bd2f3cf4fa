/*
 * test_descriptor.c - descriptors and their terms: who is notified when one is
 * closed, when it is, by which numbers they are known, what outlives a library.
 */
#define NEEDS_TASKS
#include "descriptors.h"

static ErlNifFunc nifs[] = {DESCRIPTOR_NIFS};

FAIR_NIF_INIT(test_descriptor, nifs, NULL, NULL, NULL)

/* p, which waits for it, gets what it waits for; then its owner closes it. */
static void rung_and_shut(vm_proc *p, int fd, vm_term fd_term)
{
    eventfd_write(fd, 1);
    CHECK_TEXT(answer(p), "1");
    CHECK_TEXT(shut_term(fd_term), "1");
    EVENTUALLY(!is_open(fd));
}

/* -- closing -------------------------------------------------------------------- */

TEST(closed, "a task that waits for a descriptor that is closed gets ebadf, "
     "at whatever point it is")
{
    ErlNifEnv *env = enif_alloc_env();

    for (int late = 0; late < 2; late++) {
        VM_WORSE(late_stops, late);
        VM_WORSE(late_events_us, late ? 1000 : 0);
        for (int i = 0; i < MODES; i++)
            for (int steps = 0; steps < 6; steps++) {
                int fd = event();
                vm_term fd_term;
                vm_proc *owner = owner_of(fd, env, &fd_term), *p;
                const char *is;

                p = spawn_with(in_nth_mode("wait", i), fd_term, "1,-1");
                for (int k = 0; k < steps; k++)
                    if (vm_state(p) == VM_READY || vm_state(p) == VM_WAITING)
                        A_SLICE(p);
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

static void terms_in(int mode)
{
    const char *wait = in_nth_mode("wait", mode);
    ErlNifEnv *env = enif_alloc_env();
    vm_proc *owner, *p;
    vm_term fd_term;
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
    p = spawn_with(wait, fd_term, "1,-1");
    until_selected(p, 1);
    enif_clear_env(env);
    CHECK(is_open(fd));
    vm_free(p);
    EVENTUALLY(!is_open(fd));
    vm_free(owner);

    /* closed, then its owner dies, while a task waits for it and has it */
    for (int dies = 0; dies < 2; dies++) {
        fd = event();
        owner = owner_of(fd, env, &fd_term);
        p = spawn_with(wait, fd_term, "1,-1");
        until_selected(p, 1);
        if (dies)
            vm_kill(owner);
        else
            CHECK_TEXT(shut_term(fd_term), "1");
        CHECK_TEXT(shut_term(fd_term), "0");
#ifndef VM_REAL                 /* where p is not asked before */
        CHECK(is_open(fd));
#endif
        CHECK_TEXT(answer(p), "-9");
        EVENTUALLY(!is_open(fd));
        CHECK_TEXT(answer(spawn_with(wait, fd_term, "1,0")), "closed");
        vm_free(owner);
    }
    fd = event();
    vm_free(owner_of(fd, env, &fd_term));
    EVENTUALLY(!is_open(fd));
    enif_free_env(env);
}

TEST(terms, "a descriptor is passed once, and goes when closed, when its owner "
     "dies, or with its term, and never while a task waits for it")
{
    in_all_modes(terms_in);
}

/* -- numbers ------------------------------------------------------------- */

static void renumbered_in(int mode)
{
    int a[2], b[2];
    vm_proc *p, *q;

    pair(a);
    p = spawn_wait(mode, a[0], FAIR_READ, -1);
    until_selected(p, 1);
    close(a[0]);
    pair(b);
    CHECK_NUMBERS(b[0], ==, a[0]);
    q = spawn_wait(mode, b[0], FAIR_READ, -1);
    until_selected(q, 2);
    CHECK(write(b[1], "x", 1) == 1);
    CHECK_TEXT(answer(q), "1");
    CHECK(write(a[1], "x", 1) == 1);
    CHECK_TEXT(answer(p), "1");
    close(a[1]);
    close(b[0]);
    close(b[1]);
}

TEST(renumbered, "who does not own a descriptor waits on when it is closed; the "
     "same number of another file is not busy")
{
    in_all_modes(renumbered_in);
}

/* With the least number that is free from there on. */
static int event_from(int least)
{
    int low = event(), fd = fcntl(low, F_DUPFD, least);

    close(low);
    return fd;
}

static void numbered(int fd)
{
    ErlNifEnv *env = enif_alloc_env();
    vm_term fd_term;
    vm_proc *owner = owner_of(fd, env, &fd_term), *p;

    p = spawn_with("wait_auto", fd_term, "1,-1");
    until_selected(p, 1);
    CHECK_TEXT(answer(spawn_with("wait_auto", fd_term, "1,-1")), "-16");
    rung_and_shut(p, fd, fd_term);
    vm_free(owner);
    enif_free_env(env);
}

/* No memory from the heap, again and again, until the answer is this one. Each
 * thread has a record of the function first: it makes one in the call between,
 * which comes to no number. */
static void without_memory(const char *name, const char *args,
                           const char *expected, const char *harmless)
{
    const char *is = "";

    for (int i = 0; i < 100 && strcmp(is, expected); i++) {
        vm_fail(VM_F_MALLOC, 1, true);
        is = answer(spawn_await(name, args));
        vm_fail(0, 0, false);
        answer(spawn_await(name, harmless));
    }
    CHECK_TEXT(is, expected);
}

/* What is known of a number is in memory that is made for 256 at once: where
 * the first one is far from all others that memory may be out. */
TEST(numbers, "a descriptor may have any number, and memory may be out for it")
{
    enum { FAR = 512, FARTHER = 768 };
    int far = event_from(FAR), farther = event_from(FARTHER);
    char args[32];

    snprintf(args, sizeof args, "%d", far);
    without_memory("term", args, "none", "4444");
    CHECK(is_open(far));
    numbered(far);
    snprintf(args, sizeof args, "%d,1,1", farther);
    without_memory("wait_auto", args, "-12", "4444,1,1");
    CHECK_TEXT(answer(spawn_wait(1, farther, FAIR_READ, 1)), "0");
    numbered(farther);
    numbered(event_from(254));
}

/* -- loaded again --------------------------------------------------------- */

TEST(runtime_again, "a descriptor outlives the module that knows it")
{
    ErlNifEnv *env = enif_alloc_env();
    vm_proc *shell = vm_spawn(), *owner, *p;
    int fd = event(), error;
    vm_term fd_term;

    owner = owner_of(fd, env, &fd_term);
    p = spawn_with("wait_auto", fd_term, "1,-1");
    until_selected(p, 1);
    node_runtime_again(shell, NULL, &error);
    CHECK_NUMBERS(error, ==, 0);
    vm_free(shell);
    rung_and_shut(p, fd, fd_term);
    vm_free(owner);
    enif_free_env(env);
}
