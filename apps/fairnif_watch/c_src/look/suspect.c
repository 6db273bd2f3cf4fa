/*
 * suspect.c - the rules: from what one look at a scheduler thread shows,
 * whether it gives way, is blocked, or is not given a processor.
 *
 * Pure: no clock, no system call, no VM.  A thread that may be asleep in the
 * emulator is never probed.
 *
 *   seen giving way --(busy, or asleep in native code)--> probed
 *        ^                                                  |  no answer
 *        |                                                  v
 *        '---------------- answered <--------------- its stack is taken, twice:
 *                                                    the same call: confirmed, told
 *
 * Only what comes after the probe is evidence: CPU time that the thread used,
 * and time that it slept in native code.  That it used any says that it was
 * given a processor, and that the same call is seen again says that it was not
 * others who took turns while the responder waited elsewhere.
 */
#include "look/suspect.h"

void watch__report_again(struct watch__block *h)
{
    h->reported_at = 0;
    h->level = 0;
}

static void gave_way(struct watch__block *h, uint64_t at, uint64_t cpu)
{
    h->seen_at = at;
    h->seen_cpu = cpu;
    h->probed = false;
    watch__report_again(h);
}

/* Nothing is known of what it is blocked by, from here on. */
static void clear_evidence(struct watch__block *h)
{
    h->counted = h->stalled = h->unknown_ns = 0;
    h->is_shown = h->confirmed = false;
}

void watch__dismiss(struct watch__block *h, uint64_t now, uint64_t cpu)
{
    h->begin = now;
    h->begin_cpu = cpu;
    clear_evidence(h);
    watch__report_again(h);
}

/* When what is to be probed for began.  It has used the processor for `used` of
 * the time since it was last seen giving way.  Slept before: it began when it
 * woke up.  Busy all along: anywhere in between, so the middle is the least
 * wrong.  Where we looked late it is not known, and not claimed. */
static uint64_t began(const struct watch__block *h,
                      const struct watch__limits *limits,
                      const struct watch__seen *seen)
{
    uint64_t since = watch__less(seen->now, h->seen_at);
    uint64_t used = watch__less(seen->cpu, h->seen_cpu);

    if (seen->class == C_RUNS && used < since - since / 4)
        since = used;
    else
        since /= 2;
    if (since > 4 * limits->period_ns)
        since = limits->period_ns;
    return seen->now - since;
}

static enum watch__does begin_probe(struct watch__block *h,
                                   const struct watch__limits *limits,
                                   const struct watch__seen *seen)
{
    h->begin = began(h, limits, seen);
    h->begin_cpu = seen->class == C_RUNS
        ? watch__less(seen->cpu, watch__less(seen->now, h->begin)) : seen->cpu;
    if (h->begin_cpu < h->seen_cpu)
        h->begin_cpu = h->seen_cpu;
    h->begin_waited = seen->waited;
    clear_evidence(h);
    h->probed = true;
    return DO_PROBE;
}

static void sum_up(struct watch__block *h, const struct watch__seen *seen,
                   uint64_t end, uint64_t end_cpu)
{
    uint64_t waited = seen->waited != WATCH__NEVER
        && h->begin_waited != WATCH__NEVER
        ? watch__less(seen->waited, h->begin_waited) : 0;

    h->blocked = watch__less(watch__less(end, h->begin), h->unknown_ns);
    h->used = watch__less(end_cpu, h->begin_cpu);
    h->delay = waited > h->stalled ? waited : h->stalled;
    if (h->delay > watch__less(h->blocked, h->used))
        h->delay = watch__less(h->blocked, h->used);
}

static enum watch__does answered(struct watch__block *h,
                                 const struct watch__seen *seen)
{
    bool reported = h->reported_at != 0;
    uint64_t at = seen->reply_at < seen->now ? seen->reply_at : seen->now;

    sum_up(h, seen, at, seen->reply_cpu);
    h->untold_delay += h->delay;
    gave_way(h, at, seen->reply_cpu);
    return reported ? DO_UNBLOCK : DO_NOTHING;
}

/* -- the same call ------------------------------------------------------------- */

/* Somewhere in the emulator, called by nobody knows whom. */
static bool is_emulator_only(const struct watch__shown *s)
{
    return !s->owner && !s->whole && !s->library && !s->sleeps;
}

/* A stack, taken after the probe, and no answer after that.  Proven, once the
 * second of two that are a period apart shows the same call.  If it shows another
 * one, the block begins anew.  Where stacks say nothing (an emulator without
 * JIT, a libc without unwind tables) the clocks are all there is. */
enum watch__confirms watch__confirm(struct watch__block *h,
                                    const struct watch__limits *limits,
                                    const struct watch__shown *shown,
                                    uint64_t now, uint64_t cpu)
{
    if (is_emulator_only(shown)) {
        h->confirmed = h->counted >= limits->error_ns;
        return h->confirmed ? CONFIRM_DONE : CONFIRM_NOT_YET;
    }
    if (!h->is_shown || !watch__same_call(&h->shown, shown)) {
        bool other = h->is_shown;

        if (other)
            watch__dismiss(h, now, cpu);
        h->is_shown = true;
        h->shown = *shown;
        h->shown_counted = h->counted;
        return other ? CONFIRM_OTHER : CONFIRM_NOT_YET;
    }
    /* The better of the two: a later one is held against it. */
    if (shown->whole && !h->shown.whole)
        h->shown = *shown;
    h->confirmed = watch__less(h->counted, h->shown_counted) >= limits->apart_ns
        && h->counted >= limits->warn_ns;
    return h->confirmed ? CONFIRM_DONE : CONFIRM_NOT_YET;
}

