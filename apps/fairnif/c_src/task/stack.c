/*
 * stack.c - the stacks that tasks run on: mapped, guarded, pooled.
 *
 *     map                                                    map + map_size
 *      | guard 64 KiB | stack, growing down <----- | struct fair__task |
 *
 * The guard is 64 KiB because a function whose frame is larger than a page
 * steps over a small one without touching it; compiled with
 * -fstack-clash-protection it touches every page on its way.
 *
 * At vm.max_map_count mappings the VM's own mmap fails, which ends the node.
 * With mprotect each stack is two of them: so then there are at most a quarter
 * as many stacks, which leaves half of the mappings to the VM.
 * MADV_GUARD_INSTALL (Linux 6.13) guards without splitting the mapping, and
 * stacks side by side are one; but of N stacks that were mapped together N/2
 * may be unmapped, every second one, and the others are N/2 mappings then.
 * So at most 7/4 as many, which leaves an eighth at the worst.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/locks.h"
#include "task/checkers.h"
#include "task/overflow.h"
#include "task/stack.h"

#ifndef MADV_GUARD_INSTALL
#  define MADV_GUARD_INSTALL 102
#endif
#ifndef MAP_NORESERVE
#  define MAP_NORESERVE 0
#endif
#ifndef MAP_STACK
#  define MAP_STACK 0
#endif
/* macOS leaves the pages where they are, after the other advice. */
#ifdef __APPLE__
#  define GIVE_BACK MADV_FREE
#else
#  define GIVE_BACK MADV_DONTNEED
#endif

static struct fair__mutex lock = FAIR__MUTEX(RANK_STACKS);
static struct {
    struct fair__task *warm, *cold; /* as they were left; trimmed */
    unsigned warm_count, cold_count;
} pools[FAIR__CLASSES];
static size_t warm_bytes;       /* at most: of the warm ones of all classes */
static fair__u64 mapped;
static uint64_t limit;          /* of mapped */
static bool guard_installs;     /* MADV_GUARD_INSTALL works here */
static size_t page = 4096;

/* The smallest class that holds `size` bytes; FAIR__CLASSES if none does. */
unsigned fair__stack_class(size_t size)
{
    unsigned stack_class = 0;

    while (stack_class < FAIR__CLASSES && fair__stack_size(stack_class) < size)
        stack_class++;
    return stack_class;
}

size_t fair__stack_size(unsigned stack_class)
{
    return (size_t)FAIR__STACK_MIN << stack_class;
}

static size_t task_size(void)
{
    return (sizeof(struct fair__task) + 63) & ~(size_t)63;
}

static bool guard(void *map)
{
    if (guard_installs)
        return madvise(map, FAIR__GUARD, MADV_GUARD_INSTALL) == 0;
    return mprotect(map, FAIR__GUARD, PROT_NONE) == 0;
}

static struct fair__task *map_stack(unsigned stack_class, const char **error)
{
    size_t size = FAIR__GUARD + fair__stack_size(stack_class)
        + ((task_size() + page - 1) & ~(page - 1));
    struct fair__task *t;
    char *map;

    if (atomic_fetch_add(&mapped, 1) >= limit) {
        *error = "system_limit";
        goto no_stack;
    }
    map = mmap(NULL, size, PROT_READ | PROT_WRITE,
               MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_STACK, -1, 0);
    if (map == MAP_FAILED) {
        *error = "enomem";
        goto no_stack;
    }
    /* One huge page would make a stack resident as a whole. */
#ifdef MADV_NOHUGEPAGE
    madvise(map, size, MADV_NOHUGEPAGE);
#endif
    if (!guard(map)) {
        munmap(map, size);
        *error = "enomem";
        goto no_stack;
    }
    t = (struct fair__task *)(map + size - task_size());
    t->map = map;
    t->map_size = size;
    t->stack_class = stack_class;
    t->ctx.top = t;             /* 64-byte aligned, the stack is below */
    fair__check_mapped(t);
    return t;
no_stack:
    atomic_fetch_sub(&mapped, 1);
    return NULL;
}

static void unmap_stack(struct fair__task *t)
{
    fair__check_unmapped(t);
    munmap(t->map, t->map_size);
    atomic_fetch_sub(&mapped, 1);
}

static inline struct fair__task *taken(struct fair__task *t)
{
    fair__check_taken(t);
#ifdef FAIRNIF_ASSERT
    /* A field that is read before it is set for the call shows: it is not what
     * the call before left, which may be right by chance. */
    memset(&t->nif, 0xA5, sizeof *t - offsetof(struct fair__task, nif));
    SET(t->state, T_FREE);
#endif
    return t;
}

/* A stack with its task record, of which only the mapping's fields are valid;
 * NULL and why: "enomem" or "system_limit". */
struct fair__task *fair__stack_take(struct fair__thread *th,
                                    unsigned stack_class, const char **error)
{
    struct fair__task *t = NULL;

    if (stack_class == FAIR__CLASS_DEFAULT && (t = th->cache) != NULL) {
        th->cache = t->pool_next;
        SET(th->cached, GET(th->cached) - 1);
        return taken(t);
    }
    fair__mutex_lock(&lock);
    if ((t = pools[stack_class].warm) != NULL) {
        pools[stack_class].warm = t->pool_next;
        pools[stack_class].warm_count--;
        warm_bytes -= fair__stack_size(stack_class);
    } else if ((t = pools[stack_class].cold) != NULL) {
        pools[stack_class].cold = t->pool_next;
        pools[stack_class].cold_count--;
    }
    fair__mutex_unlock(&lock);
    if (!t)
        t = map_stack(stack_class, error);
    return t ? taken(t) : NULL;
}

