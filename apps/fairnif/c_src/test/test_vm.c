/*
 * test_vm.c - what of the stand-in for the VM concerns waiting does as the
 * real one: threads, monitors, mailboxes, await.  Each answer here is one that
 * OTP 25 gave.
 */
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "check.h"

/* -- the library --------------------------------------------------------- */

static ErlNifResourceType *type, *plain;
static long destroyed;

static void dtor(ErlNifEnv *env, void *obj)
{
    ErlNifPid pid;

    (void)obj;
    CHECK(enif_self(env, &pid) == NULL);
    __atomic_add_fetch(&destroyed, 1, __ATOMIC_RELEASE);
}

static void down(ErlNifEnv *env, void *obj, ErlNifPid *pid, ErlNifMonitor *mon)
{
    note(" down alive %d demonitor %d on %d", enif_is_process_alive(env, pid),
         enif_demonitor_process(env, obj, mon), enif_thread_type());
}

static int load(ErlNifEnv *env, void **priv, ERL_NIF_TERM info)
{
    ErlNifResourceTypeInit all = {dtor, NULL, down, 3, NULL};
    ErlNifResourceTypeInit one = {dtor, NULL, NULL, 1, NULL};

    (void)priv, (void)info;
    type = enif_init_resource_type(env, "all", &all, ERL_NIF_RT_CREATE, NULL);
    plain = enif_init_resource_type(env, "one", &one, ERL_NIF_RT_CREATE, NULL);
    return 0;
}

/* What the next call of nif() or dirty() does. */
static void (*now)(ErlNifEnv *env);

static ERL_NIF_TERM nif(ErlNifEnv *env, int argc, const ERL_NIF_TERM argv[])
{
    (void)argc;
    now(env);
    return argv[0];
}

static ERL_NIF_TERM identity(fair_task *t)
{
    return fair_arg(t, 0);
}

/* A runtime with a script, for await: each ask takes the next answer. */
static const char *script;
static ErlNifPid asker;
static ErlNifEnv *asked_with;   /* holds the last reference */
static ERL_NIF_TERM asked_ref;

static ERL_NIF_TERM nif_await(ErlNifEnv *env, int argc,
                              const ERL_NIF_TERM argv[])
{
    (void)argc;
    CHECK(!asked_ref || enif_compare(asked_ref, argv[1]));
    enif_clear_env(asked_with);
    asked_ref = enif_make_copy(asked_with, argv[1]);
    enif_self(env, &asker);
    note(" await");
    switch (*script++) {
    case 'w':
        return enif_make_tuple2(env, argv[1], vm_parse(env, "infinity"));
    case 't':
        return enif_make_tuple2(env, argv[1], enif_make_int(env, 20));
    case 'p':
        return argv[0];
    case 'r':
        return enif_raise_exception(env, vm_parse(env, "foreign"));
    default:
        return vm_parse(env, "{a,[value]}");
    }
}

static ERL_NIF_TERM nif_expire(ErlNifEnv *env, int argc,
                               const ERL_NIF_TERM argv[])
{
    (void)argc, (void)argv;
    note(" expire");
    return enif_make_int(env, *script++ - '0');
}

static ErlNifFunc nifs[] = {
    {"nif_await", 2, nif_await, 0},
    {"nif_expire", 1, nif_expire, 0},
    {"nif", 1, nif, 0},
    {"dirty", 1, nif, ERL_NIF_DIRTY_JOB_CPU_BOUND},
    FAIR_NIF("identity", 1, identity, FAIR_AUTO),
};
FAIR_NIF_INIT(test_vm, nifs, load, NULL, NULL, NULL)

static void in_a_nif(void (*fn)(ErlNifEnv *))
{
    now = fn;
    CHECK_CALL("nif", "1", "1");
}

/* -- processes that others see ------------------------------------------- */

