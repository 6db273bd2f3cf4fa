/*
 * hold.c - what goes with a task: roots, memory, deferred functions, resource
 * objects.  All of it is let go on whatever thread the task ends.
 */
#include "term/hold.h"

#include "task/debug.h"
#include "task/slice.h"
#include "task/switch.h"
#include "term/binary.h"

/* A block of fair_alloc; the caller's bytes follow. */
struct fair__block {
    struct fair__block *prev, *next;
    size_t size;
    size_t shift;               /* of the block in its allocation, which the
                                   VM aligns to 8 only */
};

struct fair__held {             /* a resource object of the author's */
    void *obj;
    struct fair__held *next;
};

void fair__hold_init(struct fair__task *t)
{
    t->roots = t->inline_roots;
    t->roots_used = 0;
    t->roots_size = FAIR__INLINE_ROOTS;
    t->terms = t->bins = NULL;
    t->inline_bins_used = 0;
    t->defers = t->inline_defers;
    t->defers_used = 0;
    t->defers_size = FAIR__INLINE_DEFERS;
    t->blocks = NULL;
    t->resources = NULL;
    t->seen = NULL;
}

/* A full array that began in the task itself, with room for as many again; NULL
 * when memory is out, and the array as it was. */
static void *doubled(void *items, const void *inline_items, size_t bytes)
{
    void *larger = enif_alloc(2 * bytes);

    if (larger) {
        memcpy(larger, items, bytes);
        if (items != inline_items)
            enif_free(items);
    }
    return larger;
}

/* -- roots ----------------------------------------------------------------- */

static void more_roots(struct fair__task *t)
{
    ERL_NIF_TERM *larger = doubled(t->roots, t->inline_roots,
                                   t->roots_size * sizeof *larger);

    if (!larger)
        fair__fail(t, "enomem");
    t->roots = larger;
    t->roots_size *= 2;
}

unsigned fair__root_new(struct fair__task *t, ERL_NIF_TERM term)
{
    if (fair_unlikely(t->roots_used == t->roots_size))
        more_roots(t);
    t->roots[t->roots_used] = term;
    return t->roots_used++;
}

unsigned fair__root(fair_task *pub, ERL_NIF_TERM term)
{
    struct fair__task *t = fair__of(pub);

    if (fair__used_away(t))
        return 0;
    fair__term_in(t, term);
    return fair__root_new(t, term);
}

void fair__unroot(fair_task *pub, unsigned root)
{
    struct fair__task *t = fair__of(pub);

    if (!fair__used_away(t) && fair__is_root(t, root))
        t->roots_used = root;
}

void fair__keep(fair_task *pub, unsigned root, ERL_NIF_TERM term)
{
    struct fair__task *t = fair__of(pub);

    fair__term_in(t, term);
    if (fair__is_root(t, root))
        t->roots[root] = term;
}

ERL_NIF_TERM fair__kept(fair_task *pub, unsigned root)
{
    struct fair__task *t = fair__of(pub);

    if (!fair__is_root(t, root))
        return enif_make_list(pub->env, 0);
    return fair__term_out(t, t->roots[root]);
}

/* Those for which there is no argument travel in a tuple: the last argument. */
enum { APART = FAIR__INLINE_ROOTS - 1 };

unsigned fair__roots_out(struct fair__task *t, ErlNifEnv *env,
                         ERL_NIF_TERM *argv)
{
    unsigned n = t->roots_used;

    if (n > FAIR__INLINE_ROOTS) {
        argv[APART] = enif_make_tuple_from_array(env, t->roots + APART,
                                                 n - APART);
        n = APART;
    }
    memcpy(argv, t->roots, n * sizeof *argv);
    return n < t->roots_used ? FAIR__INLINE_ROOTS : n;
}

void fair__roots_in(struct fair__task *t, ErlNifEnv *env,
                    const ERL_NIF_TERM *argv)
{
    unsigned n = t->roots_used;
    const ERL_NIF_TERM *rest;
    int count;

    if (fair_unlikely(n > FAIR__INLINE_ROOTS)) {
        enif_get_tuple(env, argv[APART], &count, &rest);
        memcpy(t->roots + APART, rest, (size_t)count * sizeof *rest);
        n = APART;
    }
    memcpy(t->roots, argv, n * sizeof *argv);
}

/* A body that says badarg of what it could not get means what was lacking. */
ERL_NIF_TERM fair__raise(fair_task *pub, ERL_NIF_TERM reason)
{
    struct fair__task *t = fair__of(pub);
    const char *lacked = t->lacked;

    if (fair_unlikely(t->outbox != 0) && !t->away) {
        unsigned root = fair__root_new(t, reason);

        fair__hand_out(t);
        reason = t->roots[root];
    }
    if (fair_unlikely(lacked != NULL)
        && enif_is_identical(reason, enif_make_atom(pub->env, "badarg")))
        reason = enif_make_atom(pub->env, lacked);
    return enif_raise_exception(pub->env, reason);
}

/* -- memory ---------------------------------------------------------------- */

static struct fair__block *block_of(void *ptr)
{
    return (struct fair__block *)ptr - 1;
}

