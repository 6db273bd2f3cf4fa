/*
 * overflow.c - reports whose C stack overflowed, before the node ends.
 *
 * An access to the guard of the stack that this thread is on is an overflow:
 * a task's own, or, in a function given to fair_offload or fair_defer, the
 * thread's.  Any other fault goes to the handler that was there before.
 *
 * What is here runs on the thread's alternate stack and is async-signal-safe:
 * it reads this thread's record, and writes.
 */
#include <errno.h>
#include <signal.h>
#include <unistd.h>

#include "task/overflow.h"

static struct sigaction old_segv, old_bus;

static void write_all(const char *s)
{
    ssize_t n = write(STDERR_FILENO, s, strlen(s));

    (void)n;
}

static void write_number(size_t n)
{
    char digits[24], *p = digits + sizeof digits;

    *--p = '\0';
    do
        *--p = (char)('0' + n % 10);
    while (n /= 10);
    write_all(p);
}

/* Of a strand, which is no slice of a body, and nothing that one has given away. */
static const char *driver_of(const struct fair__task *t,
                             const struct fair__thread *th)
{
    return th->for_whom == t && !t->away ? t->driver : NULL;
}

static void write_name(const struct fair__task *t, const char *driver)
{
    static const char *const passed[] = {
        [AWAY_CALL] = " passed to fair_offload",
        [AWAY_DEFER] = " passed to fair_defer"
    };

    write_all("fairnif: stack overflow in ");
    if (driver) {
        write_all("a callback of port driver ");
        write_all(driver);
        return;
    }
    write_all(t->away ? "a function that " : "");
    write_all(t->func->module);
    write_all(":");
    write_all(t->func->name);
    write_all("/");
    write_number(t->func->arity);
    write_all(t->away ? passed[t->away] : "");
}

static bool is_in_own(const struct fair__task *t, uintptr_t at)
{
    return at - (uintptr_t)t->map < FAIR__GUARD;
}

static void say_own(const struct fair__task *t, const struct fair__thread *th)
{
    const char *driver = driver_of(t, th);

    write_name(t, driver);
    write_all(": its C stack of ");
    write_number((size_t)FAIR__STACK_MIN << t->stack_class);
    write_all(" bytes is too small; ");
    write_all(driver ? "run it on a thread (FAIR_DRV_DIRTY_CPU)"
              : "set stack_size in fair_options");
    write_all(", or put large arrays in ");
    write_all(driver ? "driver_alloc\n" : "fair_alloc\n");
}

/* A thread's own guard is a page that may be counted as its stack's lowest; a
 * frame that steps over it meets what is not mapped, if anything. */
static bool is_in_threads(const struct fair__thread *th, uintptr_t at)
{
    return th->stack_low
        && at - ((uintptr_t)th->stack_low - FAIR__GUARD) < 2 * FAIR__GUARD;
}

/* The VM adds two pages to what it was asked for. */
static void say_threads(const struct fair__task *t,
                        const struct fair__thread *th)
{
    static const struct { const char *whose, *flag; } kinds[] = {
        [W_NORMAL]    = {"a normal scheduler's ", " (+sss)"},
        [W_DIRTY_CPU] = {"a dirty CPU scheduler's ", " (+sssdcpu)"},
        [W_DIRTY_IO]  = {"a dirty I/O scheduler's ", " (+sssdio)"},
        [W_THREAD]    = {"a pool thread's ", ""},
        [W_OTHER]     = {"a thread's ", ""}
    };

    write_name(t, NULL);
    write_all(", on ");
    write_all(kinds[th->where].whose);
    write_number(th->stack_size / 1024 & ~(size_t)15);
    write_all(" KiB");
    write_all(kinds[th->where].flag);
    write_all(t->away == AWAY_CALL
              ? ": set stack_size in fair_options to what it needs\n" : "\n");
}

/* Then the default action ends the VM as any segmentation fault would, with a
 * core dump that shows the stack. */
static void on_fault(int signal, siginfo_t *info, void *context)
{
    struct sigaction *old = signal == SIGSEGV ? &old_segv : &old_bus;
    const struct fair__thread *th = fair__this_thread();
    const struct fair__task *t = th ? fair__runs_whose(th) : NULL;
    uintptr_t at = (uintptr_t)info->si_addr;

    if (t && is_in_own(t, at)) {
        say_own(t, th);
    } else if (t && t->away && is_in_threads(th, at)) {
        say_threads(t, th);
    } else if (old->sa_flags & SA_SIGINFO) {
        old->sa_sigaction(signal, info, context);
        return;
    } else if (old->sa_handler != SIG_DFL && old->sa_handler != SIG_IGN) {
        old->sa_handler(signal);
        return;
    }
    /* Returning repeats the access, now with the old action in place; a signal
     * that a process sent must be sent again. */
    sigaction(signal, old, NULL);
    if (info->si_code <= 0)
        raise(signal);
}

/* Called once, when the runtime is loaded. */
int fair__overflow_init(void)
{
    struct sigaction on = {.sa_flags = SA_SIGINFO | SA_ONSTACK | SA_NODEFER};

    on.sa_sigaction = on_fault;
    sigemptyset(&on.sa_mask);
    if (sigaction(SIGSEGV, &on, &old_segv) || sigaction(SIGBUS, &on, &old_bus))
        return errno;
    return 0;
}

static bool is_ours(int signal)
{
    struct sigaction now;

    return sigaction(signal, NULL, &now) == 0 && (now.sa_flags & SA_SIGINFO)
        && now.sa_sigaction == on_fault;
}

const char *fair__overflow_handler(void)
{
    return is_ours(SIGSEGV) && is_ours(SIGBUS) ? "installed" : "replaced";
}
