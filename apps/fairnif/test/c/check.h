/*
 * check.h - tests, and the node they run on.
 *
 * A test is a function whose name for people is a sentence.  Each runs in a
 * process of its own, on a fresh node (vm.h) with the runtime and the test
 * file's author's library loaded, under a time limit.  It passes when every
 * check passed, nothing was left behind, and no sanitizer had a complaint.
 *
 * Every test file is an author's library: it has bodies, a table of them, and
 * FAIR_NIF_INIT (the Makefile gives each file's nif_init a name of its own).
 */
#ifndef CHECK_H
#define CHECK_H

#include "../../c_include/fairnif.h"
#include "harness.h"
#include "vm.h"

ErlNifEntry *nif_init(void);

#define TEST(FN, SENTENCE) TEST_WITH(FN, SENTENCE, NULL, NULL)
/* A test that must end the program, saying LAST_WORDS. */
#define TEST_DIES(FN, SENTENCE, LAST_WORDS)                                 \
    TEST_WITH(FN, SENTENCE, LAST_WORDS, NULL)
#define TEST_WITH(FN, SENTENCE, LAST_WORDS, BEFORE)                         \
    TEST_OF(FN, SENTENCE, LAST_WORDS, BEFORE, ALL_NEED_TASKS)
/* The same of what pauses, or is pending.  NEEDS_TASKS says so of a whole file. */
#define TASKS_TEST(FN, SENTENCE) TEST_OF(FN, SENTENCE, NULL, NULL, true)
#define TASKS_TEST_DIES(FN, SENTENCE, LAST_WORDS)                           \
    TEST_OF(FN, SENTENCE, LAST_WORDS, NULL, true)
#ifdef NEEDS_TASKS
#define ALL_NEED_TASKS true
#else
#define ALL_NEED_TASKS false
#endif
#define TEST_OF(FN, SENTENCE, LAST_WORDS, BEFORE, NEEDS)                    \
    static void FN(void);                                                   \
    __attribute__((constructor)) static void add_##FN(void)                 \
    {                                                                       \
        static struct check_test test = {__FILE__, SENTENCE, FN, nif_init,  \
                                         LAST_WORDS, BEFORE, NEEDS, NULL};  \
        check_add(&test);                                                   \
    }                                                                       \
    static void FN(void)

void check_text(const char *is, const char *should, const char *file,
                int line);
void check_call(const char *name, const char *args, const char *should,
                const char *file, int line);

#define CHECK_TEXT(IS, SHOULD) check_text((IS), (SHOULD), __FILE__, __LINE__)
/* Calls a function of the library to its end, in a process of its own.  What
 * comes is a term as Erlang writes it, or error:Reason. */
#define CHECK_CALL(NAME, ARGS, SHOULD)                                      \
    check_call((NAME), (ARGS), (SHOULD), __FILE__, __LINE__)
#define CHECK_AWAIT(NAME, ARGS, SHOULD)                                     \
    CHECK_TEXT(finished(spawn_await((NAME), (ARGS))), (SHOULD))
/* The same in each of the six modes, without pauses and with one at every
 * tick. */
void check_everywhere(const char *name, const char *args, const char *should,
                      const char *file, int line);
#define CHECK_EVERYWHERE(NAME, ARGS, SHOULD)                                \
    check_everywhere((NAME), (ARGS), (SHOULD), __FILE__, __LINE__)

/* -- the node ------------------------------------------------------------ */

extern vm_lib *lib;             /* the test file's */

void node_start(vm_init_fn init);
void node_stop(void);           /* checks that nothing was left behind */

/* {fairnif, Version, Runtime, Info}, as fairnif:load_info/1; a term of p. */
vm_term node_load_info(vm_proc *p, const char *info);
/* Upgrades the author's library, and purges the version before, which it
 * answers. */
vm_lib *node_upgrade(vm_init_fn init);
/* Loads the runtime's module once more, on process p: as an upgrade, or, after
 * a purge and `between`, afresh. */