static void link_block(struct fair__task *t, struct fair__block *b)
{
    if (b->prev)
        b->prev->next = b;
    else
        t->blocks = b;
    if (b->next)
        b->next->prev = b;
}

static void *raw_of(struct fair__block *b)
{
    return (char *)b - b->shift;
}

/* The block in an allocation, aligned to 16. */
static struct fair__block *block_in(void *raw)
{
    return (struct fair__block *)(((uintptr_t)raw + 15) & ~(uintptr_t)15);
}

static bool allocation_for(size_t size, size_t *bytes)
{
    *bytes = size + sizeof(struct fair__block) + 15;
    return *bytes > size;
}

void *fair__alloc(fair_task *pub, size_t size)
{
    struct fair__task *t = fair__of(pub);
    struct fair__block *b;
    size_t bytes;
    void *raw;

    if (!allocation_for(size, &bytes) || !(raw = enif_alloc(bytes)))
        return NULL;
    b = block_in(raw);
    b->prev = NULL;
    b->next = t->blocks;
    b->size = size;
    b->shift = (size_t)((char *)b - (char *)raw);
    link_block(t, b);
    return b + 1;
}

void *fair__realloc(fair_task *pub, void *ptr, size_t size)
{
    struct fair__block *b, *moved;
    size_t bytes, shift;
    char *raw;

    if (!ptr)
        return fair__alloc(pub, size);
    b = block_of(ptr);
    shift = b->shift;
    if (!allocation_for(size, &bytes)
        || !(raw = enif_realloc(raw_of(b), bytes)))
        return NULL;
    b = (struct fair__block *)(raw + shift);
    moved = block_in(raw);
    if (moved != b)
        memmove(moved, b, sizeof *b + (b->size < size ? b->size : size));
    moved->size = size;
    moved->shift = (size_t)((char *)moved - raw);
    link_block(fair__of(pub), moved);
    return moved + 1;
}

void fair__free(fair_task *pub, void *ptr)
{
    struct fair__block *b;

    if (!ptr)
        return;
    b = block_of(ptr);
    *(b->prev ? &b->prev->next : &fair__of(pub)->blocks) = b->next;
    if (b->next)
        b->next->prev = b->prev;
    enif_free(raw_of(b));
}

/* -- deferred functions ---------------------------------------------------- */

int fair__defer(fair_task *pub, void (*fn)(void *), void *ptr)
{
    struct fair__task *t = fair__of(pub);

    if (t->defers_used == t->defers_size) {
        struct fair__defer *larger = doubled(t->defers, t->inline_defers,
                                             t->defers_size * sizeof *larger);

        if (!larger) {
            fn(ptr);
            return 0;
        }
        t->defers = larger;
        t->defers_size *= 2;
    }
    t->defers[t->defers_used++] = (struct fair__defer){fn, ptr};
    return 1;
}

int fair__undefer(fair_task *pub, void (*fn)(void *), void *ptr)
{
    struct fair__task *t = fair__of(pub);

    for (unsigned i = t->defers_used; i-- > 0; ) {
        struct fair__defer *d = &t->defers[i];

        if (d->fn == fn && d->ptr == ptr) {
            t->defers_used--;
            memmove(d, d + 1, (t->defers_used - i) * sizeof *d);
            return 1;
        }
    }
    return 0;
}

/* -- resource objects ------------------------------------------------------ */

int fair__get_resource(fair_task *pub, ERL_NIF_TERM term,
                       ErlNifResourceType *type, void **obj)
{
    struct fair__task *t = fair__of(pub);
    struct fair__held *held;

    fair__term_in(t, term);
    t->lacked = NULL;
    if (!enif_get_resource(pub->env, term, type, obj))
        return 0;
    held = enif_alloc(sizeof *held);
    if (!held) {
        t->lacked = "enomem";
        return 0;
    }
    enif_keep_resource(*obj);
    held->obj = *obj;
    held->next = t->resources;
    t->resources = held;
    return 1;
}

/* -- the end --------------------------------------------------------- */

/* The author's functions, last given first run: what they use is still
 * there. */
void fair__defers_run(struct fair__task *t)
{
    t->away = true;                 /* one of them that ticks does not pause */
    t->pub.budget = 0;
    while (t->defers_used > 0) {
        struct fair__defer d = t->defers[--t->defers_used];

        d.fn(d.ptr);
    }
    if (t->defers != t->inline_defers)
        enif_free(t->defers);
    t->defers = t->inline_defers;
}

void fair__hold_release(struct fair__task *t)
{
    while (t->blocks) {
        struct fair__block *b = t->blocks;

        t->blocks = b->next;
        enif_free(raw_of(b));
    }
    while (t->resources) {
        struct fair__held *held = t->resources;

        t->resources = held->next;
        enif_release_resource(held->obj);
        enif_free(held);
    }
    fair__bins_release(t);
    if (t->roots != t->inline_roots)
        enif_free(t->roots);
    t->roots = t->inline_roots;
    enif_free(t->seen);
    t->seen = NULL;
}
