/*
 * culprit.h - what a thread's frames say of what it is at.
 */
#ifndef WATCH_CULPRIT_H
#define WATCH_CULPRIT_H

#include "unwind/stack.h"

/* The outermost native frame: what the emulator called.  NULL: none. */
WATCH_HIDDEN const struct watch__frame *watch__culprit(
    const struct watch__stack *s);
/* The same where the frames go on to code of the emulator, or of its JIT: so it
 * is what the emulator called, and not just where the frames end.  NULL: not
 * known. */
WATCH_HIDDEN const struct watch__frame *watch__called(
    const struct watch__stack *s);
/* Of a thread that sleeps in that system call: does it in native code?  Else in
 * the emulator's own sleep, or its file or terminal driver's, or in what can not
 * be told from one. */
WATCH_HIDDEN bool watch__sleeps_native(const struct watch__stack *s,
                                       long syscall);
/* What a stack shows of the call that a thread is in. */
struct watch__shown {
    bool whole;                 /* the frames go down to Erlang code; then: */
    uint64_t process, reductions, heap; /* as that code had them */
    uint64_t library;           /* where it is mapped: of the outermost native
                                   frame; 0: there is none */
    uint64_t function;          /* where it begins: of that, or else of the
                                   outermost frame */
    bool sleeps;
    uint64_t cpu;               /* that the thread had used */
    uint64_t owner, since, yields;  /* as fairnif says; owner 0: it runs none */
};
/* Of the stack alone; `cpu`: what the thread has used.  False: it is in no call,
 * but in Erlang code, or between two processes and about to rest. */
WATCH_HIDDEN bool watch__shown_of(const struct watch__stack *s, uint64_t cpu,
                                  struct watch__shown *shown);
WATCH_HIDDEN bool watch__same_call(const struct watch__shown *a,
                                   const struct watch__shown *b);
/* How much of it was seen, or why it was not. */
WATCH_HIDDEN const char *watch__stack_note(const struct watch__stack *s);

#endif
