/*
 * waiters.c - maps descriptors to the tasks that wait for them.
 */
#include "wait/waiters.h"

#include <errno.h>
#include <stdlib.h>

#include "base/locks.h"

static struct fair__mutex lock = FAIR__MUTEX(RANK_FDS);

void fair__fds_lock(void) { fair__mutex_lock(&lock); }
void fair__fds_unlock(void) { fair__mutex_unlock(&lock); }

/* The system gives the least number that is free, so they lie close together.
 * Nothing is searched here, and to grow moves nothing. */
enum { CHUNKS = 4096, CHUNK = 256 };
static struct fair__place *chunks[CHUNKS];

struct fair__place *fair__place(int number)
{
    unsigned n = (unsigned)number;
    struct fair__place **chunk = &chunks[n / CHUNK % CHUNKS];

    if (!*chunk)
        *chunk = calloc(CHUNK, sizeof **chunk);
    return *chunk ? *chunk + n % CHUNK : NULL;
}

/* The same number is the same file only until the file is closed that the other
 * task has a duplicate of. */
static bool is_busy(const struct fair__place *place, int number,
                    const struct fair__fd *f, unsigned events)
{
    for (struct fair__task *t = place->first; t; t = t->wait.next) {
        const struct fair__fd *other = t->wait.on.fd;

        if (t->wait.on.number == number && t->wait.on.events & events
            && (other == f || (other->dev == f->dev && other->ino == f->ino)))
            return true;
    }
    return false;
}

/* 0, and the task is the one that waits for this; or -errno. */
int fair__waiters_enter(struct fair__task *t, struct fair__fd *f, int number,
                        unsigned events)
{
    struct fair__place *place;
    int error = 0;

    fair__fds_lock();
    place = fair__place(number);
    if (!place) {
        error = -ENOMEM;
    } else if (GET(f->closing)) {
        error = -EBADF;
    } else if (is_busy(place, number, f, events)) {
        error = -EBUSY;
    } else {
        t->wait.on = (struct fair__fd_wait){
            .fd = f, .number = number, .events = events
        };
        fair__list_append(t, &place->first, &place->last);
    }
    fair__fds_unlock();
    return error;
}

void fair__waiters_leave(struct fair__task *t)
{
    struct fair__place *place;

    fair__fds_lock();
    place = fair__place(t->wait.on.number);
    fair__list_take_off(t, &place->first, &place->last);
    t->wait.on.fd = NULL;
    fair__fds_unlock();
}

/* The caller can ask the VM, or has: no thread of the pool is at the task. */
bool fair__wait_waits(const struct fair__task *t)
{
    return GET(t->state) == T_WAIT_FD;
}

/* Sends {Ref, settle}, if a process waits for that.  Locked. */
void fair__waiter_tell(struct fair__task *t, struct fair__wake *w)
{
    if (!t->wait.pending || !t->wait.pending->armed || !fair__wait_waits(t))
        return;
    fair__disarm(t->wait.pending, w);
    w->settle = true;
    t->wait.on.notified = true;
}

void fair__waiters_tell(struct fair__fd *f, struct fair__wake w[2])
{
    unsigned notified = 0;

    fair__wait_lock();
    for (struct fair__task *t = fair__place(f->fd)->first; t && notified < 2;
         t = t->wait.next)
        if (t->wait.on.fd == f)
            fair__waiter_tell(t, &w[notified++]);
    fair__wait_unlock();
}
