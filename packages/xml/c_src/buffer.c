/*
 * buffer.c - bytes in blocks, see buffer.h.
 */
#include "buffer.h"

static size_t smaller(size_t x, size_t y)
{
    return x < y ? x : y;
}

void buffer_begin(struct buffer *b, fair_task *t)
{
    b->t = t;
    b->size = b->used = 0;
    b->last = &b->first;
    b->first.next = NULL;
}

static bool another_block(struct buffer *b)
{
    struct block *block = fair_alloc(b->t, sizeof *block);

    if (!block)
        return false;
    block->next = NULL;
    b->last->next = block;
    b->last = block;
    b->used = 0;
    return true;
}

bool buffer_add_more(struct buffer *b, const void *bytes, size_t size)
{
    const unsigned char *from = bytes;

    for (size_t n; size > 0; size -= n, from += n) {
        if (b->used == BLOCK && !another_block(b))
            return false;
        n = smaller(size, BLOCK - b->used);
        memcpy(b->last->bytes + b->used, from, n);
        b->used += n;
        b->size += n;
    }
    return true;
}

ERL_NIF_TERM buffer_take(struct buffer *b, ErlNifEnv *env)
{
    ERL_NIF_TERM term;

    memcpy(enif_make_new_binary(env, b->size, &term), b->first.bytes, b->size);
    b->size = b->used = 0;
    return term;
}

ERL_NIF_TERM buffer_take_long(struct buffer *b)
{
    fair_task *t = b->t;
    struct block *block = &b->first, *next;
    ERL_NIF_TERM term;
    fair_bin bin;

    if (!fair_new_bin(t, b->size, &bin))
        return 0;
    for (size_t at = 0, n; at < bin.size; at += n, block = next) {
        n = smaller(bin.size - at, BLOCK);
        memcpy(bin.data + at, block->bytes, n);
        next = block->next;
        if (block != &b->first)
            fair_free(t, block);
        fair_tick(t, n / 8);
    }
    buffer_begin(b, t);
    term = fair_make_bin(t, &bin);
    fair_release_bin(t, &bin);
    return term;
}
