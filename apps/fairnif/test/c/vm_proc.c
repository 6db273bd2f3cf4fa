/*
 * vm_proc.c - environments, processes and their slices.
 *
 * Each slice gets an environment and an argument vector of its own, freed
 * when it ends.  After the slice the heap is collected, which moves it.
 */
#include <string.h>

#include "vm_int.h"

enum { MAX_PROCS = 1 << 17 };

#define LIVE 0x4C495645454E56ULL
#define GONE 0x474F4E45454E56ULL

struct vm_options vm_options = {.gc_every = 1, .dead_heaps_on = VM_NORMAL,
                                .heap_bin = 64};

static pthread_mutex_t procs_lock = PTHREAD_MUTEX_INITIALIZER;
static vm_proc *procs[MAX_PROCS];
static size_t proc_count;
/* No pid comes twice: it names the place and who has it by then. */
static unsigned generations[MAX_PROCS];

/* -- environments -------------------------------------------------------- */

ErlNifEnv *vm__env_new(enum env_kind kind, vm_proc *p, vm_lib *lib)
{
    ErlNifEnv *env = vm__malloc(sizeof *env);

    memset(env, 0, sizeof *env);
    env->magic = LIVE;
    env->kind = kind;
    env->proc = p;
    env->lib = lib;
    env->heap = kind == ENV_PROC ? &p->heap : &env->own_heap;
    return env;
}

void vm__env_free(ErlNifEnv *env)
{
    vm__free_temporary(env);
    vm__heap_clear(&env->own_heap);
    env->magic = GONE;
    vm__free(env);
}

/* The environment may be used here and now. */
void vm__env_check(ErlNifEnv *env, const char *who)
{
    if (env->magic != LIVE)
        vm_misuse("%s: no environment", who);
    if (env->thread && env->thread != vm__self)
        vm_misuse("%s: another thread's environment", who);
    vm__cost(5);
    vm__walked(0);
}

/* It is that of the NIF that runs on this thread. */
void vm__slice_check(ErlNifEnv *env, const char *who)
{
    vm__env_check(env, who);
    if (env->kind != ENV_PROC || !vm__self || vm__self->slice != env)
        vm_misuse("%s: only with the environment of the running NIF", who);
}

void vm__owned(ErlNifEnv *env, vm_term t, const char *who)
{
    if (!vm__heap_owns(env->heap, t))
        vm_misuse("%s: %#lx is no term of this environment", who, t);
}

void vm__temporary(ErlNifEnv *env, void *p)
{
    size_t n = env->temporary_used;

    if ((n & (n - 1)) == 0)
        env->temporary = vm__realloc(env->temporary,
                                     (n ? 2 * n : 1) * sizeof(void *));
    env->temporary[env->temporary_used++] = p;
    COUNT(temporary, 1);
}

void vm__free_temporary(ErlNifEnv *env)
{
    for (size_t i = 0; i < env->temporary_used; i++)
        vm__free(env->temporary[i]);
    COUNT(temporary, -(long)env->temporary_used);
    vm__free(env->temporary);
    env->temporary = NULL;
    env->temporary_used = 0;
}

ErlNifEnv *enif_alloc_env(void)
{
    COUNT(envs, 1);
    return vm__env_new(ENV_OWN, NULL, NULL);
}

static void check_own(ErlNifEnv *env, const char *who)
{
    vm__env_check(env, who);
    if (env->kind != ENV_OWN)
        vm_misuse("%s: not an environment of enif_alloc_env", who);
}

void enif_free_env(ErlNifEnv *env)
{
    check_own(env, __func__);
    COUNT(envs, -1);
    vm__env_free(env);
}

void enif_clear_env(ErlNifEnv *env)
{
    check_own(env, __func__);
    vm__free_temporary(env);
    vm__heap_clear(&env->own_heap);
}

vm_term enif_make_copy(ErlNifEnv *env, vm_term term)
{
    vm__env_check(env, __func__);
    return vm__copy(env->heap, term);
}

void *enif_priv_data(ErlNifEnv *env)
{
    vm__env_check(env, __func__);
    if (!env->lib)
        vm_misuse("enif_priv_data: no library's environment");
    return env->lib->priv;
}

/* -- processes ----------------------------------------------------------- */

