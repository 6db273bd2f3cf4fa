/*
 * print.c - a dump as text.
 */
#include <stdlib.h>
#include <string.h>

#include "outside/erlang.h"
#include "outside/judge.h"
#include "outside/print.h"

static void doing_of(const struct watch__dump *d, const struct watch__line *l,
                     char to[160])
{
    const struct watch__line *holder = watch__thread_of(d, l->holder);
    const char *call = watch__syscall_name(l->place.syscall);
    char name[64];

    switch (l->doing) {
    case DOING_ERLANG: snprintf(to, 160, "runs Erlang code"); break;
    case DOING_NATIVE: snprintf(to, 160, "runs native code"); break;
    case DOING_EMULATOR: snprintf(to, 160, "runs the emulator's code"); break;
    case DOING_IDLE:
        snprintf(to, 160, l->run == RUN_SLEEPS ? "sleeps" : "looks for work");
        break;
    case DOING_STOPPED: snprintf(to, 160, "is stopped"); break;
    case DOING_DIED: snprintf(to, 160, "died"); break;
    case DOING_WAITS:
        if (call)
            snprintf(to, 160, "waits in %s", call);
        else
            snprintf(to, 160, "waits in system call %ld", l->place.syscall);
        break;
    case DOING_LOCK:
        if (holder)
            snprintf(to, 160, "waits for a lock that %s holds",
                     watch__thread_name(holder, name));
        else
            snprintf(to, 160, "waits for a lock");
        break;
    default:
        snprintf(to, 160, "%s", l->run == RUN_RUNNING ? "runs" : "unknown");
    }
}

/* False: from here outward it is how each scheduler's thread begins. */
static bool print_frame(FILE *to, const struct watch__frame *f)
{
    char name[WATCH__LABEL], label[WATCH__LABEL];

    watch__label(f, label);
    watch__culprit_name(f, name);
    /* The NIF, and below which name the library has it. */
    if ((f->function[0] || f->callback) && f->symbol[0])
        fprintf(to, "    %s: %s\n", name, label);
    else if (f->function[0] || f->callback)
        fprintf(to, "    %s\n", name);
    else
        fprintf(to, "    %s\n", label);
    return strcmp(f->symbol, "erts_dirty_process_main")
        && strcmp(f->symbol, "erts_schedule");
}

static void print_process(FILE *to, const struct watch__process_seen *p)
{
    fprintf(to, "  %s", p->pid);
    if (p->name[0])
        fprintf(to, " %s", p->name);
    if (p->messages >= 0)
        fprintf(to, ", %lld messages", (long long)p->messages);
    if (p->heap >= 0)
        fprintf(to, ", heap of %lld words", (long long)p->heap);
    if (p->initial[0])
        fprintf(to, ", began in %s", p->initial);
    fprintf(to, "\n");
}

/* What waits for the native code: Erlang, innermost first. */
static void print_calls(FILE *to, const struct watch__process_seen *p)
{
    if (p->current[0])
        fprintf(to, "    %s\n", p->current);
    for (unsigned i = 0; i < p->count; i++)
        if (p->stack[i][0])
            fprintf(to, "    %s\n", p->stack[i]);
}

static bool same_frames(const struct watch__line *a,
                        const struct watch__line *b)
{
    if (a->count != b->count || a->count == 0 || a->end == END_JIT)
        return false;
    for (unsigned i = 0; i < a->count; i++)
        if (a->frames[i].pc != b->frames[i].pc)
            return false;
    return true;
}

/* The frames once for those that stand at the same place, one behind the
 * other. */
static void print_line(FILE *to, const struct watch__dump *d,
                       const struct watch__line *l,
                       const struct watch__line *before)
{
    char thread[64], doing[224], time[32], cpu[32] = "";

    doing_of(d, l, doing);
    if (l->since_ns && l->doing != DOING_IDLE)
        snprintf(doing + strlen(doing), sizeof doing - strlen(doing),
                 ", %sfor %s", l->run == RUN_SLEEPS ? "" : "at least ",
                 watch__time(l->since_ns, time));
    if (l->cpu >= 0)
        snprintf(cpu, sizeof cpu, "%3d %% CPU",
                 l->cpu > 1000 ? 100 : (l->cpu + 5) / 10);
    fprintf(to, "%-18s %10s  %s\n", watch__thread_name(l, thread), cpu, doing);
    if (l->process)
        print_process(to, l->process);
    if (before && same_frames(l, before)) {
        fprintf(to, "    the same frames\n");
        return;
    }
    for (unsigned i = 0; i < l->count; i++)
        if (!print_frame(to, &l->frames[i]))
            break;
    if (l->process)
        print_calls(to, l->process);
    if (l->count == 0 || (l->end != END_WHOLE && l->end != END_JIT))
        fprintf(to, "    (%s)\n", l->note);
}

