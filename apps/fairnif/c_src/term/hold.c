/*
 * hold.c - what a task owns: roots, memory, deferred functions, resource
 * objects.  All of it is released on the thread where the task ends.
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

struct fair__defers {           /* records for those that do not fit into the
                                   task's own */
    struct fair__defers *next;
    unsigned used;
    struct fair__defer records[62];
};

struct fair__held {             /* a resource object of the author's */
    void *obj;
    struct fair__held *next;
};

void fair__hold_init(struct fair__task *t)
{
    struct fair__hold *h = &t->hold;

    /* Not memset: gcc makes a string instruction of it, which begins slowly. */
    h->roots = h->inline_roots;
    h->roots_used = 0;
    h->roots_size = FAIR__INLINE_ROOTS;
    h->chunks = 0;
    h->terms = h->bins = NULL;
    h->defers = h->free_defers = NULL;
    h->more_defers = NULL;
    h->blocks = NULL;
    h->resources = NULL;
    h->fds = NULL;
    h->mutexes = NULL;
    h->seen = NULL;
    h->to_keep = h->inline_bins_used = h->inline_defers_used = h->weight = 0;
}

/* -- roots ----------------------------------------------------------------- */

/* Those for which there is no argument travel in a tuple of tuples, the last
 * argument.  Each of those has CHUNK roots, the last one the rest; what did not
 * change since they were made stays as it is, on the heap. */
enum { APART = FAIR__INLINE_ROOTS - 1, CHUNK = 256 };

static unsigned chunks_of(unsigned roots)
{
    return (roots + CHUNK - 1) / CHUNK;
}

static unsigned size_of_chunk(unsigned roots, unsigned i)
{
    return roots - i * CHUNK < CHUNK ? roots - i * CHUNK : CHUNK;
}

/* Behind the roots; where they are the inline ones there are none. */
static ERL_NIF_TERM *chunks_at(const struct fair__task *t)
{
    return t->hold.roots + t->hold.roots_size;
}

/* They go with the task's memory. */
static void more_roots(struct fair__task *t)
{
    size_t used = t->hold.roots_size;
    ERL_NIF_TERM *larger = fair__alloc(
        &t->pub, (2 * used + chunks_of(2 * used)) * sizeof *larger);

    if (!larger)
        fair__fail(t, "enomem");
    memcpy(larger, t->hold.roots, used * sizeof *larger);
    memcpy(larger + 2 * used, chunks_at(t), t->hold.chunks * sizeof *larger);
    if (t->hold.roots != t->hold.inline_roots)
        fair__free(&t->pub, t->hold.roots);
    t->hold.roots = larger;
    t->hold.roots_size *= 2;
}

unsigned fair__own_root(struct fair__task *t, ERL_NIF_TERM term)
{
    if (fair_unlikely(t->hold.roots_used == t->hold.roots_size))
        more_roots(t);
    t->hold.roots[t->hold.roots_used] = term;
    return t->hold.roots_used++;
}

unsigned fair__root_new(fair_task *pub, ERL_NIF_TERM term)
{
    struct fair__task *t = fair__of(pub);

    if (fair__used_away(t))
        return 0;
    fair__term_in(t, term);
    return fair__own_root(t, term) + 1;
}

void fair__root_drop(fair_task *pub, unsigned root)
{
    struct fair__task *t = fair__of(pub);

    if (!fair__used_away(t) && fair__is_root(t, root))
        t->hold.roots_used = root - 1;
}

void fair__root_set(fair_task *pub, unsigned root, ERL_NIF_TERM term)
{
    struct fair__task *t = fair__of(pub);

    fair__term_in(t, term);
    if (fair__is_root(t, root))
        t->hold.roots[root - 1] = term;
}

ERL_NIF_TERM fair__root_get(fair_task *pub, unsigned root)
{
    struct fair__task *t = fair__of(pub);

    if (!fair__is_root(t, root))
        return enif_make_list(pub->env, 0);
    return fair__term_out(t, t->hold.roots[root - 1]);
}

/* As it was made before, if that is what it has. */
static ERL_NIF_TERM chunk_out(ErlNifEnv *env, bool was_made, ERL_NIF_TERM chunk,
                              const ERL_NIF_TERM *roots, unsigned n)
{
    const ERL_NIF_TERM *old;
    int count;

    if (was_made && enif_get_tuple(env, chunk, &count, &old)
        && (unsigned)count == n && !memcmp(old, roots, n * sizeof *roots))
        return chunk;
    return enif_make_tuple_from_array(env, roots, n);
}

