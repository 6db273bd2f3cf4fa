/*
 * test_harness.c - the stand-in for the VM notices what it is there to
 * notice: bodies that break the rules, leaks, lost registers, environments and
 * descriptors that are not the caller's; and so does the runtime.
 */
#include <stdlib.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "check.h"
#include "task/task.h"

static ErlNifResourceType *type, *stopless_type;

static void stop(ErlNifEnv *env, void *obj, ErlNifEvent fd, int direct)
{
    (void)env, (void)obj, (void)direct;
    close(fd);
}

static int load(ErlNifEnv *env, void **priv, ERL_NIF_TERM info)
{
    ErlNifResourceTypeInit with = {NULL, stop, NULL, 2, NULL};
    ErlNifResourceTypeInit without = {NULL, NULL, NULL, 1, NULL};

    (void)priv, (void)info;
    type = enif_init_resource_type(env, "with", &with, ERL_NIF_RT_CREATE,
                                   NULL);
    stopless_type = enif_init_resource_type(env, "without", &without,
                                            ERL_NIF_RT_CREATE, NULL);
    return 0;
}

static ERL_NIF_TERM keeps_a_term(fair_task *t)
{
    ERL_NIF_TERM arg = fair_arg(t, 0);

    fair_tick(t, 1);
    return enif_make_list1(fair_env(t), arg);
}

static ERL_NIF_TERM keeps_the_env(fair_task *t)
{
    ErlNifEnv *env = fair_env(t);

    fair_tick(t, 1);
    return enif_make_int(env, 1);
}

static ERL_NIF_TERM keeps_a_pointer(fair_task *t)
{
    const ERL_NIF_TERM *elems;
    int arity;

    enif_get_tuple(fair_env(t), fair_arg(t, 0), &arity, &elems);
    fair_tick(t, 1);
    return enif_make_list1(fair_env(t), elems[0]);
}

static ERL_NIF_TERM keeps_a_mutex(fair_task *t)
{
    static ErlNifMutex *mutex;

    mutex = enif_mutex_create("kept");
    enif_mutex_lock(mutex);
    fair_tick(t, 1);
    enif_mutex_unlock(mutex);
    return fair_arg(t, 0);
}

/* Returns its argument. */
ERL_NIF_TERM loses_rbx(ErlNifEnv *env, int argc, const ERL_NIF_TERM argv[]);
#if defined(__x86_64__)
__asm__(".text\n"
        ".globl loses_rbx\n"
        "loses_rbx:\n"
        "    xorl %ebx, %ebx\n"
        "    movq (%rdx), %rax\n"
        "    ret\n");
#else
ERL_NIF_TERM loses_rbx(ErlNifEnv *env, int argc, const ERL_NIF_TERM argv[])
{
    (void)env, (void)argc;
    return argv[0];
}
#endif

static ErlNifBinary leaked;

static ERL_NIF_TERM leaks(ErlNifEnv *env, int argc, const ERL_NIF_TERM argv[])
{
    (void)env, (void)argc;
    CHECK(enif_alloc_binary(100, &leaked));
    return argv[0];
}

static ERL_NIF_TERM leaks_malloc(ErlNifEnv *env, int argc,
                                 const ERL_NIF_TERM argv[])
{
    char *volatile p = malloc(100);

    (void)env, (void)argc;
    p[0] = 1;
    return argv[0];
}

static void *uses_env(void *env)
{
    enif_make_atom(env, "a");
    return NULL;
}

static ERL_NIF_TERM lends_env(ErlNifEnv *env, int argc,
                              const ERL_NIF_TERM argv[])
{
    ErlNifTid id;

    (void)argc;
    enif_thread_create("x", &id, uses_env, env, NULL);
    enif_thread_join(id, NULL);
    return argv[0];
}

static ErlNifFunc nifs[] = {
    FAIR_NIF("keeps_a_term", 1, keeps_a_term, FAIR_NORMAL),
    FAIR_NIF("keeps_the_env", 1, keeps_the_env, FAIR_NORMAL),
    FAIR_NIF("keeps_a_pointer", 1, keeps_a_pointer, FAIR_NORMAL),
    FAIR_NIF("keeps_a_mutex", 1, keeps_a_mutex, FAIR_NORMAL),
    {"loses_rbx", 1, loses_rbx, 0},
    {"lends_env", 1, lends_env, ERL_NIF_DIRTY_JOB_IO_BOUND},
    {"leaks", 1, leaks, 0},
    {"leaks_malloc", 1, leaks_malloc, 0},
};
FAIR_NIF_INIT(test_harness, nifs, load, NULL, NULL)

