/*
 * stack.h - where another thread of this VM is: its registers and stack, taken
 * while it runs or sleeps, and the frames they come to.
 *
 * Used by the watch thread only, one snapshot at a time.  What must never be
 * done here: follow a pointer into memory that another thread may unmap (all
 * reading goes through watch__read), take a lock that a blocked thread may
 * hold (the loader's, malloc's of the VM), or send a signal to a thread that
 * does not run.
 */
#ifndef WATCH_STACK_H
#define WATCH_STACK_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define WATCH_HIDDEN __attribute__((visibility("hidden")))

#if defined(__linux__) && (defined(__x86_64__) || defined(__aarch64__))
#  define WATCH__UNWINDS 1
#else
#  define WATCH__UNWINDS 0
#endif

enum {
    WATCH__REGS = 33,           /* DWARF numbers of the processor, and its pc */
    WATCH__STACK = 32 * 1024,   /* bytes of stack that are copied, and below */
#if defined(__x86_64__)
    WATCH__RED_ZONE = 128,      /* the stack pointer what is the function's */
#else
    WATCH__RED_ZONE = 0,
#endif
    WATCH__FRAMES = 48,
    WATCH__NAME = 512           /* bytes of a symbol: C++'s are long */
};

struct watch__regs {
    uint64_t value[WATCH__REGS];
    uint64_t known;             /* bit: value[] is what the thread has */
    uint64_t pc, sp;
};

struct watch__snapshot {
    int tid;
    bool slept;                 /* read through /proc: pc and sp only */
    long syscall;               /* that it slept in; -1: none, or unknown */
    struct watch__regs regs;
    uint64_t from;              /* where the copy begins: in the red zone, which
                                   nobody else writes to.  A register that is
                                   back already is there for the table */
    size_t size;                /* bytes of stack, from there upward */
    unsigned char stack[WATCH__RED_ZONE + WATCH__STACK];
};

enum watch__taken {
    TAKEN,
    TAKEN_GONE,                 /* no such thread any more */
    TAKEN_BUSY,                 /* it ran when asleep was asked for, or the
                                   other way round; ask again */
    TAKEN_LATE,                 /* the signal was not handled in time */
    TAKEN_OFF,                  /* signals are switched off */
    TAKEN_DENIED                /* the system does not let us */
};

enum watch__in { IN_UNKNOWN, IN_EMULATOR, IN_JIT, IN_LIBC, IN_WATCH, IN_FAIRNIF,
                 IN_LIBRARY };
enum watch__named { NAMED_NOT, NAMED_NIF_TABLE, NAMED_SYMTAB, NAMED_DYNSYM };

struct watch__frame {
    uint64_t pc;
    bool exact;                 /* pc is where it is; else it is a return
                                   address, and the call is just before */
    uint64_t cfa;               /* tells one call of a function from the next */
    uint64_t start;             /* of the function, as its unwind table says;
                                   0: it has none */
    enum watch__in in;
    const char *library;        /* path, as mapped; lives as long as the maps
                                   that it was found in; NULL: none */
    uint64_t offset;            /* in the library's file, as its symbols count */
    enum watch__named named;
    char symbol[WATCH__NAME];   /* that covers pc; "" */
    uint64_t symbol_offset, symbol_size;
    char module[64];            /* NAMED_NIF_TABLE: the Erlang function; also
                                   the module alone where the library's entry
                                   is found; "" */
    char function[64];
    unsigned arity;
};

/* Why the frames end. */
enum watch__end {
    END_WHOLE,
    END_JIT,                    /* at the emulator's machine code: Erlang */
    END_MACHINE,                /* at machine code that a library made */
    END_NO_TABLE, END_NO_REGISTER, END_COPIED, END_FRAMES
};

/* What is mapped: read from /proc/self/maps, kept, read again when an address
 * is in none of it. */
struct watch__maps;

/* Installs the handler where `signals`, for a real-time signal that nobody
 * uses; 0 or an errno (EBUSY: all are used; ENOTSUP: not on
 * this processor).  watch__stack_stop waits, up to
 * two seconds, until no thread has a signal of ours pending or is in the
 * handler, and restores what was there before.  False: one could not be
 * accounted for; then the signal stays ignored, and this library must never be
 * unmapped. */
WATCH_HIDDEN int watch__stack_start(bool signals);
WATCH_HIDDEN bool watch__stack_stop(void);

/* Waits at most `wait_ns` for the thread to copy itself. */
WATCH_HIDDEN enum watch__taken watch__take_running(struct watch__snapshot *s,
                                                   int tid, uint64_t wait_ns);
/* After that came to TAKEN_LATE: what the thread copied since; how long ago,
 * nobody knows.  Lost where another thread was asked at the time; else to be
 * called again. */
WATCH_HIDDEN enum watch__taken watch__take_late(struct watch__snapshot *s,
                                                int tid);
WATCH_HIDDEN enum watch__taken watch__take_sleeping(struct watch__snapshot *s,
                                                    int tid);

WATCH_HIDDEN struct watch__maps *watch__maps_new(void);
WATCH_HIDDEN void watch__maps_free(struct watch__maps *maps);
/* Innermost first; answers how many. */
WATCH_HIDDEN unsigned watch__unwind(struct watch__maps *maps,
                                    const struct watch__snapshot *s,
                                    struct watch__frame frames[],
                                    unsigned max, enum watch__end *end,
                                    struct watch__regs *last);
/* Fills in the names: dearer than unwinding, for frames that are reported. */
WATCH_HIDDEN void watch__name(struct watch__maps *maps,
                              struct watch__frame *frame);

/* The term of the process that the emulator runs (its c_p), where the frames
 * end in JIT code (END_JIT; `last` as watch__unwind gave it): one word that
 * looks like a local pid.  Else 0.  Whether such a process lives is the
 * caller's to ask.  docs/internals/watch-stacks.md: in which releases. */
WATCH_HIDDEN uint64_t watch__process_of(const struct watch__regs *last);
/* What the emulator keeps in registers while it calls C: its process, the
 * reductions that are left and the top of the heap.  Two calls seldom agree in
 * all three.  0: the frames do not tell. */
WATCH_HIDDEN void watch__erlang_of(const struct watch__regs *last,
                                   uint64_t *process, uint64_t *reductions,
                                   uint64_t *heap);
/* Copies memory of this process that may not be there; bytes copied.  No lock,
 * no allocation, errno is kept. */
WATCH_HIDDEN size_t watch__read(void *to, uint64_t from, size_t size);

/* Waits while *word is `value`, until then at most (CLOCK_MONOTONIC); may come
 * back early.  The other wakes one who waits; from a handler too. */
WATCH_HIDDEN void watch__futex_wait(_Atomic uint32_t *word, uint32_t value,
                                    uint64_t until);
WATCH_HIDDEN void watch__futex_wake(_Atomic uint32_t *word);

#endif
