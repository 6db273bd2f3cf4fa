/*
 * pressure.h - what takes processors away from the whole process.
 */
#ifndef WATCH_PRESSURE_H
#define WATCH_PRESSURE_H

#include "read/group.h"

struct watch__pressure {
    int stat_fd;
    struct watch__group group;
    uint64_t tick_ns;           /* of /proc/stat */
    uint64_t all, busy, own, normal, ports;     /* at the last watch__shares */
};
struct watch__shares {          /* thousandths of the time of all processors */
    unsigned others, ports, native;     /* native: own threads, but schedulers' */
    uint64_t stolen_ns;         /* in all */
};
WATCH_HIDDEN void watch__pressure_open(struct watch__pressure *p);
WATCH_HIDDEN void watch__pressure_close(struct watch__pressure *p);
WATCH_HIDDEN void watch__pressure_read(const struct watch__pressure *p,
                                       uint64_t *throttled_ns,
                                       uint64_t *stolen_ns);
WATCH_HIDDEN struct watch__shares watch__shares(struct watch__pressure *p,
                                                uint64_t normal, bool ports);

#endif
