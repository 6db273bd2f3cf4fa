/*
 * stacks.c - what a thread is at, by its stack: whether it sleeps idle or in
 * native code, whose native code, and for which process.
 *
 * Slow beside a tick: a stack costs some tens of microseconds, a signal what
 * the thread takes to get a processor, names more.  So a sleep is looked at
 * once, and names are found for what is told.
 */
#include <string.h>

#include "look/stacks.h"
#include "look/fair.h"
#include "read/proc.h"
#include "unwind/unwind.h"

static bool unwind_taken(struct watch *w)
{
    struct watch__stack *s = w->stack;

    s->count = 0;
    s->end = END_WHOLE;
    memset(&s->last, 0, sizeof s->last);
    if (s->taken == TAKEN)
        s->count = watch__unwind(w->maps, &s->snapshot, s->frames,
                                 WATCH__FRAMES, &s->end, &s->last);
    else
        ADD(w->counters.failed_stacks, 1);
    return s->count > 0;
}

void watch__open_syscall(struct watch__thread *t)
{
    watch__open_once(&t->syscall_fd, t->tid, "syscall");
}

/* Takes and unwinds the stack of a thread, whatever it does; false: it could
 * not be had, and w->stack->taken says why. */
bool watch__take_stack(struct watch *w, struct watch__thread *t,
                       uint64_t wait_ns)
{
    struct watch__stack *s = w->stack;

    s->taken = TAKEN_BUSY;
    for (unsigned i = 0; i < 3 && s->taken == TAKEN_BUSY; i++) {
        struct watch__place place;

        watch__open_syscall(t);
        if (watch__where(t->syscall_fd, &place) == RUN_SLEEPS) {
            t->run = RUN_SLEEPS;
            t->place = place;
            s->taken = watch__take_sleeping(&s->snapshot, t->tid);
        } else {
            t->run = RUN_RUNNING;
            s->taken = watch__take_running(&s->snapshot, t->tid, wait_ns);
            ADD(w->counters.signals, 1);
        }
    }
    return unwind_taken(w);
}

/* The stack that a thread showed since it was asked in vain. */
bool watch__take_late_stack(struct watch *w, struct watch__thread *t)
{
    struct watch__stack *s = w->stack;

    s->taken = watch__take_late(&s->snapshot, t->tid);
    if (s->taken != TAKEN)
        return false;
    t->run = RUN_RUNNING;
    return unwind_taken(w);
}

/* Whether a thread that sleeps at t->place does so in native code. */
enum watch__class watch__classify(struct watch *w, struct watch__thread *t)
{
    struct watch__stack *s = w->stack;

    ADD(w->counters.classified, 1);
    s->taken = watch__take_sleeping(&s->snapshot, t->tid);
    if (s->taken == TAKEN_BUSY || s->taken == TAKEN_GONE)
        return C_RUNS;          /* by now */
    unwind_taken(w);
    return watch__sleeps_native(s, t->place.syscall) ? C_NATIVE : C_IDLE;
}

/* What the stack shows of the call that the thread is in.  False: it is in none,
 * but in Erlang code, or between two processes and about to rest. */
bool watch__call_of(const struct watch *w, const struct watch__thread *t,
                  struct watch__shown *shown)
{
    bool is_call = watch__shown_of(w->stack, t->cpu, shown);

    if (t->fair) {
        shown->owner = t->fair->owner.pid;
        shown->since = t->fair->since_ns;
        shown->yields = t->fair->yields;
    }
    return t->fair || is_call;
}

/* The process that the emulator runs, where the stack tells and it lives. */
bool watch__process(const struct watch__stack *s, ErlNifPid *pid)
{
    uint64_t term = s->count > 0 && s->end == END_JIT
        ? watch__process_of(&s->last) : 0;

    pid->pid = (ERL_NIF_TERM)term;
    return term && enif_is_process_alive(NULL, pid);
}
