/*
 * group.h - the control group and its quota.
 */
#ifndef WATCH_GROUP_H
#define WATCH_GROUP_H

#include "read/common.h"

struct watch__group {
    int stat_fd, quota_fd, period_fd;
    bool v2;
};
struct watch__throttled {
    uint64_t periods, times;    /* of the quota; in which it stopped us */
    uint64_t ns;                /* for how long, of all processors */
};
/* Files as /proc/self/cgroup and /proc/self/mountinfo. */
WATCH_HIDDEN void watch__group_open(struct watch__group *g, const char *group,
                                    const char *mounts);
WATCH_HIDDEN void watch__group_close(struct watch__group *g);
WATCH_HIDDEN uint64_t watch__group_quota(const struct watch__group *g);
WATCH_HIDDEN struct watch__throttled watch__group_read(
    const struct watch__group *g);

#endif