static void pausing(const char *name)
{
    node_set("pause_every_tick", 1);
    finished(spawn_call(name, "{1,[2,3]}"));
}

TASKS_TEST_DIES(term, "a body that keeps a term across a tick is caught",
          "is no term of this environment")
{
    pausing("keeps_a_term");
}

#if defined(__SANITIZE_ADDRESS__)
TASKS_TEST_DIES(env, "a body that keeps an environment across a tick is caught",
          "heap-use-after-free")
{
    pausing("keeps_the_env");
}

TASKS_TEST_DIES(pointer, "a body that keeps a pointer into a term is caught",
          "heap-use-after-free")
{
    pausing("keeps_a_pointer");
}
#endif

TASKS_TEST_DIES(mutex, "a body that pauses with a mutex held is caught",
          "enif_mutex_unlock by a thread that does not hold it")
{
    /* Pays for a slow slice within its turn: turns go round the threads, and
     * after two more it would be back on the one that locked. */
    node_set("turn_ns", 1000000);
    pausing("keeps_a_mutex");
}

#if defined(__x86_64__)
TEST_DIES(registers, "a NIF that loses a callee-saved register is caught",
          "did not restore callee-saved registers: 0x1")
{
    finished(spawn_call("loses_rbx", "1"));
}
#endif

TEST(leak, "a binary that is not released is noticed")
{
    finished(spawn_call("leaks", "1"));
    CHECK_TEXT(node_leftovers(), " binaries +1");
    enif_release_binary(&leaked);
}

#if defined(__SANITIZE_ADDRESS__)
TEST_DIES(leak_malloc, "memory that is not freed is noticed",
          "detected memory leaks")
{
    finished(spawn_call("leaks_malloc", "1"));
}
#endif

/* -- environments ---------------------------------------------------------- */

TEST_DIES(env_elsewhere, "a process's environment on a library's thread is "
          "caught", "another thread's environment")
{
    finished(spawn_call("lends_env", "1"));
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
    ErlNifPid pid = pid_of(vm_spawn());
    ErlNifEnv *env = enif_alloc_env();
    ERL_NIF_TERM t = vm_parse(env, "{1}");

    enif_send(NULL, &pid, env, t);
    enif_make_list1(env, t);
}
#endif

/* -- descriptors ----------------------------------------------------------- */

static void select_with(ErlNifResourceType *of, int fd)
{
    ErlNifPid pid = pid_of(vm_spawn());

    enif_select_x(NULL, fd, ERL_NIF_SELECT_READ | ERL_NIF_SELECT_CUSTOM_MSG,
                  enif_alloc_resource(of, 1), &pid, VM_NIL, NULL);
}

TEST_DIES(stolen, "a descriptor that a second object selects is caught",
          "stealing descriptor")
{
    int fd = eventfd(0, EFD_NONBLOCK);

    select_with(type, fd);
    select_with(type, fd);
}

TEST_DIES(closed, "closing a selected descriptor is caught",
          "which is selected")
{
    int fd = eventfd(0, EFD_NONBLOCK);

    select_with(type, fd);
    close(fd);
}

TEST_DIES(stopless, "selecting with a type without a stop callback is caught",
          "no stop callback")
{
    select_with(stopless_type, eventfd(0, EFD_NONBLOCK));
}

#ifndef VM_REAL                 /* whose runtime is another library */
/* -- what the runtime asserts of itself --------------------------------------- */

TEST_DIES(lock_order, "locks taken against their order are caught",
          "takes lock")
{
    struct fair__mutex fds = FAIR__MUTEX(RANK_FDS);

    fair__wait_lock();
    fair__mutex_lock(&fds);
}

static struct fair__task *waiting_for(enum fair__state state)
{
    static const struct fair__kind kind = {.has_caller = true};
    static struct fair__task t = {.kind = &kind};

    SET(t.state, state);
    return &t;
}

TEST_DIES(no_move, "a move that state.def does not have is caught",
          "goes from FREE to READY")
{
    fair__become(waiting_for(T_FREE), T_READY);
}

TEST_DIES(no_state, "a task that is not as its new state says is caught",
          "goes from PARKING to WAIT_LOCK")
{
    fair__become(waiting_for(T_PARKING), T_WAIT_LOCK);
}
#endif
