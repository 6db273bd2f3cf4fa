/*
 * memory.c - the arena of a state.
 *
 * Small blocks are cut from slabs, each of blocks of one size; larger ones are
 * the VM's allocator's.  Both stand in rings.  So all of it can be freed a
 * piece at a time, whatever state Lua was left in.
 */
#include <stdlib.h>

#include "script.h"

enum {
    SLAB = 8 * 1024,                /* and so aligned: a block finds its slab */
    SLAB_SIZE = SLAB - 32,          /* malloc's own words fit in between */
    SMALL = 512,
    GRAIN = 16,
    LARGEST_STACK = 640 * 1024,     /* of LuaJIT's, at least */
    RESERVE = 64 * 1024             /* beyond the limit, for what is not the
                                       script's: to begin, to say what failed */
};

struct slab {
    struct ring ring;               /* of its class; or of those that are full */
    void *unused;                   /* blocks that were freed */
    unsigned short fresh;           /* where those begin that never were used */
    unsigned short size, count;     /* of a block; of blocks in use */
};

static void insert(struct ring *ring, struct ring *item)
{
    item->next = ring->next;
    item->prev = ring;
    ring->next->prev = item;
    ring->next = item;
}

static void take_out(struct ring *item)
{
    item->next->prev = item->prev;
    item->prev->next = item->next;
}

static void begin_ring(struct ring *ring)
{
    ring->next = ring->prev = ring;
}

void memory_init(struct script *s, size_t most)
{
    for (int i = 0; i < CLASSES; i++)
        begin_ring(&s->slabs[i]);
    begin_ring(&s->full);
    begin_ring(&s->blocks);
    s->most = most < SIZE_MAX / 2 ? most : SIZE_MAX / 2;
    s->collect_at = SIZE_MAX;       /* until the libraries are there */
}

/* Not asked where a block becomes smaller: Lua does not expect that to fail. */
static bool has_room(const struct script *s, size_t size)
{
    size_t most = s->most + (s->running ? 0 : RESERVE);

    return s->shrinks || (s->held <= most && size <= most - s->held);
}

/* -- small blocks ---------------------------------------------------------- */

/* 16 bytes apart to 128, then 32 to 256, then 64 to 512. */
static size_t class_of(size_t size)
{
    if (size <= 128)
        return (size - 1) / GRAIN;
    if (size <= 256)
        return 8 + (size - 129) / (2 * GRAIN);
    return 12 + (size - 257) / (4 * GRAIN);
}

static size_t size_of(size_t class)
{
    if (class < 8)
        return (class + 1) * GRAIN;
    if (class < 12)
        return 128 + (class - 7) * 2 * GRAIN;
    return 256 + (class - 11) * 4 * GRAIN;
}

static bool is_full(const struct slab *slab)
{
    return !slab->unused && slab->fresh + slab->size > SLAB_SIZE;
}

static struct slab *new_slab(struct script *s, size_t class)
{
    void *memory;
    struct slab *slab;

    if (!has_room(s, SLAB) || posix_memalign(&memory, SLAB, SLAB_SIZE) != 0)
        return NULL;
    s->held += SLAB;
    slab = memory;
    slab->unused = NULL;
    slab->fresh = (sizeof *slab + GRAIN - 1) / GRAIN * GRAIN;
    slab->size = (unsigned short)size_of(class);
    slab->count = 0;
    insert(&s->slabs[class], &slab->ring);
    return slab;
}

static void *new_small(struct script *s, size_t class)
{
    struct slab *slab = (struct slab *)s->slabs[class].next;
    void *block;

    if (&slab->ring == &s->slabs[class] && !(slab = new_slab(s, class)))
        return NULL;
    block = slab->unused;
    if (block) {
        slab->unused = *(void **)block;
    } else {
        block = (char *)slab + slab->fresh;
        slab->fresh += slab->size;
    }
    slab->count++;
    if (is_full(slab)) {
        take_out(&slab->ring);
        insert(&s->full, &slab->ring);
    }
    return block;
}

static void free_small(struct script *s, void *ptr)
{
    struct slab *slab = (struct slab *)((uintptr_t)ptr & ~(uintptr_t)(SLAB - 1));
    struct ring *class = &s->slabs[class_of(slab->size)];
    bool was_full = is_full(slab);

    *(void **)ptr = slab->unused;
    slab->unused = ptr;
    slab->count--;
    if (was_full || slab->count == 0)
        take_out(&slab->ring);
    if (slab->count == 0) {
        s->held -= SLAB;
        free(slab);
    } else if (was_full) {
        insert(class, &slab->ring);
    }
}

/* -- larger ones ----------------------------------------------------------- */

static void *new_block(struct script *s, size_t size)
{
    struct ring *block;

    if (size <= SMALL)
        return new_small(s, class_of(size));
    if (!has_room(s, size) || !(block = enif_alloc(sizeof *block + size)))
        return NULL;
    s->held += size;
    s->large += size >= LARGE ? size : 0;
    insert(&s->blocks, block);
    return block + 1;
}

static void free_block(struct script *s, void *ptr, size_t size)
{
    struct ring *block = (struct ring *)ptr - 1;

    if (size <= SMALL) {
        free_small(s, ptr);
        return;
    }
    take_out(block);
    enif_free(block);
    s->held -= size;
    s->large -= size >= LARGE ? size : 0;
}

static bool is_same(size_t before, size_t size)
{
    return before <= SMALL && size <= SMALL
        && class_of(before) == class_of(size);
}

/* LuaJIT raises; a script that catches that is left at the next instruction. */
static void *give_up(struct script *s)
{
    s->stop = MEMORY;
    if (s->running && s->every != 1)
        arm(s, 1);
    return NULL;
}

/* For tests. */
static bool fails(struct script *s)
{
    return !s->shrinks && s->fails_in > 0 && --s->fails_in == 0;
}

/* A script that asks for much will work on it for long, in one go, so the task
 * goes to a dirty scheduler first. (It may pause here: what Lua has begun stays
 * on the task's stack, and no other task has the lock.)  Not where it may be a
 * stack that grows: LuaJIT makes room on it before the hook, knowing where
 * errno is. */
static bool is_long(size_t before, size_t size)
{
    return size >= LARGE && size > before && !(before && size <= LARGEST_STACK);
}

/* Lua's allocator. */
void *memory_realloc(void *script, void *ptr, size_t before, size_t size)
{
    struct script *s = script;
    void *to;

    if (!ptr)
        before = 0;
    if (before && size && is_same(before, size)) {
        s->used += size - before;
        return ptr;
    }
    if (is_long(before, size))
        go_dirty(s);
    s->shrinks = size < before;
    to = size && !fails(s) ? new_block(s, size) : NULL;
    if (size && !to)
        return give_up(s);
    if (before && size)
        memcpy(to, ptr, before < size ? before : size);
    if (before)
        free_block(s, ptr, before);
    s->used += size - before;
    if (s->running && (s->used > s->collect_at || size >= LARGE))
        collect_soon(s, false);
    return to;
}

/* Piece by piece. */
static void free_ring(fair_task *t, struct ring *ring, void (*release)(void *))
{
    for (struct ring *item = ring->next, *next; item != ring; item = next) {
        next = item->next;
        release(item);
        fair_tick(t, 1);
    }
}

void memory_free(fair_task *t, struct script *s)
{
    free_ring(t, &s->blocks, enif_free);
    free_ring(t, &s->full, free);
    for (int i = 0; i < CLASSES; i++)
        free_ring(t, &s->slabs[i], free);
}
