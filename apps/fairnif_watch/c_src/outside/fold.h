/*
 * fold.h - stacks that are counted: a tree of names, of bounded size, and what is
 * written of it.
 */
#ifndef WATCH_FOLD_H
#define WATCH_FOLD_H

#include <stdio.h>

#include "read/common.h"

enum { WATCH__NODES = 1 << 18, WATCH__TEXT = 8 << 20, WATCH__DEPTH = 128,
       WATCH__IDLE = 33, WATCH__FRAME = 600 };

enum watch__colour { C_ROOT, C_ERLANG, C_LIBRARY, C_EMULATOR, C_COLOURS };

struct watch__node {            /* 0: none */
    uint32_t parent, name;      /* its offset in the text */
    uint8_t colour, depth;
    uint64_t self, total;       /* samples; total: watch__fold_end sums up */
    uint64_t at;                /* while it is drawn */
};

struct watch__fold {
    struct watch__node *nodes;  /* each behind its parent */
    uint32_t *names, *children; /* hash tables */
    char *text;
    uint32_t count, used, named;
    uint64_t samples;
    uint64_t period_ns, since_ns, took_ns;      /* since: 1970 */
    char title[WATCH__FRAME];
    struct { char name[40]; uint64_t samples; } idle[WATCH__IDLE];
    unsigned idle_count;        /* threads that slept idle, counted apart */
};

WATCH_HIDDEN bool watch__fold_open(struct watch__fold *f);
/* On one line, without what a format or a terminal has another use for; how long
 * it is. */
WATCH_HIDDEN size_t watch__fold_clean(char to[WATCH__FRAME], const char *name);
/* The frame `name` below that node (0: a root); 0: no room. */
WATCH_HIDDEN uint32_t watch__fold_node(struct watch__fold *f, uint32_t parent,
                                       const char *name,
                                       enum watch__colour colour);
/* A sample of that stack; 0: there was no room for it, it is `(other)'. */
WATCH_HIDDEN void watch__fold_count(struct watch__fold *f, uint32_t node);
WATCH_HIDDEN uint64_t watch__fold_other(const struct watch__fold *f);
WATCH_HIDDEN void watch__fold_end(struct watch__fold *f);

/* "root;frame;frame 12" lines; a page without scripts; pprof's protobuf. */
WATCH_HIDDEN void watch__write_collapsed(FILE *to, struct watch__fold *f);
WATCH_HIDDEN void watch__write_svg(FILE *to, struct watch__fold *f);
WATCH_HIDDEN void watch__write_pprof(FILE *to, struct watch__fold *f);

#endif
