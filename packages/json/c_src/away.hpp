/*
 * away.hpp - what is made of terms in one go, away from the normal schedulers
 * where it takes long.
 */
#ifndef AWAY_HPP
#define AWAY_HPP

#include <fairnif.hpp>

/* Runs `fn()`, which may use the environment of the slice and no task.  It does
 * not pause: terms stay what they are.  Away from the normal schedulers
 * fair_offload says for it that there are no ticks for a while. */
template <class F> void in_one_go(fair::task &t, F &&fn)
{
    if (t.where() == FAIR_NORMAL)
        fn();
    else
        t.offload(t.where(), 1, fn);
}

#endif
