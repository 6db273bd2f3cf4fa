/*
 * look.c - one thread: what it used, what it is at, whether it is blocked, and
 * what is told of it.
 */
#include "look/look.h"
#include "look/event.h"
#include "look/stacks.h"
#include "read/proc.h"

#define ROUSE_NS (20 * NS_PER_MS)
#define ROUSED_MOST 8
#define ACTIVATE_NS (500 * NS_PER_MS)
#define LATE_SHARE 8

bool watch__measure_thread(struct watch *w, struct watch__thread *t)
{
    uint64_t cpu = watch__cpu(t->clock);

    t->used = 0;
    if (cpu == WATCH__NEVER)
        return false;
    t->gap = t->looked_at ? w->now - t->looked_at : w->config.limits.period_ns;
    t->used = t->looked_at ? watch__less(cpu, t->cpu) : 0;
    t->looked_at = w->now;
    t->cpu = cpu;
    return true;
}

static bool same_place(const struct watch__place *a,
                       const struct watch__place *b)
{
    return a->syscall == b->syscall && a->arg == b->arg && a->sp == b->sp
        && a->pc == b->pc;
}

/* An idle scheduler sleeps in few places, with the same stack each time: known
 * ones need no stack to be told. */
static enum watch__class class_of_sleep(struct watch *w,
                                        struct watch__thread *t)
{
    for (unsigned i = 0; i < WATCH__PLACES && i < t->idle_count; i++)
        if (same_place(&t->idle[i], &t->place))
            return C_IDLE;
    switch (watch__classify(w, t)) {
    case C_IDLE:
        t->idle[t->idle_count++ % WATCH__PLACES] = t->place;
        return C_IDLE;
    case C_NATIVE:
        return C_NATIVE;
    default:                    /* it woke up meanwhile */
        t->slept = false;
        return C_RUNS;
    }
}

void watch__look_at(struct watch *w, struct watch__thread *t)
{
    struct watch__place place;
    bool busy = t->used > t->gap / 2;

    if (t->slept && t->used == 0)
        return;                 /* the same sleep */
    t->slept = false;
    if (busy && !t->block.probed) {
        t->run = RUN_RUNNING;
        t->class = C_RUNS;
        return;
    }
    watch__open_syscall(t);
    t->run = watch__where(t->syscall_fd, &place);
    t->place = place;
    switch (t->run) {
    case RUN_RUNNING:
        t->class = C_RUNS;
        break;
    case RUN_UNKNOWN:
        t->class = busy ? C_RUNS : C_UNKNOWN;
        break;
    default:
        t->slept = true;
        t->class = class_of_sleep(w, t);
    }
}

static uint64_t run_delay(struct watch__thread *t)
{
    uint64_t ns, runs;

    watch__open_once(&t->schedstat_fd, t->tid, "schedstat");
    return watch__run_delay(t->schedstat_fd, &ns, &runs) ? ns : WATCH__NEVER;
}

void watch__read_pressure(struct watch *w)
{
    w->pressure_at = w->now;
    watch__pressure_read(&w->pressure, &w->throttled, &w->stolen);
}

static bool tell_responder(struct watch__thread *t, ERL_NIF_TERM word)
{
    ErlNifPid pid = {.pid = (ERL_NIF_TERM)GET(t->responder.pid)};

    return enif_send(NULL, &pid, NULL, word);
}

static void probe(struct watch *w, struct watch__thread *t)
{
    /* What is told later is what came since then, about. */
    if (w->now - w->pressure_at >= NS_PER_S)
        watch__read_pressure(w);
    t->block.begin_waited = run_delay(t);
    t->throttled = w->throttled;
    t->stolen = w->stolen;
    t->id = 0;
    t->is_late = false;
    ADD(t->responder.probed, 1);
    ADD(w->counters.probes, 1);
    if (!tell_responder(t, w->probe)) {
        /* The responder is gone; the watchdog process makes another. */
        atomic_store(&t->responder.there, 0);
        t->block.probed = false;
    }
}

/* Also read after a stack was taken: what it shows then may be of later. */
static bool has_answered(const struct watch__thread *t)
{
    return atomic_load_explicit(&t->responder.replies, memory_order_acquire)
        >= GET(t->responder.probed);
}

/* Waits for stacks for STACK_WAIT_NS in all, at one look; for one that was late
 * before, less: others have yet to show theirs. */
