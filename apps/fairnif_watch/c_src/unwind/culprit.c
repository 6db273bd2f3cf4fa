/*
 * culprit.c - what a thread's frames say of what it is at.
 */
#include <sys/syscall.h>

#include "unwind/culprit.h"
#include "unwind/unwind.h"

/* What an idle scheduler sleeps in. */
static bool is_idle_call(long number)
{
    switch (number) {
    case SYS_futex:
    case SYS_ppoll:
    case SYS_pselect6:
    case SYS_epoll_pwait:
    case SYS_restart_syscall:   /* one of these that had a limit, once the
                                   thread was stopped */
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

const struct watch__frame *watch__culprit(const struct watch__stack *s)
{
    for (unsigned i = s->count; i-- > 0; )
        if (is_native(&s->frames[i]))
            return &s->frames[i];
    return NULL;
}

const struct watch__frame *watch__called(const struct watch__stack *s)
{
    const struct watch__frame *f = watch__culprit(s);

    if (f && (s->end == END_JIT
              || (f + 1 < s->frames + s->count && f[1].in == IN_EMULATOR)))
        return f;
    return NULL;
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

bool watch__sleeps_native(const struct watch__stack *s, long syscall)
{
    if (s->count > 0 && (watch__culprit(s) || !leads_to_emulator(s)))
        return true;
    return syscall >= 0 && !is_idle_call(syscall);
}

/* What a register had; 0: the frames do not tell. */
static bool same_if_known(uint64_t a, uint64_t b)
{
    return !a || !b || a == b;
}

/* Frames that end early may end anywhere in the same call: then the library is
 * all that has to be the same. */
bool watch__same_call(const struct watch__shown *a,
                      const struct watch__shown *b)
{
    if (a->owner || b->owner)
        return a->owner == b->owner && a->since == b->since
            && a->yields == b->yields;
    if (a->sleeps && b->sleeps && a->cpu == b->cpu)
        return true;            /* the same sleep */
    if (a->library != b->library)
        return false;
    if (a->whole && b->whole)
        return a->function == b->function
            && same_if_known(a->process, b->process)
            && same_if_known(a->reductions, b->reductions)
            && same_if_known(a->heap, b->heap);
    return true;
}

bool watch__shown_of(const struct watch__stack *s, uint64_t cpu,
                     struct watch__shown *shown)
{
    const struct watch__frame *f = watch__culprit(s);
    unsigned last = s->count - 1;

    *shown = (struct watch__shown){
        .sleeps = s->taken == TAKEN && s->snapshot.slept, .cpu = cpu
    };
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
    return s->end != END_JIT || last > 0;
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
