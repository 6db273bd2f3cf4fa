/*
 * test_low.c - which of the pool's threads compute: at which priority, and that
 * none waits there that has what others wait for.
 *
 * In all tests the runtime aborts where a low thread takes a lock of the runtime's
 * (FAIRNIF_ASSERT).
 */
#define _GNU_SOURCE
#include <pthread.h>
#include <semaphore.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#define NEEDS_TASKS
#include "check.h"
#include "fairnif_resource.h"
#ifndef VM_REAL
#include "base/config.h"
#endif

/* -- bodies -------------------------------------------------------------- */

static fair_mutex mutex = FAIR_MUTEX_INIT;

/* Above the main thread's. */
static int nice_here(void)
{
    return getpriority(PRIO_PROCESS, (id_t)syscall(SYS_gettid))
        - getpriority(PRIO_PROCESS, (id_t)getpid());
}

static void burn(long ms)
{
    struct timespec now;
    long end = 0, at;

    do {
        clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
        at = now.tv_sec * 1000 + now.tv_nsec / 1000000;
        end = end ? end : at + ms;
    } while (at < end);
}

/* nice_of(Ms): what it had, after Ms of work */
static ERL_NIF_TERM nice_of(fair_task *t)
{
    int ms;

    if (!enif_get_int(fair_env(t), fair_arg(t, 0), &ms))
        return fair_badarg(t);
    burn(ms);
    return enif_make_int(fair_env(t), nice_here());
}

/* nap_or_burn(Ms): 0 sleeps for 3 ms */
static ERL_NIF_TERM nap_or_burn(fair_task *t)
{
    int ms;

    if (!enif_get_int(fair_env(t), fair_arg(t, 0), &ms))
        return fair_badarg(t);
    if (ms == 0)
        usleep(3000);
    else
        burn(ms);
    return enif_make_int(fair_env(t), nice_here());
}

static ERL_NIF_TERM nice_after_wait(fair_task *t)
{
    fair_sleep(t, 1);
    return enif_make_int(fair_env(t), nice_here());
}

static void work(void *ms)
{
    burn(*(int *)ms);
    *(int *)ms = nice_here();
}

static ERL_NIF_TERM nice_away(fair_task *t)
{
    int ms;

    if (!enif_get_int(fair_env(t), fair_arg(t, 0), &ms))
        return fair_badarg(t);
    fair_offload(t, FAIR_THREADED, 0, work, &ms);
    return enif_make_int(fair_env(t), ms);
}

/* Before it has the lock, while it has, and after the slice. */
static ERL_NIF_TERM nice_locked(fair_task *t)
{
    int before = nice_here(), with, unlocked;

    fair_mutex_lock(t, &mutex);
    fair_tick(t, 1);
    with = nice_here();
    fair_mutex_unlock(t, &mutex);
    fair_tick(t, 1);
    unlocked = nice_here();
    return enif_make_tuple3(fair_env(t), enif_make_int(fair_env(t), before),
                            enif_make_int(fair_env(t), with),
                            enif_make_int(fair_env(t), unlocked));
}

/* It is short but for what it does with the lock. */
static ERL_NIF_TERM nice_before(fair_task *t)
{
    int before = nice_here();

    fair_mutex_lock(t, &mutex);
    burn(3);
    fair_mutex_unlock(t, &mutex);
    return enif_make_int(fair_env(t), before);
}

/* A lock is tried at no point where a body may pause: it stays on its thread until
 * the next tick. */
static ERL_NIF_TERM nice_tried(fair_task *t)
{
    pthread_t thread = pthread_self();
    int got = fair_mutex_trylock(t, &mutex), with = nice_here(), moved, ticked;

    moved = !pthread_equal(thread, pthread_self());
    fair_tick(t, 1);
    ticked = nice_here();
    fair_mutex_unlock(t, &mutex);
    return enif_make_tuple4(fair_env(t), enif_make_int(fair_env(t), got),
                            enif_make_int(fair_env(t), moved),
                            enif_make_int(fair_env(t), with),
                            enif_make_int(fair_env(t), ticked));
}

