/*
 * library.c - how a port driver's library finds the runtime, and how long it
 * stays mapped.
 *
 * A driver gets no load_info.  So fairnif_driver:load/2 has erl_ddll load it,
 * opens the same file again, which gives the instance that the VM has, and
 * puts the table of functions into a struct that FAIR_DRIVER_INIT exports.
 *
 * The VM unloads a driver when its last port has closed, and knows nothing of
 * a callback that still runs on a thread.  So the handle from that second
 * opening is kept until the last port's `stop` has been called.  The author's
 * `finish` waits for that too; where the driver is loaded again before, the
 * instance continues as it is, with neither `finish` nor `init` called.
 *
 * Must never be done here: touch a library after its last reference is gone.
 */
#define _GNU_SOURCE
#include <dlfcn.h>

#include "library.h"

struct drv_loaded {
    struct fair__driver *driver;
    const struct fair__drv_ops *ops;
    void *handle;
    uint64_t refs;              /* the load's, until finish; each port's */
};

/* Over all of this file.  The author's `finish` is called with it held, so that
 * a driver that is loaded at that moment is initialised after it; nothing but
 * a load waits for it. */
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static uint64_t libraries;

uint64_t drv__libraries(void)
{
    uint64_t n;

    pthread_mutex_lock(&lock);
    n = libraries;
    pthread_mutex_unlock(&lock);
    return n;
}

void drv__loaded_ref(struct drv_loaded *l)
{
    pthread_mutex_lock(&lock);
    l->refs++;
    pthread_mutex_unlock(&lock);
}

void drv__loaded_unref(struct drv_loaded *l)
{
    void *handle = NULL;

    pthread_mutex_lock(&lock);
    if (--l->refs == 0) {
        if (l->driver->entry->finish)
            l->driver->entry->finish();
        l->driver->go_on = NULL;
        l->driver->loaded = NULL;
        handle = l->handle;
        enif_free(l);
        libraries--;
    }
    pthread_mutex_unlock(&lock);
    if (handle)
        dlclose(handle);
}

/* What the VM calls before the first port of a new load is opened.  1: the old
 * load has not come to its end, and continues. */
static int go_on(struct fair__driver *driver)
{
    struct drv_loaded *l;

    pthread_mutex_lock(&lock);
    l = driver->loaded;
    if (l) {
        l->refs++;
        driver->ops = l->ops;
        driver->go_on = NULL;
    }
    pthread_mutex_unlock(&lock);
    return l != NULL;
}

/* The VM is about to unload the driver: all its ports have closed. */
void drv__finish(struct fair__driver *driver)
{
    pthread_mutex_lock(&lock);
    driver->ops = NULL;
    driver->go_on = go_on;
    pthread_mutex_unlock(&lock);
    drv__loaded_unref(driver->loaded);
}

/* -- the hand-over --------------------------------------------------------- */

static ERL_NIF_TERM failed(ErlNifEnv *env, ERL_NIF_TERM reason)
{
    return enif_make_tuple2(env, enif_make_atom(env, "error"), reason);
}

static ERL_NIF_TERM version(ErlNifEnv *env, unsigned major, unsigned minor)
{
    return enif_make_tuple2(env, enif_make_uint(env, major),
                            enif_make_uint(env, minor));
}

static bool fits(const struct fair__driver *d)
{
    return d->abi_major == FAIR_DRV_ABI_MAJOR
        && d->abi_minor <= FAIR_DRV_ABI_MINOR
        && d->size <= sizeof *d
        && d->entry_size == sizeof(ErlDrvEntry)
        && d->vm_size <= sizeof d->vm
        && d->ops_size <= sizeof(struct fair__drv_ops);
}

/* With the lock held; false when out of memory.  The handle is used up. */
static bool hand_over(struct fair__driver *driver, void *handle,
                      const struct fair__drv_ops *ops)
{
    struct drv_loaded *l;

    if (driver->ops) {
        dlclose(handle);
        return true;
    }
    if (!(l = enif_alloc(sizeof *l))) {
        dlclose(handle);
        return false;
    }
    *l = (struct drv_loaded){driver, ops, handle, 1};
    libraries++;
    driver->loaded = l;
    driver->ops = ops;
    return true;
}

/* It does not raise: docs/internals/nif.md says what comes of a dirty NIF
 * that does so just after load_nif. */
ERL_NIF_TERM drv__hand_over(ErlNifEnv *env, ERL_NIF_TERM path_term,
                            const struct fair__drv_ops *ops)
{
    struct fair__driver *(*find)(void), *driver;
    ErlNifBinary path;
    char name[4096];
    void *handle;
    bool done;

    if (!enif_inspect_binary(env, path_term, &path)
        || path.size >= sizeof name)
        return failed(env, enif_make_atom(env, "badarg"));
    memcpy(name, path.data, path.size);
    name[path.size] = '\0';
    handle = dlopen(name, RTLD_NOW | RTLD_NOLOAD);
    if (!handle)
        return failed(env, enif_make_atom(env, "not_loaded"));
    *(void **)&find = dlsym(handle, "fairnif_driver");
    if (!find) {
        dlclose(handle);
        return failed(env, enif_make_atom(env, "no_fair_driver"));
    }
    driver = find();
    if (!fits(driver)) {
        ERL_NIF_TERM theirs = version(env, driver->abi_major,
                                      driver->abi_minor);

        dlclose(handle);
        return failed(env, enif_make_tuple3(
            env, enif_make_atom(env, "interface"), theirs,
            version(env, FAIR_DRV_ABI_MAJOR, FAIR_DRV_ABI_MINOR)));
    }
    pthread_mutex_lock(&lock);
    done = hand_over(driver, handle, ops);
    pthread_mutex_unlock(&lock);
    return done ? enif_make_atom(env, "ok")
        : failed(env, enif_make_atom(env, "enomem"));
}
