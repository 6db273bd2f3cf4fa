/*
 * check.c - runs the tests, each in a process of its own.
 *
 *     TESTS [-v] [PART OF A FILE NAME OR SENTENCE ...]
 *
 * Prints a line for each check that failed, and at the end the totals.
 */
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "harness.h"

/* Generous: valgrind, an emulator and a busy machine are slow. */
enum { TIME_LIMIT_S = 600, LINES_MOST = 12 };

static struct check_test *tests, **last = &tests;
static const struct check_test *current;
static int failures;

/* A report must end a test whatever else it does. */
const char *__asan_default_options(void);
const char *__asan_default_options(void)
{
    return "abort_on_error=1:detect_leaks=1:allocator_may_return_null=1:"
           "handle_abort=0:quarantine_size_mb=64";
}

const char *__ubsan_default_options(void);
const char *__ubsan_default_options(void)
{
    return "halt_on_error=1:abort_on_error=1:print_stacktrace=1";
}

/* A fault goes to the runtime's handler, and an abort ends the test. */
const char *__tsan_default_options(void);
const char *__tsan_default_options(void)
{
    return "halt_on_error=1:handle_segv=0:handle_sigbus=0:handle_abort=0";
}

/* A thread's table of counters that grew leaves the old one to readers. */
const char *__lsan_default_suppressions(void);
const char *__lsan_default_suppressions(void)
{
    return "leak:new_stat";
}

const char *__lsan_default_options(void);
const char *__lsan_default_options(void)
{
    return "print_suppressions=0";
}

void check_add(struct check_test *test)
{
    *last = test;
    last = &test->next;
}

int check_failures(void)
{
    return __atomic_load_n(&failures, __ATOMIC_RELAXED);
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

/* Exits 0 when it passed.  By exit and not _exit: then LeakSanitizer looks. */
static void run_here(const struct check_test *test)
{
    current = test;
    alarm(TIME_LIMIT_S);
    check_run(test);
    if (check_failures() > LINES_MOST)
        printf("FAILED %s: %d more (%s)\n", test->sentence,
               check_failures() - LINES_MOST, base(test->file));
    fflush(NULL);
    exit(check_failures() ? 1 : 0);
}

/* Its stderr to `words`; what does not fit is lost. */
static pid_t start(const struct check_test *test, char *words, size_t size)
{
    size_t used = 0;
    ssize_t n;
    int out[2];
    pid_t pid;

    fflush(NULL);
    if (pipe(out) || (pid = fork()) < 0) {
        perror("check");
        exit(2);
    }
    if (pid == 0) {
        dup2(out[1], STDERR_FILENO);
        close(out[0]);
        close(out[1]);
        run_here(test);
    }
    close(out[1]);
    do {
        char rest[4096];
        size_t room = size - 1 - used;

        n = read(out[0], room ? words + used : rest,
                 room ? room : sizeof rest);
        if (n > 0 && room)
            used += (size_t)n;
    } while (n > 0);
    words[used] = 0;
    close(out[0]);
    return pid;
}

/* What the tool wrote elsewhere about the test. */
static void show_log(pid_t pid)
{
#ifdef TOOL_LOG
    char line[512];
    FILE *f;

    snprintf(line, sizeof line, TOOL_LOG, (int)pid);
    f = fopen(line, "r");
    while (f && fgets(line, sizeof line, f))
        fputs(line, stderr);
    if (f)
        fclose(f);
#else
    (void)pid;
#endif
}

static bool run(const struct check_test *test)
{
    static char words[1 << 16];
    pid_t pid = start(test, words, sizeof words);
    bool ok;
    int status;

    waitpid(pid, &status, 0);
    if (test->last_words) {
        ok = WIFSIGNALED(status) && WTERMSIG(status) != SIGALRM
            && strstr(words, test->last_words);
        if (!ok)
            printf("FAILED %s: status %#x, without saying \"%s\" (%s)\n",
                   test->sentence, (unsigned)status, test->last_words,
                   base(test->file));
    } else {
        ok = WIFEXITED(status) && WEXITSTATUS(status) == 0;
        if (WIFSIGNALED(status))
            printf("FAILED %s: died of signal %d%s (%s)\n", test->sentence,
                   WTERMSIG(status),
                   WTERMSIG(status) == SIGALRM ? ", out of time" : "",
                   base(test->file));
        else if (WEXITSTATUS(status) > 1)
            printf("FAILED %s: exit status %d (%s)\n", test->sentence,
                   WEXITSTATUS(status), base(test->file));
    }
    fflush(stdout);
    if (!ok) {
        fprintf(stderr, "%s", words);
        show_log(pid);
    }
    return ok;
}

static bool chosen(const struct check_test *test, char **parts)
{
    if (!*parts)
        return true;
    for (; *parts; parts++)
        if (strstr(test->sentence, *parts) || strstr(test->file, *parts))
            return true;
    return false;
}

int main(int argc, char **argv)
{
    bool verbose = argc > 1 && !strcmp(argv[1], "-v");
    int passed = 0, failed = 0, left_out = 0;

    for (struct check_test *t = tests; t; t = t->next) {
        bool ok;

        if (!chosen(t, argv + 1 + verbose))
            continue;
        if (check_skip(t)) {
            printf("skipped under %s: %s: %s\n", check_tool, t->sentence,
                   check_skip(t));
            left_out++;
            continue;
        }
        ok = run(t);
        *(ok ? &passed : &failed) += 1;
        if (verbose)
            printf("%-6s %s: %s\n", ok ? "ok" : "FAILED", base(t->file),
                   t->sentence);
    }
    printf("under %s: %d passed, %d failed, %d skipped\n", check_tool, passed,
           failed, left_out);
    return failed || !passed;
}
