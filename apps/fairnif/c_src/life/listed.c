/*
 * listed.c - the tasks that have been suspended and have not ended.
 *
 * A scheduler takes a shard's lock at a task's first pause and at its end.  So
 * a reader of the list, however long it is, has the lock for some of it at a
 * time; where it continues is marked in the list itself.  Those who came
 * meanwhile stand before the mark, and are not seen.
 */
#include "life/listed.h"

#include <stdlib.h>

#include "base/locks.h"
#include "base/os.h"

enum {
    AT_A_TIME = 32,             /* tasks copied: 10 us, cold */
    SLEEPS_MOST = 10            /* until a scheduler that waits has come */
};

static struct shard {
    struct fair__mutex lock;
    struct fair__link *first;
    _Atomic size_t count;
    _Atomic unsigned waiting;   /* schedulers, for the lock */
} shards[FAIR__SHARDS] = {
    [0 ... FAIR__SHARDS - 1] = {.lock = FAIR__MUTEX(RANK_SHARD)}
};

static struct shard *shard_of(const struct fair__task *t)
{
    return &shards[((uintptr_t)t->map >> 16) % FAIR__SHARDS];
}

static void lock(struct shard *s)
{
    fair__assert_rank(RANK_SHARD, true);
    if (fair_likely(pthread_mutex_trylock(&s->lock.mutex) == 0))
        return;
    atomic_fetch_add(&s->waiting, 1);
    pthread_mutex_lock(&s->lock.mutex);
    atomic_fetch_sub(&s->waiting, 1);
}

/* Behind `prev`, which is NULL or has `at` as its next one. */
static void insert(struct fair__link *link, struct fair__link *prev,
                   struct fair__link **at)
{
    link->prev = prev;
    link->next = *at;
    if (*at)
        (*at)->prev = link;
    *at = link;
}

static void take_out_link(struct shard *s, struct fair__link *link)
{
    *(link->prev ? &link->prev->next : &s->first) = link->next;
    if (link->next)
        link->next->prev = link->prev;
}

void fair__enlist(struct fair__task *t)
{
    struct shard *s = shard_of(t);

    if (t->listed)
        return;
    t->link.task = t;
    lock(s);
    insert(&t->link, NULL, &s->first);
    ADD(s->count, 1);
    fair__mutex_unlock(&s->lock);
    t->listed = true;
}

void fair__delist(struct fair__task *t)
{
    struct shard *s = shard_of(t);

    if (!t->listed)
        return;
    lock(s);
    take_out_link(s, &t->link);
    ADD(s->count, (size_t)-1);
    fair__mutex_unlock(&s->lock);
    t->listed = false;
}

size_t fair__suspended_count(void)
{
    size_t count = 0;

    for (unsigned i = 0; i < FAIR__SHARDS; i++)
        count += GET(shards[i].count);
    return count;
}

static bool is_outlived(const struct fair__task *t)
{
    return GET(t->is_process) && t->nif->lib != GET(t->func->newest)
        && t->nif->lib != GET(t->func->before);
}

static struct fair__seen_task seen(const struct fair__task *t)
{
    return (struct fair__seen_task){
        t->func, GET(t->state), GET(t->target), GET(t->since_ns),
        GET(t->cancel.since_ns),
        __atomic_load_n(&t->pub.yields, __ATOMIC_RELAXED), t->owner,
        is_outlived(t)
    };
}

/* Schedulers that wait come first: the lock itself would not care.  Linux 6.18
 * puts a thread that calls sched_yield behind all others, this scheduler too. */
static void let_others(struct shard *s)
{
    fair__mutex_unlock(&s->lock);
    for (unsigned i = 0; GET(s->waiting) > 0 && i < SLEEPS_MOST; i++)
        fair__sleep_ns(1);
    lock(s);
}

/* As many as there is room for. */
static size_t copy(struct shard *s, struct fair__seen_task *to, size_t room)
{
    struct fair__link mark = {.task = NULL}, *at, *last = &mark;
    size_t count = 0;

    lock(s);
    insert(&mark, NULL, &s->first);
    while (mark.next && count < room) {
        at = mark.next;
        for (unsigned i = 0; i < AT_A_TIME && at && count < room; i++) {
            if (at->task)
                to[count++] = seen(at->task);
            last = at;
            at = at->next;
        }
        take_out_link(s, &mark);
        insert(&mark, last, &last->next);
        if (at)
            let_others(s);
    }
    take_out_link(s, &mark);
    fair__mutex_unlock(&s->lock);
    return count;
}

struct fair__seen_task *fair__suspended(size_t *count)
{
    struct fair__seen_task *all = NULL;

    *count = 0;
    for (unsigned i = 0; i < FAIR__SHARDS; i++) {
        size_t room = GET(shards[i].count) + 64;
        struct fair__seen_task *more =
            realloc(all, (*count + room) * sizeof *more);

        if (!more)
            break;
        all = more;
        *count += copy(&shards[i], all + *count, room);
    }
    return all;
}
