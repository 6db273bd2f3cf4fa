/*
 * command.h - what the command lines of `stacks' and `record' have in common.
 */
#ifndef WATCH_COMMAND_H
#define WATCH_COMMAND_H

#include "outside/dump.h"
#include "outside/target.h"

/* Which node: one of them. */
struct watch__whom {
    const char *pid, *name, *container;
};

/* Makes it the source, d->pid and d->name its own; false: `why'. */
WATCH_HIDDEN bool watch__command_node(const struct watch__whom *whom,
                                      struct watch__dump *d,
                                      char why[WATCH__WHY]);
/* 0: it is none, or larger. */
WATCH_HIDDEN unsigned watch__command_number(const char *text, unsigned most);
/* Prints `usage' where --help is asked for. */
WATCH_HIDDEN bool watch__command_help(int argc, char **argv,
                                      const char *usage);
/* Exit codes, after the reason is printed. */
WATCH_HIDDEN int watch__command_failed(const char *why);
WATCH_HIDDEN int watch__command_misused(const char *command, const char *what,
                                        const char *argument,
                                        const char *usage);

#endif
