/*
 * slice.c - decides when a task yields.
 *
 * A tick only counts down; window.c says how far.
 */
#include "task/slice.h"

#include "base/config.h"
#include "base/os.h"
#include "task/debug.h"
#include "task/env.h"
#include "task/learn.h"
#include "task/switch.h"
#include "task/window.h"

/* Part of a slice from which it counts as used up. */
static const double used_up = 0.85;

enum {
    TERMS_DIVIDE = 8,           /* dirty slices of bodies that make terms: what
                                   piles up until the collector comes */
    FEW_BYTES = 4096,           /* of terms: not worth a hop */
    UNPROVEN_SLICES = 4,        /* charged at most without CPU time read */
    COARSE_NS = 8000000         /* two steps of the coarse clock */
};

static uint64_t min_u(uint64_t a, uint64_t b) { return a < b ? a : b; }

static uint64_t slice_of(const struct fair__task *t)
{
    uint64_t own = t->nif->slice_ns;

    if (t->where != W_NORMAL)
        return GET(fair__config.dirty_slice_ns)
            / (t->slice.makes_terms ? TERMS_DIVIDE : 1);
    return own ? own : GET(fair__config.slice_ns);
}

/* -- slices -------------------------------------------------------------- */

static bool due_for_timing(struct fair__task *t)
{
    struct fair__fstat *st = t->stat;
    struct fair__thread *th = t->thread;

    if (fair_likely(--st->countdown != 0))
        return false;
    if (fair__always_timed(t->func) || GET(t->func->suspect) > 0) {
        st->countdown = 1;
    } else {
        th->seed ^= th->seed << 13;
        th->seed ^= th->seed >> 17;
        th->seed ^= th->seed << 5;
        st->countdown = 32 + th->seed % 64;
    }
    return true;
}

static void read_clocks(struct fair__task *t)
{
    if (fair_unlikely(GET(t->func->suspect) > 0)) {
        atomic_fetch_sub_explicit(&t->func->suspect, 1, memory_order_relaxed);
        t->slice.cpu_start = fair__cpu_now();
    } else if (fair_unlikely(GET(fair__config.measure_cpu))) {
        t->slice.cpu_start = fair__cpu_now();
    }
    t->slice.start = fair__now();
    t->slice.timed = true;
}

/* The slice in which a call begins, in place on the caller's scheduler. */
void fair__first_slice(struct fair__task *t)
{
    t->slice.ns = slice_of(t);
    t->slice.timed = t->slice.estimated = t->slice.whole = false;
    t->slice.cpu_start = 0;
    t->slice.before = 0;
    if (due_for_timing(t) || fair_unlikely(GET(fair__config.measure_cpu))) {
        read_clocks(t);
        t->slice.whole = true;
    }
    fair__window_open(t, t->slice.start, GET(t->func->first_budget));
}

void fair__next_slice(struct fair__task *t)
{
    double rate = fair__max(t->slice.unit_ns, GET(t->func->peak_ns));

    t->slice.ns = slice_of(t);
    t->slice.estimated = t->slice.whole = false;
    t->slice.cpu_start = 0;
    t->slice.before = 0;
    read_clocks(t);
    fair__window_open(t, t->slice.start,
                rate > 0 ? fair__units_for(fair__first_look
                                           * (double)t->slice.ns, rate) : 0);
}

static void count_slice(struct fair__task *t, uint64_t elapsed)
{
    struct fair__fstat *st = t->stat;
    uint64_t used = elapsed += t->slice.before;

    ADD(st->slices, 1);
    if (t->where != W_NORMAL) {
        ADD(*(t->where == W_THREAD ? &st->thread_ns : &st->dirty_ns), elapsed);
        return;
    }
    ADD(st->normal_ns, elapsed);
    if (t->slice.timed) {
        if (t->slice.cpu_start)
            used = fair__cpu_now() - t->slice.cpu_start;
        RAISE_TO(st->longest_slice_ns, used);
        ADD(st->histogram[fair__bucket(used)], 1);
    }
    /* What the operating system took is not charged. */
    if (!t->slice.cpu_start)
        used = min_u(elapsed, UNPROVEN_SLICES * GET(fair__config.slice_ns));
    t->slice.debt_ns = fair__min(t->slice.debt_ns + (double)used,
                       FAIR__TURNS_MOST * (double)GET(fair__config.turn_ns));
}

/* Kept out of the path of a call that is not timed. */
static __attribute__((noinline)) void timed_end(struct fair__task *t)
{
    uint64_t elapsed;

    t->slice.now = fair__now();
    elapsed = t->slice.now - t->slice.start;
    fair__learn_mean(t, (double)elapsed);
    fair__window_close(t, t->slice.now, 0);
    fair__judge_call(t);
    count_slice(t, elapsed);
}

