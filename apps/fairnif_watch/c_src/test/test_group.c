/*
 * test_group.c - which control group's quota counts, by files as the kernel
 * writes them; and how long a wait was.
 */
#define _GNU_SOURCE
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "look/wait.h"
#include "read/group.h"
#include "check.h"

static char root[] = "/tmp/watch_group_XXXXXX";

static void write_text(const char *name, const char *text)
{
    char path[PATH_MAX];
    FILE *f;

    snprintf(path, sizeof path, "%s/%s", root, name);
    for (char *p = path + strlen(root) + 1; (p = strchr(p, '/')); p++) {
        *p = '\0';
        mkdir(path, 0700);
        *p = '/';
    }
    f = fopen(path, "w");
    CHECK(f && fputs(text, f) >= 0 && fclose(f) == 0);
}

#define V1(AT) "32 31 0:29 " AT " %s/v1 rw - cgroup cgroup rw,cpu,cpuacct\n"
#define V2(AT) "41 31 0:38 " AT " %s/v2 rw,nosuid - cgroup2 cgroup2 rw\n"
#define NOT_CPU "34 31 0:31 / /nowhere rw - cgroup cgroup rw,cpuset\n"

static const struct {
    const char *says, *group, *mounts;
    unsigned quota, times;
    uint64_t ns;
} groups[] = {
    {"version 1", "4:cpuset:/x\n1:cpuacct,cpu:/a\n0::/\n", NOT_CPU V1("/"),
     600, 7, 5000},
    {"version 1, the quota of a group above",
     "1:cpu:/a/deep/er\n", V1("/"), 600, 7, 5000},
    {"version 1, no quota", "1:cpu:/free\n", V1("/"), 0, 1, 2},
    {"version 2", "0::/pod\n", V2("/"), 1500, 9, 6000},
    {"version 2, one above", "0::/pod/box\n", V2("/"), 1500, 9, 6000},
    {"a container that sees a part", "0::/host/pod/box\n", V2("/host"), 1500,
     9, 6000},
    {"a container that sees its own", "0::/far/away\n", V2("/../.."), 0, 3,
     4000},
    {"not mounted", "1:cpu:/a\n", NOT_CPU, 0, 0, 0},
    {"not there", "", "", 0, 0, 0},
};

TEST(group, "the group's files are found, and the next quota above counts")
{
    char mounts[1024], group[64], at[64];

    CHECK(mkdtemp(root) != NULL);
    write_text("v1/cpu.stat", "nr_periods 0\n");
    write_text("v1/a/cpu.stat", "nr_periods 20\nnr_throttled 7\n"
               "throttled_time 5000\n");
    write_text("v1/a/cpu.cfs_quota_us", "60000\n");
    write_text("v1/a/cpu.cfs_period_us", "100000\n");
    write_text("v1/a/deep/er/cpu.stat", "nr_periods 0\n");
    write_text("v1/a/deep/er/cpu.cfs_quota_us", "-1\n");
    write_text("v1/a/deep/er/cpu.cfs_period_us", "100000\n");
    write_text("v1/free/cpu.stat", "nr_throttled 1\nthrottled_time 2\n");
    write_text("v2/cpu.stat", "nr_throttled 3\nthrottled_usec 4\n");
    write_text("v2/pod/cpu.stat", "nr_throttled 9\nthrottled_usec 6\n");
    write_text("v2/pod/cpu.max", "150000 100000\n");
    write_text("v2/pod/box/cpu.max", "max 100000\n");
    snprintf(group, sizeof group, "%s/group", root);
    snprintf(at, sizeof at, "%s/mounts", root);
    for (size_t i = 0; i < sizeof groups / sizeof *groups; i++) {
        struct watch__throttled seen;
        struct watch__group g;

#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wformat-nonliteral"
        snprintf(mounts, sizeof mounts, groups[i].mounts, root);
#pragma GCC diagnostic pop
        write_text("group", groups[i].group);
        write_text("mounts", mounts);
        watch__group_open(&g, group, at);
        seen = watch__group_read(&g);
        if (watch__group_quota(&g) != groups[i].quota)
            printf("%s\n", groups[i].says);
        CHECK_NUMBERS(watch__group_quota(&g), ==, groups[i].quota);
        CHECK_NUMBERS(seen.times, ==, groups[i].times);
        CHECK_NUMBERS(seen.ns, ==, groups[i].ns);
        watch__group_close(&g);
    }
    snprintf(mounts, sizeof mounts, "rm -r '%s'", root);
    CHECK(system(mounts) == 0);
}

/* Looks 5 ms apart: what it used (us), waited and how often it ran since the last
 * read; then how often it was said to be unserved for long, and for how long. */
static const struct {
    const char *says;
    unsigned looks, used, waited, runs;
    bool still, since_last;
    unsigned times, ms;
} stretches[] = {
    {"spins, and gives way each time", 8, 60, 4900, 4, false, true, 1, 39},
    {"for too short", 2, 60, 4900, 4, false, true, 0, 0},
    {"one wait, unseen", 1, 100, 60000, 1, true, false, 1, 60},
    {"slept, and waited little", 1, 100, 3000, 1, true, false, 0, 0},
    {"sleeps in between", 8, 60, 2000, 4, false, true, 0, 0},
    {"works", 8, 2000, 3000, 4, false, true, 0, 0},
    {"was not looked at", 8, 60, 4900, 4, false, false, 0, 0},
};

TEST(stretch, "only who is ready nearly all the time and works next to nothing "
     "waits at a stretch")
{
    for (size_t i = 0; i < sizeof stretches / sizeof *stretches; i++) {
        struct watch__thread t = {.gap = 5 * NS_PER_MS};
        struct watch__wait w = {0};
        unsigned times = 0;

        for (unsigned k = 0; k <= stretches[i].looks; k++) {
            bool last = k == stretches[i].looks;

            w.at += t.gap;
            w.cpu += (last ? 4000 : stretches[i].used) * 1000;
            w.waited += (last ? 0 : stretches[i].waited) * 1000;
            w.runs += stretches[i].runs;
            t.is_still = stretches[i].still && !last;
            watch__judge_wait(&t, &w, stretches[i].since_last);
        }
        for (unsigned k = 0; k < WATCH__WAITS; k++)
            times += (unsigned)GET(t.long_waits[k]);
        if (times != stretches[i].times)
            printf("%s\n", stretches[i].says);
        CHECK_NUMBERS(times, ==, stretches[i].times);
        CHECK_NUMBERS(GET(t.long_wait_ns) / NS_PER_MS, ==, stretches[i].ms);
        CHECK_NUMBERS(GET(t.shown_runs), ==, w.runs - t.merged);
    }
}

TEST(longest_wait, "of several waits the least that the longest was")
{
    static const unsigned rows[][4] = {
        /* waited, runs, of that look, so long */
        {0, 0, 5, 0}, {30, 1, 5, 30}, {30, 2, 5, 25}, {30, 6, 5, 25},
        {12, 4, 20, 3}, {12, 2, 20, 6},
    };

    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        CHECK_NUMBERS(watch__longest_wait(rows[i][0], rows[i][1], rows[i][2]),
                      ==, rows[i][3]);
}
