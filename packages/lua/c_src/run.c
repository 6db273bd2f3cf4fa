/*
 * run.c - turns, limits and collections of a script.
 *
 * LuaJIT's interpreter calls the hook in whichever of the script's coroutines.
 * Its compiler is off: compiled code has no hooks.  While there is a hook, each
 * instruction takes twice as long.  So mostly there is none, and an alarm sets
 * one when a turn is over.  Only where instructions are to be counted, and at the
 * begin of a call, which may be short, it is called after a number of them.
 *
 * The hook does not pause: LuaJIT looks up where errno is before it and writes
 * there after it, which would be another thread's then.  It yields the coroutine
 * instead, and so do all that it is in (prelude.lua).  The body pauses between
 * two turns, when no frame of the interpreter is on its stack.
 *
 * LuaJIT's collector is stopped, since it works where an instruction allocates,
 * and a large table is one step to it: a collection is a loop of steps here.
 */
#include <time.h>

#include "script.h"

enum {
    LONG_NS = 200000,               /* EVERY instructions should take 10000 */
    LEAST_GROWTH = 256 * 1024,      /* bytes between two collections */
    STEP_COST = 200,                /* a step of the collector, as instructions */
    CAUGHT_COST = 100,              /* an error */
    FEW = 512 * 1024,               /* bytes: their atomic step takes no ms */
    NO_ALARM = 3                    /* rings too early, then there is none */
};

const char *const stops[] = {NULL, "instructions", "timeout", "memory"};

/* Also in a signal handler. */
static ErlNifTime time_now(void)
{
    struct timespec now;

    clock_gettime(CLOCK_MONOTONIC, &now);
    return (ErlNifTime)now.tv_sec * 1000000000 + now.tv_nsec;
}

/* -- where ------------------------------------------------------------------ */

/* Before what may pause: `rang' is of one slice. */
static uint64_t before_pause(struct script *s)
{
    s->rang = 0;
    return fair_yields(s->task);
}

static void after_pause(struct script *s, uint64_t yields)
{
    if (yields != fair_yields(s->task))
        s->turn = s->looked = time_now();
}

static void move(struct script *s, enum fair_mode from, enum fair_mode to)
{
    uint64_t yields;

    if (!s->task || fair_where(s->task) != from)
        return;
    yields = before_pause(s);
    fair_move(s->task, to);
    after_pause(s, yields);
}

void go_dirty(struct script *s)
{
    move(s, FAIR_NORMAL, FAIR_DIRTY_CPU);
}

/* On a normal scheduler is whose instructions cannot be long: no block is
 * large, none took long, and no large collection is under way. */
static bool may_be_long(const struct script *s)
{
    return s->large > 0 || s->fine < EVERY || s->collects;
}

static void settle(struct script *s)
{
    if (may_be_long(s))
        go_dirty(s);
    else
        move(s, FAIR_DIRTY_CPU, FAIR_NORMAL);
}

/* Instructions that turn out long are counted more finely, down to each.  Where
 * they are not counted, one is seen to be long that runs on after the alarm. */
static void adapt(struct script *s, ErlNifTime now)
{
    int most = s->large ? EVERY / 10 : EVERY;
    ErlNifTime took = now - (s->free ? s->rang : s->looked);

    s->looked = now;
    if (s->free && !s->rang)
        return;
    if (took > LONG_NS)
        s->fine = s->fine > 10 ? s->fine / 10 : 1;
    else
        s->fine = s->fine < most / 2 ? s->fine * 2 : most;
}

/* -- limits ----------------------------------------------------------------- */

static void count(struct script *s, size_t instructions)
{
    if (s->limited)
        s->left -= (ErlNifSInt64)instructions;
}

static enum stop look_at_limits(struct script *s, ErlNifTime now)
{
    if (!s->stop && s->limited && s->left < 0)
        s->stop = INSTRUCTIONS;
    if (!s->stop && s->deadline && now > s->deadline)
        s->stop = TIMEOUT;
    return s->stop;
}

/* A script that catches this is left at its next hook. */
void stop(lua_State *L, enum stop why)
{
    script_of(L)->stop = why;
    luaL_error(L, "stopped: %s", stops[why]);
}

/* Units of work are nanoseconds: instructions, steps of a match and of the
 * collector cost too different amounts. */
static void tick(struct script *s, ErlNifTime now)
{
    size_t units = (size_t)(now - s->turn);
    uint64_t yields;

    s->turn = now;
    settle(s);
    yields = before_pause(s);
    fair_tick(s->task, units);
    after_pause(s, yields);
    /* Where it has rung as soon as a slice begins there is no timer on that thread. */
    if (s->alarm && s->early < NO_ALARM)
        s->early = s->rang ? s->early + 1 : 0;
}

/* In a function of C that a script called.  No other one is below it. */
void spend(lua_State *L, size_t instructions)
{
    struct script *s = script_of(L);
    ErlNifTime now = time_now();

    count(s, instructions);
    adapt(s, now);
    tick(s, now);
    if (look_at_limits(s, now))
        stop(L, s->stop);
}

/* The hook is not called where the stack has no room for it, and cannot yield
 * where it has none for that: errors, which a script may catch for ever. */
void look_again(lua_State *L)
{
    script_of(L)->hooked = false;
    spend(L, CAUGHT_COST);
}

