/*
 * copy.c - copies terms, which the VM does in one go: estimates the size of a
 * term, and chooses the scheduler that copies it.
 */
#include "term/copy.h"

#include "task/slice.h"
#include "term/hold.h"

enum { COPY_DEPTH = 64 };

/* The bytes of a long binary are shared; how long an integer of more than 64 bits
 * is, the VM does not say. */
bool fair__has_no_parts(ErlNifEnv *env, ERL_NIF_TERM term)
{
    ErlNifSInt64 number;
    ErlNifUInt64 positive;

    switch (enif_term_type(env, term)) {
    case ERL_NIF_TERM_TYPE_ATOM:
    case ERL_NIF_TERM_TYPE_FLOAT:
    case ERL_NIF_TERM_TYPE_PID:
    case ERL_NIF_TERM_TYPE_PORT:
    case ERL_NIF_TERM_TYPE_REFERENCE:
    case ERL_NIF_TERM_TYPE_BITSTRING:
        return true;
    case ERL_NIF_TERM_TYPE_INTEGER:
        return enif_get_int64(env, term, &number)
            || enif_get_uint64(env, term, &positive);
    default:
        return false;
    }
}

/* Takes the size of a term, in words as far as matters, off *left; false when
 * it is larger. */
static bool fits(ErlNifEnv *env, ERL_NIF_TERM term, unsigned depth, long *left)
{
    ERL_NIF_TERM head, value;
    const ERL_NIF_TERM *elems;
    int arity;

    if (--*left < 0 || depth == 0)
        return false;
    if (fair__has_no_parts(env, term))
        return true;
    switch (enif_term_type(env, term)) {
    case ERL_NIF_TERM_TYPE_LIST:
        while (enif_get_list_cell(env, term, &head, &term))
            if (--*left < 0 || !fits(env, head, depth - 1, left))
                return false;
        return enif_is_empty_list(env, term)
            || fits(env, term, depth - 1, left);
    case ERL_NIF_TERM_TYPE_TUPLE:
        enif_get_tuple(env, term, &arity, &elems);
        for (int i = 0; i < arity; i++)
            if (!fits(env, elems[i], depth - 1, left))
                return false;
        return true;
    case ERL_NIF_TERM_TYPE_MAP: {
        ErlNifMapIterator iter;
        bool fit = true;

        if (!enif_map_iterator_create(env, term, &iter,
                                      ERL_NIF_MAP_ITERATOR_FIRST))
            return false;
        while (fit && enif_map_iterator_get_pair(env, &iter, &head, &value)) {
            fit = fits(env, head, depth - 1, left)
                && fits(env, value, depth - 1, left);
            enif_map_iterator_next(env, &iter);
        }
        enif_map_iterator_destroy(env, &iter);
        return fit;
    }
    default:        /* what a fun holds cannot be seen, nor what a
                                   later VM has */
        return false;
    }
}

bool fair__term_is_small(ErlNifEnv *env, ERL_NIF_TERM term)
{
    long left = FAIR__COPY_WORDS;

    return fits(env, term, COPY_DEPTH, &left);
}

bool fair__terms_fit(ErlNifEnv *env, const ERL_NIF_TERM *terms, unsigned count,
                     long *left)
{
    for (unsigned i = 0; i < count; i++)
        if (!fits(env, terms[i], COPY_DEPTH, left))
            return false;
    return true;
}

bool fair__copy_on_dirty(ErlNifEnv *env, ERL_NIF_TERM term)
{
    return enif_thread_type() == ERL_NIF_THR_NORMAL_SCHEDULER
        && !fair__term_is_small(env, term);
}

static ERL_NIF_TERM copied(struct fair__task *t, ErlNifEnv *to,
                           ERL_NIF_TERM term)
{
    return enif_make_copy(to ? to : t->pub.env, term);
}

ERL_NIF_TERM fair__copy_at_once(fair_task *pub, ErlNifEnv *to,
                                ERL_NIF_TERM term)
{
    return copied(fair__of(pub), to, term);
}

/* What is in the task's environment is in a root meanwhile. */
ERL_NIF_TERM fair__copy(fair_task *pub, ErlNifEnv *to, ERL_NIF_TERM term)
{
    struct fair__task *t = fair__of(pub);
    ERL_NIF_TERM copy;
    unsigned root;

    if (t->where != W_NORMAL || t->away || !FAIR__TASKS
        || fair__term_is_small(pub->env, term))
        return copied(t, to, term);
    root = fair__own_root(t, to ? term : enif_make_list(pub->env, 0));
    fair__go(t, W_DIRTY_CPU);
    copy = copied(t, to, to ? t->hold.roots[root] : term);
    if (!to)
        t->hold.roots[root] = copy;
    fair__go(t, W_NORMAL);
    if (!to)
        copy = t->hold.roots[root];
    t->hold.roots_used = root;
    return copy;
}
