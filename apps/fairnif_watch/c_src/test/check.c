/*
 * check.c - runs the tests, each in a process of its own.
 *
 *     watch_test [-v] [PART OF A FILE NAME OR SENTENCE ...]
 *
 * Prints a line for each check that failed, and at the end the totals.
 */
#define _GNU_SOURCE
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "check.h"

enum { TIME_LIMIT_S = 300, LINES_MOST = 12 };

static struct check_test *tests, **last = &tests;
static const struct check_test *current;
static int failures;

/* A report must end a test whatever else it does. */
const char *__asan_default_options(void);
const char *__asan_default_options(void)
{
    return "abort_on_error=1:detect_leaks=1:handle_abort=0";
}

const char *__ubsan_default_options(void);
const char *__ubsan_default_options(void)
{
    return "halt_on_error=1:abort_on_error=1:print_stacktrace=1";
}

const char *__tsan_default_options(void);
const char *__tsan_default_options(void)
{
    return "halt_on_error=1:handle_abort=0";
}

void check_add(struct check_test *test)
{
    *last = test;
    last = &test->next;
}

static const char *base(const char *file)
{
    const char *slash = strrchr(file, '/');

    return slash ? slash + 1 : file;
}

void check_that(bool holds, const char *file, int line, const char *format,
                ...)
{
    char text[2048];
    va_list ap;

    if (holds || __atomic_add_fetch(&failures, 1, __ATOMIC_RELAXED)
                 > LINES_MOST)
        return;
    va_start(ap, format);
    vsnprintf(text, sizeof text, format, ap);
    va_end(ap);
    printf("FAILED %s: %s (%s:%d)\n", current->sentence, text, base(file),
           line);
    fflush(stdout);
}

double check_storm(void)
{
    const char *s = getenv("WATCH_STORM");

    return s ? atof(s) : 1;
}

bool check_emulated(void)
{
    return getenv("WATCH_EMULATED") != NULL;
}

const char *check_file(const char *name)
{
    static char path[4][1200];
    static unsigned next;
    char *to = path[next++ % 4], exe[1024] = "";
    ssize_t n = readlink("/proc/self/exe", exe, sizeof exe - 1);

    exe[n > 0 ? n : 0] = 0;
    *strrchr(exe, '/') = 0;
    snprintf(to, sizeof path[0], "%s/%s", exe, name);
    return to;
}

/* By exit and not _exit: then LeakSanitizer looks. */
static bool run(const struct check_test *test)
{
    int status;
    pid_t pid;

    fflush(NULL);
    pid = fork();
    if (pid < 0) {
        perror("fork");
        exit(2);
    }
    if (pid == 0) {
        current = test;
        alarm(TIME_LIMIT_S);
        watch__read_start();    /* for tests of parts that do not start all */
        test->fn();
        fflush(NULL);
        exit(__atomic_load_n(&failures, __ATOMIC_RELAXED) ? 1 : 0);
    }
    waitpid(pid, &status, 0);
    if (WIFSIGNALED(status))
        printf("FAILED %s: died of signal %d (%s)\n", test->sentence,
               WTERMSIG(status), base(test->file));
    return WIFEXITED(status) && WEXITSTATUS(status) == 0;
}

static bool wanted(const struct check_test *test, int argc, char **argv)
{
    bool any = false;

    for (int i = 1; i < argc; i++) {
        if (!strcmp(argv[i], "-v"))
            continue;
        any = true;
        if (strstr(test->sentence, argv[i]) || strstr(base(test->file),
                                                      argv[i]))
            return true;
    }
    return !any;
}

int main(int argc, char **argv)
{
    bool verbose = argc > 1 && !strcmp(argv[1], "-v");
    int passed = 0, failed = 0;

    for (const struct check_test *t = tests; t; t = t->next) {
        if (!wanted(t, argc, argv))
            continue;
        if (verbose)
            printf("%s: %s\n", base(t->file), t->sentence);
        if (run(t))
            passed++;
        else
            failed++;
    }
    printf("under %s: %d passed, %d failed\n", TOOL, passed, failed);
    return failed || passed == 0;
}
