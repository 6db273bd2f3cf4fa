/*
 * pressure.c - what takes processors away from the whole process: the quota of
 * its control group, the hypervisor, and other programs.
 *
 * The first two are read when a scheduler was ready for long and got no
 * processor, so that this is not taken for a blocked one.  Where the system does
 * not say: 0.
 */
#include <fcntl.h>
#include <stdlib.h>
#include <unistd.h>

#include "read/pressure.h"
#include "read/ports.h"
#include "read/proc.h"
#include "read/task.h"

enum { TEXT = 4096 };

void watch__pressure_open(struct watch__pressure *p)
{
    long hz = sysconf(_SC_CLK_TCK);

    *p = (struct watch__pressure){
        .stat_fd = open("/proc/stat", O_RDONLY | O_CLOEXEC),
        .tick_ns = NS_PER_S / (hz > 0 ? (uint64_t)hz : 100),
    };
    watch__group_open(&p->group, "/proc/self/cgroup", "/proc/self/mountinfo");
}

void watch__pressure_close(struct watch__pressure *p)
{
    if (p->stat_fd >= 0)
        close(p->stat_fd);
    watch__group_close(&p->group);
}

enum { USER, NICE, SYSTEM, IDLE, IOWAIT, IRQ, SOFTIRQ, STEAL, STATES };

/* Ticks that all processors together spent in each state; false: not known. */
static bool read_states(const struct watch__pressure *p, uint64_t ticks[STATES])
{
    char text[TEXT], *at = text + 3;    /* behind "cpu" */

    if (p->stat_fd < 0 || watch__slurp(p->stat_fd, text, sizeof text) <= 3)
        return false;
    for (unsigned i = 0; i < STATES; i++)
        ticks[i] = strtoull(at, &at, 10);
    return true;
}

void watch__pressure_read(const struct watch__pressure *p,
                          uint64_t *throttled_ns, uint64_t *stolen_ns)
{
    uint64_t ticks[STATES];

    *throttled_ns = watch__group_read(&p->group).ns;
    *stolen_ns = read_states(p, ticks) ? ticks[STEAL] * p->tick_ns : 0;
}

static unsigned part(uint64_t of, uint64_t all)
{
    return of < all ? (unsigned)(of * 1000 / all) : of ? 1000 : 0;
}

/* What `now` is more than at the last call; the first one answers 0. */
static uint64_t since(uint64_t *before, uint64_t now)
{
    uint64_t more = *before ? watch__less(now, *before) : 0;

    *before = now;
    return more;
}

/* Who had the processors since the last call, of which the first answers zeros,
 * and what the hypervisor has taken.  `normal`: CPU time of the normal
 * schedulers.  Programs that this one started are looked for if `ports`, and are
 * among the others else. */
struct watch__shares watch__shares(struct watch__pressure *p, uint64_t normal,
                                   bool ports)
{
    uint64_t ticks[STATES], sum = 0, all, taken, own, native, started = 0;

    if (!read_states(p, ticks))
        return (struct watch__shares){0};
    for (unsigned i = 0; i < STATES; i++)
        sum += ticks[i];
    taken = since(&p->busy, (sum - ticks[IDLE] - ticks[IOWAIT]) * p->tick_ns);
    all = since(&p->all, sum * p->tick_ns);
    own = since(&p->own, watch__cpu(CLOCK_PROCESS_CPUTIME_ID));
    native = watch__less(own, since(&p->normal, normal));
    ports = ports && watch__ports(&started);
    started = since(&p->ports, ports ? started * p->tick_ns : 0);
    taken = watch__less(taken, own);
    return (struct watch__shares){
        .others = part(watch__less(taken, started), all),
        .ports = part(started, all), .native = part(native, all),
        .stolen_ns = ticks[STEAL] * p->tick_ns
    };
}
