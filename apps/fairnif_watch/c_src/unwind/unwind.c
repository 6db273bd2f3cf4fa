/*
 * unwind.c - from a snapshot to frames: a row of the unwind table per frame,
 * and the caller's registers from it.
 *
 * Only the copied stack is the thread's as it was: what a register was saved in
 * elsewhere may have changed since, so the frames end there.  So do they where
 * a register is needed that is not known.  Nothing is guessed.
 */
#include <string.h>

#include "unwind/unwind.h"
#include "read/mem.h"
#include "unwind/base.h"
#include "unwind/expression.h"
#include "unwind/table.h"

#if defined(__x86_64__)
enum { SP = 7, PC = 16, PROCESS = 13, REDUCTIONS = 14, HEAP = 15, LINK = 0 };
/* What a call does not keep: rax, rdx, rcx, rsi, rdi, r8 to r11. */
static const uint64_t lost = 0x0f37;
#elif defined(__aarch64__)
enum { SP = 31, PC = 32, PROCESS = 21, REDUCTIONS = 22, HEAP = 23, LINK = 1 };
/* x0 to x18, and the return address. */
static const uint64_t lost = 0x4007ffff;
#else                           /* watch__stack_start says so */
enum { SP = 0, PC = 1, PROCESS = 0, REDUCTIONS = 0, HEAP = 0, LINK = 0 };
static const uint64_t lost = UINT64_MAX;
#endif

enum { USED_MOST = WATCH__FRAMES, TRIES = 3 };

/* The libraries that frames were found with: the tables were theirs if they
 * still are what they were once the frames are there. */
struct used {
    const struct watch__image *image[USED_MOST];
    uint64_t serial[USED_MOST];
    unsigned count;
};

static void use(struct used *u, const struct watch__image *image)
{
    for (unsigned i = 0; i < u->count; i++)
        if (u->image[i] == image)
            return;
    if (u->count < USED_MOST) {
        u->image[u->count] = image;
        u->serial[u->count++] = image->serial;
    }
}

static bool unchanged(const struct used *u)
{
    for (unsigned i = 0; i < u->count; i++)
        if (u->image[i]->serial != u->serial[i]
            || !watch__image_same(u->image[i]))
            return false;
    return true;
}

static bool known(const struct watch__regs *regs, uint64_t reg)
{
    return reg < WATCH__REGS && regs->known >> reg & 1;
}

/* True unless its place is not in the copy. */
static bool caller_register(const struct watch__snapshot *s,
                            const struct watch__row *row,
                            const struct watch__regs *regs, unsigned reg,
                            uint64_t cfa, struct watch__regs *caller)
{
    const struct watch__rule *rule = &row->reg[reg];
    uint64_t value = regs->value[reg];
    bool is = known(regs, reg);

    switch (rule->kind) {
    case RULE_UNSAID:
        if (!row->signal && lost >> reg & 1) {
            caller->value[reg] = value;
            caller->left |= ((regs->known | regs->left) >> reg & 1) << reg;
            return true;
        }
        break;
    case RULE_SAME: break;
    case RULE_UNDEFINED: is = false; break;
    case RULE_OFFSET:
        if (!watch__stack_word(s, cfa + (uint64_t)rule->n, &value))
            return false;
        is = true;
        break;
    case RULE_VALUE_OFFSET: value = cfa + (uint64_t)rule->n; is = true; break;
    case RULE_REGISTER:
        is = known(regs, (uint64_t)rule->n);
        value = is ? regs->value[rule->n] : 0;
        break;
    case RULE_EXPRESSION:
        is = watch__expression(s, regs, rule, &cfa, &value);
        if (is && !watch__stack_word(s, value, &value))
            return false;
        break;
    case RULE_VALUE_EXPRESSION:
        is = watch__expression(s, regs, rule, &cfa, &value);
        break;
    }
    caller->value[reg] = is ? value : 0;
    caller->known |= (uint64_t)is << reg;
    return true;
}

