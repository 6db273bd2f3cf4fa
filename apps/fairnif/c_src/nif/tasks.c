/*
 * tasks.c - makes the result of fairnif:tasks/0.
 */
#include "nif/info.h"

#include <stdlib.h>

#include "base/os.h"
#include "life/listed.h"
#include "wait/park.h"
#include "thread/thread.h"

static const char *const where_names[] = {
    [W_NORMAL] = "normal", [W_DIRTY_CPU] = "dirty_cpu",
    [W_DIRTY_IO] = "dirty_io", [W_THREAD] = "thread", [W_OTHER] = "other"
};

enum {
    SEEN_RUNNING = 4096,        /* as many as scheduler threads, and more */
    TASKS_IN_PLACE = 64         /* 1 us each */
};

struct seen {
    size_t count;
    ERL_NIF_TERM keys[SEEN_RUNNING];
};

struct listing {
    ErlNifEnv *env;
    ERL_NIF_TERM list;
    uint64_t now;
};

static void list_task(struct listing *l, const struct fair__func *f,
                      const char *state, uint64_t since, uint64_t yields,
                      ERL_NIF_TERM owner, ERL_NIF_TERM where)
{
    ERL_NIF_TERM map = enif_make_new_map(l->env);

    fair__put(l->env, &map, "function", fair__function_name(l->env, f));
    fair__put(l->env, &map, "state", enif_make_atom(l->env, state));
    fair__put_number(l->env, &map, "age_ns", l->now > since ? l->now - since : 0);
    fair__put_number(l->env, &map, "yields", yields);
    fair__put(l->env, &map, "owner", owner);
    fair__put(l->env, &map, "where", where);
    l->list = enif_make_list_cell(l->env, map, l->list);
}

/* By what a task is known: its owner, or, without one, when it began. */
static ERL_NIF_TERM key_of(const ErlNifPid *owner, uint64_t since)
{
    return enif_is_pid_undefined(owner) ? (ERL_NIF_TERM)since : owner->pid;
}

struct running {
    struct fair__func *func;
    uint64_t since, yields;
    ErlNifPid owner;
};

static bool is_listed(const struct seen *seen, ERL_NIF_TERM key)
{
    for (size_t i = 0; i < seen->count; i++)
        if (seen->keys[i] == key)
            return true;
    return false;
}

static bool is_suspended(const struct fair__seen_task *suspended, size_t count,
                         ERL_NIF_TERM pid)
{
    for (size_t i = 0; i < count; i++)
        if ((suspended[i].state == T_SUSPENDED || suspended[i].state == T_QUEUED)
            && suspended[i].owner.pid == pid)
            return true;
    return false;
}

/* Whatever runs and was not met yet, neither running nor suspended. */
static void list_running(struct listing *l, struct seen *seen,
                         const struct fair__seen_task *suspended, size_t count)
{
    for (struct fair__thread *th = fair__threads(); th; th = th->next) {
        struct running r;

        if (!fair__slot_read(th, &r.func, &r.since, &r.yields,
                             &r.owner.pid)
            || is_listed(seen, key_of(&r.owner, r.since))
            || is_suspended(suspended, count, r.owner.pid))
            continue;
        if (seen->count < SEEN_RUNNING)
            seen->keys[seen->count++] = key_of(&r.owner, r.since);
        list_task(l, r.func, "running", r.since, r.yields,
                  enif_make_pid(l->env, &r.owner),
                  enif_make_tuple2(l->env, enif_make_atom(l->env, where_names[th->where]),
                                   enif_make_uint(l->env, th->number)));
    }
}

static void list_suspended(struct listing *l, const struct fair__seen_task *t)
{
    const char *waits_for = fair__waits_name(t->state);
    bool cleans_up = t->state == T_CLEANUP;
    bool queued = t->state == T_QUEUED
        || (t->state == T_RUNNING && t->target != W_NORMAL);

    list_task(l, t->func,
              cleans_up ? "cleaning_up" : waits_for ? "waiting"
              : queued ? "queued" : "suspended",
              t->since_ns, t->yields, enif_make_pid(l->env, &t->owner),
              enif_make_atom(l->env, waits_for ? waits_for
                   : where_names[t->target]));
}

/* One whose function runs on a thread was met there. */
static bool waits(const struct fair__seen_task *t)
{
    return fair__waits_name(t->state) && t->state != T_OFFLOADED;
}

/* tasks() -> [map()]
 * Tasks run while they are listed.  The threads are looked at before and
 * after the suspended ones, so that none is missed, and a process, which has
 * one task at most that does not wait, is shown once.  (A callback of a fair
 * resource has no process; its owner is shown as `undefined`.)  One that was running
 * when the suspended ones were copied, and is not by now, has been suspended
 * since. */
static ERL_NIF_TERM list_all(ErlNifEnv *env, int argc,
                             const ERL_NIF_TERM argv[])
{
    struct listing l = {env, enif_make_list(env, 0), fair__now()};
    struct seen seen = {.count = 0};
    struct fair__seen_task *suspended;
    size_t count;

    (void)argc, (void)argv;
    list_running(&l, &seen, NULL, 0);
    suspended = fair__suspended(&count);
    list_running(&l, &seen, suspended, count);
    for (size_t i = 0; i < count; i++)
        if (waits(&suspended[i])
            || !is_listed(&seen, key_of(&suspended[i].owner,
                                        suspended[i].since_ns)))
            list_suspended(&l, &suspended[i]);
    free(suspended);
    return l.list;
}

/* outlived() -> [pid()]
 * Native processes whose code would have been purged, were it Erlang's. */
static ERL_NIF_TERM list_outlived(ErlNifEnv *env, int argc,
                                  const ERL_NIF_TERM argv[])
{
    ERL_NIF_TERM list = enif_make_list(env, 0);
    size_t count;
    struct fair__seen_task *suspended = fair__suspended(&count);

    (void)argc, (void)argv;
    for (size_t i = 0; i < count; i++)
        if (suspended[i].is_outlived)
            list = enif_make_list_cell(env, enif_make_pid(env,
                                                          &suspended[i].owner),
                                       list);
    free(suspended);
    return list;
}

/* Few tasks are gone through in place: then this answers also while all dirty
 * schedulers are busy, which is when an operator asks, and loading a library,
 * which asks for those that are outlived, never waits. */
static ERL_NIF_TERM in_place_or_dirty(ErlNifEnv *env, const char *name,
                                      ERL_NIF_TERM (*list)(
                                          ErlNifEnv *env, int argc,
                                          const ERL_NIF_TERM argv[]),
                                      int argc, const ERL_NIF_TERM argv[])
{
    if (fair__suspended_count() <= TASKS_IN_PLACE)
        return list(env, argc, argv);
    return enif_schedule_nif(env, name, ERL_NIF_DIRTY_JOB_IO_BOUND, list, argc,
                             argv);
}

ERL_NIF_TERM fair__tasks(ErlNifEnv *env, int argc, const ERL_NIF_TERM argv[])
{
    return in_place_or_dirty(env, "nif_tasks", list_all, argc, argv);
}

ERL_NIF_TERM fair__outlived(ErlNifEnv *env, int argc, const ERL_NIF_TERM argv[])
{
    return in_place_or_dirty(env, "nif_outlived", list_outlived, argc, argv);
}
