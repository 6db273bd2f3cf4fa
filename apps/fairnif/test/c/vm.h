/*
 * vm.h - a stand-in for the Erlang VM, as far as a NIF library sees one.
 *
 * The vm*.c files provide the enif_ functions to a test executable, so that
 * the runtime's real sources and a test's own "author's library" run in it
 * unchanged.  It is made to be a worse VM than the real one: heaps move after
 * every slice and the old ones are freed, so are the environment and the
 * argument vector of each call; a slice never runs on the thread of the one
 * before; binaries move when they are resized; memory can be made to run out.
 * Under AddressSanitizer whatever is kept too long is then an error.
 *
 * What the real VM forbids, or asserts in its debug build, ends the program
 * here (vm_misuse).  What it must never do: be kinder than the real one.
 *
 * Terms are tagged as in the real VM (erl_term.h), 64-bit only.
 */
#ifndef VM_H
#define VM_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <erl_nif.h>

typedef ERL_NIF_TERM vm_term;
typedef struct vm_proc vm_proc;
typedef struct vm_lib vm_lib;
typedef struct vm_thread vm_thread;

/* -- the node ------------------------------------------------------------ */

enum { VM_NORMAL = 1, VM_DIRTY_CPU = 2, VM_DIRTY_IO = 3, VM_KINDS = 4 };

/* Threads of each kind; at least two, so that a task always migrates. */
void vm_start(int normal, int dirty_cpu, int dirty_io);
/* Ends the threads.  Processes must have been freed. */
void vm_stop(void);

/* How it behaves; may be changed at any time. */
struct vm_options {
    int gc_every;           /* collect after each Nth slice; 0: never */
    bool virtual_time;      /* the clock stands still but for vm_work, for
                               enif_ functions, copying (8 bytes a ns), and
                               20 ns for each look */
    bool late_destructors;  /* run by vm_run_destructors, not at once */
    int dead_heaps_on;      /* kind of thread on which vm_kill frees, and
                               tells monitors */
    bool late_stops;        /* ERL_NIF_SELECT_STOP leaves the callback to the
                               polling thread */
    size_t heap_bin;        /* bytes up to which a binary lies on the heap */
    bool without_pool;      /* the node starts no thread: schedulers do, and
                               wait for it */
    unsigned late_events_us;    /* from the end of a selection to its message,
                               which ERL_NIF_SELECT_CANCEL then misses */
    void (*before_thread)(const char *name);    /* each enif_thread_create */
};
#ifdef VM_REAL
struct vm_options *real_options(void);
#define vm_options (*real_options())    /* there is none: real_only.c */
#else
extern struct vm_options vm_options;
#endif
/* Makes it worse than the real one, which is as it is. */
#ifdef VM_REAL
#define VM_WORSE(OPTION, VALUE) ((void)(VALUE))
enum { VM_WAYS = 1 };
#else
enum { VM_WAYS = 3 };
#define VM_WORSE(OPTION, VALUE) (vm_options.OPTION = (VALUE))
#endif

/* Runs fn(arg) on the next thread of that kind and waits for it. */
void vm_on(int kind, void (*fn)(void *), void *arg);
/* The same without waiting; vm_wait waits for all such. */
void vm_post(vm_thread *thread, void (*fn)(void *), void *arg);
void vm_wait(vm_thread *thread);
vm_thread *vm_nth_thread(int kind, int n);  /* NULL past the last */
int vm_thread_count(int kind);

/* Advances the virtual clock: the work of a body. */
void vm_work(uint64_t ns);
uint64_t vm_now(void);
/* Virtual time: ns of it is lost to something else at the nth look at the
 * clock from now on. */
void vm_pause(long looks, uint64_t ns);

__attribute__((noreturn, format(printf, 1, 2)))
void vm_misuse(const char *format, ...);

/* -- libraries ----------------------------------------------------------- */

typedef ErlNifEntry *(*vm_init_fn)(void);

/* erlang:load_nif on process p, which holds the term `info`; NULL and *error
 * when load failed.  With `old`, upgrade is called instead. */
vm_lib *vm_load(vm_proc *p, vm_init_fn init, vm_term info, vm_lib *old,
                int *error);
/* Purges: kills the processes that have a NIF of it scheduled and calls
 * unload.  The code goes when the last of its resources is gone. */
void vm_purge(vm_lib *lib);
bool vm_unmapped(const vm_lib *lib);
/* Runs when the code goes, on the thread that released it; fn may dlclose. */
void vm_on_unmap(vm_lib *lib, void (*fn)(void *), void *arg);

/* With vm_options.late_destructors: runs those that are due. */
void vm_run_destructors(void);

/* -- processes ----------------------------------------------------------- */

enum vm_state {
    VM_IDLE,        /* no call yet */
    VM_READY,       /* a NIF is scheduled: new, or suspended */
    VM_RUNNING,
    VM_DONE,        /* `result` is what the call returned */
    VM_RAISED,      /* `result` is the reason of error:Reason */
    VM_WAITING,     /* in the receive of await/1 */
    VM_DEAD
};

vm_proc *vm_spawn(void);
/* The environment of the code between the calls. */
ErlNifEnv *vm_env(vm_proc *p);
/* Schedules a call of name/argc; the arguments are terms of vm_env(p). */
void vm_call_array(vm_proc *p, vm_lib *lib, const char *name, int argc,
                   const vm_term argv[]);
