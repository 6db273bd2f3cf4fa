/*
 * locks.c - checks the order in which a thread takes locks.
 */
#include "base/locks.h"

struct fair__mutex fair__waiting = FAIR__MUTEX(RANK_WAITING);

#ifdef FAIRNIF_ASSERT
#  include <stdio.h>
#  include <stdlib.h>

static _Thread_local bool low;

/* This thread may wait behind others: it takes none. */
void fair__assert_no_locks(void) { low = true; }

/* A bit for each.  Not inlined: a task may call it on one thread and then on
 * another. */
__attribute__((noinline)) void fair__assert_rank(enum fair__rank rank,
                                                 bool taken)
{
    static _Thread_local unsigned held;

    if (taken && low) {
        fprintf(stderr, "fairnif: a thread of low priority takes lock %d of "
                "base/locks.h\n", (int)rank);
        abort();
    }
    if (taken && held >> rank) {
        fprintf(stderr, "fairnif: a thread takes lock %d of base/locks.h while "
                "it holds %#x (a bit for each)\n", (int)rank, held);
        abort();
    }
    held ^= 1u << rank;
}
#endif
