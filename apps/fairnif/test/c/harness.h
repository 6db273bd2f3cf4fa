/*
 * harness.h - what runs C tests, each in a process of its own: check.c, for the
 * runtime's and for the watch's.  What their tests have besides is in the
 * check.h of each.
 */
#ifndef HARNESS_H
#define HARNESS_H

#include <stdbool.h>

struct check_test {
    const char *file, *sentence;
    void (*fn)(void);
    struct enif_entry_t *(*init)(void);     /* of the file's library; or NULL */
    const char *last_words;     /* it must die of a signal, with that in what
                                   it wrote to stderr; NULL: it must not */
    void (*before)(void);       /* before the runtime is loaded; or NULL */
    bool needs_tasks;           /* skipped in a build without */
    struct check_test *next;
};
void check_add(struct check_test *test);

__attribute__((format(printf, 4, 5)))
void check_that(bool holds, const char *file, int line, const char *format,
                ...);
int check_failures(void);

#define CHECK(COND) check_that((COND), __FILE__, __LINE__, "%s", #COND)
#define CHECK_NUMBERS(A, REL, B)                                            \
    do {                                                                    \
        long a__ = (long)(A), b__ = (long)(B);                              \
        check_that(a__ REL b__, __FILE__, __LINE__,                         \
                   "%s is %ld, not %s %s = %ld", #A, a__, #REL, #B, b__);   \
    } while (0)

/* Theirs: the tool, and what else the totals name; runs a test, in its process;
 * why it cannot be run, or NULL. */
extern const char check_tool[];
void check_run(const struct check_test *test);
const char *check_skip(const struct check_test *test);

#endif
