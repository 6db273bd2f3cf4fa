/*
 * state.h - the states of a task: T_ENDED and the others of state.def.
 */
#ifndef FAIR_STATE_H
#define FAIR_STATE_H

#include "base/base.h"

enum fair__state {
#define STATE(NAME, WHAT) T_##NAME,
#define MOVE(FROM, TO, WHEN)
#include "task/state.def"
#undef STATE
#undef MOVE
};

#ifdef FAIRNIF_ASSERT
/* Ends the VM where the table has no such move. */
FAIR_HIDDEN void fair__assert_move(int from, int to);
#endif

#endif
