/*
 * tally.c - which native functions the busy threads are at: one stack in
 * 1/sample_hz seconds, of the busy threads in turn.
 *
 * A table of fixed size; what is seen least makes room.  Counts are halved every
 * ten seconds, so that it shows what is, not what was.
 */
#include <stdio.h>
#include <string.h>

#include "look/tally.h"
#include "look/fair.h"
#include "look/stacks.h"
#include "unwind/name.h"

#define SAMPLE_WAIT_NS (1 * NS_PER_MS)
#define HALVE_NS (10 * NS_PER_S)

static void copy(char *to, size_t size, const char *from)
{
    snprintf(to, size, "%s", from);
}

static const char *base_name(const char *path)
{
    const char *slash = strrchr(path, '/');

    return slash ? slash + 1 : path;
}

static bool name_fair(struct watch__tally *x, const struct fair_running *fair)
{
    x->is_mfa = true;
    copy(x->library, sizeof x->library, fair->module);
    copy(x->name, sizeof x->name, fair->name);
    x->arity = fair->arity;
    return true;
}

static bool name_frame(struct watch *w, struct watch__tally *x)
{
    const struct watch__frame *found = watch__culprit(w->stack);
    struct watch__frame f;

    if (!found)
        return false;
    f = *found;
    watch__name(w->maps, &f);
    if (f.function[0]) {
        x->is_mfa = true;
        copy(x->library, sizeof x->library, f.module);
        copy(x->name, sizeof x->name, f.function);
        x->arity = f.arity;
        return true;
    }
    copy(x->library, sizeof x->library, f.library ? base_name(f.library)
         : "?");
    /* Of the function, where that is known: one name wherever in it we look. */
    if (f.callback)
        snprintf(x->name, sizeof x->name, "%s of %s", f.callback,
                 f.driver[0] ? f.driver : f.module);
    else if (f.symbol[0])
        copy(x->name, sizeof x->name, f.symbol);
    else
        snprintf(x->name, sizeof x->name, "0x%lx", (unsigned long)
                 (f.start && f.pc >= f.start ? f.offset - (f.pc - f.start)
                  : f.offset));
    return true;
}

static bool same(const struct watch__tally *a, const struct watch__tally *b)
{
    return a->is_mfa == b->is_mfa && a->arity == b->arity
        && strcmp(a->name, b->name) == 0 && strcmp(a->library, b->library) == 0;
}

/* Also while nothing is counted.  Under `shared`. */
static void halve(struct watch *w)
{
    uint64_t times = (w->now - w->tally_since) / HALVE_NS;

    if (times == 0)
        return;
    w->tally_since += times * HALVE_NS;
    times = times < 63 ? times : 63;
    w->tallied >>= times;
    w->other >>= times;
    for (unsigned i = 0; i < WATCH__TALLIES; i++)
        w->tallies[i].samples >>= times;
}

static void count(struct watch *w, const struct watch__tally *x)
{
    struct watch__tally *least = &w->tallies[0];

    for (unsigned i = 0; i < WATCH__TALLIES; i++) {
        struct watch__tally *have = &w->tallies[i];

        if (have->samples && same(have, x)) {
            have->samples++;
            return;
        }
        if (have->samples < least->samples)
            least = have;
    }
    w->other += least->samples;
    *least = *x;
    least->samples = 1;
}

static struct watch__thread *next_busy(struct watch *w)
{
    for (unsigned i = 0; i < w->count; i++) {
        struct watch__thread *t = &w->threads[w->sampled++ % w->count];

        if (t->class == C_RUNS && t->used > 0)
            return t;
    }
    return NULL;
}

void watch__sample(struct watch *w)
{
    struct watch__thread *t;
    struct watch__tally x;
    bool native;

    if (!w->config.sample_hz || w->now < w->next_sample || w->awaits_stack)
        return;
    w->next_sample = w->now + NS_PER_S / w->config.sample_hz;
    if (watch__try_lock(w)) {
        halve(w);
        watch__unlock(w);
    }
    t = next_busy(w);
    if (!t)
        return;
    memset(&x, 0, sizeof x);
    if (t->fair)
        native = name_fair(&x, t->fair);
    else if (watch__take_stack(w, t, SAMPLE_WAIT_NS))
        native = name_frame(w, &x);
    else
        return;
    ADD(w->counters.samples, 1);
    if (!watch__try_lock(w))
        return;                 /* somebody reads the table */
    w->tallied++;
    if (native)
        count(w, &x);
    watch__unlock(w);
}
