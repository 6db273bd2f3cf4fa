/*
 * classify.c - whether a thread that sleeps does so as an idle scheduler does,
 * or in native code.
 */
#include <sys/syscall.h>

#include "watch.h"

/* What an idle scheduler sleeps in. */
static bool is_idle_call(long number)
{
    switch (number) {
    case SYS_futex:
    case SYS_ppoll:
    case SYS_pselect6:
    case SYS_epoll_pwait:
#ifdef SYS_poll
    case SYS_poll:
    case SYS_select:
    case SYS_epoll_wait:
#endif
        return true;
    default:
        return false;
    }
}

enum watch__class watch__classify(struct watch *w, struct watch__thread *t)
{
    ADD(w->counters.classified, 1);
    return is_idle_call(t->place.syscall) ? C_IDLE : C_NATIVE;
}
