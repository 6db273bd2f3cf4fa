/*
 * sort.c - sort/1: a stable merge sort of any terms.
 *
 * A term in a C variable, or in an array, is lost at a pause: the collector
 * moves what it points to, and only what the task's roots reach.  So the terms
 * are kept in tuples under one root, where each is to be had by its number, and
 * what is sorted is an array of the numbers.  Integers of 64 bits are compared
 * in that array.  One comparison cannot be divided: enif_compare of terms that
 * are large and equal for long takes what it takes.
 */
#include <fairnif.h>

/* Terms in a tuple; sorted by insertion; merged between two ticks. */
enum { WIDTH = 1024, RUN = 16, STEP = 128 };

/* Tuples of WIDTH in one, which is made in one go: 0.1 ms for 100 million. */
struct held {
    size_t count;               /* of 32 bits */
    unsigned root;
    const ERL_NIF_TERM *top;    /* valid until the next pause */
};

/* To be called after each pause, before held_get. */
static inline void held_again(fair_task *t, struct held *h)
{
    int arity;

    enif_get_tuple(fair_env(t), fair_root_get(t, h->root), &arity, &h->top);
}

/* Element `i`; the term is valid until the next pause. */
static inline ERL_NIF_TERM held_get(fair_task *t, const struct held *h,
                                    uint32_t i)
{
    const ERL_NIF_TERM *leaf;
    int arity;

    enif_get_tuple(fair_env(t), h->top[i / WIDTH], &arity, &leaf);
    return leaf[i % WIDTH];
}

/* With the elements of a list.  0, or what the body is to return. */
static ERL_NIF_TERM held_list(fair_task *t, ERL_NIF_TERM list, struct held *h)
{
    ERL_NIF_TERM leaf[WIDTH], *top;
    unsigned leaves, n, size;

    h->count = 0;
    h->root = fair_root_new(t, list);
    leaves = fair_root_new(t, enif_make_list(fair_env(t), 0));  /* newest first */
    do {
        list = fair_root_get(t, h->root);
        for (n = 0; n < WIDTH; n++)
            if (!enif_get_list_cell(fair_env(t), list, &leaf[n], &list))
                break;
        fair_root_set(t, h->root, list);
        fair_list_push(t, leaves,
                       enif_make_tuple_from_array(fair_env(t), leaf, n));
        h->count += n;
        fair_tick(t, n);
    } while (n == WIDTH && h->count <= UINT32_MAX);
    if (!enif_is_empty_list(fair_env(t), fair_root_get(t, h->root)))
        return fair_badarg(t);
    size = (unsigned)(h->count / WIDTH) + 1;
    top = fair_alloc(t, size * sizeof *top);
    if (!top)
        return fair_enomem(t);
    list = fair_root_get(t, leaves);
    for (unsigned i = size; i-- > 0;)
        enif_get_list_cell(fair_env(t), list, &top[i], &list);
    fair_root_set(t, h->root, enif_make_tuple_from_array(fair_env(t), top, size));
    fair_root_drop(t, leaves);
    fair_free(t, top);
    fair_tick(t, size);
    held_again(t, h);
    return 0;
}

struct item {
    ErlNifSInt64 key;           /* the integer, if it is one */
    uint32_t number, is_int;
};

struct sorter {
    fair_task *t;
    struct held held;
    size_t count, cost;         /* cost: of a comparison, in those of integers */
    struct item *from, *to;     /* sorted runs, and where they are merged to */
};

static size_t smaller(size_t x, size_t y)
{
    return x < y ? x : y;
}

static inline void tick(struct sorter *s, size_t work)
{
    fair_tick(s->t, work);
    held_again(s->t, &s->held);
}

static inline size_t less(const struct sorter *s, const struct item *x,
                          const struct item *y)
{
    if (x->is_int && y->is_int)
        return x->key < y->key;
    return enif_compare(held_get(s->t, &s->held, x->number),
                        held_get(s->t, &s->held, y->number)) < 0;
}

/* The first look at each element; in runs of RUN, each sorted by insertion. */
static void make_runs(struct sorter *s)
{
    for (size_t i = 0, j; i < s->count; i++) {
        struct item x = {.number = (uint32_t)i};

        x.is_int = (uint32_t)enif_get_int64(
            fair_env(s->t), held_get(s->t, &s->held, x.number), &x.key);
        s->cost = x.is_int ? s->cost : 8;
        for (j = i; j % RUN > 0 && less(s, &x, &s->from[j - 1]); j--)
            s->from[j] = s->from[j - 1];
        s->from[j] = x;
        tick(s, 8);
    }
}

/* Two neighbouring runs, [a, middle) and [middle, end), into one. */
static void merge(struct sorter *s, size_t a, size_t middle, size_t end)
{
    size_t b = middle, n, second;
    struct item *to = s->to + a;

    if (b < end && !less(s, s->from + b, s->from + b - 1))
        middle = b = end;               /* they are one already */
    while (a < middle && b < end) {
        /* Neither ends sooner.  No branch in here could be predicted. */
        n = smaller(STEP, smaller(middle - a, end - b));
        for (size_t i = 0; i < n; i++) {
            second = less(s, s->from + b, s->from + a);
            *to++ = s->from[second ? b : a];
            a += 1 - second;
            b += second;
        }
        tick(s, n * s->cost);
    }
    if (b == end)
        b = a, end = middle;
    for (; b < end; b += n, to += n) {
        n = smaller(8 * STEP, end - b);
        memcpy(to, s->from + b, n * sizeof *to);
        tick(s, n / 8 + 1);
    }
}

static void merge_runs(struct sorter *s)
{
    for (size_t width = RUN; width < s->count; width *= 2) {
        struct item *from = s->from;

        for (size_t a = 0, middle; a < s->count; a += 2 * width) {
            middle = a + smaller(width, s->count - a);
            merge(s, a, middle, middle + smaller(width, s->count - middle));
        }
        s->from = s->to;
        s->to = from;
    }
}

/* Not looked for where that costs no memory: larger integers are on the heap. */
static ERL_NIF_TERM term_of(const struct sorter *s, const struct item *x)
{
    const ErlNifSInt64 large = 1LL << 59;

    return x->is_int && x->key >= -large && x->key < large
        ? enif_make_int64(fair_env(s->t), x->key)
        : held_get(s->t, &s->held, x->number);
}

ERL_NIF_TERM sort(fair_task *t)
{
    struct sorter s = {.t = t, .cost = 1};
    ERL_NIF_TERM list = held_list(t, fair_arg(t, 0), &s.held);
    unsigned made;

    if (list)
        return list;
    s.count = s.held.count;
    s.from = fair_alloc(t, (s.count + 1) * sizeof *s.from);
    s.to = fair_alloc(t, (s.count + 1) * sizeof *s.to);
    if (!s.from || !s.to)
        return fair_enomem(t);
    make_runs(&s);
    merge_runs(&s);
    made = fair_root_new(t, enif_make_list(fair_env(t), 0));
    for (size_t i = s.count; i-- > 0;) {
        fair_list_push(t, made, term_of(&s, s.from + i));
        tick(&s, 1);
    }
    return fair_root_get(t, made);
}
