/*
 * write.c - terms to a document, in slices.
 *
 * The tree is walked without recursion.  All terms that the walk knows of stand
 * in one array, which goes into a root as one tuple before a tick; so a tick
 * may be anywhere.
 */
#include "library.h"
#include "buffer.h"

enum {
    TICK_AT = 1000,             /* units, of which 8 bytes make one */
    PART = 4,                   /* a name, an attribute, a piece of text */
    IN_ONE_GO = 4096,           /* bytes of a binary without a tick */
    FEW = 128,                  /* bytes that are escaped one by one */
    LONGEST_ESCAPE = 6
};

enum term {
    STACK,      /* [[Name | Rest], ...]: elements around, innermost first */
    NAME,       /* of the element whose children are written */
    REST,       /* of these children */
    /* Of an element that begins: */
    NEW_NAME, ATTRIBUTES, CHILDREN,
    VALUE,      /* of its next attribute */
    TERMS
};

struct write {
    fair_task *t;
    ErlNifEnv *env;
    size_t depth, units;
    unsigned root;
    bool out_of_memory;
    ERL_NIF_TERM terms[TERMS];
    struct buffer out;
};

static void keep(struct write *w)
{
    fair_root_set(w->t, w->root,
              enif_make_tuple_from_array(w->env, w->terms, TERMS));
}

static void look(struct write *w)
{
    const ERL_NIF_TERM *terms;
    int n;

    w->env = fair_env(w->t);
    enif_get_tuple(w->env, fair_root_get(w->t, w->root), &n, &terms);
    memcpy(w->terms, terms, sizeof w->terms);
}

static void tick(struct write *w)
{
    size_t units = w->units;

    w->units = 0;
    keep(w);
    fair_tick(w->t, units);
    look(w);
}

/* ---- bytes ---- */

static bool put(struct write *w, const void *bytes, size_t size)
{
    if (buffer_add(&w->out, bytes, size))
        return true;
    w->out_of_memory = true;
    return false;
}

/* Of few bytes, for which there is room in the last block whatever they are. */
static void escaped_here(struct write *w, const unsigned char *bytes,
                         size_t size, enum escapes of)
{
    unsigned char *begin = w->out.last->bytes + w->out.used, *to = begin;
    const char *instead;

    for (const unsigned char *p = bytes; p < bytes + size; p++) {
        instead = escape(*p, of);
        if (!instead) {
            *to++ = *p;
        } else {
            while (*instead)
                *to++ = (unsigned char)*instead++;
        }
    }
    w->out.used += (size_t)(to - begin);
    w->out.size += (size_t)(to - begin);
}

static bool escaped(struct write *w, const unsigned char *bytes, size_t size,
                    enum escapes of)
{
    const unsigned char *from = bytes, *end = bytes + size;
    const char *instead;

    w->units += PART + size / 8;
    if (of == OF_NAME)
        return put(w, bytes, size);
    if (size <= FEW && w->out.used + LONGEST_ESCAPE * size <= BLOCK) {
        escaped_here(w, bytes, size, of);
        return true;
    }
    for (const unsigned char *p = bytes; p < end; p++) {
        instead = escape(*p, of);
        if (!instead)
            continue;
        if (!put(w, from, (size_t)(p - from))
            || !put(w, instead, strlen(instead)))
            return false;
        from = p + 1;
        w->units++;
    }
    return put(w, from, (size_t)(end - from));
}

/* In parts, with ticks. */
static bool long_bytes(struct write *w, ERL_NIF_TERM term, enum escapes of)
{
    fair_bytes bin;
    bool right;

    keep(w);
    right = fair_get_iolist(w->t, term, &bin);
    look(w);
    if (!right)
        return false;
    for (size_t at = 0, n; right && at < bin.size; at += n) {
        n = bin.size - at < IN_ONE_GO ? bin.size - at : IN_ONE_GO;
        right = escaped(w, bin.data + at, n, of);
        if (w->units >= TICK_AT)
            tick(w);
    }
    fair_release_bytes(w->t, &bin);
    return right;
}

/* Those of a binary or an iolist; false when it is none, or memory is out.  May
 * pause. */
