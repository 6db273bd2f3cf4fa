/*
 * watch.h - the thread.
 */
#ifndef WATCH_WATCH_H
#define WATCH_WATCH_H

#include "look/state.h"

WATCH_HIDDEN void watch__wake(struct watch *w);
WATCH_HIDDEN bool watch__init(struct watch *w,
                              const struct watch__config *config,
                              const struct watch__tids *tids);
enum watch__started { START_OK, START_BUSY, START_FAILED };
WATCH_HIDDEN enum watch__started watch__start(struct watch *w);
/* Waits for the thread, and that nothing of the library is in use by any; may
 * be called by several, and again. */
WATCH_HIDDEN void watch__stop(struct watch *w);
WATCH_HIDDEN void watch__ask_to_stop(struct watch *w);     /* does not wait */
WATCH_HIDDEN void watch__free(struct watch *w);

#endif
