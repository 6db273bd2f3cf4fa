/*
 * test_verdict.c - from what threads do to sentences and an exit code; names of
 * threads and of symbols; JSON.
 */
#define _GNU_SOURCE
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>

#include "check.h"
#include "outside/judge.h"
#include "outside/print.h"

static struct watch__frame nif = {
    .in = IN_LIBRARY, .library = "/x/y.so", .module = "m", .function = "f",
    .arity = 1
};
static struct watch__verdict v;

/* A node of two schedulers of each kind that sleep. */
static struct watch__dump node(void)
{
    struct watch__dump d = {.pid = 1, .waiting = {0, 0, 0}};
    static const char *const names[] = {
        "1_scheduler", "2_scheduler", "1_dirty_cpu_sch", "2_dirty_cpu_sch",
        "1_dirty_io_sche", "2_dirty_io_sche"
    };

    for (unsigned i = 0; i < 6; i++)
        watch__dump_add(&d, 10 + (int)i, names[i])->doing = DOING_IDLE;
    return d;
}

static void is_in(struct watch__line *l, enum watch__doing doing)
{
    l->doing = doing;
    l->run = doing == DOING_NATIVE ? RUN_RUNNING : RUN_SLEEPS;
    l->culprit = &nif;
    l->same = l->proven = true;
    l->since_ns = 41 * NS_PER_S;
    l->place.syscall = doing == DOING_WAITS ? SYS_openat : -1;
}

static void says(struct watch__dump *d, int code, const char *sentence)
{
    watch__verdict(d, &v);
    CHECK_NUMBERS(v.exit_code, ==, code);
    CHECK_TEXT(v.sentence[0], sentence);
    watch__dump_free(d);
}

TEST(idle, "a node at rest is no finding")
{
    struct watch__dump d = node();

    says(&d, 0, "No scheduler is blocked: of 2, 0 run and 2 sleep.");
    d = node();
    d.lines[0].doing = DOING_ERLANG;
    says(&d, 0, "No scheduler is blocked: of 2, 1 runs and 1 sleeps.");
    /* One that looks for work is where it was. */
    d = node();
    is_in(&d.lines[0], DOING_EMULATOR);
    d.lines[0].end = END_WHOLE;
    says(&d, 0, "No scheduler is blocked: of 2, 1 runs and 1 sleeps.");
}

TEST(blocked, "a scheduler in the same call twice is blocked, and by whom")
{
    struct watch__dump d = node();

    is_in(&d.lines[1], DOING_NATIVE);
    d.lines[1].queue = 3;
    says(&d, 1, "Scheduler 2 has been blocked for at least 41.0 s by m:f/1; 3 "
         "processes wait.");
    d = node();
    is_in(&d.lines[0], DOING_WAITS);
    is_in(&d.lines[1], DOING_WAITS);
    d.lines[1].since_ns = 500 * NS_PER_MS;
    says(&d, 1, "Both schedulers have been blocked for 500 ms by m:f/1, asleep "
         "in the system call openat.");
    d = node();
    is_in(&d.lines[0], DOING_LOCK);
    d.lines[0].holder = 14;
    says(&d, 1, "Scheduler 1 has been blocked for 41.0 s by m:f/1, waiting for "
         "a lock that dirty I/O 1 holds.");
    d = node();
    is_in(&d.lines[0], DOING_NATIVE);
    d.lines[0].same = false;
    says(&d, 0, "No scheduler is blocked: of 2, 1 runs and 1 sleeps.");
}

TEST(many, "where the frames end early it may be many calls: that is said, and is no "
     "finding")
{
    struct watch__dump d = node();

    is_in(&d.lines[0], DOING_NATIVE);
    d.lines[0].proven = false;
    says(&d, 0, "Scheduler 1 was seen twice in m:f/1, in one call or in many.");
    d = node();
    is_in(&d.lines[2], DOING_NATIVE);
    is_in(&d.lines[3], DOING_NATIVE);
    d.lines[3].proven = false;
    d.waiting[R_DIRTY_CPU] = 9;
    says(&d, 0, "No scheduler is blocked: of 2, 0 run and 2 sleep.");
}

TEST(stood, "of a core it is said where schedulers stood")
{
    struct watch__dump d = node();

    d.is_core = true;
    is_in(&d.lines[0], DOING_WAITS);
    is_in(&d.lines[1], DOING_WAITS);
    says(&d, 0, "Both schedulers stood in m:f/1, asleep in the system call "
         "openat.");
    d = node();
    d.is_core = true;
    d.signal = 6;
    d.sender = 5;
    says(&d, 1, "The node was ended by signal 6 (Aborted), which process 5 had "
         "sent.");
}

