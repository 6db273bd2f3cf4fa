/*
 * sample.c - a sample of each thread of a node: Erlang and native frames in one
 * stack.
 *
 * A thread that has slept since it was looked at is not looked at again: its
 * sample is the last one's.  Idle ones are no stacks, but counted.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#include "outside/sample.h"
#include "outside/erlang.h"
#include "outside/judge.h"
#include "outside/pagecache.h"
#include "outside/vm.h"
#include "read/mem.h"
#include "read/proc.h"
#include "read/source.h"

enum { THREADS = 8192, IDLE_WAYS = 3 };

struct watch__track {
    int fd;                     /* schedstat; -1: none */
    bool gone, asleep;          /* it slept when it was looked at */
    char ran[64];               /* what schedstat said before that */
    enum { SAW_NOTHING, SAW_STACK, SAW_IDLE } saw;
    uint32_t node, idle;
};

/* -- a stack ------------------------------------------------------------- */

static enum watch__colour colour_of(const struct watch__frame *f)
{
    return f->in == IN_LIBRARY || f->function[0] ? C_LIBRARY : C_EMULATOR;
}

/* Which of the native frames are below what the emulator called, or the Erlang
 * function named `current`: how many. */
static unsigned inner_frames(const struct watch__line *l, const char *current)
{
    char name[WATCH__LABEL];

    for (unsigned i = 0; i < l->count; i++) {
        const struct watch__frame *f = &l->frames[i];

        watch__culprit_name(f, name);
        if (!strcmp(f->symbol, "erts_dirty_process_main")
            || (f->function[0] && !strcmp(name, current)))
            return i;
        if (!strcmp(f->symbol, "erts_schedule"))
            return i + 1;
    }
    return l->count;
}

static uint32_t add_native(struct watch__fold *fold, uint32_t at,
                           const struct watch__line *l)
{
    const char *current = l->process ? l->process->current : "";
    unsigned n = inner_frames(l, current);
    char name[WATCH__LABEL];

    if (n == l->count && l->end != END_WHOLE && l->end != END_JIT)
        at = at ? watch__fold_node(fold, at, "[unknown]", C_EMULATOR) : 0;
    for (unsigned i = n; at && i-- > 0;) {
        const struct watch__frame *f = &l->frames[i];

        if (f->in == IN_JIT && l->process)
            continue;
        if (f->function[0] || f->callback)
            watch__culprit_name(f, name);
        else
            watch__label(f, name);
        at = watch__fold_node(fold, at, name, colour_of(f));
    }
    return at;
}

static uint32_t add_erlang(struct watch__fold *fold,
                           const struct watch__process_seen *p)
{
    uint32_t at = watch__fold_node(fold, 0, p->name[0] ? p->name
                                   : p->initial[0] ? p->initial : "process",
                                   C_ROOT);

    if (at && p->count == WATCH__CALLS)
        at = watch__fold_node(fold, at, "[...]", C_ERLANG);
    for (unsigned i = p->count; at && i-- > 0;)
        if (p->stack[i][0])
            at = watch__fold_node(fold, at, p->stack[i], C_ERLANG);
    return at && p->current[0]
        ? watch__fold_node(fold, at, p->current, C_ERLANG) : at;
}

/* -- a thread ------------------------------------------------------------ */

static bool is_idle(const struct watch__line *l)
{
    return l->doing == DOING_IDLE || l->doing == DOING_STOPPED
        || (l->role > R_DIRTY_IO && l->role != R_ASYNC
            && l->run == RUN_SLEEPS);
}

static void note_pause(struct watch__sampler *r)
{
    uint64_t ns = r->d.longest_pause_ns, limit = 1;
    unsigned bucket = 0;

    if (!ns)
        return;
    for (; limit * 2 <= ns && bucket + 8 < WATCH__PAUSES; bucket += 8)
        limit *= 2;
    bucket += (unsigned)(ns * 8 / limit - 8);
    r->pauses[bucket < WATCH__PAUSES ? bucket : WATCH__PAUSES - 1]++;
    r->stops++;
    if (ns > r->longest_ns)
        r->longest_ns = ns;
}

