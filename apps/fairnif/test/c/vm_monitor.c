/*
 * vm_monitor.c - monitors of resource objects on processes, in one list.
 *
 * A monitor does not keep its object alive: destruction takes it away, and when
 * that has begun it does not fire any more.  `down` is called without the lock,
 * on whatever thread ends the process.
 *
 * Order of locks: a process's, then that of monitors.
 */
#include <string.h>

#include "vm_int.h"

struct vm_monitor {
    struct vm_resource *r;
    vm_proc *p;
    struct vm_monitor *next;
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct vm_monitor *all;

int enif_monitor_process(ErlNifEnv *env, void *obj, const ErlNifPid *target,
                         ErlNifMonitor *monitor)
{
    struct vm_monitor *m;
    vm_proc *p;

    if (env)                    /* there is none on a thread of the author's */
        vm__env_check(env, __func__);
    p = vm__proc_locked(target->pid);
    if (!p)
        return 1;
    m = vm__malloc(sizeof *m);
    memset(monitor, 0, sizeof *monitor);
    memcpy(monitor, &m, sizeof m);
    pthread_mutex_lock(&lock);
    *m = (struct vm_monitor){vm__resource_of(obj), p, all};
    all = m;
    COUNT(monitors, 1);
    pthread_mutex_unlock(&lock);
    pthread_mutex_unlock(&p->lock);
    return 0;
}

/* The first on that process, or of that object, taken out; the lock held. */
static struct vm_monitor *take(const vm_proc *p, const struct vm_resource *r)
{
    for (struct vm_monitor **at = &all; *at; at = &(*at)->next) {
        struct vm_monitor *m = *at;

        if (m->p != p && m->r != r)
            continue;
        *at = m->next;
        COUNT(monitors, -1);
        return m;
    }
    return NULL;
}

void vm__monitors_forget(struct vm_resource *r)
{
    struct vm_monitor *m;

    pthread_mutex_lock(&lock);
    while ((m = take(NULL, r)))
        vm__free(m);
    pthread_mutex_unlock(&lock);
}

static void fire(const struct vm_monitor *m)
{
    ErlNifEnv *env = vm__env_new(ENV_DTOR, NULL, vm__resource_owner(m->r));
    ErlNifPid pid = {m->p->pid};
    ErlNifMonitor monitor;

    memset(&monitor, 0, sizeof monitor);
    memcpy(&monitor, &m, sizeof m);
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
        m = take(p, NULL);
        alive = m && vm__resource_keep_live(m->r);
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
