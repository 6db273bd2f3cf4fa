/*
 * proc.c - what /proc/PID/task says of one thread.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "read/proc.h"
#include "read/source.h"

int watch__open(int tid, const char *name)
{
    char path[64];

    snprintf(path, sizeof path, "task/%d/%s", tid, name);
    return watch__source_open(path);
}

void watch__open_once(int *fd, int tid, const char *name)
{
    if (*fd == -1 && (*fd = watch__open(tid, name)) < 0)
        *fd = -2;
}

int watch__slurp(int fd, char *text, size_t size)
{
    ssize_t n = pread(fd, text, size - 1, 0);

    text[n > 0 ? n : 0] = '\0';
    return (int)n;
}

int watch__read_once(int tid, const char *name, char *text, size_t size)
{
    int fd = watch__open(tid, name), error;

    if (fd < 0)
        return errno;
    error = watch__slurp(fd, text, size) < 0 ? errno : 0;
    close(fd);
    return error;
}

/* 17 (beam.smp) R 1 ...: the name may hold anything, a parenthesis too. */
int watch__thread_stat(int tid, struct watch__stat *t)
{
    enum { UTIME = 14, STIME = 15, STARTTIME = 22 };
    char text[1024], *p;
    int error = watch__read_once(tid, "stat", text, sizeof text);

    if (error)
        return error;
    p = strrchr(text, ')');
    if (!p || strlen(p) < 4)
        return EINVAL;
    memset(t, 0, sizeof *t);
    t->state = p[2];
    p += 3;
    for (int field = 4; field <= STARTTIME; field++) {
        uint64_t n = strtoull(p, &p, 10);

        if (field == UTIME)
            t->user_ticks = n;
        if (field == STIME)
            t->kernel_ticks = n;
        if (field == STARTTIME)
            t->started = n;
    }
    return 0;
}

int watch__parse_call(const char *text, struct watch__call *c)
{
    uint64_t n[8] = {0};
    char *p, *end;
    int count = 0;

    memset(c, 0, sizeof *c);
    c->number = -1;
    if (text[0] == 'r') {
        c->kind = CALL_RUNNING;
        return 0;
    }
    c->number = strtol(text, &p, 10);
    while (count < 8) {
        n[count] = strtoull(p, &end, 16);
        if (end == p)
            break;
        p = end;
        count++;
    }
    if (count != 2 && count != 8)
        return EINVAL;
    c->kind = c->number >= 0 ? CALL_IN : CALL_NONE;
    c->arg = count == 8 ? n[0] : 0;
    c->sp = n[count - 2];
    c->pc = n[count - 1];
    return 0;
}

int watch__thread_call(int tid, struct watch__call *c)
{
    char text[512];
    int error = watch__read_once(tid, "syscall", text, sizeof text);

    return error ? error : watch__parse_call(text, c);
}

bool watch__thread_blocks(int tid, int signal)
{
    static const char key[] = "\nSigBlk:";
    char text[4096], *p;

    if (watch__read_once(tid, "status", text, sizeof text))
        return true;
    p = strstr(text, key);
    return !p || strtoull(p + sizeof key - 1, NULL, 16) >> (signal - 1) & 1;
}
