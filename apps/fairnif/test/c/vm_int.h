/*
 * vm_int.h - what the vm*.c files share.
 *
 * A heap is a list of chunks from malloc; a collection copies what is
 * reachable into one new chunk and frees the others, which AddressSanitizer
 * then watches.  Boxed terms begin with a header word:
 *
 *     n << 8 | subtag << 2 | 0
 *
 *     tuple     n elements follow
 *     float     8 bytes
 *     big       16 bytes, an __int128
 *     heapbin   n bytes, filled up to whole words
 *     refcbin   vm_bin *, offset, size
 *     subbin    size, offset, bitoffset | bitsize << 8, the binary
 *     ref       number
 *     magic     vm_resource *
 *     map       n keys and values: k, v, k, v, ... as they came
 *     fun       number
 *
 * A collected boxed term leaves the new term in its header word (no header
 * ends in other bits than 00), a cons leaves 0 and the new term.
 */
#ifndef VM_INT_H
#define VM_INT_H

#include <pthread.h>

#include "vm.h"

enum tag { TAG_HEADER, TAG_CONS, TAG_BOXED, TAG_IMMEDIATE };
enum subtag {
    T_TUPLE = 1, T_FLOAT, T_BIG, T_HEAPBIN, T_REFCBIN, T_SUBBIN, T_REF,
    T_MAGIC, T_MAP, T_FUN
};

#define NON_VALUE ((vm_term)0)
#define TAG(T) ((enum tag)((T) & 3))
#define PTR(T) ((vm_term *)((T) & ~(vm_term)3))
#define CONS(P) ((vm_term)(P) | TAG_CONS)
#define BOXED(P) ((vm_term)(P) | TAG_BOXED)
#define HEADER(SUB, N) ((vm_term)(N) << 8 | (vm_term)(SUB) << 2)
#define SUBTAG(H) ((enum subtag)((H) >> 2 & 63))
#define HSIZE(H) ((size_t)((H) >> 8))

#define IS_SMALL(T) (((T) & 15) == 15)
#define SMALL(N) ((vm_term)(int64_t)(N) << 4 | 15)
#define SMALL_VALUE(T) ((int64_t)(T) >> 4)
#define IS_ATOM(T) (((T) & 63) == 0x0B)
#define ATOM(I) ((vm_term)(I) << 6 | 0x0B)
#define ATOM_INDEX(T) ((size_t)((T) >> 6))
#define IS_PID(T) (((T) & 15) == 3)
#define PID(I) ((vm_term)(I) << 4 | 3)
#define PID_NUMBER(T) ((size_t)((T) >> 4))

/* T is a boxed term with that subtag. */
static inline bool vm__is(vm_term t, enum subtag sub)
{
    return TAG(t) == TAG_BOXED && SUBTAG(PTR(t)[0]) == sub;
}

struct vm_chunk {
    struct vm_chunk *next;
    size_t size, used;
    vm_term words[];
};

struct vm_heap {
    struct vm_chunk *chunks;
    size_t words;
    vm_term **off;          /* where its refcbins and magics stand */
    size_t off_used, off_size;
};

struct vm_bin {
    uint64_t magic;
    long refs;
    size_t size;
    unsigned char data[];   /* aligned to 8 and not to 16, as the real one */
};

struct vm_resource {
    uint64_t magic;
    ErlNifResourceType *type;
    long refs;
    size_t size;
    struct vm_resource *next_late;
    _Alignas(8) unsigned char data[];   /* to 8 only, as the real one */
};

enum env_kind { ENV_PROC, ENV_OWN, ENV_DTOR };

struct enif_environment_t {
    uint64_t magic;
    enum env_kind kind;
    vm_proc *proc;
    vm_thread *thread;      /* the slice's; NULL: of vm_env() */
    vm_lib *lib;
    struct vm_heap *heap, own_heap;
    bool loading;
    bool raised;
    vm_term reason;
    bool scheduled;
    void **temporary;       /* freed at the end of the NIF */
    size_t temporary_used;
};