static void take_in_time(struct watch *w, struct watch__thread *t)
{
    uint64_t since = watch__now(), spent;

    if (t->is_late && watch__take_late_stack(w, t))
        return;
    watch__take_stack(w, t,
                      t->is_late ? w->wait_left / LATE_SHARE : w->wait_left);
    if (w->stack->taken == TAKEN)
        t->is_late = false;
    spent = watch__now() - since;
    w->wait_left = watch__less(w->wait_left, spent);
}

/* A thread that has a processor and shows no stack is in the kernel.  Or it has
 * none, and its clock went on because the machine itself had lost it. */
static bool works_in_kernel(struct watch *w, struct watch__thread *t, bool more)
{
    uint64_t used = watch__kernel_ns(t->tid);

    if (!more)
        t->kernel_ns = used;
    return used != WATCH__NEVER && t->kernel_ns != WATCH__NEVER
        && watch__less(used, t->kernel_ns) >= w->limits.warn_ns;
}

/* On its way to sleep, or just awake: there was nothing to run, or its scheduler
 * is offline.  The emulator's own sleep is nobody's block. */
static bool is_at_rest(const struct watch__thread *t,
                       const struct watch__stack *s)
{
    enum { INSTRUCTION = 4 };   /* the system call's, which may begin again */
    const struct watch__regs *r = &s->snapshot.regs;

    if (s->taken != TAKEN)
        return false;
    for (unsigned i = 0; i < WATCH__PLACES && i < t->idle_count; i++)
        if (t->idle[i].syscall >= 0 && r->sp == t->idle[i].sp
            && t->idle[i].pc - r->pc <= INSTRUCTION)
            return true;
    return false;
}

static void dismiss(struct watch *w, struct watch__thread *t)
{
    ADD(w->counters.dismissed, 1);
    watch__dismiss(&t->block, w->now, t->cpu);
    t->id = 0;
}

static bool is_confirmed_by_call(struct watch *w, struct watch__thread *t)
{
    struct watch__shown shown;

    if (!watch__call_of(w, t, &shown)
        || (!t->fair && !watch__culprit(w->stack)
            && is_at_rest(t, w->stack))) {
        dismiss(w, t);
        return false;
    }
    switch (watch__confirm(&t->block, &w->limits, &shown, w->now, t->cpu)) {
    case CONFIRM_DONE:
        return true;
    case CONFIRM_OTHER:
        ADD(w->counters.dismissed, 1);
        return false;
    default:
        return false;
    }
}

/* Of one whose responder does not answer: whether that is known to be blocked,
 * after another stack. */
static bool is_confirmed(struct watch *w, struct watch__thread *t)
{
    enum watch__taken taken;
    bool was_late = t->is_late;

    take_in_time(w, t);
    taken = w->stack->taken;
    t->is_late = taken == TAKEN_LATE;
    if (has_answered(t))
        return false;
    if (taken == TAKEN || t->fair)
        t->block.confirmed = is_confirmed_by_call(w, t);
    else if (taken == TAKEN_LATE)
        t->block.confirmed = works_in_kernel(w, t, was_late);
    else if (taken == TAKEN_OFF || taken == TAKEN_DENIED)
        /* No stack of anybody: the clocks are all there is. */
        t->block.confirmed = t->block.counted >= w->limits.error_ns;
    return t->block.confirmed;
}

/* Whom a report is for, and whom that one tells, may have run on the blocked
 * scheduler last: woken, a process waits in that queue until another scheduler
 * looks for work.  One that sleeps does not look, and one that the VM does
 * without (little work is kept on few schedulers) does not either, awake or
 * not.  So while a block lasts that was told, responders of idle ones are
 * woken; and while one lasts that is an error, told now and then to make theirs
 * one that the VM counts on, which costs some milliseconds of it.  Some at a
 * time: they take from any queue, and to wake hundreds, again and again, would
 * cost more than what waits. */
