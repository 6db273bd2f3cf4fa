/*
 * wait.c - fair_wait: for time, and for descriptors.
 */
#include <errno.h>

#include "rt.h"

int fair__wait(fair_task *pub, int fd, unsigned events, int timeout_ms)
{
    struct fair__task *t = fair__of(pub);

    if (fd != -1 || events)
        return -EINVAL;
    t->deadline_ns = timeout_ms < 0 ? 0
        : fair__now() + (uint64_t)timeout_ms * 1000000;
    fair__wait_for(t, P_SLEEP);
    return 0;
}
