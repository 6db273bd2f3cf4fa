/*
 * real.c - the tests in the real emulator.
 *
 * The NIF library of module real_vm.  A test runs on a thread of this library;
 * what vm.h has of processes and terms it asks of real_vm.erl, by a message, and
 * waits for the answer.  What only the stand-in can do ends the test as skipped
 * (real_only.c).  Calls begin when the test waits for them.
 */
#include <dlfcn.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "check.h"
#include "real.h"
#include "tools.h"

struct vm_proc {
    ErlNifEnv *env;             /* its terms, before and after its call */
    vm_term call;               /* {Name, Args, Awaited}, once it is known */
    vm_term result;
    enum vm_state state;
    bool begun;                 /* its Erlang process is there, until VM_DEAD */
    bool kill;
    struct vm_proc *next;
};

static struct check_test *tests, **last = &tests, *current;
static vm_proc *procs, *running;
static int failures;
static const char *why_skipped;
static jmp_buf out;
static pthread_t thread;
static ErlNifPid runner;
vm_lib *lib;

/* of all below */
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t changed = PTHREAD_COND_INITIALIZER;
static ErlNifEnv *answer_env;
static vm_term answer;
static bool answered;

void real_skip(const char *why)
{
    static char reason[128];

    if (!pthread_equal(pthread_self(), thread)) {
        fprintf(stderr, "%s: only the test's own thread may call it\n", why);
        abort();
    }
    snprintf(reason, sizeof reason, "needs %s", why);
    why_skipped = reason;
    longjmp(out, 1);
}

void vm_misuse(const char *format, ...)
{
    va_list ap;

    va_start(ap, format);
    vfprintf(stderr, format, ap);
    va_end(ap);
    abort();
}

/* -- asking real_vm.erl ---------------------------------------------------- */

static void wait_a_little(void)
{
    struct timespec then;

    clock_gettime(CLOCK_REALTIME, &then);
    then.tv_nsec += 1000000;
    if (then.tv_nsec >= 1000000000) {
        then.tv_sec++;
        then.tv_nsec -= 1000000000;
    }
    pthread_cond_timedwait(&changed, &lock, &then);
}

/* {What, Term} to the runner; its answer as a term of `env`. */
static vm_term ask(ErlNifEnv *env, const char *what, vm_term term)
{
    ErlNifEnv *message = enif_alloc_env();
    vm_term copy;

    answered = false;
    enif_send(NULL, &runner, message,
              enif_make_tuple2(message, enif_make_atom(message, what),
                               enif_make_copy(message, term)));
    enif_free_env(message);
    pthread_mutex_lock(&lock);
    while (!answered)
        pthread_cond_wait(&changed, &lock);
    copy = enif_make_copy(env, answer);
    enif_free_env(answer_env);
    pthread_mutex_unlock(&lock);
    return copy;
}

static vm_term string(ErlNifEnv *env, const char *text)
{
    return enif_make_string(env, text, ERL_NIF_LATIN1);
}

vm_term vm_parse(ErlNifEnv *env, const char *text)
{
    vm_term list = ask(env, "parse", string(env, text)), head;

    if (!enif_get_list_cell(env, list, &head, &list))
        real_skip(text);
    return head;
}

int vm_parse_args(ErlNifEnv *env, const char *text, vm_term *argv, int max)
{
    vm_term list = ask(env, "parse", string(env, text)), head;
    int n = 0;

    while (n < max && enif_get_list_cell(env, list, &head, &list))
        argv[n++] = head;
    return n;
}

char *vm_print(vm_term term, char *buf, size_t size)
{
    ErlNifEnv *env = enif_alloc_env();
    ErlNifBinary text;
    vm_term printed = ask(env, "print", term);

    enif_inspect_binary(env, printed, &text);
    snprintf(buf, size, "%.*s", (int)text.size, (const char *)text.data);
    enif_free_env(env);
    return buf;
}

/* -- processes ------------------------------------------------------------- */

vm_proc *vm_spawn(void)
{
    vm_proc *p = calloc(1, sizeof *p);

    p->env = enif_alloc_env();
    p->next = procs;
    return procs = p;
}

ErlNifEnv *vm_env(vm_proc *p)
{
    return p->env;
}

static vm_term id_of(vm_proc *p)
{
    return enif_make_uint64(p->env, (uintptr_t)p);
}

static void set_call(vm_proc *p, const char *name, vm_term args, bool awaited)
{
    p->call = enif_make_tuple4(p->env, id_of(p), enif_make_atom(p->env, name),
                               args, enif_make_atom(p->env, awaited ? "true"
                                                    : "false"));
    p->state = VM_READY;
}

