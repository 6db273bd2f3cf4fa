/*
 * tools.h - the tools under which the tests run, and what is different then.
 */
#ifndef TOOLS_H
#define TOOLS_H

#if defined(__SANITIZE_ADDRESS__)
#define TOOL "AddressSanitizer"
#elif defined(__SANITIZE_THREAD__)
#define TOOL "ThreadSanitizer"
#elif defined(FAIR_VALGRIND)
#define TOOL "valgrind"
/* Valgrind writes where the Makefile says, and not to a test's stderr: shown
 * for tests that fail. */
#define TOOL_LOG "_build/valgrind/log.%d"
#else
#define TOOL "no tool"
#endif

/* Tests that a tool cannot run: skipped, visibly. */
static const struct skip {
    const char *tool, *sentence, *why;
} skips[] = {
    {"ThreadSanitizer", "with mprotect the number of stacks is bounded",
     "it has room for 8128 fibers, one for each task"},
    {"valgrind", "with mprotect the number of stacks is bounded",
     "it looks for a stack among all there are: 16,000 take hours"},
};

#endif
