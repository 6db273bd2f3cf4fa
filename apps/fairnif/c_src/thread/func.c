/*
 * func.c - the registry of fair functions.
 *
 * A function is known by module, name and arity; the library that declares
 * it may be loaded, upgraded and purged any number of times.
 */
#include <stdlib.h>

#include "thread/func.h"

#include "base/locks.h"

static struct fair__mutex lock = FAIR__MUTEX(RANK_FUNCS);
static struct fair__func **funcs;   /* grows under the lock */
static _Atomic unsigned func_count;
static unsigned funcs_size;

const struct fair__mode fair__modes[FAIR_AUTO + 1] = {
    [FAIR_NORMAL]    = {"normal",    W_NORMAL,    false},
    [FAIR_DIRTY_CPU] = {"dirty_cpu", W_DIRTY_CPU, false},
    [FAIR_DIRTY_IO]  = {"dirty_io",  W_DIRTY_IO,  false},
    [FAIR_THREADED]  = {"threaded",  W_THREAD,    false},
    [FAIR_AUTO]      = {"auto",      W_NORMAL,    true},
};

static struct fair__func *find(const char *module, const char *name,
                               unsigned arity)
{
    for (unsigned i = 0; i < GET(func_count); i++) {
        struct fair__func *f = funcs[i];

        if (f->arity == arity && !strcmp(f->name, name)
            && !strcmp(f->module, module))
            return f;
    }
    return NULL;
}

static struct fair__func *add(const char *module, const char *name,
                              unsigned arity)
{
    struct fair__func *f = calloc(1, sizeof *f);

    if (!f)
        return NULL;
    f->index = GET(func_count);
    f->module = strdup(module);
    f->name = strdup(name);
    f->elsewhere = calloc(1, sizeof *f->elsewhere);
    f->arity = arity;
    if (f->index == funcs_size) {
        unsigned size = funcs_size ? 2 * funcs_size : 64;
        struct fair__func **bigger = realloc(funcs, size * sizeof *funcs);

        if (bigger) {
            funcs = bigger;
            funcs_size = size;
        }
    }
    if (!f->module || !f->name || !f->elsewhere || f->index == funcs_size) {
        free(f->elsewhere);
        free((void *)f->module);
        free((void *)f->name);
        free(f);
        return NULL;
    }
    funcs[f->index] = f;
    SET(func_count, f->index + 1);
    return f;
}

/* Finds or makes the record of a function.  NULL when out of memory.  What is
 * written here is shown by fairnif:info/0; a call goes by the settings of the
 * library it belongs to, in its struct fair__nif.  The learned rate is kept: it
 * is corrected within a few slices if the new code is of another speed. */
struct fair__func *fair__func_declare(const char *module,
                                      const struct fair__nif *nif)
{
    struct fair__func *f;

    fair__mutex_lock(&lock);
    f = find(module, nif->name, nif->arity);
    if (!f)
        f = add(module, nif->name, nif->arity);
    if (f) {
        SET(f->mode, nif->mode);
        SET(f->may_wait, nif->may_wait);
        SET(f->yields, nif->yields);
        SET(f->cleans_up, nif->cleans_up);
        SET(f->prompt, nif->prompt);
        SET(f->stack_class, nif->stack_class);
        SET(f->slice_ns, nif->slice_ns);
        SET(f->max_tasks, nif->max_tasks);
        SET(f->sleeps, 0);
        SET(f->brief, 0);
        SET(f->locks, false);
        SET(f->long_gaps, 0);
        SET(f->adapted, false);
    }
    fair__mutex_unlock(&lock);
    return f;
}

void fair__func_loaded(const char *module, const struct fair__lib *lib)
{
    fair__mutex_lock(&lock);
    for (unsigned i = 0; i < func_count; i++) {
        struct fair__func *f = funcs[i];

        if (strcmp(f->module, module) == 0 && GET(f->newest) != lib) {
            SET(f->before, GET(f->newest));
            SET(f->newest, lib);
        }
    }
    fair__mutex_unlock(&lock);
}

unsigned fair__func_count(void)
{
    return atomic_load_explicit(&func_count, memory_order_acquire);
}

struct fair__func *fair__func_nth(unsigned index)
{
    struct fair__func *f;

    fair__mutex_lock(&lock);
    f = funcs[index];
    fair__mutex_unlock(&lock);
    return f;
}

unsigned fair__bucket(uint64_t ns)
{
    unsigned octave, bucket;

    if (ns < 1024)
        return 0;
    octave = 63 - (unsigned)__builtin_clzll(ns);
    bucket = 1 + (octave - 10) * 8 + (unsigned)((ns >> (octave - 3)) & 7);
    return bucket < FAIR__BUCKETS ? bucket : FAIR__BUCKETS - 1;
}

uint64_t fair__bucket_ns(unsigned bucket)
{
    if (bucket == 0)
        return 1024;
    return (uint64_t)((bucket - 1) % 8 + 9) << (10 + (bucket - 1) / 8 - 3);
}
