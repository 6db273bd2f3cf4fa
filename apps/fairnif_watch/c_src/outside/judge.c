/*
 * judge.c - what a thread does, and who makes it.  The rules are
 * fairnif_watch_culprit's: nothing is guessed, and what no symbol covers is
 * named by its library and offset.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>

#include "outside/judge.h"
#include "read/mem.h"

const char *const watch__doing_names[DOINGS] = {
    [DOING_UNKNOWN] = "unknown", [DOING_ERLANG] = "erlang",
    [DOING_NATIVE] = "native", [DOING_EMULATOR] = "emulator",
    [DOING_IDLE] = "idle", [DOING_WAITS] = "waits", [DOING_LOCK] = "lock",
    [DOING_STOPPED] = "stopped", [DOING_DIED] = "died"
};

static bool has_prefix(const char *s, const char *with)
{
    return !strncmp(s, with, strlen(with));
}

/* -- who ----------------------------------------------------------------- */

static bool is_named(const struct watch__frame *f)
{
    return f->function[0] || f->driver[0] || f->callback;
}

static bool is_foreign(const struct watch__frame *f)
{
    return f->in == IN_LIBRARY || f->in == IN_FAIRNIF || f->in == IN_WATCH
        || (f->in == IN_EMULATOR && is_named(f));
}

/* module_function_arity, which is how the emulator calls its BIFs. */
static bool is_bif(const struct watch__frame *f)
{
    const char *digits = strrchr(f->symbol, '_');

    return f->in == IN_EMULATOR && digits && digits > f->symbol && digits[1]
        && strspn(digits + 1, "0123456789") == strlen(digits + 1);
}

static bool is_call_bif(const struct watch__frame *f)
{
    char name[WATCH__LABEL];

    watch__plain(f->symbol, name);
    return has_prefix(name, "beam_jit_call_bif");
}

static bool is_loop(const struct watch__frame *f)
{
    static const char *const loops[] = {
        "process_main", "erts_dirty_process_main", "sched_thread_func",
        "sched_dirty_cpu_thread_func", "sched_dirty_io_thread_func",
        "thr_wrapper", "erts_schedule", "main", "_start"
    };

    for (size_t i = 0; i < sizeof loops / sizeof *loops; i++)
        if (!strcmp(f->symbol, loops[i]))
            return true;
    return false;
}

static bool is_gc(const struct watch__frame *f)
{
    return has_prefix(f->symbol, "erts_garbage_collect")
        || has_prefix(f->symbol, "erts_gc_");
}

static bool is_exit(const struct watch__frame *f)
{
    return !strcmp(f->symbol, "erts_continue_exit_process")
        || !strcmp(f->symbol, "erts_do_exit_process");
}

/* What a scheduler does between two processes and is no search for work. */
static bool is_chore(const struct watch__frame *f)
{
    return is_gc(f) || is_exit(f) || has_prefix(f->symbol, "erts_port_task_")
        || has_prefix(f->symbol, "erts_proc_sig_")
        || has_prefix(f->symbol, "erts_check_process_code")
        || !strcmp(f->symbol, "erts_bump_timers");
}

/* What the emulator called: the outermost frame that is not its own.  A task's
 * frames end in fairnif, which is not who it works for.  A library that a BIF
 * calls (zlib) is the emulator's. */
static const struct watch__frame *foreign(const struct watch__line *l)
{
    bool in_bif = false;

    for (unsigned i = l->count; i-- > 0;) {
        const struct watch__frame *f = &l->frames[i];

        in_bif = in_bif || is_bif(f) || is_call_bif(f);
        if (!is_foreign(f))
            continue;
        if (in_bif && !is_named(f) && !f->module[0])
            return NULL;
        if (f->in == IN_FAIRNIF && !is_named(f))
            for (unsigned k = i; k-- > 0;)
                if (l->frames[k].in == IN_LIBRARY)
                    return &l->frames[k];
        return f;
    }
    return NULL;
}

/* Of its own: what it does by itself, else the function nearest to Erlang
 * code. */
static const struct watch__frame *own(const struct watch__line *l)
{
    const struct watch__frame *found = NULL;

    for (unsigned i = 0; i < l->count; i++) {
        const struct watch__frame *f = &l->frames[i];

        if (f->in == IN_EMULATOR && (is_gc(f) || is_exit(f)))
            return f;
        if (f->in == IN_EMULATOR && !is_loop(f) && !is_call_bif(f)
            && (!found || l->end == END_JIT || f->symbol[0]))
            found = f;
    }
    return found;
}

/* -- what ---------------------------------------------------------------- */

/* A mutex of glibc's: a word that is waited for, a count, the thread that has
 * it. */
static int holder_of(const struct watch__line *l)
{
    struct { uint32_t lock, count; int32_t owner; } mutex;

    for (unsigned i = 0; i < l->count && l->frames[i].in == IN_LIBC; i++)
        if (has_prefix(l->frames[i].symbol, "pthread_mutex_"))
            return watch__read_all(&mutex, l->place.arg, sizeof mutex)
                && mutex.lock ? mutex.owner : 0;
    return 0;
}

/* In a BIF: for a lock of a table, of a process. */
static bool sleeps_in_bif(const struct watch__line *l)
{
    for (unsigned i = 0; i < l->count && l->role <= R_DIRTY_IO; i++) {
        if (!strcmp(l->frames[i].symbol, "erts_schedule"))
            return false;
        if (is_bif(&l->frames[i]) || is_call_bif(&l->frames[i]))
            return true;
    }
    return false;
}

