/*
 * niftable.c - the Erlang function that a native function is, and the module
 * that its library belongs to: from the library's own table of NIFs, as it lies
 * in its data.  Works on stripped libraries too.
 *
 * Any words may look like such a table: each field is checked, and everything
 * it points to must lie in the same library.
 */
#include <string.h>

#include "image.h"

enum { PIECE = 32 * 1024, DATA_MOST = 64 << 20, FUNCTIONS_MOST = 100000 };

/* erl_nif.h: ErlNifFunc, ErlNifEntry.  The fields since NIF 2.0, 64 bits. */
struct func {
    uint64_t name;
    uint32_t arity, gap;
    uint64_t pointer;
    uint32_t flags, gap_2;
};

struct entry {
    uint32_t major, minor;
    uint64_t name;
    uint32_t count, gap;
    uint64_t funcs, load, reload, upgrade, unload, vm_variant;
};

/* Of an atom; ends with NUL within 64. */
static bool read_name(const struct watch__image *image, uint64_t at,
                      char name[64])
{
    char bytes[64];
    size_t n;

    if (!watch__image_has(image, at))
        return false;
    n = watch__read(bytes, at, sizeof bytes);
    if (n == 0 || bytes[0] == 0 || !memchr(bytes, 0, n))
        return false;
    for (const char *p = bytes; *p; p++)
        if ((unsigned char)*p < ' ' || *p == 0x7f)
            return false;
    memset(name, 0, 64);
    memcpy(name, bytes, strlen(bytes));
    return true;
}

/* Calls `is` with where each word of the library's writable data lies that
 * passes `maybe`; until it answers true. */
struct search {
    uint64_t wanted;
    bool (*maybe)(uint64_t word, uint64_t wanted);
    bool (*is)(const struct watch__image *image, uint64_t at,
               struct watch__frame *frame);
};

static bool search_piece(const struct watch__image *image,
                         const struct search *x, uint64_t at,
                         const uint64_t *words, size_t count,
                         struct watch__frame *frame)
{
    for (size_t i = 0; i < count; i++)
        if (x->maybe(words[i], x->wanted) && x->is(image, at + 8 * i, frame))
            return true;
    return false;
}

static bool search_data(struct watch__maps *maps,
                        const struct watch__image *image,
                        const struct search *x, struct watch__frame *frame)
{
    uint64_t *words = (uint64_t *)(void *)maps->scratch;

    for (unsigned i = 0; i < image->data_count; i++) {
        uint64_t at = (image->data[i].start + 7) & ~UINT64_C(7);
        uint64_t end = image->data[i].start + image->data[i].size;

        if (end - at > DATA_MOST)
            end = at + DATA_MOST;
        while (at < end) {
            size_t want = end - at < PIECE ? (size_t)(end - at) : PIECE;
            size_t got = watch__read(words, at, want);

            if (search_piece(image, x, at, words, got / 8, frame))
                return true;
            if (got < want)
                break;
            at += want;
        }
    }
    return false;
}

static bool equals(uint64_t word, uint64_t wanted)
{
    return word == wanted;
}

static bool is_func(const struct watch__image *image, uint64_t at,
                    struct watch__frame *frame)
{
    struct func f;
    char name[64];

    if (!watch__read_all(&f, at - offsetof(struct func, pointer), sizeof f)
        || f.arity > 255 || f.flags > 2 || !read_name(image, f.name, name))
        return false;
    memcpy(frame->function, name, sizeof name);
    frame->arity = f.arity;
    return true;
}

/* Major version 2, any minor one. */
static bool begins_entry(uint64_t word, uint64_t wanted)
{
    (void)wanted;
    return (uint32_t)word == 2 && word >> 32 < 1000;
}

static bool in_or_null(const struct watch__image *image, uint64_t p)
{
    return p == 0 || watch__image_has(image, p);
}

static bool is_entry(const struct watch__image *image, uint64_t at,
                     struct watch__frame *frame)
{
    char name[64], variant[64];
    struct entry e;

    if (!watch__read_all(&e, at, sizeof e) || e.count > FUNCTIONS_MOST
        || !in_or_null(image, e.load) || !in_or_null(image, e.reload)
        || !in_or_null(image, e.upgrade) || !in_or_null(image, e.unload)
        || !read_name(image, e.name, name)
        || !read_name(image, e.vm_variant, variant)
        || strncmp(variant, "beam.", 5))
        return false;
    memcpy(frame->module, name, sizeof name);
    return true;
}

/* frame->function, arity where the frame is a NIF itself; frame->module where
 * its library is one that a module has loaded. */
void watch__nif_of(struct watch__maps *maps, struct watch__image *image,
                   struct watch__frame *frame)
{
    const struct search func = {frame->start, equals, is_func};
    const struct search entry = {0, begins_entry, is_entry};

    if (!image->module_sought) {
        struct watch__frame found = {0};

        search_data(maps, image, &entry, &found);
        memcpy(image->module, found.module, sizeof image->module);
        image->module_sought = true;
    }
    memcpy(frame->module, image->module, sizeof frame->module);
    if (frame->module[0] && frame->start
        && search_data(maps, image, &func, frame))
        frame->named = NAMED_NIF_TABLE;
}
