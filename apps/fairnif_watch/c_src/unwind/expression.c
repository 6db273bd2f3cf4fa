/*
 * expression.c - DWARF expressions of unwind tables: a small stack machine.
 * Bounded in steps and depth, so that a broken one ends.
 *
 * Memory is the thread's copied stack: what lies elsewhere may have changed.
 */
#include "unwind/expression.h"
#include "read/bytes.h"
#include "read/mem.h"

enum { DEPTH = 32, STEPS = 1000, BYTES = 512 };

enum {
    OP_ADDR = 0x03, OP_DEREF = 0x06, OP_CONST1U = 0x08, OP_CONST1S,
    OP_CONST2U, OP_CONST2S, OP_CONST4U, OP_CONST4S, OP_CONST8U, OP_CONST8S,
    OP_CONSTU, OP_CONSTS, OP_DUP, OP_DROP, OP_OVER, OP_PICK, OP_SWAP, OP_ROT,
    OP_ABS = 0x19, OP_AND, OP_DIV, OP_MINUS, OP_MOD, OP_MUL, OP_NEG, OP_NOT,
    OP_OR, OP_PLUS, OP_PLUS_UCONST, OP_SHL, OP_SHR, OP_SHRA, OP_XOR, OP_BRA,
    OP_EQ, OP_GE, OP_GT, OP_LE, OP_LT, OP_NE, OP_SKIP, OP_LIT0 = 0x30,
    OP_BREG0 = 0x70, OP_BREGX = 0x92, OP_DEREF_SIZE = 0x94, OP_NOP = 0x96
};

struct machine {
    const struct watch__snapshot *s;
    const struct watch__regs *regs;
    struct watch__reader r;
    const unsigned char *begin;
    uint64_t stack[DEPTH];
    unsigned depth;
    bool bad;
};

static void push(struct machine *m, uint64_t n)
{
    if (m->depth < DEPTH)
        m->stack[m->depth++] = n;
    else
        m->bad = true;
}

static uint64_t pop(struct machine *m)
{
    if (m->depth > 0)
        return m->stack[--m->depth];
    m->bad = true;
    return 0;
}

static void push_nth(struct machine *m, uint64_t n)
{
    if (n < m->depth)
        push(m, m->stack[m->depth - 1 - n]);
    else
        m->bad = true;
}

static uint64_t as_signed(uint64_t n, unsigned bytes)
{
    uint64_t sign = UINT64_C(1) << (8 * bytes - 1);

    return (n ^ sign) - sign;
}

static void push_memory(struct machine *m, uint64_t address, uint64_t bytes)
{
    uint64_t n = 0;

    if (bytes != 1 && bytes != 2 && bytes != 4 && bytes != 8)
        m->bad = true;
    else if (!watch__stack_word(m->s, address, &n))
        m->bad = true;
    push(m, bytes < 8 ? n & ((UINT64_C(1) << 8 * bytes) - 1) : n);
}

static void push_register(struct machine *m, uint64_t reg)
{
    int64_t offset = watch__get_sleb(&m->r);

    if (reg >= WATCH__REGS || !(m->regs->known >> reg & 1)) {
        m->bad = true;
        return;
    }
    push(m, m->regs->value[reg] + (uint64_t)offset);
}

static uint64_t divide(struct machine *m, int64_t a, int64_t b)
{
    if (b == 0 || (a == INT64_MIN && b == -1)) {
        m->bad = true;
        return 0;
    }
    return (uint64_t)(a / b);
}

static uint64_t shift_right(uint64_t a, uint64_t by)
{
    uint64_t fill = a >> 63 ? UINT64_MAX : 0;

    if (by > 63)
        return fill;
    return by == 0 ? a : a >> by | fill << (64 - by);
}

/* Of two, the upper one on top. */
static bool run_binary(struct machine *m, unsigned op)
{
    uint64_t b, a;

    if (!(op >= OP_AND && op <= OP_NE) || op == OP_NEG || op == OP_NOT
        || op == OP_PLUS_UCONST || op == OP_BRA)
        return false;
    b = pop(m);
    a = pop(m);
    switch (op) {
    case OP_AND: push(m, a & b); break;
    case OP_DIV: push(m, divide(m, (int64_t)a, (int64_t)b)); break;
    case OP_MINUS: push(m, a - b); break;
    case OP_MOD:
        m->bad |= b == 0;
        push(m, b == 0 ? 0 : a % b);
        break;
    case OP_MUL: push(m, a * b); break;
    case OP_OR: push(m, a | b); break;
    case OP_PLUS: push(m, a + b); break;
    case OP_SHL: push(m, b > 63 ? 0 : a << b); break;
    case OP_SHR: push(m, b > 63 ? 0 : a >> b); break;
    case OP_SHRA: push(m, shift_right(a, b)); break;
    case OP_XOR: push(m, a ^ b); break;
    case OP_EQ: push(m, a == b); break;
    case OP_GE: push(m, (int64_t)a >= (int64_t)b); break;
    case OP_GT: push(m, (int64_t)a > (int64_t)b); break;
    case OP_LE: push(m, (int64_t)a <= (int64_t)b); break;
    case OP_LT: push(m, (int64_t)a < (int64_t)b); break;
    case OP_NE: push(m, a != b); break;
    }
    return true;
}

