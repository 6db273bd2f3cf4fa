/*
 * pagecache.c - pages of a node, read once.
 *
 * What lies in one of its modules is kept; all else, which changes at any time,
 * while one thread's process is looked at.
 */
#include <string.h>

#include "outside/pagecache.h"
#include "read/mem.h"
#include "read/source.h"

enum { PAGE = 4096, PAGES = 2048 };

static struct {
    uint64_t at[PAGES];         /* 0: nothing */
    uint64_t look[PAGES];       /* for which it is good; 0: for all */
    unsigned char bytes[PAGES][PAGE];
} *cache;
static const struct watch__vm *node;
static struct watch__source plain, cached;
static uint64_t looks;
static bool looking;

static bool in_list(const struct watch__vm_list *list, uint64_t at, size_t size)
{
    unsigned low = 0, high = list->count;

    while (low < high) {
        unsigned middle = (low + high) / 2;

        if (at < list->modules[middle].start)
            high = middle;
        else if (at >= list->modules[middle].end)
            low = middle + 1;
        else
            return size <= list->modules[middle].end - at;
    }
    return false;
}

static bool in_code(uint64_t at, size_t size)
{
    for (unsigned i = 0; i < WATCH__VM_LISTS; i++)
        if (in_list(&node->list[i], at, size))
            return true;
    return false;
}

static size_t read_plain(void *to, uint64_t from, size_t size)
{
    size_t n;

    watch__source_set(&plain);
    n = watch__read(to, from, size);
    watch__source_set(&cached);
    return n;
}

static bool is_kept(uint64_t slot, uint64_t page, bool code)
{
    return cache->at[slot] == page
        && (code ? !cache->look[slot]
            : looking && cache->look[slot] == looks);
}

static size_t read_cached(void *to, uint64_t from, size_t size)
{
    uint64_t page = from / PAGE, slot = page % PAGES;
    bool fits = from % PAGE + size <= PAGE, code = fits && in_code(from, size);

    if (!fits || !(code || looking))
        return read_plain(to, from, size);
    if (!is_kept(slot, page, code)) {
        cache->at[slot] = 0;
        if (read_plain(cache->bytes[slot], page * PAGE, PAGE) < PAGE)
            return read_plain(to, from, size);
        cache->at[slot] = page;
        cache->look[slot] = code ? 0 : looks;
    }
    memcpy(to, cache->bytes[slot] + from % PAGE, size);
    return size;
}

void watch__pagecache_open(const struct watch__vm *vm)
{
    cache = vm ? watch__pages(sizeof *cache) : NULL;
    if (!cache)
        return;
    node = vm;
    plain = cached = *watch__source();
    cached.read = read_cached;
    watch__source_set(&cached);
}

void watch__pagecache_clear(void)
{
    if (cache)
        memset(cache->at, 0, sizeof cache->at);
}

void watch__pagecache_begin(void)
{
    looks++;
    looking = true;
}

void watch__pagecache_end(void)
{
    looking = false;
}
