/*
 * dump.c - looks at all threads of a node, twice: what is the same call both
 * times has lasted for as long.
 *
 * A thread that sleeps is read where it sleeps, by /proc: to stop it would end
 * some system calls with EINTR (epoll_wait, semop).  It is stopped only where
 * its frames need registers that /proc does not show, and the kernel goes on
 * with its call by itself.  What falls asleep in such a call between the look and
 * the stop is woken up by it all the same.
 */
#define _GNU_SOURCE
#include <fcntl.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "outside/dump.h"
#include "outside/attach.h"
#include "outside/judge.h"
#include "read/mem.h"
#include "read/proc.h"
#include "read/source.h"
#include "unwind/capture.h"
#include "unwind/name.h"
#include "unwind/unwind.h"

enum { STOP_NS = 200000000, TRIES = 3 };

/* The kernel restarts them where no handler runs, whatever their arguments. */
static bool restarts(long number)
{
    static const long calls[] = {
        SYS_futex, SYS_nanosleep, SYS_clock_nanosleep, SYS_ppoll,
        SYS_pselect6, SYS_wait4, SYS_waitid, SYS_flock, SYS_openat,
#ifdef SYS_poll
        SYS_poll, SYS_select,
#endif
    };

    for (size_t i = 0; i < sizeof calls / sizeof *calls; i++)
        if (calls[i] == number)
            return true;
    return false;
}

struct watch__line *watch__dump_add(struct watch__dump *d, int tid,
                                    const char *comm)
{
    struct watch__line *line;

    if (d->count == d->room) {
        unsigned room = d->room ? 2 * d->room : 64;
        struct watch__line *lines = realloc(d->lines, room * sizeof *lines);

        if (!lines)
            return NULL;
        d->lines = lines;
        d->room = room;
    }
    line = &d->lines[d->count++];
    memset(line, 0, sizeof *line);
    line->tid = tid;
    strncpy(line->comm, comm, sizeof line->comm - 1);
    line->role = watch__role_of(tid, d->pid, comm, &line->number);
    for (unsigned i = 0; i + 1 < d->count; i++)
        if (line->number > 0 && d->lines[i].role == line->role
            && d->lines[i].number == line->number)
            line->role = R_OTHER;       /* made by it, and has its name still */
    line->cpu = -1;
    line->queue = -1;
    line->state = '?';
    line->place.syscall = -1;
    return line;
}

static void add_thread(int tid, const char *name, void *arg)
{
    watch__dump_add(arg, tid, name);
}

static int by_role(const void *a, const void *b)
{
    const struct watch__line *x = a, *y = b;

    if (x->has_died != y->has_died)
        return x->has_died ? -1 : 1;
    if (x->role != y->role)
        return x->role < y->role ? -1 : 1;
    if (x->number != y->number)
        return x->number < y->number ? -1 : 1;
    return x->tid - y->tid;
}

void watch__dump_sort(struct watch__dump *d)
{
    if (d->count > 0)
        qsort(d->lines, d->count, sizeof *d->lines, by_role);
}

bool watch__dump_start(struct watch__dump *d)
{
    d->maps = watch__maps_new();
    if (!d->maps)
        return false;
    watch__each_thread(add_thread, d);
    watch__dump_sort(d);
    return d->count > 0;
}

void watch__dump_free(struct watch__dump *d)
{
    for (unsigned i = 0; i < d->count; i++) {
        free(d->lines[i].frames);
        free(d->lines[i].process);
    }
    free(d->lines);
    watch__maps_free(d->maps);
}

/* -- a stack ------------------------------------------------------------- */

void watch__dump_take(struct watch__dump *d, struct watch__line *line,
                      struct watch__stack *s)
{
    struct watch__frame *frames = NULL;

    if (s->count > 0) {
        frames = malloc(s->count * sizeof *frames);
        if (!frames)
            s->count = 0;
    }
    for (unsigned i = 0; i < s->count; i++) {
        watch__name(d->maps, &s->frames[i]);
        frames[i] = s->frames[i];
    }
    free(line->frames);
    line->frames = frames;
    line->count = s->count;
    line->taken = s->taken;
    line->end = s->end;
    line->regs = s->snapshot.regs;
    line->last = s->last;
    line->note = s->taken == TAKEN_OFF
        ? "what runs shows no stack without being stopped"
        : watch__stack_note(s);
    watch__judge_line(line, watch__sleeps_native(s, line->place.syscall));
}

