/*
 * print.h - a dump, for people and for programs.
 */
#ifndef WATCH_PRINT_H
#define WATCH_PRINT_H

#include <stdio.h>

#include "outside/verdict.h"

/* The verdict, then a table of threads; `all`: also the frames of threads that
 * sleep idle. */
WATCH_HIDDEN void watch__print(FILE *to, const struct watch__dump *d,
                               const struct watch__verdict *v, bool all);
/* One object, UTF-8; docs/reference/stacks.md. */
WATCH_HIDDEN void watch__print_json(FILE *to, const struct watch__dump *d,
                                    const struct watch__verdict *v);

#endif
