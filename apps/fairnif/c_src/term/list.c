/*
 * list.c - lists, iolists and strings of any length, in slices.
 *
 * What is walked stands in the runtime's own root slots, and is looked up
 * again after each chance to pause: the garbage collector may have moved it.
 */
#include "term/list.h"

#include "task/debug.h"
#include "task/slice.h"
#include "term/binary.h"
#include "term/hold.h"

enum {
    SLOT_HERE = FAIR_ROOTS,     /* what is left of the list */
    SLOT_STACK,                 /* lists to come back to, as a list */
    SLOT_BIN,                   /* the binary that is being copied */
    SLOT_WHOLE,                 /* the term, for its second walk */
    STEPS = 256,                /* elements between looks at the clock: under
                                   5 us */
    COPY = 16 * 1024            /* bytes, likewise */
};

static ERL_NIF_TERM nil(struct fair__task *t)
{
    return enif_make_list(t->pub.env, 0);
}

static void forget(struct fair__task *t)
{
    for (unsigned slot = SLOT_HERE; slot <= SLOT_WHOLE; slot++)
        if (slot < t->roots_used)
            t->roots[slot] = nil(t);
}

/* -- the author's lists ------------------------------------------------------*/

int fair__list_next(fair_task *pub, unsigned slot, ERL_NIF_TERM *head)
{
    struct fair__task *t = fair__of(pub);
    ERL_NIF_TERM tail;

    if (!fair__slot_is_good(t, slot) || slot >= t->roots_used
        || !enif_get_list_cell(pub->env, t->roots[slot], head, &tail))
        return 0;
    t->roots[slot] = tail;
    fair__term_out(t, *head);
    return 1;
}

void fair__list_push(fair_task *pub, unsigned slot, ERL_NIF_TERM head)
{
    struct fair__task *t = fair__of(pub);

    fair__term_in(t, head);
    if (!fair__slot_is_good(t, slot))
        return;
    fair__root_set(t, slot,
                   enif_make_list_cell(pub->env, head,
                                       slot < t->roots_used ? t->roots[slot]
                                       : nil(t)));
    fair__made(t, 16);
}

int fair__list_reverse(fair_task *pub, unsigned slot)
{
    struct fair__task *t = fair__of(pub);
    ERL_NIF_TERM head, tail, here, done = nil(t);
    unsigned steps = 0;
    int proper;

    if (!fair__slot_is_good(t, slot))
        return 0;
    if (slot >= t->roots_used)
        return 1;
    fair__work_begin(t);
    while (here = t->roots[slot],
           enif_get_list_cell(pub->env, here, &head, &tail)) {
        done = enif_make_list_cell(pub->env, head, done);
        t->roots[slot] = tail;
        t->made += 16;
        if (++steps % STEPS == 0) {
            fair__root_set(t, SLOT_STACK, done);
            fair__work(t);
            done = t->roots[SLOT_STACK];
        }
    }
    fair__work_end(t);
    proper = enif_is_empty_list(pub->env, here);
    t->roots[slot] = proper ? done : nil(t);
    forget(t);
    return proper;
}

int fair__list_length(fair_task *pub, ERL_NIF_TERM list, size_t *length)
{
    struct fair__task *t = fair__of(pub);
    ERL_NIF_TERM head, tail;
    size_t n = 0;
    int proper;

    fair__term_in(t, list);
    if (!enif_is_list(pub->env, list))
        return 0;
    fair__work_begin(t);
    while (enif_get_list_cell(pub->env, list, &head, &tail)) {
        list = tail;
        if (++n % STEPS == 0) {
            fair__root_set(t, SLOT_HERE, list);
            fair__work(t);
            list = t->roots[SLOT_HERE];
        }
    }
    fair__work_end(t);
    proper = enif_is_empty_list(pub->env, list);
    fair__root_set(t, SLOT_HERE, nil(t));
    if (proper)
        *length = n;
    return proper;
}

/* -- iolists ----------------------------------------------------------------*/

/* Where the bytes go; without `data` they are only counted.  `steps` is work
 * since the last look at the clock: elements, and bytes by the 64. */
struct sink {
    unsigned char *data;
    size_t size, steps;
};

static void step(struct fair__task *t, struct sink *sink, size_t bytes)
{
    sink->steps += 1 + bytes / 64;
    if (sink->steps >= STEPS) {
        sink->steps = 0;
        fair__work(t);
    }
}

/* Parts that are shared count each time: a small term may have more bytes than
 * there are addresses. */
static bool grow(struct fair__task *t, struct sink *sink, size_t bytes)
{
    if (sink->size > SIZE_MAX - bytes) {
        t->lacked = "system_limit";
        return false;
    }
    sink->size += bytes;
    return true;
}

static bool put_byte(struct fair__task *t, struct sink *sink,
                     ERL_NIF_TERM term)
{
    unsigned byte;

    if (!enif_get_uint(t->pub.env, term, &byte) || byte > 255)
        return false;
    if (sink->data)
        sink->data[sink->size] = (unsigned char)byte;
    return grow(t, sink, 1);
}

