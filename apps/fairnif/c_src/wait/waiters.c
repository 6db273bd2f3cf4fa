/*
 * waiters.c - which tasks wait for which descriptors; under the waiting lock.
 */
#include "wait/waiters.h"

#include <errno.h>

enum { PLACES = 1024 };

static struct place {
    struct fair__task *first, *last;
} waiting[PLACES];

static struct place *place_of(int number)
{
    return &waiting[(unsigned)number % PLACES];
}

/* The same number is the same file only as long as nobody closed the one the
 * other task has a duplicate of. */
static bool is_busy(int number, const struct fair__fd *f, unsigned events)
{
    for (struct fair__task *t = place_of(number)->first; t; t = t->wait_next) {
        const struct fair__fd *other = t->waits.fd;

        if (t->waits.number == number && t->waits.events & events
            && (other == f || (other->dev == f->dev && other->ino == f->ino)))
            return true;
    }
    return false;
}

/* 0, and the task is the one that waits for this; or -errno. */
int fair__waiters_enter(struct fair__task *t, struct fair__fd *f, int number,
                        unsigned events)
{
    int error = 0;

    fair__wait_lock();
    if (GET(f->closing)) {
        error = -EBADF;
    } else if (is_busy(number, f, events)) {
        error = -EBUSY;
    } else {
        struct place *place = place_of(number);

        t->waits = (struct fair__fd_wait){
            .fd = f, .number = number, .events = events
        };
        fair__list_append(t, &place->first, &place->last);
    }
    fair__wait_unlock();
    return error;
}

void fair__waiters_leave(struct fair__task *t)
{
    struct place *place = place_of(t->waits.number);

    fair__wait_lock();
    fair__list_take_off(t, &place->first, &place->last);
    t->waits.fd = NULL;
    fair__wait_unlock();
}

/* The caller can ask the VM, or has: no thread of the pool is at the task. */
bool fair__wait_waits(const struct fair__task *t)
{
    return GET(t->state) == T_FD;
}

/* Sends {Ref, settle}, if somebody waits for that.  Locked. */
void fair__waiter_tell(struct fair__task *t, struct fair__wake *w)
{
    if (!t->pending || !t->pending->armed || !fair__wait_waits(t))
        return;
    fair__disarm(t->pending, w);
    w->settle = true;
    t->waits.told = true;
}

void fair__waiters_tell(struct fair__fd *f, struct fair__wake w[2])
{
    unsigned told = 0;

    for (struct fair__task *t = place_of(f->fd)->first; t && told < 2;
         t = t->wait_next)
        if (t->waits.fd == f)
            fair__waiter_tell(t, &w[told++]);
}