TEST(full, "a full pool is a finding where jobs wait, or where nobody can say")
{
    static const struct { long waiting; int code; const char *end; } cases[] = {
        {3, 1, "3 jobs wait."}, {1, 1, "1 job waits."}, {0, 0, "no job waits."},
        {-1, 1, "how many jobs wait is not known."}
    };

    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct watch__dump d = node();
        char sentence[256];

        is_in(&d.lines[4], DOING_WAITS);
        is_in(&d.lines[5], DOING_WAITS);
        d.waiting[R_DIRTY_IO] = cases[i].waiting;
        watch__verdict(&d, &v);
        CHECK_NUMBERS(v.exit_code, ==, cases[i].code);
        snprintf(sentence, sizeof sentence, "Both dirty I/O schedulers are in "
                 "m:f/1, asleep in the system call openat, for 41.0 s; %s",
                 cases[i].end);
        CHECK_TEXT(v.sentence[!cases[i].code], sentence);
        watch__dump_free(&d);
    }
}

TEST(stays, "a stopped process is a finding, and by whom")
{
    struct watch__dump d = node();

    for (unsigned i = 0; i < d.count; i++)
        d.lines[i].doing = DOING_STOPPED;
    d.tracer = 77;
    says(&d, 1, "The whole process is stopped by process 77, which traces it.");
}

TEST(roles, "threads are told by the names that releases give them")
{
    static const struct {
        const char *name;
        enum watch__role role;
        unsigned number;
    } cases[] = {
        {"12_scheduler", R_NORMAL, 12}, {"erts_sched_12", R_NORMAL, 12},
        {"erts_dios_3", R_DIRTY_IO, 3}, {"0_poller", R_POLL, 0},
        {"erts_poll_1", R_POLL, 1}, {"1_aux", R_AUX, 1},
        {"erts_aux_2", R_AUX, 2}, {"async_4", R_ASYNC, 4},
        {"sys_sig_dispatc", R_SIGNALS, 0}, {"fairnif_7", R_POOL, 7},
        {"fairnif_starter", R_POOL, 0}, {"fairnif_watch", R_WATCH, 0},
        {"beam.smp", R_OTHER, 0}, {"async_", R_OTHER, 0},
        {"0_poller_", R_OTHER, 0}, {"", R_OTHER, 0}
    };

    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        unsigned number = 99;

        CHECK_NUMBERS(watch__role_of(5, 4, cases[i].name, &number), ==,
                      cases[i].role);
        CHECK_NUMBERS(number, ==, cases[i].number);
    }
    CHECK_NUMBERS(watch__role_of(4, 4, "beam.smp", &(unsigned){0}), ==, R_MAIN);
}

TEST(inherited, "a thread that still has its maker's name is not taken for it")
{
    struct watch__dump d = node();
    struct watch__line *l = watch__dump_add(&d, 99, "2_scheduler");
    char name[64];

    CHECK_NUMBERS(l->role, ==, R_OTHER);
    CHECK_TEXT(watch__thread_name(l, name), "thread 99, 2_scheduler");
    watch__dump_free(&d);
}

TEST(plain, "symbols of C++ and Rust are shown without their types; others as "
     "they are")
{
    static const char *const cases[][2] = {
        {"way_work", "way_work"}, {"_Z3fooi", "foo"}, {"_ZL3bariz", "bar"},
        {"_ZN3foo3barEv", "foo::bar"}, {"_ZNK3foo3barEv", "foo::bar"},
        {"_ZN4core3ops17h0123456789abcdefE", "core::ops"},
        {"_ZN3fooplERKS_", "_ZN3fooplERKS_"}, {"_Z", "_Z"}, {"_ZN", "_ZN"},
        {"_Z99x", "_Z99x"}, {"_ZNSt3fooE", "_ZNSt3fooE"},
        {"_Z99999999999999999999x", "_Z99999999999999999999x"}
    };
    char name[WATCH__LABEL];

    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        watch__plain(cases[i][0], name);
        CHECK_TEXT(name, cases[i][1]);
    }
}

TEST(obeyed, "nothing that a terminal obeys is printed")
{
    struct watch__dump d = {.pid = 1};
    char *text = NULL;
    size_t size = 0;
    FILE *to = open_memstream(&text, &size);

    watch__dump_add(&d, 7, "\033]0;x\007\xc2\x9b\x9b\xc3\xa9");
    watch__verdict(&d, &v);
    watch__print(to, &d, &v, true);
    fclose(to);
    CHECK(strstr(text, "thread 7, ?]0;x???\xc3\xa9") != NULL);
    CHECK(strpbrk(text, "\033\007\x9b") == NULL);
    free(text);
    watch__dump_free(&d);
}

TEST(escaped, "JSON stays JSON, whatever a thread is called")
{
    struct watch__dump d = {.pid = 1};
    char *text = NULL;
    size_t size = 0;
    FILE *to = open_memstream(&text, &size);

    watch__dump_add(&d, 7, "a\"\\\x01\xff\xc3\xa9\xc0\xaf");
    watch__verdict(&d, &v);
    watch__print_json(to, &d, &v);
    fclose(to);
    CHECK(strstr(text, "\"name\":\"a\\\"\\\\\\u0001?\xc3\xa9??\"") != NULL);
    free(text);
    watch__dump_free(&d);
}
