/*
 * learn.c - what the windows of window.c teach of a function: what its units and
 * its calls cost, whether its ticks lie too far apart.
 *
 * Wall time is what a neighbour waits, and cheap; but it contains what the
 * operating system took away.  So a sample may move a rate only so far, and a
 * gap without ticks counts as the body's own only when CPU time confirms it.
 *
 * Nothing that was learned may outlive what it was learned from: whatever a
 * rate is, the calls that there are bring it to what they cost.  A rate that
 * only some calls teach stays wrong where there are no such any more.
 */
#include "task/learn.h"

#include "base/config.h"
#include "base/os.h"

/* Costs below this count as nothing. */
#define LEAST_NS 1e-4

enum {
    SHORT_WINDOW_NS = 500,      /* the clock itself takes 20 */
    WARM_CALLS = 8,
    TIME_ALWAYS_NS = 5000,      /* calls of this mean length are all timed:
                                   2 x 20 ns are under 1 % of it */
    OUTLIER_NS = 100000,        /* what one sample of a call may add at most */
    SURE_GAP_NS = 50000000,     /* no scheduler of an operating system... */
    SUSPECT_SLICES = 32,
    GAPS_ENOUGH = 4, GAPS_MOST = 16
};
static const uint64_t most_units = (uint64_t)1 << 40;

/* -- costs --------------------------------------------------------------- */

uint64_t fair__units_for(double ns, double unit_ns)
{
    double units = ns / unit_ns;

    return units < 1 ? 1 : units > (double)most_units ? most_units
        : (uint64_t)units;
}

/* Time divided by units is an upper bound of what a unit costs, however short
 * the time was: the rest is the clock, the call, cold caches.  So a sample may
 * always pull each of the rates down, each by itself; up only one that is long
 * enough. */
static double unit_cost(const struct fair__func *f, double sample, bool lifts)
{
    double old = GET(f->unit_ns);
    bool cold = GET(f->warm_calls) < WARM_CALLS;

    if (old <= 0 || (cold && sample < old))
        return sample;
    if (sample >= old && (cold || !lifts))
        return old;
    if (sample < old / 4)
        return old / 2;
    return old + (fair__min(old * 4, sample) - old) / 8;
}

void fair__learn_unit(struct fair__task *t, double elapsed, double units)
{
    struct fair__func *f = t->func;
    double old = GET(f->unit_ns), peak = GET(f->peak_ns);
    double own = t->slice.unit_ns;
    double sample = fair__max(elapsed / units, LEAST_NS), unit_ns;
    bool lifts = old <= 0 || elapsed >= SHORT_WINDOW_NS;

    unit_ns = unit_cost(f, sample, lifts);
    if (own <= 0 && (lifts || sample < old))
        t->slice.unit_ns = sample;
    else if (own > 0 && (lifts || sample < own))
        t->slice.unit_ns =
            (own + fair__max(own / 4, fair__min(own * 4, sample))) / 2;
    if (f->mixed)
        return;
    if (sample <= peak)
        peak -= (peak - sample) / 64;
    else if (lifts)
        peak = fair__min(sample, fair__max(4 * peak, unit_ns));
    SET(f->unit_ns, unit_ns);
    SET(f->peak_ns, peak);
    SET(f->first_budget,
        fair__units_for(fair__first_look
                        * (double)GET(fair__config.slice_ns), peak));
}

static double average(double old, double sample, double most)
{
    sample = fair__max(0, fair__min(sample, most));
    sample = old > 0 ? old + (sample - old) / 8 : sample;
    return sample < LEAST_NS ? 0 : sample;
}

void fair__learn_call(struct fair__task *t, double elapsed, double units)
{
    struct fair__func *f = t->func;

    if (fair_likely(GET(f->warm_calls) >= WARM_CALLS))
        SET(f->call_ns,
            average(GET(f->call_ns), elapsed - units * GET(f->unit_ns),
                    fair__min(OUTLIER_NS, 4 * GET(f->mean_ns))));
}

/* The first few calls of a function are all timed: the very first one is slow,
 * with cold caches and pages that are not there yet.  What is cold counts for
 * nothing. */
void fair__learn_mean(struct fair__task *t, double elapsed)
{
    struct fair__func *f = t->func;

    if (fair_unlikely(GET(f->warm_calls) < WARM_CALLS)) {
        ADD(f->warm_calls, 1);
        t->stat->countdown = 1;
    }
    if (t->slice.whole && GET(f->warm_calls) >= WARM_CALLS) {
        SET(f->mean_ns, average(GET(f->mean_ns), elapsed, OUTLIER_NS));
        if (fair__always_timed(f))
            t->stat->countdown = 1;
    }
}

bool fair__always_timed(const struct fair__func *f)
{
    return GET(f->mean_ns) >= TIME_ALWAYS_NS;
}

/* -- gaps ---------------------------------------------------------------- */

static void judge_adaption(struct fair__func *f, int change)
{
    int gaps = GET(f->long_gaps) + change;

    gaps = gaps < 0 ? 0 : gaps > GAPS_MOST ? GAPS_MOST : gaps;
    SET(f->long_gaps, gaps);
    if (!fair__modes[GET(f->mode)].adapts)
        return;
    if (gaps >= GAPS_ENOUGH)
        SET(f->adapted, true);
    else if (gaps == 0)
        SET(f->adapted, false);
}

void fair__note_gap(struct fair__task *t, uint64_t ns)
{
    struct fair__func *f = t->func;

    if (ns > 4 * GET(fair__config.slice_ns)) {
        if (t->slice.cpu_start) {
            uint64_t cpu = fair__cpu_now() - t->slice.cpu_win;

            ns = cpu < ns ? cpu : ns;
        } else {
            SET(f->suspect, SUSPECT_SLICES);
            if (ns >= SURE_GAP_NS)
                RAISE_TO(t->stat->longest_gap_ns, ns);
            return;
        }
        if (ns >= GET(fair__config.auto_gap_ns)) {
            t->slice.had_gap = true;
            judge_adaption(f, 1);
        }
    }
    RAISE_TO(t->stat->longest_gap_ns, ns);
}


void fair__judge_call(struct fair__task *t)
{
    if (GET(t->func->long_gaps) > 0 && !t->slice.had_gap)
        judge_adaption(t->func, -1);
}
