/*
 * fairnif_resource.h - resource objects that clean up fairly.  Part of
 * fairnif.h, which includes it.
 */
#ifndef FAIRNIF_RESOURCE_H
#define FAIRNIF_RESOURCE_H

/* -- Fair resources ---------------------------------------------------------
 *
 * The VM destroys a resource object where its last reference goes: mostly on a
 * normal scheduler, after a garbage collection, in one go.  Whoever closes a file
 * there, waits for a lock or frees a million nodes, blocks that scheduler.  A
 * fair resource leaves it to a task of its own:
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
 *         connections = fair_resource_open(env, &options);
 *         return connections ? 0 : FAIR_E_NOMEM;
 *     }
 *
 * `cleanup`, `down` and `stop` are bodies: they tick, lock, wait, and call
 * fair_call.  They belong to no process:
 *
 *   - Where: at once and in place, on the thread where the VM calls, while they
 *     are learned to be short (under half a slice) and such calls have not used
 *     up a slice of this millisecond.  What pauses in place, and all else, goes
 *     to a thread of the runtime's pool.  There fair_tick yields to other work
 *     of the pool, fair_wait holds the thread, fair_mutex_lock does not.
 *   - When: those of one object one after the other, in the order in which they
 *     came; of all objects of a type `at_once` at a time.
 *   - There is no caller: no arguments, fair_caller gives the undefined pid,
 *     enif_self NULL, fair_make_fd 0.
 *     What a body raises nobody sees; it is reported and counted in `misuses`.
 *   - Nothing stops them but the end of the node.  The author's library stays
 *     mapped until they have returned, also when it is purged.  A library that
 *     is upgraded takes over the objects of its predecessor, with its own
 *     callbacks: what has changed its layout needs another name.  At halt the
 *     rest is left undone.
 *   - Where memory is out they wait until there is some.
 *
 * Who lets go of the last reference himself may find himself in `cleanup`, as in
 * any destructor: with none of the locks held that it takes.
 *
 * The VM takes an object for one of eight bytes: large ones do not make its owner's
 * next garbage collection come sooner, as large plain ones do.
 *
 * fairnif:info/0 has them under `resources`; their counters are those of a
 * function {Module, 'NAME cleanup', 1}. */

/* The object is the author's memory, aligned to 16 bytes.  It stays until
 * `cleanup` has returned.  It is not what enif_monitor_process, enif_select and
 * the like want: for these there is fair_resource_vm. */
struct fair_resource_options {
    const char *name;           /* of the type; required */
    /* It is not referred to any more. */
    void (*cleanup)(fair_task *t, void *obj);
    /* A process that it monitored has died. */
    void (*down)(fair_task *t, void *obj, const ErlNifPid *pid,
                 const ErlNifMonitor *monitor);
    /* Its descriptor is not selected any more: to be closed now. */
    void (*stop)(fair_task *t, void *obj, ErlNifEvent event,
                 int is_direct_call);
    unsigned at_once;           /* so many callbacks of the type may be under
                                   way; default: as dirty CPU schedulers are
                                   online */
    unsigned unwinds;           /* 1: as FAIR_UNWINDS, where one fails */
    size_t stack_size;          /* as in fair_options */
    unsigned slice_us;
};

/* Opens the type, or takes it over: in load and upgrade, with their
 * environment.  NULL, and a sentence on standard error: no memory, no name, or a size out of
 * bounds. */
static inline fair_resource_type *fair_resource_open(
    ErlNifEnv *env, const fair_resource_options *options)
{
    return fair__lib_ops ? fair__lib_ops->resource_open(env, options, sizeof *options)
        : NULL;
}

/* A new object of `size` bytes, zeroed, with one reference, which is the
 * caller's to let go of.  NULL when memory is out.  On any thread. */
static inline void *fair_resource_new(fair_resource_type *type, size_t size)
{
    return fair__lib_ops->resource_new(type, size);
}

/* What the VM has in the place of the object, for enif_monitor_process,
 * enif_select and the like.  Not in `cleanup`, nor after it: there is none. */
static inline void *fair_resource_vm(void *obj)
{
    return ((struct fair__object_head *)obj)[-1].vm;
}

/* The term of an object, which refers to it. */
static inline ERL_NIF_TERM fair_resource_term(ErlNifEnv *env, void *obj)
{
    return enif_make_resource(env, fair_resource_vm(obj));
}

/* One more reference to it, and one less. */
static inline void fair_resource_keep(void *obj)
{
    enif_keep_resource(fair_resource_vm(obj));
}

static inline void fair_resource_release(void *obj)
{
    enif_release_resource(fair_resource_vm(obj));
}

/* The object of a term, in a plain NIF: valid as long as that is referred to.
 * 0 when the term is none of this type. */
static inline int fair_resource_get(ErlNifEnv *env, ERL_NIF_TERM term,
                                    fair_resource_type *type, void **obj)
{
    void *vm;

    if (!enif_get_resource(env, term, type->vm, &vm))
        return 0;
    *obj = *(void **)vm;
    return 1;
}

/* The same in a fair body: it is kept until the task ends, as by
 * fair_get_resource. */
static inline int fair_resource_hold(fair_task *t, ERL_NIF_TERM term,
                                     fair_resource_type *type, void **obj)
{
    void *vm;

    if (!fair_get_resource(t, term, type->vm, &vm))
        return 0;
    *obj = *(void **)vm;
    return 1;
}

#endif /* FAIRNIF_RESOURCE_H */
