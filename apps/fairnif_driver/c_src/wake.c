/*
 * wake.c - how a thread calls a port.
 *
 * A port's wake-up is a descriptor that the port has selected: a thread
 * writes to it, and the VM calls ready_input in the port's context.  There is
 * no other way from a thread into that context which a busy port does not
 * hold up, or which leaves the author's own timer alone.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <unistd.h>
#if defined(__linux__)
#  include <sys/eventfd.h>
#endif

#include "wake.h"

/* Descriptors that wait for the VM to say that they may be closed. */
static struct closing {
    struct closing *next;
    int fds[2];
} *closing;
static pthread_mutex_t closing_lock = PTHREAD_MUTEX_INITIALIZER;

static bool open_fds(int fds[2])
{
#if defined(__linux__)
    fds[0] = fds[1] = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    return fds[0] >= 0;
#else
    if (pipe(fds) != 0)
        return false;
    for (int i = 0; i < 2; i++) {
        fcntl(fds[i], F_SETFD, FD_CLOEXEC);
        fcntl(fds[i], F_SETFL, O_NONBLOCK);
    }
    return true;
#endif
}

static void close_fds(const int fds[2])
{
    close(fds[0]);
    if (fds[1] != fds[0])
        close(fds[1]);
}

/* In the port's context: sees to it that threads can wake it.  False and errno
 * when they cannot. */
bool drv__wake_open(struct drv_port *p)
{
    int fds[2];

    if (p->wake[0] >= 0)
        return true;
    if (!open_fds(fds))
        return false;
    if (p->driver->vm.select(p->pub.port, drv__event(fds[0]),
                         ERL_DRV_READ | ERL_DRV_USE, 1) != 0) {
        close_fds(fds);
        errno = EMFILE;
        return false;
    }
    pthread_mutex_lock(&p->lock);
    p->wake[0] = fds[0];
    p->wake[1] = fds[1];
    pthread_mutex_unlock(&p->lock);
    return true;
}

/* With the lock held, from any thread. */
void drv__wake(struct drv_port *p)
{
    const uint64_t one = 1;

    if (p->awake || p->wake[1] < 0)
        return;
    /* It fails only when there is something to be read. */
    p->awake = write(p->wake[1], &one, sizeof one) != 0;
}

void drv__wake_read(struct drv_port *p)
{
    uint64_t count;

    if (p->awake && p->wake[0] >= 0)
        while (read(p->wake[0], &count, sizeof count) == sizeof count)
            ;
    p->awake = false;
}

/* In the port's context, when it closes. */
void drv__wake_close(struct drv_port *p)
{
    struct closing *c;
    int fds[2];

    pthread_mutex_lock(&p->lock);
    memcpy(fds, p->wake, sizeof fds);
    p->wake[0] = p->wake[1] = -1;
    pthread_mutex_unlock(&p->lock);
    if (fds[0] < 0)
        return;
    if ((c = enif_alloc(sizeof *c)) != NULL) {
        memcpy(c->fds, fds, sizeof fds);
        pthread_mutex_lock(&closing_lock);
        c->next = closing;
        closing = c;
        pthread_mutex_unlock(&closing_lock);
    }                           /* else they stay open: no memory is rarer */
    p->driver->vm.select(p->pub.port, drv__event(fds[0]), ERL_DRV_USE, 0);
}

/* 1: the event was one of ours. */
int drv__wake_stopped(ErlDrvEvent event)
{
    struct closing **at, *c;

    pthread_mutex_lock(&closing_lock);
    for (at = &closing; (c = *at) != NULL; at = &c->next)
        if (drv__event(c->fds[0]) == event)
            break;
    if (c)
        *at = c->next;
    pthread_mutex_unlock(&closing_lock);
    if (!c)
        return 0;
    close_fds(c->fds);
    enif_free(c);
    return 1;
}
