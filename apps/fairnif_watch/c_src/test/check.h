/*
 * check.h - tests of stack.h's parts.
 *
 * A test is a function whose name for people is a sentence.  Each runs in a
 * process of its own, under a time limit, and passes when every check held and
 * no sanitizer had a complaint.
 */
#ifndef CHECK_H
#define CHECK_H

#include "../image.h"

struct check_test {
    const char *file, *sentence;
    void (*fn)(void);
    struct check_test *next;
};
void check_add(struct check_test *test);

#define TEST(FN, SENTENCE)                                                  \
    static void FN(void);                                                   \
    __attribute__((constructor)) static void add_##FN(void)                 \
    {                                                                       \
        static struct check_test test = {__FILE__, SENTENCE, FN, NULL};     \
        check_add(&test);                                                   \
    }                                                                       \
    static void FN(void)

__attribute__((format(printf, 4, 5)))
void check_that(bool holds, const char *file, int line, const char *format,
                ...);

#define CHECK(COND) check_that((COND), __FILE__, __LINE__, "%s", #COND)
#define CHECK_NUMBERS(A, REL, B)                                            \
    do {                                                                    \
        long a__ = (long)(A), b__ = (long)(B);                              \
        check_that(a__ REL b__, __FILE__, __LINE__,                         \
                   "%s is %ld, not %s %s = %ld", #A, a__, #REL, #B, b__);   \
    } while (0)
#define CHECK_TEXT(IS, SHOULD)                                              \
    check_that(!strcmp((IS), (SHOULD)), __FILE__, __LINE__,                 \
               "%s instead of %s", (IS), (SHOULD))

/* Some seconds, or how much longer a storm shall last (WATCH_STORM=10). */
double check_storm(void);
/* In an emulator of another processor /proc shows the emulator's registers. */
bool check_emulated(void);
/* A file beside the test program. */
const char *check_file(const char *name);

#endif