/* The same, the arguments in Erlang's notation: "<<1,2>>, [a|b], 5". */
void vm_call(vm_proc *p, vm_lib *lib, const char *name, const char *args);
/* The same as fairnif:await(Lib:Name(...)): the Erlang code between the calls
 * runs at the end of slices, and in those of a process that waits. */
void vm_await(vm_proc *p, vm_lib *lib, const char *name, const char *args,
              vm_lib *runtime);
void vm_await_array(vm_proc *p, vm_lib *lib, const char *name, int argc,
                    const vm_term argv[], vm_lib *runtime);
/* fairnif:await(Term), a term of vm_env(p). */
void vm_await_term(vm_proc *p, vm_term term, vm_lib *runtime);
/* The next slice, on the next thread of the right kind.  One that waits looks
 * for its message, and at its clock. */
enum vm_state vm_step(vm_proc *p);
/* The next slice on this thread; it must be of the right kind.  Nothing when
 * the process was killed meanwhile. */
enum vm_state vm_slice(vm_proc *p);
/* All slices, to the end. */
enum vm_state vm_finish(vm_proc *p);
/* The same for about ms milliseconds; -1: no limit. */
enum vm_state vm_run(vm_proc *p, int ms);
/* exit(Pid, kill), from any thread, also from the body itself.  Monitors fire
 * before the heap goes: now, or at the end of a slice on a normal scheduler;
 * of one on a dirty scheduler now, and the slice continues. */
void vm_kill(vm_proc *p);
void vm_gc(vm_proc *p);
/* Frees a process that is not running, killing it first where needed. */
void vm_free(vm_proc *p);

enum vm_state vm_state(vm_proc *p);
int vm_next_kind(const vm_proc *p);     /* of thread, for the next slice */
vm_term vm_result(vm_proc *p);
vm_proc *vm_current(void);              /* whose slice this thread runs */
int vm_slices(const vm_proc *p);
unsigned vm_percent(const vm_proc *p);  /* of timeslices, all together */
/* One letter for each slice so far, freed with the process. */
const char *vm_kinds(const vm_proc *p);

/* Names and messages: what enif_whereis_pid and enif_send need. */
void vm_register(vm_proc *p, const char *name);
int vm_messages(vm_proc *p);
/* The nth message in Erlang's notation. */
const char *vm_message(vm_proc *p, int n, char *buf, size_t size);
vm_term vm_pid(const vm_proc *p);
static inline ErlNifPid pid_of(const vm_proc *p)
{
    return (ErlNifPid){vm_pid(p)};
}

/* -- terms --------------------------------------------------------------- */

/* One term, or the terms of an argument list.  Integers of any size up to
 * 128 bits, floats, atoms, "strings", <<bytes>>, <<bits:N>> (unaligned: see
 * vm_bits), tuples, lists, #{maps}, #Fun, #Ref. */
vm_term vm_parse(ErlNifEnv *env, const char *text);
int vm_parse_args(ErlNifEnv *env, const char *text, vm_term *argv, int max);
/* Erlang's notation; cut short to fit. */
char *vm_print(vm_term term, char *buf, size_t size);

/* A binary that starts `bit` bits into a byte. */
vm_term vm_bits(ErlNifEnv *env, const void *data, size_t size, unsigned bit);
vm_term vm_binary(ErlNifEnv *env, const void *data, size_t size);
/* [0, 1 band 255, 2 band 255, ...] with that tail. */
vm_term vm_byte_list(ErlNifEnv *env, size_t length, vm_term tail);
#define VM_NIL ((vm_term)-5)

/* -- faults -------------------------------------------------------------- */

enum vm_fault {
    VM_F_ALLOC = 1,         /* enif_alloc, enif_realloc */
    VM_F_BINARY = 2,        /* enif_alloc_binary, enif_realloc_binary */
    VM_F_MALLOC = 4,        /* malloc, calloc, realloc, strdup */
    VM_F_MMAP = 8,
    VM_F_MPROTECT = 16,
    VM_F_MADVISE = 32,
    VM_F_THREAD = 64,       /* pthread_create, enif_thread_create */
    VM_F_SELECT = 128,      /* enif_select, but for CANCEL and STOP */
    VM_F_MEMORY = 15,
    VM_F_ALL = 255
};

/* The nth such call from now on, inside of a slice or on a thread that a
 * library made, fails; with `and_on` all after it too.  n == 0: none. */
void vm_fail(unsigned kinds, long n, bool and_on);
bool vm_failed(void);       /* it was reached */

/* -- what there is ------------------------------------------------------- */

struct vm_counts {
    long processes, heaps, envs, binaries, resources;
    long allocs;            /* enif_alloc */
    long mallocs;           /* malloc, by the runtime and the tests */
    long mutexes;
    long maps;              /* mmap, less munmap */
    long temporary;         /* memory that goes at the end of a NIF */
    long monitors, selects; /* of enif_monitor_process; descriptors */
    long threads;           /* of enif_thread_create, not joined */
    /* not balances */
    long switches;          /* slices run */
    long total_allocs;      /* of every kind */
    long max_work;          /* words or bytes that one enif_ call walked over
                               or copied, at most */
    long max_slice_ns;
};
struct vm_counts vm_counts(void);
/* Descriptors whose waiter will be notified: the others that are selected only
 * wait for their stop, or to be selected again. */
long vm_armed(void);
/* Is a message that was seen to be due not yet there, or a stop under way? */
bool vm_selects_at_work(void);
void vm_reset_maxima(void);
/* What there is more or less of than then, as text in buf; NULL: nothing. */
const char *vm_differs(const struct vm_counts *since, char *buf, size_t size);

#endif