/* The runtime ends the call, at no such point either. */
static ERL_NIF_TERM fails(fair_task *t)
{
    pthread_t thread = pthread_self();

    fair_root_set(t, 77, fair_arg(t, 0));
    note("%d,%d,%d", fair_cancelled(t), pthread_equal(thread, pthread_self()) != 0,
         nice_here());
    return fair_arg(t, 0);
}

static void stack_here(void *kib)
{
    pthread_attr_t attr;
    void *low;
    size_t size = 0;

    if (pthread_getattr_np(pthread_self(), &attr) == 0) {
        pthread_attr_getstack(&attr, &low, &size);
        pthread_attr_destroy(&attr);
    }
    *(int *)kib = nice_here() == 10 ? (int)(size / 1024) : 0;
}

static ERL_NIF_TERM stack_away(fair_task *t)
{
    int kib = 0;

    fair_offload(t, FAIR_THREADED, 0, stack_here, &kib);
    return enif_make_int(fair_env(t), kib);
}

static void lock_away(void *task)
{
    burn(2);
    if (fair_mutex_trylock(task, &mutex))
        fair_mutex_unlock(task, &mutex);
    note("%d,", nice_here());
}

static ERL_NIF_TERM tries_away(fair_task *t)
{
    fair_offload(t, FAIR_THREADED, 0, lock_away, t);
    return fair_arg(t, 0);
}

/* A descriptor is made, found, waited for and closed. */
static ERL_NIF_TERM on_descriptors(fair_task *t)
{
    int ends[2], fd, ready;
    ERL_NIF_TERM term;

    if (pipe(ends) != 0 || !(term = fair_adopt_fd(t, ends[0])))
        return fair_badarg(t);
    ready = fair_get_fd(t, term, &fd) ? fair_wait(t, fd, FAIR_READ, 5) : -1;
    close(ends[1]);
    return enif_make_int(fair_env(t), ready);
}

/* sleeps(Locks): for 20 ms without a tick, maybe with a lock */
static ERL_NIF_TERM sleeps(fair_task *t)
{
    int locks;

    if (!enif_get_int(fair_env(t), fair_arg(t, 0), &locks))
        return fair_badarg(t);
    if (locks)
        fair_mutex_lock(t, &mutex);
    usleep(20000);
    fair_tick(t, 1);
    if (locks)
        fair_mutex_unlock(t, &mutex);
    return fair_arg(t, 0);
}

static ERL_NIF_TERM tells(fair_task *t)
{
    note("ran");
    return fair_arg(t, 0);
}

struct attributes {             /* as sched_setattr(2) has it */
    unsigned size, policy;
    unsigned long long flags;
    int nice;
    unsigned priority;
    unsigned long long slice, deadline, period;
};

/* A thread's slice as the kernel says it, 0 for this one; 0 where it has none to
 * say: before 6.12. */
static unsigned long long slice_of(int tid)
{
    struct attributes a = {0};

    return syscall(SYS_sched_getattr, tid, &a, sizeof a, 0) == 0 ? a.slice : 0;
}

static void slice_here(void *ns)
{
    *(unsigned long long *)ns = slice_of(0);
}

/* slice_away(Ns): with such a slice itself, which a thread that it starts has */
static ERL_NIF_TERM slice_away(fair_task *t)
{
    struct attributes a = {0};
    unsigned long away;
    unsigned long long ns;

    if (!enif_get_ulong(fair_env(t), fair_arg(t, 0), &away))
        return fair_badarg(t);
    syscall(SYS_sched_getattr, 0, &a, sizeof a, 0);
    a.slice = away;
    syscall(SYS_sched_setattr, 0, &a, 0);
    fair_offload(t, FAIR_THREADED, 0, slice_here, &ns);
    return enif_make_uint64(fair_env(t), ns);
}

static fair_resource_type *things;

static void cleanup(fair_task *t, void *data)
{
    (void)data;
    burn(5);
    note(fair_where(t) == FAIR_NORMAL ? "here," : "on the pool,");
}

static int load(ErlNifEnv *env, void **priv, ERL_NIF_TERM info)
{
    static const fair_resource_options options = {
        .name = "thing", .cleanup = cleanup
    };

    (void)priv, (void)info;
    things = fair_resource_open(env, &options);
    return things ? 0 : FAIR_E_NOMEM;
}