static bool bytes(struct write *w, ERL_NIF_TERM term, enum escapes of)
{
    ErlNifBinary bin;

    if (enif_inspect_binary(w->env, term, &bin) && bin.size <= IN_ONE_GO)
        return escaped(w, bin.data, bin.size, of);
    return long_bytes(w, term, of);
}

/* ---- the walk ---- */

static bool attributes(struct write *w)
{
    const ERL_NIF_TERM *pair;
    ERL_NIF_TERM head;
    int arity;

    while (enif_get_list_cell(w->env, w->terms[ATTRIBUTES], &head,
                              &w->terms[ATTRIBUTES])) {
        if (!enif_get_tuple(w->env, head, &arity, &pair) || arity != 2)
            return false;
        w->terms[VALUE] = pair[1];
        if (!put(w, " ", 1) || !bytes(w, pair[0], OF_NAME)
            || !put(w, "='", 2) || !bytes(w, w->terms[VALUE], OF_ATTRIBUTE)
            || !put(w, "'", 1))
            return false;
        if (w->units >= TICK_AT)
            tick(w);
    }
    return enif_is_empty_list(w->env, w->terms[ATTRIBUTES]);
}

/* Its children are the next to be written. */
static bool go_in(struct write *w)
{
    ERL_NIF_TERM around = enif_make_list_cell(w->env, w->terms[NAME],
                                              w->terms[REST]);

    w->terms[STACK] = enif_make_list_cell(w->env, around, w->terms[STACK]);
    w->terms[NAME] = w->terms[NEW_NAME];
    w->terms[REST] = w->terms[CHILDREN];
    w->depth++;
    return put(w, ">", 1);
}

static bool go_out(struct write *w)
{
    ERL_NIF_TERM around;

    if (!enif_is_empty_list(w->env, w->terms[REST]) || !put(w, "</", 2)
        || !bytes(w, w->terms[NAME], OF_NAME) || !put(w, ">", 1))
        return false;
    enif_get_list_cell(w->env, w->terms[STACK], &around, &w->terms[STACK]);
    enif_get_list_cell(w->env, around, &w->terms[NAME], &w->terms[REST]);
    w->depth--;
    return true;
}

/* An element or text. */
static bool node(struct write *w, ERL_NIF_TERM term)
{
    const ERL_NIF_TERM *fields;
    int arity;

    if (!enif_get_tuple(w->env, term, &arity, &fields))
        return false;
    if (arity == 2 && enif_is_identical(fields[0], atoms.xmlcdata))
        return bytes(w, fields[1], OF_TEXT);
    if (arity != 4 || !enif_is_identical(fields[0], atoms.xmlel))
        return false;
    w->terms[NEW_NAME] = fields[1];
    w->terms[ATTRIBUTES] = fields[2];
    w->terms[CHILDREN] = fields[3];
    if (!put(w, "<", 1) || !bytes(w, fields[1], OF_NAME) || !attributes(w))
        return false;
    if (enif_is_empty_list(w->env, w->terms[CHILDREN]))
        return put(w, "/>", 2);
    return go_in(w);
}

static bool walk(struct write *w)
{
    ERL_NIF_TERM head;
    bool right = node(w, fair_arg(w->t, 0));

    while (right && w->depth > 0) {
        if (enif_get_list_cell(w->env, w->terms[REST], &head, &w->terms[REST]))
            right = node(w, head);
        else
            right = go_out(w);
        if (w->units >= TICK_AT)
            tick(w);
    }
    return right;
}

/* to_binary(Element) -> binary() */
ERL_NIF_TERM to_binary(fair_task *t)
{
    struct write *w = fair_alloc(t, sizeof *w);
    ERL_NIF_TERM made;

    if (!w)
        return fair_enomem(t);
    w->t = t;
    w->env = fair_env(t);
    w->depth = w->units = 0;
    w->out_of_memory = false;
    for (int i = 0; i < TERMS; i++)
        w->terms[i] = enif_make_list(w->env, 0);
    w->root = fair_root_new(t, w->terms[STACK]);
    buffer_begin(&w->out, t);
    if (!walk(w))
        return w->out_of_memory ? fair_enomem(t) : fair_badarg(t);
    if (buffer_is_short(&w->out))
        return buffer_take(&w->out, fair_env(t));
    made = buffer_take_long(&w->out);
    return made ? made : fair_enomem(t);
}
