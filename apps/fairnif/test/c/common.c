/*
 * common.c - what tests need wherever they run: modes, a gate, notes, calls and
 * what they came to.
 */
#include <pthread.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "check.h"

#ifdef FAIR_NO_TASKS
const struct mode modes[6] = {
    {"normal", false, 'c', true},
    {"yielding", false, 'c', true},
    {"dirty_cpu", false, 'c', true},
    {"dirty_io", false, 'i', true},
    {"yielding_dirty", false, 'c', true},
    {"auto", false, 'c', true},
};
#else
const struct mode modes[6] = {
    {"normal", false, 'n', false},
    {"yielding", true, 'n', false},
    {"dirty_cpu", false, 'c', true},
    {"dirty_io", false, 'i', true},
    {"yielding_dirty", true, 'c', true},
    {"auto", true, 'n', false},
};
#endif

const char *in_nth_mode(const char *name, int n)
{
    static const struct mode threaded = {"threaded", true, 't', true};

    return in_mode(name, n < 6 ? &modes[n] : &threaded);
}

const char *in_mode(const char *name, const struct mode *mode)
{
    static char buf[8][64];
    static int n;

    n = (n + 1) % 8;
    snprintf(buf[n], sizeof buf[n], "%s_%s", name, mode->name);
    return buf[n];
}

void nap(void)
{
    usleep(1000);
}

/* -- a gate -------------------------------------------------------------- */

static struct {
    pthread_mutex_t lock;
    pthread_cond_t cond;
    bool open;
    int waiting;
} gate = {PTHREAD_MUTEX_INITIALIZER, PTHREAD_COND_INITIALIZER, false, 0};

void gate_pass(void *unused)
{
    (void)unused;
    pthread_mutex_lock(&gate.lock);
    gate.waiting++;
    while (!gate.open)
        pthread_cond_wait(&gate.cond, &gate.lock);
    gate.waiting--;
    pthread_mutex_unlock(&gate.lock);
}

static void set_gate(bool open)
{
    pthread_mutex_lock(&gate.lock);
    gate.open = open;
    pthread_cond_broadcast(&gate.cond);
    pthread_mutex_unlock(&gate.lock);
}

void gate_open(void)
{
    set_gate(true);
}

void gate_shut(void)
{
    set_gate(false);
}

int gate_waiting(void)
{
    int n;

    pthread_mutex_lock(&gate.lock);
    n = gate.waiting;
    pthread_mutex_unlock(&gate.lock);
    return n;
}

/* -- notes --------------------------------------------------------------- */

static pthread_mutex_t notes_lock = PTHREAD_MUTEX_INITIALIZER;
static char noted[8192];
static size_t noted_length;

void note(const char *format, ...)
{
    va_list ap;

    pthread_mutex_lock(&notes_lock);
    va_start(ap, format);
    vsnprintf(noted + noted_length, sizeof noted - noted_length, format, ap);
    va_end(ap);
    noted_length = strlen(noted);
    pthread_mutex_unlock(&notes_lock);
}

const char *notes(void)
{
    return noted;
}

bool is_noted(const char *text)
{
    bool is;

    pthread_mutex_lock(&notes_lock);
    is = strstr(noted, text) != NULL;
    pthread_mutex_unlock(&notes_lock);
    return is;
}

void clear_notes(void)
{
    noted_length = 0;
    noted[0] = 0;
}

void note_defer(void *text)
{
    note("%s", (const char *)text);
}

static long deferred, undone;

static void undo(void *arg)
{
    free(arg);
    __atomic_add_fetch(&undone, 1, __ATOMIC_RELEASE);
}

bool postpone(fair_task *t)
{
    __atomic_add_fetch(&deferred, 1, __ATOMIC_RELAXED);
    return fair_defer(t, undo, malloc(8));
}

bool all_undone(void)
{
    return __atomic_load_n(&undone, __ATOMIC_ACQUIRE)
        == __atomic_load_n(&deferred, __ATOMIC_RELAXED);
}

