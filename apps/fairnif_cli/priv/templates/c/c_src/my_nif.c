/* my_nif.c - counts bytes, and yields between blocks of them. */
#include <fairnif.h>

/* Bytes between two ticks: 1 to 2 us. A tick at least every 5 us keeps the slices fair. */
enum { BLOCK = 16 * 1024 };

static size_t count_block(const unsigned char *p, size_t n, unsigned byte)
{
    size_t found = 0;

    for (size_t i = 0; i < n; i++)
        found += p[i] == byte;
    return found;
}

/* count/2. The body may pause at each tick and continue later, on another thread. Binaries stay
 * where they are; a term or an environment kept in a variable would not. */
static ERL_NIF_TERM count(fair_task *t)
{
    fair_bytes in;
    unsigned byte;
    ErlNifUInt64 found = 0;

    if (!fair_get_bytes(t, fair_arg(t, 0), &in)
        || !fair_get_uint(t, fair_arg(t, 1), &byte) || byte > 255)
        return fair_badarg(t);
    for (size_t at = 0, n; at < in.size; at += n) {
        n = in.size - at < BLOCK ? in.size - at : BLOCK;
        found += count_block(in.data + at, n, byte);
        fair_tick(t, n);
    }
    return enif_make_uint64(fair_env(t), found);
}

/* A function that waits (fair_wait, fair_mutex_lock, fair_offload in FAIR_THREADED) is
 * FAIR_AUTO | FAIR_MAY_WAIT, or FAIR_THREADED; its wrapper hands what it answers to fairnif:await/1
 * (Fairnif.await/1). */
static ErlNifFunc nifs[] = {
    FAIR_NIF("count", 2, count, FAIR_AUTO)
};

FAIR_NIF_INIT({{module}}, nifs, NULL, NULL, NULL)
