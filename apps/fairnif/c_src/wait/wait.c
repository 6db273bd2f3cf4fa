/*
 * wait.c - fair_wait: waits for descriptors and for time.
 *
 * A task that waits for a descriptor is in its number's place (waiters.c) from
 * the begin of fair_wait to its end, which makes it busy for others.  The VM is
 * asked (enif_select) each time fairnif:await/1 comes, by the caller's process;
 * its poll thread sends the message {Ref, settle} to that process, and nothing
 * of ours runs or waits meanwhile.
 *
 *     fair_wait --> T_WAIT_FD --> nif_await: select --> {Ref, settle} --.
 *         ^                                                             v
 *         '-- ready? else once more <-- resume <-- nif_settle: cancel --'
 *
 * Each selection brings one message or is taken back; the one who closes the
 * descriptor sends one more at most.  Only the process itself selects and
 * cancels, so it can say how many of them are still on their way, takes exactly
 * those, and leaves its mailbox as it was.  Whether the descriptor is ready is
 * for poll to say, in the body: a message is only a hint.
 *
 * No lock of ours is held in calls of enif_select: it may call our stop
 * callback and takes locks of the VM's.
 */
#include <errno.h>

#include "wait/wait.h"

#include "base/os.h"
#include "task/debug.h"
#include "task/env.h"
#include "task/slice.h"
#include "task/switch.h"
#include "thread/low.h"
#include "wait/waiters.h"

enum { DIRECTIONS = 2 };

static const struct {
    unsigned event;
    enum ErlNifSelectFlags select;
    int cancelled;
} directions[DIRECTIONS] = {
    {FAIR_READ, ERL_NIF_SELECT_READ, ERL_NIF_SELECT_READ_CANCELLED},
    {FAIR_WRITE, ERL_NIF_SELECT_WRITE, ERL_NIF_SELECT_WRITE_CANCELLED},
};

/* -- in the caller's await ------------------------------------------------- */

bool fair__wait_begin(struct fair__task *t, struct fair__wake *w)
{
    if (!fair__wait_waits(t))
        return false;
    if (!GET(t->wait.on.fd->closing))
        return true;
    fair__waiter_tell(t, w);
    return false;
}

/* Without the lock: the task is the caller's, who is here. */
void fair__wait_select(struct fair__task *t, ErlNifEnv *env, ERL_NIF_TERM ref)
{
    ERL_NIF_TERM message =
        enif_make_tuple2(env, ref, enif_make_atom(env, "settle"));
    struct fair__wake w = {0};

    for (unsigned i = 0; i < DIRECTIONS && !t->wait.on.error; i++) {
        if (!(t->wait.on.events & directions[i].event))
            continue;
        t->wait.on.error = fair__fd_select(t->wait.on.fd, env,
                                         directions[i].select, &t->owner,
                                         message);
        if (!t->wait.on.error)
            t->wait.on.selected |= directions[i].event;
    }
    if (!t->wait.on.error)
        return;
    fair__wait_lock();
    fair__waiter_tell(t, &w);
    fair__wait_unlock();
    fair__wake_send(env, &w);
}

/* Takes back what was asked of the VM; how many messages cannot be. */
static unsigned cancel(struct fair__task *t, ErlNifEnv *env)
{
    unsigned sent = 0;

    for (unsigned i = 0; i < DIRECTIONS; i++) {
        int answer;

        if (!(t->wait.on.selected & directions[i].event))
            continue;
        answer = fair__fd_unselect(t->wait.on.fd, env, directions[i].select
                                   | ERL_NIF_SELECT_CANCEL);
        if (answer >= 0 && !(answer & directions[i].cancelled))
            sent++;
    }
    t->wait.on.selected = 0;
    return sent;
}

/* A message was received, or the time is up: the task may continue.  How many
 * more messages there are. */
unsigned fair__wait_settle(struct fair__task *t, ErlNifEnv *env, bool received)
{
    unsigned selected = t->wait.on.selected, messages;
    struct fair__wake w = {0}, unsent = {0};
    bool due;

    /* Of one selection the message is there: nothing is left to be taken back,
     * if it was the VM's. */
    fair__wait_lock();
    if (received && !t->wait.on.notified && !(selected & (selected - 1))) {
        messages = selected != 0;
        t->wait.on.selected = 0;
    } else {
        fair__wait_unlock();
        messages = cancel(t, env);
        fair__wait_lock();
    }
    messages += t->wait.on.notified;
    t->wait.on.notified = false;
    fair__disarm(t->wait.pending, &w);
    due = t->wait.deadline_ns && fair__now() >= t->wait.deadline_ns;
    if (received || due) {
        t->wait.timed_out = !received;
        fair__make_ready(t, &unsent);
    }
    fair__wait_unlock();
    if (w.env)
        enif_free_env(w.env);
    if (unsent.kick)
        fair__pool_kick();
    return messages - (received && messages > 0);
}

