/*
 * pool.c - the runtime's own threads, for work that waits or cannot tick.
 *
 * Threads are started when there is work and none is idle, up to `threads`,
 * and leave again when idle for long, but for one: what has been on a thread
 * and is put back finds one, also when the system has none left to start.
 * Work that no thread can take at once is queued, up to `max_queued`; what
 * comes then is let in as the queue gets shorter, in its order, or gives up
 * (life/await.c has the time limit).
 *
 * One lock is over the queue and everything else that waits (folders wait and
 * life): who takes a thing off a list, and who wakes whom, is decided in one
 * place and in one order.  It is held for some tens of nanoseconds; never while
 * calling the author's code, nor any enif_ function that may free a resource
 * object (destructors take this lock) or wait.
 *
 * No more threads compute at a time than there are processors for it
 * (`dirty_cpus`).  Nobody has to say of a function whether it computes or
 * waits: it is learned of each, while there is more work than processors.  What
 * is not known to wait counts as computing, but for a thread that the kernel has
 * asleep at two looks in a row.  What may not begin yet stays in the queue, and
 * lets pass what waits; one thread, the keeper, looks again and again.
 *
 * At halt the threads are left as they are: nothing here runs at exit, and
 * nothing waits for them.
 */
#include <errno.h>
#include <time.h>

#include "thread/pool.h"

#include "base/config.h"
#include "base/os.h"
#include "thread/timer.h"

enum {
    THREADS_MOST = 1024,
    ALTERNATE_STACK = 32 * 1024,    /* as schedulers have, for who says what
                                   overflowed a task's stack */
    IDLE_NS = 1000000000,       /* then a thread looks whether it may leave */
    IDLE_ROUNDS = 10,           /* so often */
    SLEEPS_MOST = 8,
    PASSED_MOST = 16,           /* of the queue: what waits is looked for there */
    GATE_NS = 2000000,          /* after which the keeper looks again */
    GATE_LOOKS = 2,             /* in a row must find few who compute: who
                                   computes may sleep a moment, at a lock or for
                                   a page of memory */
    SPIN_NS = 20000             /* work that follows work within this time
                                   finds a thread awake: the two wake-ups of a
                                   round trip cost as much.  One thread at a
                                   time does it. */
};

static struct worker {
    enum { W_FREE, W_STARTED, W_LEFT } state;   /* LEFT: to be joined */
    bool starting;                  /* `tid` is being written */
    int os_id;                      /* the thread's, for the kernel */
    bool counted;                   /* what it does may compute */
    _Atomic bool runs;              /* it is in the work itself, not on its way
                                       there through the lock */
    ErlNifTid tid;
    struct fair__thread *record;    /* is used again by the next thread */
} workers[THREADS_MOST];

struct list {
    struct fair__job *first, *last;
    size_t count;
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t work = PTHREAD_COND_INITIALIZER;
/* Under the lock, but for the copies that a spinning thread looks at. */
static struct list queue, overflow;
static _Atomic size_t queued;       /* queue.count, to be looked at */
static unsigned started, idle, spinning;
static unsigned woken;              /* of the idle: so many are on their way */
static unsigned ending;             /* of the busy: so many come at once */
static uint64_t counted;            /* so many of the workers */
static bool keeper;                 /* a thread waits until the first of the
                                       queue may begin, or looks whether */
static uint64_t looked_at;          /* when who computes was last looked at */
static unsigned few_seen;           /* so many looks in a row found few */
static struct fair__pool_counts counts;

void fair__wait_lock(void) { pthread_mutex_lock(&lock); }
void fair__wait_unlock(void) { pthread_mutex_unlock(&lock); }

/* -- lists ---------------------------------------------------------------- */

static void append(struct list *l, struct fair__job *job)
{
    job->next = NULL;
    job->prev = l->last;
    *(l->last ? &l->last->next : &l->first) = job;
    l->last = job;
    l->count++;
}

static void take_off(struct list *l, struct fair__job *job)
{
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
        append(&queue, job);
        job->state = J_QUEUED;
    }
    SET(queued, queue.count);
}

/* -- work comes ----------------------------------------------------------- */

