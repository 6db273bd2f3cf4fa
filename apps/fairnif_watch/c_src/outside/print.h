/*
 * print.h - a dump, for people and for programs.
 */
#ifndef WATCH_PRINT_H
#define WATCH_PRINT_H

#include <stdio.h>

#include "outside/verdict.h"

/* A text from outside (names of threads, of files, atoms) without what a terminal
 * obeys: control characters and what is no UTF-8. */
WATCH_HIDDEN void watch__plain_text(FILE *to, const char *text);
/* How many bytes the UTF-8 character takes; 0: it is none. */
WATCH_HIDDEN size_t watch__utf8(const unsigned char *s);
/* The verdict, then a table of threads; `all`: also the frames of threads that
 * sleep idle. */
WATCH_HIDDEN void watch__print(FILE *to, const struct watch__dump *d,
                               const struct watch__verdict *v, bool all);
/* One object, UTF-8. */
WATCH_HIDDEN void watch__print_json(FILE *to, const struct watch__dump *d,
                                    const struct watch__verdict *v);

#endif
