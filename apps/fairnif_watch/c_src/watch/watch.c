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

#include "watch/watch.h"
#include "look/event.h"
#include "look/fair.h"
#include "look/look.h"
#include "look/stacks.h"
#include "look/tally.h"
#include "look/wait.h"
#include "read/mem.h"

enum {
    DIRTY_EVERY = 4             /* looks at dirty ones: one in so many */
};
#define LATE_NS (20 * NS_PER_MS)
#define WINDOW_NS (250 * NS_PER_MS)
/* What others take is read so often: the kernel counts in ticks of some ms, and
 * makes a long text of them. */
#define OTHERS_NS (2 * NS_PER_S)

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
    SET(t->shown_begin, t->id ? t->block.begin : 0);
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
    unsigned online = GET(w->online), blocked = 0;
    char line[256];
    uint64_t least = WATCH__NEVER;
    int n;

    if (!w->config.emergency_ns || online == 0 || online > w->normal)
        return;
    for (unsigned i = 0; i < online; i++) {
        const struct watch__thread *t = &w->threads[i];

        if (!t->id || t->block.blocked < w->config.emergency_ns)
            return;
        blocked++;
        if (t->block.blocked < least)
            least = t->block.blocked;
    }
    if (w->emergency_at && w->now - w->emergency_at < 10 * NS_PER_S)
        return;
    w->emergency_at = w->now;
    ADD(w->counters.emergencies, 1);
    n = snprintf(line, sizeof line, "fairnif_watch: all %u normal schedulers "
                 "of this node have been blocked for at least %lu ms\n",
                 blocked,
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
        watch__take_stack(w, &w->threads[l->thread], STACK_WAIT_NS);
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
    watch__read_pressure(w);
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

/* Who has the processors.  Whose programs they are costs a look at all processes:
 * only where a scheduler waited for long. */
static void measure_shares(struct watch *w)
{
    struct watch__throttled throttled = watch__group_read(&w->pressure.group);
    uint64_t normal = 0, waits = 0, before = w->long_waits;
    struct watch__shares shares;

    for (unsigned i = 0; i < w->normal; i++) {
        uint64_t cpu = watch__cpu(w->threads[i].clock);

        normal += cpu != WATCH__NEVER ? cpu : w->threads[i].cpu;
        for (unsigned k = 0; k < WATCH__WAITS; k++)
            waits += GET(w->threads[i].long_waits[k]);
    }
    w->long_waits = waits;
    shares = watch__shares(&w->pressure, normal, waits > before);
    w->pressure_at = w->now;
    w->throttled = throttled.ns;
    w->stolen = shares.stolen_ns;
    SET(w->counters.others, shares.others);
    SET(w->counters.port_programs, shares.ports);
    SET(w->counters.own_native, shares.native);
    SET(w->counters.quota, watch__group_quota(&w->pressure.group));
    SET(w->counters.quota_periods, throttled.periods);
    SET(w->counters.quota_throttled, throttled.times);
    SET(w->counters.quota_throttled_ns, throttled.ns);
    SET(w->counters.stolen_ns, w->stolen);
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
    w->awaits_stack = w->suspects = false;
    w->wait_left = STACK_WAIT_NS;
    ADD(w->counters.ticks, 1);
    if (gap > GET(w->counters.longest_gap_ns))
        SET(w->counters.longest_gap_ns, gap);
    for (unsigned i = 0; i < w->count; i++) {
        struct watch__thread *t = &w->threads[i];

        if (i >= w->normal && w->tick % DIRTY_EVERY && !late)
            continue;
        t->there = watch__measure_thread(w, t);
        if (t->there)
            watch__note_wait(t, w->now);
        total += t->used;
    }
    if (late && total < gap / 50)
        lost = overslept;       /* stopped, or the machine slept */
    watch__fair_look(w);
    for (unsigned i = 0; i < w->count; i++) {
        struct watch__thread *t = &w->threads[i];

        if (!t->there || t->looked_at != w->now)
            continue;
        watch__look_at(w, t);
        if (t->kind == K_NORMAL)
            watch__judge_thread(w, t, lost);
        show(w, t);
        idle = idle && (t->class == C_IDLE || t->class == C_UNKNOWN);
    }
    if (late)
        note_late(w, gap, throttled, stolen);
    if (w->now - w->others_at >= OTHERS_NS) {
        w->others_at = w->now;
        measure_shares(w);
    }
    watch__rouse(w);
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
    w->shown_pool = calloc(WATCH__POOL, sizeof *w->shown_pool);
    w->maps = watch__maps_new();
    if (!w->threads || !w->env || !w->stack || !w->running
        || !w->shown_fair || !w->shown_pool || !w->maps)
        return false;
    w->probe = enif_make_atom(w->env, "probe");
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
    measure_shares(w);
    w->others_at = w->now - OTHERS_NS / 2;      /* for the first view */
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

void watch__ask_to_stop(struct watch *w)
{
    atomic_store(&w->stop, true);
    watch__wake(w);
}

void watch__stop(struct watch *w)
{
    watch__ask_to_stop(w);
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
    free(w->shown_pool);
    free(w->threads);
}
