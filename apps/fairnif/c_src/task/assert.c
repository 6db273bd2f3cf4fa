/*
 * assert.c - what is so of a task that goes from one state to another, where
 * that is checked.
 */
#include "task/task.h"

#ifdef FAIRNIF_ASSERT
#  include <stdio.h>
#  include <stdlib.h>

static const char *const names[] = {
#  define STATE(NAME, WHAT, HOLDS) [T_##NAME] = #NAME,
#  define MOVE(FROM, TO, WHEN)
#  include "task/state.def"
#  undef STATE
#  undef MOVE
};

static bool is_move(int from, int to)
{
#  define STATE(NAME, WHAT, HOLDS)
#  define MOVE(FROM, TO, WHEN) if (from == T_##FROM && to == T_##TO) return true;
#  include "task/state.def"
#  undef STATE
#  undef MOVE
    return false;
}

/* Its caller or a thread continues it. */
static bool is_awaited(const struct fair__task *t)
{
    return t->wait.pending || !t->kind->has_caller;
}

static bool holds(const struct fair__task *t, int state)
{
    switch (state) {
#  define STATE(NAME, WHAT, HOLDS) case T_##NAME: return HOLDS;
#  define MOVE(FROM, TO, WHEN)
#  include "task/state.def"
#  undef STATE
#  undef MOVE
    }
    return false;
}

void fair__assert_move(const struct fair__task *t, int to)
{
    int from = GET(t->state);

    if (is_move(from, to) && holds(t, to))
        return;
    fprintf(stderr, "fairnif: a task goes from %s to %s, which state.def does "
            "not know, or not of such a task\n", names[from], names[to]);
    abort();
}
#endif
