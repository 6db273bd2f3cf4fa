/*
 * names.c - names as terms, see names.h.
 */
#include "names.h"

#include <stdbool.h>

void names_begin(struct names *names, fair_task *t)
{
    names->t = t;
    memset(names->length, 0, sizeof names->length);
    memset(names->rooted, 0, sizeof names->rooted);
}

ERL_NIF_TERM string_term(ErlNifEnv *env, const char *bytes, size_t length)
{
    ERL_NIF_TERM term;

    memcpy(enif_make_new_binary(env, length, &term), bytes, length);
    return term;
}

ERL_NIF_TERM name_term(ErlNifEnv *env, const char *name, size_t length)
{
    const char *end = name + length;
    const char *local = memchr(name, NAME_SEPARATOR, length), *prefix;
    size_t before, after;
    unsigned char *bytes;
    ERL_NIF_TERM term;

    if (!local)
        return string_term(env, name, length);
    local++;
    prefix = memchr(local, NAME_SEPARATOR, (size_t)(end - local));
    if (!prefix)
        return string_term(env, local, (size_t)(end - local));
    after = (size_t)(prefix - local);
    before = (size_t)(end - ++prefix);
    bytes = enif_make_new_binary(env, before + 1 + after, &term);
    memcpy(bytes, prefix, before);
    bytes[before] = ':';
    memcpy(bytes + before + 1, local, after);
    return term;
}

/* Names of a namespace begin alike, so the end counts. */
static unsigned place_of(const char *bytes, size_t length)
{
    uint64_t first = 0, last = 0;

    if (length >= 8) {
        memcpy(&first, bytes, 8);
        memcpy(&last, bytes + length - 8, 8);
    } else {
        for (size_t i = 0; i < length; i++)
            last = last << 8 | (unsigned char)bytes[i];
    }
    first ^= (last << 5 | last >> 59) + length;
    return (unsigned)((first * 0x9E3779B97F4A7C15u) >> 57) % NAMES;
}

static ERL_NIF_TERM make(ErlNifEnv *env, const char *bytes, size_t length,
                         bool name)
{
    return name ? name_term(env, bytes, length)
        : string_term(env, bytes, length);
}

static void put(struct names *names, unsigned i, const char *bytes,
                size_t length, ERL_NIF_TERM term)
{
    struct name *n = &names->at[i];

    if (names->rooted[i])
        fair_root_set(names->t, n->root, term);
    else
        n->root = fair_root_new(names->t, term);
    names->rooted[i] = 1;
    names->length[i] = (uint8_t)length;
    memcpy(n->bytes, bytes, length);
    n->term = term;
    n->since = fair_yields(names->t);
}

/* A name and another string of the same bytes differ where there is a
 * separator, which no other string has: expat refuses it in a URI. */
static ERL_NIF_TERM find(struct names *names, const char *bytes, bool name)
{
    size_t length = strlen(bytes);
    unsigned i = place_of(bytes, length);
    struct name *n = &names->at[i];
    ERL_NIF_TERM term;

    if (length == 0 || length > LONGEST_NAME)
        return make(fair_env(names->t), bytes, length, name);
    if (names->length[i] != length || memcmp(n->bytes, bytes, length) != 0) {
        term = make(fair_env(names->t), bytes, length, name);
        put(names, i, bytes, length, term);
        return term;
    }
    if (n->since != fair_yields(names->t)) {
        n->term = fair_root_get(names->t, n->root);
        n->since = fair_yields(names->t);
    }
    return n->term;
}

ERL_NIF_TERM names_term(struct names *names, const char *name)
{
    return find(names, name, true);
}

ERL_NIF_TERM names_string(struct names *names, const char *string)
{
    return find(names, string, false);
}