TEST(pids, "a pid does not come twice, and a message to a dead process is "
     "refused")
{
    ErlNifEnv *env = enif_alloc_env();
    vm_proc *p = vm_spawn();
    ErlNifPid pid = pid_of(p);

    CHECK_NUMBERS(enif_send(NULL, &pid, env, enif_make_int(env, 1)), ==, 1);
    vm_free(p);
    p = vm_spawn();
    CHECK(pid.pid != vm_pid(p));
    CHECK_NUMBERS(enif_send(NULL, &pid, env, enif_make_int(env, 2)), ==, 0);
    CHECK_NUMBERS(vm_messages(p), ==, 0);
    vm_free(p);
    enif_free_env(env);
}

static ErlNifPid spy;
static int stay, sent;
static vm_proc *doomed;

static void until_told(ErlNifEnv *env)
{
    (void)env;
    __atomic_store_n(&stay, 1, __ATOMIC_RELEASE);
    while (__atomic_load_n(&stay, __ATOMIC_ACQUIRE))
        ;
}

static void run_doomed(void *arg)
{
    (void)arg;
    vm_slice(doomed);
}

/* Kills a process in a NIF on that kind of thread; what others see then. */
static const char *killed_in(const char *name, int kind)
{
    void *obj = enif_alloc_resource(type, 1);
    ErlNifEnv *env = enif_alloc_env();
    ErlNifMonitor mon;
    static char seen[256];

    clear_notes();
    now = until_told;
    doomed = spawn_call(name, "1");
    spy = pid_of(doomed);
    CHECK_NUMBERS(enif_monitor_process(NULL, obj, &spy, &mon), ==, 0);
    vm_post(vm_nth_thread(kind, 0), run_doomed, NULL);
    while (!__atomic_load_n(&stay, __ATOMIC_ACQUIRE))
        ;
    vm_options.dead_heaps_on = VM_DIRTY_IO;
    vm_kill(doomed);
    sent = enif_send(NULL, &spy, env, enif_make_int(env, 1));
    snprintf(seen, sizeof seen, "send %d%s;", sent, notes());
    clear_notes();
    __atomic_store_n(&stay, 0, __ATOMIC_RELEASE);
    vm_wait(vm_nth_thread(kind, 0));
    strncat(seen, notes(), sizeof seen - strlen(seen) - 1);
    CHECK_NUMBERS(enif_monitor_process(NULL, obj, &spy, &mon), >, 0);
    vm_free(doomed);
    enif_free_env(env);
    enif_release_resource(obj);
    return seen;
}

TEST(kills, "a process killed in a NIF goes when it returns on a normal "
     "scheduler, and for others at once on a dirty one")
{
    CHECK_TEXT(killed_in("nif", VM_NORMAL),
               "send 1; down alive 0 demonitor 1 on 1");
    CHECK_TEXT(killed_in("dirty", VM_DIRTY_CPU),
               "send 0 down alive 0 demonitor 1 on 3;");
}

/* -- monitors ------------------------------------------------------------ */

TEST(monitors, "a monitor fires once, or is taken back, or goes with its "
     "object")
{
    void *obj = enif_alloc_resource(type, 1), *gone;
    vm_proc *p = vm_spawn(), *q = vm_spawn();
    ErlNifPid pid = pid_of(p), other = pid_of(q), nobody;
    ErlNifMonitor mons[3], none;

    for (int i = 0; i < 3; i++)
        CHECK_NUMBERS(enif_monitor_process(NULL, obj, &pid, &mons[i]), ==, 0);
    CHECK(enif_compare_monitors(&mons[0], &mons[1]));
    CHECK(!enif_compare_monitors(&mons[0], &mons[0]));
    CHECK_NUMBERS(enif_demonitor_process(NULL, obj, &mons[1]), ==, 0);
    CHECK_NUMBERS(enif_demonitor_process(NULL, obj, &mons[1]), ==, 1);
    gone = enif_alloc_resource(type, 1);
    CHECK_NUMBERS(enif_monitor_process(NULL, gone, &pid, NULL), ==, 0);
    CHECK_NUMBERS(enif_monitor_process(NULL, gone, &other, NULL), ==, 0);
    enif_release_resource(gone);
    CHECK_NUMBERS(destroyed, ==, 1);
    vm_free(p);
    CHECK_TEXT(notes(), " down alive 0 demonitor 1 on 1"
               " down alive 0 demonitor 1 on 1");
    CHECK_NUMBERS(enif_demonitor_process(NULL, obj, &mons[0]), ==, 1);
    CHECK_NUMBERS(enif_monitor_process(NULL, obj, &pid, &none), ==, 1);
    enif_set_pid_undefined(&nobody);
    CHECK_NUMBERS(enif_monitor_process(NULL, obj, &nobody, &none), ==, 1);
    enif_release_resource(obj);
    obj = enif_alloc_resource(plain, 1);
    CHECK_NUMBERS(enif_monitor_process(NULL, obj, &other, &none), ==, -1);
    enif_release_resource(obj);
    vm_free(q);
}

