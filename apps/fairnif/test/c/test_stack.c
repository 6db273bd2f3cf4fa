/*
 * test_stack.c - the stacks of tasks, and the switch between them and the
 * schedulers'.
 */
#define _GNU_SOURCE
#include <fenv.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

#define NEEDS_TASKS
#include "check.h"
#include "vm_int.h"

static void tick(fair_task *t)
{
    fair_tick(t, 1);
}

static __attribute__((noinline)) void check_alignment(void)
{
    _Alignas(16) volatile char local[16];

    local[0] = 1;
    CHECK_NUMBERS((uintptr_t)__builtin_frame_address(0) & 15, ==, 0);
    CHECK_NUMBERS((uintptr_t)local & 15, ==, 0);
#if defined(__x86_64__)
    __asm__ volatile("movaps %%xmm0, %0" : "=m"(local));
#endif
}

/* The ABI's promise at the entry of a function, here of the body itself. */
static ERL_NIF_TERM aligned(fair_task *t)
{
    CHECK_NUMBERS((uintptr_t)__builtin_frame_address(0) & 15, ==, 0);
    check_alignment();
    fair_tick(t, 1);
    check_alignment();
    fair_move(t, FAIR_DIRTY_CPU);
    check_alignment();
    return enif_make_atom(fair_env(t), "ok");
}

/* Marks in all callee-saved registers before the pause, other ones each
 * time; the VM does the same on its side. */
static ERL_NIF_TERM registers(fair_task *t)
{
    for (uint64_t i = 0; i < 20; i++) {
        uint64_t result, lost = vm__call_marked((void *)tick, (uint64_t)t, 0,
                                                0, &result, 0x100000 * i);

        CHECK_NUMBERS(lost, ==, 0);
    }
    return enif_make_atom(fair_env(t), "ok");
}

/* rounding(Restore): its own floating point mode, from pause to pause */
static ERL_NIF_TERM rounding(fair_task *t)
{
    static const int round[] = {FE_UPWARD, FE_DOWNWARD, FE_TOWARDZERO,
                                FE_TONEAREST};
    volatile double one = 1, three = 3, low = 0;

    for (int i = 0; i < 12; i++) {
        fesetround(round[i % 4]);
#if defined(__x86_64__)
        {
            uint16_t fcw;       /* the x87's precision as well */

            __asm__ volatile("fnstcw %0" : "=m"(fcw));
            fcw = (uint16_t)((fcw & ~0x0300) | (i % 2 ? 0x0200 : 0x0300));
            __asm__ volatile("fldcw %0" : : "m"(fcw));
        }
#endif
        for (int j = 0; j < 3; j++) {
            uint64_t control = vm__fp_control();

            fair_tick(t, 1);
            CHECK(vm__fp_control() == control);
            CHECK_NUMBERS(fegetround(), ==, round[i % 4]);
        }
        if (i % 4 == 1)
            low = one / three;
        if (i % 4 == 0 && i > 4)
            CHECK(one / three > low);
        if (i == 10 && fair_argc(t) == 1)
            fair_move(t, FAIR_DIRTY_IO);
    }
    fesetenv(FE_DFL_ENV);
    return enif_make_atom(fair_env(t), "ok");
}

static char *deepest, *deepest_of[24];  /* pages of stacks */

static __attribute__((noinline)) unsigned burrow(fair_task *t, unsigned depth)
{
    volatile unsigned char frame[32 * 1024];
    unsigned sum = 1;

    for (size_t i = 0; i < sizeof frame; i += 512)
        frame[i] = (unsigned char)depth;
    deepest = (char *)((uintptr_t)frame & ~(uintptr_t)4095);
    if (depth > 1)
        sum += burrow(t, depth - 1);
    else if (t)
        fair_tick(t, 1);
    for (size_t i = 0; i < sizeof frame; i += 512)
        if (frame[i] != (unsigned char)depth)
            return 1000000;
    return sum;
}

/* digs(N): N frames of 32 KiB, and a pause at the bottom */
static ERL_NIF_TERM digs(fair_task *t)
{
    unsigned depth;

    if (!fair_get_uint(t, fair_arg(t, 0), &depth))
        return fair_badarg(t);
    depth = burrow(t, depth);   /* pauses: so before fair_env */
    return enif_make_uint(fair_env(t), depth);
}

static void burrow_away(void *depth)
{
    *(unsigned *)depth = burrow(NULL, *(unsigned *)depth);
}

