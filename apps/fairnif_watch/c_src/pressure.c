/*
 * pressure.c - what takes processors away from the whole process: the quota of
 * its cgroup (version 2 or 1), and the hypervisor.
 *
 * Read when a scheduler was ready for long and got no processor, so that this
 * is not taken for a blocked one.  Where the system does not say: 0.
 *
 * What the hypervisor steals of a processor is counted when that one comes
 * back.  Until then it shows only in that nothing else of it is counted.
 */
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "watch.h"

enum { TEXT = 4096 };

static int read_file(const char *path, char *text, size_t size)
{
    int fd = open(path, O_RDONLY | O_CLOEXEC), n;

    text[0] = '\0';
    if (fd < 0)
        return -1;
    n = watch__slurp(fd, text, size);
    close(fd);
    return n;
}

/* Whether a comma separated list of controllers has `cpu`. */
static bool has_cpu(const char *list, size_t length)
{
    while (length > 0) {
        const char *comma = memchr(list, ',', length);
        size_t n = comma ? (size_t)(comma - list) : length;

        if (n == 3 && strncmp(list, "cpu", 3) == 0)
            return true;
        n += comma != NULL;
        list += n;
        length -= n;
    }
    return false;
}

static int open_stat(const char *root, const char *group)
{
    char path[PATH_MAX];

    if (snprintf(path, sizeof path, "%s%s/cpu.stat", root, group)
        >= (int)sizeof path)
        return -1;
    return open(path, O_RDONLY | O_CLOEXEC);
}

/* Lines "ID:CONTROLLERS:PATH"; version 2 has no controllers.  In a container
 * the path may be one of the host's: then the root of what is mounted here is
 * the container's own. */
static int open_cgroup(char *text, bool *in_us)
{
    static const char *const v1[] = {"/sys/fs/cgroup/cpu,cpuacct",
                                     "/sys/fs/cgroup/cpu"};
    char *rest, *line;
    int fd = -1;

    for (line = strtok_r(text, "\n", &rest); line && fd < 0;
         line = strtok_r(NULL, "\n", &rest)) {
        char *names = strchr(line, ':'), *path;

        if (!names || !(path = strchr(++names, ':')))
            continue;
        *in_us = path == names;
        if (*in_us) {
            if ((fd = open_stat("/sys/fs/cgroup", path + 1)) < 0)
                fd = open_stat("/sys/fs/cgroup", "");
        } else if (has_cpu(names, (size_t)(path - names))) {
            for (unsigned i = 0; i < 2 && fd < 0; i++)
                if ((fd = open_stat(v1[i], path + 1)) < 0)
                    fd = open_stat(v1[i], "");
        }
    }
    return fd;
}

void watch__pressure_open(struct watch__pressure *p)
{
    char text[TEXT];
    long hz = sysconf(_SC_CLK_TCK), configured = sysconf(_SC_NPROCESSORS_CONF);

    p->stat_fd = open("/proc/stat", O_RDONLY | O_CLOEXEC);
    p->cgroup_fd = read_file("/proc/self/cgroup", text, sizeof text) > 0
        ? open_cgroup(text, &p->in_us) : -1;
    p->tick_ns = NS_PER_S / (hz > 0 ? (uint64_t)hz : 100);
    memset(p->kept, 0, sizeof p->kept);
    p->processors = configured > 0 ? (unsigned)configured : 0;
    for (unsigned i = 0; i < 2; i++) {
        p->kept[i].stolen_ns = calloc(p->processors + 1, sizeof(uint64_t));
        if (!p->kept[i].stolen_ns)
            p->processors = 0;
    }
}

void watch__pressure_close(struct watch__pressure *p)
{
    if (p->stat_fd >= 0)
        close(p->stat_fd);
    if (p->cgroup_fd >= 0)
        close(p->cgroup_fd);
    for (unsigned i = 0; i < 2; i++)
        free(p->kept[i].stolen_ns);
}

/* The number behind `key` at the beginning of a line. */
static uint64_t number_of(const char *text, const char *key)
{
    size_t n = strlen(key);

    for (const char *line = text; line; line = strchr(line, '\n')) {
        line += *line == '\n';
        if (strncmp(line, key, n) == 0 && line[n] == ' ')
            return strtoull(line + n, NULL, 10);
    }
    return 0;
}

