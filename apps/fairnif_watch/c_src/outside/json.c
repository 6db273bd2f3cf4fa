/*
 * json.c - a dump as one JSON object.  Keys are those of the watch's schema
 * (watch-1.schema.json) where they say the same; null: not known, or none.
 */
#include <string.h>

#include "outside/erlang.h"
#include "outside/judge.h"
#include "outside/print.h"

/* Any bytes: what is no UTF-8 becomes a question mark. */
static void text(FILE *to, const char *s)
{
    const unsigned char *p = (const unsigned char *)s;

    if (!s || !*s) {
        fputs("null", to);
        return;
    }
    putc('"', to);
    while (*p) {
        size_t n = watch__utf8(p);

        if (n == 0)
            putc('?', to);
        else if (*p == '"' || *p == '\\')
            fprintf(to, "\\%c", *p);
        else if (*p < ' ')
            fprintf(to, "\\u%04x", *p);
        else
            fwrite(p, 1, n, to);
        p += n ? n : 1;
    }
    putc('"', to);
}

static const char *const kinds[R_ROLES] = {
    [R_NORMAL] = "normal", [R_DIRTY_CPU] = "dirty_cpu",
    [R_DIRTY_IO] = "dirty_io", [R_POLL] = "poll", [R_AUX] = "aux",
    [R_ASYNC] = "async", [R_SIGNALS] = "signals", [R_POOL] = "fairnif",
    [R_WATCH] = "watch", [R_MAIN] = "main", [R_OTHER] = "other"
};

static void key(FILE *to, const char *name)
{
    fprintf(to, ",\"%s\":", name);
}

static void text_key(FILE *to, const char *name, const char *s)
{
    key(to, name);
    text(to, s);
}

static void number_key(FILE *to, const char *name, bool is, double n)
{
    key(to, name);
    if (is)
        fprintf(to, "%.15g", n);
    else
        fputs("null", to);
}

static const char *nif_of(const struct watch__frame *f, char to[160])
{
    if (f->function[0])
        snprintf(to, 160, "%s:%s/%u", f->module, f->function, f->arity);
    else
        snprintf(to, 160, "%s", f->module);
    return to;
}

static const char *in_name(const struct watch__frame *f)
{
    static const char *const names[] = {
        [IN_UNKNOWN] = "unknown", [IN_EMULATOR] = "emulator",
        [IN_JIT] = "jit", [IN_LIBC] = "libc", [IN_WATCH] = "watch",
        [IN_FAIRNIF] = "fairnif", [IN_LIBRARY] = "library"
    };

    return names[f->in];
}

static void frame(FILE *to, const struct watch__frame *f)
{
    static const char *const by[] = {
        [NAMED_NIF_TABLE] = "nif_table", [NAMED_SYMTAB] = "symtab",
        [NAMED_DYNSYM] = "dynsym"
    };
    char nif[160];

    fprintf(to, "{\"address\":%llu", (unsigned long long)f->pc);
    text_key(to, "library", f->library);
    number_key(to, "offset", f->library != NULL, (double)f->offset);
    number_key(to, "function_offset", f->start && f->pc >= f->start,
               (double)(f->pc - f->start));
    text_key(to, "symbol", f->symbol);
    number_key(to, "symbol_offset", f->symbol[0],
               (double)f->symbol_offset);
    text_key(to, "in", in_name(f));
    text_key(to, "nif", nif_of(f, nif));
    text_key(to, "by", by[f->named]);
    text_key(to, "driver", f->driver);
    text_key(to, "callback", f->callback);
    putc('}', to);
}

static void culprit(FILE *to, const struct watch__line *l)
{
    const struct watch__frame *f = l->culprit;
    char name[WATCH__LABEL] = "", nif[160];

    if (f)
        watch__culprit_name(f, name);
    fputs("{\"kind\":", to);
    text(to, watch__culprit_kind(f));
    text_key(to, "name", f ? name : "unknown");
    text_key(to, "mfa", f && f->function[0] ? nif_of(f, nif) : NULL);
    text_key(to, "library", f ? f->library : NULL);
    text_key(to, "symbol", f ? f->symbol : NULL);
    number_key(to, "offset", f && f->library, f ? (double)f->offset : 0);
    text_key(to, "module", f ? f->module : NULL);
    text_key(to, "syscall", l->run == RUN_SLEEPS
             ? watch__syscall_name(l->place.syscall) : NULL);
    putc('}', to);
}

