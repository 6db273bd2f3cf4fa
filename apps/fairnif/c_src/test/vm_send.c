/*
 * vm_send.c - pids, names and messages.
 */
#include <string.h>

#include "vm_int.h"

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

ErlNifPid *enif_self(ErlNifEnv *env, ErlNifPid *pid)
{
    vm__env_check(env, __func__);
    if (!env->proc)
        return NULL;
    pid->pid = PID(env->proc->index);
    return pid;
}

int enif_get_local_pid(ErlNifEnv *env, vm_term term, ErlNifPid *pid)
{
    vm__env_check(env, __func__);
    if (!IS_PID(term))
        return 0;
    pid->pid = term;
    return 1;
}

int enif_is_process_alive(ErlNifEnv *env, ErlNifPid *pid)
{
    vm_proc *p = vm__proc_nth(PID_INDEX(pid->pid));

    vm__env_check(env, __func__);
    return p && vm_state(p) != VM_DEAD;
}

int enif_whereis_pid(ErlNifEnv *env, vm_term name, ErlNifPid *pid)
{
    if (env)
        vm__env_check(env, __func__);
    for (size_t i = 0; i < vm__procs(); i++) {
        vm_proc *p = vm__proc_nth(i);

        if (p && p->name == name) {
            pid->pid = PID(i);
            return 1;
        }
    }
    return 0;
}

void vm_register(vm_proc *p, const char *name)
{
    p->name = vm__atom(name, strlen(name));
}

/* With msg_env the message is taken from there, and that is cleared. */
int enif_send(ErlNifEnv *env, const ErlNifPid *to, ErlNifEnv *msg_env,
              vm_term msg)
{
    vm_proc *p = vm__proc_nth(PID_INDEX(to->pid));
    struct vm_message *m;

    if (env)
        vm__env_check(env, __func__);
    else if (vm__self && vm__self->slice)
        vm_misuse("enif_send without environment from inside a NIF");
    if (msg_env)
        vm__owned(msg_env, msg, __func__);
    else if (env)
        vm__owned(env, msg, __func__);
    if (!p || vm_state(p) == VM_DEAD)
        return 0;
    m = vm__malloc(sizeof *m);
    memset(m, 0, sizeof *m);
    m->term = vm__copy(&m->heap, msg);
    pthread_mutex_lock(&lock);
    m->next = p->messages;
    p->messages = m;
    pthread_mutex_unlock(&lock);
    if (msg_env)
        enif_clear_env(msg_env);
    return 1;
}

int vm_messages(vm_proc *p)
{
    int n = 0;

    pthread_mutex_lock(&lock);
    for (struct vm_message *m = p->messages; m; m = m->next)
        n++;
    pthread_mutex_unlock(&lock);
    return n;
}

const char *vm_message(vm_proc *p, int n, char *buf, size_t size)
{
    struct vm_message *m = p->messages;

    for (n = vm_messages(p) - 1 - n; n > 0 && m; n--)
        m = m->next;
    return m ? vm_print(m->term, buf, size) : "";
}
