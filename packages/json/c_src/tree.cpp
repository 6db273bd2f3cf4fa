/*
 * tree.cpp - arrays and objects under construction, see tree.hpp.
 */
#include "tree.hpp"

#include <vector>

#include "away.hpp"

/* A map of more pairs is made on a dirty scheduler, since it is made in one
 * go: on a normal one it would take more than half a slice. */
static constexpr size_t MAP_IN_PLACE = 128;

/* To take a part of a list from its root and put it before another one, in
 * tokens. */
static constexpr size_t PART_COST = 16;

tree::tree(fair::task &task)
    : env(task.environment()), t(task), stack(t, enif_make_list(env, 0)),
      whole(t, enif_make_list(env, 0))
{
    again();
}

void tree::again()
{
    since = fair_yields(&t);
    env = t.environment();
    rest = stack.get();
    own = enif_make_list(env, 0);
}

void tree::spill()
{
    ERL_NIF_TERM nil = enif_make_list(env, 0), header;
    unsigned end;
    uint64_t n;

    if (opened == 0)
        return;
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
        rest = enif_make_list_cell(
            env, enif_make_list_cell(env, header, own), rest);
    }
    stack.set(rest);
    opened = count = 0;
}

/* Takes the innermost level back from the stack.  The root may still have
 * it: the next spill sets that. */
void tree::reload()
{
    ERL_NIF_TERM entry, header;
    ErlNifUInt64 n;

    enif_get_list_cell(env, rest, &entry, &rest);
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

void tree::close()
{
    ERL_NIF_TERM keys[MOST / 2], values[MOST / 2], made;
    const level l = top();
    const ERL_NIF_TERM *elements = pending + l.from;
    unsigned n = count - l.from;

    if (l.spilled > 0) {
        close_large();
        return;
    }
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
}

/* All that is open goes to the stack, and this level is taken off it: with all
 * its elements in parts. */
void tree::close_large()
{
    ERL_NIF_TERM entry;
    level l;

    spill();
    reload();
    l = levels[0];
    opened = 0;
    depth--;
    stack.next(entry);
    fair::root parts(t, own);
    add(l.object ? map_of(parts, l.spilled) : list_of(parts));
}

/* The elements of all parts, in slices. */
ERL_NIF_TERM tree::list_of(fair::root &parts)
{
    fair::root made(t, enif_make_list(env, 0));
    const ERL_NIF_TERM *elements;
    ERL_NIF_TERM part, list;
    int n;

    while (parts.next(part)) {
        enif_get_tuple(env, part, &n, &elements);
        list = made.get();
        for (int i = n; i-- > 0;)
            list = enif_make_list_cell(env, elements[i], list);
        made.set(list);
        t.tick(PART_COST + static_cast<size_t>(n) / 4);
        resume();
    }
    return made.get();
}

/* Fills the arrays from their ends. */
static void deal(ErlNifEnv *env, ERL_NIF_TERM parts, uint64_t at,
                 ERL_NIF_TERM *keys, ERL_NIF_TERM *values)
{
    const ERL_NIF_TERM *elements;
    ERL_NIF_TERM part;
    int n;

    while (enif_get_list_cell(env, parts, &part, &parts)) {
        enif_get_tuple(env, part, &n, &elements);
        for (int i = n; i-- > 0;) {
            at--;
            (at % 2 ? values : keys)[at / 2] = elements[i];
        }
    }
}

ERL_NIF_TERM tree::map_of(fair::root &parts, uint64_t elements)
{
    size_t pairs = elements / 2;
    std::vector<ERL_NIF_TERM> keys(pairs), values(pairs);
    enum fair_mode where = t.where();
    ERL_NIF_TERM map;

    if (pairs > MAP_IN_PLACE && where == FAIR_NORMAL)
        t.move(FAIR_DIRTY_CPU);
    resume();
    map = parts.get();
    in_one_go(t, [&] {
        deal(env, map, elements, keys.data(), values.data());
        map = make_map(env, keys.data(), values.data(), pairs);
    });
    parts.set(map);
    if (t.where() != where)
        t.move(where);
    resume();
    return parts.get();
}
