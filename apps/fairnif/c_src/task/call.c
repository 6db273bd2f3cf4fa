/*
 * call.c - functions that cannot tick: they run elsewhere, the body moves there,
 * or an alarm tells them when a slice is up.
 *
 * With FAIR_AUTO fair_offload runs a function in place while its work costs
 * little beside a trip to a dirty scheduler and back, else on one.  What it
 * costs is learned from every call, in place or not, for each octave of units
 * apart: a function has a fixed cost as well as one by the unit, caches end,
 * and a rate learned from calls of 16 bytes (most of it fixed) would send 16
 * KiB away, one learned from 16 MiB keep here what takes long.  Within an
 * octave neither errs by more than a factor of two.
 */
#include "task/call.h"

#include "base/config.h"
#include "base/os.h"
#include "task/debug.h"
#include "task/env.h"
#include "task/slice.h"
#include "task/switch.h"
#include "thread/low.h"
#include "thread/timer.h"

/* Costs in dirty trips.  A call that goes dirty from ten on loses a tenth by
 * it at most.  Samples of one kind of call differ by some percent, and the
 * average follows them by a quarter of that, so a band of a fifth is enough to
 * keep a call near the cutoff where it is; what stays dirty within it loses an
 * eighth. */
static const struct {
    double go_dirty, stay_dirty;
    double wrong;       /* a sample that much above or below what was believed
                           replaces it: a guess is corrected by one call, and
                           so is the sample in which the operating system had
                           the thread */
    double follow;      /* part of the difference, otherwise */
} rule = {
    .go_dirty = 10, .stay_dirty = 8, .wrong = 2, .follow = 0.25
};

/* -- what work costs ------------------------------------------------------- */

static unsigned octave_of(size_t units)
{
    return 63 - (unsigned)__builtin_clzll(units | 1);
}

static bool was_dirty(const struct fair__func *f, unsigned octave)
{
    return GET(f->work_dirty) >> octave & 1;
}

static void set_dirty(struct fair__func *f, unsigned octave, bool dirty)
{
    uint64_t bit = (uint64_t)1 << octave;

    if (fair_likely(was_dirty(f, octave) == dirty))
        return;
    if (dirty)
        atomic_fetch_or(&f->work_dirty, bit);
    else
        atomic_fetch_and(&f->work_dirty, ~bit);
}

/* Nanoseconds from which a call goes dirty. */
static double limit(const struct fair__func *f, unsigned octave)
{
    return (was_dirty(f, octave) ? rule.stay_dirty : rule.go_dirty)
        * (double)GET(fair__config.dirty_round_trip_ns);
}

/* No call of this octave was measured.  Less work does not cost more: what is
 * in place for the next larger octave known is so for this one.  Else the
 * first one is measured where it may be long. */
static bool is_expensive_untested(const struct fair__func *f, unsigned octave)
{
    for (unsigned i = octave + 1; i < FAIR__OCTAVES; i++) {
        double unit_ns = GET(f->work_unit_ns[i]);

        if (unit_ns > 0)
            return unit_ns * (double)((uint64_t)1 << i) > limit(f, i);
    }
    return true;
}

static bool is_expensive(struct fair__func *f, unsigned octave, size_t units)
{
    double unit_ns = GET(f->work_unit_ns[octave]);
    bool expensive;

    if (fair_unlikely(unit_ns <= 0))
        return is_expensive_untested(f, octave);
    expensive = unit_ns * (double)units > limit(f, octave);
    set_dirty(f, octave, expensive);
    return expensive;
}

/* A sample that replaces what was believed also replaces where the octave's
 * calls went: they are judged again. */
static void learn_call(struct fair__func *f, unsigned octave, size_t units,
                       uint64_t ns)
{
    double unit_ns = GET(f->work_unit_ns[octave]);
    double sample = (double)(int64_t)(ns ? ns : 1) / (double)units;

    if (sample <= unit_ns * rule.wrong && unit_ns <= sample * rule.wrong) {
        sample = unit_ns + (sample - unit_ns) * rule.follow;
    } else {
        set_dirty(f, octave, false);
    }
    SET(f->work_unit_ns[octave], sample);
}

