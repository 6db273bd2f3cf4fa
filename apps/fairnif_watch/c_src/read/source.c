/*
 * source.c - whose memory and threads are looked at.
 *
 * In a node that is watched it is its own, and nothing here is ever set.
 */
#define _GNU_SOURCE
#include <fcntl.h>
#include <stdio.h>
#include <unistd.h>

#include "read/source.h"

static const struct watch__source *current;

void watch__source_set(const struct watch__source *source)
{
    current = source;
}

const struct watch__source *watch__source(void)
{
    return current;
}

bool watch__source_is_own(void)
{
    return !current;
}

int watch__source_pid(void)
{
    return current ? current->pid : getpid();
}

const char *watch__source_name(char path[WATCH__PROC], const char *name)
{
    if (current)
        snprintf(path, WATCH__PROC, "/proc/%d/%s", current->pid, name);
    else
        snprintf(path, WATCH__PROC, "/proc/self/%s", name);
    return path;
}

int watch__source_open(const char *name)
{
    char path[WATCH__PROC];

    if (current && current->open)
        return current->open(name);
    return open(watch__source_name(path, name), O_RDONLY | O_CLOEXEC);
}

void watch__source_path(char *to, size_t size, const char *path)
{
    if (current && current->pid)
        snprintf(to, size, "/proc/%d/root%s", current->pid, path);
    else
        snprintf(to, size, "%s", path);
}
