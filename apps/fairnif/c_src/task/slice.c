/*
 * slice.c - time: when a task gives way, what it is charged, what is learned.
 *
 * A tick only counts down.  The clock is read when the count is used up: at
 * an eighth of a slice, by what the dearest units of late cost, and near its
 * end; in between too, if the units proved dearer than expected.
 * What lies between two reads is a *window*; its time divided by its units is
 * a sample of the rate.  The first slice of a call does not even read
 * the clock at its begin, but for one call in about 64 (every call, where
 * calls are so long that it does not show), and is charged by what was
 * learned.
 *
 * Wall time is what a neighbour waits, and cheap; but it contains what the
 * operating system took away.  So a sample may move the rate only so far, and
 * a gap without ticks counts as the body's own only when CPU time confirms it.
 */
#include "task/slice.h"

#include "base/config.h"
#include "base/os.h"
#include "task/debug.h"
#include "task/env.h"
#include "task/switch.h"

/* Part of a slice after which the clock is read first; part from which a
 * slice counts as used up. */
static const double first_look = 0.125, used_up = 0.85;

/* Costs below this count as nothing. */
#define LEAST_NS 1e-4

enum {
    SHORT_WINDOW_NS = 500,      /* the clock itself takes 20 */
    WARM_CALLS = 8,
    TIME_ALWAYS_NS = 5000,      /* calls of this mean length are all timed:
                                   2 x 20 ns are under 1 % of it */
    OUTLIER_NS = 100000,        /* what one sample of a call may add at most */
    SURE_GAP_NS = 50000000,     /* no scheduler of an operating system... */
    SUSPECT_SLICES = 32,
    GAPS_ENOUGH = 4, GAPS_MOST = 16,
    GROWTH = 4,                 /* of windows, from one to the next */
    TERMS_DIVIDE = 8,           /* dirty slices of bodies that make terms: what
                                   piles up until the collector comes */
    FEW_BYTES = 4096,           /* of terms: not worth a hop */
    UNPROVEN_SLICES = 4,        /* charged at most without CPU time read */
    COARSE_NS = 8000000         /* two steps of the coarse clock */
};
static const uint64_t most_units = (uint64_t)1 << 40;

static uint64_t min_u(uint64_t a, uint64_t b) { return a < b ? a : b; }
static double min_d(double a, double b) { return a < b ? a : b; }
static double max_d(double a, double b) { return a > b ? a : b; }

/* -- learning ------------------------------------------------------------ */

static uint64_t units_for(double ns, double unit_ns)
{
    double units = ns / unit_ns;

    return units < 1 ? 1 : units > (double)most_units ? most_units
        : (uint64_t)units;
}

static uint64_t slice_of(const struct fair__task *t)
{
    uint64_t own = t->nif->slice_ns;

    if (t->where != W_NORMAL)
        return GET(fair__config.dirty_slice_ns)
            / (t->makes_terms ? TERMS_DIVIDE : 1);
    return own ? own : GET(fair__config.slice_ns);
}

/* Time divided by units is an upper bound of what a unit costs, however short
 * the time was: the rest is the clock, the call, cold caches.  So a sample may
 * always pull the rate down; up only one that is long enough. */
static void learn_unit(struct fair__task *t, double elapsed, double units)
{
    struct fair__func *f = t->func;
    double old = GET(f->unit_ns), peak = GET(f->peak_ns);
    double sample = max_d(elapsed / units, LEAST_NS), unit_ns;

    if (old > 0 && sample >= old && elapsed < SHORT_WINDOW_NS)
        return;
    if (old <= 0)
        unit_ns = sample;
    else if (GET(f->warm_calls) < WARM_CALLS)
        unit_ns = min_d(old, sample);
    else if (sample < old / 4)
        unit_ns = old / 2;
    else
        unit_ns = old + (min_d(old * 4, sample) - old) / 8;
    t->unit_ns = t->unit_ns > 0
        ? (t->unit_ns + max_d(t->unit_ns / 4, min_d(t->unit_ns * 4, sample))) / 2
        : sample;
    if (f->mixed)
        return;
    peak = sample > peak ? min_d(sample, max_d(4 * peak, unit_ns))
        : peak - (peak - sample) / 64;
    SET(f->unit_ns, unit_ns);
    SET(f->peak_ns, peak);
    SET(f->first_budget,
        units_for(first_look * (double)GET(fair__config.slice_ns), peak));
}