/* -- the hook --------------------------------------------------------------- */

static void hook(lua_State *L, lua_Debug *ar);

void arm(struct script *s, int every)
{
    if (s->free)
        s->looked = time_now();
    s->free = false;
    s->every = every;
    lua_sethook(s->lua, hook, LUA_MASKCOUNT, every);
}

/* In a signal handler, in the middle of what the body does: LuaJIT allows to set
 * a hook there, as its own program does at an interrupt. */
static void ring(void *script)
{
    struct script *s = script;

    if (!s->rang)
        s->rang = time_now();
    if (s->free)
        lua_sethook(s->lua, hook, LUA_MASKCOUNT, 1);
}

static bool alarm_is_set(struct script *s)
{
    if (s->early >= NO_ALARM)
        return false;
    if (!s->alarm) {
        s->alarm = fair_alarm(s->task, ring, s) > 0;
        s->early = s->alarm ? 0 : NO_ALARM;
    }
    return s->alarm;
}

static void end_alarm(struct script *s)
{
    if (s->alarm)
        fair_alarm(s->task, NULL, NULL);
    s->alarm = false;
}

/* The alarm may ring between any two lines. */
static void set_hook(struct script *s)
{
    if (s->limited || !alarm_is_set(s)) {
        end_alarm(s);
        if (s->every != s->fine)
            arm(s, s->fine);
        return;
    }
    s->free = false;
    s->every = 0;
    lua_sethook(s->lua, NULL, 0, 0);
    s->free = true;
    if (s->rang)
        lua_sethook(s->lua, hook, LUA_MASKCOUNT, 1);
}

static void hook(lua_State *L, lua_Debug *ar)
{
    struct script *s = script_of(L);
    ErlNifTime now;

    (void)ar;
    count(s, (size_t)s->every);
    if (s->hooked || !s->running)
        return;
    now = time_now();
    adapt(s, now);
    if (look_at_limits(s, now) || s->used > s->collect_at || s->rang
        || now - s->turn >= TURN_US * 1000
        || (may_be_long(s) && fair_where(s->task) == FAIR_NORMAL)) {
        s->hooked = true;
        lua_yield(L, 0);
    }
    set_hook(s);
}

/* -- collections ------------------------------------------------------------ */

/* The next one when as much again is used, or half of what is left. */
static void plan_collection(struct script *s)
{
    size_t growth = s->used > LEAST_GROWTH ? s->used : LEAST_GROWTH;
    size_t left = s->most > s->used ? (s->most - s->used) / 2 : 0;

    s->collect_at = s->used + (growth < left ? growth : left);
}

/* Before the next instruction. */
void collect_soon(struct script *s, bool asked)
{
    if (asked)
        s->collect_at = 0;
    if (s->every != 1) {
        if (s->limited)
            s->left -= s->every;    /* some of these were executed */
        arm(s, 1);
    }
}

/* A lua_CFunction.  A whole cycle, in slices.  Some steps are as long as there
 * are coroutines, weak tables, or elements of one table: where there may be
 * many, on a dirty scheduler. */
static int collect(lua_State *L)
{
    struct script *s = script_of(L);

    s->collects = s->used > FEW;
    while (!lua_gc(L, LUA_GCSTEP, 0)) {
        count(s, STEP_COST);
        tick(s, time_now());
    }
    s->collects = false;
    lua_gc(L, LUA_GCSTOP, 0);
    return 0;
}

bool collect_if_due(struct script *s)
{
    bool done;

    if (s->used <= s->collect_at)
        return true;
    done = lua_cpcall(s->lua, collect, NULL) == 0;
    if (!done)
        s->stop = MEMORY;
    lua_settop(s->lua, 0);
    plan_collection(s);
    return done;
}

/* -- turns ------------------------------------------------------------------ */

/* A call begins, or continues. */
void begin_turn(struct script *s, fair_task *t)
{
    s->task = t;
    s->hooked = s->collects = false;
    s->turn = s->looked = time_now();
    if (s->collect_at == SIZE_MAX)
        plan_collection(s);
    if (s->alarm) {
        set_hook(s);
    } else {
        s->rang = 0;
        arm(s, s->fine);
    }
}

/* After a function of Erlang's; false where the call ends.  The hook counts
 * from 0, so all that it waits for is taken to be executed. */
bool continue_turn(struct script *s, fair_task *t)
{
    int counted = s->every;

    begin_turn(s, t);
    count(s, (size_t)counted);
    return !look_at_limits(s, s->looked) && collect_if_due(s);
}

/* Between two turns; false where memory is out. */
static bool pause_between(struct script *s)
{
    bool ok = collect_if_due(s);

    tick(s, time_now());
    return ok;
}

/* Runs the coroutine, with that many values on its stack, to where it ends or
 * yields; what lua_resume answers. */
int take_turns(struct script *s, fair_task *t, int values)
{
    int status;

    s->early = 0;
    for (;;) {
        begin_turn(s, t);
        s->running = true;
        status = lua_resume(s->thread, values);
        s->running = false;
        if (status == LUA_ERRMEM)
            s->stop = MEMORY;
        if (status != LUA_YIELD || !s->hooked || s->stop)
            break;
        if (!pause_between(s)) {
            status = LUA_ERRMEM;
            break;
        }
        values = 0;
    }
    end_alarm(s);
    return status;
}
