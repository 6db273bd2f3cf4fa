/*
 * row.h - how a frame is left: the unwind table's line for one pc.
 */
#ifndef WATCH_ROW_H
#define WATCH_ROW_H

#include "unwind/stack.h"

/* How a register of the caller is found. */
enum watch__kind { RULE_UNSAID, RULE_SAME, RULE_UNDEFINED, RULE_OFFSET,
                   RULE_VALUE_OFFSET, RULE_REGISTER, RULE_EXPRESSION,
                   RULE_VALUE_EXPRESSION };
struct watch__rule {
    enum watch__kind kind : 8;
    uint16_t size;              /* of the expression */
    uint16_t base;              /* of the CFA: its register */
    int64_t n;                  /* offset, register, or where the expression
                                   lies */
};

/* The unwind table's line for one pc. */
struct watch__row {
    uint64_t serial, pc;        /* of which image; its key among the kept */
    uint64_t start, end;        /* of the function */
    bool signal, is_signed;
    uint8_t ra;                 /* the register of the return address */
    struct watch__rule cfa, reg[WATCH__REGS];
};

#endif