static void process(FILE *to, const struct watch__process_seen *p)
{
    if (!p) {
        fputs("null", to);
        return;
    }
    fputs("{\"pid\":", to);
    text(to, p->pid);
    text_key(to, "registered", p->name);
    text_key(to, "status", p->status);
    text_key(to, "current_function", p->current);
    text_key(to, "initial_call", p->initial);
    number_key(to, "messages", p->messages >= 0, (double)p->messages);
    number_key(to, "heap_words", p->heap >= 0, (double)p->heap);
    key(to, "stack");
    for (unsigned i = 0; i < p->count; i++) {
        putc(i ? ',' : '[', to);
        text(to, p->stack[i]);
    }
    fputs(p->count ? "]}" : "[]}", to);
}

static void line(FILE *to, const struct watch__dump *d,
                 const struct watch__line *l)
{
    const struct watch__line *holder = watch__thread_of(d, l->holder);
    char thread[64];

    fprintf(to, "{\"tid\":%d", l->tid);
    text_key(to, "name", l->comm);
    text_key(to, "kind", kinds[l->role]);
    number_key(to, "number", l->number > 0, l->number);
    text_key(to, "doing", watch__doing_names[l->doing]);
    key(to, "blocked");
    fputs(watch__is_stuck(l) ? "true" : "false", to);
    key(to, "proven");
    fputs(l->proven ? "true" : "false", to);
    number_key(to, "since_ms", l->since_ns > 0, (double)l->since_ns / 1e6);
    number_key(to, "cpu", l->cpu >= 0, l->cpu / 1000.0);
    number_key(to, "system_call", l->place.syscall >= 0,
               (double)l->place.syscall);
    text_key(to, "lock_holder",
             holder ? watch__thread_name(holder, thread) : NULL);
    key(to, "culprit");
    culprit(to, l);
    number_key(to, "run_queue", l->queue >= 0, l->queue);
    key(to, "process");
    process(to, l->process);
    key(to, "stack");
    for (unsigned i = 0; i < l->count; i++) {
        putc(i ? ',' : '[', to);
        frame(to, &l->frames[i]);
    }
    fputs(l->count ? "]" : "[]", to);
    text_key(to, "stack_note", l->note);
    putc('}', to);
}

void watch__print_json(FILE *to, const struct watch__dump *d,
                       const struct watch__verdict *v)
{
    fputs("{\"schema_version\":1", to);
    text_key(to, "verdict", v->sentence[0]);
    key(to, "sentences");
    for (unsigned i = 0; i < v->count; i++) {
        putc(i ? ',' : '[', to);
        text(to, v->sentence[i]);
    }
    fprintf(to, "],\"exit_code\":%d", v->exit_code);
    number_key(to, "pid", true, d->pid);
    text_key(to, "node", d->name);
    number_key(to, "signal", d->signal > 0, d->signal);
    number_key(to, "looks_apart_ms", !d->is_core,
               (double)d->between_ns / 1e6);
    number_key(to, "stops", true, d->stopped);
    number_key(to, "longest_stop_us", true,
               (double)d->longest_pause_ns / 1e3);
    text_key(to, "otp", d->release);
    text_key(to, "left_out", d->unseen);
    key(to, "queues");
    for (unsigned i = R_NORMAL; i <= R_DIRTY_IO; i++) {
        fprintf(to, "%s\"%s\":", i ? "," : "{", kinds[i]);
        if (d->waiting[i] < 0)
            fputs("null", to);
        else
            fprintf(to, "%ld", d->waiting[i]);
    }
    putc('}', to);
    key(to, "threads");
    for (unsigned i = 0; i < d->count; i++) {
        putc(i ? ',' : '[', to);
        line(to, d, &d->lines[i]);
    }
    fputs(d->count ? "]}\n" : "[]}\n", to);
}
