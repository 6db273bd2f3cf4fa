/*
 * fd.c - descriptors: their terms in Erlang, their users, and their closing.
 *
 * Two resource objects:
 *   - what fair_adopt_fd makes is a small one that Erlang's terms hold.  When
 *     it is garbage its destructor shuts the descriptor;
 *   - that is a struct fair__fd.  Once it was selected the VM keeps it until it
 *     is stopped, so no destructor of its own could do that.  It is shut when
 *     its term is garbage, when its owner dies (a monitor), or by
 *     fair_close_fd; and closed when no task uses it any more.
 * One that fair_wait duplicates for itself is only the second, without owner
 * and users: it is shut when the wait is over.
 *
 * Never called with a lock held: enif_select, whose stop callback closes the
 * descriptor in place or later, on any thread; and the release of an object.
 */
#include <errno.h>

#include "wait/fd.h"

#include "base/os.h"
#include "base/type.h"
#include "task/debug.h"
#include "task/env.h"
#include "thread/low.h"

#ifdef _WIN32
#  define EVENT(FD) ((ErlNifEvent)(intptr_t)(FD))
#  define NUMBER(EVENT) ((int)(intptr_t)(EVENT))
#else
#  define EVENT(FD) (FD)
#  define NUMBER(EVENT) (EVENT)
#endif

struct fd_object {              /* what a term holds */
    struct fair__fd *fd;
};

static ErlNifResourceType *fd_type, *object_type;

/* -- those with terms; under the descriptors' lock -------------------------- */

/* False when that number was passed before and is not closed yet, or there
 * is no memory. */
static bool enter_fd(struct fair__fd *f)
{
    struct fair__place *place = fair__place(f->fd);

    if (!place)
        return false;
    for (struct fair__fd *other = place->known; other; other = other->next)
        if (other->fd == f->fd)
            return false;
    f->next = place->known;
    place->known = f;
    return true;
}

static void take_out_fd(struct fair__fd *f)
{
    struct fair__fd **at = &fair__place(f->fd)->known;

    while (*at != f)
        at = &(*at)->next;
    *at = f->next;
}

/* -- the VM's side -------------------------------------------------------- */

static void select_stopped(ErlNifEnv *env, void *obj, ErlNifEvent event, int direct)
{
    (void)env, (void)obj, (void)direct;
    fair__os_close(NUMBER(event));
}

/* 0 when `message` will be sent to that process, once; else an errno. */
int fair__fd_select(struct fair__fd *f, ErlNifEnv *env,
                    enum ErlNifSelectFlags what, const ErlNifPid *to,
                    ERL_NIF_TERM message)
{
    int answer = enif_select_x(env, EVENT(f->fd),
                               what | ERL_NIF_SELECT_CUSTOM_MSG, f, to,
                               message, NULL);

    if (answer < 0)
        return answer & ERL_NIF_SELECT_INVALID_EVENT ? EBADF : EIO;
    f->selected = true;
    return 0;
}

/* CANCEL, with what; or STOP.  The process does not matter, but without one the
 * VM looks for the environment's. */
int fair__fd_unselect(struct fair__fd *f, ErlNifEnv *env,
                      enum ErlNifSelectFlags what)
{
    return enif_select_x(env, EVENT(f->fd), what, f, &f->owner,
                         fair__atoms.undefined, NULL);
}

/* Closes it: no task uses it any more, and none will. */
void fair__fd_shut(struct fair__fd *f, ErlNifEnv *env)
{
    if (!f->selected || fair__fd_unselect(f, env, ERL_NIF_SELECT_STOP) < 0)
        fair__os_close(f->fd);
}

/* No task gets it any more; true the first time. */
static bool begin_closing(struct fair__fd *f, ErlNifEnv *env)
{
    struct fair__wake w[2] = {{0}};
    bool first, unused;

    fair__fds_lock();
    first = !GET(f->closing);
    SET(f->closing, true);
    unused = first && f->users == 0;
    if (unused)
        take_out_fd(f);
    else if (first)
        fair__waiters_tell(f, w);
    fair__fds_unlock();
    fair__wake_send(env, &w[0]);
    fair__wake_send(env, &w[1]);
    if (unused)
        fair__fd_shut(f, env);
    return first;
}

static void owner_down(ErlNifEnv *env, void *obj, ErlNifPid *pid,
                       ErlNifMonitor *monitor)
{
    (void)pid, (void)monitor;
    begin_closing(obj, env);
}

static void drop_object(ErlNifEnv *env, void *obj)
{
    struct fair__fd *f = ((struct fd_object *)obj)->fd;

    if (!f)
        return;
    begin_closing(f, env);
    enif_release_resource(f);
}

static void object_dtor(ErlNifEnv *env, void *obj)
{
    fair__dtor_at_par(drop_object, env, obj);
}

bool fair__fd_open_types(ErlNifEnv *env)
{
    ErlNifResourceTypeInit of_fd = {.stop = select_stopped, .down = owner_down};
    ErlNifResourceTypeInit of_object = {.dtor = object_dtor};

    return fair__open_kept_type(env, "fairnif_fd", of_fd, &fd_type)
        && fair__open_kept_type(env, "fairnif_fd_object", of_object,
                                &object_type);
}

