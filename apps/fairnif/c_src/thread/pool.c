/*
 * pool.c - the runtime's own threads, for work that waits or cannot tick.
 *
 * Threads are started when there is work and none is idle, up to `threads`,
 * and leave again when idle for long, but for one: what has been on a thread
 * and is put back finds one, also when the system has none left to start.
 * Work that no thread can take at once is queued, up to `max_queued`; what
 * comes then is let in as the queue gets shorter, in its order, or gives up
 * (wait/await.c has the time limit).
 *
 * The waiting lock is over the queue and everything else that waits: who takes a
 * thing off a list, and who wakes whom, is decided in one order.
 *
 * At halt the threads are left as they are: nothing here runs at exit, and
 * nothing waits for them.
 */
#include <errno.h>
#include <time.h>

#include "thread/pool.h"

#include "base/config.h"
#include "base/locks.h"
#include "base/os.h"
#include "thread/gate.h"
#include "thread/low.h"
#include "thread/timer.h"

enum {
    ALTERNATE_STACK = 32 * 1024,    /* as schedulers have, for who says what
                                   overflowed a task's stack */
    IDLE_NS = 1000000000,       /* then a thread looks whether it may leave */
    IDLE_ROUNDS = 10,           /* so often */
    SPIN_NS = 20000             /* work that follows work within this time
                                   finds a thread awake: the two wake-ups of a
                                   round trip cost as much.  One thread at a
                                   time does it. */
};

static struct worker {
    enum { W_FREE, W_STARTED, W_LEFT } state;   /* LEFT: to be joined */
    bool starting;                  /* `tid` is being written */
    ErlNifTid tid;
    struct fair__thread *record;    /* is used again by the next thread */
} workers[FAIR__THREADS_MOST];

struct list {
    struct fair__job *first, *last;
    size_t count;
};

static pthread_cond_t work = PTHREAD_COND_INITIALIZER;
/* Under the lock, but for the copies that a spinning thread looks at. */
static struct list queue, overflow;
static struct fair__job *last_first;    /* of those at the front of the queue that
                                           go before the others, or NULL */
static _Atomic size_t queued;       /* queue.count, to be looked at */
static pthread_cond_t starting = PTHREAD_COND_INITIALIZER;
/* The thread that starts the others for schedulers; the first one starts it. */
static enum { NONE, COMES, THERE, FAILED } starter;
static unsigned to_start;           /* how many it is about to */
static unsigned started, idle, spinning;
static unsigned woken;              /* how many of the idle are on their way */
static unsigned ending;             /* how many of the busy come at once */
static struct fair__pool_counts counts;

/* -- lists ---------------------------------------------------------------- */

static void append_job(struct list *l, struct fair__job *job)
{
    job->next = NULL;
    job->prev = l->last;
    *(l->last ? &l->last->next : &l->first) = job;
    l->last = job;
    l->count++;
}

/* Behind others like it. */
static void put_first(struct fair__job *job)
{
    struct fair__job *next = last_first ? last_first->next : queue.first;

    job->prev = last_first;
    job->next = next;
    *(last_first ? &last_first->next : &queue.first) = job;
    *(next ? &next->prev : &queue.last) = job;
    queue.count++;
    last_first = job;
}

static void take_off(struct list *l, struct fair__job *job)
{
    if (job == last_first)
        last_first = job->prev;
    *(job->prev ? &job->prev->next : &l->first) = job->next;
    *(job->next ? &job->next->prev : &l->last) = job->prev;
    l->count--;
}

/* Those that wait for room are let in. */
static void fill_queue(void)
{
    size_t most = GET(fair__config.max_queued);

    while (overflow.first && queue.count < most) {
        struct fair__job *job = overflow.first;

        take_off(&overflow, job);
        append_job(&queue, job);
        job->state = J_QUEUED;
    }
    SET(queued, queue.count);
}

/* -- work comes ----------------------------------------------------------- */

static void note_queued(struct fair__job *job, enum fair__job_state state)
{
    job->since_ns = fair__now_coarse();
    job->state = state;
    SET(queued, queue.count);
}

/* With the lock held.  fair__pool_kick must follow, without it. */
void fair__pool_put(struct fair__job *job)
{
    bool room;

    fill_queue();               /* the bound may have been raised */
    room = queue.count < GET(fair__config.max_queued);
    append_job(room ? &queue : &overflow, job);
    note_queued(job, room ? J_QUEUED : J_OVERFLOW);
    if (!room)
        counts.overflows++;
}

/* Work that was under way goes behind what is queued, whatever the bound:
 * it has been let in. */
void fair__pool_put_back(struct fair__job *job)
{
    append_job(&queue, job);
    note_queued(job, J_QUEUED);
}