typedef vm_term (*vm_nif)(ErlNifEnv *, int, const vm_term[]);

struct vm_lib {
    char name[64];
    ErlNifEntry *entry;
    void *priv;
    bool purged;
    long resources;         /* live objects of the types it owns */
    bool unmapped;
    void (*on_unmap)(void *);
    void *on_unmap_arg;
    struct vm_lib *next;
};

struct vm_message {
    struct vm_message *next;
    struct vm_heap heap;
    vm_term term;
};

/* fairnif:await/1, on a process that calls through it: vm_await.c. */
enum { AWAIT_REGS = 3 };

struct vm_await {
    vm_lib *runtime;        /* NULL: it does not */
    enum vm_await_at {
        A_CALL,             /* the call, whose answer is awaited */
        A_ASK,              /* nif_await */
        A_RECEIVE,
        A_EXPIRE,           /* nif_expire */
        A_FLUSH,            /* takes messages that came too late */
        A_REQUEST,          /* nif_asked */
        A_ANY,              /* the body receives: any message */
        A_TAGGED,           /* those with a tag */
        A_ANSWER            /* nif_answer */
    } at;
    vm_term regs[AWAIT_REGS];        /* Pending and Ref; or Asks, Tag or Outcome, and
                               Answer: moved by collections */
    long flush;             /* messages to take */
    uint64_t deadline;      /* of the receive, real ns; UINT64_MAX: never */
};

struct vm_proc {
    pthread_mutex_t lock;
    pthread_cond_t cond;    /* a message came, or the state changed */
    size_t index;
    vm_term pid;
    vm_term name;
    struct vm_heap heap;
    ErlNifEnv *env;
    enum vm_state state;
    bool exiting;
    int runs_on;            /* kind of thread; VM_RUNNING only */
    /* the scheduled NIF */
    vm_lib *lib;
    vm_nif fn;
    int kind;
    int argc;
    vm_term *argv;
    vm_term result;
    /* history */
    unsigned percent, percent_total;
    int slices;
    char *kinds;
    size_t kinds_size;
    const vm_thread *last;
    struct vm_message *messages, **last_message;
    struct vm_await await;
};

struct vm_thread {
    pthread_t id;
    int kind, number;
    pthread_mutex_t lock;
    pthread_cond_t cond;
    void (*fn)(void *);
    void *arg;
    bool busy, stop;
    ErlNifEnv *slice;       /* of the slice it runs */
    void *alt_stack;
};

extern __thread vm_thread *vm__self;

/* Schedulers look for work by it, without a lock. */
#define SET_KIND(P, K) __atomic_store_n(&(P)->kind, (K), __ATOMIC_RELAXED)

/* vm_heap.c */
vm_term *vm__heap_alloc(struct vm_heap *h, size_t words);
void vm__heap_off(struct vm_heap *h, vm_term *boxed);
void vm__heap_clear(struct vm_heap *h);
bool vm__heap_owns(const struct vm_heap *h, vm_term t);
void vm__heap_collect(struct vm_heap *h, vm_term *roots[], const size_t n[],
                      int sets);
vm_term vm__copy(struct vm_heap *to, vm_term t);
size_t vm__boxed_words(vm_term header);

/* vm_bin.c */
struct vm_span {            /* where a binary's bytes are */
    const unsigned char *data;
    size_t size;
    unsigned bit, bits;     /* starts that many bits later; ends, too */
};
bool vm__span(vm_term t, struct vm_span *s);
void vm__bin_keep(struct vm_bin *b);
void vm__bin_drop(struct vm_bin *b);
unsigned char *vm__span_copy(const struct vm_span *s, unsigned char *to);
/* One that is no binary: `bytes` bytes, and less than another. */
vm_term vm__bitstring(ErlNifEnv *env, size_t bytes, unsigned bits);
vm_term vm__make_heapbin(struct vm_heap *h, size_t size,
                         unsigned char **data);

