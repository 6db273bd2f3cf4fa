/*
 * image.h - what the parts of stack.h share: the libraries that are mapped, and
 * how a frame of each is left (rows).  Owned by the watch thread, all of it.
 */
#ifndef WATCH_IMAGE_H
#define WATCH_IMAGE_H

#include <string.h>

#include "stack.h"

enum {
    WATCH__IMAGES = 512,        /* libraries that are known at a time */
    WATCH__ROWS = 256,
    WATCH__SYMBOLS = 512,       /* names that are kept */
    WATCH__SEGMENTS = 8,
    WATCH__BUILD_ID = 32,
    WATCH__SCRATCH = 64 * 1024
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

    bool module_sought;
    char module[64];            /* of its ErlNifEntry; "": it has none */
    uint64_t entry;             /* where it lies */
    uint64_t nifs;              /* its table of functions */
    unsigned nif_count;
};

/* How a register of the caller is found. */
enum watch__kind { RULE_UNSAID, RULE_SAME, RULE_UNDEFINED, RULE_OFFSET,
                   RULE_VALUE_OFFSET, RULE_REGISTER, RULE_EXPRESSION,
                   RULE_VALUE_EXPRESSION };
struct watch__rule {
    enum watch__kind kind : 8;
    uint16_t size;              /* of the expression */
    uint16_t base;              /* of the CFA: its register */
    int64_t n;                  /* offset, register, or where the expression
                                   lies */
};

/* The unwind table's line for one pc. */
struct watch__row {
    uint64_t serial, pc;        /* of which image; its key among the kept */
    uint64_t start, end;        /* of the function */
    bool signal, is_signed;
    uint8_t ra;                 /* the register of the return address */
    struct watch__rule cfa, reg[WATCH__REGS];
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

/* mem.c */
WATCH_HIDDEN void watch__read_start(void);
WATCH_HIDDEN void watch__read_stop(void);
WATCH_HIDDEN void watch__read_refuse(bool refuse);
WATCH_HIDDEN bool watch__read_all(void *to, uint64_t from, size_t size);
WATCH_HIDDEN void *watch__pages(size_t size);
WATCH_HIDDEN void watch__pages_free(void *p, size_t size);

/* What the emulator calls its machine code, where it maps it twice. */
static inline bool watch__is_vms_name(const char *path)
{
    return path && !strncmp(path, "/memfd:vmem", 11);
}

/* maps.c: the mapping that pc lies in, or NULL.  Reads the maps again where
 * there is none. */
WATCH_HIDDEN const struct watch__map *watch__map_of(struct watch__maps *maps,
                                                    uint64_t pc);
/* The library's image, its headers read; NULL: that is no ELF file. */
WATCH_HIDDEN struct watch__image *watch__image_of(struct watch__maps *maps,
                                                  const struct watch__map *map);
/* Something that was mapped is something else now. */
WATCH_HIDDEN void watch__maps_changed(struct watch__maps *maps);
WATCH_HIDDEN uint64_t watch__now(void);

/* elf.c */
WATCH_HIDDEN void watch__image_load(struct watch__image *image);
/* Is in memory still what the image was read from? */
WATCH_HIDDEN bool watch__image_same(const struct watch__image *image);
WATCH_HIDDEN bool watch__image_has(const struct watch__image *image,
                                   uint64_t address);

/* table.c: the row for pc, read or kept; NULL: the library has none. */
WATCH_HIDDEN const struct watch__row *watch__row_of(struct watch__maps *maps,
                                                    struct watch__image *image,
                                                    uint64_t pc);

/* A piece of a table, copied; reading behind its end is `bad` and gives 0. */
struct watch__reader {
    const unsigned char *at, *end;
    uint64_t address;           /* of `end` in memory */
    bool bad;
};
WATCH_HIDDEN uint64_t watch__get(struct watch__reader *r, unsigned bytes);
WATCH_HIDDEN uint64_t watch__get_uleb(struct watch__reader *r);
WATCH_HIDDEN int64_t watch__get_sleb(struct watch__reader *r);
WATCH_HIDDEN uint64_t watch__get_pointer(struct watch__reader *r,
                                         unsigned encoding, uint64_t data);
WATCH_HIDDEN uint64_t watch__position(const struct watch__reader *r);

/* cfi.c: runs the instructions up to pc. */
struct watch__cie {
    uint64_t code_factor;
    int64_t data_factor;
    unsigned encoding;          /* of addresses in its FDEs */
    bool augmented;             /* FDEs have augmentation data */
};
WATCH_HIDDEN bool watch__cfi_run(struct watch__reader *r,
                                 const struct watch__cie *cie,
                                 struct watch__row *row,
                                 const struct watch__row *first,
                                 uint64_t location, uint64_t pc);

/* unwind.c: of the copied stack. */
WATCH_HIDDEN bool watch__stack_word(const struct watch__snapshot *s,
                                    uint64_t address, uint64_t *word);
WATCH_HIDDEN bool watch__expression(const struct watch__snapshot *s,
                                    const struct watch__regs *regs,
                                    const struct watch__rule *rule,
                                    const uint64_t *cfa, uint64_t *result);

/* base.c: the frame pointer where the row needs it and it is not known. */
WATCH_HIDDEN bool watch__frame_base(const struct watch__snapshot *s,
                                    const struct watch__row *row, uint64_t sp,
                                    uint64_t pc, uint64_t *base);

/* symbol.c, niftable.c */
WATCH_HIDDEN bool watch__symbol_of(const struct watch__image *image,
                                   uint64_t address,
                                   struct watch__frame *frame);
WATCH_HIDDEN void watch__nif_of(struct watch__maps *maps,
                                struct watch__image *image,
                                struct watch__frame *frame);

#endif
