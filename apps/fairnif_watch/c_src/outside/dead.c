/*
 * dead.c - a node that has died, from its core: the threads as they stood.
 */
#define _GNU_SOURCE
#include <stdio.h>
#include <string.h>
#include <sys/user.h>

#include "outside/attach.h"
#include "outside/core.h"
#include "outside/dead.h"
#include "outside/erlang.h"
#include "read/mem.h"
#include "unwind/capture.h"
#include "unwind/unwind.h"

/* The system call that it stood in; -1: none. */
static long call_of(const struct watch__core_thread *t,
                    const struct watch__regs *regs, uint64_t *arg)
{
    struct user_regs_struct u;

    if (t->size < sizeof u)
        return -1;
    memcpy(&u, t->regs, sizeof u);
#if defined(__x86_64__)
    unsigned char code[2];

    *arg = u.rdi;
    return watch__read_all(code, regs->pc - sizeof code, sizeof code)
        && code[0] == 0x0f && code[1] == 0x05 ? (long)u.orig_rax : -1;
#elif defined(__aarch64__)
    uint32_t code;

    *arg = u.regs[0];
    return watch__read_all(&code, regs->pc - sizeof code, sizeof code)
        && code == 0xd4000001 ? (long)u.regs[8] : -1;
#else
    (void)regs, (void)arg;
    return -1;
#endif
}

static void take_thread_of_core(struct watch__dump *d,
                                const struct watch__core_thread *t,
                                struct watch__stack *s)
{
    struct watch__line *line = watch__dump_add(d, t->tid, "");

    if (!line || !watch__regs_from(&s->snapshot.regs, t->regs, t->size))
        return;
    s->snapshot.tid = t->tid;
    s->snapshot.size = watch__copy_stack(s->snapshot.stack,
                                         s->snapshot.regs.sp,
                                         &s->snapshot.from);
    s->taken = TAKEN;
    s->count = watch__unwind(d->maps, &s->snapshot, s->frames, WATCH__FRAMES,
                             &s->end, &s->last);
    line->place.syscall = call_of(t, &s->snapshot.regs, &line->place.arg);
    line->run = line->place.syscall >= 0 ? RUN_SLEEPS : RUN_RUNNING;
    /* Whom a signal from elsewhere met says nothing. */
    line->has_died = d->count == 1 && d->signal > 0 && !d->sender;
    line->same = line->proven = true;   /* it is all that there is */
    watch__dump_take(d, line, s);
}

bool watch__dump_core(const char *path, struct watch__dump *d,
                      char why[WATCH__WHY])
{
    const struct watch__core *core = watch__core_open(path, why);
    struct watch__stack *s;

    if (!core)
        return false;
    d->is_core = true;
    d->pid = core->pid;
    d->signal = core->signal;
    d->sender = core->sender == core->pid ? 0 : core->sender;   /* abort() */
    d->has_address = core->has_address;
    d->address = core->address;
    d->maps = watch__maps_new();
    s = watch__pages(sizeof *s);
    if (!d->maps || !s) {
        snprintf(why, WATCH__WHY, "no memory");
        return false;
    }
    for (unsigned i = 0; i < core->count; i++)
        take_thread_of_core(d, &core->threads[i], s);
    watch__pages_free(s, sizeof *s);
    watch__erlang_open(d);
    for (unsigned i = 0; i < d->count; i++)
        watch__erlang_seen(d, &d->lines[i], false);
    if (core->is_cut)
        snprintf(d->note, sizeof d->note, "The core is cut: some of it is "
                 "missing.");
    if (core->missing)
        snprintf(d->note, sizeof d->note, "%u files that were mapped are not "
                 "those any more, %.300s for one: frames end there.",
                 core->missing, core->missing_path);
    return true;
}
