/*
 * buffer.h - bytes that come one after the other, their number not known.
 *
 * They are gathered in blocks of the task's memory, so nothing large is ever
 * moved, and no term is needed before all are there.
 */
#ifndef BUFFER_H
#define BUFFER_H

#include <stdbool.h>

#include <fairnif.h>

enum { BLOCK = 4096 };

struct block {
    struct block *next;
    unsigned char bytes[BLOCK];
};

struct buffer {
    fair_task *t;
    size_t size;                /* of all blocks */
    size_t used;                /* of the last one */
    struct block *last;
    struct block first;
};

void buffer_begin(struct buffer *b, fair_task *t);

/* False when memory is out.  Of any size, in one go. */
bool buffer_add_more(struct buffer *b, const void *bytes, size_t size);

static inline bool buffer_add(struct buffer *b, const void *bytes, size_t size)
{
    if (size > BLOCK - b->used)
        return buffer_add_more(b, bytes, size);
    memcpy(b->last->bytes + b->used, bytes, size);
    b->used += size;
    b->size += size;
    return true;
}

static inline bool buffer_is_short(const struct buffer *b)
{
    return b->last == &b->first;
}

/* All bytes as a binary, and none are left.  Of a short buffer only. */
ERL_NIF_TERM buffer_take(struct buffer *b, ErlNifEnv *env);

/* The same of any other one, in slices; 0 when memory is out.  Pauses. */
ERL_NIF_TERM buffer_take_long(struct buffer *b);

#endif
