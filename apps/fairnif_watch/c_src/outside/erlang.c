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

/* Its text, on one line. */
static bool atom_text(const struct watch__vm *vm, uint64_t atom, char *to,
                      size_t size)
{
    if (!watch__vm_atom(vm, atom, to, size))
        return false;
    for (; *to; to++)
        if ((unsigned char)*to < ' ')
            *to = '?';
    return true;
}

static void mfa(const struct watch__vm *vm, const struct watch__vm_function *f,
                char to[WATCH__MFA])
{
    char module[256], function[256];

    if (atom_text(vm, f->module, module, sizeof module)
        && atom_text(vm, f->function, function, sizeof function))
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
        && atom_text(vm, p->called.module, module, sizeof module)
        && atom_text(vm, p->called.function, function, sizeof function)
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

    if (p->runs && p->called.module)
        mfa(vm, &p->called, to->called);
    if (l->doing == DOING_ERLANG) {
        sp = l->regs.sp;
        if (watch__vm_function_at(vm, l->regs.pc, &f))
            mfa(vm, &f, to->current);
    } else if (p->runs && !in_called(vm, l, p)) {
        sp = watch__vm_sp(p, &l->last);
    } else if (p->runs) {
        snprintf(to->current, sizeof to->current, "%s", to->called);
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
        atom_text(vm, p.name, to->name, sizeof to->name);
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

/* The process that the scheduler runs: by its own word, and by the register where
 * there is one, which may have what ran before. */
static uint64_t process_of(const struct watch__vm *vm,
                           const struct watch__line *l)
{
    uint64_t process = 0, reductions, heap, runs;

    if (l->doing == DOING_IDLE || l->role > R_DIRTY_IO)
        return 0;
    runs = watch__vm_running(vm, (enum watch__vm_type)l->role, l->number);
    if (l->role == R_NORMAL && l->end == END_JIT && l->count > 0) {
        watch__erlang_of(&l->last, &process, &reductions, &heap);
        return process == runs ? runs : 0;
    }
    return runs;
}

/* A dirty call is scheduled in and out, which its process's reductions tell.  On
 * a normal scheduler thousands of short ones may follow one another in one turn;
 * but no turn lasts a second. */
static void prove(const struct watch__dump *d, struct watch__line *l,
                  uint64_t process, bool first)
{
    struct watch__vm_process p;
    uint64_t reductions = process && watch__vm_process(d->vm, process, &p)
        && has(&p, VM_REDUCTIONS) ? p.reductions + 1 : 0;
    uint64_t since = watch__now() - l->looked_at;

    if (first) {
        l->ran = process;
        l->ran_reductions = reductions;
        return;
    }
    l->unmoved = reductions && l->ran == process
        && l->ran_reductions == reductions;
    if (!l->unmoved || l->proven
        || (l->role == R_NORMAL && since < WATCH__LONG_S * NS_PER_S))
        return;
    l->proven = l->same = true;
    l->since_ns = since;
    if (l->count == 0)
        l->doing = DOING_NATIVE;        /* its stack is late */
}

void watch__erlang_seen(struct watch__dump *d, struct watch__line *l,
                        bool first)
{
    uint64_t process = d->vm ? process_of(d->vm, l) : 0;

    if (!d->vm)
        return;
    if (!d->is_core)
        prove(d, l, process, first);
    free(l->process);
    l->process = first ? NULL : process_at(d->vm, l, process);
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

static void fill_unseen(struct watch__dump *d, const struct watch__vm *vm)
{
    size_t n = 0;

    for (unsigned i = 0; i < VM_FIELDS && n < sizeof d->unseen; i++)
        if (vm->why[i])
            n += (size_t)snprintf(d->unseen + n, sizeof d->unseen - n,
                                  "%s%s (%s)", n ? ", " : "",
                                  watch__vm_field_name(i), vm->why[i]);
}

void watch__erlang_open(struct watch__dump *d)
{
    const struct watch__image *image = emulator(d);

    d->vm = image ? watch__vm_open(image) : NULL;
    if (d->vm && d->is_core)
        find_roles(d, d->vm);
}

void watch__erlang_close(struct watch__dump *d)
{
    if (!d->vm)
        return;
    snprintf(d->release, sizeof d->release, "%s", d->vm->release);
    for (unsigned i = 0; i < VM_TYPES; i++)
        d->schedulers[i] = d->vm->schedulers[i];
    fill_unseen(d, d->vm);
    fill_queues(d, d->vm);
    watch__dump_sort(d);
    watch__vm_close(d->vm);
    d->vm = NULL;
}
