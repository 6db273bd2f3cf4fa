/*
 * attach.c - takes the registers and the stack of another process's thread, while
 * the kernel holds it for some tens of microseconds.
 *
 * Nothing is written there, and no signal is sent.  No thread may stay stopped,
 * whatever becomes of us: PTRACE_SEIZE leaves that to the kernel, which lets
 * all go when the thread ends that traces them.  So that thread is one for each
 * that is taken: one that does not stop in time (it works in the kernel) is let
 * go by that thread's end, whenever it stops.
 */
#define _GNU_SOURCE
#include <elf.h>
#include <errno.h>
#include <pthread.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/ptrace.h>
#include <sys/resource.h>
#include <sys/uio.h>
#include <sys/user.h>
#include <sys/wait.h>
#include <time.h>

#include "outside/attach.h"
#include "read/task.h"
#include "unwind/capture.h"

struct taking {
    struct watch__snapshot *s;
    int tid;
    uint64_t wait_ns, paused_ns;
    enum watch__taken taken;
};

bool watch__regs_from(struct watch__regs *r, const void *words, size_t size)
{
    struct user_regs_struct u;

    memset(r, 0, sizeof *r);
    if (size < sizeof u)
        return false;
    memcpy(&u, words, sizeof u);
#if !WATCH__UNWINDS
    return false;
#elif defined(__x86_64__)
    const uint64_t value[] = {
        u.rax, u.rdx, u.rcx, u.rbx, u.rsi, u.rdi, u.rbp, u.rsp, u.r8, u.r9,
        u.r10, u.r11, u.r12, u.r13, u.r14, u.r15, u.rip
    };

    memcpy(r->value, value, sizeof value);
    r->known = 0x1ffff;
    r->pc = u.rip;
    r->sp = u.rsp;
#else
    for (unsigned i = 0; i < 31; i++)
        r->value[i] = u.regs[i];
    r->value[31] = r->sp = u.sp;
    r->value[32] = r->pc = u.pc;
    r->known = 0x1ffffffff;
#endif
    return true;
}

static enum watch__taken why_not(int error)
{
    return error == ESRCH || error == ECHILD ? TAKEN_GONE : TAKEN_DENIED;
}

/* Until it stops: 0; else why not, and nothing of it is ours to let go. */
static enum watch__taken wait_stop(const struct taking *t, int *status)
{
    struct timespec nap = {.tv_nsec = 10000};
    uint64_t until = watch__now() + t->wait_ns;
    int pid;

    while ((pid = waitpid(t->tid, status, __WALL | WNOHANG)) == 0) {
        if (watch__now() >= until)
            return TAKEN_LATE;
        nanosleep(&nap, NULL);
        if (nap.tv_nsec < 200000)       /* it waits for a processor itself */
            nap.tv_nsec *= 2;
    }
    if (pid < 0)
        return why_not(errno);
    return WIFSTOPPED(*status) ? TAKEN : TAKEN_GONE;
}

static enum watch__taken copy_stopped(struct watch__snapshot *s, int tid)
{
    struct user_regs_struct u;
    struct iovec v = {.iov_base = &u, .iov_len = sizeof u};

    if (ptrace(PTRACE_GETREGSET, tid, (void *)(uintptr_t)NT_PRSTATUS, &v) != 0)
        return why_not(errno);
    if (!watch__regs_from(&s->regs, &u, v.iov_len))
        return TAKEN_OFF;
    s->tid = tid;
    s->slept = false;
    s->syscall = -1;
    s->size = watch__copy_stack(s->stack, s->regs.sp, &s->from);
    return TAKEN;
}

static void *take_main(void *arg)
{
    struct taking *t = arg;
    uint64_t since;
    int status, signal;

    /* It holds the thread for less long where others want the processor. */
    setpriority(PRIO_PROCESS, 0, -20);
    prctl(PR_SET_TIMERSLACK, 1);
    if (ptrace(PTRACE_SEIZE, t->tid, NULL, NULL) != 0) {
        t->taken = why_not(errno);
        return NULL;
    }
    since = watch__now();
    if (ptrace(PTRACE_INTERRUPT, t->tid, NULL, NULL) != 0) {
        t->taken = why_not(errno);
        return NULL;
    }
    t->taken = wait_stop(t, &status);
    if (t->taken != TAKEN)
        return NULL;
    t->taken = copy_stopped(t->s, t->tid);
    /* A signal that came just then is passed on. */
    signal = status >> 16 == 0 ? WSTOPSIG(status) : 0;
    ptrace(PTRACE_DETACH, t->tid, NULL, (void *)(uintptr_t)signal);
    t->paused_ns = watch__now() - since;
    return NULL;
}

enum watch__taken watch__take_stopped(struct watch__snapshot *s, int tid,
                                      uint64_t wait_ns, uint64_t *paused_ns)
{
    struct taking t = {.s = s, .tid = tid, .wait_ns = wait_ns,
                       .taken = TAKEN_DENIED};
    pthread_t thread;

    if (pthread_create(&thread, NULL, take_main, &t) != 0)
        return TAKEN_DENIED;
    pthread_join(thread, NULL);
    *paused_ns = t.paused_ns;
    return t.taken;
}