TEST(monitored, "a monitor does not keep its object, nor fire for one that "
     "waits for its destructor")
{
    void *obj = enif_alloc_resource(type, 1);
    vm_proc *p = vm_spawn();
    ErlNifPid pid = pid_of(p);

    vm_options.late_destructors = true;
    enif_monitor_process(NULL, obj, &pid, NULL);
    enif_release_resource(obj);
    vm_free(p);
    CHECK_TEXT(notes(), "");
    vm_run_destructors();
    CHECK_NUMBERS(destroyed, ==, 1);
}

/* -- threads ------------------------------------------------------------- */

static ErlNifMutex *mutex;
static ErlNifCond *cond;
static int rung;

static void *rings(void *arg)
{
    CHECK_NUMBERS(enif_thread_type(), ==, ERL_NIF_THR_UNDEFINED);
    CHECK(enif_equal_tids(enif_thread_self(), *(ErlNifTid *)arg));
    CHECK_TEXT(enif_thread_name(enif_thread_self()), "ringer");
    enif_mutex_lock(mutex);
    rung = 1;
    enif_cond_signal(cond);
    enif_mutex_unlock(mutex);
    enif_thread_exit(arg);
    return NULL;
}

TEST(threads, "a library's thread runs, is nobody's, and is joined")
{
    ErlNifThreadOpts *opts = enif_thread_opts_create("ringer");
    long before = vm_counts().threads;
    static ErlNifTid id;
    void *answer;

    mutex = enif_mutex_create("m");
    cond = enif_cond_create("c");
    opts->suggested_stack_size = 64;
    enif_mutex_lock(mutex);
    CHECK_NUMBERS(enif_thread_create("ringer", &id, rings, &id, opts), ==, 0);
    CHECK_NUMBERS(vm_counts().threads, ==, before + 1);
    while (!rung)
        enif_cond_wait(cond, mutex);
    enif_mutex_unlock(mutex);
    CHECK_NUMBERS(enif_thread_join(id, &answer), ==, 0);
    CHECK(answer == &id);
    CHECK_NUMBERS(vm_counts().threads, ==, before);
    enif_thread_opts_destroy(opts);
    enif_cond_destroy(cond);
    enif_mutex_destroy(mutex);
    CHECK(enif_thread_self() == NULL);
}

static void *allocates(void *arg)
{
    void **at = arg;

    at[0] = enif_alloc(10);
    at[1] = enif_alloc(10);
    return NULL;
}

static void no_thread(ErlNifEnv *env)
{
    ErlNifTid id;

    (void)env;
    vm_fail(VM_F_THREAD, 1, false);
    CHECK_NUMBERS(enif_thread_create("x", &id, allocates, NULL, NULL), !=, 0);
    CHECK(vm_failed());
    vm_fail(0, 0, false);
}