vm_lib *node_runtime_again(vm_proc *p, void (*between)(void), int *error);
/* What a library that is no author's asks of the runtime, in a load of its own. */
struct fair__visitor;
void node_visit(struct fair__visitor *asks);

/* The runtime's settings (nif.c), by name. */
void node_set(const char *name, uint64_t value);
/* What fairnif:info/0 shows of a function of the library, summed over its
 * arities: a counter, or -1. */
long node_counter(const char *function, const char *counter);
#define CHECK_MISUSES(FUNCTION, N)                                          \
    CHECK_NUMBERS(node_counter((FUNCTION), "rule_violations"), ==, (N))
/* A test's BEFORE: the pool has no thread yet. */
void node_without_pool(void);
/* What the runtime has learned of a function, as if it was never called. */
void node_forget(const char *function);
/* Threads of which the runtime has a record, never freed. */
long node_records(void);
/* fairnif:tasks/0 as text. */
const char *node_tasks(char *buf, size_t size);
/* Stacks in use: one for each call that has begun and not ended. */
long node_stacks(void);
/* All there are, the idle ones included. */
long node_stacks_mapped(void);
/* What there is more, or less, than when the node was started, as text.  Not
 * counted: malloc, which the runtime uses for what it never frees (threads,
 * functions, counters); LeakSanitizer looks after that. */
const char *node_leftovers(void);

/* A new process with a call of the library scheduled; of the runtime's own
 * NIFs. */
vm_proc *spawn_call(const char *name, const char *args);
vm_proc *node_spawn(const char *name, const char *args);
/* Schedules a call of one of those on a process with terms of its own. */
void node_call(vm_proc *p, const char *name, int argc, const vm_term argv[]);
/* One with fairnif:await(Lib:Name(...)); the same on a process that is there
 * with terms of its own; fairnif:await(Term). */
vm_proc *spawn_await(const char *name, const char *args);
void node_await(vm_proc *p, const char *name, int argc, const vm_term argv[]);
void node_await_term(vm_proc *p, vm_term term);
/* To where only a message can help; and it has got none since. */
void until_waiting(vm_proc *p);
bool still_waits(vm_proc *p);
/* Where a process must stand still between the test's steps. */
void step_by_step(void);
/* A slice; of the real VM, which runs them by itself, a little time. */
#ifdef VM_REAL
#define A_SLICE(P) vm_run((P), 1)
#else
#define A_SLICE(P) vm_step(P)
#endif
/* For vm_post: all slices of a process on one thread. */
void run_all_slices(void *proc);
/* The result or error:Reason of a call, in one of a few buffers. */
const char *outcome(vm_proc *p);
/* Frees p after its call has come to its end, and answers that. */
const char *finished(vm_proc *p);