/* Assembly (OpenSSL's) has its frame in a register that a call need not keep,
 * since the functions that it calls are its own.  What these left there is
 * believed if it leads to a return address behind a call of this function. */
static bool left_base(const struct watch__snapshot *s,
                      const struct watch__row *row,
                      const struct watch__regs *regs, uint64_t *base)
{
    const struct watch__rule *ra = &row->reg[row->ra];
    uint64_t at;

    if (row->cfa.base >= WATCH__REGS || !(regs->left >> row->cfa.base & 1)
        || ra->kind != RULE_OFFSET)
        return false;
    *base = regs->value[row->cfa.base];
    at = *base + (uint64_t)row->cfa.n + (uint64_t)ra->n;
    return at >= regs->sp && watch__frame_fits(s, at, row->start);
}

static bool find_cfa(const struct watch__snapshot *s,
                     const struct watch__row *row,
                     struct watch__regs *regs, uint64_t *cfa)
{
    uint64_t base;

    if (row->cfa.kind == RULE_EXPRESSION)
        return watch__expression(s, regs, &row->cfa, NULL, cfa);
    if (row->cfa.kind != RULE_OFFSET)
        return false;
    if (!known(regs, row->cfa.base)) {
        if (!left_base(s, row, regs, &base)
            && !watch__frame_base(s, row, regs->sp, regs->pc, &base))
            return false;
        regs->value[row->cfa.base] = base;
        regs->known |= UINT64_C(1) << row->cfa.base;
    }
    *cfa = regs->value[row->cfa.base] + (uint64_t)row->cfa.n;
    return true;
}

/* The caller's registers; END_FRAMES: there may be more. */
static enum watch__end step(const struct watch__snapshot *s,
                            const struct watch__row *row, bool exact,
                            struct watch__regs *regs, uint64_t *cfa)
{
    struct watch__regs caller = {0};

    if (!find_cfa(s, row, regs, cfa))
        return END_NO_REGISTER;
    /* A stack grows one way.  Where a task's stack begins it is another one,
     * and that frame is marked like a signal's. */
    if (!row->signal && *cfa < regs->sp)
        return END_NO_TABLE;
    if (row->reg[row->ra].kind == RULE_UNDEFINED)
        return END_WHOLE;
    for (unsigned reg = 0; reg < WATCH__REGS; reg++)
        if (!caller_register(s, row, regs, reg, *cfa, &caller))
            return END_COPIED;
    /* Not saved yet, in a function that has called none. */
    if (LINK && exact && row->reg[row->ra].kind == RULE_UNSAID
        && known(regs, row->ra)) {
        caller.value[row->ra] = regs->value[row->ra];
        caller.known |= UINT64_C(1) << row->ra;
    }
    if (!known(&caller, row->ra)
        || (row->reg[row->ra].kind == RULE_UNSAID && !(LINK && exact)))
        return END_NO_REGISTER;
    caller.pc = caller.value[row->ra];
    if (row->is_signed)
        caller.pc &= 0x0000ffffffffffffu;
    if (row->reg[SP].kind == RULE_UNSAID) {
        caller.value[SP] = *cfa;
        caller.known |= UINT64_C(1) << SP;
    }
    if (!known(&caller, SP))
        return END_NO_REGISTER;
    caller.sp = caller.value[SP];
    caller.value[PC] = caller.pc;
    caller.known |= UINT64_C(1) << PC;
    if (caller.pc == 0)
        return END_WHOLE;
    if (caller.pc == regs->pc && caller.sp == regs->sp)
        return END_NO_TABLE;    /* it leads nowhere */
    *regs = caller;
    return END_FRAMES;
}

static bool is_jit(const struct watch__map *map)
{
    if (!map->path)
        return map->ino == 0;   /* else it is a file, of too many */
    return !strncmp(map->path, "/memfd:", 7)
        || !strncmp(map->path, "[anon", 5) || !strncmp(map->path, "/dev/", 5);
}

/* Is that machine code a library's (LuaJIT, XLA), not the emulator's?  It lies
 * elsewhere than the emulator's; or a register has something else than the
 * process that Erlang code always has there, and it was not the emulator that
 * came back to it: between two processes that register is out of date. */