/* Others wait for it: it also passes the gate. */
void fair__pool_put_first(struct fair__job *job)
{
    job->waits = true;
    put_first(job);
    note_queued(job, J_QUEUED);
}

/* With the lock held: true when the work was not begun, and now never is. */
bool fair__pool_withdraw(struct fair__job *job)
{
    if (job->state != J_QUEUED && job->state != J_OVERFLOW)
        return false;
    take_off(job->state == J_QUEUED ? &queue : &overflow, job);
    job->state = J_IDLE;
    fill_queue();
    return true;
}

/* This thread will look for work in a moment: it is about to tell a caller, who
 * may come again at once, and should not wake another thread then. */
void fair__pool_ending(struct fair__thread *th)
{
    /* A thread that got no record when it began, and one since, would not be
     * seen to look for work. */
    if (!th || th->where != W_THREAD || th->ending)
        return;
    th->ending = true;
    ending++;
}

/* Whether other work waits for a thread; a hint. */
bool fair__pool_presses(void)
{
    return GET(queued) > 0;
}

static void *thread_main(void *arg);

static int create_thread(struct worker *w)
{
    char name[24];

    snprintf(name, sizeof name, "fairnif_%u", (unsigned)(w - workers) + 1);
    return fair__thread_create(name, &w->tid, thread_main, w);
}

/* With the lock held, which is released meanwhile. */
static bool start_thread(void)
{
    struct worker *w = workers;
    bool joins;
    int error;

    while (w < workers + FAIR__THREADS_MOST
           && (w->state == W_STARTED || w->starting))
        w++;
    if (w == workers + FAIR__THREADS_MOST)
        return false;
    joins = w->state == W_LEFT;
    w->state = W_STARTED;
    w->starting = true;
    started++;
    fair__wait_unlock();
    if (joins)
        enif_thread_join(w->tid, NULL);     /* it is at its last line */
    error = create_thread(w);
    fair__wait_lock();
    w->starting = false;
    if (error) {
        w->state = W_FREE;
        started--;
        counts.failed_starts++;
    }
    return !error;
}

static void *starter_main(void *unused);

static void call_thread(void);

/* Locked.  Where there is no starter, who comes starts threads itself. */
static void need_starter(void)
{
    static ErlNifTid tid;
    int error;

    if (starter == COMES || starter == THERE)
        return;
    starter = COMES;
    fair__wait_unlock();
    error = enif_thread_create("fairnif_starter", &tid, starter_main, NULL,
                               NULL);
    fair__wait_lock();
    starter = error ? FAILED : THERE;
    if (error && to_start > 0) {        /* it was relied on meanwhile */
        to_start = 0;
        call_thread();
    }
}

/* Another thread for what is queued, if none is on its way.  What waits for room
 * counts: each thread that comes lets one of it in.  With the lock held, which
 * is released while a thread starts. */
static void call_thread(void)
{
    /* The keeper comes, and calls the next one. */
    if (fair__gate_is_kept(queue.first)
        || queue.count + overflow.count <= spinning + woken + ending + to_start)
        return;
    if (idle > woken) {
        woken++;
        pthread_cond_signal(&work);
    } else if (started + to_start >= GET(fair__config.threads)) {
        /* they are to do it */
    } else if (starter != FAILED && started > 0 && fair__blocks_others()) {
        to_start++;
        pthread_cond_signal(&starting);
    } else {
        start_thread();
    }
}

/* Starts threads for schedulers: a new thread has to get a processor before its
 * starter continues, which on a busy machine takes milliseconds. */
static void *starter_main(void *unused)
{
    fair__wait_lock();
    for (;;) {
        while (to_start == 0)
            pthread_cond_wait(&starting, &fair__waiting.mutex);
        to_start--;
        call_thread();
    }
    return unused;
}

static bool kick(void)
{
    bool will_be_done;

    fair__wait_lock();
    call_thread();
    will_be_done = started > 0;
    fair__wait_unlock();
    return will_be_done;
}

static struct fair__mutex first = FAIR__MUTEX(RANK_FIRST);
static _Atomic bool is_there;

/* From now on there is a thread; false: none could be started.  Who is first here
 * waits until it has had a processor: a process of the runtime's own is, on a dirty
 * scheduler, unless a call comes as soon as the first library is loaded. */
bool fair__pool_start(void)
{
    bool starts;

    if (fair_likely(GET(is_there)))
        return true;
    fair__mutex_lock(&first);
    fair__wait_lock();
    starts = started > 0 || start_thread();
    fair__wait_unlock();
    SET(is_there, starts);
    fair__mutex_unlock(&first);
    return starts;
}

/* Sees to it that what was put is done; without the lock.  False when no
 * thread could be started and there is none: the caller takes his work back.
 * Until there is one, which then stays, callers come one by one: else one would
 * rely on the thread that another one fails to start. */
