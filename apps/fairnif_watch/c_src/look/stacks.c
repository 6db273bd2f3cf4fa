/*
 * stacks.c - what a thread is at, by its stack: whether it sleeps idle or in
 * native code, whose native code, and for which process.
 *
 * Slow beside a tick: a stack costs some tens of microseconds, a signal what
 * the thread takes to get a processor, names more.  So a sleep is looked at
 * once, and names are found for what is told.
 */
#include <string.h>
#include <sys/syscall.h>

#include "look/stacks.h"
#include "look/fair.h"
#include "read/proc.h"
#include "unwind/unwind.h"

/* What an idle scheduler sleeps in. */
static bool is_idle_call(long number)
{
    switch (number) {
    case SYS_futex:
    case SYS_ppoll:
    case SYS_pselect6:
    case SYS_epoll_pwait:
#ifdef SYS_poll
    case SYS_poll:
    case SYS_select:
    case SYS_epoll_wait:
#endif
        return true;
    default:
        return false;
    }
}

static bool is_native(const struct watch__frame *f)
{
    return f->in == IN_LIBRARY || f->in == IN_FAIRNIF;
}

/* The outermost native frame: what the emulator called.  NULL: none. */
const struct watch__frame *watch__culprit(const struct watch__stack *s)
{
    for (unsigned i = s->count; i-- > 0; )
        if (is_native(&s->frames[i]))
            return &s->frames[i];
    return NULL;
}

/* The same where the frames go on to code of the emulator, or of its JIT: so it
 * is what the emulator called, and not just where the frames end.  NULL: not
 * known. */
const struct watch__frame *watch__called(const struct watch__stack *s)
{
    const struct watch__frame *f = watch__culprit(s);

    if (f && (s->end == END_JIT
              || (f + 1 < s->frames + s->count && f[1].in == IN_EMULATOR)))
        return f;
    return NULL;
}

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

/* Called by the emulator; or the stack ends in a libc without unwind tables,
 * as musl is, which tells as much as none. */
static bool leads_to_emulator(const struct watch__stack *s)
{
    for (unsigned i = 0; i < s->count; i++)
        if (s->frames[i].in == IN_EMULATOR || s->frames[i].in == IN_JIT)
            return true;
    return s->end == END_NO_TABLE;
}

/* Whether a thread that sleeps at t->place does so in native code. */
enum watch__class watch__classify(struct watch *w, struct watch__thread *t)
{
    struct watch__stack *s = w->stack;

    ADD(w->counters.classified, 1);
    s->taken = watch__take_sleeping(&s->snapshot, t->tid);
    if (s->taken == TAKEN_BUSY || s->taken == TAKEN_GONE)
        return C_RUNS;          /* by now */
    if (unwind_taken(w) && (watch__culprit(s) || !leads_to_emulator(s)))
        return C_NATIVE;
    /* The emulator's own sleep, or its file or terminal driver's, or what can
     * not be told from one. */
    return t->place.syscall < 0 || is_idle_call(t->place.syscall)
        ? C_IDLE : C_NATIVE;
}

/* What the stack shows of the call that the thread is in.  False: it is in none,
 * but in Erlang code, or between two processes and about to rest. */
bool watch__call_of(const struct watch *w, const struct watch__thread *t,
                  struct watch__shown *shown)
{
    const struct watch__stack *s = w->stack;
    const struct watch__frame *f = watch__culprit(s);
    unsigned last = s->count - 1;

    *shown = (struct watch__shown){
        .sleeps = s->taken == TAKEN && s->snapshot.slept, .cpu = t->cpu
    };
    if (t->fair) {
        shown->owner = t->fair->owner.pid;
        shown->since = t->fair->since_ns;
        shown->yields = t->fair->yields;
    }
    if (s->count == 0)
        return true;
    shown->whole = s->end == END_JIT && last > 0;
    if (shown->whole)
        watch__erlang_of(&s->last, &shown->process, &shown->reductions,
                         &shown->heap);
    if (f)
        shown->library = f->pc - f->offset;
    else
        f = &s->frames[shown->whole ? last - 1 : last];
    shown->function = f->start;
    return t->fair || s->end != END_JIT || last > 0;
}

/* The process that the emulator runs, where the stack tells and it lives. */
bool watch__process(const struct watch__stack *s, ErlNifPid *pid)
{
    uint64_t term = s->count > 0 && s->end == END_JIT
        ? watch__process_of(&s->last) : 0;

    pid->pid = (ERL_NIF_TERM)term;
    return term && enif_is_process_alive(NULL, pid);
}

const char *watch__stack_note(const struct watch__stack *s)
{
    static const char *const taken[] = {
        [TAKEN] = "", [TAKEN_GONE] = "the thread is gone",
        [TAKEN_BUSY] = "it fell asleep and woke up while it was looked at",
        [TAKEN_LATE] = "it has no processor, or works in the kernel, and shows "
            "no stack before it is back",
        [TAKEN_OFF] = "signals are switched off: no stack of what runs",
        [TAKEN_DENIED] = "the system does not let the stack be seen"
    };
    static const char *const end[] = {
        [END_WHOLE] = "whole", [END_JIT] = "down to Erlang code",
        [END_MACHINE] = "ends at machine code that a library made",
        [END_NO_TABLE] = "ends at code without unwind tables",
        [END_NO_REGISTER] = "ends where a register would be needed that a "
            "sleeping thread does not show",
        [END_COPIED] = "ends after the 32 KiB that are copied",
        [END_FRAMES] = "ends after the frames that are kept"
    };

    return s->taken == TAKEN ? end[s->end] : taken[s->taken];
}