static bool is_quiet(const struct watch__line *l)
{
    return l->doing == DOING_IDLE
        || (l->role > R_DIRTY_IO && l->run == RUN_SLEEPS
            && l->role != R_ASYNC && l->doing != DOING_DIED);
}

/* Those of a role that sleep idle, in one line. */
static unsigned print_quiet(FILE *to, const struct watch__dump *d, unsigned at)
{
    const struct watch__line *l = &d->lines[at];
    char thread[64];
    unsigned n = 1;

    while (at + n < d->count && is_quiet(&d->lines[at + n])
           && d->lines[at + n].role == l->role
           && d->lines[at + n].number == l->number + n)
        n++;
    watch__thread_name(l, thread);
    if (n > 1)
        snprintf(thread + strlen(thread), sizeof thread - strlen(thread),
                 " to %u", l->number + n - 1);
    fprintf(to, "%-18s %10s  sleep%s\n", thread, "",
            n > 1 ? "" : "s");
    return n;
}

static void print_head(FILE *to, const struct watch__dump *d)
{
    char time[32];

    if (d->is_core)
        fprintf(to, "core of process %d", d->pid);
    else
        fprintf(to, "%s%sprocess %d", d->name, d->name[0] ? ", " : "", d->pid);
    if (d->release[0])
        fprintf(to, ", Erlang/OTP %s", d->release);
    fprintf(to, ", %u threads", d->count);
    if (d->stopped)
        fprintf(to, "; %u stops, of %s at most", d->stopped,
                watch__time(d->longest_pause_ns, time));
    fprintf(to, "\n\n");
}

size_t watch__utf8(const unsigned char *s)
{
    size_t n = *s < 0x80 ? 1 : *s >= 0xc2 && *s < 0xe0 ? 2
        : *s >= 0xe0 && *s < 0xf0 ? 3 : *s >= 0xf0 && *s < 0xf5 ? 4 : 0;

    for (size_t i = 1; i < n; i++)
        if ((s[i] & 0xc0) != 0x80)
            return 0;
    if ((s[0] == 0xe0 && s[1] < 0xa0) || (s[0] == 0xed && s[1] > 0x9f)
        || (s[0] == 0xf0 && s[1] < 0x90) || (s[0] == 0xf4 && s[1] > 0x8f))
        return 0;
    return n;
}

void watch__plain_text(FILE *to, const char *text)
{
    const unsigned char *p = (const unsigned char *)text;

    while (*p) {
        size_t n = watch__utf8(p);
        bool control = (*p < ' ' && *p != '\n') || *p == 0x7f
            || (n == 2 && p[0] == 0xc2 && p[1] < 0xa0);

        if (n == 0 || control)
            putc('?', to);
        else
            fwrite(p, 1, n, to);
        p += n ? n : 1;
    }
}

void watch__print(FILE *out, const struct watch__dump *d,
                  const struct watch__verdict *v, bool all)
{
    char *text = NULL;
    size_t size = 0;
    FILE *to = open_memstream(&text, &size);

    if (!to)
        return;
    for (unsigned i = 0; i < v->count; i++)
        fprintf(to, "%s\n", v->sentence[i]);
    fprintf(to, "\n");
    print_head(to, d);
    for (unsigned i = 0; i < d->count;)
        if (!all && is_quiet(&d->lines[i]))
            i += print_quiet(to, d, i);
        else
            print_line(to, d, &d->lines[i], i > 0 ? &d->lines[i - 1] : NULL),
                i++;
    if (d->unseen[0])
        fprintf(to, "\nLeft out: %s.\n", d->unseen);
    if (fclose(to) == 0 && text)
        watch__plain_text(out, text);
    free(text);
}
