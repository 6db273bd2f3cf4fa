/*
 * expression.h - expressions of an unwind table.
 */
#ifndef WATCH_EXPRESSION_H
#define WATCH_EXPRESSION_H

#include "unwind/row.h"

WATCH_HIDDEN bool watch__expression(const struct watch__snapshot *s,
                                    const struct watch__regs *regs,
                                    const struct watch__rule *rule,
                                    const uint64_t *cfa, uint64_t *result);

#endif
