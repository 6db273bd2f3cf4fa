/*
 * test_suspect.c - the rules by which a scheduler thread is suspected, probed
 * and told of, tick by tick, without a VM and without time.
 */
#include <string.h>

#include "look/suspect.h"
#include "check.h"

static const struct watch__limits limits = {
    5 * NS_PER_MS, 10 * NS_PER_MS, 100 * NS_PER_MS, 5 * NS_PER_MS
};

/* A thread whose time we make. */
static struct watch__block block;
static struct watch__seen seen;
static struct watch__shown call;    /* what its stack shows */

static void begin(void)
{
    memset(&block, 0, sizeof block);
    call = (struct watch__shown){.whole = true, .process = 1, .reductions = 2,
                                 .heap = 3, .library = 4, .function = 5};
    seen = (struct watch__seen){.now = NS_PER_S, .cpu = NS_PER_S,
                                .gap = 5 * NS_PER_MS, .class = C_IDLE,
                                .waited = WATCH__NEVER};
    CHECK(watch__judge(&block, &limits, &seen) == DO_NOTHING);
}

static enum watch__does looked(void)
{
    enum watch__does does = watch__judge(&block, &limits, &seen);

    if (does != DO_SHOW)
        return does;
    call.cpu = seen.cpu;
    return watch__confirm(&block, &limits, &call, seen.now, seen.cpu)
        == CONFIRM_DONE ? watch__due(&block, &limits, seen.now) : DO_NOTHING;
}

/* So many ms pass, of which it runs for so many.  Where its stack is wanted it
 * shows `call`. */
static enum watch__does pass(double ms, double ran, enum watch__class class)
{
    seen.gap = (uint64_t)(ms * NS_PER_MS);
    seen.now += seen.gap;
    seen.cpu += (uint64_t)(ran * NS_PER_MS);
    seen.class = class;
    call.sleeps = class == C_NATIVE;
    return looked();
}

/* The same; its responder reply so long before the end of it. */
static enum watch__does reply(double ms, double ran, double before)
{
    enum watch__does does;

