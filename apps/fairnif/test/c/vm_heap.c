/*
 * vm_heap.c - where terms live, and how they are moved.
 *
 * A collection always moves everything and frees what it leaves, so that a
 * pointer or term held across it is a use after free.  Every term met on the
 * way must lie on this heap: a term of another one ends the program.
 */
#include <string.h>

#include "vm_int.h"

enum { FIRST_CHUNK = 256 };

static struct vm_chunk *new_chunk(size_t words)
{
    struct vm_chunk *c = vm__malloc(sizeof *c + words * sizeof(vm_term));

    c->next = NULL;
    c->size = words;
    c->used = 0;
    return c;
}

vm_term *vm__heap_alloc(struct vm_heap *h, size_t words)
{
    struct vm_chunk *c = h->chunks;
    vm_term *p;

    if (!c || c->size - c->used < words) {
        size_t size = c ? 2 * c->size : FIRST_CHUNK;

        if (!c)
            COUNT(heaps, 1);
        c = new_chunk(size < words ? words : size);
        c->next = h->chunks;
        h->chunks = c;
    }
    p = c->words + c->used;
    c->used += words;
    h->words += words;
    return p;
}

/* Remembers a boxed term that refers to something off the heap. */
void vm__heap_off(struct vm_heap *h, vm_term *boxed)
{
    if (h->off_used == h->off_size) {
        h->off_size = h->off_size ? 2 * h->off_size : 16;
        h->off = vm__realloc(h->off, h->off_size * sizeof *h->off);
    }
    h->off[h->off_used++] = boxed;
}

static void drop_off(const vm_term *boxed)
{
    if (SUBTAG(boxed[0]) == T_MAGIC)
        vm__resource_drop((struct vm_resource *)boxed[1]);
    else
        vm__bin_drop((struct vm_bin *)boxed[1]);
}

static void free_chunks(struct vm_chunk *c)
{
    while (c) {
        struct vm_chunk *next = c->next;

        memset(c->words, 0xDD, c->used * sizeof *c->words);
        vm__free(c);
        c = next;
    }
}

/* The memory first and then what it referred to: a destructor that looks at
 * the heap it was called from finds it gone. */
void vm__heap_clear(struct vm_heap *h)
{
    struct vm_heap old = *h;
    vm_term (*off)[2] = NULL;

    if (!old.chunks)
        return;
    memset(h, 0, sizeof *h);
    if (old.off_used) {
        off = vm__malloc(old.off_used * sizeof *off);
        for (size_t i = 0; i < old.off_used; i++)
            memcpy(off[i], old.off[i], sizeof *off);
    }
    free_chunks(old.chunks);
    vm__free(old.off);
    COUNT(heaps, -1);
    for (size_t i = 0; i < old.off_used; i++)
        drop_off(off[i]);
    vm__free(off);
}

static bool chunks_own(const struct vm_chunk *c, const vm_term *p)
{
    for (; c; c = c->next)
        if (p >= c->words && p < c->words + c->used)
            return true;
    return false;
}

bool vm__heap_owns(const struct vm_heap *h, vm_term t)
{
    return TAG(t) == TAG_IMMEDIATE
        || (TAG(t) != TAG_HEADER && chunks_own(h->chunks, PTR(t)));
}

size_t vm__boxed_words(vm_term header)
{
    size_t n = HSIZE(header);

    if (TAG(header) != TAG_HEADER)
        vm_misuse("a boxed term without a header: %#lx", header);
    switch (SUBTAG(header)) {
    case T_TUPLE:
        return 1 + n;
    case T_BIG:
        return 3;
    case T_HEAPBIN:
        return 1 + (n + sizeof(vm_term) - 1) / sizeof(vm_term);
    case T_REFCBIN:
        return 4;
    case T_SUBBIN:
        return 5;
    case T_MAP:
        return 1 + 2 * n;
    case T_FLOAT:
    case T_REF:
    case T_MAGIC:
    case T_FUN:
        return 2;
    }
    vm_misuse("a boxed term of no known type: %#lx", header);
}

/* -- collecting (Cheney) ------------------------------------------------- */

struct collection {
    const struct vm_chunk *from;
    struct vm_chunk *to;
};

static vm_term *move_words(struct collection *g, const vm_term *from, size_t n)
{
    vm_term *to = g->to->words + g->to->used;

    memcpy(to, from, n * sizeof *to);
    g->to->used += n;
    return to;
}

