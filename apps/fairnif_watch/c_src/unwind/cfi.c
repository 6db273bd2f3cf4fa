/*
 * cfi.c - runs the instructions of an unwind table entry: from them comes the
 * row for one pc, that is where the caller's registers are.
 *
 * An instruction takes at least a byte of an entry of bounded size, so this
 * ends.  What is not known here makes the whole row unusable: no guess.
 */
#include <string.h>

#include "unwind/cfi.h"

enum { KEPT_MOST = 8, EXPRESSION_MOST = 512 };

enum {
    CFA_NOP = 0x00, CFA_SET_LOC, CFA_ADVANCE_1, CFA_ADVANCE_2, CFA_ADVANCE_4,
    CFA_OFFSET_EXTENDED, CFA_RESTORE_EXTENDED, CFA_UNDEFINED, CFA_SAME_VALUE,
    CFA_REGISTER, CFA_REMEMBER, CFA_RESTORE_STATE, CFA_DEF, CFA_DEF_REGISTER,
    CFA_DEF_OFFSET, CFA_DEF_EXPRESSION, CFA_EXPRESSION, CFA_OFFSET_SF,
    CFA_DEF_SF, CFA_DEF_OFFSET_SF, CFA_VAL_OFFSET, CFA_VAL_OFFSET_SF,
    CFA_VAL_EXPRESSION,
    CFA_ADVANCE_8 = 0x1d, CFA_NEGATE_RA_STATE = 0x2d, CFA_ARGS_SIZE = 0x2e,
    CFA_NEGATIVE_OFFSET = 0x2f,
    CFA_ADVANCE = 0x40, CFA_OFFSET = 0x80, CFA_RESTORE = 0xc0
};

struct run {
    struct watch__reader *r;
    const struct watch__cie *cie;
    struct watch__row *row;
    const struct watch__row *first;     /* as the CIE leaves it; NULL: this is
                                           the CIE */
    uint64_t location;
    struct watch__row kept[KEPT_MOST];
    unsigned kept_count;
    bool bad;
};

/* Registers that are not followed (vectors) are named as well. */
static void set(struct run *x, uint64_t reg, enum watch__kind kind, int64_t n)
{
    if (reg < WATCH__REGS)
        x->row->reg[reg] = (struct watch__rule){.kind = kind, .n = n};
}

static void set_expression(struct run *x, struct watch__rule *rule,
                           enum watch__kind kind)
{
    uint64_t size = watch__get_uleb(x->r);

    if (x->r->bad || size > (size_t)(x->r->end - x->r->at)
        || size > EXPRESSION_MOST) {
        x->bad = true;
        return;
    }
    if (rule)
        *rule = (struct watch__rule){
            .kind = kind, .size = (uint16_t)size,
            .n = (int64_t)watch__position(x->r)
        };
    x->r->at += size;
}

static struct watch__rule *rule_of(struct run *x, uint64_t reg)
{
    return reg < WATCH__REGS ? &x->row->reg[reg] : NULL;
}

static void set_cfa(struct run *x, uint64_t reg, int64_t offset)
{
    x->row->cfa = (struct watch__rule){
        .kind = RULE_OFFSET, .base = (uint16_t)reg, .n = offset
    };
    if (reg >= WATCH__REGS)
        x->bad = true;
}

static void restore(struct run *x, uint64_t reg)
{
    if (!x->first)
        x->bad = true;
    else if (reg < WATCH__REGS)
        x->row->reg[reg] = x->first->reg[reg];
}

static void remember(struct run *x)
{
    if (x->kept_count < KEPT_MOST)
        x->kept[x->kept_count++] = *x->row;
    else
        x->bad = true;
}

static void restore_state(struct run *x)
{
    if (x->kept_count > 0)
        *x->row = x->kept[--x->kept_count];
    else
        x->bad = true;
}

static void advance(struct run *x, uint64_t by)
{
    x->location += by * x->cie->code_factor;
}

static int64_t factored(struct run *x)
{
    return (int64_t)(watch__get_uleb(x->r) * (uint64_t)x->cie->data_factor);
}

static int64_t factored_signed(struct run *x)
{
    return (int64_t)((uint64_t)watch__get_sleb(x->r)
                     * (uint64_t)x->cie->data_factor);
}

