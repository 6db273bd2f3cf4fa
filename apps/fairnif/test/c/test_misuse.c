/*
 * test_misuse.c - bodies that use their task as they must not: an error that
 * says so, once, and nothing worse.
 */
#define _GNU_SOURCE
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "check.h"

/* -- what is refused ------------------------------------------------------- */

/* no_root(How, What): has one root, and names another */
static ERL_NIF_TERM no_root(fair_task *t)
{
    unsigned other = fair_root_new(t, fair_arg(t, 1)) + 1;
    ERL_NIF_TERM head;
    int how;

    if (!fair_get_int(t, fair_arg(t, 0), &how))
        return fair_badarg(t);
    switch (how) {
    case 0: fair_root_set(t, other, fair_arg(t, 1)); break;
    case 1: return fair_root_get(t, (unsigned)-1);
    case 2: fair_list_push(t, other, fair_arg(t, 1)); break;
    case 3: return fair_list_next(t, other, &head) ? head : fair_arg(t, 1);
    case 4: fair_list_reverse(t, other); return fair_arg(t, 1);
    case 5: fair_root_drop(t, other - 1); fair_root_drop(t, other - 1); break;
    case 6: fair_root_drop(t, 0);
    }
    note("went on");
    return fair_arg(t, 1);
}

/* twice(Binary, What): what is done with a binary that was released */
static ERL_NIF_TERM twice(fair_task *t)
{
    fair_bytes bin;
    fair_bin new;
    int what;

    if (!fair_get_bytes(t, fair_arg(t, 0), &bin)
        || !fair_get_int(t, fair_arg(t, 1), &what)
        || !fair_new_bin(t, 10, &new))
        return fair_badarg(t);
    fair_tick(t, 1);
    fair_release_bytes(t, &bin);
    fair_release_bin(t, &new);
    switch (what) {
    case 0: fair_release_bytes(t, &bin); break;
    case 1: fair_make_bytes(t, &bin); break;
    case 2: fair_release_bin(t, &new); break;
    case 3: fair_make_bin(t, &new); break;
    default: fair_resize_bin(t, &new, 100);
    }
    note("went on");
    return fair_arg(t, 0);
}

static ERL_NIF_TERM moves(fair_task *t)
{
    int where;

    if (!fair_get_int(t, fair_arg(t, 0), &where))
        return fair_badarg(t);
    fair_move(t, (enum fair_mode)where);
    return fair_arg(t, 0);
}

static void nothing(void *unused)
{
    (void)unused;
}

static ERL_NIF_TERM calls_in(fair_task *t)
{
    int where;

    if (!fair_get_int(t, fair_arg(t, 0), &where))
        return fair_badarg(t);
    fair_offload(t, (enum fair_mode)where, 1, nothing, NULL);
    return fair_arg(t, 0);
}

/* -- what is ignored ------------------------------------------------------- */

static fair_mutex mutex = FAIR_MUTEX_INIT;
static volatile ERL_NIF_TERM no_term;

/* All that may pause, where nothing may. */
static void uses_task(void *arg)
{
    fair_task *t = arg;

    for (int i = 0; i < 1000; i++)
        fair_tick(t, i % 7 ? 1 : (size_t)-1);
    fair_move(t, FAIR_DIRTY_IO);
    fair_offload(t, FAIR_AUTO, 1 << 20, nothing, NULL);
    fair_offload(t, FAIR_DIRTY_IO, 0, nothing, NULL);
    fair_offload(t, FAIR_THREADED, 0, nothing, NULL);
    fair_root_set(t, 99, no_term);
    CHECK(fair_sleep(t, 1000) < 0);
    note("used");
}

/* away(How) -> How */
static ERL_NIF_TERM away(fair_task *t)
{
    int how;

    if (!fair_get_int(t, fair_arg(t, 0), &how))
        return fair_badarg(t);
    fair_tick(t, 1);
    switch (how) {
    case 0: fair_offload(t, FAIR_AUTO, 1, uses_task, t); break;
    case 1: fair_offload(t, FAIR_AUTO, 1 << 30, uses_task, t); break;
    case 2: fair_offload(t, FAIR_DIRTY_IO, 0, uses_task, t); break;
    case 3: fair_offload(t, FAIR_THREADED, 0, uses_task, t); break;
    case 4: fair_defer(t, uses_task, t); break;
    }
    for (int i = 0; i < 100; i++)
        fair_tick(t, 1);
    return fair_arg(t, 0);
}

static void locks(void *arg)
{
    fair_task *t = arg;

    fair_mutex_lock(t, &mutex);
    fair_mutex_lock(t, &mutex);
}

/* One lock, in the function and round it. */
static ERL_NIF_TERM locks_away(fair_task *t)
{
    fair_offload(t, FAIR_AUTO, 1, locks, t);
    CHECK(fair_mutex_unlock(t, &mutex));
    fair_tick(t, 1);
    return enif_make_atom(fair_env(t), "ok");
}

static void passes_gate_locked(void *arg)
{
    fair_task *t = arg;

    fair_mutex_lock(t, &mutex);
    gate_pass(NULL);
    fair_mutex_unlock(t, &mutex);
}