static ERL_NIF_TERM chunks_out(struct fair__task *t, ErlNifEnv *env,
                               unsigned apart)
{
    ERL_NIF_TERM *chunks = chunks_at(t);
    unsigned made = t->hold.chunks;

    t->hold.chunks = chunks_of(apart);
    for (unsigned i = 0; i < t->hold.chunks; i++)
        chunks[i] = chunk_out(env, i < made, chunks[i],
                              t->hold.roots + APART + i * CHUNK,
                              size_of_chunk(apart, i));
    return enif_make_tuple_from_array(env, chunks, t->hold.chunks);
}

unsigned fair__roots_out(struct fair__task *t, ErlNifEnv *env,
                         ERL_NIF_TERM *argv)
{
    unsigned n = t->hold.roots_used;

    if (n > FAIR__INLINE_ROOTS) {
        argv[APART] = chunks_out(t, env, n - APART);
        n = APART;
    } else {
        t->hold.chunks = 0;
    }
    memcpy(argv, t->hold.roots, n * sizeof *argv);
    return n < t->hold.roots_used ? FAIR__INLINE_ROOTS : n;
}

void fair__roots_in(struct fair__task *t, ErlNifEnv *env,
                    const ERL_NIF_TERM *argv)
{
    unsigned n = t->hold.roots_used;
    const ERL_NIF_TERM *chunks, *roots;
    int count;

    if (fair_unlikely(n > FAIR__INLINE_ROOTS)) {
        enif_get_tuple(env, argv[APART], &count, &chunks);
        memcpy(chunks_at(t), chunks, (size_t)count * sizeof *chunks);
        for (unsigned i = 0; i < t->hold.chunks; i++) {
            enif_get_tuple(env, chunks[i], &count, &roots);
            memcpy(t->hold.roots + APART + i * CHUNK, roots,
                   (size_t)count * sizeof *roots);
        }
        n = APART;
    }
    memcpy(t->hold.roots, argv, n * sizeof *argv);
}

bool fair__is_roots_apart(ErlNifEnv *env, ERL_NIF_TERM term, unsigned apart)
{
    const ERL_NIF_TERM *chunks, *roots;
    int count;

    if (!enif_get_tuple(env, term, &count, &chunks)
        || (unsigned)count != chunks_of(apart))
        return false;
    for (unsigned i = 0; i < chunks_of(apart); i++)
        if (!enif_get_tuple(env, chunks[i], &count, &roots)
            || (unsigned)count != size_of_chunk(apart, i))
            return false;
    return true;
}

/* A body that says badarg of what it could not get means what was lacking.  This
 * never pauses: an exception of C++ may be being handled.  What was sent before
 * comes first, and the VM's exception could not be taken back for that. */
ERL_NIF_TERM fair__raise(fair_task *pub, ERL_NIF_TERM reason)
{
    struct fair__task *t = fair__of(pub);
    const char *lacked = t->lacked;

    if (fair_unlikely(lacked != NULL)
        && enif_is_identical(reason, enif_make_atom(pub->env, "badarg")))
        reason = enif_make_atom(pub->env, lacked);
    if (fair_unlikely(t->ask.outbox != 0) && !t->away) {
        t->ask.raised = reason;
        return 0;
    }
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
        t->hold.blocks = b;
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
    b->next = t->hold.blocks;
    b->size = size;
    b->shift = (size_t)((char *)b - (char *)raw);
    link_block(t, b);
    t->hold.weight += fair__weight(size);
    return b + 1;
}

void *fair__realloc(fair_task *pub, void *ptr, size_t size)
{
    struct fair__task *t = fair__of(pub);
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
    t->hold.weight += fair__weight(size) - fair__weight(moved->size);
    moved->size = size;
    moved->shift = (size_t)((char *)moved - raw);
    link_block(t, moved);
    return moved + 1;
}

void fair__free(fair_task *pub, void *ptr)
{
    struct fair__task *t = fair__of(pub);
    struct fair__block *b;

    if (!ptr)
        return;
    b = block_of(ptr);
    *(b->prev ? &b->prev->next : &t->hold.blocks) = b->next;
    if (b->next)
        b->next->prev = b->prev;
    t->hold.weight -= fair__weight(b->size);
    enif_free(raw_of(b));
}

/* -- deferred functions ---------------------------------------------------- */

enum { DEFER_WEIGHT = 8 };      /* what it does is not known, but that it is
                                   quick */