static void unwind_line(struct watch__dump *d, struct watch__stack *s)
{
    s->count = 0;
    s->end = END_WHOLE;
    memset(&s->last, 0, sizeof s->last);
    if (s->taken == TAKEN)
        s->count = watch__unwind(d->maps, &s->snapshot, s->frames,
                                 WATCH__FRAMES, &s->end, &s->last);
}

static void stop_and_take(struct watch__dump *d, struct watch__stack *s,
                          int tid)
{
    uint64_t paused = 0;

    s->taken = watch__take_stopped(&s->snapshot, tid, STOP_NS, &paused);
    d->stopped += s->taken == TAKEN;
    if (paused > d->longest_pause_ns)
        d->longest_pause_ns = paused;
    unwind_line(d, s);
}

void watch__dump_stack(struct watch__dump *d, struct watch__line *line,
                       struct watch__stack *s)
{
    int fd = watch__open(line->tid, "syscall");

    s->taken = TAKEN_BUSY;
    s->snapshot.regs.known = 0;
    for (unsigned i = 0; i < TRIES && s->taken == TAKEN_BUSY; i++) {
        line->run = watch__where(fd, &line->place);
        if (line->run == RUN_SLEEPS) {
            s->taken = watch__take_sleeping(&s->snapshot, line->tid);
            unwind_line(d, s);
            if (s->taken == TAKEN && s->end == END_NO_REGISTER && d->stops
                && restarts(line->place.syscall)) {
                stop_and_take(d, s, line->tid);
                s->snapshot.slept = true;
                s->snapshot.syscall = line->place.syscall;
            }
        } else if (d->stops) {
            stop_and_take(d, s, line->tid);
        } else {
            s->taken = TAKEN_OFF;
            unwind_line(d, s);
        }
    }
    if (fd >= 0)
        close(fd);
}

/* -- looks --------------------------------------------------------------- */

static uint64_t ran_of(int tid)
{
    char text[96];

    return watch__read_once(tid, "schedstat", text, sizeof text) == 0
        ? strtoull(text, NULL, 10) : WATCH__NEVER;
}

/* When the scheduler last accounted for a thread, by its own clock: of one that
 * sleeps that is when it fell asleep.  0: not told. */
static uint64_t accounted(const char *text)
{
    const char *at = strstr(text, "se.exec_start");

    at = at ? strchr(at, ':') : NULL;
    return at ? (uint64_t)(strtod(at + 1, NULL) * 1e6) : 0;
}

/* Each processor's clock leaves out what interrupts and other machines took of
 * it, so it has to be the same one. */
static bool go_to_cpu_of(int tid)
{
    enum { PROCESSOR = 39 };
    char text[1024], *at;
    cpu_set_t set;

    if (watch__read_once(tid, "stat", text, sizeof text) != 0
        || !(at = strrchr(text, ')')))
        return false;
    for (int field = 2; at && field < PROCESSOR; field++)
        at = strchr(at + 1, ' ');
    CPU_ZERO(&set);
    if (at)
        CPU_SET((unsigned)atoi(at + 1) % CPU_SETSIZE, &set);
    return sched_setaffinity(0, sizeof set, &set) == 0;
}

static uint64_t asleep_ns(int tid)
{
    char text[2048];
    uint64_t slept, now = 0;
    cpu_set_t all;
    int fd;

    if (watch__read_once(tid, "sched", text, sizeof text) != 0)
        return 0;
    slept = accounted(text);
    if (sched_getaffinity(0, sizeof all, &all) != 0 || !go_to_cpu_of(tid))
        return 0;
    fd = open("/proc/thread-self/sched", O_RDONLY | O_CLOEXEC);
    if (fd >= 0) {
        if (watch__slurp(fd, text, sizeof text) > 0)
            now = accounted(text);
        close(fd);
    }
    sched_setaffinity(0, sizeof all, &all);
    return slept && now > slept ? now - slept : 0;
}

static bool is_same_place(const struct watch__place *a,
                       const struct watch__place *b)
{
    return a->syscall == b->syscall && a->arg == b->arg && a->sp == b->sp
        && a->pc == b->pc;
}

