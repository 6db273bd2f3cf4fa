/*
 * timer.c - a signal to a thread from a timer of its own.
 *
 * The kernel sends it to that thread alone, which also sets and stops the timer:
 * so a signal that is under way when it is stopped arrives before that system
 * call returns, and what rings does so only between the two.
 *
 * A thread keeps its timer until it ends.  The handler stays when the module
 * goes, as the library does (base/os.c).
 */
#define _GNU_SOURCE
#include "thread/timer.h"

#include "base/locks.h"

#if defined(__linux__)

#include <errno.h>
#include <signal.h>

#ifndef sigev_notify_thread_id
#  define sigev_notify_thread_id _sigev_un._tid
#endif

/* What a signal handler changes, the code that it interrupts may write over: so
 * it rings again, but seldom.  A timer that is due soon costs the kernel more to
 * stop than one that is not. */
enum { AGAIN_NS = 10000000 };

static struct fair__mutex lock = FAIR__MUTEX(RANK_SIGNAL);
static _Atomic int signal_number;       /* 0: not looked for yet; -1: none */

/* Only the timers' own signals: anybody may send one. */
static void on_signal(int number, siginfo_t *info, void *context)
{
    struct fair__thread *th = fair__this_thread();
    void (*ring)(void *) = th ? GET(th->ring) : NULL;
    int error = errno;

    (void)number, (void)context;
    if (ring && info->si_code == SI_TIMER)
        ring(th->ring_arg);
    errno = error;
}

static bool is_free(const struct sigaction *action)
{
    return !(action->sa_flags & SA_SIGINFO) && action->sa_handler == SIG_DFL;
}

/* None that is taken, or was taken at the same time: the watch looks for one in
 * the same way. */
static bool take_if_free(int number)
{
    struct sigaction ours = {.sa_flags = SA_SIGINFO | SA_ONSTACK | SA_RESTART};
    struct sigaction before;

    ours.sa_sigaction = on_signal;
    sigemptyset(&ours.sa_mask);
    if (sigaction(number, NULL, &before) != 0 || !is_free(&before)
        || sigaction(number, &ours, &before) != 0)
        return false;
    if (is_free(&before))
        return true;
    sigaction(number, &before, NULL);
    return false;
}

/* From the fifth on: debuggers and others take the first ones. */
void fair__timer_take_signal(void *unused)
{
    int taken;

    (void)unused;
    fair__mutex_lock(&lock);
    taken = GET(signal_number);
    for (int n = SIGRTMIN + 4; !taken; n++)
        taken = n > SIGRTMAX ? -1 : take_if_free(n) ? n : 0;
    SET(signal_number, taken);
    fair__mutex_unlock(&lock);
}

bool fair__timer_has_signal(void)
{
    return GET(signal_number) != 0;
}

/* 0: there is none. */
static int get_signal(void)
{
    if (!fair__timer_has_signal())
        fair__timer_take_signal(NULL);
    return GET(signal_number) > 0 ? GET(signal_number) : 0;
}

/* Who started the node may have blocked it. */
static void unblock(int number)
{
    sigset_t set;

    sigemptyset(&set);
    sigaddset(&set, number);
    pthread_sigmask(SIG_UNBLOCK, &set, NULL);
}

/* A user has as many as signals may be queued for him (RLIMIT_SIGPENDING). */
bool fair__timer_get(struct fair__thread *th)
{
    struct sigevent event = {.sigev_notify = SIGEV_THREAD_ID};

    if (!th || fair_likely(th->has_timer))
        return th != NULL;
    event.sigev_signo = get_signal();
    event.sigev_notify_thread_id = th->tid;
    th->has_timer = event.sigev_signo
        && timer_create(CLOCK_MONOTONIC, &event, &th->timer) == 0;
    if (th->has_timer)
        unblock(event.sigev_signo);
    return th->has_timer;
}

void fair__timer_set(struct fair__thread *th, uint64_t ns, void (*ring)(void *),
                     void *arg)
{
    struct itimerspec when = {
        .it_value = {.tv_sec = (time_t)(ns / 1000000000),
                     .tv_nsec = (long)(ns % 1000000000)},
        .it_interval.tv_nsec = AGAIN_NS
    };

    if (fair_unlikely(!fair__timer_get(th))) {
        ring(arg);
        return;
    }
    th->ring_arg = arg;
    atomic_signal_fence(memory_order_seq_cst);
    SET(th->ring, ring);
    timer_settime(th->timer, 0, &when, NULL);
}

void fair__timer_stop(struct fair__thread *th)
{
    const struct itimerspec never = {0};

    if (!th || !th->has_timer)
        return;
    timer_settime(th->timer, 0, &never, NULL);
    SET(th->ring, NULL);
}

void fair__timer_forget(struct fair__thread *th)
{
    if (!th || !th->has_timer)
        return;
    timer_delete(th->timer);
    th->has_timer = false;
}

#else

void fair__timer_take_signal(void *unused) { (void)unused; }
bool fair__timer_has_signal(void) { return true; }
bool fair__timer_get(struct fair__thread *th) { (void)th; return false; }

void fair__timer_set(struct fair__thread *th, uint64_t ns, void (*ring)(void *),
                     void *arg)
{
    (void)th, (void)ns;
    ring(arg);
}

void fair__timer_stop(struct fair__thread *th) { (void)th; }
void fair__timer_forget(struct fair__thread *th) { (void)th; }

#endif