vm_proc *vm_spawn(void)
{
    vm_proc *p = vm__malloc(sizeof *p);

    memset(p, 0, sizeof *p);
    pthread_mutex_init(&p->lock, NULL);
    pthread_cond_init(&p->cond, NULL);
    p->state = VM_IDLE;
    vm__await_forget(p);
    p->result = VM_NIL;
    p->last_message = &p->messages;
    p->env = vm__env_new(ENV_PROC, p, NULL);
    pthread_mutex_lock(&procs_lock);
    if (proc_count == MAX_PROCS)
        vm_misuse("too many processes");
    p->index = proc_count++;
    p->pid = PID((size_t)generations[p->index]++ * MAX_PROCS + p->index);
    procs[p->index] = p;
    pthread_mutex_unlock(&procs_lock);
    COUNT(processes, 1);
    return p;
}

bool vm__proc_at(size_t index, vm_proc **p)
{
    bool is;

    pthread_mutex_lock(&procs_lock);
    is = index < proc_count;
    *p = is ? procs[index] : NULL;
    pthread_mutex_unlock(&procs_lock);
    return is;
}

/* One that was killed in a dirty NIF has exited, for all others. */
bool vm__proc_gone(const vm_proc *p)
{
    return p->state == VM_DEAD
        || (p->state == VM_RUNNING && p->runs_on != VM_NORMAL
            && __atomic_load_n(&p->exiting, __ATOMIC_RELAXED));
}

vm_proc *vm__proc_locked(vm_term pid)
{
    size_t i = PID_NUMBER(pid) % MAX_PROCS;
    vm_proc *p = NULL;

    pthread_mutex_lock(&procs_lock);
    if (i < proc_count && procs[i] && procs[i]->pid == pid) {
        p = procs[i];
        pthread_mutex_lock(&p->lock);
    }
    pthread_mutex_unlock(&procs_lock);
    if (p && vm__proc_gone(p)) {
        pthread_mutex_unlock(&p->lock);
        p = NULL;
    }
    return p;
}

vm_term vm_pid(const vm_proc *p)
{
    return p->pid;
}

ErlNifEnv *vm_env(vm_proc *p)
{
    return p->env;
}

static void forget_call(vm_proc *p)
{
    vm__free(p->argv);
    p->argv = NULL;
    p->argc = 0;
    p->fn = NULL;
    SET_KIND(p, 0);
}

/* A thread may run it. */
void vm__begin(vm_proc *p, enum vm_state state)
{
    pthread_mutex_lock(&p->lock);
    if (p->state != VM_DEAD)
        p->state = state;
    pthread_mutex_unlock(&p->lock);
}

/* The next slice calls name/argc. */
void vm__call(vm_proc *p, vm_lib *lib, const char *name, int argc,
              const vm_term argv[])
{
    const ErlNifEntry *e = lib->entry;

    for (int i = 0; i < e->num_of_funcs; i++) {
        const ErlNifFunc *f = &e->funcs[i];

        if (strcmp(f->name, name) || (int)f->arity != argc)
            continue;
        forget_call(p);
        p->lib = lib;
        p->fn = f->fptr;
        SET_KIND(p, f->flags == 0 ? VM_NORMAL : (int)f->flags + 1);
        p->argc = argc;
        p->argv = vm__malloc(((size_t)argc + 1) * sizeof *argv);
        memcpy(p->argv, argv, (size_t)argc * sizeof *argv);
        p->result = VM_NIL;
        return;
    }
    vm_misuse("no function %s/%d", name, argc);
}

void vm_call_array(vm_proc *p, vm_lib *lib, const char *name, int argc,
                   const vm_term argv[])
{
    enum vm_state state = vm_state(p);

    if (state == VM_READY || state == VM_RUNNING || state == VM_WAITING)
        vm_misuse("vm_call: the process is in a call");
    p->await.runtime = NULL;
    vm__call(p, lib, name, argc, argv);
    p->slices = 0;
    vm__begin(p, VM_READY);
}

void vm_call(vm_proc *p, vm_lib *lib, const char *name, const char *args)
{
    vm_term argv[32];
    int argc = vm_parse_args(p->env, args, argv, 32);

    vm_call_array(p, lib, name, argc, argv);
}

void vm_gc(vm_proc *p)
{
    vm_term *roots[] = {p->argv, &p->result, p->await.regs};
    size_t n[] = {(size_t)p->argc, 1, AWAIT_REGS};

    vm__heap_collect(&p->heap, roots, n, 3);
}

/* -- a slice ------------------------------------------------------------- */

static void note_slice(vm_proc *p, char kind, uint64_t started)
{
    if ((size_t)p->slices + 2 > p->kinds_size) {
        p->kinds_size = p->kinds_size ? 2 * p->kinds_size : 64;
        p->kinds = vm__realloc(p->kinds, p->kinds_size);
    }
    p->kinds[p->slices++] = kind;
    p->kinds[p->slices] = 0;
    p->last = vm__self;
    COUNT(switches, 1);
    vm__max(&vm__counts.max_slice_ns, (long)(vm_now() - started));
}

