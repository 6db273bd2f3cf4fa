/*
 * verdict.h - what is wrong with a node, in sentences.
 */
#ifndef WATCH_VERDICT_H
#define WATCH_VERDICT_H

#include "outside/dump.h"

enum { WATCH__SENTENCES = 16, WATCH__SENTENCE = 1200,
       WATCH__NOTHING = 0, WATCH__FOUND = 1, WATCH__USAGE = 2,
       WATCH__UNSEEN = 3 };     /* exit codes: the watch's */

struct watch__verdict {
    int exit_code;
    unsigned count;             /* at least 1 */
    char sentence[WATCH__SENTENCES][WATCH__SENTENCE];
};

WATCH_HIDDEN void watch__verdict(const struct watch__dump *d,
                               struct watch__verdict *v);
/* Was it in the same call twice, as far as the frames show? */
WATCH_HIDDEN bool watch__is_stuck(const struct watch__line *line);
/* "312 ms", "1.5 s", "3 min". */
WATCH_HIDDEN const char *watch__time(uint64_t ns, char to[32]);
/* "scheduler 1", "dirty I/O 3", "thread foo". */
WATCH_HIDDEN const char *watch__thread_name(const struct watch__line *line,
                                            char to[64]);
WATCH_HIDDEN const struct watch__line *watch__thread_of(
    const struct watch__dump *d, int tid);

#endif
