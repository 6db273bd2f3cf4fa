/*
 * stint.c - the priority of authors' code on a thread of the pool.
 */
#include "task/stint.h"

enum {
    BRIEF = 8,                  /* short calls in a row: the next one will be */
    BRIEF_MOST = 16,            /* measured by the clock alone from then on */
    SLEEPS_MOST = 8,
    SHORT_NS = 1000000          /* of a processor's time */
};

/* A short call costs the schedulers little, and would wait behind them for much
 * longer than it takes; a call that waits does not compute.  A task that holds a
 * lock must not wait behind threads that may wait for it. */
static bool may_be_low(const struct fair__task *t, bool resumed)
{
    return !t->hold.mutexes && !t->pub.cancelled
        && !GET(t->func->prompt) && !GET(t->func->locks)
        && GET(t->func->sleeps) <= 0
        && (GET(t->func->brief) < BRIEF || resumed);
}

struct fair__stint fair__stint_begin(struct fair__task *t,
                                     struct fair__thread *th, bool resumed)
{
    struct fair__stint s = {.at = th, .begin = fair__now(), .resumed = resumed};

    if (th && may_be_low(t, resumed))
        s.low = fair__low_get(th);
    if (s.low)
        s.at = fair__low_record(s.low);
    else if (GET(t->func->brief) < BRIEF_MOST || t->callback)
        s.measured = fair__thread_used(&s.before);
    return s;
}

void fair__stint_at_par(struct fair__stint *s)
{
    s->measured = fair__thread_used(&s->before);
}

struct fair__used fair__stint_used(const struct fair__stint *s)
{
    struct fair__used u = {0}, now;

    if (!s->low && !s->measured)
        u.ns = fair__now() - s->begin;
    if (s->low)
        u = fair__low_used(s->low);
    if (s->measured && fair__thread_used(&now))
        u = fair__used_sum(u, fair__used_since(now, s->before));
    return u;
}

static int one_up(int n, int most)
{
    return n < most ? n + 1 : most;
}

/* One that was only kept from a processor by others has not slept. */
static int sleeps_after(int sleeps, const struct fair__used *u)
{
    if (fair__used_mostly_waits(u))
        return one_up(sleeps, SLEEPS_MOST);
    if (u->cpu_ns > SHORT_NS && sleeps > 0)
        return 0;
    return -one_up(-sleeps, SLEEPS_MOST);
}

/* What it took of a processor's time is little, or it waited for most of it. */
static int brief_after(int brief, const struct fair__used *u)
{
    return u->cpu_ns <= SHORT_NS || fair__used_mostly_waits(u)
        ? one_up(brief, BRIEF_MOST) : 0;
}

static void set(_Atomic int *learned, int value)
{
    if (GET(*learned) != value)
        SET(*learned, value);
}

void fair__stint_learn(struct fair__task *t, const struct fair__stint *s,
                       const struct fair__used *u, bool paused)
{
    struct fair__func *f = t->func;
    int brief = GET(f->brief);

    if (!s->low && !s->measured) {
        /* Others may have had the processor: the next one is measured. */
        set(&f->brief, brief - (brief > 0 && u->ns > SHORT_NS));
    } else if (u->ns > 0) {     /* else the kernel does not say */
        set(&f->sleeps, sleeps_after(GET(f->sleeps), u));
        set(&f->brief, paused || s->resumed ? 0 : brief_after(brief, u));
    }
}