static bool put_binary(struct fair__task *t, struct sink *sink,
                       ERL_NIF_TERM term)
{
    ErlNifBinary bin;

    if (!enif_inspect_binary(t->pub.env, term, &bin))
        return false;
    if (!sink->data || bin.size <= COPY) {
        if (sink->data)
            memcpy(sink->data + sink->size, bin.data, bin.size);
        if (!grow(t, sink, bin.size))
            return false;
        /* The VM copies one that begins within a byte, all of it, just to
         * show it: so also where they are counted. */
        step(t, sink, bin.size);
        return true;
    }
    fair__root_set(t, SLOT_BIN, term);
    for (size_t at = 0, n; at < bin.size; at += n) {
        ErlNifBinary part;

        n = bin.size - at < COPY ? bin.size - at : COPY;
        if (!enif_inspect_binary(t->pub.env,
                                 enif_make_sub_binary(t->pub.env,
                                                      t->roots[SLOT_BIN],
                                                      at, n), &part))
            return false;
        t->made += FAIR__SUB_BIN;
        memcpy(sink->data + sink->size, part.data, n);
        sink->size += n;
        fair__work(t);
    }
    return true;
}

/* `here` is a list cell, [] or a binary (a whole iolist, or the tail of an
 * improper one); what is to be done after it waits on the stack, which is an
 * Erlang list, so that nesting may be as deep as memory allows. */
static bool walk(struct fair__task *t, struct sink *sink)
{
    ErlNifEnv *env;
    ERL_NIF_TERM here, head, tail, rest;

    for (;;) {
        step(t, sink, 0);
        env = t->pub.env;
        here = t->roots[SLOT_HERE];
        if (enif_get_list_cell(env, here, &head, &tail)) {
            t->roots[SLOT_HERE] = tail;
            if (put_byte(t, sink, head))
                continue;
            if (enif_is_list(env, head)) {
                if (!enif_is_empty_list(env, tail)) {
                    t->roots[SLOT_STACK] =
                        enif_make_list_cell(env, tail, t->roots[SLOT_STACK]);
                    t->made += 16;
                }
                t->roots[SLOT_HERE] = head;
            } else if (!put_binary(t, sink, head)) {
                return false;
            }
            continue;
        }
        if (!enif_is_empty_list(env, here)) {
            t->roots[SLOT_HERE] = nil(t);
            if (!put_binary(t, sink, here))
                return false;
            env = t->pub.env;
        }
        if (!enif_get_list_cell(env, t->roots[SLOT_STACK], &head, &rest))
            return true;
        t->roots[SLOT_HERE] = head;
        t->roots[SLOT_STACK] = rest;
    }
}

static bool walk_from(struct fair__task *t, ERL_NIF_TERM term,
                      struct sink *sink)
{
    fair__root_set(t, SLOT_HERE, term);
    fair__root_set(t, SLOT_STACK, nil(t));
    return walk(t, sink);
}

int fair__inspect_iolist(fair_task *pub, ERL_NIF_TERM term, fair_bin *bin)
{
    struct fair__task *t = fair__of(pub);
    struct sink counter = {NULL, 0, 0}, writer = {NULL, 0, 0};
    int ok = 0;

    fair__term_in(t, term);
    t->lacked = NULL;
    if (enif_is_binary(pub->env, term))
        return fair__inspect_bin(pub, term, bin);
    if (!enif_is_list(pub->env, term))
        return 0;
    fair__work_begin(t);
    fair__root_set(t, SLOT_WHOLE, term);
    if (walk_from(t, term, &counter)) {
        if (fair__new_bin(pub, counter.size, bin)) {
            writer.data = bin->data;
            ok = walk_from(t, t->roots[SLOT_WHOLE], &writer);
        } else {
            t->lacked = "enomem";
        }
    }
    fair__work_end(t);
    forget(t);
    return ok;
}

/* -- strings ----------------------------------------------------------------*/

int fair__string(fair_task *pub, ERL_NIF_TERM list, char **chars,
                 size_t *length)
{
    struct fair__task *t = fair__of(pub);
    struct sink sink = {NULL, 0, 0};
    ERL_NIF_TERM head, tail;
    size_t n;
    bool ok = true;

    t->lacked = NULL;
    fair__root_set(t, SLOT_WHOLE, list);
    if (!fair__list_length(pub, list, &n)) {
        forget(t);
        return 0;
    }
    sink.data = fair__alloc(pub, n + 1);
    if (!sink.data) {
        forget(t);
        t->lacked = "enomem";
        return 0;
    }
    fair__work_begin(t);
    list = t->roots[SLOT_WHOLE];
    while (ok && enif_get_list_cell(pub->env, list, &head, &tail)) {
        ok = put_byte(t, &sink, head);
        list = tail;
        if (sink.size % STEPS == 0) {
            t->roots[SLOT_WHOLE] = list;
            fair__work(t);
            list = t->roots[SLOT_WHOLE];
        }
    }
    fair__work_end(t);
    forget(t);
    if (!ok) {
        fair__free(pub, sink.data);
        return 0;
    }
    sink.data[n] = '\0';
    *chars = (char *)sink.data;
    *length = n;
    return 1;
}
