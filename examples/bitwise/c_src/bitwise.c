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

/* Bytes between two ticks: about 2 us at memory speed, and about 4 us where the
 * pages have to be got. */
enum { BLOCK = 32 * 1024, FRESH_BLOCK = 12 * 1024 };

/* Vectorised by the compiler; one copy of it for all forms. */
static __attribute__((noinline)) void xor_block(unsigned char *restrict to,
                      const unsigned char *restrict from, unsigned char byte,
                      size_t size)
{
    for (size_t i = 0; i < size; i++)
        to[i] = from[i] ^ byte;
}

/*
 * The pages of a large new binary are often not there yet.  Touching them one
 * by one costs a fault each; asked for by the block they come at little more
 * than the time to zero them.  (A huge page would be cheaper still, but takes
 * 125 us at once: five slices.)  Where they are there already, asking costs as
 * much as the work itself; the last page tells which it is.  No harm where the
 * kernel does not know the advice.
 */
#ifndef MADV_POPULATE_WRITE
#define MADV_POPULATE_WRITE 23
#endif
enum { PAGE = 4096, WORTH_IT = 1024 * 1024 };

static int is_fresh(const unsigned char *to, size_t size)
{
    unsigned char resident = 1;
    uintptr_t last;

    if (size < WORTH_IT)
        return 0;
    last = ((uintptr_t)to + size - PAGE) & ~(uintptr_t)(PAGE - 1);
    return mincore((void *)last, PAGE, &resident) == 0 && !(resident & 1);
}

static void get_pages(unsigned char *to, size_t size)
{
    uintptr_t from = ((uintptr_t)to + PAGE - 1) & ~(uintptr_t)(PAGE - 1);
    uintptr_t end = ((uintptr_t)to + size) & ~(uintptr_t)(PAGE - 1);

    if (from < end)
        madvise((void *)from, end - from, MADV_POPULATE_WRITE);
}

struct job {
    unsigned char *to;
    const unsigned char *from;
    size_t size;
    unsigned char byte;
    int fresh;
};

/* One block from `at` on; how many bytes that were. */
static size_t exor_block(const struct job *job, size_t at)
{
    size_t block = job->fresh ? FRESH_BLOCK : BLOCK;
    size_t n = job->size - at < block ? job->size - at : block;

    if (job->fresh)
        get_pages(job->to + at, n);
    xor_block(job->to + at, job->from + at, job->byte, n);
    return n;
}

/* The arguments, and memory for the result; 0 with *answer set if there is
 * something wrong. */
static int exor_begin(fair_task *t, struct job *job, fair_bin *out,
                      ERL_NIF_TERM *answer)
{
    fair_bytes in;
    unsigned byte;

    if (!fair_get_bytes(t, fair_arg(t, 0), &in)
        || !fair_get_uint(t, fair_arg(t, 1), &byte) || byte > 255) {
        *answer = fair_badarg(t);
        return 0;
    }
    if (!fair_new_bin(t, in.size, out)) {
        *answer = fair_enomem(t);
        return 0;
    }
    *job = (struct job){out->data, in.data, in.size, (unsigned char)byte,
                        is_fresh(out->data, in.size)};
    return 1;
}

static ERL_NIF_TERM exor_end(fair_task *t, fair_bin *out)
{
    return enif_make_tuple2(fair_env(t), fair_make_bin(t, out),
                            enif_make_uint64(fair_env(t), fair_yields(t)));
}

/* exor/2, exor_yield/2, exor_dirty/2, exor_dirty_yield/2, exor_threaded/2 */
static ERL_NIF_TERM exor(fair_task *t)
{
    struct job job;
    fair_bin out;
    ERL_NIF_TERM answer;

    if (!exor_begin(t, &job, &out, &answer))
        return answer;
    for (size_t at = 0, n; at < job.size; at += n) {
        n = exor_block(&job, at);
        fair_tick(t, n);
    }
    return exor_end(t, &out);
}

/* The first third here, the second on a dirty scheduler, the third here
 * again. */
static ERL_NIF_TERM exor_flip(fair_task *t)
{
    struct job job;
    fair_bin out;
    ERL_NIF_TERM answer;

    if (!exor_begin(t, &job, &out, &answer))
        return answer;
    for (size_t at = 0, n; at < job.size; at += n) {
        fair_move(t, at / (job.size / 3 + 1) == 1 ? FAIR_DIRTY_CPU
                  : FAIR_NORMAL);
        n = exor_block(&job, at);
        fair_tick(t, n);
    }
    return exor_end(t, &out);
}

/* exor_bad/2: a plain NIF; all at once. */
static ERL_NIF_TERM exor_bad(ErlNifEnv *env, int argc,
                             const ERL_NIF_TERM argv[])
{
    ErlNifBinary in, out;
    unsigned byte;
    struct job job;

    if (argc != 2 || !enif_inspect_binary(env, argv[0], &in)
        || !enif_get_uint(env, argv[1], &byte) || byte > 255)
        return enif_make_badarg(env);
    if (!enif_alloc_binary(in.size, &out))
        return enif_raise_exception(env, enif_make_atom(env, "enomem"));
    job = (struct job){out.data, in.data, in.size, (unsigned char)byte,
                       is_fresh(out.data, in.size)};
    for (size_t at = 0; at < job.size; )
        at += exor_block(&job, at);
    return enif_make_tuple2(env, enif_make_binary(env, &out),
                            enif_make_uint(env, 0));
}

static ErlNifFunc nifs[] = {
    FAIR_NIF("exor",             2, exor,      FAIR_AUTO),
    FAIR_NIF("exor_yield",       2, exor,      FAIR_NORMAL),
    FAIR_NIF("exor_dirty",       2, exor,      FAIR_DIRTY_CPU | FAIR_NO_YIELD),
    FAIR_NIF("exor_dirty_yield", 2, exor,      FAIR_DIRTY_CPU),
    FAIR_NIF("exor_flip",        2, exor_flip, FAIR_NORMAL),
    FAIR_NIF("nif_exor_threaded", 2, exor,     FAIR_THREADED),
    {"exor_bad", 2, exor_bad, 0}
};

FAIR_NIF_INIT(bitwise, nifs, NULL, NULL, NULL)
