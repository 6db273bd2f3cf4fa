/*
 * gate.c - decides which threads of the pool may compute.
 *
 * No more threads compute at a time than there are processors for it
 * (`dirty_cpus`).  No author says of a function whether it computes or waits:
 * it is learned of each (task/stint.c).  What is not known to wait counts
 * as computing, but for a thread that the kernel has asleep at two looks in a
 * row.  What may not begin yet stays in the queue, and lets pass what waits; one
 * thread, the keeper, looks again and again.
 */
#include "thread/gate.h"

#include "thread/low.h"

#include "base/config.h"
#include "base/os.h"

enum {
    PASSED_MOST = 16,           /* of the queue: what waits is looked for there */
    GATE_NS = 2000000,          /* after which the keeper looks again */
    GATE_LOOKS = 2              /* in a row must find few who compute: who
                                   computes may sleep a moment, at a lock or for
                                   a page of memory */
};

static struct seat {
    struct fair__thread *record;    /* of the pool's thread; NULL: no memory */
    int os_id;
    bool counted;               /* what it does may compute */
    _Atomic bool runs;          /* it is in the work itself, not on its way there
                                   through the lock */
} seats[FAIR__THREADS_MOST];
static uint64_t counted;        /* how many of them */
static bool keeper;             /* a thread waits until the first of the queue may
                                   begin, or looks whether */
static uint64_t looked_at;      /* when who computes was last looked at */
static unsigned few_seen;       /* looks in a row that found few */

static bool is_known_to_wait(const struct fair__job *job)
{
    return job->waits || (job->func && GET(job->func->sleeps) > 0);
}

/* Of the queue, as far as is known. */
static struct fair__job *next_to_begin(struct fair__job *job)
{
    if (counted < GET(fair__config.dirty_cpus))
        return job;
    for (unsigned i = 0; job && i < PASSED_MOST; i++, job = job->next)
        if (is_known_to_wait(job))
            return job;
    return NULL;
}

bool fair__gate_is_kept(struct fair__job *first)
{
    return keeper && !next_to_begin(first);
}

/* Are fewer than `most` of those threads at work on a processor, or waiting for
 * one?  With the lock held, which is released meanwhile, for some us. */
static bool few_compute(uint64_t most)
{
    int tids[FAIR__THREADS_MOST], tid;
    unsigned count = 0;
    uint64_t computing = 0;

    for (struct seat *s = seats; s < seats + FAIR__THREADS_MOST; s++) {
        if (!s->counted)
            continue;
        tid = GET(s->runs) ? fair__low_id(s->record, s->os_id) : -1;
        if (tid >= 0)
            tids[count++] = tid;
        else
            computing++;
    }
    fair__wait_unlock();
    while (count > 0 && computing < most)
        computing += fair__thread_computes(tids[--count]);
    fair__wait_lock();
    return computing < most;
}

struct fair__job *fair__gate_pass(struct fair__job *const *first,
                                  const unsigned *threads)
{
    struct fair__job *job = next_to_begin(*first);
    uint64_t now;

    if (job == *first || keeper)
        return job;
    keeper = true;
    while (*first && *threads <= GET(fair__config.threads)) {
        now = fair__now();
        /* Also while others pass: it may be that all who compute sleep. */
        if (now - looked_at >= GATE_NS) {
            looked_at = now;
            few_seen = few_compute(GET(fair__config.dirty_cpus)) ? few_seen + 1 : 0;
            if (few_seen >= GATE_LOOKS) {
                few_seen = 0;
                job = *first;      /* as it is now */
                break;
            }
        }
        job = next_to_begin(*first);
        if (job)
            break;
        fair__wait_unlock();
        fair__sleep_ns(GATE_NS);
        fair__wait_lock();
    }
    keeper = false;
    return *threads <= GET(fair__config.threads) ? job : NULL;
}

void fair__gate_run(unsigned seat, struct fair__job *job)
{
    SET(seats[seat].runs, true);
    job->run(job);
    SET(seats[seat].runs, false);
}

void fair__gate_seat(unsigned seat, int os_id)
{
    seats[seat].os_id = os_id;
}

void fair__gate_enter(unsigned seat, struct fair__thread *record,
                      const struct fair__job *job)
{
    seats[seat].record = record;
    seats[seat].counted = !is_known_to_wait(job);
    counted += seats[seat].counted;
}

void fair__gate_leave(unsigned seat)
{
    counted -= seats[seat].counted;
    seats[seat].counted = false;
}
