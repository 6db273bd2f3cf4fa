/*
 * memory.c - expat's memory, see memory.h.
 *
 * expat's allocator gets nothing of the caller's.  So a thread-local variable
 * has the task it works for, set again where the thread may be another one.
 * Its address is taken in functions that do not pause, and are not inlined.
 */
#include "memory.h"

enum {
    LARGE = 2048,               /* bytes: a block of its own */
    MOST_AT_ONCE = 1 << 20,
    MANY_NAMES = 256            /* expat puts them into a new table in 30 us */
};

struct head {
    _Alignas(16) size_t size;
};

static _Thread_local struct memory *at_work;

void memory_begin(struct memory *m, fair_task *t, void (*long_work)(void *),
                  void *arg)
{
    m->t = t;
    m->long_work = long_work;
    m->arg = arg;
    m->count = 0;
    m->total = m->left = FIRST_MEMORY;
    m->at = m->first;
    memory_use(m);
}

__attribute__((noinline)) void memory_use(struct memory *m)
{
    at_work = m;
}

/* NULL where the variable is not this task's: expat then says that memory is
 * out. */
static __attribute__((noinline)) struct memory *in_use(void)
{
    return at_work && at_work->t == fair_current() ? at_work : NULL;
}

/* Of pointers, a power of two of them, a quarter of which will be names.  Newer
 * versions of expat put some bytes before. */
static bool is_table_of_many(const struct memory *m, size_t size)
{
    size_t power = MANY_NAMES * 4 * sizeof(void *);

    if (size < power || m->count < size / (4 * sizeof(void *)) - 1)
        return false;
    while (power <= size / 2)
        power *= 2;
    return size - power < 64;
}

static bool more(struct memory *m)
{
    size_t size = m->total < MOST_AT_ONCE ? m->total : MOST_AT_ONCE;

    m->at = fair_alloc(m->t, size);
    m->left = m->at ? size : 0;
    m->total += m->left;
    return m->at != NULL;
}

static struct head *small_block(struct memory *m, size_t size)
{
    struct head *h;

    size = sizeof *h + ((size + 15) & ~(size_t)15);
    if (size > m->left && !more(m))
        return NULL;
    h = (struct head *)m->at;
    m->at += size;
    m->left -= size;
    m->count++;
    return h;
}

static void *allocate(size_t size)
{
    struct memory *m = in_use();
    struct head *h;

    if (!m || size > SIZE_MAX / 2)
        return NULL;
    if (is_table_of_many(m, size))
        m->long_work(m->arg);
    h = size < LARGE ? small_block(m, size)
        : fair_alloc(m->t, sizeof *h + size);
    if (!h)
        return NULL;
    h->size = size;
    return h + 1;
}

static void release(void *block)
{
    struct head *h = block;
    struct memory *m = in_use();

    if (h && m && h[-1].size >= LARGE)
        fair_free(m->t, h - 1);
}

static void *resize(void *block, size_t size)
{
    struct head *h = block;
    struct memory *m = in_use();
    void *moved;

    if (!h || !m || size > SIZE_MAX / 2)
        return h ? NULL : allocate(size);
    h--;
    if (h->size >= LARGE && size >= LARGE) {
        h = fair_realloc(m->t, h, sizeof *h + size);
        if (!h)
            return NULL;
        h->size = size;
        return h + 1;
    }
    moved = allocate(size);
    if (moved) {
        memcpy(moved, block, h->size < size ? h->size : size);
        release(block);
    }
    return moved;
}

const XML_Memory_Handling_Suite task_memory = {allocate, resize, release};
