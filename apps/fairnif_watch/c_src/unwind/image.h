/*
 * image.h - a library, as its ELF file lies in memory.
 */
#ifndef WATCH_IMAGE_H
#define WATCH_IMAGE_H

#include "unwind/stack.h"

enum {
    WATCH__SEGMENTS = 8,
    WATCH__TABLES = 32,         /* of functions that the emulator calls */
    WATCH__BUILD_ID = 32
};

/* One library, executable or the vdso: an ELF file in memory. */
struct watch__image {
    uint64_t serial;            /* 0: a free entry; never used twice */
    uint64_t start;             /* of its ELF header in memory */
    uint64_t dev, ino;
    const char *path;
    bool deleted;               /* no longer the file of that path */
    bool seen;                  /* in the maps when they were last read */
    enum watch__in in;

    enum { IMAGE_NEW, IMAGE_GOOD, IMAGE_NO_ELF } state;
    uint64_t check;             /* of its headers, build id and dynamic part */
    uint64_t head_check;        /* where the build id lies beside the headers, */
    unsigned head_size;         /* as linkers put it: of all up to its end, in
                                   one piece; else 0 */
    uint64_t bias, low, high;   /* memory = bias + address in the file */
    uint64_t frame_hdr, frame_hdr_size;
    uint64_t table, table_count;        /* sorted: {function, FDE}, relative to
                                           frame_hdr, 4 bytes each */
    uint64_t dynamic, dynamic_size;
    struct { uint64_t start, size; } data[WATCH__SEGMENTS];
    unsigned data_count;
    unsigned char build_id[WATCH__BUILD_ID];
    unsigned build_id_size;
    uint64_t build_id_at;

    bool tables_sought;
    struct watch__table {       /* an ErlNifEntry, or an ErlDrvEntry */
        uint64_t at;
        bool driver;
    } tables[WATCH__TABLES + 1];        /* the last one is never kept */
    unsigned tables_count;
};

WATCH_HIDDEN void watch__image_load(struct watch__image *image);
/* Is in memory still what the image was read from? */
WATCH_HIDDEN bool watch__image_same(const struct watch__image *image);
WATCH_HIDDEN bool watch__image_has(const struct watch__image *image,
                                   uint64_t address);

#endif