static void begin(vm_proc *p)
{
    if (p->state == VM_READY) {
        p->state = VM_RUNNING;
        p->begun = true;
        ask(p->env, "call", p->call);
    }
}

void vm_call_array(vm_proc *p, vm_lib *of, const char *name, int argc,
                   const vm_term argv[])
{
    (void)of;
    set_call(p, name, enif_make_list_from_array(p->env, argv, (unsigned)argc),
             false);
}

void vm_call(vm_proc *p, vm_lib *of, const char *name, const char *args)
{
    (void)of;
    set_call(p, name, ask(p->env, "parse", string(p->env, args)), false);
}

void node_await(vm_proc *p, const char *name, int argc, const vm_term argv[])
{
    set_call(p, name, enif_make_list_from_array(p->env, argv, (unsigned)argc),
             true);
}

void node_await_term(vm_proc *p, vm_term term)
{
    set_call(p, "await", enif_make_list1(p->env, term), false);
}

vm_proc *spawn_await(const char *name, const char *args)
{
    vm_proc *p = vm_spawn();

    set_call(p, name, ask(p->env, "parse", string(p->env, args)), true);
    return p;
}

vm_proc *node_spawn(const char *name, const char *args)
{
    (void)name, (void)args;
    real_skip("node_spawn");
}

void node_call(vm_proc *p, const char *name, int argc, const vm_term argv[])
{
    (void)p, (void)name, (void)argc, (void)argv;
    real_skip("node_call");
}

/* In the receive of fairnif:await/1. */
static bool waits(vm_proc *p)
{
    ErlNifEnv *env = enif_alloc_env();
    bool is = enif_is_identical(ask(env, "waiting", id_of(p)),
                                enif_make_atom(env, "true"));

    enif_free_env(env);
    return is;
}

static void kill_now(vm_proc *p)
{
    if (p->begun)
        ask(p->env, "kill", id_of(p));
    pthread_mutex_lock(&lock);
    if (!p->begun)
        p->state = VM_DEAD;
    p->kill = false;
    pthread_cond_broadcast(&changed);
    pthread_mutex_unlock(&lock);
}

/* Bodies kill their caller: the test's thread, which waits for them, does it.
 * As in the stand-in it is dead when this returns, but on a normal scheduler,
 * where a process learns of its death when it yields, and must not wait. */
void vm_kill(vm_proc *p)
{
    enum { LONGEST_MS = 2000 };

    if (pthread_equal(pthread_self(), thread)) {
        kill_now(p);
        return;
    }
    pthread_mutex_lock(&lock);
    p->kill = true;
    if (enif_thread_type() != ERL_NIF_THR_NORMAL_SCHEDULER)
        for (int i = 0; i < LONGEST_MS && p->state != VM_DEAD; i++)
            wait_a_little();
    pthread_mutex_unlock(&lock);
}

vm_proc *vm_current(void)
{
    return running;
}

/* On a dirty scheduler a task outlives its process for a while, and at a gate. */
static void let_its_task_end(void)
{
    int others = gate_waiting();

    for (vm_proc *p = procs; p; p = p->next)
        others += p->state == VM_RUNNING;
    for (int i = 0; i < 2000 && node_stacks() > others; i++)
        nap();
}

enum vm_state vm_run(vm_proc *p, int ms)
{
    running = p;
    begin(p);
    pthread_mutex_lock(&lock);
    for (; p->state == VM_RUNNING && ms != 0; ms -= ms > 0) {
        wait_a_little();
        if (p->kill) {
            pthread_mutex_unlock(&lock);
            kill_now(p);
            pthread_mutex_lock(&lock);
        }
    }
    pthread_mutex_unlock(&lock);
    if (p->state == VM_DEAD)
        let_its_task_end();
    return p->state;
}

enum vm_state vm_finish(vm_proc *p)
{
    return vm_run(p, -1);
}

void until_waiting(vm_proc *p)
{
    while (vm_run(p, 1) == VM_RUNNING && !waits(p))
        ;
}

bool still_waits(vm_proc *p)
{
    return p->state == VM_RUNNING && waits(p);
}

vm_term vm_pid(const vm_proc *of)
{
    vm_proc *p = (vm_proc *)of;

    p->begun = true;
    return ask(p->env, "pid", id_of(p));
}

int vm_messages(vm_proc *p)
{
    int n = -1;

    enif_get_int(p->env, ask(p->env, "messages", id_of(p)), &n);
    return n;
}

