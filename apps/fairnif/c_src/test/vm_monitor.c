/*
 * vm_monitor.c - monitors of resource objects on processes.
 *
 * A monitor is in two lists, its process's and its object's, under one lock.
 * It does not keep its object alive: destruction takes it away, and when that
 * has begun it does not fire any more.  `down` is called without the lock, on
 * whatever thread ends the process.
 *
 * Order of locks: a process's, then that of monitors.
 */
#include <string.h>

#include "vm_int.h"

struct vm_monitor {
    uint64_t id;
    struct vm_resource *r;
    vm_proc *p;
    struct vm_monitor *next_of_p, **at_p;
    struct vm_monitor *next_of_r, **at_r;
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static uint64_t last_id;

static void insert(struct vm_monitor *m)
{
    m->at_p = &m->p->monitors;
    m->next_of_p = *m->at_p;
    if (m->next_of_p)
        m->next_of_p->at_p = &m->next_of_p;
    *m->at_p = m;
    m->at_r = &m->r->monitors;
    m->next_of_r = *m->at_r;
    if (m->next_of_r)
        m->next_of_r->at_r = &m->next_of_r;
    *m->at_r = m;
    COUNT(monitors, 1);
}

static void take_out(struct vm_monitor *m)
{
    *m->at_p = m->next_of_p;
    if (m->next_of_p)
        m->next_of_p->at_p = m->at_p;
    *m->at_r = m->next_of_r;
    if (m->next_of_r)
        m->next_of_r->at_r = m->at_r;
    COUNT(monitors, -1);
}

static void name(uint64_t id, ErlNifMonitor *monitor)
{
    memset(monitor, 0, sizeof *monitor);
    memcpy(monitor, &id, sizeof id);
}

int enif_monitor_process(ErlNifEnv *env, void *obj, const ErlNifPid *target,
                         ErlNifMonitor *monitor)
{
    struct vm_resource *r = vm__resource_of(obj);
    struct vm_monitor *m;
    vm_proc *p;

    if (env)
        vm__env_check(env, __func__);
    if (!vm__resource_calls(r)->down)
        return -1;
    p = vm__proc_locked(target->pid);
    if (!p)
        return 1;
    m = vm__malloc(sizeof *m);
    m->r = r;
    m->p = p;
    pthread_mutex_lock(&lock);
    m->id = ++last_id;
    if (monitor)
        name(m->id, monitor);
    insert(m);
    pthread_mutex_unlock(&lock);
    pthread_mutex_unlock(&p->lock);
    return 0;
}

int enif_demonitor_process(ErlNifEnv *env, void *obj,
                           const ErlNifMonitor *monitor)
{
    struct vm_resource *r = vm__resource_of(obj);
    struct vm_monitor *m;
    uint64_t id;

    if (env)
        vm__env_check(env, __func__);
    memcpy(&id, monitor, sizeof id);
    pthread_mutex_lock(&lock);
    for (m = r->monitors; m && m->id != id; m = m->next_of_r)
        ;
    if (m)
        take_out(m);
    pthread_mutex_unlock(&lock);
    vm__free(m);
    return m ? 0 : 1;
}

int enif_compare_monitors(const ErlNifMonitor *a, const ErlNifMonitor *b)
{
    return memcmp(a, b, sizeof *a);
}

void vm__monitors_forget(struct vm_resource *r)
{
    pthread_mutex_lock(&lock);
    while (r->monitors) {
        struct vm_monitor *m = r->monitors;

        take_out(m);
        vm__free(m);
    }
    pthread_mutex_unlock(&lock);
}

static void fire(struct vm_monitor *m)
{
    ErlNifEnv *env = vm__env_new(ENV_DTOR, NULL, vm__resource_owner(m->r));
    ErlNifPid pid = {m->p->pid};
    ErlNifMonitor monitor;

    name(m->id, &monitor);
    vm__resource_calls(m->r)->down(env, m->r->data, &pid, &monitor);
    vm__env_free(env);
}

/* The process has exited: no more monitors come. */
void vm__monitors_fire(vm_proc *p)
{
    for (;;) {
        struct vm_monitor *m;
        bool alive;

        pthread_mutex_lock(&lock);
        m = p->monitors;
        alive = m && vm__resource_keep_live(m->r);
        if (m)
            take_out(m);
        pthread_mutex_unlock(&lock);
        if (!m)
            return;
        if (alive) {
            fire(m);
            vm__resource_drop(m->r);
        }
        vm__free(m);
    }
}