/* The one that waits for the lock is woken by a thread of the pool. */
static ERL_NIF_TERM unlocks_away(fair_task *t)
{
    fair_offload(t, FAIR_THREADED, 0, passes_gate_locked, t);
    return enif_make_atom(fair_env(t), "ok");
}

static ERL_NIF_TERM waits_for_lock(fair_task *t)
{
    fair_mutex_lock(t, &mutex);
    return enif_make_atom(fair_env(t), "ok");
}

static void asks(void *arg)
{
    fair_task *t = arg;

    fair_mutex_lock(t, &mutex);
    note("%d", fair_mutex_unlock(t, &mutex));
}

/* asks_away(): asks for a lock that another has, wherever nothing may wait */
static ERL_NIF_TERM asks_away(fair_task *t)
{
    fair_defer(t, asks, t);
    fair_offload(t, FAIR_NORMAL, 1, asks, t);
    fair_offload(t, FAIR_AUTO, 1, asks, t);
    fair_offload(t, FAIR_DIRTY_IO, 1, asks, t);
    fair_offload(t, FAIR_THREADED, 1, asks, t);
    return enif_make_atom(fair_env(t), "ok");
}

static void tick_on(void *arg)
{
    for (int i = 0; i < 200000; i++)
        fair_tick(arg, 1);
}

static ERL_NIF_TERM ticks_on(fair_task *t)
{
    fair_offload(t, FAIR_AUTO, 1, tick_on, t);
    return enif_make_atom(fair_env(t), "ok");
}

static ErlNifFunc nifs[] = {
    ALL_MODES("no_root", 2, no_root),
    ALL_MODES("twice", 2, twice),
    FAIR_NIF("moves", 1, moves, FAIR_AUTO),
    FAIR_NIF("calls_in", 1, calls_in, FAIR_AUTO),
    AWAITED_MODES("away", 1, away),
    AWAITED_MODES("locks_away", 0, locks_away),
    AWAITED_MODES("asks_away", 0, asks_away),
    FAIR_NIF("asks_away_unwinding", 0, asks_away,
             FAIR_AUTO | FAIR_MAY_WAIT | FAIR_CLEANUP),
    FAIR_NIF("unlocks_away", 0, unlocks_away, FAIR_AUTO | FAIR_MAY_WAIT),
    FAIR_NIF("waits_for_lock", 0, waits_for_lock, FAIR_AUTO | FAIR_MAY_WAIT),
    FAIR_NIF("ticks_on", 0, ticks_on, FAIR_NORMAL),
};
FAIR_NIF_INIT(test_misuse, nifs, NULL, NULL, NULL)

#define REFUSED(ERROR, NAME, ARITY) \
    "error:{fairnif,{" ERROR ",{test_misuse," NAME "," ARITY "}}}"

/* In each mode; the number of the way is the first or the last argument. */
static void check_refused(const char *body, const char *format, int ways,
                          const char *error)
{
    for (int i = 0; i < 6; i++) {
        const char *name = in_mode(body, &modes[i]);
        char args[32], should[128];

        snprintf(should, sizeof should, REFUSED("%s", "%s", "2"), error, name);
        for (int how = 0; how < ways; how++) {
            snprintf(args, sizeof args, format, how);
            CHECK_CALL(name, args, should);
        }
        CHECK_MISUSES(name, ways);
    }
    CHECK_TEXT(notes(), "");
}

TEST(refused, "an invalid root is an error, and a released binary is "
     "not used again")
{
    check_refused("no_root", "%d,{1}", 7, "bad_root");
    check_refused("twice", "<<1>>,%d", 5, "released_bin");
}

TEST(no_move, "a move to where there is no moving is an error")
{
    static const char *const bad[] = {"0", "4", "5", "6"};

    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++)
        CHECK_CALL("moves", bad[i], REFUSED("bad_mode", "moves", "1"));
    CHECK_CALL("moves", "3", "3");
    CHECK_NUMBERS(node_counter("moves", "rule_violations"), ==, 4);
    CHECK_CALL("calls_in", "0", REFUSED("bad_mode", "calls_in", "1"));
    CHECK_CALL("calls_in", "6", REFUSED("bad_mode", "calls_in", "1"));
}

/* Each use counts but for fair_root_set's term, which is looked at first. */
TEST(is_away, "a function that must not use the task cannot harm it")
{
    for (unsigned pause = 0; pause < 2; pause++) {
        node_set("pause_every_tick", pause);
        for (int i = 0; i < MODES; i++) {
            const char *name = in_nth_mode("away", i);
            long before = node_counter(name, "rule_violations");

            for (int how = 0; how < 5; how++) {
                char arg[8];

                snprintf(arg, sizeof arg, "%d", how);
                CHECK_TEXT(finished(spawn_await(name, arg)), arg);
                CHECK_TEXT(notes(), "used");
                clear_notes();
            }
            check_that(node_counter(name, "rule_violations") - before == 5 * 1006,
                       __FILE__, __LINE__, "%s: %ld rule_violations", name,
                       node_counter(name, "rule_violations") - before);
        }
    }
}

