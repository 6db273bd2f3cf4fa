/*
 * watch.c - the watch thread: looks at all scheduler threads once a period and
 * does what the rules say.
 *
 * No scheduler can hold it up: it waits for nothing of the VM's, and what it
 * calls there (enif_send, terms in its own environment) takes locks that are
 * held for less than a microsecond.  It must never be ended but by joining it,
 * and nobody may unmap this library while it runs.
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "fair.h"
#include "watch.h"

enum {
    DIRTY_EVERY = 4             /* looks at dirty ones: one in so many */
};
#define LATE_NS (20 * NS_PER_MS)
#define ROUSE_NS (20 * NS_PER_MS)
#define ROUSED_MOST 8
#define ACTIVATE_NS (500 * NS_PER_MS)
#define WINDOW_NS (250 * NS_PER_MS)
/* How long threads may take to show their stacks, at each look: all of them. */
#define STACK_WAIT_NS (5 * NS_PER_MS)
#define LATE_SHARE 8

/* -- one thread -------------------------------------------------------------- */

static bool measure(struct watch *w, struct watch__thread *t)
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

static void look(struct watch *w, struct watch__thread *t)
{
    struct watch__place place;
    bool busy = t->used > t->gap / 2;

    if (t->slept && t->used == 0)
        return;                 /* the same sleep */
    t->slept = false;
    if (busy && !t->hold.poked) {
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
    uint64_t ns;

    if (t->schedstat_fd == -1) {
        t->schedstat_fd = watch__open(t->tid, "schedstat");
        if (t->schedstat_fd < 0)
            t->schedstat_fd = -2;
    }
    return watch__run_delay(t->schedstat_fd, &ns) ? ns : WATCH__NEVER;
}

static void read_pressure(struct watch *w)
{
    w->pressure_at = w->now;
    watch__pressure_read(&w->pressure, &w->throttled, &w->stolen);
}

static bool tell_heart(struct watch__thread *t, ERL_NIF_TERM word)
{
    ErlNifPid pid = {.pid = (ERL_NIF_TERM)GET(t->heart.pid)};

    return enif_send(NULL, &pid, NULL, word);
}

static void poke(struct watch *w, struct watch__thread *t)
{
    /* What is told later is what came since then, about. */
    if (w->now - w->pressure_at >= NS_PER_S)
        read_pressure(w);
    t->hold.begin_waited = run_delay(t);
    t->throttled = w->throttled;
    t->stolen = w->stolen;
    t->id = 0;
    t->is_late = false;
    ADD(t->heart.poked, 1);
    ADD(w->counters.pokes, 1);
    if (!tell_heart(t, w->poke)) {
        /* The heart is gone; the watchdog process makes another. */
        atomic_store(&t->heart.there, 0);
        t->hold.poked = false;
    }
}

/* Also read after a stack was taken: what it shows then may be of later. */
static bool has_answered(const struct watch__thread *t)
{
    return atomic_load_explicit(&t->heart.beats, memory_order_acquire)
        >= GET(t->heart.poked);
}

/* Waits for stacks for STACK_WAIT_NS in all, at one look; for one that was late
 * before, less: others have yet to show theirs. */
static void take(struct watch *w, struct watch__thread *t)
{
    uint64_t since = watch__now(), spent;

    if (t->is_late && watch__take_shown(w, t))
        return;
    watch__take(w, t, t->is_late ? w->wait_left / LATE_SHARE : w->wait_left);
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
 * is offline.  The emulator's own sleep is nobody's hold. */
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

static void pardon(struct watch *w, struct watch__thread *t)
{
    ADD(w->counters.pardoned, 1);
    watch__pardon(&t->hold, w->now, t->cpu);
    t->id = 0;
}

static bool is_proven_by_call(struct watch *w, struct watch__thread *t)
{
    struct watch__shown shown;

    if (!watch__shows(w, t, &shown)
        || (!t->fair && !watch__culprit(w->stack)
            && is_at_rest(t, w->stack))) {
        pardon(w, t);
        return false;
    }
    switch (watch__proves(&t->hold, &w->limits, &shown, w->now, t->cpu)) {
    case PROOF_DONE:
        return true;
    case PROOF_OTHER:
        ADD(w->counters.pardoned, 1);
        return false;
    default:
        return false;
    }
}

/* Of one whose heart does not answer: whether that is known to be held, after
 * another stack. */
static bool is_proven(struct watch *w, struct watch__thread *t)
{
    enum watch__taken taken;
    bool was_late = t->is_late;

    take(w, t);
    taken = w->stack->taken;
    t->is_late = taken == TAKEN_LATE;
    if (has_answered(t))
        return false;
    if (taken == TAKEN || t->fair)
        t->hold.proven = is_proven_by_call(w, t);
    else if (taken == TAKEN_LATE)
        t->hold.proven = works_in_kernel(w, t, was_late);
    else if (taken == TAKEN_OFF || taken == TAKEN_DENIED)
        /* No stack of anybody: the clocks are all there is. */
        t->hold.proven = t->hold.counted >= w->limits.error_ns;
    return t->hold.proven;
}

/* Whom a report is for, and whom that one tells, may have run on the held
 * scheduler last: woken, a process waits in that queue until another scheduler
 * looks for work.  One that sleeps does not look, and one that the VM does
 * without (little work is kept on few schedulers) does not either, awake or
 * not.  So while a hold lasts that was told, hearts of idle ones are woken; and
 * while one lasts that is an error, told now and then to make theirs one that
 * the VM counts on, which costs some milliseconds of it.  Some at a time: they
 * take from any queue, and to wake hundreds, again and again, would cost more
 * than what waits. */
static void rouse(struct watch *w)
{
    unsigned online = GET(w->online);
    bool told = false, activate = false;
    ERL_NIF_TERM word;
    unsigned roused = 0;

    if (w->now - w->roused_at < ROUSE_NS)
        return;
    for (unsigned i = 0; i < w->normal; i++) {
        told = told || w->threads[i].told;
        activate = activate || w->threads[i].told_level == 2;
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

        if (t->class != C_IDLE || GET(t->heart.roused)
            || !atomic_load_explicit(&t->heart.there, memory_order_acquire))
            continue;
        SET(t->heart.roused, 1);
        ADD(w->counters.activations, activate);
        (void)tell_heart(t, word);
        roused++;
    }
}

/* Where every normal scheduler is held nobody can read what is sent.  Then a
 * hold is told once at each level, and what is seen later at its end: else
 * messages would pile up for as long as that lasts. */
static bool is_unread(const struct watch *w, const struct watch__thread *t)
{
    unsigned online = GET(w->online);

    if (!t->told || t->told_level != t->hold.level || online > w->normal)
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
    if (!t->told)
        ADD(w->counters.held, 1);
    t->told = true;
    t->told_level = t->hold.level;
    watch__send_held(w, t, !unread);
    w->roused_at = 0;
}

static void report(struct watch *w, struct watch__thread *t)
{
    take(w, t);
    if (!has_answered(t))
        tell(w, t);
}

static void prove(struct watch *w, struct watch__thread *t)
{
    if (is_proven(w, t)
        && watch__due(&t->hold, &w->limits, w->now) == DO_REPORT)
        tell(w, t);
}

/* One that was told without a stack shows it when it is back from the kernel. */
static void seek_stack(struct watch *w, struct watch__thread *t)
{
    if (!t->told || t->has_stack || !t->is_late)
        return;
    if (watch__take_shown(w, t))
        watch__send_held(w, t, t->hold.poked && watch__admit(w));
    else
        w->seeking = true;
}

static void release(struct watch *w, struct watch__thread *t)
{
    if (t->told) {
        seek_stack(w, t);
        ADD(w->counters.released, 1);
        watch__send_released(w, t);
    }
    t->id = 0;
    t->told = t->has_stack = false;
    t->told_level = 0;
}

static void judge(struct watch *w, struct watch__thread *t, uint64_t lost)
{
    struct watch__seen seen = {
        .now = w->now, .gap = t->gap, .lost = lost, .cpu = t->cpu,
        .waited = t->hold.poked ? run_delay(t) : WATCH__NEVER,
        .class = t->class
    };
    enum watch__does does;

    if (!atomic_load_explicit(&t->heart.there, memory_order_acquire)) {
        seen.class = C_IDLE;    /* nobody to ask yet, or any more */
        t->hold.poked = false;
    }
    if (t->hold.poked && has_answered(t)) {
        seen.answered = true;
        seen.beat_at = GET(t->heart.beat_at);
        seen.beat_cpu = GET(t->heart.beat_cpu);
        ADD(w->counters.beats, 1);
    }
    does = watch__judge(&t->hold, &w->limits, &seen);
    w->suspects = w->suspects || (t->hold.poked && does != DO_POKE
                                  && t->hold.counted && !t->hold.proven);
    switch (does) {
    case DO_POKE:
        poke(w, t);
        break;
    case DO_SHOW:
        prove(w, t);
        break;
    case DO_REPORT:
        report(w, t);
        break;
    case DO_STARVED:
        ADD(w->counters.starved, 1);
        if (watch__admit(w)) {
            read_pressure(w);
            watch__send_starved(w, t);
        }
        break;
    case DO_RELEASE:
        release(w, t);
        break;
    case DO_NOTHING:
        /* Its heart is gone; or nobody was told, and nobody will be. */
        if (!t->hold.poked && t->id)
            release(w, t);
        else
            seek_stack(w, t);
        break;
    }
}

/* -- what others may see ------------------------------------------------------- */

static enum watch__state state_of(const struct watch__thread *t)
{
    switch (t->class) {
    case C_RUNS:
        return t->id ? ST_NATIVE : ST_BUSY;
    case C_NATIVE:
        return ST_SLEEPS_NATIVE;
    case C_IDLE:
        return ST_IDLE;
    default:
        return ST_UNKNOWN;
    }
}

static void show(struct watch *w, struct watch__thread *t)
{
    if (t->class == C_IDLE || t->class == C_UNKNOWN)
        t->busy_since = 0;
    else if (!t->busy_since)
        t->busy_since = w->now - (t->used < t->gap ? t->used : t->gap);
    SET(t->state, state_of(t));
    SET(t->shown_cpu, t->cpu);
    SET(t->shown_busy_since, t->busy_since);
    SET(t->shown_begin, t->id ? t->hold.begin : 0);
    if (w->now - t->at[t->window] >= WINDOW_NS) {
        unsigned next = (t->window + 1) % WATCH__WINDOWS;
        uint64_t at = t->at[next], used = t->used_at[next];

        t->at[next] = w->now;
        t->used_at[next] = t->cpu;
        t->window = next;
        if (at)
            SET(t->shown_share, (t->cpu - used) * 1000 / (w->now - at));
    }
}

/* -- all of them ------------------------------------------------------------------ */

/* One that nobody empties must not hold us up. */
static bool can_write(int fd)
{
    struct pollfd p = {.fd = fd, .events = POLLOUT};

    return poll(&p, 1, 0) == 1 && p.revents & POLLOUT;
}

/* Nobody else can say it then. */
static void emergency(struct watch *w)
{
    unsigned online = GET(w->online), held = 0;
    char line[256];
    uint64_t least = WATCH__NEVER;
    int n;

    if (!w->config.emergency_ns || online == 0 || online > w->normal)
        return;
    for (unsigned i = 0; i < online; i++) {
        const struct watch__thread *t = &w->threads[i];

        if (!t->id || t->hold.held < w->config.emergency_ns)
            return;
        held++;
        if (t->hold.held < least)
            least = t->hold.held;
    }
    if (w->emergency_at && w->now - w->emergency_at < 10 * NS_PER_S)
        return;
    w->emergency_at = w->now;
    ADD(w->counters.emergencies, 1);
    n = snprintf(line, sizeof line, "fairnif_watch: all %u normal schedulers "
                 "of this node have been blocked for at least %lu ms\n", held,
                 (unsigned long)(least / NS_PER_MS));
    if (can_write(STDERR_FILENO) && write(STDERR_FILENO, line, (size_t)n) < 0)
        return;                 /* then there is nobody to tell */
}

/* Stacks that were asked for. */
static void serve_looks(struct watch *w)
{
    for (unsigned i = 0; i < WATCH__LOOKS; i++) {
        struct watch__look *l = &w->looks[i];

        if (atomic_load_explicit(&l->state, memory_order_acquire)
            != LOOK_ASKED)
            continue;
        watch__take(w, &w->threads[l->thread], STACK_WAIT_NS);
        watch__send_looked(w, &w->threads[l->thread], l->ref);
        enif_free_env(l->env);
        atomic_store_explicit(&l->state, LOOK_FREE, memory_order_release);
        ADD(w->counters.looks, 1);
    }
}

static bool is_asked(struct watch *w)
{
    bool asked = false;

    for (unsigned i = 0; i < WATCH__LOOKS; i++)
        asked = asked || GET(w->looks[i].state) == LOOK_ASKED;
    return asked;
}

static void note_late(struct watch *w, uint64_t gap, uint64_t throttled,
                      uint64_t stolen)
{
    ADD(w->counters.late, 1);
    if (w->now - w->late_at < NS_PER_S || !watch__admit(w))
        return;
    w->late_at = w->now;
    read_pressure(w);
    watch__send_late(w, gap, watch__less(w->throttled, throttled),
                     watch__less(w->stolen, stolen));
}

/* How long to sleep. */
static uint64_t next_wait(struct watch *w, clockid_t own, bool idle)
{
    uint64_t cpu = watch__cpu(own);
    uint64_t used = w->cpu && cpu != WATCH__NEVER ? watch__less(cpu, w->cpu)
                                                  : WATCH__NEVER;

    w->cpu = cpu;
    SET(w->counters.watch_cpu_ns, cpu);
    w->limits.period_ns = watch__pace(&w->pace, w->config.limits.period_ns,
                                      used, idle, w->suspects);
    SET(w->counters.period_ns, w->limits.period_ns);
    return w->limits.period_ns;
}

/* Meant for `due`. Whether nobody works. */
static bool tick(struct watch *w, uint64_t due)
{
    uint64_t gap, overslept, total = 0, lost = 0;
    uint64_t throttled = w->throttled, stolen = w->stolen;
    bool idle = true, late;

    w->now = watch__now();
    gap = w->now - w->before;
    overslept = watch__less(w->now, due);
    late = overslept > LATE_NS;
    w->before = w->now;
    w->tick++;
    w->seeking = w->suspects = false;
    w->wait_left = STACK_WAIT_NS;
    ADD(w->counters.ticks, 1);
    if (gap > GET(w->counters.longest_gap_ns))
        SET(w->counters.longest_gap_ns, gap);
    for (unsigned i = 0; i < w->count; i++) {
        struct watch__thread *t = &w->threads[i];

        if (i >= w->normal && w->tick % DIRTY_EVERY && !late)
            continue;
        t->there = measure(w, t);
        total += t->used;
    }
    if (late && total < gap / 50)
        lost = overslept;       /* stopped, or the machine slept */
    watch__fair_look(w);
    for (unsigned i = 0; i < w->count; i++) {
        struct watch__thread *t = &w->threads[i];

        if (!t->there || t->looked_at != w->now)
            continue;
        look(w, t);
        if (t->kind == K_NORMAL)
            judge(w, t, lost);
        show(w, t);
        idle = idle && (t->class == C_IDLE || t->class == C_UNKNOWN);
    }
    if (late)
        note_late(w, gap, throttled, stolen);
    rouse(w);
    emergency(w);
    watch__sample(w);
    if (w->suppressed && w->now - w->suppressed_at >= NS_PER_S)
        watch__send_suppressed(w);
    return idle;
}

void watch__wake(struct watch *w)
{
    atomic_fetch_add(&w->wakes, 1);
    watch__futex_wake(&w->wakes);
}

static void *run(void *arg)
{
    struct watch *w = arg;
    clockid_t own = watch__cpu_clock(watch__gettid());
    uint64_t next;

    w->before = watch__now();
    next = w->before + w->config.limits.period_ns;
    for (;;) {
        uint32_t wakes = atomic_load(&w->wakes);
        bool asked = is_asked(w), idle;

        if (atomic_load(&w->stop))
            return NULL;
        if (watch__now() < next && !asked) {
            watch__futex_wait(&w->wakes, wakes, next);
            continue;
        }
        idle = tick(w, next);
        if (asked)
            serve_looks(w);
        next = next_wait(w, own, idle);
        next += watch__now();
    }
}

/* -- life ------------------------------------------------------------------------------ */

static void add_threads(struct watch *w, const struct watch__tids *tids)
{
    struct watch__thread *t = w->threads;

    for (unsigned k = 0; k < K_KINDS; k++)
        for (unsigned i = 0; i < tids->count[k]; i++, t++) {
            t->kind = k;
            t->number = i + 1;
            t->tid = tids->tid[k][i];
            t->clock = watch__cpu_clock(t->tid);
            t->syscall_fd = t->schedstat_fd = -1;
        }
}

bool watch__init(struct watch *w, const struct watch__config *config,
                 const struct watch__tids *tids)
{
    memset(w, 0, sizeof *w);
    w->config = *config;
    w->limits = config->limits;
    w->tokens = config->events_per_s;
    w->normal = tids->count[K_NORMAL];
    for (unsigned k = 0; k < K_KINDS; k++)
        w->count += tids->count[k];
    w->threads = calloc(w->count, sizeof *w->threads);
    if (w->threads)
        add_threads(w, tids);   /* first of all: what is freed is theirs */
    w->env = enif_alloc_env();
    watch__pressure_open(&w->pressure);
    w->limits.apart_ns = config->limits.period_ns < config->limits.warn_ns
        ? config->limits.period_ns : config->limits.warn_ns;
    w->stack = calloc(1, sizeof *w->stack);
    w->running = calloc(WATCH__RUNNING, sizeof *w->running);
    w->shown_fair = calloc(w->count + 1, sizeof *w->shown_fair);
    w->maps = watch__maps_new();
    if (!w->threads || !w->env || !w->stack || !w->running
        || !w->shown_fair || !w->maps)
        return false;
    w->poke = enif_make_atom(w->env, "poke");
    return true;
}

/* The handler of stacks is one for the process, and so is the thread. */
static struct watch *_Atomic active;

enum watch__started watch__start(struct watch *w)
{
    static char name[] = "fairnif_watch";
    struct watch *none = NULL;

    if (!atomic_compare_exchange_strong(&active, &none, w))
        return START_BUSY;
    w->signals_error = watch__stack_start(w->config.signals);
    if (w->signals_error && watch__stack_start(false) != 0) {
        atomic_store(&active, NULL);
        return START_FAILED;
    }
    w->now = watch__now();
    read_pressure(w);
    watch__open_syscall(&w->threads[0]);
    w->sleepers_hidden = w->threads[0].syscall_fd < 0;
    w->threaded = enif_thread_create(name, &w->thread, run, w, NULL) == 0;
    if (!w->threaded) {
        watch__stack_stop();
        atomic_store(&active, NULL);
        return START_FAILED;
    }
    return START_OK;
}

/* A signal of ours is still on its way to a thread: the handler stays mapped
 * for good. */
static void stay_loaded(void)
{
    Dl_info info;

    if (dladdr((void *)(uintptr_t)stay_loaded, &info) && info.dli_fname)
        dlopen(info.dli_fname, RTLD_NOW | RTLD_NOLOAD | RTLD_NODELETE);
}

void watch__flag(struct watch *w)
{
    atomic_store(&w->stop, true);
    watch__wake(w);
}

void watch__stop(struct watch *w)
{
    watch__flag(w);
    if (!atomic_exchange(&w->threaded, false))
        return;
    enif_thread_join(w->thread, NULL);
    if (!watch__stack_stop())
        stay_loaded();
    atomic_store(&active, NULL);
}

static void close_thread(struct watch__thread *t)
{
    if (t->syscall_fd >= 0)
        close(t->syscall_fd);
    if (t->schedstat_fd >= 0)
        close(t->schedstat_fd);
    if (t->last_env)
        enif_free_env(t->last_env);
}

void watch__free(struct watch *w)
{
    watch__stop(w);
    for (unsigned i = 0; w->threads && i < w->count; i++)
        close_thread(&w->threads[i]);
    for (unsigned i = 0; i < WATCH__LOOKS; i++)
        if (w->looks[i].state == LOOK_ASKED)
            enif_free_env(w->looks[i].env);
    watch__pressure_close(&w->pressure);
    if (w->env)
        enif_free_env(w->env);
    if (w->maps)
        watch__maps_free(w->maps);
    free(w->stack);
    free(w->running);
    free(w->shown_fair);
    free(w->threads);
}