static bool run_constant(struct machine *m, unsigned op)
{
    struct watch__reader *r = &m->r;

    switch (op) {
    case OP_ADDR: case OP_CONST8U: case OP_CONST8S:
        push(m, watch__get(r, 8));
        return true;
    case OP_CONST1U: push(m, watch__get(r, 1)); return true;
    case OP_CONST1S: push(m, as_signed(watch__get(r, 1), 1)); return true;
    case OP_CONST2U: push(m, watch__get(r, 2)); return true;
    case OP_CONST2S: push(m, as_signed(watch__get(r, 2), 2)); return true;
    case OP_CONST4U: push(m, watch__get(r, 4)); return true;
    case OP_CONST4S: push(m, as_signed(watch__get(r, 4), 4)); return true;
    case OP_CONSTU: push(m, watch__get_uleb(r)); return true;
    case OP_CONSTS: push(m, (uint64_t)watch__get_sleb(r)); return true;
    }
    return false;
}

static void jump(struct machine *m, bool taken)
{
    int64_t by = (int64_t)as_signed(watch__get(&m->r, 2), 2);

    if (!taken)
        return;
    if (by < m->begin - m->r.at || by > m->r.end - m->r.at)
        m->bad = true;
    else
        m->r.at += by;
}

static void run_rest(struct machine *m, unsigned op)
{
    uint64_t a, b, c;

    switch (op) {
    case OP_DEREF: push_memory(m, pop(m), 8); break;
    case OP_DEREF_SIZE:
        a = watch__get(&m->r, 1);
        push_memory(m, pop(m), a);
        break;
    case OP_DUP: push_nth(m, 0); break;
    case OP_DROP: pop(m); break;
    case OP_OVER: push_nth(m, 1); break;
    case OP_PICK: push_nth(m, watch__get(&m->r, 1)); break;
    case OP_SWAP: a = pop(m), b = pop(m), push(m, a), push(m, b); break;
    case OP_ROT:
        a = pop(m), b = pop(m), c = pop(m);
        push(m, a), push(m, c), push(m, b);
        break;
    case OP_ABS:
        a = pop(m);
        push(m, a >> 63 ? -a : a);
        break;
    case OP_NEG: push(m, -pop(m)); break;
    case OP_NOT: push(m, ~pop(m)); break;
    case OP_PLUS_UCONST: a = pop(m), push(m, a + watch__get_uleb(&m->r)); break;
    case OP_BRA: a = pop(m), jump(m, a != 0); break;
    case OP_SKIP: jump(m, true); break;
    case OP_BREGX: a = watch__get_uleb(&m->r), push_register(m, a); break;
    case OP_NOP: break;
    default: m->bad = true;
    }
}

/* `cfa` is pushed first, where the rule is of a register. */
bool watch__expression(const struct watch__snapshot *s,
                       const struct watch__regs *regs,
                       const struct watch__rule *rule, const uint64_t *cfa,
                       uint64_t *result)
{
    unsigned char bytes[BYTES];
    struct machine m = {.s = s, .regs = regs, .begin = bytes};

    if (rule->size > sizeof bytes
        || !watch__read_all(bytes, (uint64_t)rule->n, rule->size))
        return false;
    m.r = (struct watch__reader){.at = bytes, .end = bytes + rule->size};
    if (cfa)
        push(&m, *cfa);
    for (unsigned i = 0; m.r.at < m.r.end && !m.bad && !m.r.bad; i++) {
        unsigned op = (unsigned)watch__get(&m.r, 1);

        if (i == STEPS)
            return false;
        if (op >= OP_LIT0 && op < OP_LIT0 + 32)
            push(&m, op - OP_LIT0);
        else if (op >= OP_BREG0 && op < OP_BREG0 + 32)
            push_register(&m, op - OP_BREG0);
        else if (!run_constant(&m, op) && !run_binary(&m, op))
            run_rest(&m, op);
    }
    *result = pop(&m);
    return !m.bad && !m.r.bad;
}