/* The NIF's answer becomes the process's next state. */
static enum vm_state take_answer(vm_proc *p, ErlNifEnv *env, vm_term answer)
{
    if (env->raised) {
        if (answer != NON_VALUE)
            vm_misuse("a NIF returned a term with an exception pending");
        forget_call(p);
        p->result = env->reason;
        return VM_RAISED;
    }
    if (env->scheduled) {
        if (answer != NON_VALUE)
            vm_misuse("a NIF returned a term after enif_schedule_nif");
        return VM_READY;
    }
    forget_call(p);
    vm__owned(env, answer, "what a NIF returned");
    p->result = answer;
    return VM_DONE;
}

static void die(vm_proc *p)
{
    vm__monitors_fire(p);
    forget_call(p);
    vm__await_forget(p);
    p->result = VM_NIL;
    vm__free_temporary(p->env);
    vm__heap_clear(&p->heap);
}

/* The slice is over; what comes next unless the process was killed. */
static enum vm_state settle(vm_proc *p, enum vm_state state)
{
    if (!__atomic_load_n(&p->exiting, __ATOMIC_RELAXED) && vm_options.gc_every
        && p->slices % vm_options.gc_every == 0)
        vm_gc(p);
    pthread_mutex_lock(&p->lock);
    if (p->exiting)
        state = VM_DEAD;
    p->state = state;
    pthread_cond_broadcast(&p->cond);
    pthread_mutex_unlock(&p->lock);
    if (state == VM_DEAD)
        die(p);
    return state;
}

/* The NIF's part of a slice. */
static enum vm_state run_nif(vm_proc *p, int kind)
{
    uint64_t lost, fp, started;
    enum vm_state state;
    vm_term answer, *argv;
    ErlNifEnv *env;
    vm_nif fn;
    int argc;

    fn = p->fn;
    argv = p->argv;
    argc = p->argc;
    p->argv = NULL;
    p->argc = 0;
    env = vm__env_new(ENV_PROC, p, p->lib);
    env->thread = vm__self;
    vm__self->slice = env;
    fp = vm__fp_control();
    started = vm_now();
    lost = vm__call_marked((void *)fn, (uint64_t)env, (uint64_t)argc,
                           (uint64_t)argv, &answer,
                           (uint64_t)p->slices * 64 + 0x5000);
    note_slice(p, "?nci"[kind], started);
    if (lost)
        vm_misuse("a NIF did not restore callee-saved registers: %#lx", lost);
    if (fp != vm__fp_control())
        vm_misuse("a NIF changed the floating point control words: "
                  "%#lx, then %#lx", fp, vm__fp_control());
    vm__self->slice = NULL;
    vm__free(argv);

    state = take_answer(p, env, answer);
    vm__env_free(env);
    if (p->percent >= 100 || state != VM_READY)
        p->percent = 0;
    return state;
}

enum vm_state vm_slice(vm_proc *p)
{
    int kind = vm__self ? vm__self->kind : 0;
    struct vm_message *m = NULL;
    enum vm_state state;

    pthread_mutex_lock(&p->lock);
    state = p->state;
    if (state == VM_DEAD || (state == VM_WAITING && !vm__await_due(p))) {
        pthread_mutex_unlock(&p->lock);
        return state;
    }
    if (state != VM_READY && state != VM_WAITING)
        vm_misuse("vm_slice: nothing scheduled");
    if (kind != p->kind)
        vm_misuse("vm_slice on a thread of kind %d for one of %d", kind,
                  p->kind);
    if (state == VM_WAITING)
        m = vm__take_message(p);
    p->state = VM_RUNNING;
    p->runs_on = kind;
    pthread_mutex_unlock(&p->lock);

    if (state == VM_WAITING) {
        state = vm__await_received(p, m);
    } else {
        state = run_nif(p, kind);
        if (p->await.runtime)
            state = vm__await_answered(p, state);
    }
    return settle(p, state);
}

vm_term enif_schedule_nif(ErlNifEnv *env, const char *name, int flags,
                          vm_nif fn, int argc, const vm_term argv[])
{
    vm_proc *p = env->proc;

    vm__slice_check(env, __func__);
    if (flags < 0 || flags > ERL_NIF_DIRTY_JOB_IO_BOUND || argc > 255
        || strlen(name) > 255)
        return enif_make_badarg(env);
    if (env->scheduled || env->raised)
        vm_misuse("enif_schedule_nif twice, or with an exception pending");
    for (int i = 0; i < argc; i++)
        vm__owned(env, argv[i], __func__);
    env->scheduled = true;
    p->fn = fn;
    SET_KIND(p, flags == 0 ? VM_NORMAL : flags + 1);
    p->argc = argc;
    p->argv = vm__malloc(((size_t)argc + 1) * sizeof *argv);
    memcpy(p->argv, argv, (size_t)argc * sizeof *argv);
    return NON_VALUE;
}

