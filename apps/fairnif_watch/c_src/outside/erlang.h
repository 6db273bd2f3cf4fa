/*
 * erlang.h - the Erlang side of a dump: processes and queues, as far as vm.c can
 * show that it reads them rightly.
 */
#ifndef WATCH_ERLANG_H
#define WATCH_ERLANG_H

#include "outside/dump.h"

enum { WATCH__MFA = 560, WATCH__CALLS = 32 };

struct watch__process_seen {
    char pid[32];
    char name[256];             /* registered; "" */
    char status[16];
    char current[WATCH__MFA];   /* where it is, m:f/1; "" */
    char initial[WATCH__MFA];   /* where it began */
    char called[WATCH__MFA];    /* what it called last, and may be in; "" */
    int64_t messages, heap;     /* waiting; words.  -1: not known */
    unsigned count;
    char stack[WATCH__CALLS][WATCH__MFA];   /* who waits for `current' */
};

/* Before the looks, which call the second, and when they are over: fills in what
 * is known, and why the rest is not. */
WATCH_HIDDEN void watch__erlang_open(struct watch__dump *d);
WATCH_HIDDEN void watch__erlang_seen(struct watch__dump *d,
                                     struct watch__line *line, bool first);
WATCH_HIDDEN void watch__erlang_close(struct watch__dump *d);

#endif