TEST(locked, "a lock that is taken in such a function is the task's")
{
    for (int i = 0; i < MODES; i++)
        CHECK_AWAIT(in_nth_mode("locks_away", i), "", "ok");
}

TASKS_TEST(unlocked, "a body that waits for a lock of such a function gets it")
{
    vm_proc *p = spawn_await("unlocks_away", ""), *q;

    until_waiting(p);
    EVENTUALLY(gate_waiting() == 1);
    q = spawn_await("waits_for_lock", "");
    until_waiting(q);
    CHECK(vm_state(q) == VM_WAITING);
    gate_open();
    CHECK_TEXT(finished(q), "ok");
    CHECK_TEXT(finished(p), "ok");
    CHECK_NUMBERS(node_counter("unlocks_away", "rule_violations"), ==, 1);
}

TASKS_TEST(not_locked, "such a function never waits for a lock that another "
     "has")
{
    vm_proc *p = spawn_await("unlocks_away", "");

    until_waiting(p);
    EVENTUALLY(gate_waiting() == 1);
    for (int i = 0; i <= MODES; i++) {
        const char *name = i < MODES ? in_nth_mode("asks_away", i)
            : "asks_away_unwinding";

        clear_notes();
        CHECK_AWAIT(name, "", "ok");
        CHECK_TEXT(notes(), "00000");
        CHECK_MISUSES(name, 10);
    }
    gate_open();
    CHECK_TEXT(finished(p), "ok");
}

/* -- what is said ---------------------------------------------------------- */

static int to[2], kept;

static void catch_stderr(void)
{
    /* A sanitizer that has something to say of tasks does so at the first. */
    CHECK_CALL("moves", "3", "3");
    CHECK(pipe2(to, O_NONBLOCK) == 0);
    kept = dup(STDERR_FILENO);
    /* The writer's end waits, as a terminal's or a logger's does. */
    CHECK(fcntl(to[1], F_SETFL, 0) == 0);
    CHECK(dup2(to[1], STDERR_FILENO) >= 0);
}

static void give_back_stderr(void)
{
    dup2(kept, STDERR_FILENO);
    close(kept);
    close(to[0]);
    close(to[1]);
}

TEST(once, "a rule that a function breaks repeatedly is reported once a second")
{
    char said[4096];
    ssize_t size;

    vm_options.virtual_time = true;
    catch_stderr();
    CHECK_CALL("ticks_on", "", "ok");
    CHECK_CALL("ticks_on", "", "ok");
    vm_work(1000000000);
    CHECK_CALL("ticks_on", "", "ok");
    size = read(to[0], said, sizeof said - 1);
    give_back_stderr();
    CHECK(size > 0);
    said[size > 0 ? size : 0] = '\0';
    CHECK_NUMBERS(node_counter("ticks_on", "rule_violations"), ==, 600000);
#define LINE "fairnif: test_misuse:ticks_on/0 used its task in a function passed " \
    "to fair_offload or fair_defer: tick before and after it\n"
    CHECK_TEXT(said, LINE LINE);
}

TEST(forgotten, "a library that is loaded without load_info says what to call")
{
    vm_proc *p = vm_spawn();
    char said[1024] = "";
    int error = 0;

    catch_stderr();
    CHECK(!vm_load(p, nif_init, enif_make_int(vm_env(p), 0), NULL, &error));
    CHECK(read(to[0], said, sizeof said - 1) > 0);
    give_back_stderr();
    CHECK_NUMBERS(error, ==, FAIR_E_LOAD_INFO);
    CHECK(strstr(said, "test_misuse") && strstr(said, "fairnif:load_info()"));
    vm_free(p);
}

TEST(full, "a full pipe as standard error blocks no scheduler")
{
    char page[4096] = "";

    catch_stderr();
    CHECK(fcntl(to[1], F_SETFL, O_NONBLOCK) == 0);
    while (write(to[1], page, sizeof page) > 0)
        ;
    while (write(to[1], page, 1) > 0)
        ;
    CHECK(fcntl(to[1], F_SETFL, 0) == 0);
    for (int i = 0; i < 10; i++)
        CHECK_CALL("ticks_on", "", "ok");
    give_back_stderr();
    CHECK_NUMBERS(node_counter("ticks_on", "rule_violations"), ==, 2000000);
}

/* -- what is no pending value ---------------------------------------------- */

static const char *await_text(const char *text)
{
    vm_proc *p = vm_spawn();

    node_await_term(p, vm_parse(vm_env(p), text));
    return finished(p);
}

TEST(foreign, "what looks pending and is not fairnif's raises; anything else "
     "is a value")
{
    CHECK_TEXT(await_text("{fairnif_pending,x}"),
               "error:{fairnif,not_pending}");
    CHECK_TEXT(await_text("{fairnif_pending,#Ref,1,2}"),
               "error:{fairnif,not_pending}");
    CHECK_TEXT(await_text("{fairnif_pending}"), "{fairnif_pending}");
    CHECK_TEXT(await_text("fairnif_pending"), "fairnif_pending");
    CHECK_TEXT(await_text("[{fairnif_pending,x}]"), "[{fairnif_pending,x}]");
}
