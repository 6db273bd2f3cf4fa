/*
 * test_suspect.c - the rules by which a scheduler thread is suspected, poked and
 * told of, tick by tick, without a VM and without time.
 */
#include <string.h>

#include "../watch.h"
#include "check.h"

static const struct watch__limits limits = {
    5 * NS_PER_MS, 10 * NS_PER_MS, 100 * NS_PER_MS, 10 * NS_PER_MS
};

/* A thread whose time we make. */
static struct watch__hold hold;
static struct watch__seen seen;

static void begin(void)
{
    memset(&hold, 0, sizeof hold);
    seen = (struct watch__seen){.now = NS_PER_S, .cpu = NS_PER_S,
                                .gap = 5 * NS_PER_MS, .class = C_IDLE,
                                .waited = WATCH__NEVER};
    CHECK(watch__judge(&hold, &limits, &seen) == DO_NOTHING);
}

/* So many ms pass, of which it runs for so many. */
static enum watch__does pass(double ms, double ran, enum watch__class class)
{
    seen.gap = (uint64_t)(ms * NS_PER_MS);
    seen.now += seen.gap;
    seen.cpu += (uint64_t)(ran * NS_PER_MS);
    seen.class = class;
    return watch__judge(&hold, &limits, &seen);
}

/* The same; its heart beat so long before the end of it. */
static enum watch__does beat(double ms, double ran, double before)
{
    enum watch__does does;

    seen.answered = true;
    seen.beat_at = seen.now + (uint64_t)((ms - before) * NS_PER_MS);
    seen.beat_cpu = seen.cpu + (uint64_t)((ran > before ? ran - before : 0)
                                          * NS_PER_MS);
    does = pass(ms, ran, C_RUNS);
    seen.answered = false;
    return does;
}

static double ms(uint64_t ns)
{
    return (double)ns / NS_PER_MS;
}

static bool about(uint64_t ns, double wanted, double off)
{
    return ms(ns) >= wanted - off && ms(ns) <= wanted + off;
}

TEST(idle, "a thread that sleeps in the emulator is never poked")
{
    begin();
    for (int i = 0; i < 10000; i++)
        CHECK(pass(i % 7 + 1, i % 3 ? 0 : 0.4, C_IDLE) == DO_NOTHING);
}

TEST(light, "one that works a little and sleeps again is not poked")
{
    begin();
    for (int i = 0; i < 1000; i++)
        CHECK(pass(5, 1, i % 3 ? C_IDLE : C_RUNS) == DO_NOTHING);
}

TEST(busy, "one that works and answers is poked again and again, and not told "
     "of")
{
    begin();
    CHECK(pass(5, 5, C_RUNS) == DO_POKE);
    for (int i = 0; i < 1000; i++) {
        CHECK(beat(5, 5, 4.9) == DO_POKE);
        CHECK(hold.held < 5 * NS_PER_MS);
    }
}

TEST(spins, "what spins is told at 10 ms, at 100 ms, every second, and at its "
     "end")
{
    unsigned reports = 0;

    begin();
    CHECK(pass(5, 3, C_RUNS) == DO_POKE);
    CHECK(pass(5, 5, C_RUNS) == DO_NOTHING);
    CHECK(pass(5, 5, C_RUNS) == DO_REPORT);
    CHECK(about(hold.held, 13, 0.1) && about(hold.used, 13, 0.1));
    CHECK_NUMBERS(hold.level, ==, 1);
    for (int i = 0; i < 17; i++)
        CHECK(pass(5, 5, C_RUNS) == DO_NOTHING);
    CHECK(pass(5, 5, C_RUNS) == DO_REPORT);
    CHECK_NUMBERS(hold.level, ==, 2);
    for (int i = 0; i < 600; i++)
        reports += pass(5, 5, C_RUNS) == DO_REPORT;
    CHECK_NUMBERS(reports, ==, 3);
    CHECK(beat(5, 5, 3) == DO_RELEASE);
    CHECK(about(hold.held, 13 + 18 * 5 + 3000 + 2, 0.1));
    CHECK(pass(5, 5, C_RUNS) == DO_POKE);
}

TEST(sleeps, "what sleeps in native code is poked for, and told of")
{
    begin();
    CHECK(pass(5, 0.01, C_NATIVE) == DO_POKE);
    CHECK(about(hold.begin - NS_PER_S, 2.5, 0.1));
    CHECK(pass(5, 0, C_NATIVE) == DO_NOTHING);
    CHECK(pass(5, 0, C_NATIVE) == DO_REPORT);
    CHECK(about(hold.held, 12.5, 0.1) && hold.delay == 0);
    for (int i = 0; i < 20; i++)
        pass(5, 0, C_NATIVE);
    CHECK(beat(5, 0.1, 0) == DO_RELEASE);
    CHECK(about(hold.held, 117.5, 0.1));
}

