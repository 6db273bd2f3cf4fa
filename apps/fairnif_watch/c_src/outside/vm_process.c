/*
 * vm_process.c - what is known of another BEAM, and of a process in it.
 */
#include <string.h>

#include "outside/vm_word.h"
#include "unwind/symbol.h"

/* Bits of a process's status: the same from 25 to 29. */
enum { EXITING = 1 << 11, ACTIVE = 1 << 13, RUNNING = 1 << 15,
       SUSPENDED = 1 << 16, COLLECTS = 1 << 17, ACTIVE_SYS = 1 << 20,
       RUNNING_SYS = 1 << 21, DIRTY_CPU = 1 << 26, DIRTY_IO = 1 << 27,
       DIRTY_ACTIVE_SYS = 1 << 28,
       LIST_SIZE = WATCH__VM_MODULES * sizeof(struct watch__vm_range) };

static const char *const names[VM_FIELDS] = {
    [VM_TABLE] = "process table", [VM_ATOMS] = "atoms", [VM_CODE] = "code",
    [VM_SCHEDULERS] = "schedulers", [VM_QUEUES] = "run queues",
    [VM_NEXT] = "who waits in a run queue", [VM_NAME] = "registered name",
    [VM_HEAP] = "heap", [VM_OLD_HEAP] = "old heap", [VM_MESSAGES] = "messages",
    [VM_REDUCTIONS] = "reductions", [VM_STATUS] = "status",
    [VM_INITIAL] = "initial call", [VM_CURRENT] = "current function",
    [VM_STACK] = "Erlang stack"
};

const char *watch__vm_field_name(enum watch__vm_field field)
{
    return field < VM_FIELDS ? names[field] : "";
}

/* -- all of it ------------------------------------------------------------- */

struct watch__vm *watch__vm_open(const struct watch__image *image)
{
    struct watch__vm *vm = watch__pages(sizeof *vm);
    bool memory = vm != NULL;

    for (unsigned i = 0; memory && i < WATCH__VM_LISTS; i++) {
        vm->list[i].modules = watch__pages(LIST_SIZE);
        memory = vm->list[i].modules != NULL;
    }
    if (!memory) {
        watch__vm_close(vm);
        return NULL;
    }
    watch__read(vm->release, watch__symbol_named(image, "etp_otp_release"),
                sizeof vm->release - 1);
    watch__vm_take_data(vm, image);
    watch__vm_learn_table(vm);
    watch__vm_learn_atoms(vm);
    watch__vm_learn_code(vm);
    watch__vm_learn_schedulers(vm);
    watch__vm_learn_processes(vm);
    watch__vm_learn_queues(vm);
    watch__vm_leave_data(vm);
    return vm;
}

void watch__vm_close(struct watch__vm *vm)
{
    for (unsigned i = 0; vm && i < WATCH__VM_LISTS; i++)
        watch__pages_free(vm->list[i].modules, LIST_SIZE);
    watch__pages_free(vm, sizeof *vm);
}

/* -- a process ------------------------------------------------------------- */

static void take_status(struct watch__vm_process *p, uint32_t status)
{
    p->status = status & EXITING ? VM_EXITING
        : status & COLLECTS ? VM_COLLECTING
        : status & SUSPENDED ? VM_SUSPENDED
        : status & WATCH__VM_RUNS ? VM_RUNNING
        : status & (ACTIVE | ACTIVE_SYS | DIRTY_ACTIVE_SYS) ? VM_RUNNABLE
        : VM_WAITING;
    p->runs = status & (RUNNING | RUNNING_SYS);
    p->dirty = status & DIRTY_CPU ? VM_DIRTY_CPU
        : status & DIRTY_IO ? VM_DIRTY_IO : VM_NORMAL;
}

static bool take_name(struct watch__vm_process *p, uint64_t at)
{
    uint64_t record[5];

    if (at == 0)
        return true;
    if (vm_words(at, record, 5) < 5 || record[2] != p->address
        || !vm_is_atom(record[4]))
        return false;
    p->name = record[4];
    return true;
}

