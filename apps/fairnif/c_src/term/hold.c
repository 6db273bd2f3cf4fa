/*
 * hold.c - what goes with a task: roots, memory, deferred functions, resource
 * objects.  All of it is let go on whatever thread the task ends.
 */
#include "term/hold.h"

#include "task/debug.h"
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
    t->terms = t->bins = NULL;
    t->inline_bins_used = 0;
    t->defers = t->inline_defers;
    t->defers_used = 0;
    t->defers_size = FAIR__INLINE_DEFERS;
    t->blocks = NULL;
    t->resources = NULL;
    t->seen = NULL;
}

/* -- roots ----------------------------------------------------------------- */

static ERL_NIF_TERM nil(struct fair__task *t)
{
    return enif_make_list(t->pub.env, 0);
}

/* Slots from FAIR_ROOTS on are the runtime's own. */
void fair__root_set(struct fair__task *t, unsigned slot, ERL_NIF_TERM term)
{
    while (t->roots_used <= slot)
        t->roots[t->roots_used++] = nil(t);
    t->roots[slot] = term;
}

void fair__keep(fair_task *pub, unsigned slot, ERL_NIF_TERM term)
{
    struct fair__task *t = fair__of(pub);

    fair__term_in(t, term);
    if (fair__slot_is_good(t, slot))
        fair__root_set(t, slot, term);
}

ERL_NIF_TERM fair__kept(fair_task *pub, unsigned slot)
{
    struct fair__task *t = fair__of(pub);

    if (!fair__slot_is_good(t, slot) || slot >= t->roots_used)
        return nil(t);
    return fair__term_out(t, t->roots[slot]);
}

/* A body that says badarg of what it could not get means what was lacking. */
ERL_NIF_TERM fair__raise(fair_task *pub, ERL_NIF_TERM reason)
{
    const char *lacked = fair__of(pub)->lacked;

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
        size_t size = 2 * (size_t)t->defers_size;
        struct fair__defer *bigger = enif_alloc(size * sizeof *bigger);

        if (!bigger) {
            fn(ptr);
            return 0;
        }
        memcpy(bigger, t->defers, t->defers_used * sizeof *bigger);
        if (t->defers != t->inline_defers)
            enif_free(t->defers);
        t->defers = bigger;
        t->defers_size = (unsigned)size;
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

int fair__resource(fair_task *pub, ERL_NIF_TERM term, ErlNifResourceType *type,
                   void **obj)
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
    enif_free(t->seen);
    t->seen = NULL;
}
