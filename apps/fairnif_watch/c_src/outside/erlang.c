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

/* The stack: of a thread that runs Erlang code from its own stack pointer on. */
static void fill_stack(const struct watch__vm *vm, const struct watch__line *l,
                       const struct watch__vm_process *p,
                       struct watch__process_seen *to)
{
    struct watch__vm_function f, calls[WATCH__CALLS];
    bool erlang = l->doing == DOING_ERLANG;

    if (erlang && watch__vm_function_at(vm, l->regs.pc, &f))
        mfa(vm, &f, to->current);
    else if (!erlang && has(p, VM_CURRENT))
        mfa(vm, &p->current, to->current);
    to->count = watch__vm_stack(vm, p, erlang ? l->regs.sp : 0, calls,
                                WATCH__CALLS);
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

/* In a core threads have no names: a scheduler is told by the process that it
 * runs. */
static void find_role(const struct watch__vm *vm, struct watch__line *l,
                      uint64_t process)
{
    for (unsigned type = 0; type < VM_TYPES && process; type++)
        for (unsigned n = 1; n <= vm->schedulers[type]; n++)
            if (watch__vm_running(vm, type, n) == process) {
                l->role = (enum watch__role)type;
                l->number = n;
                return;
            }
}

static void fill_line(const struct watch__dump *d, const struct watch__vm *vm,
                      struct watch__line *l)
{
    uint64_t process = 0, reductions, heap;

    if (l->end == END_JIT && l->count > 0)
        watch__erlang_of(&l->last, &process, &reductions, &heap);
    if (d->is_core && l->role > R_DIRTY_IO)
        find_role(vm, l, process);
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
    for (unsigned i = 0; i < d->count; i++)
        fill_line(d, vm, &d->lines[i]);
    fill_queues(d, vm);
    watch__vm_close(vm);
}