void watch__rouse(struct watch *w)
{
    unsigned online = GET(w->online);
    bool told = false, activate = false;
    ERL_NIF_TERM word;
    unsigned roused = 0;

    if (w->now - w->roused_at < ROUSE_NS)
        return;
    for (unsigned i = 0; i < w->normal; i++) {
        told = told || w->threads[i].is_reported;
        activate = activate || w->threads[i].reported_level == 2;
    }
    if (!told)
        return;
    w->roused_at = w->now;
    activate = activate && w->now - w->activated_at >= ACTIVATE_NS;
    if (activate)
        w->activated_at = w->now;
    word = enif_make_atom(w->env, activate ? "activate" : "rouse");
    online = online < w->normal ? online : w->normal;
    for (unsigned n = 0; n < online && roused < ROUSED_MOST; n++) {
        struct watch__thread *t = &w->threads[w->rouse_next++ % online];

        if (t->class != C_IDLE || GET(t->responder.roused)
            || !atomic_load_explicit(&t->responder.there, memory_order_acquire))
            continue;
        SET(t->responder.roused, 1);
        ADD(w->counters.activations, activate);
        (void)tell_responder(t, word);
        roused++;
    }
}

/* Where every normal scheduler is blocked nobody can read what is sent.  Then a
 * block is told once at each level, and what is seen later at its end: else
 * messages would pile up for as long as that lasts. */
static bool is_unread(const struct watch *w, const struct watch__thread *t)
{
    unsigned online = GET(w->online);

    if (!t->is_reported || t->reported_level != t->block.level
        || online > w->normal)
        return false;
    for (unsigned i = 0; i < online; i++)
        if (!w->threads[i].id)
            return false;
    return true;
}

/* w->stack is of it. */
static void tell(struct watch *w, struct watch__thread *t)
{
    bool unread = is_unread(w, t);

    t->id = t->id ? t->id : ++w->next_id;
    if (!unread && !watch__admit(w))
        return;
    if (!t->is_reported)
        ADD(w->counters.blocked, 1);
    t->is_reported = true;
    t->reported_level = t->block.level;
    watch__send_blocked(w, t, !unread);
    w->roused_at = 0;
}

static void report(struct watch *w, struct watch__thread *t)
{
    take_in_time(w, t);
    if (!has_answered(t))
        tell(w, t);
}

static void confirm(struct watch *w, struct watch__thread *t)
{
    if (is_confirmed(w, t)
        && watch__due(&t->block, &w->limits, w->now) == DO_REPORT)
        tell(w, t);
}

/* One that was told without a stack shows it when it is back from the kernel. */
static void seek_stack(struct watch *w, struct watch__thread *t)
{
    if (!t->is_reported || t->has_stack || !t->is_late)
        return;
    if (watch__take_late_stack(w, t))
        watch__send_blocked(w, t, t->block.probed && watch__admit(w));
    else
        w->awaits_stack = true;
}

static void release(struct watch *w, struct watch__thread *t)
{
    if (t->is_reported) {
        seek_stack(w, t);
        ADD(w->counters.unblocked, 1);
        watch__send_unblocked(w, t);
    }
    t->id = 0;
    t->is_reported = t->has_stack = false;
    t->reported_level = 0;
}

void watch__judge_thread(struct watch *w, struct watch__thread *t, uint64_t lost)
{
    struct watch__seen seen = {
        .now = w->now, .gap = t->gap, .lost = lost, .cpu = t->cpu,
        .waited = t->block.probed ? run_delay(t) : WATCH__NEVER,
        .class = t->class
    };
    enum watch__does does;

    if (!atomic_load_explicit(&t->responder.there, memory_order_acquire)) {
        seen.class = C_IDLE;    /* nobody to ask yet, or any more */
        t->block.probed = false;
    }
    if (t->block.probed && has_answered(t)) {
        seen.answered = true;
        seen.reply_at = GET(t->responder.reply_at);
        seen.reply_cpu = GET(t->responder.reply_cpu);
        ADD(w->counters.replies, 1);
    }
    does = watch__judge(&t->block, &w->limits, &seen);
    w->suspects = w->suspects || (t->block.probed && does != DO_PROBE
                                  && t->block.counted && !t->block.confirmed);
    switch (does) {
    case DO_PROBE:
        probe(w, t);
        break;
    case DO_SHOW:
        confirm(w, t);
        break;
    case DO_REPORT:
        report(w, t);
        break;
    case DO_STARVED:
        ADD(w->counters.no_cpu_time, 1);
        if (watch__admit(w)) {
            watch__read_pressure(w);
            watch__send_starved(w, t);
        }
        break;
    case DO_UNBLOCK:
        release(w, t);
        break;
    case DO_NOTHING:
        /* Its responder is gone; or nobody was told, and nobody will be. */
        if (!t->block.probed && t->id)
            release(w, t);
        else
            seek_stack(w, t);
        break;
    }
}
