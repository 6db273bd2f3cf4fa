/*
 * event.h - one event at a time, in w->env.
 */
#ifndef WATCH_EVENT_H
#define WATCH_EVENT_H

#include "look/state.h"

WATCH_HIDDEN bool watch__admit(struct watch *w);
/* w->stack is of it.  Not `now`: it is kept for the end. */
WATCH_HIDDEN void watch__send_blocked(struct watch *w, struct watch__thread *t,
                                   bool now);
WATCH_HIDDEN void watch__send_unblocked(struct watch *w,
                                       struct watch__thread *t);
WATCH_HIDDEN void watch__send_starved(struct watch *w,
                                      struct watch__thread *t);
WATCH_HIDDEN void watch__send_late(struct watch *w, uint64_t gap,
                                   uint64_t throttled, uint64_t stolen);
WATCH_HIDDEN void watch__send_looked(struct watch *w, struct watch__thread *t,
                                     ERL_NIF_TERM ref);
WATCH_HIDDEN void watch__send_suppressed(struct watch *w);

#endif
