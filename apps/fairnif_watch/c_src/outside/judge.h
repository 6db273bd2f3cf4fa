/*
 * judge.h - what a thread does, and who makes it: from its frames.
 */
#ifndef WATCH_JUDGE_H
#define WATCH_JUDGE_H

#include "outside/line.h"

enum { WATCH__LABEL = 768 };

/* Sets doing, culprit and holder. */
WATCH_HIDDEN void watch__judge_line(struct watch__line *line,
                                    bool sleeps_native);
/* A symbol as people write it: of C++ and Rust without what says the types. */
WATCH_HIDDEN void watch__plain(const char *symbol, char to[WATCH__LABEL]);
/* A frame, and a culprit, as the watch calls them. */
WATCH_HIDDEN void watch__label(const struct watch__frame *f,
                               char to[WATCH__LABEL]);
WATCH_HIDDEN const char *watch__culprit_kind(const struct watch__frame *f);
WATCH_HIDDEN void watch__culprit_name(const struct watch__frame *f,
                                      char to[WATCH__LABEL]);

#endif
