/*
 * vm_send.c - pids, names, messages and mailboxes.
 */
#include <string.h>
#include <time.h>

#include "vm_int.h"

/* -- pids ---------------------------------------------------------------- */

ErlNifPid *enif_self(ErlNifEnv *env, ErlNifPid *pid)
{
    vm__env_check(env, __func__);
    if (!env->proc)
        return NULL;
    pid->pid = env->proc->pid;
    return pid;
}

void enif_set_pid_undefined(ErlNifPid *pid)
{
    pid->pid = vm__atom("undefined", 9);
}

int enif_is_pid_undefined(const ErlNifPid *pid)
{
    return pid->pid == vm__atom("undefined", 9);
}

int enif_get_local_pid(ErlNifEnv *env, vm_term term, ErlNifPid *pid)
{
    vm__env_check(env, __func__);
    if (!IS_PID(term))
        return 0;
    pid->pid = term;
    return 1;
}

int enif_whereis_pid(ErlNifEnv *env, vm_term name, ErlNifPid *pid)
{
    vm_proc *p;

    if (env)
        vm__env_check(env, __func__);
    for (size_t i = 0; vm__proc_at(i, &p); i++) {
        if (p && p->name == name) {
            pid->pid = p->pid;
            return 1;
        }
    }
    return 0;
}

void vm_register(vm_proc *p, const char *name)
{
    p->name = vm__atom(name, strlen(name));
}

/* There are no ports here, and so no driver to ask. */
int enif_port_command(ErlNifEnv *env, const ErlNifPort *port,
                      ErlNifEnv *msg_env, vm_term message)
{
    (void)env, (void)port, (void)msg_env, (void)message;
    return 1;
}

int enif_get_local_port(ErlNifEnv *env, vm_term term, ErlNifPort *port)
{
    vm__env_check(env, __func__);
    (void)term, (void)port;
    return 0;
}

size_t enif_binary_to_term(ErlNifEnv *env, const unsigned char *data,
                           size_t size, vm_term *term, unsigned options)
{
    (void)env, (void)data, (void)size, (void)term, (void)options;
    vm_misuse("enif_binary_to_term: no ports, and so no answers of theirs");
}

/* -- messages ------------------------------------------------------------ */

struct vm_message *vm__message(vm_term term)
{
    struct vm_message *m = vm__malloc(sizeof *m);

    memset(m, 0, sizeof *m);
    m->term = vm__copy(&m->heap, term);
    return m;
}

void vm__message_free(struct vm_message *m)
{
    vm__heap_clear(&m->heap);
    vm__free(m);
}

bool vm__deliver(vm_term pid, struct vm_message *m)
{
    vm_proc *p = vm__proc_locked(pid);

    if (!p) {
        vm__message_free(m);
        return false;
    }
    *p->last_message = m;
    p->last_message = &m->next;
    pthread_cond_broadcast(&p->cond);
    pthread_mutex_unlock(&p->lock);
    return true;
}

/* With msg_env the message is taken from there, and that is cleared. */
int enif_send(ErlNifEnv *env, const ErlNifPid *to, ErlNifEnv *msg_env,
              vm_term msg)
{
    if (env)
        vm__env_check(env, __func__);
    else if (vm__self && vm__self->slice)
        vm_misuse("enif_send without environment from inside a NIF");
    if (msg_env)
        vm__owned(msg_env, msg, __func__);
    else if (env)
        vm__owned(env, msg, __func__);
    if (!vm__deliver(to->pid, vm__message(msg)))
        return 0;
    if (msg_env)
        enif_clear_env(msg_env);
    return 1;
}

/* -- mailboxes ----------------------------------------------------------- */

static bool has_element(const struct vm_message *m, size_t n, vm_term term)
{
    return vm__is(m->term, T_TUPLE) && HSIZE(PTR(m->term)[0]) >= n
        && vm__same(PTR(m->term)[n], term);
}

static bool matches(const vm_proc *p, const struct vm_message *m)
{
    vm_term tag = p->await.regs[1];

    if (p->await.at == A_ANY)
        return true;
    if (p->await.at != A_TAGGED)
        return has_element(m, 1, tag);
    return vm__same(m->term, tag) || has_element(m, 1, tag)
        || (vm__is(tag, T_REF) && has_element(m, 2, tag));
}

bool vm__has_message(const vm_proc *p)
{
    for (const struct vm_message *m = p->messages; m; m = m->next)
        if (matches(p, m))
            return true;
    return false;
}

struct vm_message *vm__take_message(vm_proc *p)
{
    for (struct vm_message **at = &p->messages; *at; at = &(*at)->next) {
        struct vm_message *m = *at;

        if (!matches(p, m))
            continue;
        *at = m->next;
        if (!m->next)
            p->last_message = at;
        m->next = NULL;
        return m;
    }
    return NULL;
}

/* By a look now and then as well: the condition's clock is another. */
void vm__wait_until(vm_proc *p, uint64_t then)
{
    enum { LONGEST = 50 * 1000 * 1000 };
    uint64_t now = vm__real_now();
    struct timespec ts;

    then = then <= now ? 0 : then - now < LONGEST ? then - now : LONGEST;
    timespec_get(&ts, TIME_UTC);
    then += (uint64_t)ts.tv_nsec;
    ts.tv_sec += (time_t)(then / 1000000000);
    ts.tv_nsec = (long)(then % 1000000000);
    pthread_cond_timedwait(&p->cond, &p->lock, &ts);
}

int vm_messages(vm_proc *p)
{
    int n = 0;

    pthread_mutex_lock(&p->lock);
    for (struct vm_message *m = p->messages; m; m = m->next)
        n++;
    pthread_mutex_unlock(&p->lock);
    return n;
}

const char *vm_message(vm_proc *p, int n, char *buf, size_t size)
{
    const char *text = "";

    pthread_mutex_lock(&p->lock);
    for (struct vm_message *m = p->messages; m; m = m->next)
        if (n-- == 0)
            text = vm_print(m->term, buf, size);
    pthread_mutex_unlock(&p->lock);
    return text;
}
