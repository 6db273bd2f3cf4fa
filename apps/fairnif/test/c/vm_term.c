/*
 * vm_term.c - terms made and taken apart: numbers, atoms, tuples, lists.
 */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "vm_int.h"

/* -- atoms: never freed, as in the real VM ------------------------------- */

enum { MAX_ATOMS = 1024 };

static pthread_mutex_t atom_lock = PTHREAD_MUTEX_INITIALIZER;
static char atoms[MAX_ATOMS][256];
static size_t atom_count;

vm_term vm__atom(const char *name, size_t length)
{
    size_t i;

    pthread_mutex_lock(&atom_lock);
    for (i = 0; i < atom_count; i++)
        if (strlen(atoms[i]) == length && !memcmp(atoms[i], name, length))
            break;
    if (i == atom_count) {
        if (atom_count == MAX_ATOMS || length > 255)
            vm_misuse("too many atoms, or one that is too long");
        memcpy(atoms[atom_count++], name, length);
    }
    pthread_mutex_unlock(&atom_lock);
    return ATOM(i);
}

const char *vm__atom_name(vm_term atom)
{
    return atoms[ATOM_INDEX(atom)];
}

vm_term enif_make_atom(ErlNifEnv *env, const char *name)
{
    vm__env_check(env, __func__);
    return vm__atom(name, strlen(name));
}

/* The environment is for the error only. */
vm_term enif_make_atom_len(ErlNifEnv *env, const char *name, size_t length)
{
    if (env)
        vm__env_check(env, __func__);
    return vm__atom(name, length);
}

int enif_get_atom(ErlNifEnv *env, vm_term term, char *buf, unsigned size,
                  ErlNifCharEncoding encoding)
{
    size_t length;

    (void)encoding;
    vm__env_check(env, __func__);
    if (!IS_ATOM(term))
        return 0;
    length = strlen(vm__atom_name(term));
    if (length >= size)
        return 0;
    memcpy(buf, vm__atom_name(term), length + 1);
    return (int)length + 1;
}

/* Of atoms only.  Names are Latin-1 here. */
int enif_term_to_binary(ErlNifEnv *env, vm_term term, ErlNifBinary *bin)
{
    enum { VERSION = 131, SMALL_ATOM = 115 };
    size_t length;

    vm__env_check(env, __func__);
    if (!IS_ATOM(term))
        vm_misuse("only atoms have an external format here");
    length = strlen(vm__atom_name(term));
    if (!enif_alloc_binary(length + 3, bin))
        return 0;
    bin->data[0] = VERSION;
    bin->data[1] = SMALL_ATOM;
    bin->data[2] = (unsigned char)length;
    memcpy(bin->data + 3, vm__atom_name(term), length);
    return 1;
}

/* -- numbers ------------------------------------------------------------- */

/* The value of an integer; false for others. */
bool vm__integer(vm_term t, __int128 *value)
{
    if (IS_SMALL(t))
        *value = SMALL_VALUE(t);
    else if (vm__is(t, T_BIG))
        memcpy(value, PTR(t) + 1, sizeof *value);
    else
        return false;
    return true;
}

vm_term vm__make_integer(struct vm_heap *h, __int128 value)
{
    vm_term *p;

    if (value >= -((__int128)1 << 59) && value < (__int128)1 << 59)
        return SMALL((int64_t)value);
    p = vm__heap_alloc(h, 3);
    p[0] = HEADER(T_BIG, 2);
    memcpy(p + 1, &value, sizeof value);
    return BOXED(p);
}

bool vm__float(vm_term t, double *value)
{
    if (!vm__is(t, T_FLOAT))
        return false;
    memcpy(value, PTR(t) + 1, sizeof *value);
    return true;
}

#define INTEGER(NAME, TYPE, MIN, MAX)                                       \
    int enif_get_##NAME(ErlNifEnv *env, vm_term term, TYPE *value)          \
    {                                                                       \
        __int128 n;                                                         \
                                                                            \
        vm__env_check(env, __func__);                                       \
        if (!vm__integer(term, &n) || n < (MIN) || n > (__int128)(MAX))     \
            return 0;                                                       \
        *value = (TYPE)n;                                                   \
        return 1;                                                           \
    }                                                                       \
    vm_term enif_make_##NAME(ErlNifEnv *env, TYPE value)                    \
    {                                                                       \
        vm__env_check(env, __func__);                                       \
        return vm__make_integer(env->heap, value);                          \
    }
INTEGER(int, int, INT32_MIN, INT32_MAX)
INTEGER(uint, unsigned, 0, UINT32_MAX)
INTEGER(long, long, INT64_MIN, INT64_MAX)
INTEGER(ulong, unsigned long, 0, UINT64_MAX)

int enif_get_double(ErlNifEnv *env, vm_term term, double *value)
{
    vm__env_check(env, __func__);
    return vm__float(term, value);
}

vm_term enif_make_double(ErlNifEnv *env, double value)
{
    vm_term *p;

    vm__env_check(env, __func__);
    if (!isfinite(value))
        return enif_make_badarg(env);
    p = vm__heap_alloc(env->heap, 2);
    p[0] = HEADER(T_FLOAT, 1);
    memcpy(p + 1, &value, sizeof value);
    return BOXED(p);
}

/* -- kinds of terms ------------------------------------------------------ */