static ErlNifFunc nifs[] = {
    FAIR_NIF("nice_of", 1, nice_of, FAIR_THREADED),
    FAIR_NIF("nap_or_burn", 1, nap_or_burn, FAIR_THREADED),
    FAIR_NIF("nice_after_wait", 1, nice_after_wait, FAIR_THREADED),
    FAIR_NIF("prompt", 1, nice_of, FAIR_THREADED | FAIR_PROMPT),
    FAIR_NIF("prompt_away", 1, nice_away,
             FAIR_NORMAL | FAIR_MAY_WAIT | FAIR_PROMPT),
    FAIR_NIF("nice_away", 1, nice_away, FAIR_NORMAL | FAIR_MAY_WAIT),
    FAIR_NIF("nice_locked", 1, nice_locked, FAIR_THREADED),
    FAIR_NIF("nice_before", 1, nice_before, FAIR_THREADED),
    FAIR_NIF("nice_tried", 1, nice_tried, FAIR_THREADED),
    FAIR_NIF("fails", 1, fails, FAIR_THREADED | FAIR_CLEANUP),
    FAIR_NIF("stack_away", 1, stack_away, FAIR_NORMAL | FAIR_MAY_WAIT),
    FAIR_NIF("tries_away", 1, tries_away, FAIR_NORMAL | FAIR_MAY_WAIT),
    FAIR_NIF("on_descriptors", 1, on_descriptors, FAIR_THREADED),
    FAIR_NIF("sleeps", 1, sleeps, FAIR_THREADED),
    FAIR_NIF("tells", 1, tells, FAIR_THREADED),
    FAIR_NIF("slice_away", 1, slice_away, FAIR_NORMAL | FAIR_MAY_WAIT),
};
FAIR_NIF_INIT(test_low, nifs, load, NULL, NULL)

/* -- what begins there ---------------------------------------------------- */

static const char *call(const char *name, const char *args)
{
    return finished(spawn_await(name, args));
}

TEST(low, "what computes on a thread of the pool has a lower priority than the "
     "schedulers, also where a body called it")
{
    CHECK_TEXT(call("nice_of", "5"), "10");
    CHECK_TEXT(call("nice_away", "5"), "10");
}

TEST(prompt, "a prompt function has the priority of a scheduler there")
{
    CHECK_TEXT(call("prompt", "5"), "0");
    CHECK_TEXT(call("prompt_away", "5"), "0");
}

TEST(as_set, "the priority is as it was set, and 0 leaves it alone")
{
    node_set("pool_nice", 13);
    CHECK_TEXT(call("nice_of", "5"), "13");
    node_set("pool_nice", 4);
    CHECK_TEXT(call("nice_of", "5"), "4");
    node_set("pool_nice", 0);
    CHECK_TEXT(call("nice_of", "5"), "0");
}

static void becomes_brief(const char *function)
{
    int calls = 0;

    while (calls < 200 && strcmp(call(function, "0"), "0") != 0)
        calls++;
    check_that(calls >= 8 && calls < 200, __FILE__, __LINE__, "%d", calls);
    /* On a busy machine one may get too little of a processor to be long. */
    do
        call(function, "5");
    while (calls++ < 250 && strcmp(call(function, "0"), "10") != 0);
    CHECK_TEXT(call(function, "0"), "10");
}

TEST(brief, "after some calls that were short the next ones have the priority of a "
     "scheduler, until one was long")
{
    becomes_brief("nice_of");
    becomes_brief("nice_away");
}

static bool over;

static void *busy(void *unused)
{
    while (!__atomic_load_n(&over, __ATOMIC_RELAXED))
        ;
    return unused;
}

static void drop_thing(void *unused)
{
    (void)unused;
    fair_resource_release(fair_resource_new(things, 1));
}

