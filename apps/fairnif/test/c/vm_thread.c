/*
 * vm_thread.c - threads that a library makes, and the VM's locks.
 *
 * Nothing of the VM's runs on such threads: their type is 0, they have no
 * process, and environments of processes are not theirs to use.  One that is
 * never joined is counted; one that a normal scheduler starts ends the program,
 * unless there is no other way.  Mutexes belong to threads: one that another thread
 * unlocks ends the program.
 */
#include "vm_int.h"

struct ErlDrvTid_ {
    pthread_t id;
};

ErlNifThreadOpts *enif_thread_opts_create(char *name)
{
    ErlNifThreadOpts *opts = vm__malloc(sizeof *opts);

    (void)name;
    opts->suggested_stack_size = -1;
    return opts;
}

void enif_thread_opts_destroy(ErlNifThreadOpts *opts)
{
    vm__free(opts);
}

int enif_thread_create(char *name, ErlNifTid *tid, void *(*fn)(void *),
                       void *arg, ErlNifThreadOpts *opts)
{
    ErlNifTid t = vm__malloc(sizeof *t);
    pthread_attr_t attr;
    int error;

    if (!vm_options.without_pool && vm__self && vm__self->slice
        && vm__self->kind == VM_NORMAL)
        vm_misuse("a scheduler waits until %s has started", name);
    if (vm_options.before_thread)
        vm_options.before_thread(name);
    pthread_attr_init(&attr);
    *tid = t;
    if (opts && opts->suggested_stack_size > 0)
        pthread_attr_setstacksize(&attr, (size_t)opts->suggested_stack_size
                                  * 1024 * sizeof(void *));
    error = pthread_create(&t->id, &attr, fn, arg);
    pthread_attr_destroy(&attr);
    if (error)
        vm__free(t);
    else
        COUNT(threads, 1);
    return error;
}

int enif_thread_join(ErlNifTid t, void **answer)
{
    int error = pthread_join(t->id, answer);

    if (!error) {
        vm__free(t);
        COUNT(threads, -1);
    }
    return error;
}

struct ErlDrvMutex_ {
    pthread_mutex_t lock;
    pthread_t owner;
    bool locked;
};

struct ErlDrvRWLock_ {
    pthread_rwlock_t lock;
};

ErlNifMutex *enif_mutex_create(char *name)
{
    ErlNifMutex *m = vm__malloc(sizeof *m);

    (void)name;
    pthread_mutex_init(&m->lock, NULL);
    m->locked = false;
    COUNT(mutexes, 1);
    return m;
}

void enif_mutex_destroy(ErlNifMutex *m)
{
    pthread_mutex_destroy(&m->lock);
    vm__free(m);
    COUNT(mutexes, -1);
}

void enif_mutex_lock(ErlNifMutex *m)
{
    pthread_mutex_lock(&m->lock);
    m->owner = pthread_self();
    m->locked = true;
}

int enif_mutex_trylock(ErlNifMutex *m)
{
    int error = pthread_mutex_trylock(&m->lock);

    if (!error) {
        m->owner = pthread_self();
        m->locked = true;
    }
    return error;
}

void enif_mutex_unlock(ErlNifMutex *m)
{
    if (!m->locked || !pthread_equal(m->owner, pthread_self()))
        vm_misuse("enif_mutex_unlock by a thread that does not hold it");
    m->locked = false;
    pthread_mutex_unlock(&m->lock);
}

ErlNifRWLock *enif_rwlock_create(char *name)
{
    ErlNifRWLock *l = vm__malloc(sizeof *l);

    (void)name;
    pthread_rwlock_init(&l->lock, NULL);
    COUNT(mutexes, 1);
    return l;
}

void enif_rwlock_destroy(ErlNifRWLock *l)
{
    pthread_rwlock_destroy(&l->lock);
    vm__free(l);
    COUNT(mutexes, -1);
}

int enif_rwlock_tryrlock(ErlNifRWLock *l)
{
    return pthread_rwlock_tryrdlock(&l->lock);
}

void enif_rwlock_runlock(ErlNifRWLock *l)
{
    pthread_rwlock_unlock(&l->lock);
}

int enif_rwlock_tryrwlock(ErlNifRWLock *l)
{
    return pthread_rwlock_trywrlock(&l->lock);
}

void enif_rwlock_rwunlock(ErlNifRWLock *l)
{
    pthread_rwlock_unlock(&l->lock);
}