/* Those that say where the CFA is, or where in the code we are. */
static bool run_place(struct run *x, unsigned op)
{
    struct watch__rule *cfa = &x->row->cfa;
    uint64_t reg;

    switch (op) {
    case CFA_SET_LOC:
        x->location = watch__get_pointer(x->r, x->cie->encoding, 0);
        return true;
    case CFA_ADVANCE_1: advance(x, watch__get(x->r, 1)); return true;
    case CFA_ADVANCE_2: advance(x, watch__get(x->r, 2)); return true;
    case CFA_ADVANCE_4: advance(x, watch__get(x->r, 4)); return true;
    case CFA_ADVANCE_8: advance(x, watch__get(x->r, 8)); return true;
    case CFA_DEF:
        reg = watch__get_uleb(x->r);
        set_cfa(x, reg, (int64_t)watch__get_uleb(x->r));
        return true;
    case CFA_DEF_SF:
        reg = watch__get_uleb(x->r);
        set_cfa(x, reg, factored_signed(x));
        return true;
    case CFA_DEF_REGISTER:
        x->bad |= cfa->kind != RULE_OFFSET;
        set_cfa(x, watch__get_uleb(x->r), cfa->n);
        return true;
    case CFA_DEF_OFFSET:
        x->bad |= cfa->kind != RULE_OFFSET;
        cfa->n = (int64_t)watch__get_uleb(x->r);
        return true;
    case CFA_DEF_OFFSET_SF:
        x->bad |= cfa->kind != RULE_OFFSET;
        cfa->n = factored_signed(x);
        return true;
    case CFA_DEF_EXPRESSION:
        set_expression(x, cfa, RULE_EXPRESSION);
        return true;
    }
    return false;
}

/* Those that say where a register is. */
static void run_register(struct run *x, unsigned op)
{
    uint64_t reg = watch__get_uleb(x->r);

    switch (op) {
    case CFA_OFFSET_EXTENDED: set(x, reg, RULE_OFFSET, factored(x)); break;
    case CFA_OFFSET_SF: set(x, reg, RULE_OFFSET, factored_signed(x)); break;
    case CFA_VAL_OFFSET: set(x, reg, RULE_VALUE_OFFSET, factored(x)); break;
    case CFA_VAL_OFFSET_SF:
        set(x, reg, RULE_VALUE_OFFSET, factored_signed(x));
        break;
    case CFA_NEGATIVE_OFFSET:
        set(x, reg, RULE_OFFSET, (int64_t)-(uint64_t)factored(x));
        break;
    case CFA_RESTORE_EXTENDED: restore(x, reg); break;
    case CFA_UNDEFINED: set(x, reg, RULE_UNDEFINED, 0); break;
    case CFA_SAME_VALUE: set(x, reg, RULE_SAME, 0); break;
    case CFA_REGISTER:
        set(x, reg, RULE_REGISTER, (int64_t)watch__get_uleb(x->r));
        break;
    case CFA_EXPRESSION:
        set_expression(x, rule_of(x, reg), RULE_EXPRESSION);
        break;
    case CFA_VAL_EXPRESSION:
        set_expression(x, rule_of(x, reg), RULE_VALUE_EXPRESSION);
        break;
    default: x->bad = true;
    }
}

static void run_one(struct run *x)
{
    unsigned op = (unsigned)watch__get(x->r, 1), low = op & 0x3f;

    switch (op & 0xc0) {
    case CFA_ADVANCE: advance(x, low); return;
    case CFA_OFFSET: set(x, low, RULE_OFFSET, factored(x)); return;
    case CFA_RESTORE: restore(x, low); return;
    }
    switch (op) {
    case CFA_NOP: return;
    case CFA_REMEMBER: remember(x); return;
    case CFA_RESTORE_STATE: restore_state(x); return;
    case CFA_ARGS_SIZE: watch__get_uleb(x->r); return;
#if defined(__aarch64__)
    case CFA_NEGATE_RA_STATE: x->row->is_signed ^= 1; return;
#endif
    }
    if (!run_place(x, op))
        run_register(x, op);
}

bool watch__cfi_run(struct watch__reader *r, const struct watch__cie *cie,
                    struct watch__row *row, const struct watch__row *first,
                    uint64_t location, uint64_t pc)
{
    struct run x = {
        .r = r, .cie = cie, .row = row, .first = first, .location = location
    };

    while (r->at < r->end && !x.bad && !r->bad) {
        run_one(&x);
        if (x.location > pc)    /* an advance changes nothing else */
            break;
    }
    return !x.bad && !r->bad;
}