/* "USER NICE SYSTEM IDLE IOWAIT IRQ SOFTIRQ STEAL ..." */
static struct watch__counted columns(const char *text, uint64_t tick_ns)
{
    struct watch__counted c = {0};
    char *p = (char *)(uintptr_t)text;

    for (unsigned i = 0; i < 7; i++)
        c.own_ns += strtoull(p, &p, 10) * tick_ns;
    c.stolen_ns = strtoull(p, &p, 10) * tick_ns;
    return c;
}

void watch__pressure_read(const struct watch__pressure *p,
                          uint64_t *throttled_ns, uint64_t *stolen_ns)
{
    char text[TEXT];

    *throttled_ns = *stolen_ns = 0;
    if (p->cgroup_fd >= 0 && watch__slurp(p->cgroup_fd, text, sizeof text) > 0)
        *throttled_ns = p->in_us ? number_of(text, "throttled_usec") * 1000
            : number_of(text, "throttled_time");
    if (p->stat_fd >= 0 && watch__slurp(p->stat_fd, text, sizeof text) > 3)
        *stolen_ns = columns(text + 3, p->tick_ns).stolen_ns;
}

/* Each processor's line, "cpuN COLUMNS"; they are the first ones of /proc/stat,
 * behind that of all.  Until `take` has what it looks for, and is true. */
static bool each(const struct watch__pressure *p,
                 bool (*take)(void *arg, unsigned long number,
                              struct watch__counted c), void *arg)
{
    char text[TEXT], *line, *end, *rest;
    size_t kept = 0;
    off_t at = 0;
    ssize_t n;

    if (p->stat_fd < 0)
        return false;
    while ((n = pread(p->stat_fd, text + kept, sizeof text - 1 - kept, at))
           > 0) {
        at += n;
        text[kept + (size_t)n] = '\0';
        for (line = text; (end = strchr(line, '\n')) != NULL; line = end + 1) {
            unsigned long number;

            if (strncmp(line, "cpu", 3) != 0)
                return false;
            number = strtoul(line + 3, &rest, 10);
            if (line[3] != ' '
                && take(arg, number, columns(rest, p->tick_ns)))
                return true;
        }
        kept = strlen(line);
        memmove(text, line, kept);
    }
    return false;
}

static bool keep(void *arg, unsigned long number, struct watch__counted c)
{
    struct watch__pressure *p = arg;

    if (number < p->processors)
        p->kept[0].stolen_ns[number] = c.stolen_ns;
    return false;
}

void watch__pressure_keep(struct watch__pressure *p, uint64_t now)
{
    struct watch__kept newer = p->kept[1];

    if (!p->processors || now - p->kept[0].at < NS_PER_S)
        return;
    p->kept[1] = p->kept[0];
    p->kept[0] = newer;
    p->kept[0].at = now;
    each(p, keep, p);
}

struct wanted {
    unsigned long number;
    struct watch__counted *c;
};

static bool is_wanted(void *arg, unsigned long number, struct watch__counted c)
{
    struct wanted *w = arg;

    if (number == w->number)
        *w->c = c;
    return number == w->number;
}

bool watch__counted(const struct watch__pressure *p, int processor,
                    struct watch__counted *c)
{
    struct wanted w = {(unsigned long)processor, c};

    return processor >= 0 && each(p, is_wanted, &w);
}

uint64_t watch__stolen_since(const struct watch__pressure *p, int processor,
                             uint64_t at)
{
    const struct watch__kept *kept = &p->kept[p->kept[0].at > at];
    struct watch__counted c;

    if (processor < 0 || (unsigned)processor >= p->processors || !kept->at
        || !watch__counted(p, processor, &c))
        return 0;
    return watch__less(c.stolen_ns, kept->stolen_ns[processor]);
}

uint64_t watch__missing(const struct watch__pressure *p,
                        const struct watch__counted *from,
                        const struct watch__counted *to, uint64_t elapsed_ns)
{
    /* Each column of the time of its own is rounded, so little of it says
     * nothing in a short time. */
    if (elapsed_ns >= 6 * p->tick_ns
        && watch__less(to->own_ns, from->own_ns) < elapsed_ns / 2)
        return elapsed_ns;
    return watch__less(to->stolen_ns, from->stolen_ns);
}