void vm_free(vm_proc *p)
{
    vm_proc **at = &procs;

    if (p->state == VM_RUNNING) {
        kill_now(p);
        vm_finish(p);
    } else if (p->begun) {
        kill_now(p);
    }
    pthread_mutex_lock(&lock);
    while (p->begun)
        wait_a_little();
    pthread_mutex_unlock(&lock);
    while (*at != p)
        at = &(*at)->next;
    *at = p->next;
    enif_free_env(p->env);
    free(p);
}

/* What it came to last is all that stays. */
void vm_gc(vm_proc *p)
{
    ErlNifEnv *env = enif_alloc_env();

    if (p->state == VM_DONE || p->state == VM_RAISED)
        p->result = enif_make_copy(env, p->result);
    enif_free_env(p->env);
    p->env = env;
    if (p->begun)
        ask(env, "gc", id_of(p));
}

enum vm_state vm_state(vm_proc *p)
{
    return still_waits(p) ? VM_WAITING : p->state;
}

vm_term vm_result(vm_proc *p)
{
    return p->result;
}

/* -- the clock, terms ------------------------------------------------------ */

uint64_t vm_now(void)
{
    struct timespec now;

    clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * 1000000000 + (uint64_t)now.tv_nsec;
}

void vm_work(uint64_t ns)
{
    uint64_t begin = vm_now();

    while (vm_now() - begin < ns)
        ;
}

vm_term vm_bits(ErlNifEnv *env, const void *data, size_t size, unsigned bit)
{
    return ask(env, "bits",
               enif_make_tuple2(env, vm_binary(env, data, size),
                                enif_make_uint(env, bit)));
}

vm_term vm_byte_list(ErlNifEnv *env, size_t length, vm_term tail)
{
    for (size_t i = length; i-- > 0; )
        tail = enif_make_list_cell(env, enif_make_uint(env, i & 255), tail);
    return tail;
}

/* -- the node -------------------------------------------------------------- */

static long ask_number(const char *what, const char *a, const char *b)
{
    ErlNifEnv *env = enif_alloc_env();
    long n = -1;

    enif_get_long(env, ask(env, what,
                           enif_make_tuple2(env, enif_make_atom(env, a),
                                            enif_make_atom(env, b))), &n);
    enif_free_env(env);
    return n;
}

long node_counter(const char *function, const char *counter)
{
    return ask_number("counter", function, counter);
}

long node_info(const char *key)
{
    return ask_number("info", key, key);
}

long node_stacks(void)
{
    return node_info("stacks_mapped") - node_info("stacks_idle");
}

long node_stacks_mapped(void)
{
    return node_info("stacks_mapped");
}

void node_set(const char *name, uint64_t value)
{
    ErlNifEnv *env = enif_alloc_env();

    ask(env, "set", enif_make_tuple2(env, enif_make_atom(env, name),
                                     enif_make_uint64(env, value)));
    enif_free_env(env);
}

const char *node_tasks(char *buf, size_t size)
{
    ErlNifEnv *env = enif_alloc_env();

    vm_print(ask(env, "tasks", enif_make_list(env, 0)), buf, size);
    enif_free_env(env);
    return buf;
}

/* Of tasks that wait for a descriptor. */
long vm_armed(void)
{
    return ask_number("armed", "", "");
}

/* -- checks ---------------------------------------------------------------- */

void check_add(struct check_test *test)
{
    *last = test;
    last = &test->next;
}

int check_failures(void)
{
    return __atomic_load_n(&failures, __ATOMIC_RELAXED);
}

void check_that(bool holds, const char *file, int line, const char *format,
                ...)
{
    va_list ap;

    if (holds || __atomic_add_fetch(&failures, 1, __ATOMIC_RELAXED) > 5)
        return;
    printf("FAILED %s: ", current->sentence);
    va_start(ap, format);
    vprintf(format, ap);
    va_end(ap);
    printf(" (%s:%d)\r\n", file, line);
    fflush(stdout);
}

/* -- real_vm's NIFs -------------------------------------------------------- */

/* functions(File): of an author's library */
static vm_term nif_functions(ErlNifEnv *env, int argc, const vm_term argv[])
{
    vm_term list = enif_make_list(env, 0);
    ErlNifEntry *(*init)(void);
    ErlNifEntry *entry;
    char file[1024];
    void *handle;

    (void)argc;
    if (enif_get_string(env, argv[0], file, sizeof file, ERL_NIF_LATIN1) <= 0)
        return enif_make_badarg(env);
    handle = dlopen(file, RTLD_NOW | RTLD_LOCAL);
    if (!handle)
        return enif_raise_exception(env, string(env, dlerror()));
    *(void **)&init = dlsym(handle, "nif_init");
    entry = init();
    for (int i = 0; i < entry->num_of_funcs; i++)
        list = enif_make_list_cell(
            env, enif_make_tuple2(env,
                                  enif_make_atom(env, entry->funcs[i].name),
                                  enif_make_uint(env, entry->funcs[i].arity)),
            list);
    return list;
}