bool fair__pool_kick(void)
{
    bool will_be_done;

    if (fair_likely(GET(is_there)))
        return kick();
    fair__mutex_lock(&first);
    will_be_done = kick();
    SET(is_there, will_be_done);
    fair__mutex_unlock(&first);
    return will_be_done;
}

bool fair__pool_give(struct fair__job *job)
{
    fair__wait_lock();
    fair__pool_put(job);
    fair__wait_unlock();
    return fair__pool_kick();
}

void fair__pool_give_first(struct fair__job *job)
{
    fair__wait_lock();
    fair__pool_put_first(job);
    fair__wait_unlock();
    fair__pool_kick();
}

/* -- a thread ------------------------------------------------------------- */

static void note_wait(const struct fair__job *job)
{
    uint64_t now = fair__now_coarse();
    uint64_t waited = now > job->since_ns ? now - job->since_ns : 0;

    counts.wait_ns += waited;
    if (waited > counts.longest_wait_ns)
        counts.longest_wait_ns = waited;
}

static void take_job(struct fair__job *job)
{
    take_off(&queue, job);
    fill_queue();
    note_wait(job);
    job->state = J_IDLE;
}

/* Looks for work a little while without sleeping; true when there is some. */
static bool spin(void)
{
    uint64_t end;

    if (spinning > 0 || GET(fair__config.spin) == 0)
        return false;
    spinning++;
    fair__wait_unlock();
    end = fair__now() + SPIN_NS;
    while (GET(queued) == 0 && fair__now() < end)
        fair__relax();
    fair__wait_lock();
    spinning--;
    return queue.first != NULL;
}

/* Waits for work; false when the time was up.  The last thread has time. */
static bool sleep_idle(void)
{
    struct timespec until;
    int error = 0;

    clock_gettime(CLOCK_REALTIME, &until);
    until.tv_sec += IDLE_NS / 1000000000;
    idle++;
    if (started == 1)
        pthread_cond_wait(&work, &fair__waiting.mutex);
    else
        error = pthread_cond_timedwait(&work, &fair__waiting.mutex, &until);
    idle--;
    /* The first that comes stands for the one that was signalled: at worst a
     * signal too many is sent then, never one too few. */
    if (woken > 0)
        woken--;
    return error != ETIMEDOUT;
}

/* What it runs must not rely on the thread it ran on before. */
static void *thread_main(void *arg)
{
    struct worker *w = arg;
    const unsigned seat = (unsigned)(w - workers);
    unsigned rounds = 0;
    char alternate[ALTERNATE_STACK];

    fair__os_alternate_stack(alternate, sizeof alternate);
    /* A thread that a scheduler starts has the scheduler's. */
    if (GET(fair__config.scheduler_slice_ns))
        fair__os_usual_slice();
    w->record = fair__thread_adopt(w->record);  /* NULL: without memory */
    fair__wait_lock();
    fair__gate_seat(seat, fair__thread_id());
    need_starter();
    while ((rounds < IDLE_ROUNDS || queue.first || started == 1)
           && started <= GET(fair__config.threads)) {
        struct fair__job *job = fair__gate_pass(&queue.first, &started);

        if (!job) {
            if (started > GET(fair__config.threads))
                continue;       /* it is to leave, and not to sleep before */
            if (queue.first || !spin())
                rounds = sleep_idle() ? 0 : rounds + 1;
            continue;
        }
        if (fair_unlikely(GET(fair__config.halts))) {
            fair__wait_unlock();
            fair__os_stay();
        }
        rounds = 0;
        take_job(job);
        counts.busy++;
        fair__gate_enter(seat, w->record, job);
        if (queue.first)
            call_thread();      /* what came while there was a keeper did not */
        fair__wait_unlock();
        fair__gate_run(seat, job);
        /* It may have got a record when this thread got none: `ending` is in
         * that one. */
        if (fair_unlikely(!w->record))
            w->record = fair__thread_adopt(fair__self());
        fair__wait_lock();
        counts.busy--;
        fair__gate_leave(seat);
        counts.done++;
        if (w->record && w->record->ending) {
            w->record->ending = false;
            ending--;
        }
    }
    fair__low_leave(w->record);
    w->state = W_LEFT;
    started--;
    if (queue.first && idle > woken) {      /* fewer are wanted: not this one */
        woken++;
        pthread_cond_signal(&work);
    }
    fair__wait_unlock();
    fair__timer_forget(fair__this_thread());
    fair__os_alternate_stack(NULL, 0);
    return NULL;
}

/* -- for readers ---------------------------------------------------------- */

struct fair__pool_counts fair__pool_counts(void)
{
    struct fair__pool_counts c;

    fair__wait_lock();
    c = counts;
    c.threads = started;
    c.idle = idle;
    c.queued = queue.count;
    c.overflowing = overflow.count;
    fair__wait_unlock();
    return c;
}
