/*
 * suspect.h - the rules: who is a suspect, and what proves a block.
 */
#ifndef WATCH_SUSPECT_H
#define WATCH_SUSPECT_H

#include "unwind/culprit.h"

/* What a thread does, as far as one look shows. */
enum watch__class {
    C_UNKNOWN,
    C_RUNS,
    C_IDLE,                     /* sleeps in the emulator's own code */
    C_NATIVE                    /* sleeps in native code */
};

/* One look at a thread. */
struct watch__seen {
    uint64_t now;
    uint64_t gap;               /* since the last look */
    uint64_t lost;              /* of it: the whole process stood still */
    uint64_t cpu;               /* used ever */
    uint64_t waited;            /* for a processor, ever; NEVER: not known */
    enum watch__class class;
    bool answered;              /* the reply came */
    uint64_t reply_at, reply_cpu;
};

enum watch__does {
    DO_NOTHING,
    DO_PROBE,
    DO_SHOW,                    /* its stack is wanted: watch__confirm */
    DO_REPORT,                  /* confirmed: `level` has gone up, or a second */
    DO_STARVED,
    DO_UNBLOCK                  /* what was reported has come to its end */
};

struct watch__limits {
    uint64_t period_ns, warn_ns, error_ns;
    uint64_t apart_ns;          /* two stacks that prove it; at most warn */
};

/* Whether a thread gives way. */
struct watch__block {
    uint64_t seen_at;           /* last time it was seen giving way */
    uint64_t seen_cpu;          /* what it had used by then */
    uint64_t cpu;               /* at the last look */
    bool slept_native;          /* then */
    bool probed;                 /* and has not answered */
    uint64_t begin;             /* of what blocks it, when probed */
    uint64_t begin_cpu, begin_waited;
    uint64_t counted;           /* since the probe: evidence.  CPU time used, or
                                   asleep in native code */
    uint64_t stalled;           /* since: ready, but on no processor */
    uint64_t unknown_ns;        /* since: time of which nothing is known */
    bool is_shown, confirmed;
    struct watch__shown shown;  /* by the stack that the next one is blocked */
    uint64_t shown_counted;     /* against */
    uint64_t reported_at;       /* 0: not */
    uint64_t starved_at;        /* last told, at most once a second */
    uint64_t untold_delay;      /* of earlier probes since then */
    unsigned level;             /* that was reported: 0, 1 warn, 2 error */
    /* for the report */
    uint64_t blocked, used, delay;
};

WATCH_HIDDEN enum watch__does watch__judge(struct watch__block *h,
                                           const struct watch__limits *limits,
                                           const struct watch__seen *seen);
/* What was to be reported was not: it is to be again. */
WATCH_HIDDEN void watch__report_again(struct watch__block *h);
/* It was seen not to be blocked after all: other processes ran. */
WATCH_HIDDEN void watch__dismiss(struct watch__block *h, uint64_t now,
                                 uint64_t cpu);
/* Of a stack that was taken since the probe, and no answer came before it. */
enum watch__confirms {
    CONFIRM_NOT_YET,
    CONFIRM_OTHER,              /* it is in another call than it was */
    CONFIRM_DONE
};
WATCH_HIDDEN enum watch__confirms watch__confirm(struct watch__block *h,
                                                 const struct watch__limits *limits,
                                                 const struct watch__shown *shown,
                                                 uint64_t now, uint64_t cpu);
/* Of what is confirmed: DO_REPORT or DO_NOTHING. */
WATCH_HIDDEN enum watch__does watch__due(struct watch__block *h,
                                         const struct watch__limits *limits,
                                         uint64_t now);

/* How often all are looked at. */
struct watch__pace {
    uint64_t look_cpu;          /* of a look, on average */
    unsigned saved;             /* looks, while nobody worked */
};

/* ns to the next look. `used`: CPU time of the last one, or WATCH__NEVER. */
WATCH_HIDDEN uint64_t watch__pace(struct watch__pace *p, uint64_t period,
                                  uint64_t used, bool idle, bool suspects);

#endif
