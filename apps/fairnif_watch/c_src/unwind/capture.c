/*
 * capture.c - a running thread copies itself: its registers and the top of its
 * stack, in the handler of a real-time signal.
 *
 * The handler writes into preallocated memory, wakes the watcher, and does
 * nothing else.  It may come late, after the watcher gave up and asked another
 * thread; so each signal carries a ticket, and only the handler with the ticket
 * that is asked for now may write:
 *
 *     watcher                           handler
 *     page = ticket|ASKED, signal
 *                                       ASKED -> TAKING, or it is not asked
 *                                       copies
 *                                       page = ticket|DONE
 *     reads, page = IDLE                seat.handled = ticket
 *     (gives up: it stays ASKED, and
 *     what comes late can be had until
 *     another thread is asked, ASKED ->
 *     IDLE; where that fails the page is
 *     the handler's until it is DONE)
 *
 * A thread has a seat, and at most one signal of ours at a time.  Thus it is
 * known at the end which signals may still arrive.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <signal.h>
#include <stdatomic.h>
#include <string.h>
#include <sys/syscall.h>
#include <time.h>
#include <ucontext.h>
#include <unistd.h>

#include "unwind/capture.h"
#include "read/mem.h"
#include "read/proc.h"
#include "read/task.h"

enum { SEATS = 256, IDLE = 0, ASKED, TAKING, DONE, STATE = 3 };

struct seat {
    int tid;                    /* 0: free */
    uint64_t started;
    uint64_t sent;              /* ticket; 0: none yet */
    _Atomic uint64_t handled;
};

static struct seat seats[SEATS];
static struct {
    _Atomic uint64_t word;      /* ticket << 2 | state */
    struct watch__regs regs;    /* from here on: who brought it to TAKING */
    uint64_t from;
    size_t size;
    unsigned char stack[WATCH__RED_ZONE + WATCH__STACK];
} page;
static uint64_t tickets;        /* given out; a ticket's seat is its rest */
static int signal_number;       /* 0: off */
static struct sigaction before;

static void copy_registers(struct watch__regs *r, const ucontext_t *u)
{
#if !WATCH__UNWINDS
    (void)r, (void)u;
#elif defined(__x86_64__)
    static const int order[] = {
        REG_RAX, REG_RDX, REG_RCX, REG_RBX, REG_RSI, REG_RDI, REG_RBP, REG_RSP,
        REG_R8, REG_R9, REG_R10, REG_R11, REG_R12, REG_R13, REG_R14, REG_R15,
        REG_RIP
    };

    for (unsigned i = 0; i < sizeof order / sizeof *order; i++)
        r->value[i] = (uint64_t)u->uc_mcontext.gregs[order[i]];
    r->known = 0x1ffff;
    r->pc = r->value[16];
    r->sp = r->value[7];
#else
    for (unsigned i = 0; i < 31; i++)
        r->value[i] = u->uc_mcontext.regs[i];
    r->value[31] = r->sp = u->uc_mcontext.sp;
    r->value[32] = r->pc = u->uc_mcontext.pc;
    r->known = 0x1ffffffff;
#endif
}

/* The red zone may lie in the guard of a stack that is full. */
size_t watch__copy_stack(unsigned char *stack, uint64_t sp, uint64_t *from)
{
    size_t size = watch__read(stack, sp - WATCH__RED_ZONE,
                              WATCH__RED_ZONE + WATCH__STACK);

    *from = sp - WATCH__RED_ZONE;
    if (*from + size >= sp)
        return size;
    *from = sp;
    return watch__read(stack, sp, WATCH__STACK);
}

/* The half of the word that has the state: both processors have it first. */
static _Atomic uint32_t *page_futex(void)
{
    return (_Atomic uint32_t *)(void *)&page.word;
}

static void handler(int number, siginfo_t *info, void *context)
{
    uint64_t ticket = (uint64_t)(uintptr_t)info->si_value.sival_ptr;
    uint64_t asked = ticket << 2 | ASKED;

    (void)number;
    if (info->si_code != SI_QUEUE || ticket == 0)
        return;
    if (atomic_compare_exchange_strong(&page.word, &asked,
                                       ticket << 2 | TAKING)) {
        copy_registers(&page.regs, context);
        page.size = watch__copy_stack(page.stack, page.regs.sp,
                                      &page.from);
        atomic_store(&page.word, ticket << 2 | DONE);
        watch__futex_wake(page_futex());
    }
    atomic_store(&seats[ticket % SEATS].handled, ticket);
}

/* -- seats --------------------------------------------------------------- */

static bool handled(const struct seat *seat)
{
    return seat->sent == atomic_load(&seat->handled);
}

static bool gone(const struct seat *seat, struct watch__stat *t)
{
    int error = watch__thread_stat(seat->tid, t);

    if (error)
        memset(t, 0, sizeof *t);
    return error == ENOENT || error == ESRCH
        || (!error && (t->started != seat->started || t->state == 'Z'
                       || t->state == 'X'));
}

