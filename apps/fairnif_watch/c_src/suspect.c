/*
 * suspect.c - the rules: from what one look at a scheduler thread shows,
 * whether it gives way, is held, or is not given a processor.
 *
 * Pure: no clock, no system call, no VM.  A thread that may be asleep in the
 * emulator is never poked.
 *
 *   seen giving way --(busy, or asleep in native code)--> poked
 *        ^                                                  |  no answer
 *        '---------------- answered <-----------------------'  for warn_ms:
 *                                                              reported
 */
#include "watch.h"

static uint64_t less(uint64_t a, uint64_t b)
{
    return a > b ? a - b : 0;
}

void watch__put_off(struct watch__hold *h)
{
    h->reported_at = 0;
    h->level = 0;
}

static void gave_way(struct watch__hold *h, uint64_t at, uint64_t cpu)
{
    h->seen_at = at;
    h->seen_cpu = cpu;
    h->poked = false;
    watch__put_off(h);
}

static void nothing_lost(struct watch__hold *h)
{
    h->stalled = h->apart = h->stolen = h->doubtful = 0;
    h->stolen_then = h->stalled_then = 0;
    h->on_trial = false;
}

void watch__pardon(struct watch__hold *h, uint64_t now, uint64_t cpu)
{
    h->begin = now;
    h->begin_cpu = cpu;
    nothing_lost(h);
    watch__put_off(h);
}

/* When what is to be poked for began.  It has used the processor for `used` of
 * the time since it was last seen giving way.  Slept before: it began when it
 * woke up.  Busy all along: anywhere in between, so the middle is the least
 * wrong.  Where we looked late it is not known, and not claimed. */
static uint64_t began(const struct watch__hold *h,
                      const struct watch__limits *limits,
                      const struct watch__seen *seen)
{
    uint64_t since = less(seen->now, h->seen_at);
    uint64_t used = less(seen->cpu, h->seen_cpu);

    if (seen->class == C_RUNS && used < since - since / 4)
        since = used;
    else
        since /= 2;
    if (since > 4 * limits->period_ns)
        since = limits->period_ns;
    return seen->now - since;
}

static enum watch__does poke(struct watch__hold *h,
                             const struct watch__limits *limits,
                             const struct watch__seen *seen)
{
    h->begin = began(h, limits, seen);
    h->begin_cpu = seen->class == C_RUNS
        ? less(seen->cpu, less(seen->now, h->begin)) : seen->cpu;
    if (h->begin_cpu < h->seen_cpu)
        h->begin_cpu = h->seen_cpu;
    h->begin_waited = seen->waited;
    nothing_lost(h);
    h->poked = true;
    return DO_POKE;
}

static void sum_up(struct watch__hold *h, const struct watch__seen *seen,
                   uint64_t end, uint64_t end_cpu)
{
    uint64_t waited = seen->waited != WATCH__NEVER
        && h->begin_waited != WATCH__NEVER
        ? less(seen->waited, h->begin_waited) : 0;
    /* After a theft the clock stands still for as long: that is no stall. */
    uint64_t made_good = less(h->stalled, h->stalled_then);

    h->held = less(less(end, h->begin), h->apart);
    h->used = less(less(end_cpu, h->begin_cpu), less(h->stolen, made_good));
    h->delay = waited > h->stalled_then ? waited : h->stalled_then;
    h->delay += h->stolen > made_good ? h->stolen : made_good;
    if (h->delay > less(h->held, h->used))
        h->delay = less(h->held, h->used);
}

static enum watch__does answered(struct watch__hold *h,
                                 const struct watch__seen *seen)
{
    bool reported = h->reported_at != 0;
    uint64_t at = seen->beat_at < seen->now ? seen->beat_at : seen->now;

    sum_up(h, seen, at, seen->beat_cpu);
    h->untold += h->delay;
    gave_way(h, at, seen->beat_cpu);
    return reported ? DO_RELEASE : DO_NOTHING;
}