/* An object with one reference, which is the caller's; it does not own the
 * descriptor yet. */
struct fair__fd *fair__fd_new(const struct fair__task *t, int fd, int *error)
{
    struct fair__fd *f = enif_alloc_resource(fd_type, sizeof *f);

    if (!f) {
        *error = -ENOMEM;
        return NULL;
    }
    *f = (struct fair__fd){.fd = fd, .owner = t->owner};
    *error = fair__os_identify(fd, &f->dev, &f->ino);
    if (*error) {
        enif_release_resource(f);
        return NULL;
    }
    return f;
}

/* -- from a body ---------------------------------------------------------- */

struct at_par {
    struct fair__task *t;
    struct fair__fd *f;
    bool done;
};

/* What this does, at the priority of a scheduler. */
static bool on_fd(void (*what)(void *), struct fair__task *t,
                  struct fair__fd *f)
{
    struct at_par a = {.t = t, .f = f};

    fair__at_par(what, &a);
    return a.done;
}

/* The term holds the object, the object the descriptor. */
static void hand_fd_over(void *arg)
{
    struct at_par *a = arg;
    ErlNifMonitor monitor;
    bool new;

    fair__fds_lock();
    new = enter_fd(a->f);
    fair__fds_unlock();
    if (!new)
        return;
    a->done = fair__os_unblock(a->f->fd) == 0
        && enif_monitor_process(a->t->vm_env, a->f, &a->t->owner,
                                &monitor) == 0;
    if (a->done)
        return;
    fair__fds_lock();
    take_out_fd(a->f);
    fair__fds_unlock();
}

ERL_NIF_TERM fair__adopt_fd(fair_task *pub, int fd)
{
    struct fair__task *t = fair__of(pub);
    struct fd_object *object;
    ERL_NIF_TERM term = 0;
    struct fair__fd *f;
    int error;

    if (!t->kind->has_caller)   /* no process's death would close it */
        return 0;
    object = enif_alloc_resource(object_type, sizeof *object);
    if (!object)
        return 0;
    object->fd = NULL;
    f = fair__fd_new(t, fd, &error);
    if (f && on_fd(hand_fd_over, t, f)) {
        object->fd = f;
        term = fair__term_out(t, enif_make_resource(pub->env, object));
    } else if (f) {
        enif_release_resource(f);
    }
    enif_release_resource(object);
    return term;
}

static struct fair__fd *behind(fair_task *pub, ERL_NIF_TERM term)
{
    void *object;

    fair__term_in(fair__of(pub), term);
    if (!enif_get_resource(pub->env, term, object_type, &object))
        return NULL;
    return ((struct fd_object *)object)->fd;
}

/* The one with that number that the task got, or NULL. */
struct fair__fd *fair__fd_used(const struct fair__task *t, int fd)
{
    struct fair__fd_use *use = t->hold.fds;

    while (use && use->fd->fd != fd)
        use = use->next;
    return use ? use->fd : NULL;
}

enum { USE_WEIGHT = 64 };       /* it may be closed */

static void count_user(void *arg)
{
    struct at_par *a = arg;

    fair__fds_lock();
    a->done = !GET(a->f->closing);
    a->f->users += a->done;
    fair__fds_unlock();
}

static bool begin_use(struct fair__task *t, struct fair__fd *f)
{
    struct fair__fd_use *use = enif_alloc(sizeof *use);

    if (!use)
        return false;
    if (!on_fd(count_user, t, f)) {
        enif_free(use);
        return false;
    }
    enif_keep_resource(f);
    *use = (struct fair__fd_use){f, t->hold.fds};
    t->hold.fds = use;
    t->hold.weight += USE_WEIGHT;
    return true;
}

int fair__get_fd(fair_task *pub, ERL_NIF_TERM term, int *fd)
{
    struct fair__task *t = fair__of(pub);
    struct fair__fd *f = behind(pub, term);

    if (!f || GET(f->closing))
        return 0;
    if (fair__fd_used(t, f->fd) != f && !begin_use(t, f))
        return 0;
    *fd = f->fd;
    return 1;
}

static void close_now(void *arg)
{
    struct at_par *a = arg;

    a->done = begin_closing(a->f, a->t->vm_env);
}

int fair__close_fd(fair_task *pub, ERL_NIF_TERM term)
{
    struct fair__fd *f = behind(pub, term);

    return f && on_fd(close_now, fair__of(pub), f);
}

static void end_use(struct fair__task *t, struct fair__fd *f)
{
    bool last;

    fair__fds_lock();
    last = --f->users == 0 && GET(f->closing);
    if (last)
        take_out_fd(f);
    fair__fds_unlock();
    if (last)
        fair__fd_shut(f, t->vm_env);
    enif_release_resource(f);
}

/* The task ends, on any thread. */
unsigned fair__fds_release(struct fair__task *t, unsigned most)
{
    while (t->hold.fds && most > 0) {
        struct fair__fd_use *use = t->hold.fds;

        t->hold.fds = use->next;
        end_use(t, use->fd);
        enif_free(use);
        t->hold.weight -= USE_WEIGHT;
        most -= most < USE_WEIGHT ? most : USE_WEIGHT;
    }
    return most;
}
