/*
 * vm_sys.c - memory that can run out, the clock, and what is counted.
 *
 * The executable is linked with --wrap for the functions below, so that the
 * runtime's own calls of libc pass here.  Faults are for slices, and threads
 * that a library made: what the VM and the tests do between slices always
 * succeeds.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <malloc.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <time.h>

#include "vm_int.h"

#define WRAPPED(TYPE, NAME, ...) \
    TYPE __real_##NAME(__VA_ARGS__); TYPE __wrap_##NAME(__VA_ARGS__)
WRAPPED(void *, malloc, size_t);
WRAPPED(void *, calloc, size_t, size_t);
WRAPPED(void *, realloc, void *, size_t);
WRAPPED(char *, strdup, const char *);
WRAPPED(void, free, void *);
WRAPPED(void *, mmap, void *, size_t, int, int, int, off_t);
WRAPPED(int, munmap, void *, size_t);
WRAPPED(int, mprotect, void *, size_t, int);
WRAPPED(int, madvise, void *, size_t, int);
WRAPPED(int, clock_gettime, clockid_t, struct timespec *);
WRAPPED(int, pthread_create, pthread_t *, const pthread_attr_t *,
        void *(*)(void *), void *);
WRAPPED(int, close, int);
WRAPPED(int, getrusage, int, struct rusage *);
WRAPPED(void *, memcpy, void *, const void *, size_t);
WRAPPED(void *, memmove, void *, const void *, size_t);

enum { LOOK_NS = 20, WORD_NS = 1, BYTES_PER_NS = 8 };

struct vm_counts vm__counts;

void vm_misuse(const char *format, ...)
{
    va_list ap;

    va_start(ap, format);
    fprintf(stderr, "misuse of the VM: ");
    vfprintf(stderr, format, ap);
    fprintf(stderr, "\n");
    va_end(ap);
    fflush(NULL);
    abort();
}

/* -- faults -------------------------------------------------------------- */

static unsigned fault_kinds;
static long fault_countdown;
static bool fault_and_on;

void vm_fail(unsigned kinds, long n, bool and_on)
{
    __atomic_store_n(&fault_kinds, 0, __ATOMIC_SEQ_CST);
    __atomic_store_n(&fault_countdown, n, __ATOMIC_SEQ_CST);
    __atomic_store_n(&fault_and_on, and_on, __ATOMIC_SEQ_CST);
    __atomic_store_n(&fault_kinds, n > 0 ? kinds : 0, __ATOMIC_SEQ_CST);
}

bool vm_failed(void)
{
    return fault_kinds
        && __atomic_load_n(&fault_countdown, __ATOMIC_SEQ_CST) <= 0;
}

bool vm__fails(enum vm_fault kind)
{
    long n;

    COUNT(total_allocs, 1);
    if (!(__atomic_load_n(&fault_kinds, __ATOMIC_SEQ_CST) & kind)
        || (!vm__foreign && (!vm__self || !vm__self->slice)))
        return false;
    n = __atomic_sub_fetch(&fault_countdown, 1, __ATOMIC_SEQ_CST);
    return n == 0
        || (n < 0 && __atomic_load_n(&fault_and_on, __ATOMIC_SEQ_CST));
}

/* -- memory -------------------------------------------------------------- */

void *vm__malloc(size_t size)
{
    void *p = __real_malloc(size);

    if (!p)
        vm_misuse("out of memory: %zu bytes", size);
    return p;
}

void *vm__realloc(void *p, size_t size)
{
    p = __real_realloc(p, size);
    if (!p)
        vm_misuse("out of memory: %zu bytes", size);
    return p;
}

void vm__free(void *p)
{
    __real_free(p);
}

/* Aligned to 8 now and to 16 then, as the real one's are, with the shift in
 * the word before; a block that is resized moves always. */
void *enif_alloc(size_t size)
{
    static unsigned long turn;
    size_t shift = 8 + 8 * (__atomic_fetch_add(&turn, 1, __ATOMIC_RELAXED) & 1);
    char *raw;

    if (size > SIZE_MAX - 16 || vm__fails(VM_F_ALLOC)
        || !(raw = __real_malloc(shift + size)))
        return NULL;
    memset(raw + shift, 0xA1, size < 4096 ? size : 4096);
    memcpy(raw + shift - sizeof shift, &shift, sizeof shift);
    COUNT(allocs, 1);
    return raw + shift;
}

static char *raw_of(char *p, size_t *shift)
{
    memcpy(shift, p - sizeof *shift, sizeof *shift);
    return p - *shift;
}

void enif_free(void *p)
{
    size_t shift;

    if (!p)
        return;
    COUNT(allocs, -1);
    __real_free(raw_of(p, &shift));
}

