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
/* It writes to TOOL_LOG, and not to a test's stderr: shown for tests that
 * fail. */
#else
#define TOOL "no tool"
#endif

/* Tests that a tool, or the real emulator, cannot run: by sentence, or all of a
 * file's; skipped, visibly. */
static const struct skip {
    const char *where, *test, *why;
} skips[] = {
    {"ThreadSanitizer", "with mprotect the number of stacks is bounded",
     "it has room for 8128 fibers, one for each task"},
    {"valgrind", "with mprotect the number of stacks is bounded",
     "it looks for a stack among all there are: 16,000 take hours"},
    {"valgrind", "a body's floating point mode survives pauses, and does not "
     "leak to the VM", "it divides to the nearest, whatever rounding is set"},
    {"valgrind", "no more threads compute at a time than there are processors; "
     "those that wait do not count", "it runs one thread, the others sleep"},
    {"valgrind", "more threads compute when more processors are there",
     "it runs one thread, the others sleep"},
    {"emulator", "test_load.c", "it loads and purges libraries of its own"},
    {"emulator", "test_stack.c", "its bodies mark registers at the switch"},
    {"emulator", "a pid comes through",
     "it asks an environment between calls for its process"},
};

#endif
