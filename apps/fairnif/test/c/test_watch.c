/*
 * test_watch.c - what a watchdog's own thread sees of the runtime: which
 * function each thread runs, without waiting for any of them.
 */
#include <pthread.h>
#include <stdio.h>
#include <unistd.h>

#include "check.h"

static const struct fair__ops *ops;     /* as a watchdog has it */
static struct fair__visitor watcher;

/* -- the watchdog gets the table -------------------------------------------- */

static void bind_watcher(unsigned major, unsigned minor)
{
    watcher = (struct fair__visitor){.is = {sizeof watcher,
                                            FAIR__VISITS},
                                     .abi_major = (uint16_t)major,
                                     .abi_minor = (uint16_t)minor};
    node_visit(&watcher);
    ops = watcher.table;
}

/* -- a function that is watched --------------------------------------------- */

static struct fair__running seen[64];
static unsigned count;

static void *look(void *most)
{
    count = ops->running(seen, sizeof *seen, *(unsigned *)most);
    return NULL;
}

static void look_from_elsewhere(unsigned most)
{
    pthread_t thread;

    pthread_create(&thread, NULL, look, &most);
    pthread_join(thread, NULL);
}

/* Looks at itself, from a thread that the VM knows nothing of. */
static ERL_NIF_TERM watched(fair_task *t)
{
    ErlNifPid me;
    const struct fair__running *r = &seen[0];
    bool right;

    fair_tick(t, 1);
    look_from_elsewhere(64);
    fair_caller(t, &me);
    right = count == 1 && strcmp(r->name, "watched") == 0 && r->arity == 0
        && strcmp(r->module, "test_watch") == 0 && r->owner.pid == me.pid
        && r->yields == fair_yields(t) && r->since_ns > 0 && r->where <= 2;
    look_from_elsewhere(0);
    return enif_make_atom(fair_env(t), right && count == 0 ? "right" : "wrong");
}

/* With the struct of an older watchdog, which ends before `since_ns`. */
static ERL_NIF_TERM watched_by_old(fair_task *t)
{
    struct fair__running r[2];
    size_t known = offsetof(struct fair__running, since_ns);
    bool right;

    memset(r, 0x5A, sizeof r);
    right = ops->running(r, known, 2) == 1
        && strcmp(r[0].name, "watched_by_old") == 0
        && r[0].since_ns == 0x5A5A5A5A5A5A5A5A;
    return enif_make_atom(fair_env(t), right ? "right" : "wrong");
}

static ErlNifFunc nifs[] = {
    FAIR_NIF("watched", 0, watched, FAIR_NORMAL),
    FAIR_NIF("watched_by_old", 0, watched_by_old, FAIR_NORMAL),
};
FAIR_NIF_INIT(test_watch, nifs, NULL, NULL, NULL)

/* -- tests --------------------------------------------------------------------- */

TEST(running, "a watchdog's thread learns what each thread runs, and for whom")
{
    bind_watcher(FAIR_ABI_MAJOR, FAIR_ABI_MINOR);
    CHECK(ops != NULL);
    if (!ops)
        return;
    CHECK_NUMBERS(ops->abi_minor, >=, FAIR_ABI_MINOR);
    look_from_elsewhere(64);
    CHECK_NUMBERS(count, ==, 0);
    CHECK_CALL("watched", "", "right");
    look_from_elsewhere(64);
    CHECK_NUMBERS(count, ==, 0);
}

TEST(shorter, "a watchdog that knows less of a thread gets what it knows")
{
    bind_watcher(FAIR_ABI_MAJOR, FAIR_ABI_MINOR);
    CHECK(ops != NULL);
    if (ops)
        CHECK_CALL("watched_by_old", "", "right");
}

TEST(odd, "a watchdog of another interface gets no table")
{
    bind_watcher(FAIR_ABI_MAJOR + 1, 0);
    CHECK(ops == NULL);
    bind_watcher(FAIR_ABI_MAJOR, FAIR_ABI_MINOR + 1);
    CHECK(ops == NULL);
    bind_watcher(FAIR_ABI_MAJOR, 0);
    CHECK(ops != NULL);
}
