/*
 * unwind.h - from a snapshot to frames.
 */
#ifndef WATCH_UNWIND_H
#define WATCH_UNWIND_H

#include "unwind/maps.h"

/* Innermost first; answers how many. */
WATCH_HIDDEN unsigned watch__unwind(struct watch__maps *maps,
                                    const struct watch__snapshot *s,
                                    struct watch__frame frames[],
                                    unsigned max, enum watch__end *end,
                                    struct watch__regs *last);

/* The term of the process that the emulator runs (its c_p), where the frames
 * end in JIT code (END_JIT; `last` as watch__unwind gave it): one word that
 * looks like a local pid.  Else 0.  Whether such a process lives is the
 * caller's to ask.  docs/internals/watch-stacks.md: in which releases. */
WATCH_HIDDEN uint64_t watch__process_of(const struct watch__regs *last);
/* What the emulator keeps in registers while it calls C: its process, the
 * reductions that are left and the top of the heap.  Two calls seldom agree in
 * all three.  0: the frames do not tell. */
WATCH_HIDDEN void watch__erlang_of(const struct watch__regs *last,
                                   uint64_t *process, uint64_t *reductions,
                                   uint64_t *heap);

#endif