/* What fairnif:info/0 shows of the runtime: a number, or -1. */
long node_info(const char *key);
/* Until COND holds; false when it does not within 30 s. */
#define EVENTUALLY(COND)                                                    \
    do {                                                                    \
        bool holds__ = false;                                               \
        for (int i__ = 0; i__ < 30000 && !(holds__ = (COND)); i__++)        \
            nap();                                                          \
        check_that(holds__, __FILE__, __LINE__, "in the end: %s", #COND);   \
    } while (0)
/* At once in the stand-in.  The real VM frees what a dead process had in its
 * own time, and what was killed continues to its next tick. */
#ifdef VM_REAL
#define ONCE_FREED(COND) EVENTUALLY(COND)
#else
#define ONCE_FREED(COND) CHECK(COND)
#endif
/* What a task without a caller did last is not its end: that comes after it. */
#ifdef VM_REAL
#define ALL_OVER() EVENTUALLY(node_stacks() == 0)
#else
#define ALL_OVER() EVENTUALLY(node_stacks() == 0 && !*node_leftovers())
#endif
void nap(void);

/* Lets each allocation of a call fail in turn, alone and with all after it: it
 * comes to what it should, or to enomem, and nothing of it is left. */
void check_without_memory(const char *name, vm_proc *(*start)(const char *),
                          const char *should);

/* -- one body in every mode ---------------------------------------------- */

#define ALL_MODES(NAME, ARITY, BODY)                                        \
    FAIR_NIF(NAME "_normal", ARITY, BODY, FAIR_NORMAL | FAIR_NO_YIELD),     \
    FAIR_NIF(NAME "_yielding", ARITY, BODY, FAIR_NORMAL),                   \
    FAIR_NIF(NAME "_dirty_cpu", ARITY, BODY,                                \
             FAIR_DIRTY_CPU | FAIR_NO_YIELD),                               \
    FAIR_NIF(NAME "_dirty_io", ARITY, BODY, FAIR_DIRTY_IO | FAIR_NO_YIELD), \
    FAIR_NIF(NAME "_yielding_dirty", ARITY, BODY, FAIR_DIRTY_CPU),          \
    FAIR_NIF(NAME "_auto", ARITY, BODY, FAIR_AUTO)

struct mode {
    const char *name;
    bool yields;            /* pauses at every tick when set to */
    char first;             /* vm_kinds of the first slice of the body */
    bool queued;            /* the body begins in the second slice */
};
extern const struct mode modes[6];
/* "exor", modes[1] -> "exor_yielding" */
const char *in_mode(const char *name, const struct mode *mode);

/* The same for functions that fairnif:await/1 waits for. */
#define AWAITED_MODES(NAME, ARITY, BODY)                                    \
    FAIR_NIF(NAME "_normal", ARITY, BODY,                                   \
             FAIR_NORMAL | FAIR_NO_YIELD | FAIR_MAY_WAIT),                   \
    FAIR_NIF(NAME "_yielding", ARITY, BODY, FAIR_NORMAL | FAIR_MAY_WAIT),    \
    FAIR_NIF(NAME "_dirty_cpu", ARITY, BODY,                                \
             FAIR_DIRTY_CPU | FAIR_NO_YIELD | FAIR_MAY_WAIT),                \
    FAIR_NIF(NAME "_dirty_io", ARITY, BODY,                                 \
             FAIR_DIRTY_IO | FAIR_NO_YIELD | FAIR_MAY_WAIT),                 \
    FAIR_NIF(NAME "_yielding_dirty", ARITY, BODY,                           \
             FAIR_DIRTY_CPU | FAIR_MAY_WAIT),                                \
    FAIR_NIF(NAME "_auto", ARITY, BODY, FAIR_AUTO | FAIR_MAY_WAIT),          \
    FAIR_NIF(NAME "_threaded", ARITY, BODY, FAIR_THREADED)
#define MODES 7
/* "fetch", 6 -> "fetch_threaded" */
const char *in_nth_mode(const char *name, int n);

/* -- a gate in what waits ------------------------------------------------ */

/* Its caller waits until it is open. */
void gate_pass(void *unused);
void gate_open(void);
void gate_shut(void);
int gate_waiting(void);         /* how many are inside */

/* -- what bodies and deferred functions write down ----------------------- */

/* A text that any thread may append to; note("%d", n). */
__attribute__((format(printf, 1, 2)))
void note(const char *format, ...);
const char *notes(void);        /* only while no thread writes */
bool is_noted(const char *text); /* among it; also while others write */
void clear_notes(void);
void note_defer(void *text);    /* for fair_defer: notes the text */
/* Defers one that is counted; what it got is freed by it.  All have run, once? */
bool postpone(fair_task *t);
bool all_undone(void);
void after_all(void);           /* they will have, and no stack is in use */

/* -- private data ----------------------------------------------------------- */

extern long private_data;       /* of a library with these; upgrades keep it */
int load_private(ErlNifEnv *env, void **priv, ERL_NIF_TERM info);
int upgrade_private(ErlNifEnv *env, void **priv, void **old, ERL_NIF_TERM info);

#endif
