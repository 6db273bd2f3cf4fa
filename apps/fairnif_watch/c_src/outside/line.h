/*
 * line.h - one thread of a node, as it was seen.
 */
#ifndef WATCH_LINE_H
#define WATCH_LINE_H

#include "outside/role.h"
#include "read/task.h"
#include "unwind/culprit.h"

enum watch__doing {
    DOING_UNKNOWN,              /* `note` of its stack says why */
    DOING_ERLANG, DOING_NATIVE, /* runs Erlang code; native code */
    DOING_EMULATOR,             /* runs the emulator's own */
    DOING_IDLE,                 /* sleeps, and waits for work */
    DOING_WAITS,                /* native code, asleep in a system call, */
    DOING_LOCK,                 /* for a lock */
    DOING_STOPPED,              /* by a signal, or a debugger */
    DOING_DIED, DOINGS          /* of a core: of a signal */
};
extern WATCH_HIDDEN const char *const watch__doing_names[DOINGS];

struct watch__process_seen;

struct watch__line {            /* one thread */
    int tid;
    char comm[32];
    enum watch__role role;
    unsigned number;            /* 0: none */
    enum watch__doing doing;
    char state;                 /* as /proc/PID/task/T/stat says */
    enum watch__run run;
    struct watch__place place;
    uint64_t looked_at, ran_ns; /* CPU time; NEVER: not known */
    int cpu;                    /* thousandths of one, between the looks; -1 */
    uint64_t since_ns;          /* in this call, at least; 0: not known */
    bool in_call;               /* at the last look */
    bool has_died;              /* and with it the node */
    bool same;                  /* call, at both looks, as far as seen */
    bool proven;                /* that it is: the frames were whole, or it has
                                   slept all along, or see `unmoved' */
    int holder;                 /* thread that has the lock; 0: not known */
    enum watch__taken taken;
    enum watch__end end;
    const char *note;           /* of the stack */
    struct watch__regs regs, last;      /* innermost, outermost */
    struct watch__shown shown;
    struct watch__frame *frames;        /* with names */
    unsigned count;
    const struct watch__frame *culprit; /* the emulator called it; NULL */
    uint64_t ran, ran_reductions;       /* at the first look: which process; it
                                   had used.  0: not known */
    bool unmoved;               /* both are the same still: no other process ran
                                   there since */
    struct watch__process_seen *process;        /* that it runs; NULL */
    long queue;                 /* processes that wait for it; -1: not known */
};

#endif
