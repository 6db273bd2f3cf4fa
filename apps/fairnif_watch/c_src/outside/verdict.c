/*
 * verdict.c - what is wrong with a node, in sentences: the findings first, which
 * the exit code counts, as the watch would say them.
 *
 *   a scheduler that was in the same call at both looks is blocked; where frames
 *   end early it may be many calls, which is said and is no finding;
 *   a pool of dirty schedulers that all were is a finding where jobs wait, or
 *   where that is not known: such calls are what they are for;
 *   a stopped process is a finding;
 *   of a core there is one look: where each stood is what is said.
 */
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "outside/erlang.h"
#include "outside/judge.h"
#include "outside/verdict.h"

struct group {                  /* schedulers of one role, in one call */
    enum watch__role role;
    const struct watch__line *first;
    char name[WATCH__LABEL];
    unsigned count;
    bool proven;                /* of all */
    uint64_t since_ns;          /* the shortest */
    long waiting;               /* in their queues */
};

const char *watch__time(uint64_t ns, char to[32])
{
    double ms = (double)ns / 1e6;

    if (ms < 10)
        snprintf(to, 32, "%.1f ms", ms);
    else if (ms < 1000)
        snprintf(to, 32, "%.0f ms", ms);
    else if (ms < 100000)
        snprintf(to, 32, "%.1f s", ms / 1000);
    else if (ms < 6000000)
        snprintf(to, 32, "%.0f s", ms / 1000);
    else
        snprintf(to, 32, "%.0f min", ms / 60000);
    return to;
}

const char *watch__thread_name(const struct watch__line *line, char to[64])
{
    const char *role = watch__role_names[line->role];

    if (line->role == R_SIGNALS)
        snprintf(to, 64, "%s", line->comm);
    else if (line->role == R_OTHER && line->comm[0])
        snprintf(to, 64, "%s %d, %s", role, line->tid, line->comm);
    else if (line->role == R_OTHER)
        snprintf(to, 64, "%s %d", role, line->tid);
    else if (line->number || line->role == R_POLL)
        snprintf(to, 64, "%s %u", role, line->number);
    else
        snprintf(to, 64, "%s", role);
    return to;
}

const struct watch__line *watch__thread_of(const struct watch__dump *d, int tid)
{
    for (unsigned i = 0; i < d->count && tid; i++)
        if (d->lines[i].tid == tid)
            return &d->lines[i];
    return NULL;
}

/* The emulator's own code counts where the frames go down to Erlang code: a
 * scheduler that looks for work is in no call. */
bool watch__is_stuck(const struct watch__line *l)
{
    switch (l->doing) {
    case DOING_NATIVE:
        return l->same;
    case DOING_WAITS: case DOING_LOCK:
        return l->same;
    case DOING_EMULATOR:
        return l->same && (l->end == END_JIT || l->unmoved);
    default:
        return l->unmoved && l->proven;
    }
}

static void say(struct watch__verdict *v, const char *format, ...)
{
    va_list list;

    if (v->count == WATCH__SENTENCES)
        return;
    va_start(list, format);
    vsnprintf(v->sentence[v->count++], WATCH__SENTENCE, format, list);
    va_end(list);
}

static unsigned count_role(const struct watch__dump *d, enum watch__role role,
                           bool stuck)
{
    unsigned n = 0;

    for (unsigned i = 0; i < d->count; i++)
        n += d->lines[i].role == role
            && (!stuck || watch__is_stuck(&d->lines[i]));
    if (!stuck && role <= R_DIRTY_IO && d->schedulers[role] > n)
        n = d->schedulers[role];        /* of a core not all are recognised */
    return n;
}

static void name_of_line(const struct watch__line *l, char to[WATCH__LABEL])
{
    if (l->culprit)
        watch__culprit_name(l->culprit, to);
    else if (l->process && l->process->current[0])
        snprintf(to, WATCH__LABEL, "%s", l->process->current);
    else if (l->process && l->process->called[0])
        snprintf(to, WATCH__LABEL, "an unknown call of %s, which last called "
                 "%s", l->process->pid, l->process->called);
    else
        snprintf(to, WATCH__LABEL, "%s", l->end == END_MACHINE
                 ? "code that belongs to no file" : "an unknown call");
}

