/*
 * threads.c - which thread is which scheduler, by name.
 *
 * The names are data.  OTP 25 and 26 number in front and the kernel cuts the
 * names to 15 bytes; from OTP 27 on the number stands behind.  A node whose
 * threads have other names is refused: to watch the wrong thread is worse than
 * to watch none.
 */
#include <ctype.h>
#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "read/threads.h"
#include "read/proc.h"
#include "read/source.h"

const char *const watch__kind_names[K_KINDS] = {
    [K_NORMAL] = "normal", [K_DIRTY_CPU] = "dirty_cpu",
    [K_DIRTY_IO] = "dirty_io"
};

static const struct {
    enum watch__sched kind;
    const char *before, *after; /* of the number; `after` may be cut short */
    size_t least;               /* of `after`, so that it is still told */
} names[] = {
    /* OTP 25, 26 */
    {K_NORMAL, "", "_scheduler", 5},
    {K_DIRTY_CPU, "", "_dirty_cpu_scheduler", 10},
    {K_DIRTY_IO, "", "_dirty_io_scheduler", 9},
    /* OTP 27 to 29 */
    {K_NORMAL, "erts_sched_", "", 0},
    {K_DIRTY_CPU, "erts_dcpus_", "", 0},
    {K_DIRTY_IO, "erts_dios_", "", 0},
};

bool watch__parse_name(const char *name, enum watch__sched *kind,
                       unsigned *number)
{
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        size_t before = strlen(names[i].before), rest;
        char *end;

        if (strncmp(name, names[i].before, before) != 0
            || !isdigit((unsigned char)name[before]))
            continue;
        *number = (unsigned)strtoul(name + before, &end, 10);
        rest = strlen(end);
        if (*number == 0 || rest < names[i].least
            || rest > strlen(names[i].after)
            || strncmp(end, names[i].after, rest) != 0)
            continue;
        *kind = names[i].kind;
        return true;
    }
    return false;
}

void watch__each_thread(void (*fn)(int tid, const char *name, void *arg),
                        void *arg)
{
    char path[WATCH__PROC], name[32];
    DIR *dir = opendir(watch__source_name(path, "task"));
    struct dirent *entry;

    while (dir && (entry = readdir(dir)) != NULL) {
        int tid = atoi(entry->d_name);

        if (tid <= 0 || watch__read_once(tid, "comm", name, sizeof name) != 0)
            continue;
        name[strcspn(name, "\n")] = '\0';
        fn(tid, name, arg);
    }
    if (dir)
        closedir(dir);
}

struct search {
    struct watch__tids *tids;
    char *unknown;
    size_t used, size;
};

/* The first of a name: threads are listed in the order in which they were made,
 * and one that native code made has its maker's name until it is given
 * another. */
static void take_thread(int tid, const char *name, void *arg)
{
    struct search *s = arg;
    enum watch__sched kind;
    unsigned number;

    if (watch__parse_name(name, &kind, &number)) {
        if (number <= s->tids->count[kind]
            && !s->tids->tid[kind][number - 1])
            s->tids->tid[kind][number - 1] = tid;
    } else if (name[0] && s->used + strlen(name) + 2 < s->size) {
        s->used += (size_t)sprintf(s->unknown + s->used, "%s%s",
                                   s->used ? " " : "", name);
    }
}

bool watch__find_threads(struct watch__tids *tids, char *unknown, size_t size)
{
    struct search s = {.tids = tids, .unknown = unknown, .size = size};

    unknown[0] = '\0';
    watch__each_thread(take_thread, &s);
    for (unsigned k = 0; k < K_KINDS; k++)
        for (unsigned i = 0; i < tids->count[k]; i++)
            if (!tids->tid[k][i])
                return false;
    return true;
}
