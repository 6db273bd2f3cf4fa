/*
 * numbers.c - sum/1 and range/2: a list read, and a list made.
 *
 * Each kernel works on a block of elements; the fair body ticks after each,
 * the plain NIF does not.  Nothing else may differ between the two: they are
 * measured against each other.
 */
#include "big_lists.h"

/* -- sum --------------------------------------------------------------------*/

/* An element has 64 bits, so that the sum of any list that fits into memory
 * has 128. */
__extension__ typedef __int128 wide;

/* Adds up to `max` integers from the beginning of *list, which is then what is
 * left of it.  Answers how many; fewer than `max` at the end of the list, or
 * before an element that is no integer or too large a one. */
static inline size_t sum_block(ErlNifEnv *env, ERL_NIF_TERM *list, size_t max,
                               wide *sum)
{
    ERL_NIF_TERM head, tail;
    ErlNifSInt64 x;
    ErlNifUInt64 u;
    size_t n = 0;

    while (n < max && enif_get_list_cell(env, *list, &head, &tail)) {
        if (enif_get_int64(env, head, &x))
            *sum += x;
        else if (enif_get_uint64(env, head, &u))
            *sum += u;
        else
            break;
        *list = tail;
        n++;
    }
    return n;
}

/* The interface makes integers of 64 bits only; larger ones can be had from the
 * external term format. */
static ERL_NIF_TERM make_wide(ErlNifEnv *env, wide x)
{
    enum { VERSION = 131, SMALL_BIG_EXT = 110 };
    unsigned char bytes[4 + sizeof x] = {VERSION, SMALL_BIG_EXT, sizeof x};
    __extension__ unsigned __int128 abs = x < 0 ? -(unsigned __int128)x
        : (unsigned __int128)x;
    ERL_NIF_TERM term;

    if (x >= INT64_MIN && x <= INT64_MAX)
        return enif_make_int64(env, (ErlNifSInt64)x);
    bytes[3] = x < 0;
    for (size_t i = 0; i < sizeof x; i++, abs >>= 8)
        bytes[4 + i] = (unsigned char)abs;
    if (!enif_binary_to_term(env, bytes, sizeof bytes, &term, 0))
        return enif_raise_exception(env, enif_make_atom(env, "enomem"));
    return term;
}

ERL_NIF_TERM sum(fair_task *t)
{
    unsigned left = fair_root(t, fair_arg(t, 0));
    ERL_NIF_TERM list;
    wide sum = 0;
    size_t n;

    do {
        list = fair_kept(t, left);
        n = sum_block(fair_env(t), &list, BLOCK, &sum);
        fair_keep(t, left, list);
        fair_tick(t, n);
    } while (n == BLOCK);
    if (!enif_is_empty_list(fair_env(t), fair_kept(t, left)))
        return fair_badarg(t);
    return make_wide(fair_env(t), sum);
}

ERL_NIF_TERM unfair_sum(ErlNifEnv *env, int argc, const ERL_NIF_TERM argv[])
{
    ERL_NIF_TERM list = argv[0];
    wide sum = 0;

    (void)argc;
    while (sum_block(env, &list, BLOCK, &sum) == BLOCK)
        ;
    if (!enif_is_empty_list(env, list))
        return enif_make_badarg(env);
    return make_wide(env, sum);
}

/* -- range -------------------------------------------------------------------*/

/* `n` integers, the last of them `last`, before `tail`. */
static inline ERL_NIF_TERM range_block(ErlNifEnv *env, ErlNifSInt64 last,
                                       size_t n, ERL_NIF_TERM tail)
{
    for (size_t i = 0; i < n; i++)
        tail = enif_make_list_cell(
            env, enif_make_int64(env, last - (ErlNifSInt64)i), tail);
    return tail;
}

/* How many integers there are from `from` to `to`; 0 in *ok when there cannot
 * be as few as -1 of them, or there are too many to be counted. */
static uint64_t range_size(ErlNifSInt64 from, ErlNifSInt64 to, int *ok)
{
    uint64_t size = (uint64_t)to - (uint64_t)from + 1;

    *ok = to >= from ? size > 0 : size == 0;
    return size;
}

ERL_NIF_TERM range(fair_task *t)
{
    unsigned list = fair_root(t, enif_make_list(fair_env(t), 0));
    ErlNifSInt64 from, to;
    uint64_t left;
    size_t n;
    int ok;

    if (!fair_get_int64(t, fair_arg(t, 0), &from)
        || !fair_get_int64(t, fair_arg(t, 1), &to))
        return fair_badarg(t);
    left = range_size(from, to, &ok);
    if (!ok)
        return fair_badarg(t);
    for (; left > 0; left -= n, to -= (ErlNifSInt64)n) {
        n = smaller(left, BLOCK);
        fair_keep(t, list,
                  range_block(fair_env(t), to, n, fair_kept(t, list)));
        fair_tick(t, n);
    }
    return fair_kept(t, list);
}

ERL_NIF_TERM unfair_range(ErlNifEnv *env, int argc, const ERL_NIF_TERM argv[])
{
    ERL_NIF_TERM list = enif_make_list(env, 0);
    ErlNifSInt64 from, to;
    uint64_t left;
    size_t n;
    int ok;

    (void)argc;
    if (!enif_get_int64(env, argv[0], &from)
        || !enif_get_int64(env, argv[1], &to))
        return enif_make_badarg(env);
    left = range_size(from, to, &ok);
    if (!ok)
        return enif_make_badarg(env);
    for (; left > 0; left -= n, to -= (ErlNifSInt64)n) {
        n = smaller(left, BLOCK);
        list = range_block(env, to, n, list);
    }
    return list;
}
