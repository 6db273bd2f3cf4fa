/*
 * test_unwind.c - the frames of threads whose calls are known.
 */
#define _GNU_SOURCE
#include <sched.h>
#include <stdio.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "unwind/base.h"
#include "check.h"
#include "thread.h"

static struct watch__snapshot snapshot;
static struct watch__frame frames[WATCH__FRAMES];

static const char *const built[] = {
    "chain_fp.so", "chain_nofp.so", "chain_o0.so", "chain_os.so"
};
enum { BUILT = sizeof built / sizeof *built };

static void show(unsigned n, enum watch__end end)
{
    for (unsigned i = 0; i < n; i++)
        printf("  #%u %lx cfa %lx %s+%lx %s+%lx\n", i, (long)frames[i].pc,
               (long)frames[i].cfa,
               frames[i].library ? frames[i].library : "?",
               (long)frames[i].offset, frames[i].symbol,
               (long)frames[i].symbol_offset);
    printf("  end %d\n", end);
}

/* From the caller of wait_here on the frames are the ones that glibc's own
 * unwinder found: return addresses, one by one, from the outermost inward. */
static void check_like_glibc(const struct runner *r, unsigned n,
                             enum watch__end end, const char *library)
{
    enum { FRAMES_LEAST = 7 };  /* inner, middle, aligned, outer, ours, libc */
    int same = 0, depth = r->chain.depth;

    while (same < (int)n && same < depth
           && frames[n - 1 - same].pc
              == (uintptr_t)r->chain.calls[depth - 1 - same])
        same++;
    check_that(same >= FRAMES_LEAST + r->deeper && end == END_WHOLE, __FILE__,
               __LINE__, "%s: %d frames of %u and of glibc's %d are the same; "
               "end %d", library, same, n, depth, end);
    if (same < FRAMES_LEAST + r->deeper)
        show(n, end);
}

static void check_chain(struct runner *r, const char *library)
{
    struct watch__maps *maps;
    struct watch__regs last;
    enum watch__end end;
    unsigned n;

    runner_start(r, library);
    maps = watch__maps_new();
    CHECK_NUMBERS(take(&snapshot, r), ==, TAKEN);
    n = watch__unwind(maps, &snapshot, frames, WATCH__FRAMES, &end, &last);
    check_like_glibc(r, n, end, library);
    watch__maps_free(maps);
    runner_stop(r);
}

TEST(spinning, "a spinning thread's frames are those that glibc finds")
{
    CHECK_NUMBERS(watch__stack_start(true), ==, 0);
    for (int i = 0; i < BUILT; i++)
        for (int size = 0; size < 3000; size += 999) {
            struct runner r = {
                .chain = {.alloca_size = size, .yields = size % 2}
            };

            check_chain(&r, built[i]);
        }
    CHECK(watch__stack_stop());
}

TEST(sleeping, "a sleeping thread's frames are those that glibc finds, where "
     "it needs no register that is not known")
{
    if (check_emulated())
        return;
    CHECK_NUMBERS(watch__stack_start(true), ==, 0);
    for (int size = 0; size < 3000; size += 999) {
        struct runner r = {.chain = {.alloca_size = size, .sleeps = true}};

        check_chain(&r, "chain_nofp.so");
    }
    CHECK(watch__stack_stop());
}

#if defined(__x86_64__)
/* The frame of a function that pushed its frame pointer, subtracted 16 bytes
 * and was called by these bytes: is it found? */
static bool finds_base(const unsigned char *call, size_t size)
{
    static const unsigned char function[32] = {
        0x55, 0x48, 0x89, 0xe5, 0x48, 0x83, 0xec, 0x10
    };
    struct watch__row row = {
        .start = (uintptr_t)function,
        .cfa = {.kind = RULE_OFFSET, .base = 6, .n = 16}
    };
    unsigned char caller[32] = {0};
    uint64_t words[4] = {0}, base = 0;

    row.reg[6] = (struct watch__rule){.kind = RULE_OFFSET, .n = -16};
    memcpy(caller + 8, call, size);
    words[3] = (uintptr_t)(caller + 8 + size);
    snapshot.from = 0x1000;
    snapshot.size = sizeof words;
    memcpy(snapshot.stack, words, sizeof words);
    return watch__frame_base(&snapshot, &row, 0x1000, row.start + 20, &base)
        && base == 0x1010;
}

