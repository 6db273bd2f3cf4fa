/*
 * type.c - resource types of module fairnif.
 */
#include "base/type.h"

static void nobody_is_monitored(ErlNifEnv *env, void *obj, ErlNifPid *pid,
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
        init.down = nobody_is_monitored;
    return enif_init_resource_type(env, name, &init,
                                   ERL_NIF_RT_CREATE | ERL_NIF_RT_TAKEOVER,
                                   NULL);
}