static double average(double old, double sample, double most)
{
    sample = max_d(0, min_d(sample, most));
    sample = old > 0 ? old + (sample - old) / 8 : sample;
    return sample < LEAST_NS ? 0 : sample;
}

/* A call that was timed as a whole, and ended in its first window.  The first
 * few of a function are all timed: the very first one is slow, with cold
 * caches and pages that are not there yet. */
static void learn_call(struct fair__task *t, double elapsed)
{
    struct fair__func *f = t->func;
    double units = (double)t->units;

    if (units > 0)
        learn_unit(t, elapsed, units);
    SET(f->mean_ns, average(GET(f->mean_ns), elapsed, OUTLIER_NS));
    SET(f->call_ns, average(GET(f->call_ns), elapsed - units * GET(f->unit_ns),
                            min_d(OUTLIER_NS, 4 * GET(f->mean_ns))));
    if (fair_unlikely(GET(f->warm_calls) < WARM_CALLS)) {
        ADD(f->warm_calls, 1);
        if (GET(f->warm_calls) < WARM_CALLS) {
            /* What is cold counts for nothing yet. */
            SET(f->call_ns, 0);
            SET(f->mean_ns, 0);
        }
        t->stat->countdown = 1;
    }
}

/* -- gaps ---------------------------------------------------------------- */

static void judge_adaption(struct fair__func *f, int change)
{
    int gaps = GET(f->long_gaps) + change;

    gaps = gaps < 0 ? 0 : gaps > GAPS_MOST ? GAPS_MOST : gaps;
    SET(f->long_gaps, gaps);
    if (!fair__modes[GET(f->mode)].adapts)
        return;
    if (gaps >= GAPS_ENOUGH)
        SET(f->adapted, true);
    else if (gaps == 0)
        SET(f->adapted, false);
}

/* `ns` without a tick.  On the thread that ran them. */
static void note_gap(struct fair__task *t, uint64_t ns)
{
    struct fair__func *f = t->func;

    if (ns > 4 * GET(fair__config.slice_ns)) {
        if (t->cpu_start) {
            uint64_t cpu = fair__cpu_now() - t->cpu_win;

            ns = cpu < ns ? cpu : ns;
        } else {
            SET(f->suspect, SUSPECT_SLICES);
            if (ns >= SURE_GAP_NS)
                RAISE_TO(t->stat->longest_gap_ns, ns);
            return;
        }
        if (ns >= GET(fair__config.adapt_gap_ns)) {
            t->had_gap = true;
            judge_adaption(f, 1);
        }
    }
    RAISE_TO(t->stat->longest_gap_ns, ns);
}

/* -- windows ------------------------------------------------------------- */

static void open_window(struct fair__task *t, uint64_t now, uint64_t units)
{
    if (fair_unlikely(GET(fair__config.pause_every_tick)) || t->ring)
        units = 0;
    if (fair_unlikely(t->cpu_start != 0))
        t->cpu_win = fair__cpu_now();
    t->win_start = now;
    t->refill = units;
    t->pub.budget = units;
}

/* The units of the window, of which `last` belong to the tick that ends it. */
static void close_window(struct fair__task *t, uint64_t now, uint64_t last)
{
    uint64_t units = t->refill - t->pub.budget + last;
    double rate = t->unit_ns > 0 ? t->unit_ns : GET(t->func->unit_ns);
    double elapsed, ticked;

    if (!t->timed) {
        /* An untimed first slice: its begin by what was learned. */
        uint64_t since = GET(t->since_ns);  /* by the coarse clock: earlier */
        double used = min_d((double)units * rate + GET(t->func->call_ns)
                            + (double)t->apart_ns, (double)(now - since));

        t->win_start = now - (uint64_t)used;
        t->slice_start = t->win_start;
        t->timed = t->estimated = true;
        t->stat->countdown = 1;         /* the next call checks it */
    }
    t->single = false;
    t->units += units;
    t->win_units = units;
    t->confirmed = false;
    t->refill = t->pub.budget;
    elapsed = (double)(now - t->win_start) - (double)t->apart_ns;
    t->apart_ns = 0;
    ticked = (double)(units - last) * rate;
    if (t->estimated) {
        t->estimated = false;
    } else if (units > 0) {
        t->confirmed = elapsed < 2 * rate * (double)units;
        learn_unit(t, elapsed, (double)units);
    }
    if (t->ring)                /* until it rings nobody is to tick */
        ticked = max_d(ticked, (double)t->slice_ns);
    if (elapsed > ticked)
        note_gap(t, (uint64_t)(elapsed - ticked));
}