static ERL_NIF_TERM calls(fair_task *t, enum fair_mode where)
{
    unsigned depth;

    if (!fair_get_uint(t, fair_arg(t, 0), &depth))
        return fair_badarg(t);
    fair_offload(t, where, 1, burrow_away, &depth);
    return enif_make_uint(fair_env(t), depth);
}

/* calls_WHERE(N): fair_offload of a function that digs; wide_WHERE: of a body
 * with 16 MiB */
#define CALLS(NAME, MODE)                                                   \
    static ERL_NIF_TERM calls_##NAME(fair_task *t) { return calls(t, MODE); } \
    static const fair_options wide_##NAME = {                               \
        .body = calls_##NAME, .stack_size = 16 << 20                        \
    };
CALLS(normal, FAIR_NORMAL)
CALLS(dirty_cpu, FAIR_DIRTY_CPU)
CALLS(dirty_io, FAIR_DIRTY_IO)
CALLS(thread, FAIR_THREADED)
#define CALLS_NIFS(NAME)                                                    \
    FAIR_NIF("calls_" #NAME, 1, calls_##NAME, FAIR_NORMAL | FAIR_MAY_WAIT),  \
    FAIR_NIF_OPTIONS("wide_" #NAME, 1, &wide_##NAME,                        \
                     FAIR_NORMAL | FAIR_MAY_WAIT)

static ERL_NIF_TERM waits(fair_task *t)
{
    fair_offload(t, FAIR_THREADED, 1, gate_pass, NULL);
    note("end");                /* of one that unwinds */
    return enif_make_atom(fair_env(t), "ok");
}

static const fair_options wide_waits = {.body = waits, .stack_size = 16 << 20};

static ERL_NIF_TERM defers(fair_task *t)
{
    unsigned *depth = fair_alloc(t, sizeof *depth);

    if (!depth || !fair_get_uint(t, fair_arg(t, 0), depth))
        return fair_badarg(t);
    fair_defer(t, burrow_away, depth);
    return enif_make_atom(fair_env(t), "ok");
}

static const fair_options small = {.body = aligned, .stack_size = 16 * 1024};
static const fair_options medium = {.body = digs, .stack_size = 1000000};
static const fair_options large = {.body = digs, .stack_size = 64 << 20};
static const fair_options half = {.body = digs, .stack_size = 32 << 20};

enum { MANY = 300 };
static char *frames[MANY];      /* where on their stacks pages were used */

/* sprawls(N): uses 80 KiB, says where, waits */
static ERL_NIF_TERM sprawls(fair_task *t)
{
    volatile char frame[80 * 1024];
    unsigned n;

    if (!fair_get_uint(t, fair_arg(t, 0), &n))
        return fair_badarg(t);
    for (size_t i = 0; i < sizeof frame; i += 1024)
        frame[i] = 1;
    frames[n] = (char *)frame;
    fair_tick(t, 1);
    return enif_make_int(fair_env(t), frame[1024]);
}

static ErlNifFunc nifs[] = {
    ALL_MODES("aligned", 0, aligned),
    ALL_MODES("registers", 0, registers),
    ALL_MODES("rounding", 0, rounding),
    ALL_MODES("rounding", 1, rounding),
    ALL_MODES("digs", 1, digs),
    FAIR_NIF_OPTIONS("small", 0, &small, FAIR_NORMAL),
    FAIR_NIF_OPTIONS("medium", 1, &medium, FAIR_NORMAL),
    FAIR_NIF_OPTIONS("large", 1, &large, FAIR_NORMAL),
    FAIR_NIF_OPTIONS("half", 1, &half, FAIR_NORMAL),
    FAIR_NIF("sprawls", 1, sprawls, FAIR_NORMAL),
    CALLS_NIFS(normal), CALLS_NIFS(dirty_cpu), CALLS_NIFS(dirty_io),
    CALLS_NIFS(thread),
    FAIR_NIF("defers", 1, defers, FAIR_NORMAL),
    FAIR_NIF_OPTIONS("waits", 0, &wide_waits, FAIR_NORMAL | FAIR_MAY_WAIT),
    FAIR_NIF_OPTIONS("waits_unwinding", 0, &wide_waits,
                     FAIR_NORMAL | FAIR_MAY_WAIT | FAIR_CLEANUP),
};
FAIR_NIF_INIT(test_stack, nifs, NULL, NULL, NULL)

TEST(alignment, "a body begins and continues with an aligned stack")
{
    CHECK_EVERYWHERE("aligned", "", "ok");
    CHECK_CALL("small", "", "ok");
}

TEST(kept_registers, "callee-saved registers survive pauses, on both sides")
{
    CHECK_EVERYWHERE("registers", "", "ok");
}

TEST(kept_rounding, "a body's floating point mode survives pauses, and does "
     "not leak to the VM")
{
    vm_proc *p;

    CHECK_EVERYWHERE("rounding", "", "ok");
    CHECK_EVERYWHERE("rounding", "x", "ok");
    node_set("pause_every_tick", 1);
    p = spawn_call("rounding_yielding", "");
    vm_step(p);                         /* vm_slice checks */
    vm_free(p);
}

TEST(sizes, "a stack is as large as its function wants")
{
    node_set("pause_every_tick", 1);
    CHECK_CALL("digs_yielding", "3", "3");
    CHECK_CALL("medium", "28", "28");
    CHECK_CALL("large", "2000", "2000");
    CHECK_CALL("digs_auto", "3", "3");
}

TEST(reuse, "stacks are used again, and few are kept idle")
{
    vm_proc *p[MANY];
    long mapped, resident = 0;
    unsigned char in_core;

    for (int i = 0; i < 500; i++)
        CHECK_CALL(in_mode("aligned", &modes[i % 6]), "", "ok");
    mapped = node_stacks_mapped();
    CHECK_NUMBERS(mapped, <=, 14);      /* two a thread */
    for (int i = 0; i < 500; i++)
        CHECK_CALL(in_mode("aligned", &modes[i % 6]), "", "ok");
    CHECK_NUMBERS(node_stacks_mapped(), <=, mapped + 4);

    node_set("pause_every_tick", 1);
    for (int i = 0; i < MANY; i++) {
        char args[16];

        sprintf(args, "%d", i);
        p[i] = spawn_call("sprawls", args);
        vm_step(p[i]);
    }
    CHECK_NUMBERS(node_stacks(), ==, MANY);
    for (int i = 0; i < MANY; i++) {
        if (i % 2)
            CHECK_TEXT((vm_finish(p[i]), outcome(p[i])), "1");
        vm_free(p[i]);
    }
    CHECK_NUMBERS(node_stacks_mapped(), <=, 64 + 7 * 4);
    /* Each thread's own few are kept as they are; the others' pages were
     * given back. */
    for (int i = 0; i < MANY; i++) {
        char *page = (char *)((uintptr_t)(frames[i] + 20000)
                              & ~(uintptr_t)4095);

        if (mincore(page, 4096, &in_core) == 0 && in_core & 1)
            resident++;
    }
    CHECK_NUMBERS(resident, <=, 7 * 4);
}

TEST(warm_bytes, "idle stacks that are not trimmed are bounded by bytes, of all "
     "sizes together")
{
    enum { SIZES = 2, EACH = 12 };
    static const char *const names[SIZES] = {"large", "half"};
    vm_proc *p[SIZES * EACH];
    unsigned char in_core;
    long resident = 0;

    node_set("pause_every_tick", 1);
    for (int i = 0; i < SIZES * EACH; i++) {
        p[i] = spawn_call(names[i % SIZES], "60");
        vm_step(p[i]);
        deepest_of[i] = deepest;
    }
    for (int i = 0; i < SIZES * EACH; i++) {
        CHECK_TEXT((vm_finish(p[i]), outcome(p[i])), "60");
        vm_free(p[i]);
    }
    EVENTUALLY(node_stacks() == 0);     /* all that are too many are trimmed */
    for (int i = 0; i < SIZES * EACH; i++)
        if (mincore(deepest_of[i], 1, &in_core) == 0 && in_core & 1)
            resident++;
    CHECK_NUMBERS(resident, <=, 2);     /* 2 of 32 MiB, or 1 of 64 MiB */
    for (int i = 0; i < EACH; i++)
        CHECK_CALL("large", "60", "60");
}

/* -- overflow ------------------------------------------------------------ */

#define OWN(NAME, SIZE)                                                     \
    NAME "/1: its C stack of " SIZE " bytes is too small"
#define GIVEN(NAME, WORDS) "a function that test_stack:" #NAME \
    "/1 passed to " WORDS

/* By frames of 32 KiB. */
#define OVERFLOWS(TEST_NAME, NIF, FRAMES, WORDS)                            \
    TEST_DIES(overflow_##TEST_NAME, "a stack that overflows is named: "     \
              #TEST_NAME, "fairnif: stack overflow in " WORDS)              \
    {                                                                       \
        finished(spawn_await(NIF, FRAMES));                                 \
    }
OVERFLOWS(first_slice, "digs_yielding", "100",
          OWN("test_stack:digs_yielding", "131072"))
OVERFLOWS(dirty, "digs_dirty_io", "100",
          OWN("test_stack:digs_dirty_io", "131072"))
OVERFLOWS(sized, "medium", "100", OWN("test_stack:medium", "1048576"))

/* The stand-in's schedulers have stacks as large as the VM's; larger ones where a
 * tool wants it. */
#define CALLED(NAME, FRAMES, WORDS)                                         \
    OVERFLOWS(NAME, #NAME, FRAMES, GIVEN(NAME, WORDS))
CALLED(calls_normal, "100", "fair_offload, on a normal scheduler's ")
CALLED(calls_dirty_cpu, "100", "fair_offload, on a dirty CPU scheduler's ")
CALLED(calls_dirty_io, "100", "fair_offload, on a dirty I/O scheduler's ")
CALLED(calls_thread, "600", "fair_offload, on a pool thread's 8192 KiB: ")
CALLED(defers, "100", "fair_defer, on a normal scheduler's ")
CALLED(wide_dirty_cpu, "600", "fair_offload: its C stack of 16777216 bytes")
CALLED(wide_thread, "600", "fair_offload: its C stack of 16777216 bytes")

/* MADV_GUARD_INSTALL is not there. */
static void old_kernel(void)
{
    vm_fail(VM_F_MADVISE, 1, true);
}

TEST_WITH(overflow_later, "the same on another thread, after pauses, where guards "
          "are made with mprotect", "fairnif: stack overflow in "
          OWN("test_stack:digs_yielding", "131072"), old_kernel)
{
    node_set("pause_every_tick", 1);
    for (int i = 0; i < 5; i++)
        CHECK_CALL("digs_yielding", "3", "3");
    finished(spawn_call("digs_yielding", "5"));
}

TEST(never_less, "a function that is passed has as much stack as its author "
     "asked for, wherever it runs")
{
    static const char *const names[] = {
        "wide_normal", "wide_dirty_cpu", "wide_dirty_io", "wide_thread"
    };

    for (unsigned i = 0; i < 2 * sizeof names / sizeof *names; i++)
        CHECK_TEXT(finished(spawn_await(names[i / 2], "300")), "300");
}

TEST(never_less_killed, "on a thread of the pool too, when its caller dies "
     "meanwhile")
{
    for (int unwinds = 0; unwinds < 2; unwinds++) {
        vm_proc *p = spawn_await(unwinds ? "waits_unwinding" : "waits", "");

        gate_shut();
        while (gate_waiting() == 0)
            vm_run(p, 1);
        vm_free(p);
        CHECK_NUMBERS(node_stacks(), ==, 1);
        gate_open();
        EVENTUALLY(node_stacks() == 0);
        CHECK_TEXT(notes(), unwinds ? "end" : "");
    }
}

/* Where each guard costs a mapping, there is an end to them that comes before
 * the VM's own mmap fails. */
TEST_WITH(limit, "with mprotect the number of stacks is bounded", NULL,
          old_kernel)
{
    enum { MOST = 40000 };
    static vm_proc *p[MOST];
    int n = 0, held;

    vm_fail(0, 0, false);
    vm_options.gc_every = 0;
    node_set("pause_every_tick", 1);
    do {
        p[n] = spawn_call("aligned_yielding", "");
    } while (vm_step(p[n]) == VM_READY && ++n < MOST);
    CHECK_TEXT(outcome(p[n]), "error:system_limit");
    CHECK_NUMBERS(n, >=, 8000);
    CHECK_NUMBERS(n, <=, 32754);
    held = n + 1;
    CHECK_TEXT(finished(p[0]), "ok");
    CHECK_CALL("aligned_yielding", "", "ok");
    for (int i = 1; i < held; i++)
        vm_free(p[i]);
    CHECK_NUMBERS(node_stacks_mapped(), <=, 64 + 7 * 4);
}

/* AddressSanitizer is that, and says so. */
#if defined(__SANITIZE_ADDRESS__)
#  define PASSED_ON "AddressSanitizer: SEGV"
#else
#  define PASSED_ON ""
#endif

TEST_DIES(other_fault, "another fault is passed on to who was there before",
          PASSED_ON)
{
    static volatile uintptr_t nowhere = 8;

    *(volatile char *)nowhere = 1;
}
