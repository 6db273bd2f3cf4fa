/*
 * window.c - decides when the clock is read, and evaluates it.
 *
 * A tick only counts down.  The clock is read when the count is used up: at
 * an eighth of a slice, by what the slowest units of late cost, and near its
 * end; in between too, if the units proved slower than expected.
 * What lies between two reads is a *window*; its time divided by its units is
 * a sample of the rate.  The first slice of a call does not even read
 * the clock at its begin, but for one call in about 64 (every call, where
 * calls are so long that it does not show), and is charged by what was
 * learned (learn.c).
 */
#include "task/window.h"

#include "base/config.h"
#include "base/os.h"
#include "task/learn.h"

enum { GROWTH = 4 };            /* from one window to the next */

void fair__window_open(struct fair__task *t, uint64_t now, uint64_t units)
{
    if (fair_unlikely(GET(fair__config.pause_every_tick)) || t->alarm.ring
        || fair_unlikely(t->pub.cancelled))
        units = 0;              /* each tick asks, and is answered */
    if (fair_unlikely(t->slice.cpu_start != 0))
        t->slice.cpu_win = fair__cpu_now();
    t->slice.win_start = now;
    t->slice.refill = units;
    t->pub.budget = units;
}

static double rate_of(const struct fair__task *t)
{
    return t->slice.unit_ns > 0 ? t->slice.unit_ns : GET(t->func->unit_ns);
}

void fair__window_close(struct fair__task *t, uint64_t now, uint64_t last)
{
    uint64_t units = t->slice.refill - t->pub.budget + last;
    double rate = rate_of(t);
    double elapsed, ticked;
    bool first;

    if (!t->slice.timed) {
        /* An untimed first slice: its begin by what was learned. */
        uint64_t since = GET(t->since_ns);  /* by the coarse clock: earlier */
        double used = fair__min((double)units * rate + GET(t->func->call_ns)
                            + (double)t->slice.apart_ns, (double)(now - since));

        t->slice.win_start = now - (uint64_t)used;
        t->slice.start = t->slice.win_start;
        t->slice.timed = t->slice.estimated = true;
        t->stat->countdown = 1;         /* the next call checks it */
    }
    first = t->slice.whole && t->slice.win_start == t->slice.start;
    t->slice.units += units;
    t->slice.win_units = units;
    t->slice.confirmed = false;
    t->slice.refill = t->pub.budget;
    elapsed = (double)(now - t->slice.win_start) - (double)t->slice.apart_ns;
    t->slice.apart_ns = 0;
    ticked = (double)(units - last) * rate;
    if (!t->slice.estimated && units > 0) {
        t->slice.confirmed = elapsed < 2 * rate * (double)units;
        fair__learn_unit(t, elapsed, (double)units);
    }
    t->slice.estimated = false;
    if (first)
        fair__learn_call(t, elapsed, (double)units);
    if (t->alarm.ring)                /* until it rings no tick is due */
        ticked = fair__max(ticked, (double)t->slice.ns);
    if (elapsed > ticked)
        fair__note_gap(t, (uint64_t)(elapsed - ticked));
}

void fair__window_reopen(struct fair__task *t, uint64_t now)
{
    double left = (double)t->slice.ns - (double)(now - t->slice.start);
    double rate = rate_of(t);

    uint64_t units = rate > 0 ? fair__units_for(left * 0.9, rate) : 0;
    uint64_t most = GROWTH * (t->slice.win_units + 1);

    fair__window_open(t, now,
                      t->slice.confirmed || units < most ? units : most);
}