/* Held, on a processor, by what runs there: as far as is known. */
static uint64_t own(const struct watch__hold *h)
{
    return less(less(h->held, h->delay), h->doubtful);
}

/* What may have been stolen before the hold is good for a doubt only: then none
 * of it counts.  What is stolen after that is known, and taken off: so a hold
 * that goes on is told, however much is stolen, and after a second anyway. */
bool watch__proves(struct watch__hold *h, const struct watch__limits *limits,
                   uint64_t stolen, bool known)
{
    uint64_t so_far = own(h), more;

    if (h->held >= NS_PER_S)
        return true;
    if (!h->on_trial) {
        if (stolen < limits->tick_ns || stolen < so_far / 2)
            return true;
        h->on_trial = true;
        h->stalled_then = h->stalled;
        h->stolen = !known ? 0 : stolen < so_far ? stolen : so_far;
        h->stolen_then = h->stolen;
        h->doubtful = so_far - h->stolen;
        return false;
    }
    more = less(h->stolen_then + stolen, h->stolen);
    h->stolen += more;
    return less(so_far, more) >= limits->warn_ns;
}

/* Held by what runs on it, for long enough to be told?  For that the time counts
 * in which it was not waiting for a processor; how bad it is, all of it. */
static enum watch__does still_held(struct watch__hold *h,
                                   const struct watch__limits *limits,
                                   const struct watch__seen *seen)
{
    unsigned level;

    sum_up(h, seen, seen->now, seen->cpu);
    level = own(h) < limits->warn_ns ? 0 : h->held < limits->error_ns ? 1 : 2;
    if (level > h->level
        || (level && h->level
            && less(seen->now, h->reported_at) >= NS_PER_S)) {
        if (level > h->level)
            h->level = level;
        h->reported_at = seen->now;
        return DO_REPORT;
    }
    if (!level && h->delay >= limits->warn_ns && h->delay >= h->held / 2
        && (!h->starved_at || less(seen->now, h->starved_at) >= NS_PER_S)) {
        h->starved_at = seen->now;
        return DO_STARVED;
    }
    return DO_NOTHING;
}

/* Poked, and no answer yet: to whom does the time since the last look belong? */
static void account(struct watch__hold *h, const struct watch__seen *seen)
{
    uint64_t used = less(seen->cpu, h->cpu);

    switch (seen->class) {
    case C_RUNS:
        /* Ready all the time, as far as can be seen. */
        h->apart += less(seen->lost, used);
        h->stalled += less(less(seen->gap, seen->lost), used);
        break;
    case C_NATIVE:
        h->apart += less(seen->lost, used);
        break;
    default:
        /* Asleep in the emulator with a message for it: its scheduler is
         * offline or blocked by multi_scheduling, or the emulator waits for
         * something of its own.  No native code, no finding. */
        h->apart += less(seen->gap, used);
    }
}

enum watch__does watch__judge(struct watch__hold *h,
                              const struct watch__limits *limits,
                              const struct watch__seen *seen)
{
    enum watch__does does = DO_NOTHING;
    uint64_t used = less(seen->cpu, h->cpu);

    if (!h->seen_at) {
        gave_way(h, seen->now, seen->cpu);
    } else if (h->poked && seen->answered) {
        does = answered(h, seen);
    } else if (h->poked) {
        account(h, seen);
        if (seen->class == C_RUNS || seen->class == C_NATIVE)
            does = still_held(h, limits, seen);
    }
    if (!h->poked) {
        if (seen->class == C_IDLE || seen->class == C_UNKNOWN) {
            if (does == DO_NOTHING)
                gave_way(h, seen->now, seen->cpu);
        } else if (does == DO_NOTHING
                   && (seen->class == C_NATIVE || used > seen->gap / 2
                       || less(seen->now, h->seen_at)
                          > limits->period_ns + limits->period_ns / 2)) {
            h->seen_at += less(seen->lost, used);
            does = poke(h, limits, seen);
        }
    }
    h->cpu = seen->cpu;
    return does;
}