TEST(kept, "a clean-up that others kept from a processor is not long: the next one "
     "is in place")
{
    pthread_t threads[8];

    node_set("slice_ns", 24000000);
    clear_notes();
    for (int i = 0; i < 8; i++)
        CHECK(pthread_create(&threads[i], NULL, busy, NULL) == 0);
    vm_on(VM_NORMAL, drop_thing, NULL);
    EVENTUALLY(is_noted("on the pool,"));
    __atomic_store_n(&over, true, __ATOMIC_RELAXED);
    for (int i = 0; i < 8; i++)
        pthread_join(threads[i], NULL);
    ALL_OVER();
    vm_on(VM_NORMAL, drop_thing, NULL);
    EVENTUALLY(node_stacks() == 0);
    CHECK_TEXT(notes(), "on the pool,here,");
}

/* Within `within` calls it is at the low priority. */
static void becomes_low(const char *function, const char *ms, int within)
{
    int calls = 0;

    while (calls <= within && strcmp(call(function, ms), "10") != 0)
        calls++;
    check_that(calls <= within, __FILE__, __LINE__, "%s: %d", function, calls);
}

/* After that many calls it is at par. */
static void comes_to_par(const char *function, int calls)
{
    while (calls-- > 0)
        call(function, "0");
    CHECK_TEXT(call(function, "0"), "0");
}

TEST(no_longer_brief, "after many short calls a few that are longer are enough")
{
    comes_to_par("nice_of", 40);
    becomes_low("nice_of", "5", 10);
}

TEST(no_longer_waits, "a function that waited, and computes from then on, has the low "
     "priority soon")
{
    comes_to_par("nap_or_burn", 20);
    becomes_low("nap_or_burn", "5", 10);
}

TEST(waits_by_fair_wait, "a body that waits with fair_wait and computes little is at "
     "par as one that blocks its thread")
{
    comes_to_par("nice_after_wait", 20);
}

/* -- who has a lock ------------------------------------------------------- */

TEST(locked, "a body that has a lock has the priority of a scheduler, from before "
     "it has it until its slice after that is up")
{
    node_set("pause_every_tick", 1);
    CHECK_TEXT(call("nice_locked", "0"), "{10,0,10}");
}

TEST(long_locked, "a function that computes for long with a lock is not short: the "
     "next call begins at the lower priority")
{
    for (int i = 0; i < 20; i++)
        CHECK_TEXT(call("nice_before", "0"), "10");
}

TEST(tried, "a function that took a lock of fairnif's is called at the priority of a "
     "scheduler from then on")
{
    clear_notes();
    CHECK_TEXT(call("tries_away", "1"), "1");
    CHECK_TEXT(call("tries_away", "1"), "1");
    CHECK_TEXT(notes(), "10,0,");
}

TEST(tried_here, "a body that tries a lock stays on its thread until it may pause, "
     "and has the priority of a scheduler from then on, and at its next calls")
{
    node_set("pause_every_tick", 1);
    CHECK_TEXT(call("nice_tried", "0"), "{1,0,10,0}");
    CHECK_TEXT(call("nice_tried", "0"), "{1,0,0,0}");
}

TEST(cleans_up, "a body whose call the runtime ends cleans up on the same thread")
{
    clear_notes();
    call("fails", "0");
    CHECK_TEXT(notes(), "1,1,10");
}

TEST(descriptors, "a body makes, finds, awaits and forgets descriptors there")
{
    CHECK_TEXT(call("on_descriptors", "0"), "-110");   /* ETIMEDOUT */
    ALL_OVER();
}

TEST(clocks, "each thread's clock for a processor's time is compared with itself, "
     "whichever thread a body begins and continues")
{
    node_set("threads", 1);
    node_set("measure_cpu", 1);
    node_set("pause_every_tick", 1);
    CHECK_TEXT(call("nice_of", "40"), "10");        /* its clock is ahead */
    for (int locks = 0; locks < 2; locks++) {
        CHECK_TEXT(call("sleeps", locks ? "1" : "0"), locks ? "1" : "0");
        CHECK_NUMBERS(node_counter("sleeps", "longest_gap_ns"), <, 10000000);
    }
}

/* -- the threads ----------------------------------------------------------- */