/* -- from a body ----------------------------------------------------------- */

/* The wait is over, or the task ends while it waits: on any thread. */
void fair__wait_end(struct fair__task *t)
{
    struct fair__fd *f = t->wait.on.fd;
    ErlNifEnv *env = t->vm_env;

    cancel(t, env);             /* before others may wait for it */
    fair__waiters_leave(t);
    if (f->duplicate) {
        fair__fd_shut(f, env);
        enif_release_resource(f);
    }
}

/* A descriptor of the task's own, for one wait. */
static struct fair__fd *duplicate(const struct fair__task *t, int fd,
                                  int *error)
{
    int copy = fair__os_duplicate(fd);
    struct fair__fd *f;

    *error = copy;
    if (copy < 0)
        return NULL;
    f = fair__fd_new(t, copy, error);
    if (f)
        f->duplicate = true;
    else
        fair__os_close(copy);
    return f;
}

struct begin {
    struct fair__task *t;
    int fd;
    unsigned events;
    int error;
};

static void begin_on_fd(void *arg)
{
    struct begin *b = arg;
    struct fair__fd *used = fair__fd_used(b->t, b->fd), *f = used;

    if (!f)
        f = duplicate(b->t, b->fd, &b->error);
    if (!f)
        return;
    b->error = fair__waiters_enter(b->t, f, b->fd, b->events);
    if (b->error && !used) {
        fair__os_close(f->fd);
        enif_release_resource(f);
    }
}

static void end_on_fd(void *task)
{
    fair__wait_end(task);
}

static bool suspends(const struct fair__task *t)
{
    return FAIR__TASKS && t->kind->has_caller;
}

/* What fair_wait answers, or -EAGAIN when there is nothing yet. */
static int outcome(struct fair__task *t)
{
    int ready;

    if (GET(t->wait.on.fd->closing))
        return -EBADF;
    if (t->wait.on.error)
        return -t->wait.on.error;
    ready = fair__os_look(t->wait.on.fd->fd, t->wait.on.events, 0);
    return ready ? ready : t->wait.timed_out ? -ETIMEDOUT : -EAGAIN;
}

static int wait_suspended(struct fair__task *t, int fd, unsigned events)
{
    struct begin b = {t, fd, events, 0};
    int answer;

    fair__at_par(begin_on_fd, &b);
    if (b.error)
        return b.error;
    do {
        t->wait.timed_out = false;
        fair__wait_for(t, T_WAIT_FD);
        answer = outcome(t);
    } while (answer == -EAGAIN);
    fair__at_par(end_on_fd, t);
    return answer;
}

/* Where no task can be suspended: on a dirty scheduler, which it blocks.  No
 * process awaits a resource's callback: on a thread of the pool. */
static int wait_in_place(struct fair__task *t, int fd, unsigned events)
{
    enum { STEP_MS = 50 };
    const uint64_t deadline = t->wait.deadline_ns;   /* a pause forgets it */

    if (!t->kind->has_caller) {
        if (fair__has_raised(t))
            fair__fail(t, "went_on_after_raising");     /* it could not leave */
        fair__go(t, W_THREAD);
    }
    for (;;) {
        uint64_t now = fair__now(), left = STEP_MS;
        int ready;

        if (!fair__alive(t))
            fair__leave(t, X_DROP);     /* does not return */
        if (deadline)
            left = deadline > now ? (deadline - now + 999999) / 1000000 : 0;
        ready = fair__os_look(fd, events,
                              left < STEP_MS ? (int)left : STEP_MS);
        if (ready || left == 0)
            return ready ? ready : -ETIMEDOUT;
    }
}

int fair__wait(fair_task *pub, int fd, unsigned events, int timeout_ms)
{
    struct fair__task *t = fair__of(pub);
    bool sleeps = fd == -1 && !events;
    struct fair__fd *used;
    int ready;

    if (fair_unlikely(fair__used_away(t)))
        return -EDEADLK;
    fair__sends(t);
    t->wait.deadline_ns = timeout_ms < 0 ? 0
        : fair__now() + (uint64_t)timeout_ms * 1000000;
    if (sleeps) {
        if (suspends(t))
            fair__wait_for(t, T_WAIT_TIME);
        else
            wait_in_place(t, -1, 0);
        return 1;
    }
    if (!events || events & ~(FAIR_READ | FAIR_WRITE))
        return -EINVAL;
    used = fair__fd_used(t, fd);
    if (fd < 0 || (used && GET(used->closing)))
        return -EBADF;
    ready = fair__os_look(fd, events, 0);
    if (ready || timeout_ms == 0)
        return ready ? ready : -ETIMEDOUT;
    if (!suspends(t))
        return wait_in_place(t, fd, events);
    fair__may_wait(t);
    return wait_suspended(t, fd, events);
}
