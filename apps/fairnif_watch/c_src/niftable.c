/*
 * niftable.c - the Erlang function that a native function is, and the module
 * that its library belongs to: from the library's own table of NIFs.  Works on
 * stripped libraries too.
 *
 * The library's ErlNifEntry lies in its data and is looked for.  Any words may
 * look like one: each field is checked, and what it points to must lie in the
 * same library.  Only the functions may lie elsewhere: other languages make
 * that table when they are loaded.  What looks like a function and is not in
 * that table is no NIF.
 */
#include <string.h>

#include "image.h"

enum { PIECE = 32 * 1024, DATA_MOST = 64 << 20, FUNCTIONS_MOST = 100000,
       MINOR_MOST = 1000 };

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
static bool read_name(uint64_t at, char name[64])
{
    char bytes[64];
    size_t n = watch__read(bytes, at, sizeof bytes);

    if (n == 0 || bytes[0] == 0 || !memchr(bytes, 0, n))
        return false;
    for (const char *p = bytes; *p; p++)
        if ((unsigned char)*p < ' ' || *p == 0x7f)
            return false;
    memset(name, 0, 64);
    memcpy(name, bytes, strlen(bytes));
    return true;
}

static bool in_or_null(const struct watch__image *image, uint64_t p)
{
    return p == 0 || watch__image_has(image, p);
}

static bool take_entry(struct watch__image *image, uint64_t at)
{
    char name[64], variant[64];
    struct entry e;

    if (!watch__read_all(&e, at, sizeof e) || e.major != 2
        || e.minor >= MINOR_MOST || e.count > FUNCTIONS_MOST
        || !in_or_null(image, e.load) || !in_or_null(image, e.reload)
        || !in_or_null(image, e.upgrade) || !in_or_null(image, e.unload)
        || !watch__image_has(image, e.name) || !read_name(e.name, name)
        || !watch__image_has(image, e.vm_variant)
        || !read_name(e.vm_variant, variant) || strncmp(variant, "beam.", 5))
        return false;
    memcpy(image->module, name, sizeof name);
    image->nifs = e.funcs;
    image->nif_count = e.count;
    return true;
}

static bool take_entry_of(struct watch__image *image, uint64_t at,
                          const uint64_t *words, size_t count)
{
    for (size_t i = 0; i < count; i++)
        if ((uint32_t)words[i] == 2 && words[i] >> 32 < MINOR_MOST
            && take_entry(image, at + 8 * i))
            return true;
    return false;
}

static bool find_entry(struct watch__maps *maps, struct watch__image *image)
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

            if (take_entry_of(image, at, words, got / 8))
                return true;
            if (got < want)
                break;
            at += want;
        }
    }
    return false;
}

static bool take_func(const struct func *f, struct watch__frame *frame)
{
    char name[64];

    if (f->arity > 255 || f->flags > 2 || !read_name(f->name, name))
        return false;
    memcpy(frame->function, name, sizeof name);
    frame->arity = f->arity;
    return true;
}

static bool find_func(struct watch__maps *maps,
                      const struct watch__image *image,
                      struct watch__frame *frame)
{
    struct func *funcs = (struct func *)(void *)maps->scratch;
    enum { MOST = PIECE / sizeof *funcs };

    for (unsigned i = 0; i < image->nif_count; i += MOST) {
        unsigned n = image->nif_count - i < MOST ? image->nif_count - i : MOST;

        if (!watch__read_all(funcs, image->nifs + i * sizeof *funcs,
                             n * sizeof *funcs))
            return false;
        for (unsigned k = 0; k < n; k++)
            if (funcs[k].pointer == frame->start)
                return take_func(&funcs[k], frame);
    }
    return false;
}

/* frame->function, arity where the frame is a NIF itself; frame->module where
 * its library is one that a module has loaded. */
void watch__nif_of(struct watch__maps *maps, struct watch__image *image,
                   struct watch__frame *frame)
{
    if (!image->module_sought) {
        find_entry(maps, image);
        image->module_sought = true;
    }
    memcpy(frame->module, image->module, sizeof frame->module);
    if (frame->module[0] && frame->start && find_func(maps, image, frame))
        frame->named = NAMED_NIF_TABLE;
}
