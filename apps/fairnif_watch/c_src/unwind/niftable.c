/*
 * niftable.c - what the emulator calls a native function as: the NIF that it is,
 * the callback of a library or of a port driver; and the module that its library
 * belongs to.  From the library's own tables.  Works on stripped libraries too,
 * and on what is linked to the emulator.
 *
 * A library's ErlNifEntry and ErlDrvEntry lie in its data and are looked for.
 * Any words may look like one: each field is checked, and what it points to must
 * lie in the same library.  Only the functions may lie elsewhere: other languages
 * make that table when they are loaded.  What looks like a function and is not in
 * that table is no NIF.
 */
#include <string.h>

#include <erl_driver.h>

#include "unwind/niftable.h"
#include "read/mem.h"

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

/* Of erl_driver.h's. */
static const struct { const char *name; size_t at; } callbacks[] = {
#define CALLBACK(NAME) {#NAME, offsetof(ErlDrvEntry, NAME)}
    CALLBACK(init), CALLBACK(start), CALLBACK(stop), CALLBACK(output),
    CALLBACK(ready_input), CALLBACK(ready_output), CALLBACK(finish),
    CALLBACK(control), CALLBACK(timeout), CALLBACK(outputv),
    CALLBACK(ready_async), CALLBACK(flush), CALLBACK(call),
    CALLBACK(process_exit), CALLBACK(stop_select), CALLBACK(emergency_close)
#undef CALLBACK
};
enum { CALLBACKS = sizeof callbacks / sizeof *callbacks,
       MARKER = offsetof(ErlDrvEntry, extended_marker) };

/* Of an atom, or of a driver; ends with NUL within 64. */
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

static bool read_entry(const struct watch__image *image, uint64_t at,
                       struct entry *e, char name[64])
{
    char variant[64];

    return watch__read_all(e, at, sizeof *e) && e->major == 2
        && e->minor < MINOR_MOST && e->count <= FUNCTIONS_MOST
        && in_or_null(image, e->load) && in_or_null(image, e->reload)
        && in_or_null(image, e->upgrade) && in_or_null(image, e->unload)
        && watch__image_has(image, e->name) && read_name(e->name, name)
        && watch__image_has(image, e->vm_variant)
        && read_name(e->vm_variant, variant) && !strncmp(variant, "beam.", 5);
}

static uint64_t callback_of(const ErlDrvEntry *e, unsigned i)
{
    uint64_t function;

    memcpy(&function, (const char *)e + callbacks[i].at, sizeof function);
    return function;
}

static bool read_driver(const struct watch__image *image, uint64_t at,
                        ErlDrvEntry *e, char name[64])
{
    if (!watch__read_all(e, at, sizeof *e)
        || (uint32_t)e->extended_marker != (uint32_t)ERL_DRV_EXTENDED_MARKER
        || !watch__image_has(image, (uintptr_t)e->driver_name)
        || !read_name((uintptr_t)e->driver_name, name))
        return false;
    for (unsigned i = 0; i < CALLBACKS; i++)
        if (!in_or_null(image, callback_of(e, i)))
            return false;
    return true;
}

/* Whether a table may begin there, by one of its words. */
static void take_table(struct watch__image *image, uint64_t at, uint64_t word)
{
    struct watch__table *t = &image->tables[image->tables_count];
    ErlDrvEntry driver;
    struct entry entry;
    char name[64];

    t->driver = (uint32_t)word == (uint32_t)ERL_DRV_EXTENDED_MARKER;
    t->at = t->driver ? at - MARKER : at;
    if (t->driver ? read_driver(image, t->at, &driver, name)
        : (uint32_t)word == 2 && word >> 32 < MINOR_MOST
          && read_entry(image, at, &entry, name))
        image->tables_count++;
}

static void find_tables(struct watch__maps *maps, struct watch__image *image)
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

            for (size_t k = 0; k < got / 8; k++)
                if (image->tables_count < WATCH__TABLES)
                    take_table(image, at + 8 * k, words[k]);
            if (got < want)
                break;
            at += want;
        }
    }
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

static bool find_func(struct watch__maps *maps, const struct entry *e,
                      struct watch__frame *frame)
{
    struct func *funcs = (struct func *)(void *)maps->scratch;
    enum { MOST = PIECE / sizeof *funcs };

    for (unsigned i = 0; i < e->count; i += MOST) {
        unsigned n = e->count - i < MOST ? e->count - i : MOST;

        if (!watch__read_all(funcs, e->funcs + i * sizeof *funcs,
                             n * sizeof *funcs))
            return false;
        for (unsigned k = 0; k < n; k++)
            if (funcs[k].pointer == frame->start)
                return take_func(&funcs[k], frame);
    }
    return false;
}

/* The module alone, where no function of its table is this one: not of the
 * emulator, whose tables are of many modules. */
static bool name_by_entry(struct watch__maps *maps,
                          const struct watch__image *image, uint64_t at,
                          struct watch__frame *frame)
{
    struct entry e;
    char name[64];
    bool found;

    if (!read_entry(image, at, &e, name))
        return false;
    frame->callback = !frame->start ? NULL : frame->start == e.load ? "load"
        : frame->start == e.upgrade ? "upgrade"
        : frame->start == e.unload ? "unload" : NULL;
    found = frame->callback || (frame->start && find_func(maps, &e, frame));
    if (found || (frame->in != IN_EMULATOR && !frame->module[0]))
        memcpy(frame->module, name, sizeof name);
    return found;
}

static bool name_by_driver(const struct watch__image *image, uint64_t at,
                           struct watch__frame *frame)
{
    ErlDrvEntry e;
    char name[64];

    if (!frame->start || !read_driver(image, at, &e, name))
        return false;
    for (unsigned i = 0; i < CALLBACKS; i++)
        if (callback_of(&e, i) == frame->start) {
            memcpy(frame->driver, name, sizeof name);
            frame->callback = callbacks[i].name;
            return true;
        }
    return false;
}

/* frame->function and arity where the frame is a NIF itself, frame->callback
 * where it is one, of frame->driver or of the library; frame->module where its
 * library is one that a module has loaded. */
void watch__nif_of(struct watch__maps *maps, struct watch__image *image,
                   struct watch__frame *frame)
{
    if (!image->tables_sought) {
        find_tables(maps, image);
        image->tables_sought = true;
    }
    for (unsigned i = 0; i < image->tables_count; i++) {
        const struct watch__table *t = &image->tables[i];

        if (t->driver ? name_by_driver(image, t->at, frame)
            : name_by_entry(maps, image, t->at, frame)) {
            frame->named = NAMED_NIF_TABLE;
            return;
        }
    }
}
