/*
 * erlang.c - which process each scheduler runs, and how many wait.
 *
 * A scheduler that sleeps idle keeps the last one's address: that is not told.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "outside/erlang.h"
#include "outside/vm.h"
#include "read/mem.h"
#include "unwind/unwind.h"

enum { QUEUES = 1100 };

static void mfa(const struct watch__vm *vm, const struct watch__vm_function *f,
                char to[WATCH__MFA])
{
    char module[256], function[256];

    if (watch__vm_atom(vm, f->module, module, sizeof module)
        && watch__vm_atom(vm, f->function, function, sizeof function))
        snprintf(to, WATCH__MFA, "%s:%s/%u", module, function, f->arity);
    else
        to[0] = '\0';
}

static bool has(const struct watch__vm_process *p, enum watch__vm_field field)
{
    return p->has >> field & 1;
}

/* Is the thread in the NIF that the process called last? */
static bool in_called(const struct watch__vm *vm, const struct watch__line *l,
                      const struct watch__vm_process *p)
{
    char module[256], function[256];

    return l->culprit && l->culprit->function[0] && p->called.module
        && watch__vm_atom(vm, p->called.module, module, sizeof module)
        && watch__vm_atom(vm, p->called.function, function, sizeof function)
        && !strcmp(module, l->culprit->module)
        && !strcmp(function, l->culprit->function)
        && p->called.arity == l->culprit->arity;
}

/* The stack: of a thread that runs Erlang code from its own stack pointer on. */
static void fill_stack(const struct watch__vm *vm, const struct watch__line *l,
                       const struct watch__vm_process *p,
                       struct watch__process_seen *to)
{
    struct watch__vm_function f, calls[WATCH__CALLS];
    uint64_t sp = 0;

    if (l->doing == DOING_ERLANG) {
        sp = l->regs.sp;
        if (watch__vm_function_at(vm, l->regs.pc, &f))
            mfa(vm, &f, to->current);
    } else if (p->runs && !in_called(vm, l, p)) {
        sp = watch__vm_sp(p, &l->last);
    } else if (p->runs) {
        mfa(vm, &p->called, to->current);
    } else if (has(p, VM_CURRENT)) {
        mfa(vm, &p->current, to->current);
    }
    to->count = watch__vm_stack(vm, p, sp, calls, WATCH__CALLS);
    for (unsigned i = 0; i < to->count; i++)
        mfa(vm, &calls[i], to->stack[i]);
}

static struct watch__process_seen *process_at(const struct watch__vm *vm,
                                              const struct watch__line *l,
                                              uint64_t address)
{
    static const char *const status[] = {
        [VM_EXITING] = "exiting", [VM_COLLECTING] = "garbage_collecting",
        [VM_SUSPENDED] = "suspended", [VM_RUNNING] = "running",
        [VM_RUNNABLE] = "runnable", [VM_WAITING] = "waiting"
    };
    struct watch__vm_process p;
    struct watch__process_seen *to;

    if (!address || !watch__vm_process(vm, address, &p)
        || !(to = calloc(1, sizeof *to)))
        return NULL;
    watch__vm_pid(vm, p.pid, to->pid, sizeof to->pid);
    if (has(&p, VM_NAME) && p.name)
        watch__vm_atom(vm, p.name, to->name, sizeof to->name);
    if (has(&p, VM_STATUS))
        snprintf(to->status, sizeof to->status, "%s", status[p.status]);
    if (has(&p, VM_INITIAL))
        mfa(vm, &p.initial, to->initial);
    to->messages = has(&p, VM_MESSAGES) ? (int64_t)p.messages : -1;
    to->heap = has(&p, VM_HEAP)
        ? (int64_t)(p.heap + (has(&p, VM_OLD_HEAP) ? p.old_heap : 0)) : -1;
    fill_stack(vm, l, &p, to);
    return to;
}

