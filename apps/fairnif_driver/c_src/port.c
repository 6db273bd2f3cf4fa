/*
 * port.c - a port's record, from its begin to its end, and the registry of all
 * of them.
 *
 * The VM forgets a port when it closes.  The record stays until the author's
 * last callback has returned; only then is his `stop` called.
 */
#include "port.h"

enum { BUCKETS = 4096 };

static pthread_mutex_t registry_lock = PTHREAD_MUTEX_INITIALIZER;
static struct drv_port *registry[BUCKETS];
static uint64_t ports;

/* -- which callback a thread is in ----------------------------------------- */

static _Thread_local struct drv_here here_now;

/* Not inlined: a job that pauses continues on another thread, and the compiler
 * may keep a thread-local's address. */
__attribute__((noinline)) struct drv_here drv__here(void)
{
    return here_now;
}

__attribute__((noinline)) struct drv_here drv__here_set(struct drv_here here)
{
    struct drv_here before = here_now;

    here_now = here;
    return before;
}

/* -- the record ------------------------------------------------------------ */

struct drv_port *drv__port_new(struct fair__driver *driver,
                               const struct fair__drv_ops *ops,
                               ErlDrvPort port)
{
    struct drv_port *p = enif_alloc(sizeof *p);

    if (!p)
        return NULL;
    memset(p, 0, sizeof *p);
    p->pub.ops = ops;
    p->pub.port = port;
    p->driver = driver;
    p->loaded = driver->loaded;
    p->refs = 1;
    p->wake[0] = p->wake[1] = -1;
    pthread_mutex_init(&p->lock, NULL);
    drv__loaded_ref(p->loaded);
    return p;
}

void drv__port_unref(struct drv_port *p)
{
    if (atomic_fetch_sub(&p->refs, 1) > 1)
        return;
    pthread_mutex_destroy(&p->lock);
    enif_free(p);
}

void drv__port_gone(struct drv_port *p)
{
    struct drv_loaded *loaded = p->loaded;

    drv__port_unref(p);
    drv__loaded_unref(loaded);
}

void drv__last_stop(struct drv_port *p)
{
    struct drv_here before = drv__here_set((struct drv_here){p, NULL, true});

    if (p->driver->entry->stop)
        p->driver->entry->stop(p->pub.data);
    drv__here_set(before);
    drv__port_gone(p);
}

/* -- the registry ---------------------------------------------------------- */

static struct drv_port **bucket_of(ErlDrvTermData term)
{
    return &registry[((uint64_t)term * 0x9E3779B97F4A7C15u >> 40) % BUCKETS];
}

void drv__register(struct drv_port *p)
{
    struct drv_port **bucket = bucket_of(p->term);

    pthread_mutex_lock(&registry_lock);
    p->hash_next = *bucket;
    *bucket = p;
    ports++;
    pthread_mutex_unlock(&registry_lock);
}

void drv__unregister(struct drv_port *p)
{
    struct drv_port **at;

    pthread_mutex_lock(&registry_lock);
    for (at = bucket_of(p->term); *at; at = &(*at)->hash_next) {
        if (*at == p) {
            *at = p->hash_next;
            ports--;
            break;
        }
    }
    pthread_mutex_unlock(&registry_lock);
}

struct drv_port *drv__lookup(ErlNifEnv *env, ERL_NIF_TERM term)
{
    struct drv_port *p;
    ErlNifPort port;

    if (!enif_get_local_port(env, term, &port))
        return NULL;
    pthread_mutex_lock(&registry_lock);
    for (p = *bucket_of(port.port_id); p; p = p->hash_next)
        if (p->term == port.port_id)
            break;
    if (p)
        atomic_fetch_add(&p->refs, 1);
    pthread_mutex_unlock(&registry_lock);
    return p;
}

uint64_t drv__ports(void)
{
    uint64_t n;

    pthread_mutex_lock(&registry_lock);
    n = ports;
    pthread_mutex_unlock(&registry_lock);
    return n;
}