/* Those that are in the same call as line `at`, if that is the first. */
static bool group_of(const struct watch__dump *d, unsigned at, struct group *g)
{
    const struct watch__line *l = &d->lines[at];
    char name[WATCH__LABEL];

    *g = (struct group){.role = l->role, .first = l, .proven = l->proven,
                        .since_ns = l->since_ns};
    name_of_line(l, g->name);
    for (unsigned i = 0; i < d->count; i++) {
        const struct watch__line *m = &d->lines[i];

        if (m->role != l->role || !watch__is_stuck(m)
            || m->proven != l->proven || m->place.syscall != l->place.syscall)
            continue;
        name_of_line(m, name);
        if (strcmp(name, g->name))
            continue;
        if (i < at)
            return false;
        g->count++;
        g->waiting += m->queue > 0 ? m->queue : 0;
        if (m->since_ns < g->since_ns)
            g->since_ns = m->since_ns;
    }
    return true;
}

/* ", asleep in the system call openat", ", waiting for a lock that ... holds" */
static void how(const struct watch__dump *d, const struct watch__line *l,
                char to[256])
{
    const struct watch__line *holder = watch__thread_of(d, l->holder);
    const char *name = watch__syscall_name(l->place.syscall);
    char thread[64];

    to[0] = '\0';
    if (l->doing == DOING_LOCK && holder)
        snprintf(to, 256, ", waiting for a lock that %s%s holds",
                 watch__thread_name(holder, thread),
                 holder == l ? " itself" : "");
    else if (l->doing == DOING_LOCK)
        snprintf(to, 256, ", waiting for a lock");
    else if (l->doing == DOING_WAITS && name)
        snprintf(to, 256, ", asleep in the system call %s", name);
    else if (l->doing == DOING_WAITS)
        snprintf(to, 256, ", asleep");
}

static const char *lasts(const struct watch__line *l)
{
    return l->run == RUN_SLEEPS ? "" : "at least ";
}

static const char *one(const char *verb)
{
    return !strcmp(verb, "have") ? "has" : !strcmp(verb, "are") ? "is"
        : !strcmp(verb, "were") ? "was" : verb;
}

/* "Scheduler 3 has", "Both dirty I/O schedulers are", "3 of 8 schedulers are" */
static void subject_of(unsigned n, unsigned all,
                       const struct watch__line *first, const char *verb,
                       char to[96])
{
    const char *pool = watch__role_names[first->role];
    char kind[48];

    if (first->role == R_NORMAL)
        snprintf(kind, sizeof kind, "schedulers");
    else
        snprintf(kind, sizeof kind, "%s schedulers", pool);
    if (n == all && n == 2)
        snprintf(to, 96, "Both %s %s", kind, verb);
    else if (n == all && n > 2)
        snprintf(to, 96, "All %u %s %s", n, kind, verb);
    else if (n > 1)
        snprintf(to, 96, "%u of %u %s %s", n, all, kind, verb);
    else if (first->role == R_NORMAL)
        snprintf(to, 96, "Scheduler %u %s", first->number, one(verb));
    else
        snprintf(to, 96, "1 of %u %s %s", all, kind, one(verb));
}

static void processes_wait(long n, char to[64])
{
    if (n > 0)
        snprintf(to, 64, n == 1 ? "; 1 process waits" : "; %ld processes wait",
                 n);
    else
        to[0] = '\0';
}

static void blocked(const struct watch__dump *d, struct watch__verdict *v,
                    const struct group *g)
{
    char subject[96], asleep[256], time[32], waiting[64];

    subject_of(g->count, count_role(d, R_NORMAL, false), g->first,
               d->is_core ? "stood" : g->proven ? "have" : "were", subject);
    how(d, g->first, asleep);
    processes_wait(g->waiting, waiting);
    if (d->is_core) {
        say(v, "%s in %s%s%s.", subject, g->name, asleep, waiting);
        return;                 /* one look proves nothing */
    }
    if (!g->proven) {
        say(v, "%s seen twice in %s%s, in one call or in many%s.", subject,
            g->name, asleep, waiting);
        return;
    }
    say(v, "%s been blocked for %s%s by %s%s%s.", subject, lasts(g->first),
        watch__time(g->since_ns, time), g->name, asleep, waiting);
    v->exit_code = WATCH__FOUND;
}

static void say_waiting(long n, char to[64])
{
    if (n < 0)
        snprintf(to, 64, "how many jobs wait is not known");
    else if (n == 0)
        snprintf(to, 64, "no job waits");
    else
        snprintf(to, 64, n == 1 ? "1 job waits" : "%ld jobs wait", n);
}

/* Of a pool that is full the largest group first. */
static void judge_pool(const struct watch__dump *d, struct watch__verdict *v,
                       enum watch__role role, bool full)
{
    unsigned all = count_role(d, role, false), n = count_role(d, role, true);
    struct group g, most = {.count = 0};
    char subject[96], asleep[256], time[64], ns[32], waiting[64];
    unsigned proven = 0;
    bool is_full;