static bool is_librarys(struct watch__maps *maps, uint64_t pc,
                        const struct watch__regs *regs,
                        const struct watch__frame *inner)
{
    const struct watch__map *map = watch__map_of(maps, pc);

    if (maps->vm_is_named && map && !watch__is_vms_name(map->path))
        return true;
    return known(regs, PROCESS) && !watch__process_of(regs)
        && !(inner && inner->in == IN_EMULATOR);
}

/* Where it is; the image whose table has it, or NULL. */
static struct watch__image *place(struct watch__maps *maps, uint64_t pc,
                                  struct watch__frame *frame)
{
    const struct watch__map *map = watch__map_of(maps, pc);
    struct watch__image *image = watch__image_of(maps, map);

    frame->in = image ? image->in
        : map && is_jit(map) ? IN_JIT : IN_UNKNOWN;
    if (image) {
        frame->library = image->path;
        frame->offset = frame->pc - image->bias;
    }
    return image;
}

static unsigned unwind(struct watch__maps *maps,
                       const struct watch__snapshot *s,
                       struct watch__frame frames[], unsigned max,
                       enum watch__end *end, struct watch__regs *regs,
                       struct used *used)
{
    bool exact = true;          /* else pc is a return address */
    unsigned n = 0;

    *regs = s->regs;
    *end = END_FRAMES;
    while (n < max) {
        struct watch__frame *frame = &frames[n++];
        uint64_t pc = regs->pc - !exact;
        const struct watch__row *row;
        struct watch__image *image;

        memset(frame, 0, sizeof *frame);
        frame->pc = regs->pc;
        frame->exact = exact;
        image = place(maps, pc, frame);
        if (!image) {
            *end = frame->in == IN_JIT ? END_JIT : END_NO_TABLE;
            if (*end == END_JIT
                && is_librarys(maps, pc, regs, n > 1 ? frame - 1 : NULL)) {
                *end = END_MACHINE;
                frame->in = IN_UNKNOWN;
            }
            return n;
        }
        use(used, image);
        row = watch__row_of(maps, image, pc);
        if (!row) {
            *end = END_NO_TABLE;
            return n;
        }
        frame->start = row->start;
        *end = step(s, row, exact, regs, &frame->cfa);
        exact = row->signal;
        if (*end != END_FRAMES)
            return n;
    }
    return n;
}

unsigned watch__unwind(struct watch__maps *maps,
                       const struct watch__snapshot *s,
                       struct watch__frame frames[], unsigned max,
                       enum watch__end *end, struct watch__regs *last)
{
    for (unsigned tries = 0; tries < TRIES; tries++) {
        struct used used = {.count = 0};
        unsigned n = unwind(maps, s, frames, max, end, last, &used);

        if (unchanged(&used))
            return n;
        watch__maps_changed(maps);
    }
    /* Libraries come and go faster than we read. */
    memset(&frames[0], 0, sizeof frames[0]);
    frames[0].pc = s->regs.pc;
    frames[0].exact = true;
    *last = s->regs;
    *end = END_NO_TABLE;
    return max > 0;
}

uint64_t watch__process_of(const struct watch__regs *regs)
{
    enum { TAG_BITS = 0xf, TAG_PID = 0x3 };
    uint64_t id;

    if (!known(regs, PROCESS) || regs->value[PROCESS] % 8 != 0
        || !watch__read_all(&id, regs->value[PROCESS], sizeof id)
        || (id & TAG_BITS) != TAG_PID)
        return 0;
    return id;
}

void watch__erlang_of(const struct watch__regs *regs, uint64_t *process,
                      uint64_t *reductions, uint64_t *heap)
{
    *process = known(regs, PROCESS) ? regs->value[PROCESS] : 0;
    *reductions = known(regs, REDUCTIONS) ? regs->value[REDUCTIONS] : 0;
    *heap = known(regs, HEAP) ? regs->value[HEAP] : 0;
}