/* -- looks ---------------------------------------------------------------------- */

/* The stack that proves it is taken when the block may be told: the first one a
 * period before. */
static bool is_to_show(const struct watch__block *h,
                       const struct watch__limits *limits)
{
    if (h->is_shown)
        return watch__less(h->counted, h->shown_counted) >= limits->apart_ns
            && h->counted >= limits->warn_ns;
    return h->counted > 0 && h->counted + limits->apart_ns >= limits->warn_ns;
}

/* What is confirmed is told of, when it has become worse, and once a second. */
enum watch__does watch__due(struct watch__block *h,
                            const struct watch__limits *limits, uint64_t now)
{
    unsigned level = h->blocked < limits->error_ns ? 1 : 2;

    if (level <= h->level && watch__less(now, h->reported_at) < NS_PER_S)
        return DO_NOTHING;
    if (level > h->level)
        h->level = level;
    h->reported_at = now;
    return DO_REPORT;
}

static enum watch__does still_blocked(struct watch__block *h,
                                   const struct watch__limits *limits,
                                   const struct watch__seen *seen)
{
    sum_up(h, seen, seen->now, seen->cpu);
    if (h->confirmed)
        return watch__due(h, limits, seen->now);
    /* First: one without a processor does not show its stack either. */
    if (h->delay >= limits->warn_ns && h->delay >= h->blocked / 2
        && (!h->starved_at || watch__less(seen->now, h->starved_at) >= NS_PER_S)) {
        h->starved_at = seen->now;
        return DO_STARVED;
    }
    return is_to_show(h, limits) ? DO_SHOW : DO_NOTHING;
}

/* Probed, and no answer yet: to whom does the time since the last look
 * belong? */
static void account(struct watch__block *h, const struct watch__seen *seen)
{
    uint64_t used = watch__less(seen->cpu, h->cpu);

    switch (seen->class) {
    case C_RUNS:
        /* Ready all the time, as far as can be seen. */
        h->counted += used;
        h->unknown_ns += watch__less(seen->lost, used);
        h->stalled += watch__less(watch__less(seen->gap, seen->lost), used);
        break;
    case C_NATIVE:
        /* When it fell asleep is not known. */
        h->counted += h->slept_native ? watch__less(seen->gap, seen->lost) : used;
        h->unknown_ns += watch__less(seen->lost, used);
        break;
    default:
        /* Asleep in the emulator with a message for it: its scheduler is
         * offline or blocked by multi_scheduling, or the emulator waits for
         * something of its own.  No native code, no finding. */
        h->unknown_ns += watch__less(seen->gap, used);
    }
}

enum watch__does watch__judge(struct watch__block *h,
                              const struct watch__limits *limits,
                              const struct watch__seen *seen)
{
    enum watch__does does = DO_NOTHING;
    uint64_t used = watch__less(seen->cpu, h->cpu);

    if (!h->seen_at) {
        gave_way(h, seen->now, seen->cpu);
    } else if (h->probed && seen->answered) {
        does = answered(h, seen);
    } else if (h->probed) {
        account(h, seen);
        if (seen->class == C_RUNS || seen->class == C_NATIVE)
            does = still_blocked(h, limits, seen);
    }
    if (!h->probed) {
        if (seen->class == C_IDLE || seen->class == C_UNKNOWN) {
            if (does == DO_NOTHING)
                gave_way(h, seen->now, seen->cpu);
        } else if (does == DO_NOTHING
                   && (seen->class == C_NATIVE || used > seen->gap / 2
                       || watch__less(seen->now, h->seen_at)
                          > limits->period_ns + limits->period_ns / 2)) {
            h->seen_at += watch__less(seen->lost, used);
            does = begin_probe(h, limits, seen);
        }
    }
    h->cpu = seen->cpu;
    h->slept_native = seen->class == C_NATIVE;
    return does;
}

/* -- how often ------------------------------------------------------------------ */

enum {
    LONGEST = 4,                /* periods: where nobody works, or a look is
                                   expensive, it is less often, but for that */
    SAVED = 4,                  /* at most so many are spent later */
    SHARE = 250                 /* of a processor looks may use 1/250 */
};

/* What a look costs depends on the machine, on how busy it is, and on how many
 * schedulers work.  One that may be blocked is looked at again soon: what is to
 * be told of may be over else.  So is one that begins to work where nobody did:
 * looks that were saved are spent, no more of them. */
uint64_t watch__pace(struct watch__pace *p, uint64_t period, uint64_t used,
                     bool idle, bool suspects)
{
    uint64_t expensive;
    bool soon = suspects;

    if (idle) {
        p->saved += p->saved < SAVED;
    } else if (p->saved > 0) {
        p->saved--;
        soon = true;
    }
    if (used != WATCH__NEVER)
        p->look_cpu += used / 16 - p->look_cpu / 16;
    expensive = p->look_cpu * SHARE;
    if (idle || expensive > LONGEST * period)
        expensive = LONGEST * period;
    return expensive > period && !soon ? expensive : period;
}