TEST(faults, "thread creation fails when told to, and memory on such threads")
{
    void *at[2];
    ErlNifTid id;

    in_a_nif(no_thread);
    vm_fail(VM_F_ALLOC, 2, false);
    at[0] = enif_alloc(10);             /* the tests' own never fails */
    enif_free(at[0]);
    CHECK_NUMBERS(enif_thread_create("x", &id, allocates, at, NULL), ==, 0);
    enif_thread_join(id, NULL);
    CHECK(vm_failed());
    CHECK(at[0] && !at[1]);
    enif_free(at[0]);
    vm_fail(0, 0, false);
}

static void *uses_env(void *arg)
{
    enif_make_atom(arg, "a");
    return NULL;
}

static void lends_env(ErlNifEnv *env)
{
    ErlNifTid id;

    enif_thread_create("x", &id, uses_env, env, NULL);
    enif_thread_join(id, NULL);
}

TEST_DIES(env_elsewhere, "a process's environment on a library's thread is "
          "caught", "another thread's environment")
{
    in_a_nif(lends_env);
}

/* -- environments of nobody's -------------------------------------------- */

TEST(own_env, "an environment of its own has no process, and keeps an "
     "exception when it is cleared")
{
    ErlNifEnv *env = enif_alloc_env();
    ERL_NIF_TERM reason = 0;
    ErlNifPid pid;

    CHECK(enif_self(env, &pid) == NULL);
    CHECK(!enif_has_pending_exception(env, &reason));
    enif_raise_exception(env, enif_make_atom(env, "why"));
    enif_clear_env(env);
    CHECK(enif_has_pending_exception(env, &reason));
    CHECK(reason == enif_make_atom(env, "why"));
    enif_free_env(env);
}

TEST_DIES(alive, "asking an environment of its own for its process is caught",
          "enif_is_current_process_alive: only with")
{
    enif_is_current_process_alive(enif_alloc_env());
}

TEST_DIES(priv, "asking an environment of its own for its library is caught",
          "no library's environment")
{
    enif_priv_data(enif_alloc_env());
}

#if defined(__SANITIZE_ADDRESS__)
TEST_DIES(sent_term, "a term used after it was sent away is caught",
          "is no term of this environment")
{
    vm_proc *p = vm_spawn();
    ErlNifPid pid = pid_of(p);
    ErlNifEnv *env = enif_alloc_env();
    ERL_NIF_TERM t = vm_parse(env, "{1}");

    enif_send(NULL, &pid, env, t);
    enif_make_list1(env, t);
}
#endif

/* -- mailboxes ----------------------------------------------------------- */

static void *sends_late(void *arg)
{
    ErlNifEnv *env = enif_alloc_env();
    ERL_NIF_TERM ref = enif_make_copy(env, *(ERL_NIF_TERM *)arg);

    usleep(20000);
    CHECK(enif_send(NULL, &spy, env, enif_make_tuple2(
                        env, ref, enif_make_atom(env, "late"))));
    enif_free_env(env);
    return NULL;
}

TEST(receives, "a receive takes the first message with its reference, waits "
     "for one, and leaves the others")
{
    vm_proc *p = vm_spawn();
    ErlNifEnv *env = enif_alloc_env();
    ERL_NIF_TERM mine = enif_make_ref(env), other = enif_make_ref(env), msg;
    char text[64];
    ErlNifTid id;

    spy = pid_of(p);
    for (int i = 1; i <= 4; i++) {
        ErlNifEnv *m = enif_alloc_env();

        enif_send(NULL, &spy, m, enif_make_tuple2(
                      m, enif_make_copy(m, i % 2 ? other : mine),
                      enif_make_int(m, i)));
        enif_free_env(m);
    }
    CHECK(vm_receive(p, &mine, 0, &msg));
    CHECK(strstr(vm_print(msg, text, sizeof text), ",2}"));
    CHECK(vm_receive(p, &mine, 0, &msg));
    CHECK(strstr(vm_print(msg, text, sizeof text), ",4}"));
    CHECK(!vm_receive(p, &mine, 5, &msg));
    enif_thread_create("x", &id, sends_late, &mine, NULL);
    CHECK(vm_receive(p, &mine, -1, &msg));
    CHECK(strstr(vm_print(msg, text, sizeof text), ",late}"));
    enif_thread_join(id, NULL);
    CHECK_NUMBERS(vm_messages(p), ==, 2);
    CHECK(vm_receive(p, NULL, 0, &msg));
    CHECK(strstr(vm_print(msg, text, sizeof text), ",1}"));
    vm_free(p);
    enif_free_env(env);
}

