/*
 * command.c - what the command lines of `stacks' and `record' have in common.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "outside/command.h"
#include "outside/print.h"
#include "read/source.h"

unsigned watch__command_number(const char *text, unsigned most)
{
    char *end;
    unsigned long n = strtoul(text, &end, 10);

    return *text >= '0' && *text <= '9' && !*end && n <= most ? (unsigned)n : 0;
}

static int pid_of(const struct watch__whom *whom, char why[WATCH__WHY])
{
    unsigned pid;

    if (whom->name)
        return watch__target_named(whom->name, why);
    if (whom->container)
        return watch__target_contained(whom->container, why);
    pid = watch__command_number(whom->pid, 1 << 30);
    if (!pid)
        snprintf(why, WATCH__WHY, "%s is no number of a process; if it is a "
                 "node's name: --name %s", whom->pid, whom->pid);
    return (int)pid;
}

bool watch__command_node(const struct watch__whom *whom, struct watch__dump *d,
                         char why[WATCH__WHY])
{
    int pid = pid_of(whom, why);

    if (!pid || !watch__target_set(pid, why))
        return false;
    d->pid = watch__source_pid();
    watch__target_name(d->pid, d->name, sizeof d->name);
    return true;
}

bool watch__command_help(int argc, char **argv, const char *usage)
{
    for (int i = 1; i < argc; i++)
        if (!strcmp(argv[i], "--help") || !strcmp(argv[i], "-h")) {
            fputs(usage, stdout);
            return true;
        }
    return false;
}

int watch__command_failed(const char *why)
{
    fputs("fairnif: ", stderr);
    watch__plain_text(stderr, why);
    putc('\n', stderr);
    return WATCH__UNSEEN;
}

int watch__command_misused(const char *command, const char *what,
                           const char *argument, const char *usage)
{
    fprintf(stderr, "fairnif: %s: %s%s\n%s", command, what, argument, usage);
    return WATCH__USAGE;
}
