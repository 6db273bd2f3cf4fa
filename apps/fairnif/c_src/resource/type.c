/*
 * type.c - opening types of fair resources, and loads that take them
 * over.
 *
 * Which functions of the author's the runtime's own callbacks stand for is said
 * by the library that was loaded last, as the VM has it for plain types that are
 * taken over.  A version stays as long as callbacks use it.
 */
#include "resource/type.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/config.h"
#include "base/locks.h"
#include "base/os.h"
#include "base/type.h"
#include "task/env.h"
#include "task/stack.h"
#include "wait/wake.h"

static const char *const kind_names[KINDS] = {"cleanup", "down", "stop"};

static struct fair__mutex lock = FAIR__MUTEX(RANK_TYPES);
static struct fair__type *types;
static struct {
    const char *module;
    struct fair__lib lib;
} loading;

/* -- versions --------------------------------------------------------------- */

/* With `lock` held.  Release what it answers without it. */
static void *unuse(struct fair__version *v)
{
    void *pin = NULL;

    if (v && --v->uses == 0) {
        pin = v->pin;
        free(v);
    }
    return pin;
}

void *fair__version_unuse(struct fair__version *v)
{
    void *pin;

    fair__mutex_lock(&lock);
    pin = unuse(v);
    fair__mutex_unlock(&lock);
    return pin;
}

struct fair__version *fair__version_use(struct fair__type *type, enum kind kind,
                                        size_t size)
{
    struct fair__version *v;

    fair__mutex_lock(&lock);
    v = type->version ? type->version : type->opened;
    if (v && !v->nifs[kind].body)
        v = NULL;
    if (v && size < v->options.size) {
        atomic_fetch_add(&type->refused, 1);
        v = NULL;
    }
    if (v)
        v->uses++;
    fair__mutex_unlock(&lock);
    return v;
}

void *fair__new_pin(ErlNifResourceType *type, size_t size)
{
    void *pin;

    while (!(pin = enif_alloc_resource(type, size)))
        fair__nap();
    memset(pin, 0, size);
    return pin;
}

/* -- opening ---------------------------------------------------------------- */

void fair__resource_loading(const char *module, const struct fair__ops *ops,
                            ErlNifResourceType *task_type)
{
    fair__resource_loaded(1);   /* one before may have been given up */
    loading.module = module;
    loading.lib = (struct fair__lib){.ops = ops, .type = task_type};
}

/* Its library is loaded still: its task type is there.  With `lock` held. */
static void replace(struct fair__version *v)
{
    if (v && v->uses > 1)
        v->pin = fair__new_pin(v->lib.type, sizeof(struct fair__handle));
    unuse(v);
}

void fair__resource_loaded(int error)
{
    fair__env_note_time();      /* a first object may be freed on any thread */
    fair__mutex_lock(&lock);
    for (struct fair__type *type = types; type; type = type->next) {
        struct fair__version *opened = type->opened;

        type->opened = NULL;
        if (error)
            unuse(opened);
        if (error || !opened)
            continue;
        replace(type->version);
        type->version = opened;
        fair__wait_lock();
        type->max_concurrent = opened->options.max_concurrent;
        fair__wait_unlock();
    }
    loading.module = NULL;
    fair__mutex_unlock(&lock);
}

/* The VM would give this name two types, and one of them to the next version. */
static bool is_opened(const char *name)
{
    for (const struct fair__type *type = types; type; type = type->next)
        if (type->opened && !strcmp(type->name, name)
            && !strcmp(type->module, loading.module))
            return true;
    return false;
}

/* Found or made. */
static struct fair__type *type_for(ErlNifResourceType *vm, const char *module,
                             const char *name)
{
    struct fair__type *type;

    for (type = types; type; type = type->next)
        if (type->vm == vm && !strcmp(type->name, name)
            && !strcmp(type->module, module))
            return type;
    type = calloc(1, sizeof *type);
    if (!type)
        return NULL;
    type->module = strdup(module);
    type->name = strdup(name);
    if (!type->module || !type->name) {
        free((void *)type->module);
        free((void *)type->name);
        free(type);
        return NULL;
    }
    type->vm = vm;
    type->next = types;
    types = type;
    return type;
}

/* Found or made. */
static struct fair__view *view_for(struct fair__type *type, size_t size)
{
    struct fair__view *view = type->views;

    while (view && view->pub.size != size)
        view = view->next;
    if (view || !(view = malloc(sizeof *view)))
        return view;
    *view = (struct fair__view){
        .pub = {.vm = type->vm, .size = size,
                .refused = (uint64_t *)&type->refused},
        .type = type, .next = type->views
    };
    type->views = view;
    return view;
}

