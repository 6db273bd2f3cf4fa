/*
 * vm_res.c - resource objects, their types, and the libraries that own these.
 *
 * A library's code stays mapped while an object of a type that it owns lives;
 * when the last one goes after a purge, vm_on_unmap's function is called,
 * which may dlclose.  Types opened in load or upgrade exist once that has
 * succeeded, as in the real VM; and after a purge as long as they have objects.
 */
#include <stdio.h>
#include <string.h>

#include "vm_int.h"

#define LIVE 0x4C495645524553ULL
#define GONE 0x474F4E45524553ULL

struct enif_resource_type_t {
    char module[64], name[256];
    vm_lib *owner;          /* NULL: the type is gone */
    ErlNifResourceTypeInit fn;
    /* while load or upgrade runs */
    bool pending;
    vm_lib *new_owner;
    ErlNifResourceTypeInit new_fn;
    long objects;
    struct enif_resource_type_t *next;
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static ErlNifResourceType *types;
static vm_lib *libs;
static struct vm_resource *late;

struct vm_resource *vm__resource_of(void *obj)
{
    struct vm_resource *r = (struct vm_resource *)
        ((char *)obj - offsetof(struct vm_resource, data));

    if (r->magic != LIVE)
        vm_misuse("a resource object that was freed, or none");
    return r;
}

#define of(OBJ) vm__resource_of(OBJ)

/* -- types --------------------------------------------------------------- */

static ErlNifResourceType *find_type(const char *module, const char *name)
{
    for (ErlNifResourceType *t = types; t; t = t->next)
        if ((t->pending || (t->owner && !t->owner->purged))
            && !strcmp(t->module, module) && !strcmp(t->name, name))
            return t;
    return NULL;
}

static ErlNifResourceType *open_type(ErlNifEnv *env, const char *name,
                                     const ErlNifResourceTypeInit *init,
                                     ErlNifResourceFlags flags)
{
    ErlNifResourceType *t;

    vm__slice_check(env, "opening a resource type");
    if (!env->loading)
        vm_misuse("resource type %s opened outside of load and upgrade", name);
    /* See fair__open_type. */
    if (flags & ERL_NIF_RT_TAKEOVER && !init->down)
        vm_misuse("resource type %s may be taken over and has no `down`",
                  name);
    pthread_mutex_lock(&lock);
    t = find_type(env->lib->name, name);
    if (t && t->pending)        /* the VM makes two, and takes over one */
        vm_misuse("resource type %s opened twice in one load", name);
    if (t && !(flags & ERL_NIF_RT_TAKEOVER)) {
        pthread_mutex_unlock(&lock);
        return NULL;
    }
    if (!t) {
        t = vm__malloc(sizeof *t);
        memset(t, 0, sizeof *t);
        snprintf(t->module, sizeof t->module, "%s", env->lib->name);
        snprintf(t->name, sizeof t->name, "%s", name);
        t->next = types;
        types = t;
    }
    t->pending = true;
    t->new_owner = env->lib;
    t->new_fn = *init;
    pthread_mutex_unlock(&lock);
    return t;
}

ErlNifResourceType *enif_open_resource_type(
    ErlNifEnv *env, const char *module, const char *name,
    ErlNifResourceDtor *dtor, ErlNifResourceFlags flags,
    ErlNifResourceFlags *tried)
{
    ErlNifResourceTypeInit init = {dtor, NULL, NULL, 1, NULL};

    if (module || tried)
        vm_misuse("enif_open_resource_type: what is not here");
    return open_type(env, name, &init, flags);
}

ErlNifResourceType *enif_init_resource_type(
    ErlNifEnv *env, const char *name, const ErlNifResourceTypeInit *given,
    ErlNifResourceFlags flags, ErlNifResourceFlags *tried)
{
    ErlNifResourceTypeInit init;

    memset(&init, 0, sizeof init);
    init.members = given->members;
    init.dtor = given->dtor;
    init.stop = given->members > 1 ? given->stop : NULL;
    init.down = given->members > 2 ? given->down : NULL;
    init.dyncall = given->members > 3 ? given->dyncall : NULL;
    if (tried)
        vm_misuse("enif_init_resource_type: what is not here");
    return open_type(env, name, &init, flags);
}

/* -- objects ------------------------------------------------------------- */

static void unmap_unused(vm_lib *lib);

void *enif_alloc_resource(ErlNifResourceType *type, size_t size)
{
    struct vm_resource *r;

    if (!type->owner)
        vm_misuse("enif_alloc_resource in load or upgrade, or of a type that "
                  "is gone");
    r = vm__malloc(sizeof *r + size);
    r->magic = LIVE;
    r->type = type;
    r->refs = 1;
    r->size = size;
    memset(r->data, 0xA2, size);
    pthread_mutex_lock(&lock);
    type->objects++;
    pthread_mutex_unlock(&lock);
    COUNT(resources, 1);
    return r->data;
}

static void destroy(struct vm_resource *r)
{
    ErlNifResourceType *type = r->type;
    vm_lib *owner = type->owner;

    vm__monitors_forget(r);
    if (type->fn.dtor) {
        ErlNifEnv *env = vm__env_new(ENV_DTOR, NULL, owner);

        type->fn.dtor(env, r->data);
        vm__env_free(env);
    }
    r->magic = GONE;
    vm__free(r);
    COUNT(resources, -1);
    pthread_mutex_lock(&lock);
    type->objects--;
    pthread_mutex_unlock(&lock);
    unmap_unused(owner);
}

void vm__resource_keep(struct vm_resource *r)
{
    __atomic_add_fetch(&of(r->data)->refs, 1, __ATOMIC_RELAXED);
}

bool vm__resource_keep_live(struct vm_resource *r)
{
    long refs = __atomic_load_n(&r->refs, __ATOMIC_RELAXED);

    while (refs > 0)
        if (__atomic_compare_exchange_n(&r->refs, &refs, refs + 1, true,
                                        __ATOMIC_RELAXED, __ATOMIC_RELAXED))
            return true;
    return false;
}

const ErlNifResourceTypeInit *vm__resource_calls(const struct vm_resource *r)
{
    return &r->type->fn;
}

vm_lib *vm__resource_owner(const struct vm_resource *r)
{
    return r->type->owner;
}

void vm__resource_drop(struct vm_resource *r)
{
    long refs = __atomic_sub_fetch(&of(r->data)->refs, 1, __ATOMIC_ACQ_REL);

    if (refs < 0)
        vm_misuse("a resource object released too often");
    if (refs > 0)
        return;
    if (vm_options.late_destructors) {
        pthread_mutex_lock(&lock);
        r->next_late = late;
        late = r;
        pthread_mutex_unlock(&lock);
    } else {
        destroy(r);
    }
}

/* Runs the destructors that were put off. */
void vm_run_destructors(void)
{
    for (;;) {
        struct vm_resource *r;

        pthread_mutex_lock(&lock);
        r = late;
        if (r)
            late = r->next_late;
        pthread_mutex_unlock(&lock);
        if (!r)
            return;
        destroy(r);
    }
}

size_t enif_sizeof_resource(void *obj)
{
    return of(obj)->size;
}

void enif_keep_resource(void *obj)
{
    vm__resource_keep(of(obj));
}

void enif_release_resource(void *obj)
{
    vm__resource_drop(of(obj));
}

vm_term enif_make_resource(ErlNifEnv *env, void *obj)
{
    struct vm_resource *r = of(obj);
    vm_term *p;

    vm__env_check(env, __func__);
    vm__resource_keep(r);
    p = vm__heap_alloc(env->heap, 2);
    p[0] = HEADER(T_MAGIC, 1);
    p[1] = (vm_term)r;
    vm__heap_off(env->heap, p);
    return BOXED(p);
}

int enif_get_resource(ErlNifEnv *env, vm_term term, ErlNifResourceType *type,
                      void **obj)
{
    struct vm_resource *r;

    vm__env_check(env, __func__);
    if (!vm__is(term, T_MAGIC))
        return 0;
    r = of(((struct vm_resource *)PTR(term)[1])->data);
    if (r->type != type)
        return 0;
    *obj = r->data;
    return 1;
}

int enif_dynamic_resource_call(ErlNifEnv *env, vm_term module, vm_term name,
                               vm_term term, void *call_data)
{
    struct vm_resource *r;
    ErlNifResourceType *type;

    vm__slice_check(env, __func__);
    if (!vm__is(term, T_MAGIC) || !IS_ATOM(module) || !IS_ATOM(name))
        return 1;
    r = of(((struct vm_resource *)PTR(term)[1])->data);
    type = r->type;
    if (strcmp(type->module, vm__atom_name(module))
        || strcmp(type->name, vm__atom_name(name)) || !type->fn.dyncall)
        return 1;
    type->fn.dyncall(env, r->data, call_data);
    return 0;
}

/* -- libraries ----------------------------------------------------------- */

/* Commits or forgets the types that load or upgrade opened. */
static void end_of_load(vm_lib *lib, bool ok)
{
    pthread_mutex_lock(&lock);
    for (ErlNifResourceType *t = types; t; t = t->next) {
        if (!t->pending || t->new_owner != lib)
            continue;
        t->pending = false;
        if (ok) {
            t->owner = lib;
            t->fn = t->new_fn;
        }
    }
    pthread_mutex_unlock(&lock);
}

/* Unmaps a purged library of which no object is left. */
static void unmap_unused(vm_lib *lib)
{
    bool unmap;

    pthread_mutex_lock(&lock);
    unmap = lib->purged && !lib->unmapped;
    for (ErlNifResourceType *t = types; t && lib->purged; t = t->next)
        if (t->owner == lib && t->objects)
            unmap = false;
        else if (t->owner == lib)
            t->owner = NULL;
    lib->unmapped |= unmap;
    pthread_mutex_unlock(&lock);
    if (unmap && lib->on_unmap)
        lib->on_unmap(lib->on_unmap_arg);
}

struct load {
    vm_proc *p;
    vm_init_fn init;
    vm_term info;
    vm_lib *lib, *old;
    int error;
};

static void load(void *arg)
{
    struct load *l = arg;
    ErlNifEnv *env = vm__env_new(ENV_PROC, l->p, l->lib);

    l->lib->entry = l->init();
    snprintf(l->lib->name, sizeof l->lib->name, "%s", l->lib->entry->name);
    for (int i = 0; i < l->lib->entry->num_of_funcs; i++)
        if (l->lib->entry->funcs[i].flags > ERL_NIF_DIRTY_JOB_IO_BOUND)
            vm_misuse("Illegal flags field of %s",
                      l->lib->entry->funcs[i].name);
    env->loading = true;
    env->thread = vm__self;
    vm__self->slice = env;
    if (l->old)
        l->error = l->lib->entry->upgrade
            ? l->lib->entry->upgrade(env, &l->lib->priv, &l->old->priv,
                                     l->info)
            : 1;
    else if (l->lib->entry->load)
        l->error = l->lib->entry->load(env, &l->lib->priv, l->info);
    vm__self->slice = NULL;
    vm__env_free(env);
    end_of_load(l->lib, l->error == 0);
}

vm_lib *vm_load(vm_proc *p, vm_init_fn init, vm_term info, vm_lib *old,
                int *error)
{
    struct load l = {p, init, info, vm__malloc(sizeof(vm_lib)), old, 0};

    memset(l.lib, 0, sizeof *l.lib);
    vm_on(VM_NORMAL, load, &l);
    if (error)
        *error = l.error;
    if (l.error) {
        vm__free(l.lib);
        return NULL;
    }
    pthread_mutex_lock(&lock);
    l.lib->next = libs;
    libs = l.lib;
    pthread_mutex_unlock(&lock);
    return l.lib;
}

static void unload(void *arg)
{
    vm_lib *lib = arg;

    if (lib->entry->unload) {
        ErlNifEnv *env = vm__env_new(ENV_DTOR, NULL, lib);

        lib->entry->unload(env, lib->priv);
        vm__env_free(env);
    }
}

void vm_purge(vm_lib *lib)
{
    vm_proc *p;

    for (size_t i = 0; vm__proc_at(i, &p); i++) {
        if (p && p->lib == lib && vm_state(p) == VM_READY)
            vm_kill(p);
        else if (p && p->lib == lib && vm_state(p) == VM_RUNNING)
            vm_misuse("vm_purge while a process runs in the library");
    }
    vm_on(VM_NORMAL, unload, lib);
    pthread_mutex_lock(&lock);
    lib->purged = true;
    pthread_mutex_unlock(&lock);
    unmap_unused(lib);
}

bool vm_unmapped(const vm_lib *lib)
{
    bool unmapped;

    pthread_mutex_lock(&lock);
    unmapped = lib->unmapped;
    pthread_mutex_unlock(&lock);
    return unmapped;
}

void vm_on_unmap(vm_lib *lib, void (*fn)(void *), void *arg)
{
    lib->on_unmap = fn;
    lib->on_unmap_arg = arg;
}