TEST(naps, "what sleeps and works by turns in one call is told of too")
{
    enum watch__does does = DO_NOTHING;

    begin();
    for (int i = 0; i < 10 && does != DO_REPORT; i++)
        does = pass(5, 1, i % 2 ? C_NATIVE : C_RUNS);
    CHECK(does == DO_REPORT);
}

TEST(no_processor, "one that gets no processor is starved, not held")
{
    enum watch__does does[4];

    begin();
    CHECK(pass(5, 5, C_RUNS) == DO_POKE);
    for (int i = 0; i < 4; i++)
        does[i] = pass(5, 0, C_RUNS);
    CHECK(does[1] == DO_STARVED || does[2] == DO_STARVED);
    for (int i = 0; i < 4; i++)
        CHECK(does[i] != DO_REPORT);
    CHECK(beat(5, 1, 0) == DO_NOTHING);
}

TEST(both, "one that is held and short of processors is told of when it has "
     "run for long enough")
{
    enum watch__does does = DO_NOTHING;
    int i;

    begin();
    pass(5, 5, C_RUNS);
    for (i = 0; i < 40 && does != DO_REPORT; i++)
        does = pass(5, 1, C_RUNS);
    CHECK(does == DO_REPORT);
    CHECK(i > 5 && i < 12);
    CHECK(hold.held >= hold.used + hold.delay);
}

TEST(delayed, "what the system says a thread waited for a processor is no hold")
{
    begin();
    seen.waited = 0;
    CHECK(pass(5, 5, C_RUNS) == DO_POKE);
    hold.begin_waited = 0;
    seen.waited = 18 * NS_PER_MS;
    CHECK(pass(20, 2, C_RUNS) == DO_STARVED);
    CHECK(about(hold.delay, 18, 0.1));
}

TEST(stood_still, "a time in which the whole process stood still is nobody's")
{
    begin();
    CHECK(pass(5, 5, C_RUNS) == DO_POKE);
    seen.lost = 3600 * NS_PER_S;
    CHECK(pass(3600e3, 0, C_RUNS) == DO_NOTHING);
    seen.lost = 0;
    CHECK(hold.held < 10 * NS_PER_MS && hold.delay < 10 * NS_PER_MS);
    CHECK(pass(5, 5, C_RUNS) == DO_NOTHING || hold.held < 20 * NS_PER_MS);
    /* Nor is the begin of what is poked for next in it. */
    begin();
    seen.lost = 3600 * NS_PER_S;
    CHECK(pass(3600e3, 0.1, C_NATIVE) == DO_POKE);
    CHECK(seen.now - hold.begin <= 10 * NS_PER_MS);
}

TEST(late, "a thread that worked all through a time in which the watcher was "
     "late is not taken for held")
{
    begin();
    CHECK(pass(200, 200, C_RUNS) == DO_POKE);
    CHECK(seen.now - hold.begin <= 5 * NS_PER_MS);
}

TEST(offline, "asleep in the emulator with an unanswered poke is no hold: its "
     "scheduler is offline")
{
    begin();
    CHECK(pass(5, 5, C_RUNS) == DO_POKE);
    for (int i = 0; i < 1000; i++)
        CHECK(pass(5, 0, C_IDLE) == DO_NOTHING);
    CHECK(beat(5, 0.1, 0) == DO_NOTHING);
}

TEST(pardoned, "a hold that was none begins anew")
{
    begin();
    pass(5, 5, C_RUNS);
    pass(5, 5, C_RUNS);
    CHECK(pass(5, 5, C_RUNS) == DO_REPORT);
    watch__pardon(&hold, seen.now, seen.cpu);
    CHECK(pass(5, 5, C_RUNS) == DO_NOTHING);
    CHECK(pass(5, 5, C_RUNS) == DO_REPORT);
    CHECK(about(hold.held, 10, 0.1));
}

/* What spins is asked for at its first report; whether it may be told. */
static bool asked(double stolen_ms, bool known)
{
    bool proves = watch__proves(&hold, &limits,
                                (uint64_t)(stolen_ms * NS_PER_MS), known);

    if (!proves)
        watch__put_off(&hold);
    return proves;
}

TEST(nothing_stolen, "what nothing was stolen from is told at once; and what "
     "lost little, or less than is counted in")
{
    static const double little[] = {0, 1, 5, 9.9};

    for (size_t i = 0; i < sizeof little / sizeof *little; i++) {
        begin();
        pass(5, 5, C_RUNS);
        pass(5, 5, C_RUNS);
        CHECK(pass(5, 5, C_RUNS) == DO_REPORT);
        CHECK(asked(little[i], i % 2));
    }
    begin();
    pass(5, 5, C_RUNS);
    CHECK(pass(40, 40, C_RUNS) == DO_REPORT);
    CHECK(asked(20, true) && !hold.on_trial);
}

