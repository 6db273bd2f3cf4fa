/*
 * name.c - what a frame is called: by its library's table of NIFs, else by the
 * symbol that covers it, else not at all.
 *
 * Names are kept, by library and function: the same few are asked for again
 * and again.
 */
#include <stdio.h>
#include <string.h>

#include "unwind/name.h"
#include "unwind/niftable.h"
#include "unwind/symbol.h"

static struct watch__kept_name *kept(struct watch__maps *maps, uint64_t serial,
                                     uint64_t start)
{
    uint64_t h = (start ^ serial << 24) * 0x9e3779b97f4a7c15u >> 40;

    return &maps->names[h % WATCH__SYMBOLS];
}

/* The image that the frame was found in, if it still is that one. */
static struct watch__image *image_of(struct watch__maps *maps,
                                     const struct watch__frame *frame)
{
    uint64_t pc = frame->pc - !frame->exact;
    struct watch__image *image = watch__image_of(maps,
                                                 watch__map_of(maps, pc));

    return image && image->path == frame->library
        && frame->pc - image->bias == frame->offset ? image : NULL;
}

static void look_up(struct watch__maps *maps, struct watch__image *image,
                    struct watch__frame *frame)
{
    uint64_t address = frame->offset - !frame->exact;

    if (frame->in != IN_LIBC)
        watch__nif_of(maps, image, frame);
    if (watch__symbol_of(image, address, frame)
        && (frame->function[0] || frame->callback))
        frame->named = NAMED_NIF_TABLE;
}

/* One entry of the unwind table may span several symbols, in assembly. */
static bool holds(const struct watch__kept_name *k, uint64_t serial,
                  uint64_t start, const struct watch__frame *frame)
{
    uint64_t symbol = k->frame.offset - k->frame.symbol_offset;

    return k->serial == serial && k->start == start
        && (!k->frame.symbol[0]
            || frame->offset - !frame->exact - symbol < k->frame.symbol_size);
}

void watch__name(struct watch__maps *maps, struct watch__frame *frame)
{
    struct watch__image *image = image_of(maps, frame);
    uint64_t start = frame->start ? frame->start : frame->pc;
    struct watch__kept_name *k;

    if (!image || frame->named != NAMED_NOT)
        return;
    k = kept(maps, image->serial, start);
    if (!holds(k, image->serial, start, frame)) {
        struct watch__frame found = *frame;

        look_up(maps, image, &found);
        if (!watch__image_same(image))
            return;
        k->serial = image->serial;
        k->start = start;
        k->frame = found;
    }
    frame->named = k->frame.named;
    memcpy(frame->symbol, k->frame.symbol, sizeof frame->symbol);
    memcpy(frame->module, k->frame.module, sizeof frame->module);
    memcpy(frame->function, k->frame.function, sizeof frame->function);
    memcpy(frame->driver, k->frame.driver, sizeof frame->driver);
    frame->callback = k->frame.callback;
    frame->arity = k->frame.arity;
    frame->symbol_size = k->frame.symbol_size;
    if (frame->symbol[0])
        frame->symbol_offset = k->frame.symbol_offset
            + (frame->offset - k->frame.offset);
}