void after_all(void)
{
    EVENTUALLY(all_undone());
    EVENTUALLY(node_stacks() == 0);
}

long private_data = 4711;

int load_private(ErlNifEnv *env, void **priv, ERL_NIF_TERM info)
{
    (void)env, (void)info;
    *priv = &private_data;
    return 0;
}

int upgrade_private(ErlNifEnv *env, void **priv, void **old, ERL_NIF_TERM info)
{
    (void)env, (void)info;
    *priv = *old;
    return 0;
}

/* -- terms, calls, checks ------------------------------------------------- */

vm_term vm_binary(ErlNifEnv *env, const void *data, size_t size)
{
    vm_term t;
    unsigned char *to = enif_make_new_binary(env, size, &t);

    if (size)
        memcpy(to, data, size);
    return t;
}

vm_proc *spawn_call(const char *name, const char *args)
{
    vm_proc *p = vm_spawn();

    vm_call(p, lib, name, args);
    return p;
}

const char *outcome(vm_proc *p)
{
    static char bufs[4][4096];
    static unsigned next;
    char *buf = bufs[next++ % 4];

    switch (vm_state(p)) {
    case VM_DONE:
        return vm_print(vm_result(p), buf, sizeof bufs[0]);
    case VM_RAISED:
        strcpy(buf, "error:");
        vm_print(vm_result(p), buf + 6, sizeof bufs[0] - 6);
        return buf;
    case VM_DEAD:
        return "dead";
    case VM_READY:
        return "scheduled";
    case VM_RUNNING:
        return "running";
    case VM_WAITING:
        return "waiting";
    case VM_IDLE:
        break;
    }
    return "idle";
}

/* One that waits for ever is said to wait. */
const char *finished(vm_proc *p)
{
    enum { LONGEST_MS = 120000 };
    const char *text;

    vm_run(p, LONGEST_MS);
    text = outcome(p);
    vm_free(p);
    return text;
}

void check_text(const char *is, const char *should, const char *file,
                int line)
{
    check_that(!strcmp(is, should), file, line, "%s instead of %s", is,
               should);
}

void check_call(const char *name, const char *args, const char *should,
                const char *file, int line)
{
    const char *is = finished(spawn_call(name, args));

    check_that(!strcmp(is, should), file, line, "%s(%.200s) is %s instead of "
               "%s", name, args, is, should);
}

void check_everywhere(const char *name, const char *args, const char *should,
                      const char *file, int line)
{
    for (unsigned pause = 0; pause < 2; pause++) {
        node_set("pause_every_tick", pause);
        for (int i = 0; i < 6; i++)
            check_call(in_mode(name, &modes[i]), args, should, file, line);
    }
}

/* Whether it made n such calls. */
static bool fails_at(long n, bool and_on, const char *name,
                     vm_proc *(*start)(const char *), const char *should)
{
    vm_proc *p = start(name);
    const char *is;
    bool failed;

    vm_fail(VM_F_MEMORY | VM_F_THREAD, n, and_on);
    vm_run(p, 20000);
    failed = vm_failed();
    vm_fail(0, 0, false);
    is = outcome(p);
    check_that(!strcmp(is, should) || !strcmp(is, "error:enomem")
               || strstr(is, "error:{fairnif,{enomem,") == is,
               __FILE__, __LINE__, "%s when call %ld%s for memory fails: %s",
               name, n, and_on ? " and all after it" : "", is);
    vm_free(p);
    EVENTUALLY(all_undone());
    ALL_OVER();
    return failed;
}

void check_without_memory(const char *name, vm_proc *(*start)(const char *),
                          const char *should)
{
    for (int and_on = 0; and_on < 2; and_on++)
        for (long n = 1; n < 500 && !check_failures()
             && fails_at(n, and_on, name, start, should); n++)
            ;
}
