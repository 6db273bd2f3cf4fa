/*
 * bitwise.c - XOR of a binary with one byte: Steve Vinoski's example of a NIF
 * that blocks a scheduler, and what becomes of it with fairnif.
 *
 * The same kernel stands in a plain NIF (exor_bad) and in a fair body that is
 * registered in several modes.
 */
#define _GNU_SOURCE
#include <sys/mman.h>

#include <fairnif.h>

/* Bytes between two ticks: about 2 us at memory speed. */
enum { BLOCK = 32 * 1024 };

/* Vectorised by the compiler. */
static void xor_block(unsigned char *restrict to,
                      const unsigned char *restrict from, unsigned char byte,
                      size_t size)
{
    for (size_t i = 0; i < size; i++)
        to[i] = from[i] ^ byte;
}

/*
 * The pages of a large new binary are not there yet.  Touching them one by one
 * costs a fault each; asked for by the block they come at little more than the
 * time to zero them.  (A huge page would be cheaper still, but takes 125 us at
 * once: five slices.)  No harm where the kernel is too old to know the advice.
 */
#ifndef MADV_POPULATE_WRITE
#define MADV_POPULATE_WRITE 23
#endif
enum { PAGE = 4096, WORTH_IT = 1024 * 1024 };

static void get_pages(unsigned char *to, size_t size)
{
    uintptr_t from = ((uintptr_t)to + PAGE - 1) & ~(uintptr_t)(PAGE - 1);
    uintptr_t end = ((uintptr_t)to + size) & ~(uintptr_t)(PAGE - 1);

    if (from < end)
        madvise((void *)from, end - from, MADV_POPULATE_WRITE);
}

static size_t exor_block(unsigned char *to, const unsigned char *from,
                         unsigned char byte, size_t at, size_t size)
{
    size_t n = size - at < BLOCK ? size - at : BLOCK;

    if (size >= WORTH_IT)
        get_pages(to + at, n);
    xor_block(to + at, from + at, byte, n);
    return n;
}

/* exor/2, exor_yield/2, exor_dirty/2, exor_dirty_yield/2 */
static ERL_NIF_TERM exor(fair_task *t)
{
    fair_bin in, out;
    unsigned byte;

    if (!fair_get_bin(t, 0, &in) || !fair_get_uint(t, 1, &byte) || byte > 255)
        return fair_badarg(t);
    if (!fair_new_bin(t, in.size, &out))
        return fair_enomem(t);
    for (size_t at = 0, n; at < in.size; at += n) {
        n = exor_block(out.data, in.data, (unsigned char)byte, at, in.size);
        fair_tick(t, n);
    }
    return enif_make_tuple2(fair_env(t), fair_bin_term(t, &out),
                            enif_make_uint64(fair_env(t), fair_yields(t)));
}

/* The first third here, the second on a dirty scheduler, the third here
 * again. */
static ERL_NIF_TERM exor_flip(fair_task *t)
{
    fair_bin in, out;
    unsigned byte;

    if (!fair_get_bin(t, 0, &in) || !fair_get_uint(t, 1, &byte) || byte > 255)
        return fair_badarg(t);
    if (!fair_new_bin(t, in.size, &out))
        return fair_enomem(t);
    for (size_t at = 0, n; at < in.size; at += n) {
        fair_move(t, at / (in.size / 3 + 1) == 1 ? FAIR_DIRTY_CPU
                  : FAIR_NORMAL);
        n = exor_block(out.data, in.data, (unsigned char)byte, at, in.size);
        fair_tick(t, n);
    }
    return enif_make_tuple2(fair_env(t), fair_bin_term(t, &out),
                            enif_make_uint64(fair_env(t), fair_yields(t)));
}

/* exor_bad/2: a plain NIF; all at once. */
static ERL_NIF_TERM exor_bad(ErlNifEnv *env, int argc,
                             const ERL_NIF_TERM argv[])
{
    ErlNifBinary in, out;
    unsigned byte;

    if (argc != 2 || !enif_inspect_binary(env, argv[0], &in)
        || !enif_get_uint(env, argv[1], &byte) || byte > 255)
        return enif_make_badarg(env);
    if (!enif_alloc_binary(in.size, &out))
        return enif_raise_exception(env, enif_make_atom(env, "enomem"));
    for (size_t at = 0; at < in.size; )
        at += exor_block(out.data, in.data, (unsigned char)byte, at, in.size);
    return enif_make_tuple2(env, enif_make_binary(env, &out),
                            enif_make_uint(env, 0));
}

static ErlNifFunc nifs[] = {
    FAIR_NIF("exor",             2, exor,      FAIR_AUTO),
    FAIR_NIF("exor_yield",       2, exor,      FAIR_YIELDING),
    FAIR_NIF("exor_dirty",       2, exor,      FAIR_DIRTY_CPU),
    FAIR_NIF("exor_dirty_yield", 2, exor,      FAIR_YIELDING_DIRTY),
    FAIR_NIF("exor_flip",        2, exor_flip, FAIR_YIELDING),
    {"exor_bad", 2, exor_bad, 0}
};

FAIR_NIF_INIT(bitwise, nifs, NULL, NULL, NULL, NULL)
