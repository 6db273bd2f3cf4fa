/*
 * gate.h - who of the pool's threads may compute.  All but fair__gate_run is
 * called with the waiting lock held.
 */
#ifndef FAIR_GATE_H
#define FAIR_GATE_H

#include "base/locks.h"
#include "fairnif_private.h"
#include "thread/thread.h"

enum { FAIR__THREADS_MOST = 1024 };     /* each has a seat */

/* Its thread, for the kernel. */
FAIR_HIDDEN void fair__gate_seat(unsigned seat, int os_id);
/* A keeper is there, which comes by itself, and calls the next thread. */
FAIR_HIDDEN bool fair__gate_is_kept(struct fair__job *first);
/* What this thread may take from the queue, of which these are the first job and
 * the number of threads; NULL: nothing.  Releases the lock while it waits until
 * there is something, as the keeper; one is enough. */
FAIR_HIDDEN struct fair__job *fair__gate_pass(struct fair__job *const *first,
                                              const unsigned *threads);
FAIR_HIDDEN void fair__gate_enter(unsigned seat, struct fair__thread *record,
                                  const struct fair__job *job);
/* Runs it, which may free it. */
FAIR_HIDDEN void fair__gate_run(unsigned seat, struct fair__job *job);
FAIR_HIDDEN void fair__gate_leave(unsigned seat);

#endif
