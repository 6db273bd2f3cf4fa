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

#include <string.h>

#include "read/common.h"

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
    uint64_t left;              /* bit: what functions called since may have
                                   changed, and need not keep */
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
    char driver[64];            /* the port driver that it is a callback of; "" */
    const char *callback;       /* which one, of that or of the library (`load',
                                   `unload', `upgrade'); NULL: it is none */
};

/* Why the frames end. */
enum watch__end {
    END_WHOLE,
    END_JIT,                    /* at the emulator's machine code: Erlang */
    END_MACHINE,                /* at machine code that a library made */
    END_NO_TABLE, END_NO_REGISTER, END_COPIED, END_FRAMES
};

/* What one thread is at. */
struct watch__stack {
    struct watch__snapshot snapshot;
    enum watch__taken taken;
    struct watch__frame frames[WATCH__FRAMES];
    unsigned count;             /* 0: none, and `taken` says why */
    enum watch__end end;
    struct watch__regs last;    /* as watch__unwind leaves them */
};

/* A word of the copied stack. */
static inline bool watch__stack_word(const struct watch__snapshot *s,
                                     uint64_t address, uint64_t *word)
{
    uint64_t at = address - s->from;

    if (address < s->from || s->size < sizeof *word
        || at > s->size - sizeof *word)
        return false;
    memcpy(word, s->stack + at, sizeof *word);
    return true;
}

#endif