/* Gives the pages back, but for the one or two that hold the record and the
 * first frames. */
static void trim(struct fair__task *t)
{
    char *low = t->map + FAIR__GUARD;
    char *high = (char *)((uintptr_t)t & ~(page - 1)) - page;

    if (high > low)
        madvise(low, (size_t)(high - low), GIVE_BACK);
}

/* Puts `t` on the warm or the cold list if that is not full. */
static bool shelve(struct fair__task *t, bool warm)
{
    unsigned c = t->stack_class;
    struct fair__task **list = warm ? &pools[c].warm : &pools[c].cold;
    unsigned *count = warm ? &pools[c].warm_count : &pools[c].cold_count;
    size_t bytes = warm ? fair__stack_size(c) : 0;
    bool room;

    fair__mutex_lock(&lock);
    room = *count < (warm ? FAIR__WARM : FAIR__COLD)
        && bytes <= FAIR__WARM_BYTES - warm_bytes;
    if (room) {
        warm_bytes += bytes;
        t->pool_next = *list;
        *list = t;
        ++*count;
    }
    fair__mutex_unlock(&lock);
    return room;
}

static void put_away(struct fair__task *t)
{
    trim(t);
    if (!shelve(t, false))
        unmap_stack(t);
}

static void put_away_job(struct fair__job *job)
{
    struct fair__task *t = fair__task_of(job);

    fair__check_given(t);
    put_away(t);
}

/* To trim a large stack that was used takes milliseconds (64 MiB: 4).  False: no
 * thread of the pool. */
static bool put_away_elsewhere(struct fair__task *t)
{
    if (fair__stack_size(t->stack_class) <= FAIR__TRIM_IN_PLACE
        || enif_thread_type() != ERL_NIF_THR_NORMAL_SCHEDULER
        || !fair__pool_start())
        return false;
    fair__check_taken(t);
    t->wait.job = (struct fair__job){.run = put_away_job};
    fair__pool_give_first(&t->wait.job);
    return true;
}

/* Back to the pool.  `th` is NULL on threads that run no tasks.  A dirty
 * scheduler keeps none: its tasks begin on normal ones. */
void fair__stack_give(struct fair__thread *th, struct fair__task *t)
{
    fair__check_given(t);
    if (th && th->where == W_NORMAL && t->stack_class == FAIR__CLASS_DEFAULT
        && GET(th->cached) < FAIR__CACHED) {
        t->pool_next = th->cache;
        th->cache = t;
        ADD(th->cached, 1);
        return;
    }
    if (shelve(t, true))
        return;
    if (!put_away_elsewhere(t))
        put_away(t);
}

struct fair__stack_counts fair__stack_counts(void)
{
    struct fair__stack_counts c = {
        .mapped = GET(mapped), .limit = limit,
        .guard = guard_installs ? "madvise" : "mprotect",
        .handler = fair__overflow_handler()
    };

    fair__mutex_lock(&lock);
    for (unsigned i = 0; i < FAIR__CLASSES; i++)
        c.pooled += pools[i].warm_count + pools[i].cold_count;
    fair__mutex_unlock(&lock);
    for (struct fair__thread *th = fair__threads(); th; th = th->next)
        c.pooled += GET(th->cached);
    return c;
}

static uint64_t read_number(const char *path, uint64_t otherwise)
{
    FILE *f = fopen(path, "re");
    unsigned long n;

    if (!f)
        return otherwise;
    if (fscanf(f, "%lu", &n) != 1)
        n = otherwise;
    fclose(f);
    return n;
}

/* Does MADV_GUARD_INSTALL work here?  Emulators and sandboxes answer 0 to advice
 * they do not know, so it is tried: the kernel cannot read behind a guard. */
static bool guard_installs_on(void *map)
{
#ifdef __linux__
    int ends[2];
    bool works;

    if (madvise(map, FAIR__GUARD, MADV_GUARD_INSTALL) != 0
        || pipe2(ends, O_CLOEXEC) != 0)
        return false;
    works = write(ends[1], map, 1) < 0 && errno == EFAULT;
    close(ends[0]);
    close(ends[1]);
    return works;
#else
    (void)map;
    return false;
#endif
}

/* 0, or an errno.  Called once, when the runtime is loaded. */
int fair__stack_init(void)
{
    static bool done;           /* the library stays when the module goes */
    void *map;
    int error;

    if (done)
        return 0;
    page = (size_t)sysconf(_SC_PAGESIZE);
    map = mmap(NULL, FAIR__GUARD, PROT_READ | PROT_WRITE,
               MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (map == MAP_FAILED)
        return errno;
    guard_installs = guard_installs_on(map);
    munmap(map, FAIR__GUARD);
    limit = read_number("/proc/sys/vm/max_map_count", 65530)
        * (guard_installs ? 7 : 1) / 4;
    error = fair__overflow_init();
    done = !error;
    return error;
}