static enum watch__doing asleep(struct watch__line *l, bool native)
{
    if (!l->culprit && !sleeps_in_bif(l)
        && (!native || l->role == R_MAIN || l->role == R_SIGNALS))
        return DOING_IDLE;
    if (l->place.syscall != SYS_futex)
        return DOING_WAITS;
    l->holder = holder_of(l);
    return DOING_LOCK;
}

static enum watch__doing awake(const struct watch__line *l)
{
    if (l->count == 0)
        return DOING_UNKNOWN;
    if (l->culprit || l->end == END_MACHINE)
        return DOING_NATIVE;
    if (l->end == END_JIT && l->count == 1)
        return DOING_ERLANG;
    for (unsigned i = 0; i < l->count; i++) {
        if (is_chore(&l->frames[i]))
            return DOING_EMULATOR;
        if (!strcmp(l->frames[i].symbol, "erts_schedule"))
            return DOING_IDLE;
    }
    for (unsigned i = 0; i < l->count; i++)
        if (l->frames[i].in == IN_EMULATOR || l->frames[i].in == IN_JIT)
            return DOING_EMULATOR;
    return DOING_UNKNOWN;
}

void watch__judge_line(struct watch__line *l, bool sleeps_native)
{
    l->culprit = foreign(l);
    l->holder = 0;
    if (l->has_died)
        l->doing = DOING_DIED;
    else if (l->state == 'T' || l->state == 't')
        l->doing = DOING_STOPPED;
    else if (l->run == RUN_SLEEPS)
        l->doing = asleep(l, sleeps_native);
    else
        l->doing = awake(l);
    if ((l->doing == DOING_DIED && !l->culprit) || l->doing == DOING_EMULATOR
        || (l->doing == DOING_WAITS && !l->culprit))
        l->culprit = own(l);
}

/* -- names --------------------------------------------------------------- */

/* Itanium's ABI: _Z3foo..., _ZN3foo3barE...; whatever is in the way (operators,
 * templates): the symbol as it is. */
void watch__plain(const char *symbol, char to[WATCH__LABEL])
{
    const char *s = symbol + 2;
    bool nested = has_prefix(symbol, "_ZN");
    size_t used = 0;

    snprintf(to, WATCH__LABEL, "%s", symbol);
    if (!has_prefix(symbol, "_Z"))
        return;
    s += nested + strspn(s + nested, nested ? "rVK" : "L");
    do {
        char *name;
        size_t n = *s >= '0' && *s <= '9' ? strtoul(s, &name, 10) : 0;

        if (n == 0 || n > strlen(name) || used + n + 3 > WATCH__LABEL) {
            snprintf(to, WATCH__LABEL, "%s", symbol);
            return;
        }
        /* The last part of a Rust symbol is a number. */
        if (used && n == 17 && name[0] == 'h' && name[17] == 'E')
            return;
        used += (size_t)sprintf(to + used, "%s%.*s", used ? "::" : "", (int)n,
                                name);
        s = name + n;
    } while (nested && *s != 'E');
}

static const char *file_of(const struct watch__frame *f)
{
    const char *slash = f->library ? strrchr(f->library, '/') : NULL;

    return f->in == IN_EMULATOR ? "emulator" : f->in == IN_JIT
        ? "code of the JIT" : !f->library ? "unknown code"
        : slash ? slash + 1 : f->library;
}

/* Symbol and library; or library and offset, of the function where the unwind
 * table tells where that begins. */
void watch__label(const struct watch__frame *f, char to[WATCH__LABEL])
{
    uint64_t offset = f->start && f->pc >= f->start
        ? f->offset - (f->pc - f->start) : f->offset;
    char name[WATCH__LABEL];

    if (f->symbol[0]) {
        watch__plain(f->symbol, name);
        snprintf(to, WATCH__LABEL, "%.500s (%.200s)", name, file_of(f));
    } else if (f->library) {
        snprintf(to, WATCH__LABEL, "%.200s+0x%llx", file_of(f),
                 (unsigned long long)offset);
    } else {
        snprintf(to, WATCH__LABEL, "%s", file_of(f));
    }
}

const char *watch__culprit_kind(const struct watch__frame *f)
{
    return !f ? "none" : f->driver[0] ? "driver" : f->callback ? "load"
        : f->function[0] || f->in != IN_EMULATOR ? "nif"
        : is_gc(f) ? "gc" : is_exit(f) ? "exit" : is_bif(f) ? "bif"
        : "emulator";
}

void watch__culprit_name(const struct watch__frame *f, char to[WATCH__LABEL])
{
    char label[WATCH__LABEL];

    watch__label(f, label);
    if (f->callback)
        snprintf(to, WATCH__LABEL, "%s of %s (%.200s)", f->callback,
                 f->driver[0] ? f->driver : f->module, file_of(f));
    else if (f->function[0])
        snprintf(to, WATCH__LABEL, "%s:%s/%u", f->module, f->function,
                 f->arity);
    else if (f->module[0] && f->in != IN_EMULATOR)
        snprintf(to, WATCH__LABEL, "%s (%.680s)", f->module, label);
    else if (f->in == IN_EMULATOR && is_gc(f))
        snprintf(to, WATCH__LABEL, "garbage collection");
    else if (f->in == IN_EMULATOR && is_exit(f))
        snprintf(to, WATCH__LABEL, "the end of a process");
    else
        snprintf(to, WATCH__LABEL, "%s", label);
}