void *enif_realloc(void *p, size_t size)
{
    void *q = enif_alloc(size);
    size_t shift, had;

    if (!p || !q)
        return q;
    had = malloc_usable_size(raw_of(p, &shift)) - shift;
    memcpy(q, p, had < size ? had : size);
    enif_free(p);
    return q;
}

void *__wrap_malloc(size_t size)
{
    void *p = vm__fails(VM_F_MALLOC) ? NULL : __real_malloc(size);

    if (p)
        COUNT(mallocs, 1);
    return p;
}

void *__wrap_calloc(size_t n, size_t size)
{
    void *p = vm__fails(VM_F_MALLOC) ? NULL : __real_calloc(n, size);

    if (p)
        COUNT(mallocs, 1);
    return p;
}

void *__wrap_realloc(void *p, size_t size)
{
    void *q = vm__fails(VM_F_MALLOC) ? NULL : __real_realloc(p, size);

    if (q && !p)
        COUNT(mallocs, 1);
    return q;
}

char *__wrap_strdup(const char *s)
{
    size_t size = strlen(s) + 1;
    char *p = __wrap_malloc(size);

    return p ? memcpy(p, s, size) : NULL;
}

void __wrap_free(void *p)
{
    if (p)
        COUNT(mallocs, -1);
    __real_free(p);
}

void *__wrap_mmap(void *at, size_t size, int prot, int flags, int fd,
                  off_t offset)
{
    void *p;

    if (vm__fails(VM_F_MMAP)) {
        errno = ENOMEM;
        return MAP_FAILED;
    }
    p = __real_mmap(at, size, prot, flags, fd, offset);
    if (p != MAP_FAILED && !(flags & MAP_FIXED))
        COUNT(maps, 1);
    return p;
}

int __wrap_munmap(void *at, size_t size)
{
    COUNT(maps, -1);
    return __real_munmap(at, size);
}

int __wrap_mprotect(void *at, size_t size, int prot)
{
    if (vm__fails(VM_F_MPROTECT)) {
        errno = ENOMEM;
        return -1;
    }
    return __real_mprotect(at, size, prot);
}

int __wrap_madvise(void *at, size_t size, int advice)
{
    if (vm__fails(VM_F_MADVISE)) {
        errno = EINVAL;
        return -1;
    }
    return __real_madvise(at, size, advice);
}

/* The runtime's own copying takes time as well. */
void *__wrap_memcpy(void *to, const void *from, size_t size)
{
    vm__cost(size / BYTES_PER_NS);
    return __real_memcpy(to, from, size);
}

void *__wrap_memmove(void *to, const void *from, size_t size)
{
    vm__cost(size / BYTES_PER_NS);
    return __real_memmove(to, from, size);
}

/* -- threads and descriptors --------------------------------------------- */

__thread bool vm__foreign;

struct start {
    void *(*fn)(void *);
    void *arg;
};

static void *foreign(void *arg)
{
    struct start s = *(struct start *)arg;

    vm__free(arg);
    vm__foreign = true;
    return s.fn(s.arg);
}

int __wrap_pthread_create(pthread_t *id, const pthread_attr_t *attributes,
                          void *(*fn)(void *), void *arg)
{
    struct start *s;
    int error;

    if (vm__fails(VM_F_THREAD))
        return EAGAIN;
    s = vm__malloc(sizeof *s);
    s->fn = fn;
    s->arg = arg;
    error = __real_pthread_create(id, attributes, foreign, s);
    if (error)
        vm__free(s);
    return error;
}

void vm__thread_create(pthread_t *id, size_t stack_size, void *(*fn)(void *),
                       void *arg)
{
    pthread_attr_t attr;

    pthread_attr_init(&attr);
    pthread_attr_setstacksize(&attr, stack_size);
    if (__real_pthread_create(id, &attr, fn, arg))
        vm_misuse("pthread_create");
    pthread_attr_destroy(&attr);
}

int __wrap_close(int fd)
{
    vm__select_close(fd);
    return __real_close(fd);
}

/* -- the clock ----------------------------------------------------------- */

static uint64_t virtual_now = 1000000000000;
static long pause_at;           /* looks until it comes; 0: none does */
static uint64_t pause_ns;

void vm__cost(uint64_t ns)
{
    if (vm_options.virtual_time)
        __atomic_add_fetch(&virtual_now, ns, __ATOMIC_RELAXED);
}

void vm_work(uint64_t ns)
{
    vm__cost(ns);
}

void vm_pause(long looks, uint64_t ns)
{
    __atomic_store_n(&pause_ns, ns, __ATOMIC_RELAXED);
    __atomic_store_n(&pause_at, looks, __ATOMIC_RELAXED);
}