static void free_dead(void *arg)
{
    die(arg);
}

static void tell_monitors(void *arg)
{
    vm__monitors_fire(arg);
}

/* One that is suspended goes at once; one that runs goes when its NIF
 * returns, and meanwhile knows it on a dirty scheduler only, as the others
 * do. */
void vm_kill(vm_proc *p)
{
    void (*fn)(void *) = NULL;

    pthread_mutex_lock(&p->lock);
    if (p->state == VM_RUNNING) {
        if (!p->exiting && p->runs_on != VM_NORMAL)
            fn = tell_monitors;
        __atomic_store_n(&p->exiting, true, __ATOMIC_RELAXED);
    } else if (p->state != VM_DEAD) {
        p->state = VM_DEAD;
        fn = free_dead;
        pthread_cond_broadcast(&p->cond);
    }
    pthread_mutex_unlock(&p->lock);
    if (fn && vm__self)
        fn(p);
    else if (fn)
        vm_on(vm_options.dead_heaps_on, fn, p);
}

void vm_free(vm_proc *p)
{
    if (vm_state(p) == VM_RUNNING)
        vm_misuse("vm_free of a running process");
    vm_kill(p);
    pthread_mutex_lock(&procs_lock);
    procs[p->index] = NULL;
    while (proc_count && !procs[proc_count - 1])
        proc_count--;
    pthread_mutex_unlock(&procs_lock);
    /* a thread that found it before is done with it after that */
    pthread_mutex_lock(&p->lock);
    pthread_mutex_unlock(&p->lock);
    vm__env_free(p->env);
    while (p->messages) {
        struct vm_message *m = p->messages;

        p->messages = m->next;
        vm__message_free(m);
    }
    pthread_cond_destroy(&p->cond);
    pthread_mutex_destroy(&p->lock);
    vm__free(p->kinds);
    vm__free(p);
    COUNT(processes, -1);
}

/* -- what the library asks ----------------------------------------------- */

int enif_is_current_process_alive(ErlNifEnv *env)
{
    vm__slice_check(env, __func__);
    return env->thread->kind == VM_NORMAL
        || !__atomic_load_n(&env->proc->exiting, __ATOMIC_RELAXED);
}

int enif_consume_timeslice(ErlNifEnv *env, int percent)
{
    vm__slice_check(env, __func__);
    if (percent < 1 || percent > 100)
        vm_misuse("enif_consume_timeslice: %d percent", percent);
    if (env->thread->kind != VM_NORMAL)
        return 0;
    env->proc->percent += (unsigned)percent;
    env->proc->percent_total += (unsigned)percent;
    return env->proc->percent >= 100;
}

vm_term enif_raise_exception(ErlNifEnv *env, vm_term reason)
{
    vm__env_check(env, __func__);
    vm__owned(env, reason, __func__);
    env->raised = true;
    env->reason = reason;
    return NON_VALUE;
}

vm_term enif_make_badarg(ErlNifEnv *env)
{
    return enif_raise_exception(env, vm__atom("badarg", 6));
}

int enif_has_pending_exception(ErlNifEnv *env, vm_term *reason)
{
    vm__env_check(env, __func__);
    if (env->raised && reason)
        *reason = env->reason;
    return env->raised;
}

int enif_thread_type(void)
{
    return vm__self ? vm__self->kind : ERL_NIF_THR_UNDEFINED;
}

/* -- what a test asks ---------------------------------------------------- */

enum vm_state vm_state(vm_proc *p)
{
    enum vm_state state;

    pthread_mutex_lock(&p->lock);
    state = p->state;
    pthread_mutex_unlock(&p->lock);
    return state;
}

int vm_next_kind(const vm_proc *p)
{
    return __atomic_load_n(&p->kind, __ATOMIC_RELAXED);
}

vm_term vm_result(vm_proc *p)
{
    return p->result;
}

vm_proc *vm_current(void)
{
    return vm__self && vm__self->slice ? vm__self->slice->proc : NULL;
}

int vm_slices(const vm_proc *p)
{
    return p->slices;
}

const char *vm_kinds(const vm_proc *p)
{
    return p->slices ? p->kinds : "";
}

unsigned vm_percent(const vm_proc *p)
{
    return p->percent_total;
}