/* -- await --------------------------------------------------------------- */

/* To the one who awaits: {Ref, ...}, with *terms after the reference. */
static bool tell(const char *terms)
{
    ErlNifEnv *m = enif_alloc_env();
    ERL_NIF_TERM elems[3] = {enif_make_copy(m, asked_ref)};
    int n = vm_parse_args(m, terms, elems + 1, 2);
    bool alive = enif_send(NULL, &asker, m,
                           enif_make_tuple_from_array(m, elems, 1 + n));

    enif_free_env(m);
    return alive;
}

/* Awaits a pending value while the runtime answers by the script, up to where
 * it waits for a message. */
static vm_proc *await_with(const char *answers)
{
    vm_proc *p = vm_spawn();

    clear_notes();
    script = answers;
    asked_ref = 0;
    if (!asked_with)
        asked_with = enif_alloc_env();
    vm_await(p, lib, "identity", "{fairnif_pending,x,[1|2]}", lib);
    while (vm_state(p) == VM_READY)
        vm_step(p);
    return p;
}

static void end_await(void)
{
    enif_free_env(asked_with);
    asked_with = NULL;
}

TEST(awaits, "await takes values as they are, asks for pending ones, and "
     "waits when told to")
{
    vm_proc *p = vm_spawn();

    vm_await(p, lib, "identity", "{fairnif_pending}", lib);
    CHECK_TEXT(finished(p), "{fairnif_pending}");
    CHECK_TEXT(finished(await_with("v")), "{a,[value]}");
    CHECK_TEXT(notes(), " await");
    CHECK_TEXT(finished(await_with("ppv")), "{a,[value]}");
    CHECK_TEXT(notes(), " await await await");
    CHECK_TEXT(finished(await_with("pr")), "error:foreign");

    p = await_with("wwv");
    CHECK_TEXT(outcome(p), "waiting");
    CHECK(vm_step(p) == VM_WAITING);
    CHECK(tell("go"));
    CHECK(vm_step(p) == VM_READY);
    CHECK(vm_step(p) == VM_WAITING);
    CHECK(tell("value, {b,\"c\"}"));
    CHECK_TEXT(finished(p), "{b,[99]}");
    CHECK_TEXT(notes(), " await await");

    p = await_with("w");
    CHECK(tell("raise, enomem"));
    CHECK_TEXT(finished(p), "error:enomem");
    end_await();
}

TEST(await_time, "a wait that times out says so, takes what came late, and "
     "asks again")
{
    vm_proc *p = await_with("t0v");

    CHECK_TEXT(finished(p), "{a,[value]}");
    CHECK_TEXT(notes(), " await expire await");

    p = await_with("t1v");
    while (!strstr(notes(), "expire"))
        vm_step(p);
    CHECK(vm_step(p) == VM_WAITING);
    CHECK(tell("value, late"));
    CHECK_TEXT(finished(p), "{a,[value]}");
    CHECK_TEXT(notes(), " await expire await");
    end_await();
}

TEST(await_kill, "a process that waits is killed there, and leaves its other "
     "messages")
{
    vm_proc *p = await_with("w");
    ErlNifEnv *m = enif_alloc_env();

    CHECK(enif_send(NULL, &asker, m, vm_parse(m, "[1]")));
    enif_free_env(m);
    CHECK(vm_step(p) == VM_WAITING);
    CHECK_NUMBERS(vm_messages(p), ==, 1);
    vm_kill(p);
    CHECK(vm_step(p) == VM_DEAD);
    CHECK(!tell("go"));
    vm_free(p);
    end_await();
}
