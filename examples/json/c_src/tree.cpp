/*
 * tree.cpp - arrays and objects under construction, see tree.hpp.
 */
#include "tree.hpp"

#include "away.hpp"

/* A map of more pairs is made on a dirty scheduler, since it is made in one
 * go: on a normal one it would take more than half a slice. */
static constexpr size_t MAP_IN_PLACE = 128;

void tree::begin(fair_task *task)
{
    ERL_NIF_TERM nil;

    t = task;
    resume();
    nil = enif_make_list(env, 0);
    stack = fair_root(t, nil);
    first = fair_root(t, nil);
    whole = fair_root(t, nil);
    depth = opened = count = 0;
}

void tree::spill()
{
    ERL_NIF_TERM nil = enif_make_list(env, 0), own = nil, all, header;
    unsigned end;
    uint64_t n;

    if (opened == 0)
        return;
    all = fair_kept(t, stack);
    enif_get_list_cell(env, fair_kept(t, first), &header, &own);
    for (unsigned i = 0; i < opened; i++, own = nil) {
        end = i + 1 < opened ? levels[i + 1].from : count;
        n = end - levels[i].from;
        if (n > 0)
            own = enif_make_list_cell(
                env, enif_make_tuple_from_array(env, pending + levels[i].from,
                                                static_cast<unsigned>(n)),
                own);
        header = enif_make_uint64(env, 2 * (levels[i].spilled + n)
                                       + levels[i].object);
        all = enif_make_list_cell(env, enif_make_list_cell(env, header, own),
                                  all);
    }
    fair_keep(t, stack, all);
    fair_keep(t, first, nil);
    opened = count = 0;
}

/* Takes the innermost level back from the stack. */
void tree::reload()
{
    ERL_NIF_TERM entry, header, own;
    ErlNifUInt64 n;

    fair_list_next(t, stack, &entry);
    fair_keep(t, first, entry);
    enif_get_list_cell(env, entry, &header, &own);
    enif_get_uint64(env, header, &n);
    levels[0] = {n % 2 == 1, 0, n / 2};
    opened = 1;
}

/* Of keys and values in turn; of a key that comes twice the last value.  By the
 * documentation enif_make_map_from_arrays then fails, but before the fix of
 * erlang/otp#10975 that was so up to 32 keys only: of more it made a map, and a
 * broken one if 32 or fewer were left. */
static ERL_NIF_TERM make_map(ErlNifEnv *env, ERL_NIF_TERM *keys,
                             ERL_NIF_TERM *values, size_t n)
{
    ERL_NIF_TERM map;
    size_t size;

    if (enif_make_map_from_arrays(env, keys, values, n, &map)
        && (n <= 32 || (enif_get_map_size(env, map, &size) && size == n)))
        return map;
    map = enif_make_new_map(env);
    for (size_t i = 0; i < n; i++)
        enif_make_map_put(env, map, keys[i], values[i], &map);
    return map;
}

bool tree::close()
{
    ERL_NIF_TERM keys[MOST / 2], values[MOST / 2], made;
    const level l = top();
    const ERL_NIF_TERM *elements = pending + l.from;
    unsigned n = count - l.from;

    if (l.spilled > 0)
        return close_large();
    if (l.object) {
        for (unsigned i = 0; i < n / 2; i++) {
            keys[i] = elements[2 * i];
            values[i] = elements[2 * i + 1];
        }
        made = make_map(env, keys, values, n / 2);
    } else {
        made = enif_make_list_from_array(env, elements, n);
    }
    count = l.from;
    opened--;
    depth--;
    add(made);
    return true;
}

/* All that is open goes to the stack and this level, with all its elements in
 * parts, comes back as the first one. */
bool tree::close_large()
{
    ERL_NIF_TERM made, header;
    uint64_t elements;
    bool object;

    spill();
    reload();
    fair_list_next(t, first, &header);
    object = levels[0].object;
    elements = levels[0].spilled;
    opened = 0;
    depth--;
    if (!object)
        made = list_of_parts();
    else if (!map_of_parts(elements, &made))
        return false;
    fair_keep(t, first, enif_make_list(env, 0));
    add(made);
    return true;
}

/* The elements of all parts, in slices. */
ERL_NIF_TERM tree::list_of_parts()
{
    unsigned made = fair_root(t, enif_make_list(env, 0));
    const ERL_NIF_TERM *elements;
    ERL_NIF_TERM part, list;
    int n;

    while (fair_list_next(t, first, &part)) {
        enif_get_tuple(env, part, &n, &elements);
        list = fair_kept(t, made);
        for (int i = n; i-- > 0;)
            list = enif_make_list_cell(env, elements[i], list);
        fair_keep(t, made, list);
        fair_tick(t, static_cast<size_t>(n) / 4);
        resume();
    }
    list = fair_kept(t, made);
    fair_unroot(t, made);
    return list;
}

/* A map that is to be made of parts. */
struct job {
    ErlNifEnv *env;
    ERL_NIF_TERM parts, *keys, *values, map;
    uint64_t elements;
};

/* Fills the arrays from their ends. */
static void deal(const struct job *j)
{
    ERL_NIF_TERM parts = j->parts, part;
    const ERL_NIF_TERM *elements;
    uint64_t at = j->elements;
    int n;

    while (enif_get_list_cell(j->env, parts, &part, &parts)) {
        enif_get_tuple(j->env, part, &n, &elements);
        for (int i = n; i-- > 0;) {
            at--;
            (at % 2 ? j->values : j->keys)[at / 2] = elements[i];
        }
    }
}

static void make(void *arg)
{
    struct job *j = static_cast<struct job *>(arg);

    deal(j);
    j->map = make_map(j->env, j->keys, j->values, j->elements / 2);
}

bool tree::map_of_parts(uint64_t elements, ERL_NIF_TERM *map)
{
    size_t pairs = elements / 2;
    enum fair_mode where = fair_where(t);
    struct job j;

    j.keys = static_cast<ERL_NIF_TERM *>(
        fair_alloc(t, 2 * pairs * sizeof *j.keys));
    if (!j.keys)
        return false;
    if (pairs > MAP_IN_PLACE && where == FAIR_NORMAL)
        fair_move(t, FAIR_DIRTY_CPU);
    j.env = fair_env(t);
    j.parts = fair_kept(t, first);
    j.values = j.keys + pairs;
    j.elements = elements;
    in_one_go(t, make, &j);
    fair_free(t, j.keys);
    fair_keep(t, first, j.map);
    if (fair_where(t) != where)
        fair_move(t, where);
    resume();
    *map = fair_kept(t, first);
    return true;
}
