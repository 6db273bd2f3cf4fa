/*
 * sort.c - sort/1: a stable merge sort of any terms.
 *
 * What is sorted is an array of the elements' numbers, in memory where no
 * collector moves anything.  The kernel comes in steps and asks a source for
 * the terms: the fair body's looks into a tree of tuples (held.h), the plain
 * NIF's into an array of terms, which stays right as long as the NIF does not
 * return.
 *
 * One comparison cannot be divided: enif_compare of two terms that are large
 * and equal for long (strings as lists, deep tuples) takes what it takes.
 */
#include "fair_lists.h"
#include "held.h"

enum {
    RUN = 16,                   /* sorted by insertion */
    RUN_COST = 4,               /* of an element there, in elements merged */
    STEP = 128,                 /* elements merged, in 1 to 4 us */
    COPY_STEP = 16 * STEP, COPY_CHEAPER = 16
};

struct source {
    ErlNifEnv *env;             /* of this slice */
    struct held held;
    ERL_NIF_TERM *terms;        /* NULL: they are held */
};

struct sorter {
    size_t count;
    uint32_t *from, *to;        /* sorted runs, and where they are merged to */
    size_t width;               /* of a run; 0 before there are any */
    size_t at;                  /* elements of this round that are done */
    size_t a, a_end, b, b_end;  /* what is left of the two runs at hand */
};

/* A kernel is compiled twice, with `held` constant. */
#define KERNEL static inline __attribute__((always_inline))

KERNEL ERL_NIF_TERM get(const struct source *src, int held, uint32_t i)
{
    return held ? held_get(&src->held, src->env, i) : src->terms[i];
}

static inline int less(ERL_NIF_TERM x, ERL_NIF_TERM y)
{
    return enif_compare(x, y) < 0;
}

/* The next run of the first round. */
KERNEL size_t insert(struct sorter *s, const struct source *src, int held)
{
    ERL_NIF_TERM terms[RUN], x;
    uint32_t *numbers = s->from + s->at;
    size_t n = smaller(s->count - s->at, RUN), j;

    for (size_t i = 0; i < n; i++) {
        x = get(src, held, (uint32_t)(s->at + i));
        for (j = i; j > 0 && less(x, terms[j - 1]); j--) {
            terms[j] = terms[j - 1];
            numbers[j] = numbers[j - 1];
        }
        terms[j] = x;
        numbers[j] = (uint32_t)(s->at + i);
    }
    s->at += n;
    return n * RUN_COST;
}

/* The next two runs.  Where the second does not begin below the end of the
 * first, both are one run already. */
KERNEL void take_runs(struct sorter *s, const struct source *src, int held)
{
    s->a = s->at;
    s->a_end = s->b = s->a + smaller(s->width, s->count - s->a);
    s->b_end = s->b + smaller(s->width, s->count - s->b);
    if (s->b < s->b_end && !less(get(src, held, s->from[s->b]),
                                 get(src, held, s->from[s->a_end - 1])))
        s->a_end = s->b = s->b_end;
}

/* Merges up to STEP elements while there are two runs. */
KERNEL size_t merge(struct sorter *s, const struct source *src, int held)
{
    const uint32_t *from = s->from;
    uint32_t *to = s->to + s->at;
    size_t a = s->a, b = s->b, n = 0;
    ERL_NIF_TERM x = get(src, held, from[a]), y = get(src, held, from[b]);

    while (n < STEP) {
        if (less(y, x)) {
            to[n++] = from[b++];
            if (b == s->b_end)
                break;
            y = get(src, held, from[b]);
        } else {
            to[n++] = from[a++];
            if (a == s->a_end)
                break;
            x = get(src, held, from[a]);
        }
    }
    s->a = a;
    s->b = b;
    s->at += n;
    return n;
}

