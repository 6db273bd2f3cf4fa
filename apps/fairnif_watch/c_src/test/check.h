/*
 * check.h - tests of what needs no VM.
 *
 * A test is a function whose name for people is a sentence.  Each runs in a
 * process of its own, under a time limit, and passes when every check held and
 * no sanitizer had a complaint.
 */
#ifndef CHECK_H
#define CHECK_H

#include "../../../fairnif/test/c/harness.h"
#include "read/bytes.h"
#include "read/mem.h"
#include "read/task.h"
#include "unwind/capture.h"
#include "unwind/name.h"
#include "unwind/table.h"
#include "unwind/unwind.h"

#define TEST(FN, SENTENCE)                                                  \
    static void FN(void);                                                   \
    __attribute__((constructor)) static void add_##FN(void)                 \
    {                                                                       \
        static struct check_test test = {                                   \
            .file = __FILE__, .sentence = SENTENCE, .fn = FN                \
        };                                                                  \
        check_add(&test);                                                   \
    }                                                                       \
    static void FN(void)

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