double fair__call_cutoff(const struct fair__func *f)
{
    for (unsigned i = 0; i < FAIR__OCTAVES; i++) {
        double least = (double)((uint64_t)1 << i);
        double unit_ns = GET(f->work_unit_ns[i]);

        if (unit_ns <= 0) {
            if (is_expensive_untested(f, i))
                return least;
        } else if (unit_ns * 2 * least > limit(f, i)) {
            double units = limit(f, i) / unit_ns;

            return units > least ? units : least;
        }
    }
    return (double)UINT64_MAX;
}

/* -- elsewhere ------------------------------------------------------------- */

int fair__move(fair_task *pub, enum fair_mode where)
{
    struct fair__task *t = fair__of(pub);

    if (fair_unlikely(fair__used_away(t)))
        return -EDEADLK;
    if (where < FAIR_NORMAL || where > FAIR_DIRTY_IO) {
        fair__refuse(t, RULE_MODE, "bad_mode");
        return 0;
    }
    fair__go(t, fair__modes[where].start);
    return t->where == fair__modes[where].start;
}

enum fair_mode fair__where(const fair_task *pub)
{
    static const enum fair_mode modes[] = {
        [W_NORMAL] = FAIR_NORMAL, [W_DIRTY_CPU] = FAIR_DIRTY_CPU,
        [W_DIRTY_IO] = FAIR_DIRTY_IO, [W_THREAD] = FAIR_THREADED
    };

    return modes[((const struct fair__task *)pub)->where];
}

/* Does not return when the caller died meanwhile. */
static void run_here(struct fair__task *t, void (*fn)(void *), void *arg)
{
    uint64_t begin = fair__now();

    fair__outside(t, fn, arg);
    t->slice.now = fair__now();
    t->slice.call_ns = t->slice.now - begin;
    if (!fair__alive(t))
        fair__leave(t, X_DROP);
}

/* Code that computes: in place, or on a dirty CPU scheduler. */
static void call_learned(struct fair__task *t, size_t units,
                         void (*fn)(void *), void *arg)
{
    unsigned octave = octave_of(units);
    enum fair__where back = t->where;

    units += !units;
    if (back == W_NORMAL && t->slice.yielding
        && is_expensive(t->func, octave, units))
        fair__go(t, W_DIRTY_CPU);
    ADD(*(t->where == back ? &t->stat->inline_offloads
          : &t->stat->dirty_offloads),
        1);
    run_here(t, fn, arg);
    learn_call(t->func, octave, units, t->slice.call_ns);
}

/* Anywhere but on a thread of the pool. */
void fair__call_on(struct fair__task *t, enum fair_mode where, size_t units,
                   void (*fn)(void *), void *arg)
{
    enum fair__where back = t->where;

    if (fair_unlikely(fair__used_away(t))) {
        fn(arg);
        return;
    }
    if (where == FAIR_AUTO) {
        call_learned(t, units, fn, arg);
    } else if (where < FAIR_NORMAL || where > FAIR_AUTO) {
        fair__refuse(t, RULE_MODE, "bad_mode");
    } else {
        fair__go(t, where == FAIR_THREADED ? W_DIRTY_IO
                 : fair__modes[where].start);
        run_here(t, fn, arg);
    }
    fair__announced(t, t->slice.call_ns);
    fair__go(t, back);
}

/* -- in place, with an alarm ----------------------------------------------- */

uint64_t fair__alarm(fair_task *pub, void (*ring)(void *), void *arg)
{
    struct fair__task *t = fair__of(pub);
    uint64_t up, left;

    if (fair_unlikely(fair__used_away(t)))
        return 0;
    if (t->alarm.ring)
        fair__timer_stop(t->thread);
    if (t->pub.cancelled) {
        t->alarm.ring = NULL;
        return 0;
    }
    /* One window ends, in which ticks were expected or not, and another begins. */
    fair__work_begin(t);
    if (ring && fair_unlikely(!fair__timer_has_signal()))
        fair__at_par(fair__timer_take_signal, NULL);
    t->alarm.ring = ring && fair__timer_get(t->thread) ? ring : NULL;
    t->alarm.arg = arg;
    fair__work_end(t);
    if (!t->alarm.ring)
        return 0;
    up = t->slice.start + t->slice.ns;
    left = up > t->slice.now ? up - t->slice.now : 1;
    fair__set_alarm(t, left);
    return left;
}
