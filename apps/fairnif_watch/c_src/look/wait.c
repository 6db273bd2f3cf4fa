/*
 * wait.c - for how long a thread that is ready gets no processor, or next to
 * none, at a stretch.
 *
 * It may be one wait, which the kernel counts when it is over: then looks have
 * seen it use nothing.  Or many: a scheduler that spins before it sleeps calls
 * sched_yield a hundred times, waits 1.3 ms each time where all processors are
 * in use, and has not looked at its timers meanwhile.
 */
#include "look/wait.h"
#include "read/proc.h"

#define LATE_NS (40 * NS_PER_MS)
#define MOST_NS NS_PER_S        /* what goes on is counted so often */

const unsigned watch__wait_ms[WATCH__WAITS] = {10, 20, 50, 100, 200, 500};

/* The least that one of `runs` waits was, of which all but the first lie within
 * the last look. */
uint64_t watch__longest_wait(uint64_t waited, uint64_t runs, uint64_t gap)
{
    uint64_t mean = runs ? waited / runs : 0;

    return watch__less(waited, gap) > mean && runs > 1
        ? watch__less(waited, gap) : mean;
}

/* It was ready nearly all the time, and worked a fifth of that at most. */
static bool is_unserved(uint64_t waited, uint64_t used, uint64_t span)
{
    return waited >= 4 * used && waited + used >= span - span / 5;
}

/* Those in it count as one. */
static void end_stretch(struct watch__thread *t)
{
    unsigned i = WATCH__WAITS;

    while (i > 0 && t->stretch < watch__wait_ms[i - 1] * NS_PER_MS)
        i--;
    if (i > 0) {
        ADD(t->long_waits[i - 1], 1);
        ADD(t->long_wait_ns, t->stretch);
        t->merged += watch__less(t->stretch_runs, 1);
    }
    t->stretch = t->stretch_runs = 0;
}

void watch__judge_wait(struct watch__thread *t, const struct watch__wait *now,
                       bool since_last)
{
    const struct watch__wait *w = &t->wait;
    uint64_t span = now->at - w->at, waited = watch__less(now->waited, w->waited),
        runs = watch__less(now->runs, w->runs);

    if (t->is_still)
        waited = watch__longest_wait(waited, runs, t->gap);
    /* A look that came late has not seen what was in between. */
    if (t->gap < LATE_NS
        && (t->is_still ? waited >= watch__wait_ms[0] * NS_PER_MS
            : since_last && is_unserved(waited, watch__less(now->cpu, w->cpu),
                                        span))) {
        t->stretch += waited;
        t->stretch_runs += runs;
        if (t->stretch >= MOST_NS)
            end_stretch(t);
    } else {
        end_stretch(t);
    }
    t->wait = *now;
    SET(t->shown_waited, now->waited);
    if (!t->stretch)
        SET(t->shown_runs, now->runs - t->merged);
}

void watch__note_wait(struct watch__thread *t, uint64_t now)
{
    struct watch__wait wait = {.at = now, .cpu = t->cpu};
    bool since_last = t->wait.at && now - t->wait.at <= t->gap;
    bool still = t->used == 0;

    /* Nothing is known before it runs, and who works is served. */
    if (still ? t->is_still || since_last
        : t->used > t->gap / 4 && !t->is_still && !t->stretch
          && now - t->wait.at < NS_PER_S / 4) {
        t->is_still = still;
        return;
    }
    watch__open_once(&t->schedstat_fd, t->tid, "schedstat");
    if (!watch__run_delay(t->schedstat_fd, &wait.waited, &wait.runs))
        return;
    if (still)
        t->wait = wait;
    else
        watch__judge_wait(t, &wait, since_last);
    t->is_still = still;
}
