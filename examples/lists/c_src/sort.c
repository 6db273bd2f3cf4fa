/*
 * sort.c - sort/1: a stable merge sort of any terms.
 *
 * What is sorted is an array of the elements' numbers, in memory where no
 * collector moves anything.  Integers of 64 bits are compared in that array;
 * for other terms the kernel asks a source: the fair body's looks into a tree
 * of tuples (held.h), the plain NIF's into an array of terms, which stays right
 * as long as the NIF does not return.  The kernel comes in steps.
 *
 * One comparison cannot be divided: enif_compare of two terms that are large
 * and equal for long (strings as lists, deep tuples) takes what it takes.
 */
#include "big_lists.h"
#include "held.h"

enum {
    RUN = 16,                   /* sorted by insertion */
    STEP = 128,                 /* elements merged, in 0.5 to 4 us */
    COPY_STEP = 8 * STEP,
    /* A unit is an integer merged, or eight items copied.  Beside it, an element sorted by
     * insertion; and merged by enif_compare. */
    RUN_COST = 8, TERM_COST = 8
};

struct source {
    ErlNifEnv *env;             /* of this slice */
    struct held held;
    ERL_NIF_TERM *terms;        /* NULL: they are held */
};

struct item {
    ErlNifSInt64 key;           /* the integer, if it is one */
    uint32_t number;
    uint32_t is_int;
};

struct sorter {
    size_t count;
    struct item *from, *to;     /* sorted runs, and where they are merged to */
    size_t width;               /* of a run; 0 before there are any */
    size_t at;                  /* elements of this round that are done */
    size_t a, a_end, b, b_end;  /* what is left of the two runs at hand */
    int not_int;                /* there is something else than integers */
};

/* A kernel is compiled twice, with `held` constant. */
#define KERNEL static inline __attribute__((always_inline))

KERNEL ERL_NIF_TERM get(const struct source *src, int held, uint32_t i)
{
    return held ? held_get(&src->held, src->env, i) : src->terms[i];
}

/* An item with its term, which is looked up once for several comparisons;
 * that of an integer only when it meets something else. */
struct loaded {
    struct item item;
    ERL_NIF_TERM term;
};

KERNEL struct loaded load(const struct source *src, int held, struct item item)
{
    return (struct loaded){
        item, item.is_int ? 0 : get(src, held, item.number)
    };
}

KERNEL int less(const struct source *src, int held, const struct loaded *x,
                const struct loaded *y)
{
    if (x->item.is_int && y->item.is_int)
        return x->item.key < y->item.key;
    return enif_compare(
        x->item.is_int ? get(src, held, x->item.number) : x->term,
        y->item.is_int ? get(src, held, y->item.number) : y->term) < 0;
}

KERNEL struct loaded first_look(const struct source *src, int held,
                                uint32_t number)
{
    struct loaded x = {{0, number, 0}, get(src, held, number)};

    x.item.is_int = (uint32_t)enif_get_int64(src->env, x.term, &x.item.key);
    return x;
}

/* The next run of the first round. */
KERNEL size_t insert(struct sorter *s, const struct source *src, int held)
{
    struct loaded run[RUN], x;
    size_t n = smaller(s->count - s->at, RUN), j;

    for (size_t i = 0; i < n; i++) {
        x = first_look(src, held, (uint32_t)(s->at + i));
        for (j = i; j > 0 && less(src, held, &x, &run[j - 1]); j--)
            run[j] = run[j - 1];
        run[j] = x;
    }
    for (size_t i = 0; i < n; i++) {
        s->from[s->at + i] = run[i].item;
        s->not_int |= !run[i].item.is_int;
    }
    s->at += n;
    return n * RUN_COST;
}

/* The next two runs.  Where the second does not begin below the end of the
 * first, both are one run already. */
KERNEL void take_runs(struct sorter *s, const struct source *src, int held)
{
    struct loaded x, y;

    s->a = s->at;
    s->a_end = s->b = s->a + smaller(s->width, s->count - s->a);
    s->b_end = s->b + smaller(s->width, s->count - s->b);
    if (s->b == s->b_end)
        return;
    x = load(src, held, s->from[s->a_end - 1]);
    y = load(src, held, s->from[s->b]);
    if (!less(src, held, &y, &x))
        s->a_end = s->b = s->b_end;
}

/* Merges up to STEP elements while there are two runs; without a branch that
 * depends on them, since nobody could predict it. */
static size_t merge_ints(struct sorter *s)
{
    size_t n = smaller(STEP, smaller(s->a_end - s->a, s->b_end - s->b));
    const struct item *x = s->from + s->a, *y = s->from + s->b;
    struct item *to = s->to + s->at;

    for (size_t i = 0; i < n; i++) {
        size_t second = y->key < x->key;

        to[i] = *(second ? y : x);
        y += second;
        x += 1 - second;
    }
    s->a = (size_t)(x - s->from);
    s->b = (size_t)(y - s->from);
    s->at += n;
    return n;
}

/* The same for any terms. */
KERNEL size_t merge(struct sorter *s, const struct source *src, int held)
{
    const struct item *from = s->from;
    struct item *to = s->to + s->at;
    size_t a = s->a, b = s->b, n = 0;
    struct loaded x = load(src, held, from[a]), y = load(src, held, from[b]);

    while (n < STEP) {
        if (less(src, held, &y, &x)) {
            to[n++] = y.item;
            if (++b == s->b_end)
                break;
            y = load(src, held, from[b]);
        } else {
            to[n++] = x.item;
            if (++a == s->a_end)
                break;
            x = load(src, held, from[a]);
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
    return n / 8 + 1;
}

static void next_round(struct sorter *s)
{
    struct item *from = s->from;

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
        return s->not_int ? merge(s, src, held) * TERM_COST : merge_ints(s);
    if (s->a < s->a_end)
        return copy(s, &s->a, s->a_end);
    return copy(s, &s->b, s->b_end);
}

/* Integers from here on are terms on the heap: made anew they would take
 * memory. */
static const ErlNifSInt64 large_int = (ErlNifSInt64)1 << 59;

KERNEL ERL_NIF_TERM term_of(const struct source *src, int held,
                            struct item item)
{
    if (item.is_int && item.key >= -large_int && item.key < large_int)
        return enif_make_int64(src->env, item.key);
    return get(src, held, item.number);
}

/* The elements of these items, before `tail`. */
KERNEL ERL_NIF_TERM answer(const struct source *src, int held,
                           const struct item *items, size_t n,
                           ERL_NIF_TERM tail)
{
    while (n-- > 0)
        tail = enif_make_list_cell(src->env, term_of(src, held, items[n]),
                                   tail);
    return tail;
}

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
    unsigned made;
    size_t n;

    if (!held_list(t, fair_arg(t, 0), &src.held))
        return fair_badarg(t);
    s.count = src.held.count;
    s.from = fair_alloc(t, (s.count + 1) * sizeof *s.from);
    s.to = fair_alloc(t, (s.count + 1) * sizeof *s.to);
    if (!s.from || !s.to)
        return fair_enomem(t);
    while (again(t, &src), (n = step(&s, &src, 1)) > 0)
        fair_tick(t, n);
    made = fair_root(t, enif_make_list(fair_env(t), 0));
    for (size_t left = s.count; left > 0; left -= n) {
        again(t, &src);
        n = smaller(left, STEP);
        list = answer(&src, 1, s.from + left - n, n, fair_kept(t, made));
        fair_keep(t, made, list);
        fair_tick(t, n);
    }
    return fair_kept(t, made);
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
