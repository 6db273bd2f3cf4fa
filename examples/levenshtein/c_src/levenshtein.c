/*
 * levenshtein.c - the edit distance of two binaries, one kernel in four NIFs.
 *
 * The kernel comes in steps of at most BLOCK cells.  The plain NIF runs one
 * step after the other; the fair body does the same and ticks between them.
 * Nothing else may differ between the two: they are measured against each
 * other.
 */
#include <fairnif.h>

#define BLOCK 1024          /* cells a step computes, in 0.5 to 2 us */
#define TRIM_BLOCK 4096     /* bytes a step compares */
#define TRIM_PER_CELL 8     /* bytes compared in the time of one cell, about */
#define SHORT 256           /* a row this long stands on the C stack */

/* The distance D[i][j] of the first i bytes of one string and the first j of
 * the other is by the textbook
 *
 *     min(D[i-1][j] + 1, D[i][j-1] + 1, D[i-1][j-1] + (a[i] != b[j])).
 *
 * A cell holds instead what is saved against deleting i and inserting j
 * bytes, S = i + j - D, for which the same rule reads
 *
 *     max(S[i-1][j], S[i][j-1], S[i-1][j-1] + 1 + (a[i] == b[j])).
 *
 * The borders of the table are then all zero, two additions are gone from the
 * chain of dependent operations (0.6 ns a cell instead of 1.7), and because S
 * is at most 2 * i the longer string may have any length. */
typedef uint32_t cell;
#define MAX_SHORTER (UINT32_MAX / 2)

struct table {
    const unsigned char *a, *b;     /* a is not longer than b */
    size_t a_size, b_size;
    size_t i, j;                    /* the next cell to compute */
    cell *row;                      /* row[0..i) of row j, the rest of j - 1 */
    cell left, diag;                /* S[i-1][j] and S[i-1][j-1] */
};

static inline size_t smaller(size_t x, size_t y)
{
    return x < y ? x : y;
}

static inline void init(struct table *t, const unsigned char *a, size_t a_size,
                        const unsigned char *b, size_t b_size)
{
    int swap = a_size > b_size;

    t->a = swap ? b : a;
    t->b = swap ? a : b;
    t->a_size = swap ? b_size : a_size;
    t->b_size = swap ? a_size : b_size;
    t->i = t->j = 0;
    t->left = t->diag = 0;
}

/* Drops the bytes that both strings begin with, at most TRIM_BLOCK of them.
 * Answers how many; 0 when the first bytes differ or the shorter is empty. */
static size_t trim_front(struct table *t)
{
    size_t max = smaller(t->a_size, TRIM_BLOCK), n = 0;

    if (max > 0 && memcmp(t->a, t->b, max) == 0)
        n = max;
    else
        while (n < max && t->a[n] == t->b[n])
            n++;
    t->a += n;
    t->b += n;
    t->a_size -= n;
    t->b_size -= n;
    return n;
}

/* The same at the end. */
static size_t trim_back(struct table *t)
{
    size_t max = smaller(t->a_size, TRIM_BLOCK), n = 0;

    if (max > 0 && memcmp(t->a + t->a_size - max, t->b + t->b_size - max, max)
                   == 0)
        n = max;
    else
        while (n < max
               && t->a[t->a_size - n - 1] == t->b[t->b_size - n - 1])
            n++;
    t->a_size -= n;
    t->b_size -= n;
    return n;
}

/* Computes the next `n` cells of one row, all of it or a part. */
static inline void row(struct table *t, size_t n)
{
    const unsigned char *a = t->a + t->i, byte = t->b[t->j];
    cell *cells = t->row + t->i;
    cell left = t->left, diag = t->diag;

    if (t->j == 0)
        memset(cells, 0, n * sizeof(cell));
    for (size_t k = 0; k < n; k++) {
        cell up = cells[k];
        cell best = diag + 1 + (a[k] == byte);

        best = best > up ? best : up;
        left = left > best ? left : best;
        cells[k] = left;
        diag = up;
    }
    t->left = left;
    t->diag = diag;
}

/* Computes the next BLOCK cells, or what is left of the table.  Answers how
 * many; 0 when the table is complete. */
static size_t step(struct table *t)
{
    size_t done = 0;

    while (done < BLOCK && t->j < t->b_size) {
        size_t n = smaller(t->a_size - t->i, BLOCK - done);

        row(t, n);
        done += n;
        t->i += n;
        if (t->i == t->a_size) {
            t->i = 0;
            t->j++;
            t->left = t->diag = 0;
        }
    }
    return done;
}

static inline size_t distance(const struct table *t)
{
    return t->b_size + t->a_size - t->row[t->a_size - 1];
}

static ERL_NIF_TERM fair(fair_task *task)
{
    cell short_row[SHORT];
    struct table t;
    fair_bytes a, b;
    size_t n;

    if (!fair_get_bytes(task, fair_arg(task, 0), &a)
        || !fair_get_bytes(task, fair_arg(task, 1), &b))
        return fair_badarg(task);
    init(&t, a.data, a.size, b.data, b.size);
    while ((n = trim_front(&t)) > 0)
        fair_tick(task, n / TRIM_PER_CELL);
    while ((n = trim_back(&t)) > 0)
        fair_tick(task, n / TRIM_PER_CELL);
    if (t.a_size == 0)
        return enif_make_uint64(fair_env(task), t.b_size);
    if (t.a_size > MAX_SHORTER)
        return fair_raise(task,
                          enif_make_atom(fair_env(task), "system_limit"));
    t.row = short_row;
    if (t.a_size > SHORT) {
        t.row = fair_alloc(task, t.a_size * sizeof(cell));
        if (!t.row)
            return fair_enomem(task);
    }
    while ((n = step(&t)) > 0)
        fair_tick(task, n);
    return enif_make_uint64(fair_env(task), distance(&t));
}

static ERL_NIF_TERM unfair(ErlNifEnv *env, int argc, const ERL_NIF_TERM argv[])
{
    cell short_row[SHORT];
    struct table t;
    ErlNifBinary a, b;
    size_t d;

    (void)argc;
    if (!enif_inspect_binary(env, argv[0], &a)
        || !enif_inspect_binary(env, argv[1], &b))
        return enif_make_badarg(env);
    init(&t, a.data, a.size, b.data, b.size);
    while (trim_front(&t) > 0)
        ;
    while (trim_back(&t) > 0)
        ;
    if (t.a_size == 0)
        return enif_make_uint64(env, t.b_size);
    if (t.a_size > MAX_SHORTER)
        return enif_raise_exception(env, enif_make_atom(env, "system_limit"));
    t.row = short_row;
    if (t.a_size > SHORT) {
        t.row = enif_alloc(t.a_size * sizeof(cell));
        if (!t.row)
            return enif_raise_exception(env, enif_make_atom(env, "enomem"));
    }
    while (step(&t) > 0)
        ;
    d = distance(&t);
    if (t.row != short_row)
        enif_free(t.row);
    return enif_make_uint64(env, d);
}

static ErlNifFunc nifs[] = {
    FAIR_NIF("levenshtein", 2, fair, FAIR_AUTO),
    FAIR_NIF("yielding_levenshtein", 2, fair, FAIR_NORMAL),
    FAIR_NIF("dirty_levenshtein", 2, fair, FAIR_DIRTY_CPU | FAIR_NO_YIELD),
    FAIR_NIF("nif_threaded_levenshtein", 2, fair, FAIR_THREADED),
    {"unfair_levenshtein", 2, unfair, 0}
};

FAIR_NIF_INIT(levenshtein, nifs, NULL, NULL, NULL)
