/*
 * vm.h - where the Erlang state of another BEAM is, learned by reading its
 * memory: it may be hung, or a core.
 *
 * Structures differ by release and build, and of 29 the emulator exports no
 * names of its tables.  So neither is known beforehand: a table is looked for
 * in the emulator's writable data, and each offset in what is in the table, by
 * what must hold of it for every process (or atom, module, scheduler, queue)
 * that is there.  What cannot be shown to be right is left out, and `why' says
 * so.  docs/internals/watch-stacks.md: which proof each has.
 *
 * All memory is read through watch__read: the BEAM goes on running, a core may
 * be cut, a table may be broken.  Every loop here has a bound.
 */
#ifndef WATCH_VM_H
#define WATCH_VM_H

#include "unwind/image.h"

/* What is learned, and of a process what is known. */
enum watch__vm_field {
    VM_TABLE, VM_ATOMS, VM_CODE, VM_SCHEDULERS, VM_QUEUES, VM_NEXT,
    VM_NAME, VM_HEAP, VM_OLD_HEAP, VM_MESSAGES, VM_REDUCTIONS, VM_STATUS,
    VM_INITIAL, VM_CURRENT, VM_STACK, VM_FIELDS
};

enum watch__vm_type { VM_NORMAL, VM_DIRTY_CPU, VM_DIRTY_IO, VM_TYPES };

enum {
    WATCH__VM_SAMPLE = 256,     /* processes that are learned from */
    WATCH__VM_WORDS = 128,      /* of each */
    WATCH__VM_WAIT = 8,         /* processes of a queue that are told */
    WATCH__VM_MODULES = 1 << 16,
    WATCH__VM_LISTS = 3
};

struct watch__vm_range { uint64_t start, end; };

struct watch__vm {
    const char *why[VM_FIELDS]; /* it is not shown; NULL: it is */
    char release[8];            /* "": the emulator does not export it */
    struct watch__vm_data {     /* of the emulator, while it is learned from */
        uint64_t start;
        uint64_t *words;
        size_t size;
        unsigned count;
    } data[WATCH__SEGMENTS];
    unsigned looked;            /* places that seemed to be a table */

    /* The process table: slots, and which part of a pid says which slot */
    uint64_t table;
    uint32_t slots;
    bool wide;                  /* 26 on: 60 bits of data in a pid; before, 28,
                                   and the slot above them */
    /* Atoms */
    uint64_t atoms;             /* pages of 1024 pointers */
    unsigned atom_length;       /* byte in an atom */
    unsigned atom_name;         /* word */
    bool atom_binary;           /* its name is a literal binary: 28 on */

    /* Code */
    uint64_t code;              /* the first of its lists of modules */
    struct watch__vm_list {
        struct watch__vm_range *modules;        /* sorted */
        unsigned count;
    } list[WATCH__VM_LISTS];
    unsigned functions;         /* word in a module's header */
    unsigned mfa;               /* byte in a function's */

    /* Schedulers and their queues */
    uint64_t scheduler[VM_TYPES], scheduler_stride;
    unsigned schedulers[VM_TYPES];
    unsigned current;           /* word of a scheduler */
    uint64_t queue, queue_stride;
    unsigned queues;            /* normal ones; behind them dirty CPU and I/O */
    unsigned queue_scheduler;   /* word of a queue */
    unsigned queue_way;         /* of those that are known, how it lies */

    /* Word of a Process */
    unsigned name, heap, top, old_heap, messages, middle, incoming,
        reductions, initial, code_pointer, current_mfa, next;
    unsigned status_half;       /* half word */
    bool inner_length;          /* 26 on: the inner queue has a length alone */
};

struct watch__vm_function {
    uint64_t module, function;  /* atoms */
    unsigned arity;
    uint64_t offset;            /* in its code */
};

enum watch__vm_status { VM_EXITING, VM_COLLECTING, VM_SUSPENDED, VM_RUNNING,
                        VM_RUNNABLE, VM_WAITING };

