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

#if defined(FAIR_NO_TASKS)
#define SWITCH "none"
#else
#define SWITCH "tasks"
#endif

/* Tests that a tool, or a build without tasks, cannot run: by sentence, or all
 * of a file's; skipped, visibly. */
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
    {"none", "test_move.c", "nothing moves"},
    {"none", "test_fair_call.c", "every function runs in place"},
    {"none", "test_pause.c", "nothing pauses"},
    {"none", "a strand gives way at its ticks, goes on on another thread, and "
     "ends", "there are no stacks"},
    {"none", "strands that are paused at once stay apart",
     "there are no stacks"},
    {"none", "a strand has nothing of a call that had its stack before",
     "there are no stacks"},
    {"none", "a strand's slices are as long as a task's, whatever its units "
     "cost and whatever the units of another", "there are no stacks"},
    {"none", "cheap ticks do not read the clock each time",
     "there are no stacks"},
    {"none", "without memory for a stack there is no strand",
     "there are no stacks"},
    {"none", "test_stack.c", "there are no stacks"},
    {"none", "test_wait.c", "a wait holds its dirty scheduler to the end"},
    {"none", "test_storm.c", "its processes end between slices"},
    {"none", "test_time.c", "there is one slice"},
    {"none", "a call that ends in its first slice allocates nothing",
     "every call begins by going to a dirty scheduler"},
    {"none", "test_debug.c", "what it reports comes of pauses"},
    {"none", "a body that keeps a term across a tick is caught",
     "it would have to pause"},
    {"none", "a body that keeps an environment across a tick is caught",
     "it would have to pause"},
    {"none", "a body that keeps a pointer into a term is caught",
     "it would have to pause"},
    {"none", "a body that pauses with a mutex held is caught",
     "it would have to pause"},
    {"none", "test_await.c", "nothing is pending"},
    {"none", "test_ask.c", "nothing is pending"},
    {"none", "a native process in C++ receives, sends and calls, with what it keeps in "
     "its own variables", "nothing is pending"},
    {"none", "its destructors run when it is killed, wherever it is",
     "nothing is pending"},
    {"none", "test_pool.c", "nothing is pending"},
    {"none", "test_lock.c", "nothing is pending"},
    {"none", "test_descriptor.c", "nothing is pending"},
    {"none", "who waits for a lock that such a function has gets it",
     "nothing is pending"},
    {"none", "test_list.c", "there is one slice"},
    {"none", "a body is told that its caller is dead, wherever it paused, cleans "
     "up once and not on a scheduler", "nothing pauses"},
    {"none", "the caller's death may be told of late, by a thread that is no "
     "scheduler", "its call would have to pause"},
    {"none", "a lock that it holds is another's once it has cleaned up",
     "its call would have to pause"},
    {"none", "destructors run when the caller of a body in C++ dies, also in a "
     "catch block", "nothing pauses"},
    {"none", "the author's private data and the VM's clock are there where "
     "it cleans up",
     "its call would have to pause"},
    {"none", "a threaded body that finds itself on a thread without a "
     "record, for want of memory, cleans up before anything is let go",
     "its call would have to pause"},
    {"none", "a lock that came when its caller was dead is not held while "
     "it cleans up",
     "its call would have to pause"},
    {"none", "bodies that wait for a lock to clean up let the one have a "
     "thread that holds it",
     "its call would have to pause"},
    {"none", "one whose call the runtime ends holds up no scheduler while "
     "it waits for a lock to clean up",
     "its call would have to pause"},
    {"none", "a body that frees the last hold on another call is not in its "
     "way",
     "its call would have to pause"},
    {"none", "one that gets no thread in time is told as well",
     "nothing is pending"},
    {"none", "one that waits on a dirty scheduler for a lock to clean up leaves "
     "it for the pool", "nothing pauses"},
    {"none", "who waited for a descriptor is in nobody's way while it cleans up",
     "a wait holds its dirty scheduler to the end"},
    {"none", "a library stays mapped until its bodies have cleaned up",
     "its calls would have to pause"},
    {"none", "they run when the destructor comes late, on any thread",
     "its call would have to pause"},
    {"none", "tasks go on in the old code after an upgrade",
     "its calls would have to pause"},
    {"none", "a purge ends its tasks, runs their deferred functions and unmaps "
     "the library", "its calls would have to pause"},
    {"none", "a library stays mapped until the last of its tasks is gone",
     "its calls would have to pause"},
    {"none", "a library is upgraded to itself while its tasks go on",
     "its calls would have to pause"},
    {"none", "libraries bind to a runtime that was upgraded",
     "its call would have to pause"},
    {"none", "one that proves to be long in place goes on on the pool at its next "
     "tick", "nothing pauses"},
    {"none", "one that waits for a lock holds no thread, and gets it in its turn",
     "it holds its thread"},
    {"none", "one that is learned to be short cleans up at once, where the VM calls",
     "it could not leave the VM's call"},
    {"none", "those in place use up one slice of a millisecond at most",
     "none is in place"},
    {"none", "one that cleans up after an error in place leaves the VM's call where "
     "it waits for a lock", "its call would have to pause"},
    {"none", "messages can be sent, in place and on the pool, with and without an "
     "environment", "nothing is pending"},
    {"none", "a stack that cannot be guarded is not used",
     "there are no stacks"},
    {"none", "slices are measured in CPU time when told to",
     "only on normal schedulers"},
    {"none", "a dirty task that makes many terms does so in pieces",
     "there is one slice"},
    {"emulator", "test_load.c", "it loads and purges libraries of its own"},
    {"emulator", "test_stack.c", "its bodies mark registers at the switch"},
    {"emulator", "a pid comes through",
     "it asks an environment between calls for its process"},
};

#endif
