/*
 * group.c - the control group whose quota stops this process: which it is, what
 * it allows, and what it has taken.
 *
 * /proc/self/cgroup names the group and /proc/self/mountinfo says where its
 * files are.  A quota may stand further up: the next group that has one counts.
 */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "read/group.h"
#include "read/proc.h"

enum { TEXT = 4096 };

/* Whether one of the words of a comma separated list is `cpu`. */
static bool has_cpu(const char *list)
{
    for (; list; list = strchr(list, ',')) {
        list += *list == ',';
        if (strncmp(list, "cpu", 3) == 0 && strchr(",\n", list[3]))
            return true;
    }
    return false;
}

/* Lines "ID:CONTROLLERS:PATH"; version 2 has no controllers, and counts where no
 * version 1 has `cpu`. */
static bool find_group(const char *file, char path[PATH_MAX], bool *v2)
{
    char line[PATH_MAX + 64];
    bool found = false;
    FILE *f = fopen(file, "re");

    while (f && fgets(line, sizeof line, f)) {
        char *names = strchr(line, ':'), *at = names ? strchr(names + 1, ':')
            : NULL;

        if (!at)
            continue;
        *at++ = '\0';
        at[strcspn(at, "\n")] = '\0';
        if (!has_cpu(names + 1) && (names[1] || found))
            continue;
        *v2 = names[1] == '\0';
        found = true;
        snprintf(path, PATH_MAX, "%s", at);
        if (!*v2)
            break;
    }
    if (f)
        fclose(f);
    return found;
}

/* "ID PARENT DEVICE ROOT MOUNT OPTIONS ... - TYPE SOURCE OPTIONS": where the
 * hierarchy is mounted, and which group of it.  The length of that; 0: nowhere. */
static size_t find_mount(const char *file, bool v2, char path[PATH_MAX])
{
    char line[2 * PATH_MAX], root[PATH_MAX], mount[PATH_MAX], type[16],
        options[256], group[PATH_MAX];
    FILE *f = fopen(file, "re");
    size_t length = 0;

    while (f && !length && fgets(line, sizeof line, f)) {
        const char *rest = strstr(line, " - ");

        if (!rest || sscanf(line, "%*s %*s %*s %4095s %4095s", root, mount) != 2
            || sscanf(rest, " - %15s %*s %255s", type, options) != 2
            || (v2 ? strcmp(type, "cgroup2") != 0
                : strcmp(type, "cgroup") != 0 || !has_cpu(options)))
            continue;
        /* In a container the path may be one of the host's: then what is mounted
         * here is the container's own. */
        length = strcmp(root, "/") == 0 ? 0 : strlen(root);
        snprintf(group, sizeof group, "%s", strncmp(path, root, length) == 0
                 ? path + length : "");
        length = (size_t)snprintf(path, PATH_MAX, "%s%s", mount, group);
        length = length < PATH_MAX ? strlen(mount) : 0;
    }
    if (f)
        fclose(f);
    return length;
}

static int open_in(const char *group, const char *name)
{
    char path[PATH_MAX + 32];

    snprintf(path, sizeof path, "%s/%s", group, name);
    return open(path, O_RDONLY | O_CLOEXEC);
}

static void open_files(struct watch__group *g, const char *group)
{
    g->stat_fd = open_in(group, "cpu.stat");
    g->quota_fd = open_in(group, g->v2 ? "cpu.max" : "cpu.cfs_quota_us");
    g->period_fd = g->v2 ? -1 : open_in(group, "cpu.cfs_period_us");
}

void watch__group_close(struct watch__group *g)
{
    const int fds[] = {g->stat_fd, g->quota_fd, g->period_fd};

    for (unsigned i = 0; i < sizeof fds / sizeof *fds; i++)
        if (fds[i] >= 0)
            close(fds[i]);
}

void watch__group_open(struct watch__group *g, const char *group,
                       const char *mounts)
{
    char path[PATH_MAX], *end;
    size_t mount;

    *g = (struct watch__group){.stat_fd = -1, .quota_fd = -1, .period_fd = -1};
    if (!find_group(group, path, &g->v2)
        || (mount = find_mount(mounts, g->v2, path)) == 0)
        return;
    open_files(g, path);
    while (strlen(path) > mount && (end = strrchr(path, '/'))
           && end >= path + mount) {
        struct watch__group up = {.v2 = g->v2};

        if (watch__group_quota(g) > 0)
            return;
        *end = '\0';
        open_files(&up, path);
        if (g->stat_fd < 0 || watch__group_quota(&up) > 0) {
            watch__group_close(g);
            *g = up;
        } else {
            watch__group_close(&up);
        }
    }
}

/* Thousandths of a processor; 0: no quota. */
uint64_t watch__group_quota(const struct watch__group *g)
{
    char text[TEXT], *end;
    long quota, period;

    if (g->quota_fd < 0 || watch__slurp(g->quota_fd, text, sizeof text) <= 0)
        return 0;
    quota = strtol(text, &end, 10);     /* "max" is 0 */
    if (!g->v2 && (g->period_fd < 0
                   || watch__slurp(g->period_fd, end = text, sizeof text) <= 0))
        return 0;
    period = strtol(end, NULL, 10);
    return quota > 0 && period > 0 ? (uint64_t)quota * 1000 / (uint64_t)period
                                   : 0;
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

/* Where there is none: zeros. */
struct watch__throttled watch__group_read(const struct watch__group *g)
{
    char text[TEXT];

    if (g->stat_fd < 0 || watch__slurp(g->stat_fd, text, sizeof text) <= 0)
        return (struct watch__throttled){0};
    return (struct watch__throttled){
        .periods = number_of(text, "nr_periods"),
        .times = number_of(text, "nr_throttled"),
        .ns = g->v2 ? number_of(text, "throttled_usec") * 1000
            : number_of(text, "throttled_time")
    };
}
