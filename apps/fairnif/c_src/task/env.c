/*
 * env.c - what the environment of a task's slice cannot tell.
 *
 * A slice that follows a wait runs in a NIF of module fairnif, one of a
 * FAIR_THREADED call in an environment of no process.  fairnif.h sends the
 * functions of the VM that would answer for the wrong library there, or end the
 * node, through here.  On any thread, in bodies and in everything else that an
 * author's library does.
 */
#include "task/env.h"

#include "base/os.h"

struct fair__atoms fair__atoms;

void fair__atoms_make(ErlNifEnv *env)
{
    fair__atoms = (struct fair__atoms){
        .asks = enif_make_atom(env, "fairnif_asks"),
        .ok = enif_make_atom(env, "ok"),
        .pending = enif_make_atom(env, "fairnif_pending"),
        .sent = enif_make_atom(env, "sent"),
        .undefined = enif_make_atom(env, "undefined")
    };
}

/* The task of this thread, if that environment is its own and not one that the
 * VM made for a NIF of the author's. */
static __attribute__((noinline)) struct fair__task *task_in(ErlNifEnv *env)
{
    struct fair__task *t = fair__current_task();

    return t && t->pub.env == env && t->foreign ? t : NULL;
}

/* The VM has no environment to be asked: the task is apart, or its function
 * runs on a thread of the pool. */
static bool no_vm_env(const struct fair__task *t)
{
    return t->kind->apart || !t->pub.env;
}

bool fair__alive(const struct fair__task *t)
{
    return no_vm_env(t) ? !GET(t->wait.unwanted)
        : enif_is_current_process_alive(t->pub.env);
}

__attribute__((noinline)) fair_task *fair__current(void)
{
    struct fair__task *t = fair__current_task();

    return t && !t->away ? &t->pub : NULL;
}

void fair__caller(fair_task *pub, ErlNifPid *pid)
{
    *pid = fair__of(pub)->owner;
}

void *fair__env_priv_data(ErlNifEnv *env)
{
    struct fair__task *t = task_in(env);

    return t ? t->priv : enif_priv_data(env);
}

ErlNifPid *fair__env_self(ErlNifEnv *env, ErlNifPid *pid)
{
    struct fair__task *t = task_in(env);

    if (!t || !no_vm_env(t))
        return enif_self(env, pid);
    *pid = t->owner;
    return t->kind->has_caller ? pid : NULL;
}

int fair__env_is_alive(ErlNifEnv *env)
{
    struct fair__task *t = task_in(env);

    return t ? fair__alive(t) : enif_is_current_process_alive(env);
}

int fair__env_consume(ErlNifEnv *env, int percent)
{
    struct fair__task *t = task_in(env);

    return t && no_vm_env(t) ? 0 : enif_consume_timeslice(env, percent);
}

int fair__env_send(ErlNifEnv *env, const ErlNifPid *to, ErlNifEnv *msg_env,
                   ERL_NIF_TERM msg)
{
    struct fair__task *t = task_in(env);

    return enif_send(t ? t->vm_env : env, to, msg_env, msg);
}

/* enif_monotonic_time answers schedulers only, and a body that waits for a time
 * that never comes does so for ever.  So what the VM's clock, which it corrects,
 * is ahead of ours is noted whenever a call goes to the pool.  Between two such
 * moments they part by what the VM corrects: some millionths. */
static _Atomic int64_t vm_ahead_ns;

/* On a scheduler; costs 0.1 us. */
void fair__env_note_time(void)
{
    SET(vm_ahead_ns, enif_monotonic_time(ERL_NIF_NSEC) - (int64_t)fair__now());
}

/* On a thread of the pool. */
ErlNifTime fair__env_monotonic_time(ErlNifTimeUnit unit)
{
    static const int64_t ns[] = {
        [ERL_NIF_SEC] = 1000000000, [ERL_NIF_MSEC] = 1000000,
        [ERL_NIF_USEC] = 1000, [ERL_NIF_NSEC] = 1
    };
    int64_t now = (int64_t)fair__now() + GET(vm_ahead_ns);

    if ((unsigned)unit >= sizeof ns / sizeof *ns)
        return ERL_NIF_TIME_ERROR;
    return now / ns[unit] - (now % ns[unit] < 0);   /* it may be negative */
}

/* The reason of an exception of the runtime's: an atom where the node has too
 * little of something, {fairnif, {Error, {Module, Name, Arity}}} where the body
 * did what it must not. */
ERL_NIF_TERM fair__error_term(const struct fair__task *t, ErlNifEnv *env)
{
    const struct fair__func *f = t->func;
    ERL_NIF_TERM error = enif_make_atom(env, t->error);

    if (strcmp(t->error, "overloaded") == 0 || strcmp(t->error, "enomem") == 0)
        return error;
    return enif_make_tuple2(
        env, enif_make_atom(env, "fairnif"),
        enif_make_tuple2(env, error,
                         enif_make_tuple3(
                             env, enif_make_atom(env, f->module),
                             enif_make_atom(env, f->name),
                             enif_make_uint(env, f->arity))));
}
