/*
 * maps.h - what is mapped, read again when an address is in none of it, and what
 * is kept of it.  The watch thread's, all of it.
 */
#ifndef WATCH_MAPS_H
#define WATCH_MAPS_H

#include <string.h>

#include "unwind/image.h"
#include "unwind/row.h"

enum {
    WATCH__IMAGES = 512,        /* libraries that are known at a time */
    WATCH__ROWS = 256,
    WATCH__SYMBOLS = 512,       /* names that are kept */
    WATCH__SCRATCH = 64 * 1024
};

struct watch__map {
    uint64_t start, end, offset, dev, ino;
    const char *path;           /* NULL: anonymous */
    bool executable, deleted;
    int image;                  /* -1: none */
};

struct watch__kept_name {
    uint64_t serial, start;
    struct watch__frame frame;
};

struct watch__maps {
    struct watch__map *map;     /* executable ones and what their files begin
                                   with, by address */
    unsigned count, room;
    struct watch__map head;     /* while reading: what began a file, with */
    char head_path[4096 + 64];
    size_t head_length;         /* 0: nothing */
    struct watch__image image[WATCH__IMAGES];
    uint64_t serial;
    uint64_t read_at, read_cost;        /* ns, monotonic */
    uint64_t paid_until;        /* by then readings for unknown addresses have
                                   taken no more than their share */
    uint64_t reads;             /* how often */
    bool vm_is_named;           /* the emulator's machine code is mapped twice,
                                   with a name; else it is anonymous */
    char exe[1024];
    struct watch__text *text;   /* paths */
    struct watch__row rows[WATCH__ROWS];
    unsigned rows_read;
    struct watch__kept_name names[WATCH__SYMBOLS];
    unsigned char scratch[WATCH__SCRATCH];
};

/* What the emulator calls its machine code, where it maps it twice. */
static inline bool watch__is_vms_name(const char *path)
{
    return path && !strncmp(path, "/memfd:vmem", 11);
}

WATCH_HIDDEN struct watch__maps *watch__maps_new(void);
WATCH_HIDDEN void watch__maps_free(struct watch__maps *maps);
/* The mapping that pc lies in, or NULL.  Reads the maps again where there is
 * none. */
WATCH_HIDDEN const struct watch__map *watch__map_of(struct watch__maps *maps,
                                                    uint64_t pc);
/* The library's image, its headers read; NULL: that is no ELF file. */
WATCH_HIDDEN struct watch__image *watch__image_of(struct watch__maps *maps,
                                                  const struct watch__map *map);
/* Something that was mapped is something else now. */
WATCH_HIDDEN void watch__maps_changed(struct watch__maps *maps);

#endif