    for (unsigned i = 0; i < d->count; i++) {
        if (d->lines[i].role != role || !watch__is_stuck(&d->lines[i]))
            continue;
        proven += d->lines[i].proven;
        if (group_of(d, i, &g) && g.count > most.count)
            most = g;
    }
    is_full = !d->is_core && n == all && proven == all
        && d->waiting[role] != 0;
    if (most.count == 0 || is_full != full)
        return;
    subject_of(n, all, most.first, d->is_core ? "stood" : "are", subject);
    how(d, most.first, asleep);
    say_waiting(d->waiting[role], waiting);
    if (d->is_core)
        time[0] = '\0';
    else if (most.proven)
        snprintf(time, sizeof time, ", for %s%s", lasts(most.first),
                 watch__time(most.since_ns, ns));
    else
        snprintf(time, sizeof time, ", in one call or in many");
    if (most.count == n)
        say(v, "%s in %s%s%s; %s.", subject, most.name, asleep, time, waiting);
    else
        say(v, "%s in native code, %u of them in %s%s%s; %s.", subject,
            most.count, most.name, asleep, time, waiting);
    if (is_full)
        v->exit_code = WATCH__FOUND;
}

static void stopped(const struct watch__dump *d, struct watch__verdict *v)
{
    unsigned n = 0;

    for (unsigned i = 0; i < d->count; i++)
        n += d->lines[i].doing == DOING_STOPPED;
    if (n == 0)
        return;
    if (d->tracer)
        say(v, "%s stopped by process %d, which traces it.", n == d->count
            ? "The whole process is" : "A part of the process is", d->tracer);
    else
        say(v, "The process is stopped by a signal; kill -CONT %d lets it go "
            "on.", d->pid);
    v->exit_code = WATCH__FOUND;
}

static void died(const struct watch__dump *d, struct watch__verdict *v)
{
    if (d->signal > 0)
        v->exit_code = WATCH__FOUND;
    if (d->signal > 0 && d->sender)
        say(v, "The node was ended by signal %d (%s), which process %d had "
            "sent.", d->signal, strsignal(d->signal), d->sender);
    for (unsigned i = 0; i < d->count; i++) {
        const struct watch__line *l = &d->lines[i];
        char name[WATCH__LABEL], thread[64], address[64];

        if (l->doing != DOING_DIED)
            continue;
        name_of_line(l, name);
        snprintf(address, sizeof address, d->has_address
                 ? " at address 0x%llx" : "", (unsigned long long)d->address);
        say(v, "The node died of signal %d (%s)%s in %s, on %s.", d->signal,
            strsignal(d->signal), address, name, watch__thread_name(l, thread));
    }
}

static void at_rest(const struct watch__dump *d, struct watch__verdict *v)
{
    unsigned all = count_role(d, R_NORMAL, false), idle = 0, unknown = 0;

    for (unsigned i = 0; i < d->count; i++)
        if (d->lines[i].role == R_NORMAL) {
            idle += d->lines[i].doing == DOING_IDLE;
            unknown += d->lines[i].doing == DOING_UNKNOWN;
        }
    if (d->is_core) {
        say(v, "No scheduler stood in native code.");
        return;
    }
    if (unknown == all)
        v->exit_code = WATCH__UNSEEN;
    if (unknown)
        say(v, "No scheduler is seen to be blocked, but of %u %u show%s no "
            "stack.", all, unknown, unknown == 1 ? "s" : "");
    else
        say(v, "No scheduler is blocked: of %u, %u run%s and %u sleep%s.", all,
            all - idle, all - idle == 1 ? "s" : "", idle,
            idle == 1 ? "s" : "");
}

void watch__verdict(const struct watch__dump *d, struct watch__verdict *v)
{
    struct group g;

    memset(v, 0, sizeof *v);
    died(d, v);
    stopped(d, v);
    for (unsigned i = 0; i < d->count; i++)
        if (d->lines[i].role == R_NORMAL && watch__is_stuck(&d->lines[i])
            && group_of(d, i, &g))
            blocked(d, v, &g);
    /* What is found comes first. */
    for (unsigned full = 2; full-- > 0;) {
        if (!full && v->count == 0)
            at_rest(d, v);
        judge_pool(d, v, R_DIRTY_CPU, full);
        judge_pool(d, v, R_DIRTY_IO, full);
    }
    if (d->note[0])
        say(v, "%s", d->note);
}