static struct fair__defer *new_defer(struct fair__task *t)
{
    struct fair__defer *d = t->hold.free_defers;
    struct fair__defers *more = t->hold.more_defers;

    if (d) {
        t->hold.free_defers = d->before;
        return d;
    }
    if (fair_likely(t->hold.inline_defers_used < FAIR__INLINE_DEFERS))
        return &t->hold.inline_defers[t->hold.inline_defers_used++];
    if (!more || more->used == sizeof more->records / sizeof *d) {
        more = enif_alloc(sizeof *more);
        if (!more)
            return NULL;
        more->next = t->hold.more_defers;
        more->used = 0;
        t->hold.more_defers = more;
    }
    return &more->records[more->used++];
}

static void free_defer(struct fair__task *t, struct fair__defer *d)
{
    d->before = t->hold.free_defers;
    t->hold.free_defers = d;
    t->hold.weight -= DEFER_WEIGHT;
}

int fair__defer(fair_task *pub, void (*fn)(void *), void *ptr)
{
    struct fair__task *t = fair__of(pub);
    struct fair__defer *d = new_defer(t);

    if (!d) {
        fn(ptr);
        return 0;
    }
    *d = (struct fair__defer){fn, ptr, t->hold.defers};
    t->hold.defers = d;
    t->hold.weight += DEFER_WEIGHT;
    return 1;
}

int fair__undefer(fair_task *pub, void (*fn)(void *), void *ptr)
{
    struct fair__task *t = fair__of(pub);

    for (struct fair__defer **at = &t->hold.defers; *at; at = &(*at)->before) {
        struct fair__defer *d = *at;

        if (d->fn == fn && d->ptr == ptr) {
            *at = d->before;
            free_defer(t, d);
            return 1;
        }
    }
    return 0;
}

/* -- resource objects ------------------------------------------------------ */

enum { HELD_WEIGHT = 2 };

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
    held->next = t->hold.resources;
    t->hold.resources = held;
    t->hold.weight += HELD_WEIGHT;
    return 1;
}

/* -- the end --------------------------------------------------------- */

/* The author's functions, last given first run: what they use is still
 * there. */
unsigned fair__defers_run(struct fair__task *t, unsigned most)
{
    struct fair__thread *th = fair__this_thread();
    struct fair__task *before = fair__runs_for(th, t);

    t->away = AWAY_DEFER;           /* one of them that ticks does not pause */
    t->pub.budget = 0;
    while (t->hold.defers && most > 0) {
        struct fair__defer d = *t->hold.defers;

        free_defer(t, t->hold.defers);
        t->hold.defers = d.before;
        d.fn(d.ptr);
        most -= most < DEFER_WEIGHT ? most : DEFER_WEIGHT;
    }
    fair__runs_for(th, before);
    return most;
}

static unsigned free_blocks(struct fair__task *t, unsigned most)
{
    while (t->hold.blocks && most > 0) {
        struct fair__block *b = t->hold.blocks;
        unsigned weight = fair__weight(b->size);

        if (weight > most) {
            weight = fair__lighten(b + 1, &b->size, most);
        } else {
            t->hold.blocks = b->next;
            enif_free(raw_of(b));
        }
        t->hold.weight -= weight;
        most -= weight;
    }
    return most;
}

static unsigned free_resources(struct fair__task *t, unsigned most)
{
    while (t->hold.resources && most > 0) {
        struct fair__held *held = t->hold.resources;

        t->hold.resources = held->next;
        enif_release_resource(held->obj);
        enif_free(held);
        t->hold.weight -= HELD_WEIGHT;
        most -= most < HELD_WEIGHT ? most : HELD_WEIGHT;
    }
    return most;
}

/* Of those that are no more. */
static unsigned free_defers(struct fair__task *t, unsigned most)
{
    while (t->hold.more_defers && most > 0) {
        struct fair__defers *more = t->hold.more_defers;

        t->hold.more_defers = more->next;
        enif_free(more);
        most--;
    }
    t->hold.free_defers = NULL;
    return most;
}

unsigned fair__hold_release(struct fair__task *t, unsigned most)
{
    t->hold.roots = t->hold.inline_roots;     /* others lie in the blocks */
    most = free_blocks(t, most);
    most = free_resources(t, most);
    most = fair__bins_release(t, most);
    most = free_defers(t, most);
    if (t->hold.seen && most > 0) {
        enif_free(t->hold.seen);
        t->hold.seen = NULL;
    }
    return most;
}
