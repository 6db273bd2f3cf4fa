/*
 * type.c - resource types of module fairnif.
 */
#include "base/type.h"

#include "base/locks.h"

static void ignore_down(ErlNifEnv *env, void *obj, ErlNifPid *pid,
                                ErlNifMonitor *monitor)
{
    (void)env, (void)obj, (void)pid, (void)monitor;
}

/* A type of module fairnif, which the next load of that takes over while
 * objects of it are made.  It must have a `down`: the VM asks twice for that as
 * it makes an object, and during a takeover every type seems to have one.  If
 * the answers differ it writes a lock to where there is no memory for it. */
ErlNifResourceType *fair__open_type(ErlNifEnv *env, const char *name,
                                    ErlNifResourceTypeInit init)
{
    init.members = 4;
    if (!init.down)
        init.down = ignore_down;
    return enif_init_resource_type(env, name, &init,
                                   ERL_NIF_RT_CREATE | ERL_NIF_RT_TAKEOVER,
                                   NULL);
}

static struct kept_type {
    ErlNifResourceType **type;
    void *object;
} kept_types[3];

bool fair__open_kept_type(ErlNifEnv *env, const char *name,
                          ErlNifResourceTypeInit init,
                          ErlNifResourceType **type)
{
    struct kept_type *k = kept_types;

    while (k->type && k->type != type)
        k++;
    if (k->object)
        return true;
    k->type = type;
    *type = fair__open_type(env, name, init);
    return *type != NULL;
}

/* When the module is purged the VM frees those of its types that have no object,
 * and the next call that waits would make one of what is free.  So each has one
 * that is never released; it cannot be made before load has returned. */
bool fair__keep_types(void)
{
    static struct fair__mutex lock = FAIR__MUTEX(RANK_KEPT);
    bool all = true;

    fair__mutex_lock(&lock);
    for (unsigned i = 0; i < sizeof kept_types / sizeof *kept_types; i++) {
        struct kept_type *k = &kept_types[i];

        if (!k->object)
            k->object = enif_alloc_resource(*k->type, 1);
        all = all && k->object;
    }
    fair__mutex_unlock(&lock);
    return all;
}
