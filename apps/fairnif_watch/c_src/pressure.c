/*
 * pressure.c - what takes processors away from the whole process: the quota of
 * its cgroup (version 2 or 1), and the hypervisor.
 *
 * Read when a scheduler was ready for long and got no processor, so that this
 * is not taken for a blocked one.  Where the system does not say: 0.
 */
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "proc.h"
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
    long hz = sysconf(_SC_CLK_TCK);

    p->stat_fd = open("/proc/stat", O_RDONLY | O_CLOEXEC);
    p->cgroup_fd = read_file("/proc/self/cgroup", text, sizeof text) > 0
        ? open_cgroup(text, &p->in_us) : -1;
    p->tick_ns = NS_PER_S / (hz > 0 ? (uint64_t)hz : 100);
}

void watch__pressure_close(struct watch__pressure *p)
{
    if (p->stat_fd >= 0)
        close(p->stat_fd);
    if (p->cgroup_fd >= 0)
        close(p->cgroup_fd);
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
static uint64_t steal_of(const char *text)
{
    char *p = (char *)(uintptr_t)text;

    for (unsigned i = 0; i < 7; i++)
        strtoull(p, &p, 10);
    return strtoull(p, &p, 10);
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
        *stolen_ns = steal_of(text + 3) * p->tick_ns;
}
