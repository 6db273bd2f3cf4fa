/*
 * away.hpp - what is made of terms in one go, away from the normal schedulers
 * where it takes long.
 */
#ifndef AWAY_HPP
#define AWAY_HPP

#include <fairnif.h>

/* Runs `fn(arg)`, which may use the environment of the slice and no task.  It
 * does not pause: terms stay what they are.  Away from the normal schedulers
 * fair_call says for it that there are no ticks for a while. */
static inline void in_one_go(fair_task *t, void (*fn)(void *), void *arg)
{
    if (fair_where(t) == FAIR_NORMAL)
        fn(arg);
    else
        fair_call(t, fair_where(t), 1, fn, arg);
}

#endif
