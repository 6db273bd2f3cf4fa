/*
 * match.h - one pattern and one subject.
 */
#ifndef MATCH_H
#define MATCH_H

#include "script.h"

enum { MAX_CAPTURES = 32 };
enum { OPEN = -1, POSITION = -2 };

struct match {
    lua_State *L;
    const char *subject, *end;
    const char *pattern, *pattern_end;  /* behind its ^ */
    bool anchored;                      /* it has one */
    int nested;
    size_t steps;
    int count;
    struct {
        const char *from;
        ptrdiff_t size;                 /* or OPEN, POSITION */
    } captures[MAX_CAPTURES];
};

/* All may raise, and pause. */

/* Where the match that begins at `s' ends, or NULL. */
const char *match_at(struct match *m, const char *s);

/* The first one from `*start' on, which is where it begins then. */
const char *match_from(struct match *m, const char **start);

/* Of work besides. */
void match_step(struct match *m);

#endif