uint64_t watch__sampler_pause(const struct watch__sampler *r,
                              unsigned thousandths)
{
    uint64_t seen = 0;

    for (unsigned i = 0; i < WATCH__PAUSES; i++) {
        uint64_t limit = ((uint64_t)1 << i / 8) * (i % 8 + 9) / 8;

        seen += r->pauses[i];
        if (seen * 1000 >= r->stops * thousandths)
            return limit < r->longest_ns ? limit : r->longest_ns;
    }
    return r->longest_ns;
}

/* Code may have been loaded, or purged, and lie where other code was.  The words
 * of a list don't say so: a purge ends a module in its place. */
static void read_lists(struct watch__sampler *r)
{
    struct watch__vm *vm = r->d.vm;
    uint64_t sum = 0;

    if (!vm || !vm->code)
        return;
    watch__vm_again(vm);
    for (unsigned i = 0; i < WATCH__VM_LISTS; i++)
        for (unsigned k = 0; k < vm->list[i].count; k++)
            sum = ((sum ^ vm->list[i].modules[k].start) * 0x9e3779b97f4a7c15u)
                ^ vm->list[i].modules[k].end;
    if (sum != r->sum)
        watch__pagecache_clear();
    r->sum = sum;
}

static void see_erlang(struct watch__sampler *r, struct watch__line *l)
{
    watch__source_lay(r->stack->snapshot.stack, r->stack->snapshot.from,
                      r->stack->snapshot.size);
    watch__pagecache_begin();
    watch__erlang_seen(&r->d, l, false);
    if (l->process && l->doing == DOING_ERLANG && !l->process->current[0]
        && watch__now() >= r->unknown_at) {
        r->unknown_at = watch__now() + NS_PER_S / 10;
        watch__pagecache_begin();
        read_lists(r);
        watch__erlang_seen(&r->d, l, false);
    }
    watch__pagecache_end();
    watch__source_lay(NULL, 0, 0);
}

static void forget_frames(struct watch__line *l)
{
    free(l->frames);
    l->frames = NULL;
    l->culprit = NULL;
    l->count = 0;
}

static void look_once(struct watch__sampler *r, struct watch__line *l,
                 struct watch__track *t)
{
    struct watch__stat stat;
    int error = watch__thread_stat(l->tid, &stat);

    t->saw = SAW_NOTHING;
    t->asleep = false;
    if (error) {
        t->gone = error == ENOENT || error == ESRCH;
        return;
    }
    l->state = stat.state;
    r->stack->snapshot.size = 0;
    r->d.longest_pause_ns = 0;
    watch__dump_stack(&r->d, l, r->stack);
    note_pause(r);
    watch__dump_take(&r->d, l, r->stack);
    t->asleep = l->run == RUN_SLEEPS;
    if (is_idle(l)) {
        t->saw = SAW_IDLE;
        t->idle = l->role * IDLE_WAYS + (l->doing == DOING_STOPPED ? 2
                                         : l->run == RUN_SLEEPS ? 0 : 1);
    } else if (l->count > 0) {
        see_erlang(r, l);
        t->saw = SAW_STACK;
        t->node = add_native(&r->fold, l->process
                             ? add_erlang(&r->fold, l->process)
                             : watch__fold_node(&r->fold, 0,
                                                watch__role_names[l->role],
                                                C_ROOT), l);
    }
    forget_frames(l);
}

/* CPU time, time waited for a processor, times it got one: all the same, it has
 * slept all along. */
static bool has_run(struct watch__track *t)
{
    char ran[sizeof t->ran] = "";
    ssize_t n = t->fd < 0 ? 0 : pread(t->fd, ran, sizeof ran - 1, 0);
    bool has = n <= 0 || strcmp(ran, t->ran) != 0;

    /* It has ended; another one may have its number. */
    if (n < 0 && errno == ESRCH)
        t->gone = true;
    if (n > 0)
        memcpy(t->ran, ran, sizeof ran);
    return has;
}