uint64_t vm__real_now(void)
{
    struct timespec ts;

    __real_clock_gettime(CLOCK_MONOTONIC, &ts);
    return (uint64_t)ts.tv_sec * 1000000000 + (uint64_t)ts.tv_nsec;
}

uint64_t vm_now(void)
{
    return vm_options.virtual_time
        ? __atomic_load_n(&virtual_now, __ATOMIC_RELAXED) : vm__real_now();
}

/* No processor is taken away in virtual time. */
int __wrap_getrusage(int who, struct rusage *used)
{
    int error = __real_getrusage(who, used);

    if (vm_options.virtual_time)
        used->ru_nivcsw = 0;
    return error;
}

int __wrap_clock_gettime(clockid_t id, struct timespec *ts)
{
    uint64_t now;

    /* Until CLOCK_REALTIME a thread sleeps, and that takes its time. */
    if (!vm_options.virtual_time || id == CLOCK_REALTIME)
        return __real_clock_gettime(id, ts);
    vm__cost(LOOK_NS);
    if (__atomic_load_n(&pause_at, __ATOMIC_RELAXED) > 0
        && __atomic_sub_fetch(&pause_at, 1, __ATOMIC_RELAXED) == 0)
        vm__cost(__atomic_load_n(&pause_ns, __ATOMIC_RELAXED));
    now = vm_now();
    if (id == CLOCK_MONOTONIC_COARSE)
        now -= now % 4000000;
    ts->tv_sec = (time_t)(now / 1000000000);
    ts->tv_nsec = (long)(now % 1000000000);
    return 0;
}

/* The real VM's begins some 18 years below zero. */
#define BEHIND_NS 576460751000000000

ErlNifTime enif_monotonic_time(ErlNifTimeUnit unit)
{
    static const ErlNifTime per_unit[] = {
        [ERL_NIF_SEC] = 1000000000, [ERL_NIF_MSEC] = 1000000,
        [ERL_NIF_USEC] = 1000, [ERL_NIF_NSEC] = 1
    };

    vm__cost(3 * LOOK_NS);
    if (!vm__self)              /* it has none for threads that are not its own */
        return ERL_NIF_TIME_ERROR;
    return ((ErlNifTime)vm_now() - BEHIND_NS) / per_unit[unit];
}

/* -- counts -------------------------------------------------------------- */

void vm__max(long *max, long value)
{
    long old = __atomic_load_n(max, __ATOMIC_RELAXED);

    while (value > old
           && !__atomic_compare_exchange_n(max, &old, value, true,
                                           __ATOMIC_RELAXED, __ATOMIC_RELAXED))
        ;
}

/* What the present enif_ call did beside its fixed cost; 0 begins one.  A
 * walk reports itself piece by piece. */
void vm__walked(size_t work)
{
    static __thread size_t so_far;

    if (work == 0) {
        so_far = 0;
        return;
    }
    so_far += work;
    vm__cost(work * WORD_NS);
    if (vm__self && vm__self->slice)
        vm__max(&vm__counts.max_work, (long)so_far);
}

struct vm_counts vm_counts(void)
{
    struct vm_counts copy;
    long *to = (long *)(void *)&copy, *from = (long *)(void *)&vm__counts;

    for (size_t i = 0; i < sizeof copy / sizeof *to; i++)
        to[i] = __atomic_load_n(&from[i], __ATOMIC_RELAXED);
    return copy;
}

void vm_reset_maxima(void)
{
    vm__counts.max_work = 0;
    vm__counts.max_slice_ns = 0;
}

const char *vm_differs(const struct vm_counts *since, char *buf, size_t size)
{
#define WHAT(NAME) {#NAME, offsetof(struct vm_counts, NAME)}
    static const struct { const char *name; size_t at; } whats[] = {
        WHAT(processes), WHAT(heaps), WHAT(envs), WHAT(binaries),
        WHAT(resources), WHAT(allocs), WHAT(mutexes), WHAT(temporary),
        WHAT(monitors), WHAT(selects)
    };
    size_t used = 0;

    buf[0] = 0;
    for (size_t i = 0; i < sizeof whats / sizeof *whats; i++) {
        long was, is;

        memcpy(&was, (const char *)since + whats[i].at, sizeof was);
        is = __atomic_load_n((long *)(void *)((char *)&vm__counts
                                              + whats[i].at),
                             __ATOMIC_RELAXED);
        if (was != is && used < size)
            used += (size_t)snprintf(buf + used, size - used, " %s %+ld",
                                     whats[i].name, is - was);
    }
    return used ? buf : NULL;
}
