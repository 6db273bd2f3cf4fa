/*
 * test_wait.c - fair_wait: what it answers, in every mode; what is left when the
 * caller dies at any point, memory is out at any place, or the VM cannot select.
 */
#include <dirent.h>

#define NEEDS_TASKS
#include "descriptors.h"

static ErlNifFunc nifs[] = {DESCRIPTOR_NIFS};

FAIR_NIF_INIT(test_wait, nifs, NULL, NULL, NULL)

/* -- it waits ----------------------------------------------------------------- */

static int open_fds(void)
{
    DIR *dir = opendir("/proc/self/fd");
    int n = 0;

    while (readdir(dir))
        n++;
    closedir(dir);
    return n;
}

static void wait_for(int mode, bool owned)
{
    ErlNifEnv *env = enif_alloc_env();
    vm_proc *owner = NULL, *p;
    uint64_t begin_ns;
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
    begin_ns = vm_now();
    CHECK_TEXT(answer(WAIT("1,20")), "0");
    CHECK_NUMBERS(vm_now() - begin_ns, >=, 20 * 1000000);
    p = WAIT("1,-1");
    until_selected(p, 1);
    CHECK_TEXT(answer(WAIT("1,-1")), "-16");
    CHECK_TEXT(answer(spawn_with(in_nth_mode("wait", (mode + 1) % MODES), fd,
                                 "1,1000")), "-16");
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
    CHECK(write(fds[1], "x", 1) == 1);
    CHECK_TEXT(answer(p), "1");
    drain(fds[0]);
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

static void one_wait(int mode)
{
    wait_for(mode, false);
    wait_for(mode, true);
}

TEST(all_modes, "a body waits for a descriptor in every mode, and a second "
     "one gets an error, since it is busy")
{
    int before = open_fds();

    CHECK_CALL("wait_auto", "-5,1,0", "-9");
    CHECK_CALL("wait_auto", "4444,1,0", "-9");
    in_all_modes(one_wait);
    /* The poller of the stand-in has one. */
    CHECK_NUMBERS(open_fds() - before, <=, 1);
}

TEST(plain, "a body that is not awaited looks, and raises where it would wait")
{
    int fd = event();
    char args[32];

    snprintf(args, sizeof args, "%d,1,0", fd);
    CHECK_CALL("plain", args, "0");
    for (int ms = -1; ms <= 10; ms += 11) {
        snprintf(args, sizeof args, "%d,1,%d", fd, ms);
        CHECK_CALL("plain", args,
                   "error:{fairnif,{not_awaited,{test_wait,plain,3}}}");
    }
    eventfd_write(fd, 1);
    CHECK_CALL("plain", args, "1");
    close(fd);
}

TEST(in_a_row, "a body waits very often, for a message that comes late as well")
{
    int fd = event();

    for (int late = 0; late < 2; late++) {
        VM_WORSE(late_events_us, late ? 300 : 0);
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

static void say_other(vm_proc *p)
{
    ErlNifPid pid = {vm_pid(p)};
    ErlNifEnv *env = enif_alloc_env();

    enif_send(NULL, &pid, env, vm_parse(env, "{other,settle}"));
    enif_free_env(env);
}

TEST(late, "an event that comes when the time is up leaves no message, and the "
     "others where they are; or the caller dies just then")
{
    int fd = event();

    VM_WORSE(late_events_us, 5000);
    for (int i = 0; i < MODES; i++)
        for (int k = 0; k < 20; k++) {
            vm_proc *p = spawn_wait(i, fd, FAIR_READ, 3);

            until_waiting(p);
            say_other(p);
            usleep((unsigned)k / 2 * 500);
            eventfd_write(fd, 1);
            if (k % 2) {
                const char *is;

                vm_finish(p);
                CHECK_NUMBERS(vm_messages(p), ==, 1);
                is = finished(p);
                check_that(!strcmp(is, "0") || !strcmp(is, "1"), __FILE__,
                           __LINE__, "%s: %s", in_nth_mode("", i), is);
            } else {
                vm_free(p);
                ALL_OVER();
            }
            drain(fd);
        }
    close(fd);
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
            A_SLICE(p);
    if (event_first)
        eventfd_write(fd, 1);
    vm_kill(p);
    vm_free(p);
    if (!event_first)
        eventfd_write(fd, 1);
    EVENTUALLY(node_stacks() == 0);
    drain(fd);
    /* No task waits for it any more, and it works. */
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
    ALL_OVER();
    check_that(!check_failures(), __FILE__, __LINE__,
               "%s, %s, killed after %d steps", in_nth_mode("take", mode),
               owned ? "owned" : "not owned", steps);
}

TEST(kills, "a caller that dies at any point leaves a descriptor that others "
     "can wait for")
{
    for (int kind = 1; kind <= VM_WAYS; kind++) {
        VM_WORSE(dead_heaps_on, kind);
        VM_WORSE(late_stops, kind == 2);
        VM_WORSE(late_events_us, kind == 3 ? 500 : 0);
        for (int i = 0; i < MODES; i++)
            for (int steps = 0; steps < 7 && !check_failures(); steps++)
                for (int k = 0; k < 4; k++)
                    kill_after(i, k & 1, steps, k & 2);
    }
}

/* -- what fails ---------------------------------------------------------------------- */

static bool is_one_of(const char *is, const char *const *those)
{
    while (*those && strcmp(is, *those) != 0)
        those++;
    return *those;
}

/* The nth such call fails, or all from there on; true when there were n. */
static bool without(int mode, bool owned, unsigned what, long n, bool on)
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

    vm_fail(what, n, on);
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
    ALL_OVER();
    return failed;
}

TEST(no_memory, "memory out at any place is an answer or an error, and nothing "
     "is lost")
{
    for (int i = 0; i < MODES && !check_failures(); i++)
        for (int owned = 0; owned < 2; owned++) {
            long n = 1;

            while (without(i, owned, VM_F_MEMORY | VM_F_THREAD, n, n % 2)
                   && !check_failures())
                n++;
            CHECK_NUMBERS(n, >, 1);
        }
}

TEST(no_select, "a descriptor that the VM cannot watch is an error, and no "
     "wait")
{
    for (int i = 0; i < MODES && !check_failures(); i++)
        for (int owned = 0; owned < 2; owned++)
            CHECK(without(i, owned, VM_F_SELECT, 1, false));
}

TEST(no_second_select, "the second of two that the VM cannot watch is an "
     "error, and the first leaves no message")
{
    VM_WORSE(late_events_us, 1000);
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

/* The thread has no record of its own then, and gets one from its work. */
TEST(poor_thread, "a thread that started without memory takes the work that "
     "comes later")
{
    for (int k = 0; k < 60 && !check_failures(); k++) {
        int fd = event();
        vm_proc *p;

        vm_fail(VM_F_MEMORY | VM_F_THREAD | VM_F_SELECT, 1 + k % 6, k % 2);
        p = spawn_wait(MODES - 1, fd, FAIR_READ, 30);
        until_waiting(p);
        if (vm_state(p) == VM_WAITING)
            eventfd_write(fd, 1);
        vm_run(p, 10000);
        vm_fail(0, 0, false);
        CHECK(strcmp(outcome(p), "waiting"));
        vm_free(p);
        close(fd);
    }
}
