/*
 * sample.h - looks at a node's threads again and again, and counts their stacks.
 */
#ifndef WATCH_SAMPLE_H
#define WATCH_SAMPLE_H

#include "outside/dump.h"
#include "outside/fold.h"

enum { WATCH__PAUSES = 8 * 40 };        /* eight to a doubling, from 1 ns on */

struct watch__track;

struct watch__sampler {
    struct watch__dump d;
    struct watch__fold fold;
    struct watch__track *track; /* one for each of d.lines */
    unsigned tracked;
    struct watch__stack *stack;
    unsigned next;              /* of d.lines: the thread listed next, mostly */
    uint64_t sum;               /* over the lists of modules, when last read */
    uint64_t again_at;          /* they, and threads, are read again by then, */
    uint64_t unknown_at;        /* or where code is unknown, not before then */
    uint64_t lost;              /* samples of threads that could not be stopped */
    uint64_t stops, longest_ns, pauses[WATCH__PAUSES];
};

/* Of what watch__source is, with d.pid set. */
WATCH_HIDDEN bool watch__sampler_open(struct watch__sampler *r);
/* One sample of each thread; false: the node has ended. */
WATCH_HIDDEN bool watch__sampler_round(struct watch__sampler *r);
/* Fills in what slept idle. */
WATCH_HIDDEN void watch__sampler_end(struct watch__sampler *r);
/* No pause of that many thousandths of them was longer. */
WATCH_HIDDEN uint64_t watch__sampler_pause(const struct watch__sampler *r,
                                           unsigned thousandths);

#endif
