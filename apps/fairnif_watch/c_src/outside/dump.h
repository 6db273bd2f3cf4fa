/*
 * dump.h - all threads of a node, looked at twice.
 */
#ifndef WATCH_DUMP_H
#define WATCH_DUMP_H

#include "outside/line.h"
#include "unwind/maps.h"

enum { WATCH__LONG_S = 1 };

struct watch__dump {
    int pid;
    char name[256];             /* of the node; "" */
    bool stops;                 /* threads may be stopped */
    bool is_core;
    int signal;                 /* of a core, that it died of; 0: not told */
    int sender;                 /* process that sent it; 0: none */
    bool has_address;           /* of the fault, */
    uint64_t address;           /* that is this one */
    char note[512];             /* what of it can't be read; "" */
    uint64_t between_ns;        /* the two looks */
    uint64_t longest_pause_ns;
    unsigned stopped;           /* how many threads were, in all */
    int tracer;                 /* process that traces it; 0: none */
    /* how many wait for a scheduler of that role; -1: not known */
    long waiting[R_DIRTY_IO + 1];
    char release[8];            /* "25"; "" */
    unsigned schedulers[R_DIRTY_IO + 1];        /* how many there are; 0: see
                                   lines */
    struct watch__vm *vm;       /* while it is looked at; NULL: none */
    char unseen[512];           /* what of Erlang is left out, and why; "" */
    struct watch__maps *maps;
    struct watch__line *lines;
    unsigned count, room;
};

/* Of what watch__source is. */
WATCH_HIDDEN bool watch__dump_start(struct watch__dump *d);
/* `seen': of each thread as soon as it was looked at, and twice.  What
 * watch__read reads of its stack then is what was copied. */
WATCH_HIDDEN void watch__dump_look(struct watch__dump *d, uint64_t between_ns,
                                   void (*seen)(struct watch__dump *d,
                                                struct watch__line *line,
                                                bool first));
/* Once more, of those of which the two did not say enough: schedulers that no
 * other process got for so long are blocked, whatever they are at. */
WATCH_HIDDEN void watch__dump_look_again(struct watch__dump *d,
                                         void (*seen)(struct watch__dump *d,
                                                      struct watch__line *line,
                                                      bool first));
WATCH_HIDDEN void watch__dump_sort(struct watch__dump *d);
WATCH_HIDDEN void watch__dump_free(struct watch__dump *d);
/* The thread's frames as they are now, without names. */
WATCH_HIDDEN void watch__dump_stack(struct watch__dump *d,
                                    struct watch__line *line,
                                    struct watch__stack *s);
/* Names and judges what is in `s`, for a core too. */
WATCH_HIDDEN void watch__dump_take(struct watch__dump *d,
                                   struct watch__line *line,
                                   struct watch__stack *s);
WATCH_HIDDEN struct watch__line *watch__dump_add(struct watch__dump *d,
                                                 int tid, const char *comm);

#endif