static vm_term forward(struct collection *g, vm_term t)
{
    vm_term *old = PTR(t), *new;

    if (TAG(t) == TAG_IMMEDIATE)
        return t;
    if (TAG(t) == TAG_HEADER)
        vm_misuse("no term: %#lx", t);
    if (!chunks_own(g->from, old))
        vm_misuse("a term of another heap, or one held across a pause: %#lx",
                  t);
    if (TAG(t) == TAG_CONS) {
        if (old[0] == NON_VALUE)
            return old[1];
        new = move_words(g, old, 2);
        old[0] = NON_VALUE;
        return old[1] = CONS(new);
    }
    if (TAG(old[0]) != TAG_HEADER)
        return old[0];
    new = move_words(g, old, vm__boxed_words(old[0]));
    return old[0] = BOXED(new);
}

static void scan(struct collection *g)
{
    vm_term *p = g->to->words;

    while (p < g->to->words + g->to->used) {
        if (TAG(*p) != TAG_HEADER) {
            *p = forward(g, *p);
            p++;
        } else if (SUBTAG(*p) == T_TUPLE || SUBTAG(*p) == T_MAP) {
            p++;
        } else {
            if (SUBTAG(*p) == T_SUBBIN)
                p[4] = forward(g, p[4]);
            p += vm__boxed_words(*p);
        }
    }
}

void vm__heap_collect(struct vm_heap *h, vm_term *roots[], const size_t n[],
                      int sets)
{
    struct vm_heap old = *h;
    struct collection g = {old.chunks, NULL};

    if (!old.chunks)
        return;
    g.to = new_chunk(old.words);
    for (int s = 0; s < sets; s++)
        for (size_t i = 0; i < n[s]; i++)
            roots[s][i] = forward(&g, roots[s][i]);
    scan(&g);
    memset(h, 0, sizeof *h);
    h->chunks = g.to;
    h->words = g.to->used;
    for (size_t i = 0; i < old.off_used; i++) {
        if (TAG(old.off[i][0]) == TAG_HEADER)
            drop_off(old.off[i]);
        else
            vm__heap_off(h, PTR(old.off[i][0]));
    }
    free_chunks(old.chunks);
    vm__free(old.off);
    if (!h->words && !h->off_used)
        vm__heap_clear(h);
}

/* -- copying from heap to heap, as copy_struct: sharing is lost ---------- */

static vm_term copy_boxed(struct vm_heap *to, vm_term t);

static vm_term copy_list(struct vm_heap *to, vm_term t)
{
    vm_term first = VM_NIL, *last = &first;

    for (; TAG(t) == TAG_CONS; t = PTR(t)[1]) {
        vm_term *cell = vm__heap_alloc(to, 2);

        cell[1] = VM_NIL;
        *last = CONS(cell);
        last = cell + 1;
        cell[0] = vm__copy(to, PTR(t)[0]);
        vm__walked(2);
    }
    *last = vm__copy(to, t);
    return first;
}

static vm_term copy_boxed(struct vm_heap *to, vm_term t)
{
    const vm_term *from = PTR(t);
    size_t words = vm__boxed_words(from[0]);
    vm_term *p;

    p = vm__heap_alloc(to, words);
    memcpy(p, from, words * sizeof *p);
    vm__walked(words);
    switch (SUBTAG(from[0])) {
    case T_TUPLE:
    case T_MAP:
        for (size_t i = 1; i < words; i++)
            p[i] = VM_NIL;
        for (size_t i = 1; i < words; i++)
            p[i] = vm__copy(to, from[i]);
        break;
    case T_REFCBIN:
        vm__bin_keep((struct vm_bin *)p[1]);
        vm__heap_off(to, p);
        break;
    case T_MAGIC:
        vm__resource_keep((struct vm_resource *)p[1]);
        vm__heap_off(to, p);
        break;
    case T_SUBBIN:
        p[4] = vm__copy(to, from[4]);
        break;
    default:
        break;
    }
    return BOXED(p);
}

vm_term vm__copy(struct vm_heap *to, vm_term t)
{
    switch (TAG(t)) {
    case TAG_IMMEDIATE:
        return t;
    case TAG_CONS:
        return copy_list(to, t);
    case TAG_BOXED:
        return copy_boxed(to, t);
    case TAG_HEADER:
        break;
    }
    vm_misuse("no term to copy: %#lx", t);
}