/* Its last signal is handled and it is out of the handler: the handler runs
 * with the signal blocked and never sleeps. */
static bool is_out(const struct seat *seat)
{
    struct watch__stat t;

    if (seat->sent == 0 || gone(seat, &t))
        return true;
    return handled(seat) && (!watch__thread_blocks(seat->tid, signal_number)
                             || t.state == 'S');
}

static struct seat *take_seat(int tid, uint64_t started)
{
    struct seat *unused = NULL;

    for (int i = 0; i < SEATS; i++) {
        if (seats[i].tid == tid && seats[i].started == started)
            return &seats[i];
        if (seats[i].tid == 0 && !unused)
            unused = &seats[i];
    }
    for (int i = 0; i < SEATS && !unused; i++)
        if (is_out(&seats[i]))
            unused = &seats[i];
    if (unused) {
        unused->tid = tid;
        unused->started = started;
        unused->sent = 0;
        atomic_store(&unused->handled, 0);
    }
    return unused;
}

/* -- asking -------------------------------------------------------------- */

static bool is_ours(void)
{
    struct sigaction now;

    return sigaction(signal_number, NULL, &now) == 0
        && now.sa_flags & SA_SIGINFO && now.sa_sigaction == handler;
}

static int send(struct seat *seat, uint64_t ticket)
{
    siginfo_t info;

    memset(&info, 0, sizeof info);
    info.si_signo = signal_number;
    info.si_code = SI_QUEUE;
    info.si_pid = getpid();
    info.si_uid = getuid();
    info.si_value.sival_ptr = (void *)(uintptr_t)ticket;
    seat->sent = ticket;
    if (syscall(SYS_rt_tgsigqueueinfo, getpid(), seat->tid, signal_number,
                &info) == 0)
        return 0;
    atomic_store(&seat->handled, ticket);
    return errno;
}

static bool wait_done(uint64_t ticket, uint64_t wait_ns)
{
    uint64_t until = watch__now() + wait_ns, word;

    while ((word = atomic_load(&page.word)) != (ticket << 2 | DONE)) {
        if (watch__now() >= until)
            return false;
        watch__futex_wait(page_futex(), (uint32_t)word, until);
    }
    return true;
}

static enum watch__taken receive(uint64_t ticket, uint64_t wait_ns,
                                 struct watch__snapshot *s)
{
    if (!wait_done(ticket, wait_ns)
        && (atomic_load(&page.word) == (ticket << 2 | ASKED)
            || !wait_done(ticket, wait_ns)))
        return TAKEN_LATE;
    s->regs = page.regs;
    s->from = page.from;
    s->size = page.size;
    memcpy(s->stack, page.stack, page.size);
    atomic_store(&page.word, ticket << 2 | IDLE);
    return TAKEN;
}

/* Whoever was asked before and did not come may not write any more; false: it
 * is writing. */
static bool take_page(void)
{
    uint64_t word = atomic_load(&page.word);

    if ((word & STATE) == ASKED
        && atomic_compare_exchange_strong(&page.word, &word,
                                          (word & ~(uint64_t)STATE) | IDLE))
        return true;
    return (word & STATE) != TAKING;
}

static void describe(struct watch__snapshot *s, int tid)
{
    s->tid = tid;
    s->slept = false;
    s->syscall = -1;
}

static enum watch__taken why(int error)
{
    switch (error) {
    case ENOENT: case ESRCH: return TAKEN_GONE;
    case EAGAIN: return TAKEN_LATE;     /* too many signals are queued */
    default: return TAKEN_DENIED;
    }
}

enum watch__taken watch__take_running(struct watch__snapshot *s, int tid,
                                      uint64_t wait_ns)
{
    struct watch__stat t;
    struct seat *seat;
    uint64_t ticket;
    int error;

    if (!signal_number || !is_ours())
        return TAKEN_OFF;
    error = watch__thread_stat(tid, &t);
    if (error)
        return why(error);
    if (t.state == 'Z' || t.state == 'X')
        return TAKEN_GONE;
    if (t.state != 'R')
        return TAKEN_BUSY;
    if (!take_page() || !(seat = take_seat(tid, t.started)))
        return TAKEN_LATE;
    describe(s, tid);
    /* One that is on its way serves as well. */
    ticket = seat->sent;
    atomic_store(&page.word, ticket << 2 | ASKED);
    if (handled(seat)) {
        ticket = ++tickets * SEATS + (uint64_t)(seat - seats);
        atomic_store(&page.word, ticket << 2 | ASKED);
        error = send(seat, ticket);
        if (error) {
            atomic_store(&page.word, ticket << 2 | IDLE);
            return why(error);
        }
    }
    return receive(ticket, wait_ns, s);
}

enum watch__taken watch__take_late(struct watch__snapshot *s, int tid)
{
    const struct seat *seat = NULL;

