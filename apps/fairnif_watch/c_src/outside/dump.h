/*
 * dump.h - all threads of a node, looked at twice.
 */
#ifndef WATCH_DUMP_H
#define WATCH_DUMP_H

#include "outside/role.h"
#include "read/task.h"
#include "unwind/culprit.h"
#include "unwind/maps.h"

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
    bool same;                  /* call, at both looks */
    int holder;                 /* thread that has the lock; 0: not known */
    enum watch__taken taken;
    enum watch__end end;
    const char *note;           /* of the stack */
    struct watch__regs regs, last;      /* innermost, outermost */
    struct watch__shown shown;
    struct watch__frame *frames;        /* with names */
    unsigned count;
    const struct watch__frame *culprit; /* the emulator called it; NULL */
    struct watch__process_seen *process;        /* that it runs; NULL */
    long queue;                 /* processes that wait for it; -1: not known */
};

struct watch__dump {
    int pid;
    char name[256];             /* of the node; "" */
    bool stops;                 /* threads may be stopped */
    bool is_core;
    int signal;                 /* of a core, that it died of */
    uint64_t between_ns;        /* the two looks */
    uint64_t longest_pause_ns;
    unsigned stopped;           /* how many threads were, in all */
    int tracer;                 /* process that traces it; 0: none */
    /* how many wait for a scheduler of that role; -1: not known */
    long waiting[R_DIRTY_IO + 1];
    char release[8];            /* "25"; "" */
    const char *unseen[32];     /* what of Erlang is left out, and why */
    struct watch__maps *maps;
    struct watch__line *lines;
    unsigned count, room;
};

/* Of what watch__source is. */
WATCH_HIDDEN bool watch__dump_start(struct watch__dump *d);
WATCH_HIDDEN void watch__dump_look(struct watch__dump *d, uint64_t between_ns);
WATCH_HIDDEN void watch__dump_free(struct watch__dump *d);
/* Unwinds, names and judges what is in `s`, for a core too. */
WATCH_HIDDEN void watch__dump_take(struct watch__dump *d,
                                   struct watch__line *line,
                                   struct watch__stack *s);
WATCH_HIDDEN struct watch__line *watch__dump_add(struct watch__dump *d,
                                                 int tid, const char *comm);

#endif
