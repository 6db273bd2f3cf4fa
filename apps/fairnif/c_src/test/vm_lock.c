/*
 * vm_lock.c - the VM's mutexes, conditions and read-write locks.  Mutexes
 * belong to threads: one that another thread unlocks ends the program.
 */
#include "vm_int.h"

struct ErlDrvMutex_ {
    pthread_mutex_t lock;
    pthread_t owner;
    bool locked;
};

struct ErlDrvCond_ {
    pthread_cond_t cond;
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

ErlNifCond *enif_cond_create(char *name)
{
    ErlNifCond *c = vm__malloc(sizeof *c);

    (void)name;
    pthread_cond_init(&c->cond, NULL);
    COUNT(mutexes, 1);
    return c;
}

void enif_cond_destroy(ErlNifCond *c)
{
    pthread_cond_destroy(&c->cond);
    vm__free(c);
    COUNT(mutexes, -1);
}

void enif_cond_signal(ErlNifCond *c)
{
    pthread_cond_signal(&c->cond);
}

void enif_cond_broadcast(ErlNifCond *c)
{
    pthread_cond_broadcast(&c->cond);
}

void enif_cond_wait(ErlNifCond *c, ErlNifMutex *m)
{
    if (!m->locked || !pthread_equal(m->owner, pthread_self()))
        vm_misuse("enif_cond_wait by a thread that does not hold the mutex");
    m->locked = false;
    pthread_cond_wait(&c->cond, &m->lock);
    m->owner = pthread_self();
    m->locked = true;
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

void enif_rwlock_rlock(ErlNifRWLock *l)
{
    pthread_rwlock_rdlock(&l->lock);
}

int enif_rwlock_tryrlock(ErlNifRWLock *l)
{
    return pthread_rwlock_tryrdlock(&l->lock);
}

void enif_rwlock_runlock(ErlNifRWLock *l)
{
    pthread_rwlock_unlock(&l->lock);
}

void enif_rwlock_rwlock(ErlNifRWLock *l)
{
    pthread_rwlock_wrlock(&l->lock);
}

int enif_rwlock_tryrwlock(ErlNifRWLock *l)
{
    return pthread_rwlock_trywrlock(&l->lock);
}

void enif_rwlock_rwunlock(ErlNifRWLock *l)
{
    pthread_rwlock_unlock(&l->lock);
}
