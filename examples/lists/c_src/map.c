/*
 * map.c - to_map/1: a map of a list of pairs.
 *
 * The interface makes a map in one go (enif_make_map_from_arrays) or key by
 * key, each put copying its way through the tree.  Here the pairs are divided
 * by the hash of their keys into parts of about a hundred, each of which is a
 * map made in one go; Erlang merges them.  The parts come in the order in which
 * the VM's maps hold their keys, so that two neighbours have no more than a few
 * nodes in common and a merge takes about a microsecond.  Should a VM hold them
 * in another order, the result is the same and the merges take longer.
 */
#include "big_lists.h"
#include "held.h"

enum {
    PART = 64,                  /* keys in a part: twice as many at most, in
                                   the mean; over 32, where maps become trees */
    PART_MOST = 256,            /* more, with unlucky hashes, are put one by
                                   one, and so is what has a key twice */
    PARTS_BITS_MOST = 26,
    PAIR_COST = 8,              /* of a pair made into a map, in pairs read */
    PUT_COST = 20
};

struct parts {
    unsigned bits;
    uint32_t *hashes;           /* by number of the pair */
    uint32_t *ends;             /* by part: where it ends in `numbers` */
    uint32_t *numbers;          /* of pairs, sorted by part */
};

/* The VM's maps are trees of 16 branches a node, the lowest four bits of the
 * hash first. */
static uint32_t in_map_order(uint32_t hash)
{
    hash = __builtin_bswap32(hash);
    return (hash & 0x0F0F0F0F) << 4 | (hash >> 4 & 0x0F0F0F0F);
}

static uint32_t part_of(const struct parts *p, uint32_t number)
{
    return p->bits ? p->hashes[number] >> (32 - p->bits) : 0;
}

/* Key and value, valid until the next pause; NULL when it is no pair. */
static const ERL_NIF_TERM *pair_of(ErlNifEnv *env, ERL_NIF_TERM term)
{
    const ERL_NIF_TERM *elements;
    int arity;

    return enif_get_tuple(env, term, &arity, &elements) && arity == 2
        ? elements : NULL;
}

/* The hashes of the keys of `n` pairs; 0 when something is no pair. */
static int hash_block(fair_task *t, struct held *h, uint32_t *hashes,
                      size_t first, size_t n)
{
    ErlNifEnv *env = fair_env(t);
    const ERL_NIF_TERM *pair;

    held_again(t, h);
    for (size_t i = first; i < first + n; i++) {
        pair = pair_of(env, held_get(h, env, (uint32_t)i));
        if (!pair)
            return 0;
        hashes[i] = in_map_order(
            (uint32_t)enif_hash(ERL_NIF_INTERNAL_HASH, pair[0], 0));
    }
    return 1;
}

static int hash_all(fair_task *t, struct held *h, uint32_t *hashes)
{
    for (size_t i = 0, n; i < h->count; i += n) {
        n = smaller(h->count - i, BLOCK);
        if (!hash_block(t, h, hashes, i, n))
            return 0;
        fair_tick(t, n);
    }
    return 1;
}

/* Sorts the numbers by part, those of one part as they were: counts how many
 * each has, adds up, and deals them out. */
static void divide(fair_task *t, struct parts *p, size_t count)
{
    size_t parts = (size_t)1 << p->bits, i, n;
    uint32_t before = 0, own;

    for (i = 0; i < parts; i += n) {
        n = smaller(parts - i, BLOCK);
        memset(p->ends + i, 0, n * sizeof *p->ends);
        fair_tick(t, n / 4);
    }
    for (i = 0; i < count; i++) {
        p->ends[part_of(p, (uint32_t)i)]++;
        fair_tick(t, 1);
    }
    for (i = 0; i < parts; i++) {
        own = p->ends[i];
        p->ends[i] = before;
        before += own;
        fair_tick(t, 0);
    }
    for (i = 0; i < count; i++) {
        p->numbers[p->ends[part_of(p, (uint32_t)i)]++] = (uint32_t)i;
        fair_tick(t, 1);
    }
}

/* 0 where a key comes twice.  By the documentation the call then fails, but
 * before the fix of erlang/otp#10975 that was so up to 32 keys only: of more it
 * made a map, and a broken one if 32 or fewer were left. */
static int make_at_once(ErlNifEnv *env, ERL_NIF_TERM *keys,
                        ERL_NIF_TERM *values, size_t n, ERL_NIF_TERM *map)
{
    size_t size;

    return enif_make_map_from_arrays(env, keys, values, n, map)
        && enif_get_map_size(env, *map, &size) && size == n;
}

