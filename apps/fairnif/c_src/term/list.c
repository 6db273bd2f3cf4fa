/*
 * list.c - lists, iolists and strings of any length, in slices.
 *
 * What is walked stands in roots, and is looked up again after each chance to
 * pause: the garbage collector may have moved it.
 */
#include "term/list.h"

#include "task/debug.h"
#include "task/slice.h"
#include "term/binary.h"
#include "term/hold.h"
#include "term/text.h"

enum {
    STEPS = 256,                /* elements between looks at the clock: under
                                   5 us */
    COPY = 16 * 1024            /* bytes, likewise */
};

static ERL_NIF_TERM nil(struct fair__task *t)
{
    return enif_make_list(t->pub.env, 0);
}

/* May pause.  What was sent stays here then, in a root: it is not given to the
 * caller while the runtime has roots of its own, which it relies on and the caller
 * could change. */
static void look(struct fair__task *t)
{
    unsigned root;

    if (fair_likely(!t->ask.outbox)) {
        fair__work(t);
        return;
    }
    root = fair__own_root(t, t->ask.outbox);
    t->ask.outbox = 0;
    fair__work(t);
    t->ask.outbox = t->hold.roots[root];
    t->hold.roots_used = root;
}

/* -- the author's lists ------------------------------------------------------*/

int fair__list_next(fair_task *pub, unsigned root, ERL_NIF_TERM *head)
{
    struct fair__task *t = fair__of(pub);
    ERL_NIF_TERM tail;

    if (!fair__is_root(t, root)
        || !enif_get_list_cell(pub->env, t->hold.roots[root - 1], head, &tail))
        return 0;
    t->hold.roots[root - 1] = tail;
    fair__term_out(t, *head);
    return 1;
}

void fair__list_push(fair_task *pub, unsigned root, ERL_NIF_TERM head)
{
    struct fair__task *t = fair__of(pub);

    fair__term_in(t, head);
    if (!fair__is_root(t, root))
        return;
    t->hold.roots[root - 1] = enif_make_list_cell(pub->env, head,
                                                  t->hold.roots[root - 1]);
    fair__made(t, 16);
}

int fair__list_reverse(fair_task *pub, unsigned root)
{
    struct fair__task *t = fair__of(pub);
    ERL_NIF_TERM head, tail, here, done = nil(t);
    unsigned steps = 0, own;
    int proper;

    if (fair__used_away(t) || !fair__is_root(t, root--))
        return 0;
    own = fair__own_root(t, done);
    fair__work_begin(t);
    while (here = t->hold.roots[root],
           enif_get_list_cell(pub->env, here, &head, &tail)) {
        done = enif_make_list_cell(pub->env, head, done);
        t->hold.roots[root] = tail;
        t->slice.made += 16;
        if (++steps % STEPS == 0) {
            t->hold.roots[own] = done;
            look(t);
            done = t->hold.roots[own];
        }
    }
    fair__work_end(t);
    proper = enif_is_empty_list(pub->env, here);
    t->hold.roots[root] = proper ? done : nil(t);
    t->hold.roots_used = own;
    return proper;
}

int fair__get_list_length(fair_task *pub, ERL_NIF_TERM list, size_t *length)
{
    struct fair__task *t = fair__of(pub);
    ERL_NIF_TERM head, tail;
    unsigned own;
    size_t n = 0;
    int proper;

    if (fair__used_away(t))
        return 0;
    fair__term_in(t, list);
    if (!enif_is_list(pub->env, list))
        return 0;
    own = fair__own_root(t, list);
    fair__work_begin(t);
    while (enif_get_list_cell(pub->env, list, &head, &tail)) {
        list = tail;
        if (++n % STEPS == 0) {
            t->hold.roots[own] = list;
            look(t);
            list = t->hold.roots[own];
        }
    }
    fair__work_end(t);
    proper = enif_is_empty_list(pub->env, list);
    t->hold.roots_used = own;
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
    unsigned own;               /* the first of its roots: */
};
enum {
    HERE,                       /* what is left of the list */
    STACK,                      /* lists to come back to, as a list */
    BIN,                        /* the binary that is being copied */
    ROOTS
};

