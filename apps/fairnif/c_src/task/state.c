/*
 * state.c - a task goes from one state to another.
 */
#include "task/state.h"

#ifdef FAIRNIF_ASSERT
#  include <stdio.h>
#  include <stdlib.h>

static const char *const names[] = {
#  define STATE(NAME, WHAT) [T_##NAME] = #NAME,
#  define MOVE(FROM, TO, WHEN)
#  include "task/state.def"
#  undef STATE
#  undef MOVE
};

static const struct {
    enum fair__state from, to;
} moves[] = {
#  define STATE(NAME, WHAT)
#  define MOVE(FROM, TO, WHEN) {T_##FROM, T_##TO},
#  include "task/state.def"
#  undef STATE
#  undef MOVE
};

void fair__assert_move(int from, int to)
{
    for (unsigned i = 0; i < sizeof moves / sizeof *moves; i++)
        if ((int)moves[i].from == from && (int)moves[i].to == to)
            return;
    fprintf(stderr, "fairnif: a task goes from %s to %s, which state.def does "
            "not know\n", names[from], names[to]);
    abort();
}
#endif