struct watch__vm_process {
    uint64_t address, pid;
    uint32_t has;               /* 1 << a field: it is known of this one */
    uint64_t name;              /* an atom; 0: it has none */
    uint64_t heap, old_heap;    /* words, as process_info's heap_size counts */
    uint64_t messages;          /* not of a process that fetches with buffers */
    uint64_t reductions;        /* up to when it was scheduled out last */
    enum watch__vm_status status;
    bool runs;                  /* a normal scheduler runs it */
    enum watch__vm_type dirty;  /* what it waits for, to run on next */
    struct watch__vm_function initial;
    struct watch__vm_function current;  /* where it waits, or was scheduled out.
                                           Not of one that a normal scheduler
                                           runs: it is elsewhere by now */
    struct watch__vm_function called;   /* of one that does: the last NIF or BIF
                                           of C that it called, which may have
                                           returned; module 0: not known */
    uint64_t htop, stop, bottom;        /* between the latter two is its stack,
                                           where it was put last */
};

struct watch__vm_queue {
    enum watch__vm_type type;
    unsigned number;            /* of a normal one: its scheduler */
    unsigned length;            /* processes and ports that wait */
    uint64_t waiting[WATCH__VM_WAIT];   /* their pids, up to so many */
    unsigned count;
};

/* Learns.  NULL: no memory. */
WATCH_HIDDEN struct watch__vm *watch__vm_open(const struct watch__image *image);
WATCH_HIDDEN void watch__vm_close(struct watch__vm *vm);
/* Reads the lists of modules again. */
WATCH_HIDDEN bool watch__vm_again(struct watch__vm *vm);
/* A field's name, for `why'. */
WATCH_HIDDEN const char *watch__vm_field_name(enum watch__vm_field field);

/* The process that a scheduler (1..) runs; 0: none, or not known. */
WATCH_HIDDEN uint64_t watch__vm_running(const struct watch__vm *vm,
                                        enum watch__vm_type type,
                                        unsigned number);
/* Is at this address a process of the table?  What is known of it. */
WATCH_HIDDEN bool watch__vm_process(const struct watch__vm *vm,
                                    uint64_t address,
                                    struct watch__vm_process *process);
/* The processes of the table from *slot on; 0: no more. */
WATCH_HIDDEN uint64_t watch__vm_each(const struct watch__vm *vm,
                                     uint32_t *slot);
/* Where the Erlang stack of a process that a normal scheduler runs begins for
 * sure, from the registers where native frames end (watch__unwind's `last').
 * That is at most too high: innermost functions may be missing. */
WATCH_HIDDEN uint64_t watch__vm_sp(const struct watch__vm_process *process,
                                   const struct watch__regs *last);
/* The functions that a process's stack returns to, innermost first, after its
 * current one.  `sp': where it begins, of a process that a scheduler runs:
 * the thread's own stack pointer, if it runs Erlang code; watch__vm_sp, if it
 * runs native code.  0: as the process says, which is right where it does not
 * run, or is in the NIF that it called last. */
WATCH_HIDDEN unsigned watch__vm_stack(const struct watch__vm *vm,
                                      const struct watch__vm_process *process,
                                      uint64_t sp,
                                      struct watch__vm_function functions[],
                                      unsigned max);
WATCH_HIDDEN bool watch__vm_function_at(const struct watch__vm *vm, uint64_t pc,
                                        struct watch__vm_function *function);
/* All run queues; answers how many. */
WATCH_HIDDEN unsigned watch__vm_queues(const struct watch__vm *vm,
                                       struct watch__vm_queue queues[],
                                       unsigned max);

/* Its text, UTF-8, cut to size - 1 bytes. */
WATCH_HIDDEN bool watch__vm_atom(const struct watch__vm *vm, uint64_t atom,
                                 char *text, size_t size);
/* `<0.12.0>' */
WATCH_HIDDEN void watch__vm_pid(const struct watch__vm *vm, uint64_t pid,
                                char *text, size_t size);

#endif