static void step(struct fair__task *t, struct sink *sink, size_t bytes)
{
    sink->steps += 1 + bytes / 64;
    if (sink->steps >= STEPS) {
        sink->steps = 0;
        look(t);
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
    t->hold.roots[sink->own + BIN] = term;
    for (size_t at = 0, n; at < bin.size; at += n) {
        ErlNifBinary part;

        n = bin.size - at < COPY ? bin.size - at : COPY;
        if (!enif_inspect_binary(t->pub.env,
                                 enif_make_sub_binary(t->pub.env,
                                                      t->hold.roots[sink->own
                                                               + BIN],
                                                      at, n), &part))
            return false;
        t->slice.made += FAIR__SUB_BIN;
        memcpy(sink->data + sink->size, part.data, n);
        sink->size += n;
        look(t);
    }
    return true;
}

/* `here` is a list cell, [] or a binary (a whole iolist, or the tail of an
 * improper one); what is to be done after it waits on the stack, which is an
 * Erlang list, so that nesting may be as deep as memory allows. */
static bool walk(struct fair__task *t, struct sink *sink)
{
    ErlNifEnv *env;
    ERL_NIF_TERM here, head, tail, rest, *own;

    for (;;) {
        step(t, sink, 0);
        env = t->pub.env;
        own = t->hold.roots + sink->own;     /* more roots lie elsewhere */
        here = own[HERE];
        if (enif_get_list_cell(env, here, &head, &tail)) {
            own[HERE] = tail;
            if (put_byte(t, sink, head))
                continue;
            if (enif_is_list(env, head)) {
                if (!enif_is_empty_list(env, tail)) {
                    own[STACK] = enif_make_list_cell(env, tail, own[STACK]);
                    t->slice.made += 16;
                }
                own[HERE] = head;
            } else if (!put_binary(t, sink, head)) {
                return false;
            }
            continue;
        }
        if (!enif_is_empty_list(env, here)) {
            own[HERE] = nil(t);
            if (!put_binary(t, sink, here))
                return false;
            env = t->pub.env;
            own = t->hold.roots + sink->own;
        }
        if (!enif_get_list_cell(env, own[STACK], &head, &rest))
            return true;
        own[HERE] = head;
        own[STACK] = rest;
    }
}

static bool walk_from(struct fair__task *t, ERL_NIF_TERM term,
                      struct sink *sink)
{
    bool ok;

    sink->own = t->hold.roots_used;
    for (unsigned i = 0; i < ROOTS; i++)
        fair__own_root(t, i == HERE ? term : nil(t));
    ok = walk(t, sink);
    t->hold.roots_used = sink->own;
    return ok;
}

int fair__get_iolist(fair_task *pub, ERL_NIF_TERM term, fair_bytes *bytes)
{
    struct fair__task *t = fair__of(pub);
    fair_bin *bin = fair__as_bin(bytes);
    struct sink counter = {0}, writer = {0};
    unsigned whole;             /* for its second walk */
    int ok = 0;

    if (fair__used_away(t))
        return 0;
    fair__term_in(t, term);
    t->lacked = NULL;
    if (enif_is_binary(pub->env, term))
        return fair__get_bytes(pub, term, bytes);
    if (!enif_is_list(pub->env, term))
        return 0;
    whole = fair__own_root(t, term);
    fair__work_begin(t);
    if (walk_from(t, term, &counter)) {
        if (fair__new_bin(pub, counter.size, bin)) {
            writer.data = bin->data;
            ok = walk_from(t, t->hold.roots[whole], &writer);
        } else {
            t->lacked = "enomem";
        }
    }
    fair__work_end(t);
    t->hold.roots_used = whole;
    return ok;
}

/* -- strings ----------------------------------------------------------------*/

/* The list in the root, to its end; where it stands after that does not matter. */
static bool put_chars(struct fair__task *t, struct sink *sink, unsigned root,
                      enum fair_encoding encoding)
{
    ERL_NIF_TERM list = t->hold.roots[root], head, tail;
    unsigned code;
    size_t n = 0;

    while (enif_get_list_cell(t->pub.env, list, &head, &tail)) {
        size_t bytes = enif_get_uint(t->pub.env, head, &code)
            ? fair__encode(code, encoding, sink->data
                           ? sink->data + sink->size : NULL) : 0;

        if (!bytes || !grow(t, sink, bytes))
            return false;
        list = tail;
        if (++n % STEPS == 0) {
            t->hold.roots[root] = list;
            look(t);
            list = t->hold.roots[root];
        }
    }
    return enif_is_empty_list(t->pub.env, list);
}

int fair__get_string(fair_task *pub, ERL_NIF_TERM list, char **chars,
                     size_t *length, enum fair_encoding encoding)
{
    struct fair__task *t = fair__of(pub);
    struct sink counter = {0}, writer = {0};
    unsigned whole, here;

    if (fair__used_away(t))
        return 0;
    fair__term_in(t, list);
    t->lacked = NULL;
    if (!enif_is_list(pub->env, list))
        return 0;
    whole = fair__own_root(t, list);
    here = fair__own_root(t, list);
    fair__work_begin(t);
    if (put_chars(t, &counter, here, encoding)
        && counter.size < SIZE_MAX) {
        writer.data = fair__alloc(pub, counter.size + 1);
        if (writer.data) {
            t->hold.roots[here] = t->hold.roots[whole];
            put_chars(t, &writer, here, encoding);
        } else {
            t->lacked = "enomem";
        }
    }
    fair__work_end(t);
    t->hold.roots_used = whole;
    if (!writer.data)
        return 0;
    writer.data[writer.size] = '\0';
    *chars = (char *)writer.data;
    *length = writer.size;
    return 1;
}
