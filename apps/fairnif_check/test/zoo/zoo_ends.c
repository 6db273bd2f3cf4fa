/* Functions that do not return as they should: crash, exception, never. And two
 * that look like it and are harmless. */
#include "zoo.h"

#include <stdatomic.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <unistd.h>

#define EACH 5

/* What dies here on purpose leaves no core file behind. */
static void no_core(void)
{
    prctl(PR_SET_DUMPABLE, 0);
}

/* segv(_): writes where nothing may be written. */
ERL_NIF_TERM zoo_segv(ErlNifEnv *env, int argc, const ERL_NIF_TERM argv[])
{
    volatile char *page = mmap(NULL, 4096, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

    (void)argc, (void)argv;
    if (page == MAP_FAILED)
        return zoo_enomem(env);
    no_core();
    *page = 1;
    return zoo_ok(env);
}

/* ill(_): an instruction that does not exist. */
ERL_NIF_TERM zoo_ill(ErlNifEnv *env, int argc, const ERL_NIF_TERM argv[])
{
    (void)env, (void)argc, (void)argv;
    no_core();
    __builtin_trap();
}

/* Not the last thing that it does, or the compiler makes a loop of it. */
static __attribute__((noinline)) unsigned frames(unsigned n)
{
    volatile unsigned char frame[1024];

    frame[n % sizeof frame] = (unsigned char)n;
    return n == 0 ? 0 : frames(n - 1) + frame[n % sizeof frame];
}

/* deep(N): needs N KiB of the stack, and some. */
ERL_NIF_TERM zoo_deep(ErlNifEnv *env, int argc, const ERL_NIF_TERM argv[])
{
    unsigned n;

    (void)argc;
    if (!enif_get_uint(env, argv[0], &n))
        return enif_make_badarg(env);
    no_core();
    return enif_make_uint(env, frames(n));
}

ERL_NIF_TERM zoo_abort(ErlNifEnv *env, int argc, const ERL_NIF_TERM argv[])
{
    (void)env, (void)argc, (void)argv;
    no_core();
    abort();
}

/* exit(_): ends the whole VM, with the exit status of success. */
ERL_NIF_TERM zoo_exit(ErlNifEnv *env, int argc, const ERL_NIF_TERM argv[])
{
    (void)env, (void)argc, (void)argv;
    _exit(0);
}

/* endless(_): never returns, on the caller's scheduler. */
ERL_NIF_TERM zoo_endless(ErlNifEnv *env, int argc, const ERL_NIF_TERM argv[])
{
    (void)env, (void)argc, (void)argv;
    for (;;)
        zoo_work(1000);
}

ERL_NIF_TERM zoo_badarg(ErlNifEnv *env, int argc, const ERL_NIF_TERM argv[])
{
    (void)argc, (void)argv;
    return enif_make_badarg(env);
}

/* raise_sometimes(_): every fifth call. */
ERL_NIF_TERM zoo_raise_sometimes(ErlNifEnv *env, int argc, const ERL_NIF_TERM argv[])
{
    static atomic_uint calls;

    (void)argc, (void)argv;
    if (atomic_fetch_add(&calls, 1) % EACH == EACH - 1)
        return enif_raise_exception(env, enif_make_atom(env, "sometimes"));
    return zoo_ok(env);
}

/* error_tuple(_): an error, said as Erlang functions say it. */
ERL_NIF_TERM zoo_error_tuple(ErlNifEnv *env, int argc, const ERL_NIF_TERM argv[])
{
    (void)argc, (void)argv;
    return enif_make_tuple2(env, enif_make_atom(env, "error"), enif_make_atom(env, "enoent"));
}

/* short(_): nothing at all. */
ERL_NIF_TERM zoo_short(ErlNifEnv *env, int argc, const ERL_NIF_TERM argv[])
{
    (void)env, (void)argc;
    return argv[0];
}