    seen.answered = true;
    seen.reply_at = seen.now + (uint64_t)((ms - before) * NS_PER_MS);
    seen.reply_cpu = seen.cpu + (uint64_t)((ran > before ? ran - before : 0)
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

TEST(idle, "a thread that sleeps in the emulator is never probed")
{
    begin();
    for (int i = 0; i < 10000; i++)
        CHECK(pass(i % 7 + 1, i % 3 ? 0 : 0.4, C_IDLE) == DO_NOTHING);
}

TEST(light, "one that works a little and sleeps again is not probed")
{
    begin();
    for (int i = 0; i < 1000; i++)
        CHECK(pass(5, 1, i % 3 ? C_IDLE : C_RUNS) == DO_NOTHING);
}

TEST(busy, "one that works and answers is probed again and again, and not told "
     "of")
{
    begin();
    CHECK(pass(5, 5, C_RUNS) == DO_PROBE);
    for (int i = 0; i < 1000; i++) {
        CHECK(reply(5, 5, 4.9) == DO_PROBE);
        CHECK(block.blocked < 5 * NS_PER_MS);
    }
}

TEST(spins, "what spins is told at 10 ms, at 100 ms, every second, and at its "
     "end")
{
    unsigned reports = 0;

    begin();
    CHECK(pass(5, 3, C_RUNS) == DO_PROBE);
    CHECK(pass(5, 5, C_RUNS) == DO_NOTHING);
    CHECK(pass(5, 5, C_RUNS) == DO_REPORT);
    CHECK(about(block.blocked, 13, 0.1) && about(block.used, 13, 0.1));
    CHECK_NUMBERS(block.level, ==, 1);
    for (int i = 0; i < 17; i++)
        CHECK(pass(5, 5, C_RUNS) == DO_NOTHING);
    CHECK(pass(5, 5, C_RUNS) == DO_REPORT);
    CHECK_NUMBERS(block.level, ==, 2);
    for (int i = 0; i < 600; i++)
        reports += pass(5, 5, C_RUNS) == DO_REPORT;
    CHECK_NUMBERS(reports, ==, 3);
    CHECK(reply(5, 5, 3) == DO_UNBLOCK);
    CHECK(about(block.blocked, 13 + 18 * 5 + 3000 + 2, 0.1));
    CHECK(pass(5, 5, C_RUNS) == DO_PROBE);
}

TEST(sleeps, "what sleeps in native code is probed for, and told of")
{
    begin();
    CHECK(pass(5, 0.01, C_NATIVE) == DO_PROBE);
    CHECK(about(block.begin - NS_PER_S, 2.5, 0.1));
    CHECK(pass(5, 0, C_NATIVE) == DO_NOTHING);
    CHECK(pass(5, 0, C_NATIVE) == DO_REPORT);
    CHECK(about(block.blocked, 12.5, 0.1) && block.delay == 0);
    for (int i = 0; i < 20; i++)
        pass(5, 0, C_NATIVE);
    CHECK(reply(5, 0.1, 0) == DO_UNBLOCK);
    CHECK(about(block.blocked, 117.5, 0.1));
}

TEST(naps, "what sleeps and works by turns in one call is told of too")
{
    enum watch__does does = DO_NOTHING;

    begin();
    for (int i = 0; i < 20 && does != DO_REPORT; i++)
        does = pass(5, 1, i % 2 ? C_NATIVE : C_RUNS);
    CHECK(does == DO_REPORT);
}

TEST(no_processor, "one that gets no processor is starved, not blocked")
{
    enum watch__does does[4];

    begin();
    CHECK(pass(5, 5, C_RUNS) == DO_PROBE);
    for (int i = 0; i < 4; i++)
        does[i] = pass(5, 0, C_RUNS);
    CHECK(does[1] == DO_STARVED || does[2] == DO_STARVED);
    for (int i = 0; i < 4; i++)
        CHECK(does[i] != DO_REPORT);
    CHECK(reply(5, 1, 0) == DO_NOTHING);
}

/* The watch stretches its period where looks cost much, up to four times. */
TEST(stretched, "one that gets no processor is not blocked at any period: "
     "what it used before it was probed for is no sign")
{
    for (int period = 5; period <= 20; period += 5) {
        bool reported = false;

        begin();
        CHECK(pass(period, period, C_RUNS) == DO_PROBE);
        for (int i = 0; i < 100; i++)
            reported = pass(period, 0, C_RUNS) == DO_REPORT || reported;
        CHECK(!reported);
    }
}

TEST(both, "one that is blocked and short of processors is told of when it has "
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
    CHECK(block.blocked >= block.used + block.delay);
}

TEST(delayed, "what the system says a thread waited for a processor is no "
     "block")
{
    begin();
    seen.waited = 0;
    CHECK(pass(5, 5, C_RUNS) == DO_PROBE);
    block.begin_waited = 0;
    seen.waited = 18 * NS_PER_MS;
    CHECK(pass(20, 2, C_RUNS) == DO_STARVED);
    CHECK(about(block.delay, 18, 0.1));
}

TEST(stood_still, "a time in which the whole process stood still is nobody's")
{
    begin();
    CHECK(pass(5, 5, C_RUNS) == DO_PROBE);
    seen.lost = 3600 * NS_PER_S;
    CHECK(pass(3600e3, 0, C_RUNS) == DO_NOTHING);
    seen.lost = 0;
    CHECK(block.blocked < 10 * NS_PER_MS && block.delay < 10 * NS_PER_MS);
    CHECK(pass(5, 5, C_RUNS) == DO_NOTHING || block.blocked < 20 * NS_PER_MS);
    /* Nor is the begin of what is probed for next in it. */
    begin();
    seen.lost = 3600 * NS_PER_S;
    CHECK(pass(3600e3, 0.1, C_NATIVE) == DO_PROBE);
    CHECK(seen.now - block.begin <= 10 * NS_PER_MS);
}

TEST(late, "a thread that worked all through a time in which the watcher was "
     "late is not taken for blocked")
{
    begin();
    CHECK(pass(200, 200, C_RUNS) == DO_PROBE);
    CHECK(seen.now - block.begin <= 5 * NS_PER_MS);
}

TEST(offline, "asleep in the emulator with an unanswered probe is no block: "
     "its scheduler is offline")
{
    begin();
    CHECK(pass(5, 5, C_RUNS) == DO_PROBE);
    for (int i = 0; i < 1000; i++)
        CHECK(pass(5, 0, C_IDLE) == DO_NOTHING);
    CHECK(reply(5, 0.1, 0) == DO_NOTHING);
}

TEST(dismissed, "a block that was none begins anew")
{
    begin();
    pass(5, 5, C_RUNS);
    pass(5, 5, C_RUNS);
    CHECK(pass(5, 5, C_RUNS) == DO_REPORT);
    watch__dismiss(&block, seen.now, seen.cpu);
    CHECK(pass(5, 5, C_RUNS) == DO_NOTHING);
    CHECK(pass(5, 5, C_RUNS) == DO_REPORT);
    CHECK(about(block.blocked, 10, 0.1));
}

/* Looks until it is told, each 5 ms in which it runs, when what it shows is
 * changed by `change` after each. */
static int told_after(void (*change)(int i))
{
    int i = 0;

    begin();
    CHECK(pass(5, 5, C_RUNS) == DO_PROBE);
    while (i < 100) {
        i++;
        if (pass(5, 5, C_RUNS) == DO_REPORT)
            break;
        change(i);
    }
    return i;
}

static void nothing(int i) { (void)i; }
static void process(int i) { call.process = 10 + (uint64_t)i; }
static void reductions(int i) { call.reductions = 10 + (uint64_t)i; }
static void heap(int i) { call.heap = 10 + (uint64_t)i; }
static void function(int i) { call.function = 10 + (uint64_t)i; }
static void library(int i) { call.library = 10 + (uint64_t)i; }
static void owner(int i) { call.owner = (uint64_t)i; }
static void yields(int i) { call.owner = 1; call.yields = (uint64_t)i; }
static void since(int i) { call.owner = 1; call.since = (uint64_t)i; }

TEST(same_call, "what shows the same call twice is told at the second, when it has "
     "run for long enough")
{
    CHECK_NUMBERS(told_after(nothing), ==, 2);
}

TEST(other_calls, "what shows another process, other reductions, another heap or "
     "function each time is not told of, however long nobody answers")
{
    static void (*const changes[])(int) = {
        process, reductions, heap, function, library, owner, yields, since
    };

    for (size_t i = 0; i < sizeof changes / sizeof *changes; i++)
        CHECK_NUMBERS(told_after(changes[i]), ==, 100);
}

static void then_same(int i) { reductions(i < 10 ? i : 10); }

TEST(at_last, "a call that lasts is told of, whatever ran before; from where it was "
     "first seen")
{
    CHECK_NUMBERS(told_after(then_same), ==, 14);
    CHECK(about(block.blocked, 10, 0.1) && about(block.used, 10, 0.1));
}

static void partly(int i)
{
    call.whole = i % 2;
    call.function = i % 2 ? 5 : 100 + (uint64_t)i;
    call.process = call.reductions = call.heap = 0;
    if (i % 2)
        call.process = 1, call.reductions = 2, call.heap = 3;
}

static void nowhere(int i)
{
    (void)i;
    call.whole = false;
    call.library = 0;
}

TEST(partly_seen, "frames that end early may be of the same call where the library is "
     "the same; where those of the emulator alone are seen, the clocks tell what "
     "is an error")
{
    CHECK_NUMBERS(told_after(partly), ==, 2);
    begin();
    nowhere(0);
    CHECK(pass(5, 5, C_RUNS) == DO_PROBE);
    for (int i = 1; i < 20; i++)
        CHECK(pass(5, 5, C_RUNS) == DO_NOTHING);
    CHECK(pass(5, 5, C_RUNS) == DO_REPORT && block.level == 2);
    CHECK(!block.is_shown);
}

TEST(unseen, "of one that used some of a processor and gets none any more it is told "
     "that it is starved, though its stack is wanted")
{
    begin();
    CHECK(pass(5, 5, C_RUNS) == DO_PROBE);
    block.begin_waited = 0;
    seen.waited = 40 * NS_PER_MS;
    seen.gap = 48 * NS_PER_MS;
    seen.now += seen.gap;
    seen.cpu += 8 * NS_PER_MS;
    CHECK(watch__judge(&block, &limits, &seen) == DO_STARVED);
    seen.now += seen.gap;
    CHECK(watch__judge(&block, &limits, &seen) == DO_SHOW);
}

TEST(one_sleep, "one sleep is one call, though its frames tell nothing; what slept "
     "twice has to show the same call")
{
    struct watch__shown a = {.sleeps = true, .cpu = 7}, b = a;

    CHECK(watch__same_call(&a, &b));
    b.cpu = 8;
    a.library = 1;
    CHECK(!watch__same_call(&a, &b));
    b.library = 1;
    CHECK(watch__same_call(&a, &b));
}

TEST(unknown_register, "a register that the frames do not tell is no other "
     "call")
{
    struct watch__shown a = {.whole = true, .library = 1, .function = 2,
                             .process = 3, .reductions = 4, .heap = 5};
    struct watch__shown b = a;

    CHECK(watch__same_call(&a, &b));
    b.process = b.reductions = b.heap = 0;
    CHECK(watch__same_call(&a, &b) && watch__same_call(&b, &a));
    b.heap = 6;
    CHECK(!watch__same_call(&a, &b));
}

TEST(fell_asleep, "one that fell asleep since the last look is not counted as if it "
     "had slept all the while")
{
    begin();
    CHECK(pass(5, 5, C_RUNS) == DO_PROBE);
    CHECK(pass(20, 0, C_NATIVE) == DO_NOTHING && block.counted == 0);
    CHECK(pass(5, 0, C_NATIVE) == DO_NOTHING);
    CHECK(pass(5, 0, C_NATIVE) == DO_REPORT);
}

TEST(apart, "two stacks prove something a period of evidence apart, not before")
{
    begin();
    CHECK(pass(5, 5, C_RUNS) == DO_PROBE);
    CHECK(pass(9, 9, C_RUNS) == DO_NOTHING && block.is_shown);
    CHECK(pass(4, 4, C_RUNS) == DO_NOTHING && !block.confirmed);
    CHECK(pass(50, 0.5, C_RUNS) != DO_REPORT && !block.confirmed);
    CHECK(pass(1, 1, C_RUNS) == DO_REPORT && block.confirmed);
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
        call.heap = random % 16;
        seen.lost = random % 37 == 0 ? seen.gap : 0;
        seen.class = (enum watch__class)((random >> 4) % 4);
        seen.answered = block.probed && (random >> 6) % 3 == 0;
        seen.reply_at = seen.now - random % NS_PER_MS;
        seen.reply_cpu = seen.cpu;
        looked();
        if (block.blocked > 300 * NS_PER_S || block.used > 300 * NS_PER_S
            || block.delay > block.blocked + NS_PER_MS) {
            CHECK(!"a time that cannot be");
            return;
        }
    }
}

/* -- how often ------------------------------------------------------------------ */

static const uint64_t period = 5 * NS_PER_MS;

/* Periods to the next look, after one that cost so many us. */
static double next(struct watch__pace *p, double us, bool idle, bool suspects)
{
    return (double)watch__pace(p, period, (uint64_t)(us * 1000), idle, suspects)
        / (double)period;
}

TEST(paces, "one look a period; one in four where nobody works, or looks are "
     "expensive; one that may be blocked is looked at in time all the same")
{
    struct watch__pace cheap = {0}, expensive = {0};

    for (int i = 0; i < 200; i++) {
        CHECK(next(&cheap, 15, false, false) == 1);
        next(&expensive, 500, false, false);
    }
    CHECK(next(&expensive, 500, false, false) == 4);
    CHECK(next(&expensive, 500, false, true) == 1);
    CHECK(next(&expensive, 500, false, false) == 4);
    CHECK(next(&cheap, 15, true, false) == 4);
    CHECK(watch__pace(&cheap, period, WATCH__NEVER, false, false) == period);
}

TEST(share, "looks use 1/250 of a processor, whatever one costs")
{
    struct watch__pace p = {0};

    for (int us = 25; us <= 75; us += 10) {
        for (int i = 0; i < 400; i++)
            next(&p, us, false, false);
        CHECK(about(watch__pace(&p, period, (uint64_t)us * 1000, false, false),
                    us * 0.25, 0.1));
    }
}

TEST(saved, "where nobody worked, the first looks after come in time though "
     "they are expensive: as many as were saved, and no more than four")
{
    struct watch__pace p = {0};

    for (int i = 0; i < 200; i++)
        next(&p, 500, false, false);
    for (unsigned idle = 0; idle < 10; idle++) {
        unsigned spent = 0;

        for (unsigned i = 0; i < idle; i++)
            CHECK(next(&p, 500, true, false) == 4);
        while (next(&p, 500, false, false) == 1)
            spent++;
        CHECK(spent == (idle < 4 ? idle : 4));
    }
}