/* Its functions, as any other: they are counted, listed, seen. */
static bool declare_type(struct fair__version *v, const fair_resource_options *o,
                         fair_body body)
{
    const bool has[KINDS] = {o->cleanup, o->down, o->stop};

    v->options = *o;
    v->lib = loading.lib;
    v->uses = 1;
    for (int kind = 0; kind < KINDS; kind++) {
        struct fair__nif *nif = &v->nifs[kind];
        char name[256];

        if (!has[kind])
            continue;
        snprintf(name, sizeof name, "%s %s", o->name, kind_names[kind]);
        *nif = (struct fair__nif){
            .body = body, .name = name, .arity = 1, .mode = FAIR_THREADED,
            .lib = &v->lib, .yields = 1, .may_wait = 1,
            .cleans_up = o->cleans_up != 0,
            .slice_ns = (uint64_t)o->slice_us * FAIR__NS_PER_US,
            .stack_class = (uint16_t)fair__stack_class(
                o->stack_size ? o->stack_size : FAIR__STACK_DEFAULT)
        };
        nif->func = fair__func_declare(loading.module, nif);
        if (!nif->func)
            return false;
        nif->name = nif->func->name;
    }
    return true;
}

static const char *wrong_with(const fair_resource_options *o)
{
    return !loading.module ? "is opened outside of load and upgrade"
        : !o->name || !*o->name || strlen(o->name) > 200
        ? "has no name, or one of over 200 bytes"
        : !fair__stack_size_is_valid(o->stack_size)
        ? "asks for a stack of less than 16 KiB or more than 64 MiB"
        : o->slice_us > FAIR__SLICE_MAX_US
        ? "asks for slices of over 1000000 us"
        : NULL;
}

static fair_resource_type *refuse_type(const fair_resource_options *o,
                                       const char *why)
{
    fprintf(stderr, "fairnif: the fair resource %s:%s %s\n",
            loading.module ? loading.module : "?", o->name ? o->name : "?",
            why);
    return NULL;
}

/* With `lock` held. */
static struct fair__view *open_locked(ErlNifEnv *env,
                                      const fair_resource_options *o,
                                      ErlNifResourceTypeInit calls,
                                      fair_body body)
{
    ErlNifResourceType *vm;
    struct fair__type *type;
    struct fair__view *view;
    struct fair__version *v;
    char name[256];

    snprintf(name, sizeof name, "fair %s", o->name);
    vm = fair__open_type(env, name, calls);
    type = vm ? type_for(vm, loading.module, o->name) : NULL;
    view = type ? view_for(type, o->size) : NULL;
    v = view ? calloc(1, sizeof *v) : NULL;
    if (!v || !declare_type(v, o, body)) {
        free(v);
        return NULL;
    }
    type->opened = v;
    return view;
}

fair_resource_type *fair__type_open(ErlNifEnv *env,
                                    const fair_resource_options *given,
                                    size_t size, ErlNifResourceTypeInit calls,
                                    fair_body body)
{
    fair_resource_options o = {0};
    const char *wrong;
    struct fair__view *view = NULL;

    memcpy(&o, given, size < sizeof o ? size : sizeof o);
    wrong = wrong_with(&o);
    if (wrong)
        return refuse_type(&o, wrong);
    if (!o.stop)
        calls.stop = NULL;
    fair__mutex_lock(&lock);
    if (is_opened(o.name))
        wrong = "is opened twice in one load";
    else if (!(view = open_locked(env, &o, calls, body)))
        wrong = "cannot be opened: no memory";
    fair__mutex_unlock(&lock);
    return wrong ? refuse_type(&o, wrong) : &view->pub;
}

/* -- for readers ------------------------------------------------------------ */

uint64_t fair__type_max_concurrent(const struct fair__type *type)
{
    return type->max_concurrent ? type->max_concurrent
        : GET(fair__config.dirty_cpus);
}

/* The VM freed it: a later load has another one of that name. */
static bool is_past(const struct fair__type *type)
{
    if (GET(type->objects) > 0)
        return false;
    for (struct fair__type *newer = types; newer != type; newer = newer->next)
        if (!strcmp(newer->name, type->name)
            && !strcmp(newer->module, type->module))
            return true;
    return false;
}

unsigned fair__resource_types(struct fair__seen_type *all, unsigned most)
{
    unsigned count = 0;

    fair__mutex_lock(&lock);
    for (struct fair__type *type = types; type; type = type->next) {
        if (!type->version || is_past(type) || count++ >= most)
            continue;
        fair__wait_lock();
        all[count - 1] = (struct fair__seen_type){
            type->module, type->name, GET(type->objects), type->due,
            type->under_way, (unsigned)fair__type_max_concurrent(type),
            GET(type->refused)
        };
        fair__wait_unlock();
    }
    fair__mutex_unlock(&lock);
    return count;
}