TEST(no_thread, "where no low thread can be started the work is done by the pool's")
{
    node_set("pool_nice", 0);
    CHECK_TEXT(call("nice_of", "5"), "0");
    node_set("pool_nice", 10);
    vm_fail(VM_F_THREAD, 1, true);
    CHECK_TEXT(call("nice_of", "5"), "0");
    CHECK_TEXT(call("nice_away", "5"), "0");
    check_that(vm_failed(), __FILE__, __LINE__, "nothing failed");
    vm_fail(0, 0, false);
    CHECK_TEXT(call("nice_of", "5"), "10");
}

TEST(stack, "a low thread has a stack as large as the pool's")
{
    check_that(atoi(call("stack_away", "0")) >= 8 * 1024, __FILE__, __LINE__,
               "%s", call("stack_away", "0"));
}

TEST(leaves, "a low thread leaves with the pool's, and comes again")
{
    vm_proc *p[4];

    node_set("threads", 4);
    for (int i = 0; i < 4; i++)
        p[i] = spawn_await("nice_of", "20");
    for (int i = 0; i < 4; i++)
        CHECK_TEXT(finished(p[i]), "10");
    node_set("threads", 1);
    EVENTUALLY(node_info("threads_started") == 1);
    node_set("threads", 4);
    for (int i = 0; i < 4; i++)
        p[i] = spawn_await("nice_of", "20");
    for (int i = 0; i < 4; i++)
        CHECK_TEXT(finished(p[i]), "10");
}

/* -- schedulers' slices ----------------------------------------------------- */

struct named {
    const char *name;
    pthread_t thread;
    int tid;
    sem_t named, over;
};

static void *waits_named(void *arg)
{
    struct named *n = arg;

    n->tid = (int)syscall(SYS_gettid);
    pthread_setname_np(pthread_self(), n->name);
    sem_post(&n->named);
    while (sem_wait(&n->over) != 0)
        ;
    return NULL;
}

TEST(slices, "normal schedulers' threads get the slice that is set, and the system's "
     "again; no other thread does")
{
    struct named n[] = {
        {.name = "7_scheduler"}, {.name = "erts_sched_7"},      /* OTP 25; 26 on */
        {.name = "7_dirty_cpu_sch"}, {.name = "erts_dcpus_7"}, {.name = "fairnif_7"}
    };
    unsigned long long usual[5];        /* a thread has its maker's */

    for (int i = 0; i < 5; i++) {
        sem_init(&n[i].named, 0, 0);
        sem_init(&n[i].over, 0, 0);
        pthread_create(&n[i].thread, NULL, waits_named, &n[i]);
        while (sem_wait(&n[i].named) != 0)
            ;
    }
    node_set("scheduler_slice_ns", 0);
    for (int i = 0; i < 5; i++)
        usual[i] = slice_of(n[i].tid);
    node_set("scheduler_slice_ns", 200000);
    for (int i = 0; i < 5 && usual[i]; i++)
        CHECK_NUMBERS(slice_of(n[i].tid), ==, i < 2 ? 200000 : usual[i]);
    node_set("scheduler_slice_ns", 0);
    for (int i = 0; i < 5; i++)
        CHECK_NUMBERS(slice_of(n[i].tid), ==, usual[i]);
    for (int i = 0; i < 5; i++) {
        sem_post(&n[i].over);
        pthread_join(n[i].thread, NULL);
    }
}

TEST_WITH(inherited, "a thread that a scheduler starts does not keep its slice", NULL,
          node_without_pool)
{
    unsigned long long usual = slice_of(0);
    char text[32];

    node_set("scheduler_slice_ns", 200000);
    snprintf(text, sizeof text, "%llu", usual);
    CHECK_TEXT(call("slice_away", "200000"), text);
}

#ifndef VM_REAL
static void halts_meanwhile(const char *name)
{
    if (strstr(name, "_low"))
        SET(fair__config.halts, true);
}

TEST_DIES(halts, "a body does not begin where the node halted while its thread was "
          "started", "it did not begin")
{
    vm_options.before_thread = halts_meanwhile;
    clear_notes();
    until_waiting(spawn_await("tells", "0"));
    EVENTUALLY(GET(fair__config.halts));
    for (int i = 0; i < 100; i++)
        nap();
    if (!*notes())
        fprintf(stderr, "it did not begin");
    abort();                    /* as the node ends: with threads at work */
}
#endif
