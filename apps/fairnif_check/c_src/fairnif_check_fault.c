/*
 * Where a node of the checker's dies of a fault: on which kind of thread, whether
 * its stack was used up, and in which library.
 *
 * The handler stands before the function's libraries are loaded: those that
 * have one of their own (fairnif's runtime, for the stacks of tasks) come
 * first, and pass on what is not theirs. It writes one line, the node's last
 * words, and lets the node die of the same signal.
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <erl_nif.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#ifdef __APPLE__
#include <sys/ucontext.h>
#else
#include <ucontext.h>
#endif
#include <unistd.h>
#ifdef __GLIBC__
#include <execinfo.h>
#endif

#define FRAMES 32
/* How far from the stack pointer a frame that found no room writes: below it,
 * and above it where it is a large one that did not touch each page. */
#define BELOW (64 * 1024)
#define ABOVE (1024 * 1024)

static const int signals[] = {SIGSEGV, SIGBUS, SIGILL, SIGFPE};

#if defined(__APPLE__) && defined(__x86_64__)
#  define PC(U) (U)->uc_mcontext->__ss.__rip
#  define SP(U) (U)->uc_mcontext->__ss.__rsp
#elif defined(__APPLE__)
#  define PC(U) (U)->uc_mcontext->__ss.__pc
#  define SP(U) (U)->uc_mcontext->__ss.__sp
#  define LINK(U) (U)->uc_mcontext->__ss.__lr
#elif defined(__linux__) && defined(__x86_64__)
#  define PC(U) (U)->uc_mcontext.gregs[REG_RIP]
#  define SP(U) (U)->uc_mcontext.gregs[REG_RSP]
#elif defined(__linux__) && defined(__aarch64__)
#  define PC(U) (U)->uc_mcontext.pc
#  define SP(U) (U)->uc_mcontext.sp
#  define LINK(U) (U)->uc_mcontext.regs[30]
#endif

static void registers(const ucontext_t *u, uintptr_t *pc, uintptr_t *sp)
{
#ifdef PC
    *pc = (uintptr_t)PC(u);
    *sp = (uintptr_t)SP(u);
#else
    (void)u;
    *pc = *sp = 0;
#endif
}

/* Where a function that was just called returns to. */
static uintptr_t returns_to(const ucontext_t *u)
{
#if defined(__x86_64__) && defined(PC)
    return *(const uintptr_t *)SP(u);
#elif defined(PC)
    return (uintptr_t)LINK(u);
#else
    (void)u;
    return 0;
#endif
}

/* "\tFILE+OFFSET", and nothing for what is in no file. */
static size_t frame(char *to, size_t size, uintptr_t pc)
{
    Dl_info info;
    int n;

    if (pc == 0 || !dladdr((void *)pc, &info) || info.dli_fname == NULL)
        return 0;
    n = snprintf(to, size, "\t%s+%lx", info.dli_fname,
                 (unsigned long)(pc - (uintptr_t)info.dli_fbase));
    return n > 0 && (size_t)n < size ? (size_t)n : 0;
}

/* The frames that called what is at `pc`: after that in the list, which begins
 * with the handler. Return addresses, so the call is before them. */
static size_t callers(char *to, size_t size, uintptr_t pc)
{
    size_t used = 0;
#ifdef __GLIBC__
    void *frames[FRAMES];
    int count = backtrace(frames, FRAMES), i = 0;

    while (i < count && (uintptr_t)frames[i] != pc)
        i++;
    for (i++; i < count; i++)
        used += frame(to + used, size - used, (uintptr_t)frames[i] - 1);
#else
    (void)to, (void)size, (void)pc;
#endif
    return used;
}

/* What it calls is not all meant for handlers. The node is lost anyway: if it
 * fails here, it dies of the same signal, with what was written so far. */
static void on_fault(int sig, siginfo_t *info, void *context)
{
    static char line[8192];
    uintptr_t pc, sp, at = (uintptr_t)info->si_addr;
    size_t used, more;
    int is_overflow;

    signal(sig, SIG_DFL);
    registers(context, &pc, &sp);
    is_overflow = sp && (sig == SIGSEGV || sig == SIGBUS) && info->si_code > 0
        && at >= sp - BELOW && at < sp + ABOVE;
    used = (size_t)snprintf(line, sizeof line, "fairnif_check_fault %d %d %d",
                            sig, is_overflow, (int)enif_thread_type());
    more = frame(line + used, sizeof line - used, pc);
    if (write(STDERR_FILENO, line, used + more) < 0)
        return;
    /* Nothing can be unwound from where no code is: it was jumped to. */
    used = more ? callers(line, sizeof line - 1, pc)
        : frame(line, sizeof line - 1, returns_to(context) - 1);
    line[used++] = '\n';
    if (write(STDERR_FILENO, line, used) < 0)
        return;
    /* Returning repeats the instruction; what was sent must be sent again. */
    if (info->si_code <= 0)
        raise(sig);
}

/* arm(): from now on. A handler that is there already stays. */
static ERL_NIF_TERM arm(ErlNifEnv *env, int argc, const ERL_NIF_TERM argv[])
{
    struct sigaction on = {.sa_flags = SA_SIGINFO | SA_ONSTACK | SA_NODEFER};
    struct sigaction old;

    (void)argc, (void)argv;
#ifdef __GLIBC__
    /* The first call loads a library. */
    backtrace((void *[1]){NULL}, 1);
#endif
    on.sa_sigaction = on_fault;
    sigemptyset(&on.sa_mask);
    for (size_t i = 0; i < sizeof signals / sizeof *signals; i++)
        if (sigaction(signals[i], NULL, &old) == 0
            && !(old.sa_flags & SA_SIGINFO)
            && (old.sa_handler == SIG_DFL || old.sa_handler == SIG_IGN))
            sigaction(signals[i], &on, NULL);
    return enif_make_atom(env, "ok");
}

static ErlNifFunc nifs[] = {{"arm", 0, arm, 0}};

/* Never unloaded: the handler is in it. */
static int load(ErlNifEnv *env, void **priv, ERL_NIF_TERM info)
{
    Dl_info self;

    (void)env, (void)priv, (void)info;
    return !dladdr((void *)on_fault, &self)
        || dlopen(self.dli_fname, RTLD_NOW | RTLD_NODELETE) == NULL;
}

static int upgrade(ErlNifEnv *env, void **priv, void **old_priv,
                   ERL_NIF_TERM info)
{
    (void)old_priv;
    return load(env, priv, info);
}

ERL_NIF_INIT(fairnif_check_fault, nifs, load, NULL, upgrade, NULL)
