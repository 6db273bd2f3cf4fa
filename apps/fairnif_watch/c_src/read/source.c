/*
 * source.c - whose memory and threads are looked at.
 *
 * In a node that is watched it is its own, and nothing here is ever set.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "read/source.h"

/* Linux 5.6's, which older headers do not have. */
#ifndef SYS_openat2
#define SYS_openat2 437
#endif
enum { IN_ROOT = 0x10 };
struct how { uint64_t flags, mode, resolve; };

static const struct watch__source *current;
static const unsigned char *laid;
static uint64_t laid_from;
static size_t laid_size;

void watch__source_set(const struct watch__source *source)
{
    current = source;
}

const struct watch__source *watch__source(void)
{
    return current;
}

void watch__source_lay(const void *copy, uint64_t from, size_t size)
{
    laid = copy;
    laid_from = from;
    laid_size = copy ? size : 0;
}

const void *watch__source_laid(uint64_t from, size_t size)
{
    uint64_t at = from - laid_from;

    return from >= laid_from && at < laid_size && size <= laid_size - at
        ? laid + at : NULL;
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

/* Below the other process's root, whatever its links say. */
static int open_below(int pid, const char *path)
{
    const struct how how = {
        .flags = O_PATH | O_CLOEXEC, .resolve = IN_ROOT
    };
    char root[64];
    int dir, fd;

    snprintf(root, sizeof root, "/proc/%d/root", pid);
    dir = open(root, O_PATH | O_DIRECTORY | O_CLOEXEC);
    if (dir < 0)
        return -1;
    fd = (int)syscall(SYS_openat2, dir, path, &how, sizeof how);
    close(dir);
    if (fd < 0 && (errno == ENOSYS || errno == EPERM)) {
        char whole[4096 + 64];

        snprintf(whole, sizeof whole, "%s%s", root, path);
        fd = open(whole, O_PATH | O_CLOEXEC);
    }
    /* In a mere chroot paths are as we see them; whether it is the same file
     * its build id says. */
    return fd >= 0 ? fd : open(path, O_PATH | O_CLOEXEC);
}

/* Looked at before it is opened: a device would notice that. */
int watch__source_open_file(const char *path)
{
    int at = current && current->pid ? open_below(current->pid, path)
        : open(path, O_PATH | O_CLOEXEC), fd = -1;
    char name[64];
    struct stat st;

    if (at < 0)
        return -1;
    snprintf(name, sizeof name, "/proc/self/fd/%d", at);
    if (fstat(at, &st) == 0 && S_ISREG(st.st_mode))
        fd = open(name, O_RDONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK);
    close(at);
    return fd;
}