/* It has not run since it was looked at. */
static bool still_asleep(const struct watch__line *line, uint64_t ran)
{
    int fd = watch__open(line->tid, "syscall");
    struct watch__place place;
    bool is = line->run == RUN_SLEEPS && ran == line->ran_ns
        && ran != WATCH__NEVER
        && watch__where(fd, &place) == RUN_SLEEPS
        && is_same_place(&place, &line->place);

    if (fd >= 0)
        close(fd);
    return is;
}

static void look_at(struct watch__dump *d, struct watch__line *line, bool first,
                    struct watch__stack *s)
{
    uint64_t now = watch__now(), ran = ran_of(line->tid);
    struct watch__shown shown;
    struct watch__stat stat;
    bool was_in;

    line->state = watch__thread_stat(line->tid, &stat) == 0 ? stat.state : 'X';
    if (!first && ran != WATCH__NEVER && line->ran_ns != WATCH__NEVER
        && now > line->looked_at)
        line->cpu = (int)(watch__less(ran, line->ran_ns) * 1000
                          / (now - line->looked_at));
    if (!first && still_asleep(line, ran)) {
        line->same = line->proven = true;
        line->since_ns = asleep_ns(line->tid);
        if (line->since_ns < now - line->looked_at)
            line->since_ns = now - line->looked_at;
        return;
    }
    watch__dump_stack(d, line, s);
    was_in = line->in_call;
    line->in_call = watch__shown_of(s, ran, &shown) && s->count > 0;
    line->same = was_in && line->in_call
        && watch__same_call(&line->shown, &shown);
    line->proven = line->same && line->shown.whole && shown.whole;
    line->shown = shown;
    line->since_ns = line->same ? now - line->looked_at : 0;
    if (first) {
        line->looked_at = now;
        line->ran_ns = ran;
    }
    watch__dump_take(d, line, s);
}

/* A lock's holder is known by what its own PID namespace calls it. */
static void find_holder(const struct watch__dump *d, struct watch__line *line)
{
    char text[4096], *at;

    for (unsigned i = 0; i < d->count && line->holder; i++) {
        if (watch__read_once(d->lines[i].tid, "status", text, sizeof text)
            || !(at = strstr(text, "\nNSpid:")))
            continue;
        at[1 + strcspn(at + 1, "\n")] = '\0';
        at = strrchr(at, '\t');
        if (at && atoi(at + 1) == line->holder) {
            line->holder = d->lines[i].tid;
            return;
        }
    }
    line->holder = 0;
}

static bool is_doubtful(const struct watch__line *l)
{
    return l->role == R_NORMAL && l->unmoved && !l->proven;
}

static void look_at_all(struct watch__dump *d, bool first, bool again,
                        struct watch__stack *s,
                        void (*seen)(struct watch__dump *d,
                                     struct watch__line *line, bool first))
{
    for (unsigned i = 0; i < d->count; i++) {
        if (again && !is_doubtful(&d->lines[i]))
            continue;
        s->snapshot.size = 0;
        look_at(d, &d->lines[i], first, s);
        watch__source_lay(s->snapshot.stack, s->snapshot.from,
                          s->snapshot.size);
        seen(d, &d->lines[i], first);
        watch__source_lay(NULL, 0, 0);
    }
}

void watch__dump_look(struct watch__dump *d, uint64_t between_ns,
                      void (*seen)(struct watch__dump *d,
                                   struct watch__line *line, bool first))
{
    const struct timespec nap = {(time_t)(between_ns / NS_PER_S),
                                 (long)(between_ns % NS_PER_S)};
    struct watch__stack *s = watch__pages(sizeof *s);

    if (!s)
        return;
    look_at_all(d, true, false, s, seen);
    d->between_ns = between_ns;
    nanosleep(&nap, NULL);
    look_at_all(d, false, false, s, seen);
    for (unsigned i = 0; i < d->count; i++)
        if (d->lines[i].holder)
            find_holder(d, &d->lines[i]);
    watch__pages_free(s, sizeof *s);
}

void watch__dump_look_again(struct watch__dump *d,
                            void (*seen)(struct watch__dump *d,
                                         struct watch__line *line, bool first))
{
    const struct timespec nap = {.tv_sec = WATCH__LONG_S};
    struct watch__stack *s = NULL;

    for (unsigned i = 0; i < d->count && !s; i++)
        if (is_doubtful(&d->lines[i]))
            s = watch__pages(sizeof *s);
    if (!s)
        return;
    nanosleep(&nap, NULL);
    look_at_all(d, false, true, s, seen);
    watch__pages_free(s, sizeof *s);
}
