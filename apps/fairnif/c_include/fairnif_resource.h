/*
 * fairnif_resource.h - resource objects that clean up fairly.  Part of
 * fairnif.h, which includes it.
 */
#ifndef FAIRNIF_RESOURCE_H
#define FAIRNIF_RESOURCE_H

/* -- Fair resources ---------------------------------------------------------
 *
 * The VM destroys a resource object where its last reference is dropped: mostly
 * on a normal scheduler, after a garbage collection, in one go.  A destructor
 * that closes a file, waits for a lock or frees a million nodes blocks that
 * scheduler.  A fair resource cleans up in a task of its own:
 *
 *     static fair_resource_type *connections;
 *
 *     static void close_connection(fair_task *t, void *obj)
 *     {
 *         struct connection *c = obj;
 *
 *         fair_mutex_lock(t, &c->lock);
 *         sync_and_close(c);
 *     }
 *
 *     static int load(ErlNifEnv *env, void **priv, ERL_NIF_TERM info)
 *     {
 *         const fair_resource_options options = {
 *             .name = "connection", .cleanup = close_connection
 *         };
 *
 *         fair_resource_type *opened = fair_resource_open(env, &options);
 *
 *         if (!opened)
 *             return FAIR_E_NOMEM;    // if this load is refused, an older one
 *         connections = opened;       // of this file keeps its own
 *         return 0;
 *     }
 *
 * `cleanup`, `down` and `stop` are bodies: they tick, lock, wait, and call
 * fair_offload.  They belong to no process:
 *
 *   - Where: in place, on the thread where the VM calls them, if they are known
 *     to be short (under half a slice) and such calls have not used up a slice
 *     in this millisecond.  All others, and those that pause in place, run on a
 *     thread of the runtime's pool.  There fair_tick yields to other work of
 *     the pool, fair_wait occupies the thread, fair_mutex_lock does not.
 *   - When: those of one object run one after the other, in the order in which
 *     they came; those of all objects of a type up to `max_concurrent` at a
 *     time.
 *   - There is no caller: no arguments; fair_caller gives the undefined pid,
 *     enif_self NULL, fair_adopt_fd 0.  An exception of the body is reported
 *     and counted in `rule_violations`.
 *   - Only the end of the node stops them.  The author's library stays mapped
 *     until they have returned, even when it is purged.  An upgraded library
 *     takes over its predecessor's objects, with its own callbacks: a type
 *     whose layout has changed needs another name.  If the layout has only
 *     grown, and `size` says so, older objects are refused: for
 *     fair_resource_peek and fair_resource_get they are not of the type, and no
 *     callback gets them.  Their memory is freed; what they own is not.
 *   - If out of memory, they wait until there is some.
 *
 * Releasing the last reference may run `cleanup` at once, as with any
 * destructor: do not hold a lock then that `cleanup` takes.
 *
 * The VM sees an object of eight bytes: a large one does not trigger its
 * owner's garbage collection earlier, as a large plain object does.
 *
 * `resources` of fairnif:info/0 lists the types, and how many objects were
 * refused.  Their counters are those of a function {Module, 'NAME cleanup',
 * 1}. */

/* An object is the author's memory, aligned to 16 bytes.  It exists until
 * `cleanup` has returned.  enif_monitor_process, enif_select and the like need
 * fair_resource_vm(obj) instead. */
struct fair_resource_options {
    const char *name;           /* of the type; required */
    /* The last reference is gone. */
    void (*cleanup)(fair_task *t, void *obj);
    /* A process that it monitored has died. */
    void (*down)(fair_task *t, void *obj, const ErlNifPid *pid,
                 const ErlNifMonitor *monitor);
    /* Its descriptor is not selected any more: close it now. */
    void (*stop)(fair_task *t, void *obj, ErlNifEvent event,
                 int is_direct_call);
    unsigned max_concurrent;    /* callbacks of the type that may be under way
                                   at once; default: the number of dirty CPU
                                   schedulers online */
    unsigned cleans_up;         /* 1: as FAIR_CLEANUP, for errors */
    size_t stack_size;          /* as in fair_options */
    unsigned slice_us;
    size_t size;                /* bytes of an object that the library uses:
                                   smaller ones are refused.  Default: 0 */
};

/* Opens the type, or takes it over.  Call it in load and upgrade, with their
 * environment.  Returns NULL, and says why on standard error: no memory, no
 * name, one that this load has opened already, or a size out of bounds. */
static inline fair_resource_type *fair_resource_open(
    ErlNifEnv *env, const fair_resource_options *options)
{
    return fair__lib_ops ? fair__lib_ops->resource_open(env, options, sizeof *options)
        : NULL;
}

/* A new object of `size` bytes, zeroed, with one reference, which the caller
 * must release.  NULL if out of memory.  Any thread may call it. */
static inline void *fair_resource_new(fair_resource_type *type, size_t size)
{
    return fair__lib_ops->resource_new(type, size);
}

/* The VM's own object, for enif_monitor_process, enif_select and the like.  It
 * no longer exists in `cleanup`. */
static inline void *fair_resource_vm(void *obj)
{
    return ((struct fair__object_head *)obj)[-1].vm;
}

/* The term of an object, which refers to it. */
static inline ERL_NIF_TERM fair_resource_term(ErlNifEnv *env, void *obj)
{
    return enif_make_resource(env, fair_resource_vm(obj));
}

/* Adds a reference to an object. */
static inline void fair_resource_keep(void *obj)
{
    enif_keep_resource(fair_resource_vm(obj));
}

/* Releases a reference.  With the last one the object's clean-up begins. */
static inline void fair_resource_release(void *obj)
{
    enif_release_resource(fair_resource_vm(obj));
}

static inline int fair__of_size(fair_resource_type *type, void *obj)
{
    if (__builtin_expect(((struct fair__object_head *)obj)[-1].size
                         >= type->size, 1))
        return 1;
    __atomic_fetch_add(type->refused, 1, __ATOMIC_RELAXED);
    return 0;
}

/* The object of a term, in a plain NIF, without a reference.  Returns 0 if the
 * term is not of this type, or if its object is smaller than the options'
 * `size`. */
static inline int fair_resource_peek(ErlNifEnv *env, ERL_NIF_TERM term,
                                     fair_resource_type *type, void **obj)
{
    void *vm;

    if (!enif_get_resource(env, term, type->vm, &vm))
        return 0;
    *obj = *(void **)vm;
    return fair__of_size(type, *obj);
}

/* The same in a fair body, with a reference until the task ends, as
 * fair_get_resource. */
static inline int fair_resource_get(fair_task *t, ERL_NIF_TERM term,
                                    fair_resource_type *type, void **obj)
{
    void *vm;

    if (!fair_get_resource(t, term, type->vm, &vm))
        return 0;
    *obj = *(void **)vm;
    return fair__of_size(type, *obj);
}

#endif /* FAIRNIF_RESOURCE_H */