static struct check_test *nth(unsigned n)
{
    struct check_test *t = tests;

    while (t && n-- > 0)
        t = t->next;
    return t;
}

static const char *left_to_the_stand_in(const struct check_test *test)
{
    const char *slash = strrchr(test->file, '/');
    const char *file = slash ? slash + 1 : test->file;

    if (test->last_words)
        return "it ends the program";
    if (test->before)
        return "it prepares what was before the runtime";
    for (size_t i = 0; i < sizeof skips / sizeof *skips; i++)
        if (!strcmp(skips[i].where, "emulator")
            && (!strcmp(skips[i].test, test->sentence)
                || !strcmp(skips[i].test, file)))
            return skips[i].why;
    return NULL;
}

static void *run(void *n)
{
    ErlNifEnv *env = enif_alloc_env();
    const char *how;

    (void)n;
    thread = pthread_self();
    why_skipped = left_to_the_stand_in(current);
    if (!why_skipped && !setjmp(out))
        current->fn();
    gate_open();
    while (procs)
        vm_free(procs);
    for (int i = 0; i < 2000 && node_stacks() > 0; i++)
        nap();
    check_that(node_stacks() == 0, __FILE__, __LINE__, "%ld stacks are left",
               node_stacks());
    gate_shut();
    how = failures ? "failed" : why_skipped ? "skipped" : "passed";
    enif_send(NULL, &runner, env,
              enif_make_tuple3(env, enif_make_atom(env, "done"),
                               enif_make_atom(env, how),
                               string(env, why_skipped ? why_skipped : "")));
    enif_free_env(env);
    return NULL;
}

/* name(N) -> {File, Sentence} or false */
static vm_term nif_name(ErlNifEnv *env, int argc, const vm_term argv[])
{
    struct check_test *t;
    unsigned n;

    (void)argc;
    if (!enif_get_uint(env, argv[0], &n) || !(t = nth(n)))
        return enif_make_atom(env, "false");
    return enif_make_tuple2(env, string(env, t->file),
                            string(env, t->sentence));
}

/* run(N): then comes {done, How, Why} */
static vm_term nif_run(ErlNifEnv *env, int argc, const vm_term argv[])
{
    pthread_t id;
    unsigned n;

    (void)argc;
    if (!enif_get_uint(env, argv[0], &n) || !(current = nth(n)))
        return enif_make_badarg(env);
    enif_self(env, &runner);
    failures = 0;
    why_skipped = NULL;
    clear_notes();
    pthread_create(&id, NULL, run, NULL);
    pthread_detach(id);
    return enif_make_atom(env, "ok");
}

static vm_term nif_answer(ErlNifEnv *env, int argc, const vm_term argv[])
{
    (void)argc;
    pthread_mutex_lock(&lock);
    answer_env = enif_alloc_env();
    answer = enif_make_copy(answer_env, argv[0]);
    answered = true;
    pthread_cond_broadcast(&changed);
    pthread_mutex_unlock(&lock);
    return enif_make_atom(env, "ok");
}

/* ended(Proc, done | raised | dead, Result): `dead' is the last of a process */
static vm_term nif_ended(ErlNifEnv *env, int argc, const vm_term argv[])
{
    ErlNifUInt64 proc;
    char how[16];
    vm_proc *p;

    (void)argc;
    if (!enif_get_uint64(env, argv[0], &proc)
        || !enif_get_atom(env, argv[1], how, sizeof how, ERL_NIF_LATIN1))
        return enif_make_badarg(env);
    p = (vm_proc *)(uintptr_t)proc;
    pthread_mutex_lock(&lock);
    p->state = !strcmp(how, "done") ? VM_DONE
        : !strcmp(how, "raised") ? VM_RAISED : VM_DEAD;
    if (p->state == VM_DEAD)
        p->begun = false;
    else
        p->result = enif_make_copy(p->env, argv[2]);
    pthread_cond_broadcast(&changed);
    pthread_mutex_unlock(&lock);
    return enif_make_atom(env, "ok");
}

static ErlNifFunc nifs[] = {
    {"functions", 1, nif_functions, 0},
    {"name", 1, nif_name, 0},
    {"run", 1, nif_run, 0},
    {"answer", 1, nif_answer, 0},
    {"ended", 3, nif_ended, 0},
};
ERL_NIF_INIT(real_vm, nifs, NULL, NULL, NULL, NULL)