TEST(stolen, "what was stolen is delay, though the thread's clock went on; what "
     "lasts after that is told")
{
    begin();
    pass(5, 5, C_RUNS);
    CHECK(pass(25, 25, C_RUNS) == DO_REPORT);
    CHECK(!asked(20, true) && hold.on_trial);
    /* Its clock stands still until what it was given too much is made good. */
    CHECK(pass(5, 0, C_RUNS) == DO_STARVED);
    CHECK(about(hold.held, 32.5, 0.1) && about(hold.delay, 20, 0.1));
    CHECK(about(hold.used, 12.5, 0.1));
    CHECK(pass(6, 0, C_RUNS) == DO_REPORT);
    CHECK(asked(0, true) && hold.level == 1);
    CHECK(pass(9, 0, C_RUNS) == DO_NOTHING);
    CHECK(about(hold.held, 47.5, 0.1) && about(hold.delay, 20, 0.1));
    CHECK(about(hold.used, 27.5, 0.1));
    CHECK(beat(5, 5, 1) == DO_RELEASE);
    CHECK(about(hold.held, 51.5, 0.1) && about(hold.delay, 20, 0.1));
    /* The next hold begins with nothing of it. */
    CHECK(pass(5, 5, C_RUNS) == DO_POKE);
    CHECK(!hold.on_trial && hold.stolen == 0 && hold.doubtful == 0);
}

TEST(stolen_before, "what may have been stolen before the hold costs it warn_ms, "
     "and is not said to be its delay")
{
    begin();
    pass(5, 5, C_RUNS);
    CHECK(pass(25, 25, C_RUNS) == DO_REPORT);
    CHECK(!asked(1000, false));
    CHECK(about(hold.doubtful, 27.5, 0.1) && hold.stolen == 0);
    CHECK(pass(5, 5, C_RUNS) == DO_NOTHING);
    CHECK(pass(5, 5, C_RUNS) == DO_REPORT);
    CHECK(asked(0, true) && hold.delay == 0);
}

TEST(starved_before, "what it waited for before is not counted twice")
{
    begin();
    pass(5, 5, C_RUNS);
    for (int i = 0; i < 10; i++)
        CHECK(pass(10, 0, C_RUNS) != DO_REPORT);
    CHECK(pass(8, 8, C_RUNS) == DO_REPORT);
    CHECK(!asked(10, true));
    CHECK(about(hold.stolen, 10, 0.1));
    CHECK(pass(5, 5, C_RUNS) != DO_REPORT);
    CHECK(about(hold.delay, 110, 0.1));
    CHECK(pass(5, 5, C_RUNS) == DO_REPORT);
    CHECK(asked(0, true));
}

/* Looks until it is told, of each of which so much is stolen, which its clock
 * does not show. */
static int told_after(double stolen_ms, bool known)
{
    int i = 1;

    begin();
    pass(5, 5, C_RUNS);
    pass(5, 5, C_RUNS);
    CHECK(pass(5, 5, C_RUNS) == DO_REPORT);
    CHECK(!asked(500, known));
    while (i < 1000 && (pass(5, 5, C_RUNS) != DO_REPORT
                        || !asked(i * stolen_ms, true)))
        i++;
    return i;
}

TEST(always_stolen, "what holds is told however much is stolen all the while")
{
    int looks = told_after(4, true);

    CHECK(looks >= 10 && looks <= 16);
    /* All of it: after a second, since nobody says how. */
    told_after(5, false);
    CHECK(hold.held >= NS_PER_S && hold.held < NS_PER_S + 20 * NS_PER_MS);
}

/* Whatever is seen, in whatever order, no number runs under zero. */
TEST(anything, "odd clocks make no odd times")
{
    uint32_t random = 7;

    begin();
    for (int i = 0; i < 200000; i++) {
        random = random * 1664525u + 1013904223u;
        seen.gap = (random >> 8) % (20 * NS_PER_MS);
        seen.now += seen.gap;
        seen.cpu += random % 5 ? seen.gap / (random % 3 + 1) : 0;
        if (random % 101 == 0)
            seen.cpu -= NS_PER_MS;
        if (hold.poked && random % 211 == 0)
            watch__proves(&hold, &limits, random % (50 * NS_PER_MS),
                          random & 1024);
        seen.lost = random % 37 == 0 ? seen.gap : 0;
        seen.class = (enum watch__class)((random >> 4) % 4);
        seen.answered = hold.poked && (random >> 6) % 3 == 0;
        seen.beat_at = seen.now - random % NS_PER_MS;
        seen.beat_cpu = seen.cpu;
        watch__judge(&hold, &limits, &seen);
        if (hold.held > 300 * NS_PER_S || hold.used > 300 * NS_PER_S
            || hold.delay > hold.held + NS_PER_MS) {
            CHECK(!"a time that cannot be");
            return;
        }
    }
}
