/*
 * fold.c - stacks that are counted: a tree, so that each name is there once and
 * equal beginnings are, too.  Its pages are used as it grows, up to its limit.
 */
#include <string.h>

#include "outside/fold.h"
#include "outside/print.h"
#include "read/mem.h"

/* Twice as many places as entries: each search ends. */
enum { PLACES = 2 * WATCH__NODES, OTHER = 1 };

bool watch__fold_open(struct watch__fold *f)
{
    f->nodes = watch__pages(WATCH__NODES * sizeof *f->nodes);
    f->names = watch__pages(PLACES * sizeof *f->names);
    f->children = watch__pages(PLACES * sizeof *f->children);
    f->text = watch__pages(WATCH__TEXT);
    f->count = f->used = 1;
    return f->nodes && f->names && f->children && f->text
        && watch__fold_node(f, 0, "(other)", C_ROOT) == OTHER;
}

size_t watch__fold_clean(char to[WATCH__FRAME], const char *name)
{
    const unsigned char *p = (const unsigned char *)name;
    size_t used = 0;

    while (*p && used < WATCH__FRAME - 5) {
        size_t n = watch__utf8(p);

        if (n == 0 || *p < ' ' || *p == 0x7f
            || (n == 2 && p[0] == 0xc2 && p[1] < 0xa0)
            || (n == 3 && p[0] == 0xef && p[1] == 0xbf && p[2] > 0xbd)) {
            to[used++] = '?';
        } else if (*p == ';') {
            to[used++] = ',';
        } else {
            memcpy(to + used, p, n);
            used += n;
        }
        p += n ? n : 1;
    }
    to[used] = '\0';
    return used;
}

static uint32_t text_of(struct watch__fold *f, const char *name)
{
    char text[WATCH__FRAME];
    size_t size = watch__fold_clean(text, name) + 1;
    uint32_t hash = 2166136261u, *place;

    for (size_t i = 0; i < size; i++)
        hash = (hash ^ (unsigned char)text[i]) * 16777619u;
    for (;; hash++) {
        place = &f->names[hash % PLACES];
        if (!*place)
            break;
        if (!strcmp(f->text + *place, text))
            return *place;
    }
    if (f->used + size > WATCH__TEXT || f->named == WATCH__NODES)
        return 0;
    f->named++;
    memcpy(f->text + f->used, text, size);
    *place = f->used;
    f->used += (uint32_t)size;
    return *place;
}

uint32_t watch__fold_node(struct watch__fold *f, uint32_t parent,
                          const char *name, enum watch__colour colour)
{
    uint32_t text = text_of(f, name), *place;
    uint64_t hash = ((uint64_t)parent << 32 | text) * 0x9e3779b97f4a7c15u;
    unsigned depth = parent ? f->nodes[parent].depth + 1u : 0;

    if (!text || depth >= WATCH__DEPTH)
        return 0;
    for (hash >>= 32;; hash++) {
        place = &f->children[hash % PLACES];
        if (!*place)
            break;
        if (f->nodes[*place].parent == parent && f->nodes[*place].name == text)
            return *place;
    }
    if (f->count == WATCH__NODES)
        return 0;
    f->nodes[f->count] = (struct watch__node){
        .parent = parent, .name = text, .colour = colour, .depth = depth
    };
    return *place = f->count++;
}

void watch__fold_count(struct watch__fold *f, uint32_t node)
{
    f->samples++;
    f->nodes[node ? node : OTHER].self++;
}

uint64_t watch__fold_other(const struct watch__fold *f)
{
    return f->nodes[OTHER].self;
}

void watch__fold_end(struct watch__fold *f)
{
    for (uint32_t i = f->count; i-- > 1;) {
        f->nodes[i].total += f->nodes[i].self;
        f->nodes[f->nodes[i].parent].total += f->nodes[i].total;
    }
}

void watch__write_collapsed(FILE *to, struct watch__fold *f)
{
    for (uint32_t i = 1; i < f->count; i++) {
        uint32_t path[WATCH__DEPTH], n = 0;

        if (!f->nodes[i].self)
            continue;
        for (uint32_t at = i; at; at = f->nodes[at].parent)
            path[n++] = f->nodes[at].name;
        while (n-- > 0)
            fprintf(to, "%s%c", f->text + path[n], n ? ';' : ' ');
        fprintf(to, "%llu\n", (unsigned long long)f->nodes[i].self);
    }
    for (unsigned i = 0; i < f->idle_count; i++)
        fprintf(to, "idle;%s %llu\n", f->idle[i].name,
                (unsigned long long)f->idle[i].samples);
}
