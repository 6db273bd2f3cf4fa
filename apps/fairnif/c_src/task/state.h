/*
 * state.h - the states of a task: T_ENDED and the others of state.def.
 */
#ifndef FAIR_STATE_H
#define FAIR_STATE_H

enum fair__state {
#define STATE(NAME, WHAT) T_##NAME,
#define MOVE(FROM, TO, WHEN)
#include "task/state.def"
#undef STATE
#undef MOVE
};

#endif