/* After the stack was left, by a pause (t->slice.now is then the clock) or for
 * good. */
void fair__slice_end(struct fair__task *t)
{
    struct fair__func *f = t->func;
    double elapsed;

    /* What is cancelled counts until then. */
    if (t->exit == X_PAUSE || t->exit == X_WAIT
        || fair_unlikely(t->pub.cancelled && t->slice.timed)) {
        count_slice(t, t->slice.now - t->slice.start);
        return;
    }
    if (fair_likely(!t->slice.timed)) {
        uint64_t units = t->slice.refill - t->pub.budget;
        uint64_t coarse = fair__now_coarse() - GET(t->since_ns);

        elapsed = GET(f->call_ns) + (double)units * GET(f->unit_ns)
            + (double)t->slice.apart_ns;
        if (fair_unlikely(coarse > 0)) {
            /* A step of the coarse clock fell into this call: chance, or a
             * call much longer than was learned.  The next one will tell. */
            t->stat->countdown = 1;
            if (coarse >= COARSE_NS) {
                elapsed = (double)coarse;
                fair__note_gap(t, coarse);
            }
        }
        count_slice(t, (uint64_t)elapsed);
    } else {
        timed_end(t);
    }
}

/* -- yielding ------------------------------------------------------------ */

/* For callers that run more than one thing in a slice. */
bool fair__slice_is_up(uint64_t since)
{
    return (double)(fair__now() - since)
        >= used_up * (double)GET(fair__config.slice_ns);
}

static void leave_slice(struct fair__task *t, enum fair__where target,
                        enum fair__exit exit)
{
    if (fair_unlikely(t->thread->locks > 0))
        fair__misuse(t, RULE_LOCK);
    SET(t->target, target);
    __atomic_store_n(&t->pub.yields, t->pub.yields + 1, __ATOMIC_RELAXED);
    t->slice.made = 0;
    t->lacked = NULL;           /* whatever it was, the body continued */
    t->pub.env_used = 0;
    fair__leave(t, exit);
}

/* All pauses go through here.  An exception that is pending would be lost with
 * this slice's environment: such a body does not pause any more. */
static void end_slice(struct fair__task *t, enum fair__where target)
{
    if (fair_unlikely(fair__has_raised(t))) {
        fair__misuse(t, RULE_EXCEPTION);
        fair__window_reopen(t, t->slice.now);
        return;
    }
    /* What is made on a dirty scheduler is not collected between dirty slices,
     * only when a normal scheduler has the process.  Of many roots tuples are
     * made at each pause. */
    if (fair_unlikely(t->ask.outbox != 0)) {
        fair__hand_out(t);
        if (t->where == target)
            return;
        t->slice.now = fair__now();
        fair__window_close(t, t->slice.now, 0);
    }
    t->slice.hop = (t->slice.makes_terms
                    || t->hold.roots_used > FAIR__INLINE_ROOTS)
        && t->where != W_NORMAL && target != W_NORMAL && t->where != W_THREAD
        && !t->kind->apart;
    /* A callback goes out of the VM's call. */
    leave_slice(t, t->kind->apart ? W_THREAD : target, X_PAUSE);
}

/* In this slice, as far as can be seen: what is made with fair_env cannot. */
static bool makes_terms(const struct fair__task *t)
{
    return t->slice.made > FEW_BYTES || t->pub.env_used;
}

static bool must_yield(struct fair__task *t)
{
    if (!FAIR__TASKS)
        return false;
    if (fair_unlikely(GET(fair__config.halts)))
        return true;
    if (t->where == W_THREAD)
        return fair__pool_presses() || GET(fair__config.pause_every_tick)
            || (t->hold.mutexes ? t->thread->is_low : t->slice.at_par);
    if (t->slice.yielding)
        return true;
    /* No garbage collection frees what is made on a dirty scheduler until the
     * task passes a normal one. */
    if (t->where != W_NORMAL && t->slice.makes_terms)
        return true;
    /* The VM collects large heaps on the dirty CPU schedulers. */
    return t->where == W_DIRTY_CPU
        && GET(fair__config.dirty_running)
           >= (int64_t)GET(fair__config.dirty_cpus);
}