/* The pairs as one map, put key by key: later values replace earlier ones. */
static void put_all(fair_task *t, unsigned made, struct held *h,
                    const uint32_t *numbers, size_t n)
{
    unsigned puts = fair_root(t, enif_make_new_map(fair_env(t)));
    const ERL_NIF_TERM *pair;
    ERL_NIF_TERM map;
    ErlNifEnv *env;

    for (size_t i = 0; i < n; i++) {
        env = fair_env(t);
        held_again(t, h);
        pair = pair_of(env, held_get(h, env, numbers[i]));
        enif_make_map_put(env, fair_kept(t, puts), pair[0], pair[1], &map);
        fair_keep(t, puts, map);
        fair_tick(t, PUT_COST);
    }
    fair_list_push(t, made, fair_kept(t, puts));
    fair_unroot(t, puts);
}

/* Puts the map of one part before the list in the root `made`. */
static void make_part(fair_task *t, unsigned made, struct held *h,
                      const uint32_t *numbers, size_t n)
{
    ERL_NIF_TERM keys[PART_MOST], values[PART_MOST], map;
    ErlNifEnv *env = fair_env(t);
    const ERL_NIF_TERM *pair;

    if (n > PART_MOST) {
        put_all(t, made, h, numbers, n);
        return;
    }
    held_again(t, h);
    /* The pairs of a part lie all over memory: wait for all at once. */
    for (size_t i = 0; i < n; i++) {
        keys[i] = held_get(h, env, numbers[i]);
        __builtin_prefetch((const void *)keys[i]);
    }
    for (size_t i = 0; i < n; i++) {
        pair = pair_of(env, keys[i]);
        keys[i] = pair[0];
        values[i] = pair[1];
    }
    if (make_at_once(env, keys, values, n, &map))
        fair_list_push(t, made, map);
    else
        put_all(t, made, h, numbers, n);
    fair_tick(t, n * PAIR_COST);
}

static unsigned bits_for(size_t count)
{
    unsigned bits = 0;

    while (bits < PARTS_BITS_MOST && count >> (bits + 1) >= PART)
        bits++;
    return bits;
}

/* A list of maps that have no key in common, and together what the list of
 * pairs has; of a key that comes several times the last value. */
ERL_NIF_TERM to_maps(fair_task *t)
{
    struct parts p;
    struct held h;
    size_t begin;
    unsigned made;

    if (!held_list(t, fair_arg(t, 0), &h))
        return fair_badarg(t);
    p.bits = bits_for(h.count);
    p.hashes = fair_alloc(t, (h.count + 1) * sizeof *p.hashes);
    p.numbers = fair_alloc(t, (h.count + 1) * sizeof *p.numbers);
    p.ends = fair_alloc(t, ((size_t)1 << p.bits) * sizeof *p.ends);
    if (!p.hashes || !p.numbers || !p.ends)
        return fair_enomem(t);
    if (!hash_all(t, &h, p.hashes))
        return fair_badarg(t);
    divide(t, &p, h.count);
    made = fair_root(t, enif_make_list(fair_env(t), 0));
    for (size_t part = (size_t)1 << p.bits; part-- > 0;) {
        begin = part > 0 ? p.ends[part - 1] : 0;
        make_part(t, made, &h, p.numbers + begin, p.ends[part] - begin);
    }
    return fair_kept(t, made);
}

/* -- plain -------------------------------------------------------------------*/

static int get_pairs(ErlNifEnv *env, ERL_NIF_TERM list, ERL_NIF_TERM *keys,
                     ERL_NIF_TERM *values)
{
    const ERL_NIF_TERM *pair;
    ERL_NIF_TERM head;

    for (size_t i = 0; enif_get_list_cell(env, list, &head, &list); i++) {
        pair = pair_of(env, head);
        if (!pair)
            return 0;
        keys[i] = pair[0];
        values[i] = pair[1];
    }
    return 1;
}

/* In one go where no key comes twice, else key by key. */
static ERL_NIF_TERM make_map(ErlNifEnv *env, ERL_NIF_TERM *keys,
                             ERL_NIF_TERM *values, size_t n)
{
    ERL_NIF_TERM map;

    if (make_at_once(env, keys, values, n, &map))
        return map;
    map = enif_make_new_map(env);
    for (size_t i = 0; i < n; i++)
        enif_make_map_put(env, map, keys[i], values[i], &map);
    return map;
}

ERL_NIF_TERM unfair_to_map(ErlNifEnv *env, int argc, const ERL_NIF_TERM argv[])
{
    ERL_NIF_TERM *keys, *values, result;
    unsigned n;

    (void)argc;
    if (!enif_get_list_length(env, argv[0], &n))
        return enif_make_badarg(env);
    keys = enif_alloc(((size_t)n + 1) * sizeof *keys);
    values = enif_alloc(((size_t)n + 1) * sizeof *values);
    if (!keys || !values)
        result = enif_raise_exception(env, enif_make_atom(env, "enomem"));
    else if (!get_pairs(env, argv[0], keys, values))
        result = enif_make_badarg(env);
    else
        result = make_map(env, keys, values, n);
    enif_free(keys);
    enif_free(values);
    return result;
}
