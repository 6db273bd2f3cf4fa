/*
 * test_edges.c - stacks that are deep or full, and libraries that go while they
 * are looked at.
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "check.h"
#include "thread.h"

static struct watch__snapshot snapshot;
static struct watch__frame frames[WATCH__FRAMES];

static unsigned look(struct watch__maps *maps, struct runner *r,
                     enum watch__end *end)
{
    struct watch__regs last;

    CHECK_NUMBERS(take(&snapshot, r), ==, TAKEN);
    return watch__unwind(maps, &snapshot, frames, WATCH__FRAMES, end, &last);
}

TEST(deep, "calls deeper than the frames that are told end there, and a stack "
     "larger than what is copied ends with the copy")
{
    static const struct { int deeper, size; enum watch__end end; } cases[] = {
        {10, 0, END_WHOLE}, {60, 0, END_FRAMES}, {10, 40000, END_COPIED},
        {0, 100000, END_COPIED}
    };
    struct watch__maps *maps = watch__maps_new();

    CHECK_NUMBERS(watch__stack_start(true), ==, 0);
    for (unsigned i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct runner r = {
            .chain = {.deeper = cases[i].deeper, .alloca_size = cases[i].size}
        };
        unsigned n, inner = 0;
        enum watch__end end;

        runner_start(&r, "chain_nofp.so");
        n = look(maps, &r, &end);
        CHECK_NUMBERS(end, ==, cases[i].end);
        for (unsigned k = 0; k < n; k++) {
            watch__name(maps, &frames[k]);
            inner += !strcmp(frames[k].symbol, "chain_inner");
            CHECK(k == 0 || frames[k].cfa == 0
                  || frames[k].cfa >= frames[k - 1].cfa);
        }
        CHECK_NUMBERS(inner, >=, cases[i].end == END_FRAMES
                      ? WATCH__FRAMES - 2 : cases[i].deeper + 1);
        runner_stop(&r);
    }
    CHECK(watch__stack_stop());
    watch__maps_free(maps);
}

/* -- a stack that is nearly full ------------------------------------------ */

struct full {
    char *stack;
    size_t size;
    int tid;
    bool there, leave;
};

/* Down to its last bytes, as far as the handler's own stack allows. */
static __attribute__((noinline)) void fill(struct full *f)
{
    volatile char some[64];

    some[0] = 1;
    if ((char *)&some[0] - f->stack > 512) {
        fill(f);
        some[1] = 2;
        return;
    }
    __atomic_store_n(&f->there, true, __ATOMIC_RELEASE);
    while (!__atomic_load_n(&f->leave, __ATOMIC_ACQUIRE))
        some[2] = 3;
}

static void *full_main(void *arg)
{
    struct full *f = arg;
    static char alternate[256 * 1024];
    stack_t ss = {.ss_sp = alternate, .ss_size = sizeof alternate};

    sigaltstack(&ss, NULL);
    f->tid = (int)syscall(SYS_gettid);
    fill(f);
    ss.ss_flags = SS_DISABLE;
    sigaltstack(&ss, NULL);
    return NULL;
}

TEST(full, "a thread at the end of its stack is taken on its alternate one")
{
    enum { SIZE = 1 << 20, GUARD = 65536 };
    char *map = mmap(NULL, SIZE + GUARD, PROT_READ | PROT_WRITE,
                     MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    struct full f = {.stack = map + GUARD, .size = SIZE};
    struct runner r = {.chain = {.sleeps = false}};
    struct watch__maps *maps = watch__maps_new();
    enum watch__end end;
    pthread_attr_t attr;

    mprotect(map, GUARD, PROT_NONE);
    CHECK_NUMBERS(watch__stack_start(true), ==, 0);
    pthread_attr_init(&attr);
    pthread_attr_setstack(&attr, f.stack, f.size);
    CHECK_NUMBERS(pthread_create(&r.thread, &attr, full_main, &f), ==, 0);
    while (!__atomic_load_n(&f.there, __ATOMIC_ACQUIRE))
        sched_yield();
    r.tid = f.tid;
    CHECK_NUMBERS(look(maps, &r, &end), ==, WATCH__FRAMES);
    CHECK_NUMBERS(end, ==, END_FRAMES);
    CHECK(snapshot.regs.sp < (uintptr_t)f.stack + 1024);
    CHECK_NUMBERS(snapshot.size, ==, snapshot.regs.sp + WATCH__STACK
                                         - snapshot.from);
    __atomic_store_n(&f.leave, true, __ATOMIC_RELEASE);
    pthread_join(r.thread, NULL);
    CHECK(watch__stack_stop());
    watch__maps_free(maps);
}

/* -- libraries that go --------------------------------------------------- */

static bool enough;
static uint64_t place;          /* of the last one's functions */

/* The same addresses are one library's, another one's, and nobody's. */
static void *come_and_go(void *arg)
{
    static const char *const library[] = {
        "chain_nofp.so", "chain_fp.so", "chain_os.so", "chain_nifs.so"
    };

    (void)arg;
    for (unsigned i = 0; !__atomic_load_n(&enough, __ATOMIC_ACQUIRE); i++) {
        void *handle = dlopen(check_file(library[i % 4]), RTLD_NOW);

        __atomic_store_n(&place, (uintptr_t)dlsym(handle, "chain_outer")
                                 & -4096ul, __ATOMIC_RELEASE);
        usleep(i % 7 * 1000);
        dlclose(handle);
    }
    return NULL;
}

TEST(unloaded, "a library that is unmapped while its tables are read does no "
     "harm")
{
    struct runner r = {.chain = {.yields = true}};
    struct watch__maps *maps = watch__maps_new();
    uint64_t until = watch__now() + (uint64_t)(4e9 * check_storm());
    uint64_t latest = until + UINT64_C(20000000000);
    int there = 0, not_there = 0;
    pthread_t thread;
    uint64_t offset = 0;

    CHECK_NUMBERS(watch__stack_start(true), ==, 0);
    runner_start(&r, "chain_nofp.so");
    CHECK_NUMBERS(take(&snapshot, &r), ==, TAKEN);
    runner_stop(&r);
    pthread_create(&thread, NULL, come_and_go, NULL);
    /* Where others have the processors it takes longer to see it both ways. */
    while (watch__now() < until
           || (watch__now() < latest && (there <= 20 || not_there <= 20))) {
        struct watch__regs last;
        enum watch__end end;
        unsigned n;

        snapshot.regs.pc = __atomic_load_n(&place, __ATOMIC_ACQUIRE) + offset;
        offset = (offset + 37) % 4096;
        n = watch__unwind(maps, &snapshot, frames, WATCH__FRAMES, &end, &last);
        there += frames[0].library != NULL;
        not_there += frames[0].library == NULL;
        for (unsigned k = 0; k < n; k++)
            watch__name(maps, &frames[k]);
    }
    __atomic_store_n(&enough, true, __ATOMIC_RELEASE);
    pthread_join(thread, NULL);
    CHECK(watch__stack_stop());
    CHECK_NUMBERS(there, >, 20);
    CHECK_NUMBERS(not_there, >, 20);
    watch__maps_free(maps);
}
