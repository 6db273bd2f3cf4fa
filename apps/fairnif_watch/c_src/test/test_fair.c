/*
 * test_fair.c - what this application says of fairnif's structs is what
 * fairnif.h says.
 */
#include "look/fair.h"
#include "check.h"

#include "../../../fairnif/c_include/fairnif.h"

#define SAME(OURS, THEIRS, FIELD)                                           \
    CHECK_NUMBERS(offsetof(OURS, FIELD), ==, offsetof(THEIRS, FIELD))

TEST(structs, "the structs that cross to fairnif are as fairnif has them")
{
    CHECK_NUMBERS(sizeof(struct fair_visitor), ==,
                  sizeof(struct fair__visitor));
    CHECK_NUMBERS(FAIR_VISITS, ==, FAIR__VISITS);
    CHECK_NUMBERS(offsetof(struct fair_visitor, kind), ==,
                  offsetof(struct fair__visitor, is.kind));
    SAME(struct fair_visitor, struct fair__visitor, abi_major);
    SAME(struct fair_visitor, struct fair__visitor, abi_minor);
    SAME(struct fair_visitor, struct fair__visitor, table);
    SAME(struct fair_visitor, struct fair__visitor, which);
    CHECK_NUMBERS(sizeof(struct fair_running), ==,
                  sizeof(struct fair__running));
    SAME(struct fair_running, struct fair__running, where);
    SAME(struct fair_running, struct fair__running, number);
    SAME(struct fair_running, struct fair__running, tid);
    SAME(struct fair_running, struct fair__running, arity);
    SAME(struct fair_running, struct fair__running, module);
    SAME(struct fair_running, struct fair__running, name);
    SAME(struct fair_running, struct fair__running, since_ns);
    SAME(struct fair_running, struct fair__running, yields);
    SAME(struct fair_running, struct fair__running, owner);
    SAME(struct fair_ops, struct fair__ops, size);
    SAME(struct fair_ops, struct fair__ops, abi_major);
    SAME(struct fair_ops, struct fair__ops, running);
}