static size_t copy(struct sorter *s, size_t *first, size_t end)
{
    size_t n = smaller(end - *first, COPY_STEP);

    memcpy(s->to + s->at, s->from + *first, n * sizeof *s->to);
    *first += n;
    s->at += n;
    return n / COPY_CHEAPER + 1;
}

static void next_round(struct sorter *s)
{
    uint32_t *from = s->from;

    if (s->width > 0) {
        s->from = s->to;
        s->to = from;
        s->width *= 2;
    } else {
        s->width = RUN;
    }
    s->at = s->a = s->a_end = s->b = s->b_end = 0;
}

/* Some microseconds of work; how much it was, 0 when `from` is sorted. */
KERNEL size_t step(struct sorter *s, const struct source *src, int held)
{
    if (s->at == s->count)
        next_round(s);
    if (s->width == 0)
        return insert(s, src, held);
    if (s->width >= s->count)
        return 0;
    if (s->a == s->a_end && s->b == s->b_end)
        take_runs(s, src, held);
    if (s->a < s->a_end && s->b < s->b_end)
        return merge(s, src, held);
    if (s->a < s->a_end)
        return copy(s, &s->a, s->a_end);
    return copy(s, &s->b, s->b_end);
}

/* The elements with these numbers, before `tail`. */
KERNEL ERL_NIF_TERM answer(const struct source *src, int held,
                           const uint32_t *numbers, size_t n,
                           ERL_NIF_TERM tail)
{
    while (n-- > 0)
        tail = enif_make_list_cell(src->env, get(src, held, numbers[n]), tail);
    return tail;
}

enum { HELD, MADE = HELD + HELD_SLOTS };    /* roots */

static void again(fair_task *t, struct source *src)
{
    src->env = fair_env(t);
    held_again(t, &src->held);
}

ERL_NIF_TERM sort(fair_task *t)
{
    struct sorter s = {0};
    struct source src = {0};
    ERL_NIF_TERM list;
    size_t n;

    if (!held_list(t, 0, HELD, &src.held))
        return fair_badarg(t);
    s.count = src.held.count;
    s.from = fair_alloc(t, (s.count + 1) * sizeof *s.from);
    s.to = fair_alloc(t, (s.count + 1) * sizeof *s.to);
    if (!s.from || !s.to)
        return fair_enomem(t);
    while (again(t, &src), (n = step(&s, &src, 1)) > 0)
        fair_tick(t, n);
    for (size_t left = s.count; left > 0; left -= n) {
        again(t, &src);
        n = smaller(left, STEP);
        list = answer(&src, 1, s.from + left - n, n, fair_kept(t, MADE));
        fair_keep(t, MADE, list);
        fair_tick(t, n);
    }
    return fair_kept(t, MADE);
}

static int copy_list(ErlNifEnv *env, ERL_NIF_TERM list, ERL_NIF_TERM *terms)
{
    while (enif_get_list_cell(env, list, terms, &list))
        terms++;
    return enif_is_empty_list(env, list);
}

ERL_NIF_TERM unfair_sort(ErlNifEnv *env, int argc, const ERL_NIF_TERM argv[])
{
    struct sorter s = {0};
    struct source src = {.env = env};
    ERL_NIF_TERM result;
    unsigned count;

    (void)argc;
    if (!enif_get_list_length(env, argv[0], &count))
        return enif_make_badarg(env);
    s.count = count;
    s.from = enif_alloc((s.count + 1) * sizeof *s.from);
    s.to = enif_alloc((s.count + 1) * sizeof *s.to);
    src.terms = enif_alloc((s.count + 1) * sizeof *src.terms);
    if (s.from && s.to && src.terms) {
        copy_list(env, argv[0], src.terms);
        while (step(&s, &src, 0) > 0)
            ;
        result = answer(&src, 0, s.from, s.count, enif_make_list(env, 0));
    } else {
        result = enif_raise_exception(env, enif_make_atom(env, "enomem"));
    }
    enif_free(s.from);
    enif_free(s.to);
    enif_free(src.terms);
    return result;
}