/* Goes on with what is left of the slice: all of it when the last window was
 * no dearer than expected, else with a little more than that one had. */
static void reopen_window(struct fair__task *t, uint64_t now)
{
    double left = (double)t->slice_ns - (double)(now - t->slice_start);
    double rate = t->unit_ns > 0 ? t->unit_ns : GET(t->func->unit_ns);

    uint64_t units = rate > 0 ? units_for(left * 0.9, rate) : 0;
    uint64_t most = GROWTH * (t->win_units + 1);

    open_window(t, now, t->confirmed || units < most ? units : most);
}

/* -- slices -------------------------------------------------------------- */

static bool due_for_timing(struct fair__task *t)
{
    struct fair__fstat *st = t->stat;
    struct fair__thread *th = t->thread;

    if (fair_likely(--st->countdown != 0))
        return false;
    if (GET(t->func->mean_ns) >= TIME_ALWAYS_NS || GET(t->func->suspect) > 0) {
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
        t->cpu_start = fair__cpu_now();
    } else if (fair_unlikely(GET(fair__config.measure_cpu))) {
        t->cpu_start = fair__cpu_now();
    }
    t->slice_start = fair__now();
    t->timed = true;
}

/* The slice in which a call begins, in place on the caller's scheduler. */
void fair__first_slice(struct fair__task *t)
{
    t->slice_ns = slice_of(t);
    t->timed = t->estimated = t->single = false;
    t->cpu_start = 0;
    t->slice_before = 0;
    if (due_for_timing(t) || fair_unlikely(GET(fair__config.measure_cpu))) {
        read_clocks(t);
        t->single = true;
    }
    open_window(t, t->slice_start, GET(t->func->first_budget));
}

void fair__next_slice(struct fair__task *t)
{
    double rate = max_d(t->unit_ns, GET(t->func->peak_ns));

    t->slice_ns = slice_of(t);
    t->estimated = t->single = false;
    t->cpu_start = 0;
    t->slice_before = 0;
    read_clocks(t);
    open_window(t, t->slice_start,
                rate > 0 ? units_for(first_look * (double)t->slice_ns, rate)
                : 0);
}

static void count_slice(struct fair__task *t, uint64_t elapsed)
{
    struct fair__fstat *st = t->stat;
    uint64_t held = elapsed += t->slice_before;

    ADD(st->slices, 1);
    if (t->where != W_NORMAL) {
        ADD(*(t->where == W_THREAD ? &st->thread_ns : &st->dirty_ns), elapsed);
        return;
    }
    ADD(st->normal_ns, elapsed);
    if (t->timed) {
        if (t->cpu_start)
            held = fair__cpu_now() - t->cpu_start;
        RAISE_TO(st->longest_slice_ns, held);
        ADD(st->histogram[fair__bucket(held)], 1);
    }
    /* What the operating system took is not charged. */
    if (!t->cpu_start)
        held = min_u(elapsed, UNPROVEN_SLICES * GET(fair__config.slice_ns));
    t->debt_ns = min_d(t->debt_ns + (double)held,
                       FAIR__TURNS_MOST * (double)GET(fair__config.fair_ns));
}

/* After the stack was left, by a pause (t->now is then the clock) or for
 * good. */
void fair__slice_end(struct fair__task *t)
{
    struct fair__func *f = t->func;
    double elapsed;

    /* What is cancelled counts until then. */
    if (t->exit == X_PAUSE || t->exit == X_WAIT
        || fair_unlikely(t->pub.cancelled && t->timed)) {
        count_slice(t, t->now - t->slice_start);
        return;
    }
    if (fair_likely(!t->timed)) {
        uint64_t units = t->refill - t->pub.budget;
        uint64_t coarse = fair__now_coarse() - GET(t->since_ns);

        elapsed = GET(f->call_ns) + (double)units * GET(f->unit_ns)
            + (double)t->apart_ns;
        if (fair_unlikely(coarse > 0)) {
            /* A step of the coarse clock fell into this call: chance, or a
             * call much longer than was learned.  The next one will tell. */
            t->stat->countdown = 1;
            if (coarse >= COARSE_NS) {
                elapsed = (double)coarse;
                note_gap(t, coarse);
            }
        }
        count_slice(t, (uint64_t)elapsed);
        return;
    }
    t->now = fair__now();
    elapsed = (double)(t->now - t->slice_start);
    if (t->single) {
        /* All of it is one window: the call as a whole is the sample. */
        double own = elapsed - (double)t->apart_ns, ticked;

        t->units = t->refill - t->pub.budget;
        ticked = (double)t->units * GET(f->unit_ns);
        learn_call(t, own);
        if (GET(f->mean_ns) >= TIME_ALWAYS_NS)
            t->stat->countdown = 1;
        if (own > ticked)
            note_gap(t, (uint64_t)(own - ticked));
    } else {
        close_window(t, t->now, 0);
    }
    if (GET(f->long_gaps) > 0 && !t->had_gap)
        judge_adaption(f, -1);
    count_slice(t, (uint64_t)elapsed);
}

