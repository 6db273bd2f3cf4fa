/*
 * big_lists.c - sum/1 and range/2: a list read, and a list made.
 *
 * Each kernel works on a block of elements; the fair body ticks after each,
 * the plain NIF does not.  Nothing else differs between the two: they are
 * measured against each other.
 */
#include <fairnif.h>

/* Elements between two ticks, where one takes 5 to 20 ns. */
enum { BLOCK = 256 };

/* Adds up to BLOCK integers from the beginning of *list, which is then what is
 * left of it.  Answers how many; fewer at the end of the list, and before an
 * element that is no integer of 64 bits, or makes the sum none. */
static inline size_t sum_block(ErlNifEnv *env, ERL_NIF_TERM *list,
                               ErlNifSInt64 *sum)
{
    ERL_NIF_TERM head, tail;
    ErlNifSInt64 x;
    size_t n = 0;

    while (n < BLOCK && enif_get_list_cell(env, *list, &head, &tail)
           && enif_get_int64(env, head, &x)
           && !__builtin_add_overflow(*sum, x, sum)) {
        *list = tail;
        n++;
    }
    return n;
}

static ERL_NIF_TERM sum(fair_task *t)
{
    unsigned left = fair_root_new(t, fair_arg(t, 0));
    ErlNifSInt64 sum = 0;
    ERL_NIF_TERM list;
    size_t n;

    do {
        list = fair_root_get(t, left);
        n = sum_block(fair_env(t), &list, &sum);
        fair_root_set(t, left, list);
        fair_tick(t, n);
    } while (n == BLOCK);
    if (!enif_is_empty_list(fair_env(t), fair_root_get(t, left)))
        return fair_badarg(t);
    return enif_make_int64(fair_env(t), sum);
}

static ERL_NIF_TERM unfair_sum(ErlNifEnv *env, int argc,
                               const ERL_NIF_TERM argv[])
{
    ERL_NIF_TERM list = argv[0];
    ErlNifSInt64 sum = 0;

    (void)argc;
    while (sum_block(env, &list, &sum) == BLOCK)
        ;
    return enif_is_empty_list(env, list) ? enif_make_int64(env, sum)
        : enif_make_badarg(env);
}

struct range {
    ErlNifSInt64 last;          /* of those that are left */
    uint64_t left;
};

/* 0 when there cannot be as few as -1 of them, or too many to be counted. */
static int get_range(ErlNifEnv *env, ERL_NIF_TERM from, ERL_NIF_TERM to,
                     struct range *r)
{
    ErlNifSInt64 first;

    if (!enif_get_int64(env, from, &first) || !enif_get_int64(env, to, &r->last))
        return 0;
    r->left = (uint64_t)r->last - (uint64_t)first + 1;
    return r->last >= first ? r->left > 0 : r->left == 0;
}

/* Puts up to BLOCK integers before *list; how many. */
static inline size_t range_block(ErlNifEnv *env, struct range *r,
                                 ERL_NIF_TERM *list)
{
    size_t n = r->left < BLOCK ? r->left : BLOCK;

    for (size_t i = 0; i < n; i++)
        *list = enif_make_list_cell(
            env, enif_make_int64(env, r->last - (ErlNifSInt64)i), *list);
    r->last -= (ErlNifSInt64)n;
    r->left -= n;
    return n;
}

static ERL_NIF_TERM range(fair_task *t)
{
    unsigned made = fair_root_new(t, enif_make_list(fair_env(t), 0));
    ERL_NIF_TERM list;
    struct range r;
    size_t n;

    if (!get_range(fair_env(t), fair_arg(t, 0), fair_arg(t, 1), &r))
        return fair_badarg(t);
    while (r.left > 0) {
        list = fair_root_get(t, made);
        n = range_block(fair_env(t), &r, &list);
        fair_root_set(t, made, list);
        fair_tick(t, n);
    }
    return fair_root_get(t, made);
}

static ERL_NIF_TERM unfair_range(ErlNifEnv *env, int argc,
                                 const ERL_NIF_TERM argv[])
{
    ERL_NIF_TERM list = enif_make_list(env, 0);
    struct range r;

    (void)argc;
    if (!get_range(env, argv[0], argv[1], &r))
        return enif_make_badarg(env);
    while (r.left > 0)
        range_block(env, &r, &list);
    return list;
}

ERL_NIF_TERM sort(fair_task *t);

static ErlNifFunc nifs[] = {
    FAIR_NIF("sum", 1, sum, FAIR_AUTO),
    FAIR_NIF("native_range", 2, range, FAIR_AUTO),
    FAIR_NIF("native_sort", 1, sort, FAIR_AUTO),
    {"unfair_sum", 1, unfair_sum, 0},
    {"unfair_range", 2, unfair_range, 0}
};

FAIR_NIF_INIT(big_lists, nifs, NULL, NULL, NULL)