/* With the lock held.  fair__pool_kick must follow, without it. */
void fair__pool_put(struct fair__job *job)
{
    bool room;

    fill_queue();               /* the bound may have been raised */
    room = queue.count < GET(fair__config.max_queued);
    job->since_ns = fair__now_coarse();
    job->state = room ? J_QUEUED : J_OVERFLOW;
    append(room ? &queue : &overflow, job);
    if (!room)
        counts.overflows++;
    SET(queued, queue.count);
}

/* Work that was under way goes behind what is queued, whatever the bound:
 * it has been let in. */
void fair__pool_put_back(struct fair__job *job)
{
    job->since_ns = fair__now_coarse();
    job->state = J_QUEUED;
    append(&queue, job);
    SET(queued, queue.count);
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

/* With the lock held, which is let go for the while. */
static bool start_thread(void)
{
    struct worker *w = workers;
    bool joins;
    int error;

    while (w < workers + THREADS_MOST && (w->state == W_STARTED || w->starting))
        w++;
    if (w == workers + THREADS_MOST)
        return false;
    joins = w->state == W_LEFT;
    w->state = W_STARTED;
    w->starting = true;
    started++;
    fair__wait_unlock();
    if (joins)
        enif_thread_join(w->tid, NULL);     /* it is at its last line */
    {
        char name[24];

        snprintf(name, sizeof name, "fairnif_%u", (unsigned)(w - workers) + 1);
        error = enif_thread_create(name, &w->tid, thread_main, w, NULL);
    }
    fair__wait_lock();
    w->starting = false;
    if (error) {
        w->state = W_FREE;
        started--;
        counts.failed_starts++;
    }
    return !error;
}

static bool waits(const struct fair__job *job)
{
    return job->waits || (job->func && GET(job->func->sleeps) > 0);
}

/* The first of the queue that may begin, as far as is known.  With the lock
 * held. */
static struct fair__job *next_to_begin(void)
{
    struct fair__job *job = queue.first;

    if (counted < GET(fair__config.dirty_cpus))
        return job;
    for (unsigned i = 0; job && i < PASSED_MOST; i++, job = job->next)
        if (waits(job))
            return job;
    return NULL;
}

/* Another thread for what is queued, if none is on its way.  What waits for room
 * counts: each thread that comes lets one of it in.  With the lock held, which
 * is let go while a thread starts. */
static bool call_thread(void)
{
    /* The keeper comes, and calls the next one. */
    if (keeper && !next_to_begin())
        return true;
    if (queue.count + overflow.count > spinning + woken + ending) {
        if (idle > woken) {
            woken++;
            pthread_cond_signal(&work);
        } else if (started < GET(fair__config.threads)) {
            return start_thread() || started > 0;
        }
    }
    return true;
}

static bool kick(void)
{
    bool will_be_done;

    fair__wait_lock();
    will_be_done = call_thread();
    fair__wait_unlock();
    return will_be_done;
}

static pthread_mutex_t first = PTHREAD_MUTEX_INITIALIZER;
static _Atomic bool is_there;

/* From now on there is a thread; false: none could be started. */
bool fair__pool_start(void)
{
    bool starts;

    if (fair_likely(GET(is_there)))
        return true;
    pthread_mutex_lock(&first);
    fair__wait_lock();
    starts = started > 0 || start_thread();
    fair__wait_unlock();
    SET(is_there, starts);
    pthread_mutex_unlock(&first);
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
    pthread_mutex_lock(&first);
    will_be_done = kick();
    SET(is_there, will_be_done);
    pthread_mutex_unlock(&first);
    return will_be_done;
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

static void take(struct fair__job *job)
{
    take_off(&queue, job);
    fill_queue();
    note_wait(job);
    job->state = J_IDLE;
}

/* Are fewer than `most` of those threads at work on a processor, or waiting for
 * one?  With the lock held, which is let go for the while: some us. */
static bool few_compute(uint64_t most)
{
    int tids[THREADS_MOST];
    unsigned count = 0;
    uint64_t computing = 0;

    for (struct worker *w = workers; w < workers + THREADS_MOST; w++) {
        if (!w->counted)
            continue;
        if (GET(w->runs))
            tids[count++] = w->os_id;
        else
            computing++;
    }
    fair__wait_unlock();
    while (count > 0 && computing < most)
        computing += fair__thread_computes(tids[--count]);
    fair__wait_lock();
    return computing < most;
}

/* What this thread may take from the queue; NULL: nothing.  With the lock held,
 * which is let go while it waits until there is something, as the keeper; one is
 * enough. */
static struct fair__job *pass_gate(void)
{
    const struct timespec pause = {.tv_nsec = GATE_NS};
    struct fair__job *job = next_to_begin();
    uint64_t now;

    if (job == queue.first || keeper)
        return job;
    keeper = true;
    while (queue.first && started <= GET(fair__config.threads)) {
        now = fair__now();
        /* Also while others pass: it may be that all who compute sleep. */
        if (now - looked_at >= GATE_NS) {
            looked_at = now;
            few_seen = few_compute(GET(fair__config.dirty_cpus)) ? few_seen + 1 : 0;
            if (few_seen >= GATE_LOOKS) {
                few_seen = 0;
                job = queue.first;      /* as it is now */
                break;
            }
        }
        job = next_to_begin();
        if (job)
            break;
        fair__wait_unlock();
        nanosleep(&pause, NULL);
        fair__wait_lock();
    }
    keeper = false;
    return started <= GET(fair__config.threads) ? job : NULL;
}

/* One job of the function ended: it was asleep for most of it, or not.  Who was
 * only kept from a processor by others has not slept. */
static void learn(struct fair__func *func, const struct fair__used *before)
{
    struct fair__used now;
    int sleeps = GET(func->sleeps);

    if (!fair__thread_used(&now))
        return;
    if (now.sleeps > before->sleeps
        && 2 * (now.cpu_ns - before->cpu_ns) < now.ns - before->ns)
        SET(func->sleeps, sleeps < SLEEPS_MOST ? sleeps + 1 : sleeps);
    else
        SET(func->sleeps, sleeps > -SLEEPS_MOST ? sleeps - 1 : sleeps);
}

/* Runs it, which may free it. */
static void run(struct fair__job *job, bool learns)
{
    struct fair__func *func = learns ? job->func : NULL;
    struct fair__used before;

    if (func && !fair__thread_used(&before))
        func = NULL;
    job->run(job);
    if (func)
        learn(func, &before);
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
        pthread_cond_wait(&work, &lock);
    else
        error = pthread_cond_timedwait(&work, &lock, &until);
    idle--;
    /* Whoever comes first stands for the one that was signalled: at worst a
     * signal too many is sent then, never one too few. */
    if (woken > 0)
        woken--;
    return error != ETIMEDOUT;
}

/* What it runs must not rely on the thread it ran on before. */
static void *thread_main(void *arg)
{
    struct worker *w = arg;
    unsigned rounds = 0;
    char alternate[ALTERNATE_STACK];

    fair__os_alternate_stack(alternate, sizeof alternate);
    w->record = fair__thread_adopt(w->record);  /* NULL: without memory */
    fair__wait_lock();
    w->os_id = fair__thread_id();
    while ((rounds < IDLE_ROUNDS || queue.first || started == 1)
           && started <= GET(fair__config.threads)) {
        struct fair__job *job = pass_gate();
        bool learns;

        if (!job) {
            if (started > GET(fair__config.threads))
                continue;       /* it is to leave, and not to sleep before */
            if (queue.first || !spin())
                rounds = sleep_idle() ? 0 : rounds + 1;
            continue;
        }
        rounds = 0;
        take(job);
        learns = counts.busy++ >= GET(fair__config.dirty_cpus);
        w->counted = !waits(job);
        counted += w->counted;
        if (queue.first)
            call_thread();      /* what came while there was a keeper did not */
        fair__wait_unlock();
        SET(w->runs, true);
        run(job, learns);
        SET(w->runs, false);
        /* It may have got a record when this thread got none: `ending` is in
         * that one. */
        if (fair_unlikely(!w->record))
            w->record = fair__thread_adopt(fair__self());
        fair__wait_lock();
        counts.busy--;
        counted -= w->counted;
        w->counted = false;
        counts.done++;
        if (w->record && w->record->ending) {
            w->record->ending = false;
            ending--;
        }
    }
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
    c.queued = queue.count;
    c.overflowing = overflow.count;
    fair__wait_unlock();
    return c;
}
