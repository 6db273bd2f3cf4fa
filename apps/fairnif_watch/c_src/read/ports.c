/*
 * ports.c - CPU time of the programs that this process started, and of those
 * that they started: port programs.  They are found in /proc by their parents.
 */
#include <dirent.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "read/ports.h"
#include "read/proc.h"

enum { MOST = 1024 };           /* processes: 8 us each */

struct process {
    int pid, parent;
    uint64_t ticks;             /* with those of children that have ended */
    bool is_ours;
};

static bool read_process(int pid, struct process *p)
{
    enum { PARENT = 4, UTIME = 14, CSTIME = 17 };
    char path[32], text[1024], *at;
    int fd;

    snprintf(path, sizeof path, "/proc/%d/stat", pid);
    fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0)
        return false;
    at = watch__slurp(fd, text, sizeof text) > 0 ? strrchr(text, ')') : NULL;
    close(fd);
    if (!at || strlen(at) < 4)
        return false;
    *p = (struct process){.pid = pid};
    at += 3;
    for (int field = PARENT; field <= CSTIME; field++) {
        uint64_t n = strtoull(at, &at, 10);

        if (field == PARENT)
            p->parent = (int)n;
        if (field >= UTIME)
            p->ticks += n;
    }
    return true;
}

/* A program's children have ended before it, and count with it then: so the sum
 * falls when one ends that nobody waits for, and at no other time. */
static uint64_t sum_ticks(struct process *all, unsigned count)
{
    bool found = true;
    uint64_t ticks = 0;

    while (found) {
        found = false;
        for (unsigned i = 0; i < count; i++)
            for (unsigned k = 0; k < count && !all[i].is_ours; k++)
                if (all[k].is_ours && all[k].pid == all[i].parent)
                    found = all[i].is_ours = true;
    }
    for (unsigned i = 0; i < count; i++)
        if (all[i].is_ours && all[i].pid != getpid())
            ticks += all[i].ticks;
    return ticks;
}

bool watch__ports(uint64_t *ticks)
{
    struct process *all = malloc(MOST * sizeof *all);
    DIR *dir = all ? opendir("/proc") : NULL;
    unsigned count = 0;
    struct dirent *entry;
    bool fits = true;

    while (dir && fits && (entry = readdir(dir)) != NULL) {
        int pid = atoi(entry->d_name);

        if (pid <= 0 || !read_process(pid, &all[count]))
            continue;
        all[count].is_ours = pid == getpid();
        fits = ++count < MOST;
    }
    if (dir)
        closedir(dir);
    *ticks = dir ? sum_ticks(all, count) : 0;
    free(all);
    return dir && fits;
}