/* While it is collected a process has two heaps. */
static bool take_heap(const struct watch__vm *vm, struct watch__vm_process *p,
                      const uint64_t *words)
{
    uint64_t start = words[vm->heap];

    p->bottom = words[vm->heap + 1];
    p->htop = words[vm->top];
    p->stop = words[vm->top + 1];
    p->heap = words[vm->heap + 3];
    return start <= p->htop && p->htop <= p->stop && p->stop <= p->bottom
        && p->stop % 8 == 0 && (p->bottom - start) / 8 == p->heap;
}

static bool take_old_heap(const struct watch__vm *vm,
                          struct watch__vm_process *p, const uint64_t *words)
{
    uint64_t end = words[vm->old_heap + 1], start = words[vm->old_heap + 3];

    p->old_heap = (end - start) / 8;
    return (start == 0 && end == 0)
        || (vm_is_pointer(start) && end > start && end % 8 == 0);
}

static struct watch__vm_function named(const uint64_t mfa[3])
{
    return (struct watch__vm_function){
        .module = mfa[0], .function = mfa[1], .arity = (unsigned)mfa[2]
    };
}

/* The code where it was scheduled out; where that is none of a module, the
 * function that C was called as. */
static bool take_current(const struct watch__vm *vm,
                         struct watch__vm_process *p, const uint64_t *words)
{
    uint64_t mfa[3];
    struct watch__vm_function called = {0};

    if (vm->current_mfa && vm_words(words[vm->current_mfa], mfa, 3) == 3
        && watch__vm_is_mfa(vm, mfa))
        called = named(mfa);
    if (p->runs) {
        p->called = called;
        return false;
    }
    if (watch__vm_function_at(vm, words[vm->code_pointer], &p->current))
        return true;
    p->current = called;
    return called.module != 0;
}

static bool take_initial(const struct watch__vm *vm,
                         struct watch__vm_process *p, const uint64_t *words)
{
    const uint64_t *mfa = words + vm->initial;

    p->initial = named(mfa);
    return watch__vm_is_mfa(vm, mfa);
}

static bool take_field(const struct watch__vm *vm, struct watch__vm_process *p,
                 const uint64_t *words, enum watch__vm_field field)
{
    switch (field) {
    case VM_NAME: return take_name(p, words[vm->name]);
    case VM_HEAP: return take_heap(vm, p, words);
    case VM_OLD_HEAP: return take_old_heap(vm, p, words);
    case VM_MESSAGES: return watch__vm_messages(vm, p->address, words,
                                                &p->messages);
    case VM_REDUCTIONS: p->reductions = words[vm->reductions];
        return !(p->reductions >> 44);
    case VM_STATUS: take_status(p, (uint32_t)(words[vm->status_half / 2]
                                              >> vm->status_half % 2 * 32));
        return true;
    case VM_INITIAL: return take_initial(vm, p, words);
    case VM_CURRENT: return p->has >> VM_STATUS & 1
        && take_current(vm, p, words);
    case VM_STACK: return p->has >> VM_HEAP & 1;
    default: return false;
    }
}

bool watch__vm_process(const struct watch__vm *vm, uint64_t address,
                       struct watch__vm_process *p)
{
    uint64_t words[WATCH__VM_WORDS] = {0};

    *p = (struct watch__vm_process){.address = address};
    if (vm_words(address, words, WATCH__VM_WORDS) < 1
        || watch__vm_slot(vm, words[0]) != address)
        return false;
    p->pid = words[0];
    for (unsigned field = VM_NAME; field < VM_FIELDS; field++)
        if (!vm->why[field] && take_field(vm, p, words, field))
            p->has |= 1u << field;
    return true;
}

/* Where the JIT keeps the stack pointer while C runs.  On x86_64 it is either
 * there or in the process: what is above both is on the stack. */
#if defined(__x86_64__)
enum { STACK_REGISTER = 6 };    /* rbp */
#else
enum { STACK_REGISTER = 20 };
#endif

uint64_t watch__vm_sp(const struct watch__vm_process *p,
                      const struct watch__regs *last)
{
    uint64_t sp = last->value[STACK_REGISTER];

    if (!(p->has >> VM_HEAP & 1) || !(last->known >> STACK_REGISTER & 1)
        || sp < p->htop || sp >= p->bottom || sp % 8)
        return p->bottom;
    return STACK_REGISTER == 6 && sp < p->stop ? p->stop : sp;
}