    for (int i = 0; i < SEATS && !seat; i++)
        if (seats[i].tid == tid)
            seat = &seats[i];
    if (!seat || seat->sent == 0)
        return TAKEN_LATE;
    if (atomic_load(&page.word) == (seat->sent << 2 | DONE)) {
        describe(s, tid);
        return receive(seat->sent, 0, s);
    }
    /* Another one was asked since, and has answered or given up. */
    if (!handled(seat) && take_page())
        atomic_store(&page.word, seat->sent << 2 | ASKED);
    return TAKEN_LATE;
}

/* What it slept in before may be over: then it is asked for again. */
enum watch__taken watch__take_sleeping(struct watch__snapshot *s, int tid)
{
    struct watch__call c, again;
    int error = watch__thread_call(tid, &c);

    if (error)
        return why(error);
    if (c.kind == CALL_RUNNING)
        return TAKEN_BUSY;
    memset(&s->regs, 0, sizeof s->regs);
    s->tid = tid;
    s->slept = true;
    s->syscall = c.number;
    s->regs.sp = c.sp;
    s->regs.pc = c.pc;
#if !WATCH__UNWINDS
    return TAKEN_OFF;
#elif defined(__x86_64__)
    s->regs.value[7] = c.sp;
    s->regs.value[16] = c.pc;
    s->regs.known = UINT64_C(1) << 7 | UINT64_C(1) << 16;
#else
    s->regs.value[31] = c.sp;
    s->regs.value[32] = c.pc;
    s->regs.known = UINT64_C(1) << 31 | UINT64_C(1) << 32;
#endif
    s->size = watch__copy_stack(s->stack, c.sp, &s->from);
    error = watch__thread_call(tid, &again);
    if (error)
        return why(error);
    return memcmp(&c, &again, sizeof c) ? TAKEN_BUSY : TAKEN;
}

/* -- start and stop ------------------------------------------------------ */

static bool is_free(const struct sigaction *action)
{
    return !(action->sa_flags & SA_SIGINFO) && action->sa_handler == SIG_DFL;
}

int watch__stack_start(bool signals)
{
    struct sigaction ours = {.sa_flags = SA_SIGINFO | SA_ONSTACK | SA_RESTART};

    if (!WATCH__UNWINDS && signals)
        return ENOTSUP;
    watch__read_start();
    if (!signals || signal_number)
        return 0;
    ours.sa_sigaction = handler;
    sigfillset(&ours.sa_mask);
    /* From the fifth on: debuggers and others take the first ones. */
    for (int n = SIGRTMIN + 4; n <= SIGRTMAX; n++) {
        if (sigaction(n, NULL, &before) != 0 || !is_free(&before))
            continue;
        if (sigaction(n, &ours, &before) != 0)
            return errno;
        if (is_free(&before)) {
            signal_number = n;
            return 0;
        }
        sigaction(n, &before, NULL);    /* somebody took it at the same time */
    }
    return EBUSY;
}

/* Once the signal is ignored none is pending any more (the kernel drops them),
 * but one may have been taken off the queue without its handler having begun.
 * Such a thread is in the kernel, not asleep for a signal to wake it, and goes
 * from there to the handler before any code of its own. */
static bool is_dropped(const struct seat *seat, uint64_t ticks)
{
    struct watch__stat t;

    return gone(seat, &t) || t.state == 'S' || t.user_ticks > ticks + 1;
}

static bool wait_for(bool (*is)(const struct seat *, uint64_t),
                     const uint64_t ticks[])
{
    const struct timespec nap = {.tv_nsec = 1000000};

    for (int ms = 0; ms < 1000; ms++) {
        bool all = true;

        for (int i = 0; i < SEATS && all; i++)
            all = seats[i].tid == 0 || is(&seats[i], ticks[i]);
        if (all)
            return true;
        nanosleep(&nap, NULL);
    }
    return false;
}

static bool is_done(const struct seat *seat, uint64_t ticks)
{
    (void)ticks;
    return is_out(seat);
}

static bool is_done_or_dropped(const struct seat *seat, uint64_t ticks)
{
    return is_out(seat) || (!handled(seat) && is_dropped(seat, ticks));
}

bool watch__stack_stop(void)
{
    struct sigaction ignore = {.sa_handler = SIG_IGN};
    uint64_t ticks[SEATS] = {0};
    bool out, restore = false;

    if (!signal_number) {
        watch__read_stop();
        return true;
    }
    out = wait_for(is_done, ticks);
    if (is_ours()) {
        sigaction(signal_number, &ignore, NULL);
        restore = true;
    }
    if (!out && restore) {
        for (int i = 0; i < SEATS; i++) {
            struct watch__stat t;

            if (seats[i].tid && !gone(&seats[i], &t))
                ticks[i] = t.user_ticks;
        }
        out = wait_for(is_done_or_dropped, ticks);
    }
    /* Whoever took the signal over meanwhile keeps it.  It stays ignored where
     * one may still arrive, from a debugger that holds it back: by default it
     * would end the process. */
    if (restore && out)
        sigaction(signal_number, &before, NULL);
    signal_number = 0;
    if (out) {
        memset(seats, 0, sizeof seats);
        watch__read_stop();
    }
    return out;
}