static void sample_thread(struct watch__sampler *r, struct watch__line *l,
                   struct watch__track *t)
{
    bool ran;

    if (t->gone)
        return;
    ran = has_run(t);
    if (!t->gone && (ran || !t->asleep))
        look_once(r, l, t);
    if (t->gone)
        t->saw = SAW_NOTHING;
    if (t->saw == SAW_STACK)
        watch__fold_count(&r->fold, t->node);
    else if (t->saw == SAW_IDLE)
        r->fold.idle[t->idle].samples++;
    else if (!t->gone)
        r->lost++;
    if (t->gone) {
        if (t->fd >= 0)
            close(t->fd);
        t->fd = -1;
        forget_frames(l);
        free(l->process);
        l->process = NULL;
        l->number = 0;          /* another one may be called so */
    }
}

/* -- all of them --------------------------------------------------------- */

/* Some descriptors stay for what is opened meanwhile.  Without one a thread is
 * looked at each time. */
static struct watch__track tracked(const struct watch__line *l)
{
    struct watch__track t = {.fd = watch__open(l->tid, "schedstat")};
    struct rlimit files;

    if (t.fd >= 0 && getrlimit(RLIMIT_NOFILE, &files) == 0
        && (rlim_t)t.fd + 32 >= files.rlim_cur) {
        close(t.fd);
        t.fd = -1;
    }
    has_run(&t);
    return t;
}

/* In the place of one that has ended, if there is any. */
static void add_new(int tid, const char *name, void *arg)
{
    struct watch__sampler *r = arg;
    unsigned n = r->d.count, unused = n;
    struct watch__line *new;

    for (unsigned i = 0; i < n; i++) {  /* listed in much the same order */
        unsigned k = (r->next + i) % n;

        if (k < r->tracked && r->track[k].gone) {
            unused = k;
        } else if (r->d.lines[k].tid == tid) {
            r->next = k + 1;
            return;
        }
    }
    if (n == THREADS && unused == n)
        return;
    new = watch__dump_add(&r->d, tid, name);
    if (new && unused < n) {
        r->d.lines[unused] = *new;
        r->d.count--;
        r->track[unused] = tracked(new);
    }
}

static void track_new(struct watch__sampler *r)
{
    for (; r->tracked < r->d.count; r->tracked++)
        r->track[r->tracked] = tracked(&r->d.lines[r->tracked]);
}

bool watch__sampler_open(struct watch__sampler *r)
{
    r->d.stops = true;
    r->stack = watch__pages(sizeof *r->stack);
    r->track = watch__pages(THREADS * sizeof *r->track);
    if (!r->stack || !r->track || !watch__fold_open(&r->fold)
        || !watch__dump_start(&r->d) || r->d.count > THREADS)
        return false;
    watch__erlang_open(&r->d);
    watch__pagecache_open(r->d.vm);
    track_new(r);
    return true;
}

bool watch__sampler_round(struct watch__sampler *r)
{
    uint64_t now = watch__now();
    unsigned schedulers = 0;

    if (now >= r->again_at) {
        watch__each_thread(add_new, r);
        track_new(r);
        r->again_at = now + NS_PER_S;
    }
    read_lists(r);
    for (unsigned i = 0; i < r->tracked; i++) {
        sample_thread(r, &r->d.lines[i], &r->track[i]);
        schedulers += r->d.lines[i].role == R_NORMAL && !r->track[i].gone;
    }
    return schedulers > 0;
}

void watch__sampler_end(struct watch__sampler *r)
{
    static const char *const ways[IDLE_WAYS] = {"", " (looks for work)",
                                                " (stopped)"};
    struct watch__fold *f = &r->fold;

    for (unsigned i = 0; i < R_ROLES * IDLE_WAYS; i++)
        if (f->idle[i].samples) {
            f->idle[f->idle_count].samples = f->idle[i].samples;
            snprintf(f->idle[f->idle_count++].name, sizeof f->idle->name,
                     "%s%s", watch__role_names[i / IDLE_WAYS],
                     ways[i % IDLE_WAYS]);
        }
    watch__fold_end(f);
}
