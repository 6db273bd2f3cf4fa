/*
 * vm_map.c - terms that are the same, and maps: keys stand in the order in which
 * they came.
 */
#include <string.h>

#include "vm_int.h"

static bool same_each(const vm_term *p, const vm_term *q, size_t n)
{
    for (size_t i = 0; i < n; i++)
        if (!vm__same(p[i], q[i]))
            return false;
    return true;
}

/* Numbers, references, lists, tuples and small binaries by what they are, other
 * terms by where they are: that two which stand in different places are the same
 * is more than anybody asks. */
bool vm__same(vm_term a, vm_term b)
{
    const vm_term *p = PTR(a), *q = PTR(b);

    if (a == b || TAG(a) != TAG(b) || TAG(a) == TAG_IMMEDIATE)
        return a == b;
    if (TAG(a) == TAG_CONS)
        return same_each(p, q, 2);
    if (p[0] != q[0])
        return false;
    switch (SUBTAG(p[0])) {
    case T_TUPLE:
        return same_each(p + 1, q + 1, HSIZE(p[0]));
    case T_HEAPBIN:
        return !memcmp(p + 1, q + 1, HSIZE(p[0]));
    case T_REF:
    case T_MAGIC:
    case T_BIG:
    case T_FLOAT:
        return !memcmp(p, q, vm__boxed_words(p[0]) * sizeof *p);
    default:
        vm_misuse("enif_is_identical of two terms that are not looked into");
    }
    return false;
}

int enif_is_identical(vm_term a, vm_term b)
{
    return vm__same(a, b);
}

/* -- maps ---------------------------------------------------------------- */

/* Where the key stands, or is to come. */
static size_t place(const vm_term *map, vm_term key, bool *found)
{
    size_t i, n = HSIZE(map[0]);

    for (i = 0; i < n && !vm__same(map[1 + 2 * i], key); i++)
        ;
    *found = i < n;
    return i;
}

vm_term enif_make_new_map(ErlNifEnv *env)
{
    vm_term *p;

    vm__env_check(env, __func__);
    p = vm__heap_alloc(env->heap, 1);
    p[0] = HEADER(T_MAP, 0);
    return BOXED(p);
}

int enif_make_map_put(ErlNifEnv *env, vm_term map, vm_term key, vm_term value,
                      vm_term *result)
{
    const vm_term *from = PTR(map);
    size_t i, n;
    bool found;
    vm_term *p;

    vm__env_check(env, __func__);
    vm__owned(env, map, __func__);
    vm__owned(env, key, __func__);
    vm__owned(env, value, __func__);
    n = HSIZE(from[0]);
    i = place(from, key, &found);
    p = vm__heap_alloc(env->heap, 1 + 2 * (n + !found));
    p[0] = HEADER(T_MAP, n + !found);
    memcpy(p + 1, from + 1, 2 * n * sizeof *p);
    p[1 + 2 * i] = key;
    p[2 + 2 * i] = value;
    *result = BOXED(p);
    vm__walked(2 * n);
    return 1;
}

int enif_make_map_from_arrays(ErlNifEnv *env, vm_term keys[],
                              vm_term values[], size_t count, vm_term *result)
{
    vm_term map = enif_make_new_map(env);

    for (size_t i = 0; i < count; i++) {
        enif_make_map_put(env, map, keys[i], values[i], &map);
        if (HSIZE(PTR(map)[0]) != i + 1)
            return 0;
    }
    *result = map;
    return 1;
}

int enif_get_map_size(ErlNifEnv *env, vm_term map, size_t *size)
{
    if (enif_term_type(env, map) != ERL_NIF_TERM_TYPE_MAP)
        return 0;
    *size = HSIZE(PTR(map)[0]);
    return 1;
}

int enif_get_map_value(ErlNifEnv *env, vm_term map, vm_term key,
                       vm_term *value)
{
    size_t i;
    bool found;

    vm__env_check(env, __func__);
    i = place(PTR(map), key, &found);
    if (found)
        *value = PTR(map)[2 + 2 * i];
    return found;
}

/* Iterators stand from 1 on; size + 1 is past the last. */
int enif_map_iterator_create(ErlNifEnv *env, vm_term map,
                             ErlNifMapIterator *it,
                             ErlNifMapIteratorEntry entry)
{
    vm__env_check(env, __func__);
    memset(it, 0, sizeof *it);
    it->map = map;
    it->size = HSIZE(PTR(map)[0]);
    it->idx = entry == ERL_NIF_MAP_ITERATOR_FIRST ? 1 : it->size;
    COUNT(temporary, 1);
    return 1;
}

void enif_map_iterator_destroy(ErlNifEnv *env, ErlNifMapIterator *it)
{
    vm__env_check(env, __func__);
    it->map = NON_VALUE;
    COUNT(temporary, -1);
}

int enif_map_iterator_next(ErlNifEnv *env, ErlNifMapIterator *it)
{
    vm__env_check(env, __func__);
    return ++it->idx <= it->size;
}

int enif_map_iterator_get_pair(ErlNifEnv *env, ErlNifMapIterator *it,
                               vm_term *key, vm_term *value)
{
    vm__env_check(env, __func__);
    if (it->idx > it->size)
        return 0;
    *key = PTR(it->map)[2 * it->idx - 1];
    *value = PTR(it->map)[2 * it->idx];
    return 1;
}