ErlNifTermType enif_term_type(ErlNifEnv *env, vm_term t)
{
    vm__env_check(env, __func__);
    if (IS_SMALL(t))
        return ERL_NIF_TERM_TYPE_INTEGER;
    if (IS_ATOM(t))
        return ERL_NIF_TERM_TYPE_ATOM;
    if (IS_PID(t))
        return ERL_NIF_TERM_TYPE_PID;
    if (t == VM_NIL || TAG(t) == TAG_CONS)
        return ERL_NIF_TERM_TYPE_LIST;
    if (TAG(t) != TAG_BOXED)
        vm_misuse("enif_term_type of no term: %#lx", t);
    switch (SUBTAG(PTR(t)[0])) {
    case T_TUPLE:
        return ERL_NIF_TERM_TYPE_TUPLE;
    case T_FLOAT:
        return ERL_NIF_TERM_TYPE_FLOAT;
    case T_BIG:
        return ERL_NIF_TERM_TYPE_INTEGER;
    case T_HEAPBIN:
    case T_REFCBIN:
    case T_SUBBIN:
        return ERL_NIF_TERM_TYPE_BITSTRING;
    case T_REF:
    case T_MAGIC:
        return ERL_NIF_TERM_TYPE_REFERENCE;
    case T_MAP:
        return ERL_NIF_TERM_TYPE_MAP;
    case T_FUN:
        return ERL_NIF_TERM_TYPE_FUN;
    }
    vm_misuse("enif_term_type of no term: %#lx", t);
}

#define KIND(NAME, TYPE)                                                    \
    int enif_is_##NAME(ErlNifEnv *env, vm_term term)                        \
    {                                                                       \
        return enif_term_type(env, term) == ERL_NIF_TERM_TYPE_##TYPE;       \
    }
KIND(ref, REFERENCE)
KIND(list, LIST)

/* -- tuples -------------------------------------------------------------- */

vm_term enif_make_tuple_from_array(ErlNifEnv *env, const vm_term array[],
                                   unsigned n)
{
    vm_term *p;

    vm__env_check(env, __func__);
    for (unsigned i = 0; i < n; i++)
        vm__owned(env, array[i], __func__);
    vm__walked(n);
    p = vm__heap_alloc(env->heap, 1 + n);
    p[0] = HEADER(T_TUPLE, n);
    for (unsigned i = 0; i < n; i++)
        p[i + 1] = array[i];
    return BOXED(p);
}

/* Of those that come as arguments. */
#define OF_ARGUMENTS(NAME)                                                  \
    vm_term enif_make_##NAME(ErlNifEnv *env, unsigned n, ...)               \
    {                                                                       \
        vm_term array[64];                                                  \
        va_list ap;                                                         \
                                                                            \
        if (n > 64)                                                         \
            vm_misuse("enif_make_" #NAME " of %u elements", n);             \
        va_start(ap, n);                                                    \
        for (unsigned i = 0; i < n; i++)                                    \
            array[i] = va_arg(ap, vm_term);                                 \
        va_end(ap);                                                         \
        return enif_make_##NAME##_from_array(env, array, n);                \
    }
OF_ARGUMENTS(tuple)
OF_ARGUMENTS(list)

int enif_get_tuple(ErlNifEnv *env, vm_term term, int *arity,
                   const vm_term **array)
{
    vm__env_check(env, __func__);
    if (!vm__is(term, T_TUPLE))
        return 0;
    *arity = (int)HSIZE(PTR(term)[0]);
    *array = PTR(term) + 1;
    return 1;
}

/* -- lists --------------------------------------------------------------- */

vm_term enif_make_list_cell(ErlNifEnv *env, vm_term head, vm_term tail)
{
    vm_term *p;

    vm__env_check(env, __func__);
    vm__owned(env, head, __func__);
    vm__owned(env, tail, __func__);
    p = vm__heap_alloc(env->heap, 2);
    p[0] = head;
    p[1] = tail;
    return CONS(p);
}

vm_term enif_make_list_from_array(ErlNifEnv *env, const vm_term array[],
                                  unsigned n)
{
    vm_term list = VM_NIL;

    vm__env_check(env, __func__);
    while (n-- > 0)
        list = enif_make_list_cell(env, array[n], list);
    return list;
}

vm_term enif_make_string_len(ErlNifEnv *env, const char *chars, size_t n,
                             ErlNifCharEncoding encoding)
{
    vm_term list = VM_NIL;

    (void)encoding;
    vm__env_check(env, __func__);
    while (n-- > 0)
        list = enif_make_list_cell(env, SMALL((unsigned char)chars[n]), list);
    return list;
}

vm_term enif_make_string(ErlNifEnv *env, const char *chars,
                         ErlNifCharEncoding encoding)
{
    return enif_make_string_len(env, chars, strlen(chars), encoding);
}

int enif_get_list_cell(ErlNifEnv *env, vm_term term, vm_term *head,
                       vm_term *tail)
{
    vm__env_check(env, __func__);
    if (TAG(term) != TAG_CONS)
        return 0;
    *head = PTR(term)[0];
    *tail = PTR(term)[1];
    return 1;
}

int enif_is_atom(ErlNifEnv *env, vm_term term)
{
    vm__env_check(env, __func__);
    return IS_ATOM(term);
}

int enif_is_empty_list(ErlNifEnv *env, vm_term term)
{
    vm__env_check(env, __func__);
    return term == VM_NIL;
}

int enif_get_list_length(ErlNifEnv *env, vm_term term, unsigned *length)
{
    unsigned n = 0;

    vm__env_check(env, __func__);
    for (; TAG(term) == TAG_CONS; term = PTR(term)[1])
        n++;
    vm__walked(n);
    *length = n;
    return term == VM_NIL;
}

/* -- references ---------------------------------------------------------- */

vm_term enif_make_ref(ErlNifEnv *env)
{
    static long number;
    vm_term *p;

    vm__env_check(env, __func__);
    p = vm__heap_alloc(env->heap, 2);
    p[0] = HEADER(T_REF, 1);
    p[1] = (vm_term)__atomic_add_fetch(&number, 1, __ATOMIC_RELAXED);
    return BOXED(p);
}