/* vm_res.c */
struct vm_resource *vm__resource_of(void *obj);
const ErlNifResourceTypeInit *vm__resource_calls(const struct vm_resource *r);
vm_lib *vm__resource_owner(const struct vm_resource *r);
void vm__resource_keep(struct vm_resource *r);
bool vm__resource_keep_live(struct vm_resource *r); /* false: it is going */
void vm__resource_drop(struct vm_resource *r);

/* vm_proc.c */
ErlNifEnv *vm__env_new(enum env_kind kind, vm_proc *p, vm_lib *lib);
void vm__env_free(ErlNifEnv *env);
void vm__env_check(ErlNifEnv *env, const char *who);
void vm__slice_check(ErlNifEnv *env, const char *who);
void vm__temporary(ErlNifEnv *env, void *p);
void vm__free_temporary(ErlNifEnv *env);
/* False past the last; NULL where one was freed. */
bool vm__proc_at(size_t index, vm_proc **p);
/* The process with its lock held, or NULL when it is dead. */
vm_proc *vm__proc_locked(vm_term pid);
bool vm__proc_gone(const vm_proc *p);   /* for others; with its lock held */
void vm__call(vm_proc *p, vm_lib *lib, const char *name, int argc,
              const vm_term argv[]);
void vm__begin(vm_proc *p, enum vm_state state);
void vm__owned(ErlNifEnv *env, vm_term t, const char *who);

/* vm_send.c */
struct vm_message *vm__message(vm_term term);
bool vm__deliver(vm_term pid, struct vm_message *m);    /* takes m over */
void vm__message_free(struct vm_message *m);
/* The first message that the process's receive is for, taken out; the lock
 * held. */
struct vm_message *vm__take_message(vm_proc *p);
bool vm__has_message(const vm_proc *p);
/* Waits for p->cond, until then (real ns) at the longest; the lock held. */
void vm__wait_until(vm_proc *p, uint64_t then);

/* vm_await.c */
enum vm_state vm__await_answered(vm_proc *p, enum vm_state state);
enum vm_state vm__await_received(vm_proc *p, struct vm_message *m);
void vm__await_forget(vm_proc *p);
bool vm__await_due(const vm_proc *p);   /* of a waiting one; the lock held */

/* vm_map.c */
bool vm__same(vm_term a, vm_term b);

/* vm_monitor.c */
void vm__monitors_fire(vm_proc *p);
void vm__monitors_forget(struct vm_resource *r);

/* vm_select.c */
void vm__select_stop(void);
void vm__select_close(int fd);

/* vm_term.c */
vm_term vm__atom(const char *name, size_t length);
const char *vm__atom_name(vm_term atom);
bool vm__integer(vm_term t, __int128 *value);
vm_term vm__make_integer(struct vm_heap *h, __int128 value);
bool vm__float(vm_term t, double *value);

/* vm_sys.c */
extern struct vm_counts vm__counts;
#define COUNT(WHAT, BY) \
    ((void)__atomic_add_fetch(&vm__counts.WHAT, (BY), __ATOMIC_RELAXED))
void *vm__malloc(size_t size);          /* ends the program when out */
void *vm__realloc(void *p, size_t size);
void vm__free(void *p);
void vm__walked(size_t work);           /* of this enif_ call */
void vm__cost(uint64_t ns);
void vm__max(long *max, long value);
bool vm__fails(enum vm_fault kind);     /* this call is to fail */
uint64_t vm__real_now(void);
/* A thread of the VM's own; others are their creator's. */
void vm__thread_create(pthread_t *id, size_t stack_size, void *(*fn)(void *),
                       void *arg);
extern __thread bool vm__foreign;       /* a thread of a library's */

/* vm_regs.c */
/* fn(a, b, c) with marks in all callee-saved registers; answers which of them
 * were lost, as bits, and the result.  `seed` makes the marks. */
uint64_t vm__call_marked(void *fn, uint64_t a, uint64_t b, uint64_t c,
                         uint64_t *result, uint64_t seed);
/* Floating point control, as callee-saved registers have it. */
uint64_t vm__fp_control(void);

#endif