TEST(called_through, "whatever call leads through a register or memory counts as one, "
     "with its frame pointer behind it")
{
    static const struct { unsigned char code[8]; unsigned size; bool is; } c[] = {
        {{0xff, 0xd0}, 2, true},                        /* *%rax */
        {{0x41, 0xff, 0xd4}, 3, true},                  /* *%r12 */
        {{0xff, 0x13}, 2, true},                        /* *(%rbx) */
        {{0xff, 0x50, 0x10}, 3, true},                  /* *0x10(%rax) */
        {{0xff, 0x93, 0x18, 1, 0, 0}, 6, true},         /* *0x118(%rbx) */
        {{0xff, 0x14, 0xc8}, 3, true},                  /* *(%rax,%rcx,8) */
        {{0xff, 0x14, 0xcd, 0, 0x10, 0, 0}, 7, true},   /* *0x1000(,%rcx,8) */
        {{0x41, 0xff, 0x54, 0x24, 0x28}, 5, true},      /* *0x28(%r12) */
        {{0x41, 0xff, 0x94, 0x24, 0, 1, 0, 0}, 8, true},    /* *0x100(%r12) */
        {{0xff, 0xe0}, 2, false},                       /* jmp *%rax */
        {{0xff, 0x54, 0x24}, 3, false},                 /* not all of it */
        {{0xff, 0x15, 0, 0, 0, 0}, 6, false},           /* another's slot */
        {{0xe8, 0, 0, 0, 0}, 5, false},                 /* of another */
        {{0x90, 0x90}, 2, false}
    };

    for (unsigned i = 0; i < sizeof c / sizeof *c; i++)
        check_that(finds_base(c[i].code, c[i].size) == c[i].is, __FILE__,
                   __LINE__, "call %u: %d", i, c[i].is);
}
#endif

TEST(sleeping_base, "a sleeping thread's frame pointer follows from the code, "
     "where the frame has a fixed size")
{
    static const char *const library[] = {"chain_fp.so", "chain_o0.so"};

    if (check_emulated())
        return;
    CHECK_NUMBERS(watch__stack_start(true), ==, 0);
    for (int i = 0; i < 2; i++)
        for (int deeper = 0; deeper < 20; deeper += 9) {
            struct runner r = {.chain = {.deeper = deeper, .sleeps = true}};

            check_chain(&r, library[i]);
        }
    CHECK(watch__stack_stop());
}

TEST(no_guess, "what does not look like a call of the function is not taken for "
     "its caller")
{
    struct runner r = {.chain = {.sleeps = true}};
    struct watch__maps *maps;
    struct watch__regs last;
    enum watch__end end;

    if (check_emulated())
        return;
    CHECK_NUMBERS(watch__stack_start(true), ==, 0);
    runner_start(&r, "chain_fp.so");
    maps = watch__maps_new();
    CHECK_NUMBERS(take(&snapshot, &r), ==, TAKEN);
    CHECK_NUMBERS(watch__unwind(maps, &snapshot, frames, WATCH__FRAMES, &end,
                                &last), >, 6);
    for (size_t at = 0; at + 8 <= snapshot.size; at += 8) {
        uint64_t word;

        memcpy(&word, snapshot.stack + at, sizeof word);
        word += word == frames[2].pc;
        memcpy(snapshot.stack + at, &word, sizeof word);
    }
    CHECK_NUMBERS(watch__unwind(maps, &snapshot, frames, WATCH__FRAMES, &end,
                                &last), ==, 2);
    CHECK_NUMBERS(end, ==, END_NO_REGISTER);
    runner_stop(&r);
    CHECK(watch__stack_stop());
    watch__maps_free(maps);
}

#if defined(__x86_64__)
struct flags {
    bool there, leave;
    int tid;
};

/* As compilers leave a function: what was saved is back, and the table says
 * that it lies where it was, which is now below the stack pointer. */
void leaving(struct flags *f);
__asm__(".text\n"
        ".type leaving, @function\n"
        "leaving:\n"
        "    .cfi_startproc\n"
        "    push %rbx\n"
        "    .cfi_adjust_cfa_offset 8\n"
        "    .cfi_offset rbx, -16\n"
        "    push %rbp\n"
        "    .cfi_adjust_cfa_offset 8\n"
        "    .cfi_offset rbp, -24\n"
        "    pop %rbp\n"
        "    .cfi_adjust_cfa_offset -8\n"
        "    pop %rbx\n"
        "    .cfi_adjust_cfa_offset -8\n"
        "    movb $1, (%rdi)\n"
        "1:  cmpb $0, 1(%rdi)\n"
        "    je 1b\n"
        "    ret\n"
        "    .cfi_endproc\n"
        ".size leaving, . - leaving\n");

