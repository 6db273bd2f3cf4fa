/*
 * vm_map.c - the order of terms, and maps, whose keys stand in that order.
 */
#include <string.h>

#include "vm_int.h"

/* number < atom < reference < fun < port < pid < tuple < map < nil < list <
 * bitstring */
static int rank(vm_term t)
{
    if (IS_SMALL(t))
        return 0;
    if (IS_ATOM(t))
        return 1;
    if (IS_PID(t))
        return 5;
    if (t == VM_NIL)
        return 8;
    if (TAG(t) == TAG_CONS)
        return 9;
    switch (SUBTAG(PTR(t)[0])) {
    case T_FLOAT:
    case T_BIG:
    case T_BIGNEG:
        return 0;
    case T_REF:
    case T_MAGIC:
        return 2;
    case T_FUN:
        return 3;
    case T_TUPLE:
        return 6;
    case T_MAP:
        return 7;
    default:
        return 10;
    }
}

#define ORDER(A, B) (((A) > (B)) - ((A) < (B)))

static int compare_numbers(vm_term a, vm_term b)
{
    __int128 m, n;
    double x, y;

    if (vm__integer(a, &m)) {
        if (vm__integer(b, &n))
            return ORDER(m, n);
        vm__float(b, &y);
        return ORDER((double)m, y);
    }
    vm__float(a, &x);
    if (vm__integer(b, &n))
        return ORDER(x, (double)n);
    vm__float(b, &y);
    return ORDER(x, y);
}

static int compare_bits(vm_term a, vm_term b)
{
    struct vm_span s, r;
    unsigned char *x, *y;
    int order;

    vm__span(a, &s);
    vm__span(b, &r);
    x = vm__span_copy(&s, vm__malloc(s.size + 1));
    y = vm__span_copy(&r, vm__malloc(r.size + 1));
    order = memcmp(x, y, s.size < r.size ? s.size : r.size);
    vm__free(x);
    vm__free(y);
    if (order)
        return order < 0 ? -1 : 1;
    return s.size != r.size ? ORDER(s.size, r.size) : ORDER(s.bits, r.bits);
}

static int compare_words(const vm_term *a, const vm_term *b, size_t from,
                         size_t words, size_t step)
{
    for (size_t i = from; i < words; i += step) {
        int order = vm__compare(a[i], b[i]);

        if (order)
            return order;
    }
    return 0;
}

int vm__compare(vm_term a, vm_term b)
{
    const vm_term *p, *q;
    size_t m, n;
    int order;

    while (TAG(a) == TAG_CONS && TAG(b) == TAG_CONS && a != b) {
        order = vm__compare(PTR(a)[0], PTR(b)[0]);
        if (order)
            return order;
        a = PTR(a)[1];
        b = PTR(b)[1];
    }
    if (a == b)
        return 0;
    if (rank(a) != rank(b))
        return ORDER(rank(a), rank(b));
    p = PTR(a);
    q = PTR(b);
    switch (rank(a)) {
    case 0:
        return compare_numbers(a, b);
    case 1:
        return strcmp(vm__atom_name(a), vm__atom_name(b)) < 0 ? -1 : 1;
    case 6:
        m = HSIZE(p[0]), n = HSIZE(q[0]);
        return m != n ? ORDER(m, n) : compare_words(p, q, 1, m + 1, 1);
    case 7:
        m = HSIZE(p[0]), n = HSIZE(q[0]);
        if (m != n)
            return ORDER(m, n);
        order = compare_words(p, q, 1, 2 * m, 2);
        return order ? order : compare_words(p, q, 2, 2 * m + 1, 2);
    case 10:
        return compare_bits(a, b);
    case 2:
    case 3:
        return ORDER(p[1], q[1]);
    default:
        return ORDER(a, b);
    }
}

int enif_compare(vm_term a, vm_term b)
{
    return vm__compare(a, b);
}

/* 1 and 1.0 are not identical. */
int enif_is_identical(vm_term a, vm_term b)
{
    return vm__compare(a, b) == 0
        && vm__is(a, T_FLOAT) == vm__is(b, T_FLOAT);
}

/* -- maps ---------------------------------------------------------------- */

static bool is_map(vm_term t)
{
    return vm__is(t, T_MAP);
}

/* Where the key stands, or should. */
static size_t place(const vm_term *map, vm_term key, bool *found)
{
    size_t i, n = HSIZE(map[0]);

    *found = false;
    for (i = 0; i < n; i++) {
        int order = vm__compare(map[1 + 2 * i], key);

        if (order < 0)
            continue;
        *found = order == 0;
        break;
    }
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
    if (!is_map(map))
        return 0;
    n = HSIZE(from[0]);
    i = place(from, key, &found);
    p = vm__heap_alloc(env->heap, 1 + 2 * (n + !found));
    p[0] = HEADER(T_MAP, n + !found);
    memcpy(p + 1, from + 1, 2 * i * sizeof *p);
    memcpy(p + 1 + 2 * (i + 1), from + 1 + 2 * (i + found),
           2 * (n - i - found) * sizeof *p);
    p[1 + 2 * i] = key;
    p[2 + 2 * i] = value;
    *result = BOXED(p);
    vm__walked(2 * n);
    return 1;
}

int enif_make_map_update(ErlNifEnv *env, vm_term map, vm_term key,
                         vm_term value, vm_term *result)
{
    vm_term old;

    return enif_get_map_value(env, map, key, &old)
        && enif_make_map_put(env, map, key, value, result);
}

int enif_make_map_from_arrays(ErlNifEnv *env, vm_term keys[],
                              vm_term values[], size_t n, vm_term *result)
{
    vm_term map = enif_make_new_map(env), old;

    for (size_t i = 0; i < n; i++) {
        if (enif_get_map_value(env, map, keys[i], &old))
            return 0;
        enif_make_map_put(env, map, keys[i], values[i], &map);
    }
    *result = map;
    return 1;
}

int enif_get_map_size(ErlNifEnv *env, vm_term map, size_t *size)
{
    vm__env_check(env, __func__);
    if (!is_map(map))
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
    if (!is_map(map))
        return 0;
    i = place(PTR(map), key, &found);
    if (found)
        *value = PTR(map)[2 + 2 * i];
    return found;
}

/* Iterators stand from 1 on; 0 is before the first, size + 1 past the last. */
int enif_map_iterator_create(ErlNifEnv *env, vm_term map,
                             ErlNifMapIterator *it,
                             ErlNifMapIteratorEntry entry)
{
    vm__env_check(env, __func__);
    if (!is_map(map))
        return 0;
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
    if (it->idx <= it->size)
        it->idx++;
    return it->idx <= it->size;
}

int enif_map_iterator_get_pair(ErlNifEnv *env, ErlNifMapIterator *it,
                               vm_term *key, vm_term *value)
{
    vm__env_check(env, __func__);
    if (it->idx < 1 || it->idx > it->size)
        return 0;
    *key = PTR(it->map)[2 * it->idx - 1];
    *value = PTR(it->map)[2 * it->idx];
    return 1;
}