/* Does a word of the thread's stack say so? */
static bool on_stack(const struct watch__line *l, uint64_t word)
{
    static uint64_t words[WATCH__STACK / sizeof word];
    size_t n = watch__read(words, l->regs.sp, sizeof words) / sizeof word;

    for (size_t i = 0; i < n; i++)
        if (words[i] == word)
            return true;
    return false;
}

/* One of those that sleep idle may have it still. */
static struct watch__line *only_holder(struct watch__dump *d, uint64_t process)
{
    struct watch__line *found = NULL;

    for (unsigned i = 0; i < d->count; i++) {
        if (d->lines[i].doing == DOING_IDLE || d->lines[i].end == END_JIT
            || !on_stack(&d->lines[i], process))
            continue;
        if (found)
            return NULL;
        found = &d->lines[i];
    }
    return found;
}

/* In a core threads have no names: a scheduler is told by the process that it
 * runs, which the JIT has in a register, and which of all stacks one dirty
 * scheduler's alone must have. */
static void find_roles(struct watch__dump *d, const struct watch__vm *vm)
{
    uint64_t reductions, heap, process;

    for (unsigned type = 0; type < VM_TYPES; type++)
        for (unsigned n = 1; n <= vm->schedulers[type]; n++) {
            uint64_t runs = watch__vm_running(vm, type, n);
            struct watch__line *l = NULL;

            if (runs && type != VM_NORMAL)
                l = only_holder(d, runs);
            for (unsigned i = 0; i < d->count && runs && !l; i++) {
                watch__erlang_of(&d->lines[i].last, &process, &reductions,
                                 &heap);
                if (type == VM_NORMAL && d->lines[i].end == END_JIT
                    && process == runs)
                    l = &d->lines[i];
            }
            if (l && l->number == 0) {
                l->role = (enum watch__role)type;
                l->number = n;
            }
        }
}

static void fill_line(const struct watch__vm *vm, struct watch__line *l)
{
    uint64_t process = 0, reductions, heap;

    if (l->end == END_JIT && l->count > 0)
        watch__erlang_of(&l->last, &process, &reductions, &heap);
    if (l->doing == DOING_IDLE || l->role > R_DIRTY_IO)
        return;
    if (!process)
        process = watch__vm_running(vm, (enum watch__vm_type)l->role,
                                    l->number);
    l->process = process_at(vm, l, process);
}

static void fill_queues(struct watch__dump *d, const struct watch__vm *vm)
{
    struct watch__vm_queue *queues = calloc(QUEUES, sizeof *queues);
    unsigned n = queues ? watch__vm_queues(vm, queues, QUEUES) : 0;

    for (unsigned i = 0; i < n; i++) {
        long *to = &d->waiting[queues[i].type];

        *to = (*to < 0 ? 0 : *to) + queues[i].length;
        for (unsigned k = 0; k < d->count; k++)
            if (queues[i].type == VM_NORMAL && d->lines[k].role == R_NORMAL
                && d->lines[k].number == queues[i].number)
                d->lines[k].queue = queues[i].length;
    }
    free(queues);
}

static const struct watch__image *emulator(struct watch__dump *d)
{
    for (unsigned i = 0; i < d->maps->count; i++) {
        struct watch__image *image = watch__image_of(d->maps, &d->maps->map[i]);

        if (image && image->in == IN_EMULATOR)
            return image;
    }
    return NULL;
}

void watch__dump_erlang(struct watch__dump *d)
{
    const struct watch__image *image = emulator(d);
    struct watch__vm *vm = image ? watch__vm_open(image) : NULL;

    if (!vm)
        return;
    snprintf(d->release, sizeof d->release, "%s", vm->release);
    for (unsigned i = 0; i < VM_FIELDS; i++)
        d->unseen[i] = vm->why[i];
    if (d->is_core)
        find_roles(d, vm);
    for (unsigned i = 0; i < d->count; i++)
        fill_line(vm, &d->lines[i]);
    fill_queues(d, vm);
    watch__dump_sort(d);
    watch__vm_close(vm);
}
