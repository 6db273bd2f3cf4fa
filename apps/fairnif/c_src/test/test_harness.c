/*
 * test_harness.c - the stand-in for the VM notices what it is there to
 * notice: bodies that break the rules, leaks, lost registers.
 */
#include <stdlib.h>

#include "check.h"

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

static ErlNifFunc nifs[] = {
    FAIR_NIF("keeps_a_term", 1, keeps_a_term, FAIR_NORMAL),
    FAIR_NIF("keeps_the_env", 1, keeps_the_env, FAIR_NORMAL),
    FAIR_NIF("keeps_a_pointer", 1, keeps_a_pointer, FAIR_NORMAL),
    FAIR_NIF("keeps_a_mutex", 1, keeps_a_mutex, FAIR_NORMAL),
    {"loses_rbx", 1, loses_rbx, 0},
    {"leaks", 1, leaks, 0},
    {"leaks_malloc", 1, leaks_malloc, 0},
};
FAIR_NIF_INIT(test_harness, nifs, NULL, NULL, NULL, NULL)

static void pausing(const char *name)
{
    node_set("pause_every_tick", 1);
    finished(spawn_call(name, "{1,[2,3]}"));
}

TEST_DIES(term, "a body that keeps a term across a tick is caught",
          "is no term of this environment")
{
    pausing("keeps_a_term");
}

#if defined(__SANITIZE_ADDRESS__)
TEST_DIES(env, "a body that keeps an environment across a tick is caught",
          "heap-use-after-free")
{
    pausing("keeps_the_env");
}

TEST_DIES(pointer, "a body that keeps a pointer into a term is caught",
          "heap-use-after-free")
{
    pausing("keeps_a_pointer");
}
#endif

TEST_DIES(mutex, "a body that pauses with a mutex held is caught",
          "enif_mutex_unlock by a thread that does not hold it")
{
    /* Pays for a slow slice within its turn: turns go round the threads, and
     * after two more it would be back on the one that locked. */
    node_set("fair_ns", 1000000);
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