/* The slice is up. */
static void slice_is_up(struct fair__task *t)
{
    /* At halt the VM, or the next slice, would not come; a thread of the pool
     * would: in code whose statics are being destroyed. */
    if (fair_unlikely(GET(fair__config.halts)) && t->where == W_THREAD) {
        fair__slot_leave(t->thread);
        fair__os_stay();
    }
    if (!fair__alive(t))
        fair__leave(t, X_DROP);         /* does not return */
    t->slice.makes_terms = makes_terms(t);
    if (t->ask.outbox || must_yield(t)) {
        end_slice(t, t->where);
    } else {
        t->slice.whole = false;
        t->slice.before += t->slice.now - t->slice.start;
        t->slice.start = t->slice.now;
        t->slice.ns = slice_of(t);
        if (fair_unlikely(t->alarm.ring != NULL))
            fair__set_alarm(t, t->slice.ns);
        fair__window_reopen(t, t->slice.now);
    }
}

static bool is_up(const struct fair__task *t)
{
    return (double)(t->slice.now - t->slice.start)
           >= used_up * (double)t->slice.ns
        || (t->alarm.ring && !t->thread->has_timer)    /* it has rung at once */
        || (t->where != W_NORMAL && t->where != W_THREAD
            && t->slice.made >= FAIR__TERMS_ON_DIRTY)
        || (t->slice.yielding && t->where == W_NORMAL
            && t->hold.to_keep >= FAIR__KEEP_AT_ONCE)
        || GET(fair__config.pause_every_tick) || GET(fair__config.halts);
}

/* One that is cancelled here does not return (task/switch.c). */
int fair__tick(fair_task *pub, size_t units)
{
    struct fair__task *t = fair__of(pub);

    if (fair_unlikely(fair__used_away(t)))
        return 1;
    t->slice.now = fair__now();
    fair__window_close(t, t->slice.now,
                       units > FAIR__BOGUS_UNITS ? 1 : units + 1);
    if (fair_unlikely(t->thread->locks > 0)) {
        fair__misuse(t, RULE_LOCK);
        fair__window_reopen(t, t->slice.now);
    } else if (is_up(t)) {
        slice_is_up(t);
    } else {
        fair__window_reopen(t, t->slice.now);
    }
    return 1;
}

/* The next tick reads the clock. */
void fair__force_look(struct fair__task *t)
{
    t->slice.refill -= t->pub.budget;
    t->pub.budget = 0;
}

void fair__work_begin(struct fair__task *t)
{
    if (fair_unlikely(fair__used_away(t)))
        return;
    t->slice.now = fair__now();
    fair__window_close(t, t->slice.now, 0);
}

void fair__work(struct fair__task *t)
{
    if (fair_unlikely(t->away))
        return;
    t->slice.now = fair__now();
    if (is_up(t))
        slice_is_up(t);
}

void fair__work_end(struct fair__task *t)
{
    if (fair_unlikely(t->away))
        return;
    t->slice.now = fair__now();
    fair__window_reopen(t, t->slice.now);
}

/* Continues on another kind of scheduler. */
void fair__go(struct fair__task *t, enum fair__where where)
{
    if (t->where == where || t->where == W_THREAD || !FAIR__TASKS)
        return;
    t->slice.now = fair__now();
    fair__window_close(t, t->slice.now, 0);
    t->slice.makes_terms = t->where == W_NORMAL || makes_terms(t);
    t->slice.yielding = where != fair__modes[t->nif->mode].start
        || t->nif->yields;
    end_slice(t, where);
}

/* Continues on the same kind of scheduler, when what it waits for has come. */
void fair__go_waiting(struct fair__task *t)
{
    t->slice.now = fair__now();
    fair__window_close(t, t->slice.now, 0);
    if (fair_unlikely(fair__has_raised(t)))
        fair__fail(t, "went_on_after_raising");
    t->slice.makes_terms = t->where == W_NORMAL || makes_terms(t);
    t->slice.hop = false;
    leave_slice(t, t->where, X_WAIT);
}

void fair__hand_out(struct fair__task *t)
{
    t->ask.request = enif_make_list_cell(t->pub.env, t->ask.outbox,
                                         fair__atoms.sent);
    t->ask.outbox = 0;
    t->ask.root = FAIR__NO_ROOT;
    t->wait.state = T_WAIT_CALLER;
    fair__go_waiting(t);
}

/* What was announced and could not tick took until slice.now.  Too little to look
 * for the end of the slice is put by: a look costs much beside a short call. */
void fair__announced(struct fair__task *t, uint64_t ns)
{
    t->slice.apart_ns += ns;
    if (fair_likely((double)t->slice.apart_ns
                    < fair__first_look * (double)t->slice.ns)
        && fair_likely(!GET(fair__config.pause_every_tick)))
        return;
    fair__window_close(t, t->slice.now, 0);
    if (is_up(t) && t->where == W_NORMAL)
        slice_is_up(t);
    else
        fair__window_reopen(t, t->slice.now);
}
