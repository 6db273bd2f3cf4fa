/*
 * vm_word.h - words and terms of another BEAM, and the parts of vm_*.c that
 * use one another.
 */
#ifndef WATCH_VM_WORD_H
#define WATCH_VM_WORD_H

#include "outside/vm.h"
#include "read/mem.h"

static inline bool vm_is_pointer(uint64_t word)
{
    return word >= 4096 && word % 8 == 0 && word < (uint64_t)1 << 56;
}

static inline bool vm_word(uint64_t at, uint64_t *word)
{
    return vm_is_pointer(at) && watch__read_all(word, at, sizeof *word);
}

/* How many words of `most' are readable. */
static inline unsigned vm_words(uint64_t at, uint64_t *words, unsigned most)
{
    return vm_is_pointer(at)
        ? (unsigned)(watch__read(words, at, most * sizeof *words)
                     / sizeof *words)
        : 0;
}

static inline bool vm_is_pid(uint64_t term) { return (term & 0xf) == 0x3; }
static inline bool vm_is_atom(uint64_t term) { return (term & 0x3f) == 0xb; }

enum { WATCH__VM_RUNS = 1 << 15 | 1 << 21 | 1 << 29 | 1 << 30 };

/* Of the emulator's data, from its first word on: is a table here, of which
 * these and `rest' more are the words?  True: it is found. */
typedef bool watch__vm_look(struct watch__vm *vm, uint64_t at,
                            const uint64_t *words, unsigned rest);
WATCH_HIDDEN bool watch__vm_scan(struct watch__vm *vm, watch__vm_look *look);

WATCH_HIDDEN void watch__vm_take_data(struct watch__vm *vm,
                                      const struct watch__image *image);
WATCH_HIDDEN void watch__vm_leave_data(struct watch__vm *vm);

/* Each learns its part; what it says in why[] is not shown. */
WATCH_HIDDEN void watch__vm_learn_table(struct watch__vm *vm);
WATCH_HIDDEN void watch__vm_learn_atoms(struct watch__vm *vm);
WATCH_HIDDEN void watch__vm_learn_code(struct watch__vm *vm);
WATCH_HIDDEN void watch__vm_learn_schedulers(struct watch__vm *vm);
WATCH_HIDDEN void watch__vm_learn_queues(struct watch__vm *vm);
WATCH_HIDDEN void watch__vm_learn_processes(struct watch__vm *vm);

/* The process in the slot that a pid names; 0: it names none. */
WATCH_HIDDEN uint64_t watch__vm_slot(const struct watch__vm *vm, uint64_t pid);

/* Three words: module, function, arity. */
WATCH_HIDDEN bool watch__vm_is_mfa(const struct watch__vm *vm,
                                   const uint64_t words[3]);
/* The messages of a process of which these are the words. */
WATCH_HIDDEN bool watch__vm_messages(const struct watch__vm *vm,
                                     uint64_t address, const uint64_t *words,
                                     uint64_t *messages);

#endif