/* Charges reductions for *debt_ns, and leaves there what is too little to be
 * charged or more than the process has left in this turn.  In steps, since
 * the VM does not say how much of a charge found reductions to take; but in
 * one go where the whole turn is the task's. */
void fair__charge(ErlNifEnv *env, double *debt_ns, bool whole_turn)
{
    double fair_ns = (double)GET(fair__config.fair_ns), percent_ns;

    if (*debt_ns * 100 < fair_ns)
        return;
    percent_ns = fair_ns / 100;
    if (whole_turn) {
        double percent = min_d(*debt_ns / percent_ns, 100);

        *debt_ns -= (int)percent * percent_ns;
        enif_consume_timeslice(env, (int)percent);
        return;
    }
    while (*debt_ns >= percent_ns) {
        double percent = min_d(*debt_ns / percent_ns, 10);

        *debt_ns -= (int)percent * percent_ns;
        if (enif_consume_timeslice(env, (int)percent))
            break;
    }
}

/* The same for who is charged for a whole turn at a time, by the clock: percent
 * of one. */
int fair__price(uint64_t ns)
{
    uint64_t percent = ns * 100 / GET(fair__config.fair_ns);

    return percent < 1 ? 1 : percent > 100 ? 100 : (int)percent;
}

/* -- giving way ---------------------------------------------------------- */

/* For who runs more than one thing in a slice. */
bool fair__slice_is_up(uint64_t since)
{
    return (double)(fair__now() - since)
        >= used_up * (double)GET(fair__config.slice_ns);
}

static void leave_slice(struct fair__task *t, enum fair__where target,
                        enum fair__exit exit)
{
    SET(t->target, target);
    __atomic_store_n(&t->pub.yields, t->pub.yields + 1, __ATOMIC_RELAXED);
    t->made = 0;
    t->lacked = NULL;           /* whatever it was, the body went on */
    t->pub.env_used = 0;
    fair__leave(t, exit);
}

/* All pauses go through here.  An exception that is pending would be lost with
 * this slice's environment: such a body does not pause any more. */
static void give_way(struct fair__task *t, enum fair__where target)
{
    if (fair_unlikely(t->pub.env
                      && enif_has_pending_exception(t->pub.env, NULL))) {
        fair__misuse(t, RULE_EXCEPTION);
        reopen_window(t, t->now);
        return;
    }
    /* What is made on a dirty scheduler is not collected between dirty slices,
     * only when a normal scheduler has the process.  Many roots are a tuple,
     * made anew at each pause. */
    if (fair_unlikely(t->outbox != 0)) {
        fair__hand_out(t);
        if (t->where == target)
            return;
        t->now = fair__now();
        close_window(t, t->now, 0);
    }
    t->hop = (t->makes_terms || t->roots_used > FAIR__INLINE_ROOTS)
        && t->where != W_NORMAL && target != W_NORMAL && t->where != W_THREAD
        && !t->callback;
    if (fair_unlikely(t->callback != NULL))
        target = W_THREAD;          /* out of the VM's call */
    leave_slice(t, target, X_PAUSE);
}

/* In this slice, as far as can be seen: what is made with fair_env cannot. */
static bool makes_terms(const struct fair__task *t)
{
    return t->made > FEW_BYTES || t->pub.env_used;
}

static bool must_give_way(struct fair__task *t)
{
    if (!FAIR__TASKS)
        return false;
    if (t->where == W_THREAD)
        return fair__pool_presses() || GET(fair__config.pause_every_tick);
    if (t->yielding)
        return true;
    /* What is made on a dirty scheduler is garbage to nobody until the task
     * passes a normal one. */
    if (t->where != W_NORMAL && t->makes_terms)
        return true;
    /* The VM collects large heaps on the dirty CPU schedulers. */
    return t->where == W_DIRTY_CPU
        && GET(fair__config.dirty_running)
           >= (int64_t)GET(fair__config.dirty_cpus);
}