static void *leave_main(void *arg)
{
    struct flags *f = arg;

    f->tid = (int)syscall(SYS_gettid);
    leaving(f);
    return f;
}

/* As OpenSSL's AES-GCM: the frame is in rax while one of its own is called. */
void keeping(struct flags *f);
__asm__(".text\n"
        ".type kept, @function\n"
        "kept:\n"
        "    .cfi_startproc\n"
        "    movb $1, (%rdi)\n"
        "1:  cmpb $0, 1(%rdi)\n"
        "    je 1b\n"
        "    ret\n"
        "    .cfi_endproc\n"
        ".size kept, . - kept\n"
        ".type keeping, @function\n"
        "keeping:\n"
        "    .cfi_startproc\n"
        "    lea (%rsp), %rax\n"
        "    .cfi_def_cfa_register rax\n"
        "    push %rbx\n"
        "    .cfi_offset rbx, -16\n"
        "    and $-128, %rsp\n"
        "    call kept\n"
        "    mov -8(%rax), %rbx\n"
        "    lea (%rax), %rsp\n"
        "    .cfi_def_cfa_register rsp\n"
        "    .cfi_restore rbx\n"
        "    ret\n"
        "    .cfi_endproc\n"
        ".size keeping, . - keeping\n");

static void *keep_main(void *arg)
{
    struct flags *f = arg;

    f->tid = (int)syscall(SYS_gettid);
    keeping(f);
    return f;
}

TEST(keeps, "a frame in a register that its calls need not keep is found; "
     "not where that leads to no call of the function")
{
    struct flags f = {.there = false};
    struct watch__maps *maps = watch__maps_new();
    struct runner r = {.tid = 0};
    struct watch__regs last;
    enum watch__end end;

    CHECK_NUMBERS(watch__stack_start(true), ==, 0);
    CHECK_NUMBERS(pthread_create(&r.thread, NULL, keep_main, &f), ==, 0);
    while (!__atomic_load_n(&f.there, __ATOMIC_ACQUIRE))
        sched_yield();
    r.tid = f.tid;
    CHECK_NUMBERS(take(&snapshot, &r), ==, TAKEN);
    CHECK_NUMBERS(watch__unwind(maps, &snapshot, frames, WATCH__FRAMES, &end,
                                &last), >=, 4);
    CHECK_NUMBERS(end, ==, END_WHOLE);
    CHECK_NUMBERS(frames[1].start, ==, (uintptr_t)keeping);
    CHECK_NUMBERS(frames[2].start, ==, (uintptr_t)keep_main);
    snapshot.regs.value[0] -= 8;
    CHECK_NUMBERS(watch__unwind(maps, &snapshot, frames, WATCH__FRAMES, &end,
                                &last), ==, 2);
    CHECK_NUMBERS(end, ==, END_NO_REGISTER);
    __atomic_store_n(&f.leave, true, __ATOMIC_RELEASE);
    pthread_join(r.thread, NULL);
    CHECK(watch__stack_stop());
    watch__maps_free(maps);
}

TEST(leaves, "a thread that leaves a function, its registers back already, "
     "has the same frames")
{
    struct flags f = {.there = false};
    struct watch__maps *maps = watch__maps_new();
    struct runner r = {.tid = 0};
    struct watch__regs last;
    enum watch__end end;
    unsigned n;

    CHECK_NUMBERS(watch__stack_start(true), ==, 0);
    CHECK_NUMBERS(pthread_create(&r.thread, NULL, leave_main, &f), ==, 0);
    while (!__atomic_load_n(&f.there, __ATOMIC_ACQUIRE))
        sched_yield();
    r.tid = f.tid;
    CHECK_NUMBERS(take(&snapshot, &r), ==, TAKEN);
    n = watch__unwind(maps, &snapshot, frames, WATCH__FRAMES, &end, &last);
    CHECK_NUMBERS(end, ==, END_WHOLE);
    CHECK_NUMBERS(n, >=, 3);            /* leaving, leave_main, libc's */
    CHECK_NUMBERS(frames[0].start, ==, (uintptr_t)leaving);
    CHECK_NUMBERS(frames[1].start, ==, (uintptr_t)leave_main);
    __atomic_store_n(&f.leave, true, __ATOMIC_RELEASE);
    pthread_join(r.thread, NULL);
    CHECK(watch__stack_stop());
    watch__maps_free(maps);
}
#endif