/* The slice is up. */
static void slice_is_up(struct fair__task *t)
{
    if (!fair__alive(t))
        fair__leave(t, X_DROP);         /* does not return */
    t->makes_terms = makes_terms(t);
    if (t->outbox || must_give_way(t)) {
        give_way(t, t->where);
    } else {
        t->slice_before += t->now - t->slice_start;
        t->slice_start = t->now;
        t->slice_ns = slice_of(t);
        if (fair_unlikely(t->ring != NULL))
            fair__set_alarm(t, t->slice_ns);
        reopen_window(t, t->now);
    }
}

static bool is_up(const struct fair__task *t)
{
    return (double)(t->now - t->slice_start)
           >= used_up * (double)t->slice_ns
        || (t->ring && !t->thread->has_timer)    /* it has rung at once */
        || (t->where != W_NORMAL && t->where != W_THREAD
            && t->made >= FAIR__TERMS_ON_DIRTY)
        || GET(fair__config.pause_every_tick);
}

void fair__tick(fair_task *pub, size_t units)
{
    struct fair__task *t = fair__of(pub);

    if (fair_unlikely(fair__used_away(t)))
        return;
    t->now = fair__now();
    close_window(t, t->now, units > FAIR__BOGUS_UNITS ? 1 : units + 1);
    if (fair_unlikely(t->thread->locks > 0)) {
        fair__misuse(t, RULE_LOCK);
        reopen_window(t, t->now);
    } else if (is_up(t)) {
        slice_is_up(t);
    } else {
        reopen_window(t, t->now);
    }
}

/* The next tick reads the clock. */
void fair__force_look(struct fair__task *t)
{
    t->refill -= t->pub.budget;
    t->pub.budget = 0;
}

void fair__work_begin(struct fair__task *t)
{
    if (fair_unlikely(fair__used_away(t)))
        return;
    t->now = fair__now();
    close_window(t, t->now, 0);
}

void fair__work(struct fair__task *t)
{
    if (fair_unlikely(t->away))
        return;
    t->now = fair__now();
    if (is_up(t))
        slice_is_up(t);
}

void fair__work_end(struct fair__task *t)
{
    if (fair_unlikely(t->away))
        return;
    t->now = fair__now();
    reopen_window(t, t->now);
}

/* Goes on, on another kind of scheduler. */
void fair__go(struct fair__task *t, enum fair__where where)
{
    if (t->where == where || t->where == W_THREAD || !FAIR__TASKS)
        return;
    t->now = fair__now();
    close_window(t, t->now, 0);
    t->makes_terms = t->where == W_NORMAL || makes_terms(t);
    t->yielding = where != fair__modes[t->nif->mode].start
        || t->nif->yields;
    give_way(t, where);
}

/* Goes on, on the same kind of scheduler, when what it waits for has come. */
void fair__go_waiting(struct fair__task *t)
{
    t->now = fair__now();
    close_window(t, t->now, 0);
    if (fair_unlikely(enif_has_pending_exception(t->pub.env, NULL)))
        fair__fail(t, "went_on_after_raising");
    t->makes_terms = t->where == W_NORMAL || makes_terms(t);
    t->hop = false;
    leave_slice(t, t->where, X_WAIT);
}

void fair__hand_out(struct fair__task *t)
{
    t->asked = enif_make_list_cell(t->pub.env, t->outbox,
                                   enif_make_atom(t->pub.env, "sent"));
    t->outbox = 0;
    t->answer_root = FAIR__NO_ROOT;
    t->waits_for = T_ASKS;
    fair__go_waiting(t);
}

/* What was announced and could not tick took until t->now.  Too little to look
 * for the end of the slice is put by: a look is dear beside a short call. */
void fair__announced(struct fair__task *t, uint64_t ns)
{
    t->apart_ns += ns;
    if (fair_likely((double)t->apart_ns < first_look * (double)t->slice_ns)
        && fair_likely(!GET(fair__config.pause_every_tick)))
        return;
    close_window(t, t->now, 0);
    if (is_up(t) && t->where == W_NORMAL)
        slice_is_up(t);
    else
        reopen_window(t, t->now);
}
