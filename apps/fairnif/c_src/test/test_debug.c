/*
 * test_debug.c - the runtime's own watch over the rules of a body: a term
 * kept across a pause, a tick with a mutex held, a tick after an exception.
 */
#define FAIR_DEBUG
#include "check.h"

/* Terms that do not move are not the rule's business. */
static ERL_NIF_TERM immediate(fair_task *t)
{
    ERL_NIF_TERM kept = fair_arg(t, 0);

    fair_tick(t, 1);
    return fair_kept(t, fair_root(t, kept));
}

static ERL_NIF_TERM keeps_argument(fair_task *t)
{
    ERL_NIF_TERM kept = fair_arg(t, 0);

    fair_tick(t, 1);
    fair_root(t, kept);
    return fair_arg(t, 0);
}

static ERL_NIF_TERM keeps_root(fair_task *t)
{
    unsigned root = fair_root(t, fair_arg(t, 0));
    unsigned list = fair_root(t, enif_make_list(fair_env(t), 0));
    ERL_NIF_TERM kept = fair_kept(t, root);

    fair_tick(t, 1);
    fair_list_push(t, list, kept);
    return fair_arg(t, 0);
}

static ERL_NIF_TERM keeps_nothing(fair_task *t)
{
    unsigned root = fair_root(t, fair_arg(t, 0));
    unsigned list = fair_root(t, enif_make_list(fair_env(t), 0));

    for (int i = 0; i < 20; i++) {
        fair_keep(t, root, fair_arg(t, 0));
        fair_list_push(t, list, fair_kept(t, root));
        fair_tick(t, 1);
    }
    return fair_kept(t, root);
}

static ERL_NIF_TERM holds_mutex(fair_task *t)
{
    ErlNifMutex *mutex = enif_mutex_create("held");

    for (int i = 0; i < 3; i++) {
        enif_mutex_lock(mutex);
        fair_tick(t, 1);
        enif_mutex_unlock(mutex);
        fair_tick(t, 1);
    }
    enif_mutex_destroy(mutex);
    return enif_make_uint64(fair_env(t), fair_yields(t));
}

/* However a lock was got, the next one is seen. */
static ERL_NIF_TERM tries_locks(fair_task *t)
{
    ErlNifMutex *mutex = enif_mutex_create("tried");
    ErlNifRWLock *rw = enif_rwlock_create("tried");

    for (int i = 0; i < 4; i++) {
        CHECK_NUMBERS(i == 0 ? enif_mutex_trylock(mutex)
                      : i == 1 ? enif_rwlock_tryrlock(rw)
                      : i == 2 ? enif_rwlock_tryrwlock(rw)
                      : (enif_mutex_lock(mutex), 0), ==, 0);
        fair_tick(t, 1);
        if (i == 2)
            CHECK(enif_rwlock_tryrlock(rw) != 0);
        if (i == 1)
            enif_rwlock_runlock(rw);
        else if (i == 2)
            enif_rwlock_rwunlock(rw);
        else
            enif_mutex_unlock(mutex);
        fair_tick(t, 1);
    }
    enif_mutex_destroy(mutex);
    enif_rwlock_destroy(rw);
    return enif_make_uint64(fair_env(t), fair_yields(t));
}

static ERL_NIF_TERM goes_on_after_badarg(fair_task *t)
{
    ERL_NIF_TERM answer = fair_badarg(t);

    fair_tick(t, 1);
    return answer;
}

static ERL_NIF_TERM returns_nothing(fair_task *t)
{
    fair_tick(t, 1);
    return 0;
}

/* What it was given before a pause it finds again in what it re-reads. */
static ERL_NIF_TERM looks_again(fair_task *t)
{
    unsigned one = fair_root(t, fair_arg(t, 0)), list;
    const ERL_NIF_TERM *parts;
    ERL_NIF_TERM head;
    int arity;

    list = fair_root(t, enif_make_list1(fair_env(t),
                                        enif_make_tuple2(fair_env(t),
                                                         fair_arg(t, 0),
                                                         fair_kept(t, one))));
    fair_tick(t, 1);
    fair_list_next(t, list, &head);
    enif_get_tuple(fair_env(t), head, &arity, &parts);
    fair_keep(t, one, parts[1]);
    return parts[1];
}

static ErlNifFunc nifs[] = {
    FAIR_NIF("immediate", 1, immediate, FAIR_NORMAL),
    FAIR_NIF("keeps_argument", 1, keeps_argument, FAIR_NORMAL),
    FAIR_NIF("keeps_root", 1, keeps_root, FAIR_NORMAL),
    FAIR_NIF("keeps_nothing", 1, keeps_nothing, FAIR_NORMAL),
    FAIR_NIF("looks_again", 1, looks_again, FAIR_NORMAL),
    FAIR_NIF("holds_mutex", 0, holds_mutex, FAIR_NORMAL),
    FAIR_NIF("tries_locks", 0, tries_locks, FAIR_NORMAL),
    FAIR_NIF("goes_on", 0, goes_on_after_badarg, FAIR_NORMAL),
    FAIR_NIF("returns_nothing", 0, returns_nothing, FAIR_NORMAL),
};
FAIR_NIF_INIT(test_debug, nifs, NULL, NULL, NULL, NULL)

static void watch(void)
{
    node_set("check_terms", 1);
    node_set("pause_every_tick", 1);
}

TEST(terms, "a body that follows the rules is not reported")
{
    watch();
    CHECK_CALL("immediate", "atom", "atom");
    CHECK_CALL("immediate", "[]", "[]");
    CHECK_CALL("keeps_nothing", "{1,<<2>>}", "{1,<<2>>}");
    CHECK_NUMBERS(node_counter("immediate", "misuses"), ==, 0);
    CHECK_NUMBERS(node_counter("keeps_nothing", "misuses"), ==, 0);
}

TEST(again, "a part of what was re-read is not reported, though it was handed out "
     "before a pause")
{
    watch();
    vm_options.gc_every = 0;
    CHECK_CALL("looks_again", "{1,<<2>>}", "{1,<<2>>}");
    CHECK_NUMBERS(node_counter("looks_again", "misuses"), ==, 0);
}

/* A stale term in a root ends the VM's stand-in when it collects: so there is
 * no pause after it. */
TEST(argument, "an argument kept in a C variable across a pause is reported")
{
    watch();
    vm_options.gc_every = 0;
    CHECK_CALL("keeps_argument", "{1}", "{1}");
    CHECK_NUMBERS(node_counter("keeps_argument", "misuses"), ==, 1);
}

TEST(root, "a root kept in a C variable across a pause is reported")
{
    watch();
    vm_options.gc_every = 0;
    CHECK_CALL("keeps_root", "{1}", "{1}");
    CHECK_NUMBERS(node_counter("keeps_root", "misuses"), ==, 1);
}

TEST(mutex, "a tick with a mutex held is reported, and does not pause")
{
    watch();
    CHECK_CALL("holds_mutex", "", "3");
    CHECK_NUMBERS(node_counter("holds_mutex", "misuses"), ==, 3);
}

TEST(tried, "so is one that was tried and got, and it hides no later one")
{
    watch();
    CHECK_CALL("tries_locks", "", "4");
    CHECK_NUMBERS(node_counter("tries_locks", "misuses"), ==, 4);
}

TEST(exception, "a tick after an exception is reported, and does not pause")
{
    watch();
    CHECK_CALL("goes_on", "", "error:badarg");
    CHECK_NUMBERS(node_counter("goes_on", "misuses"), ==, 1);
}

TEST(no_term, "a body that returns no term is reported")
{
    for (unsigned pause = 0; pause < 2; pause++) {
        node_set("pause_every_tick", pause);
        CHECK_CALL("returns_nothing", "", "error:badreturn");
    }
    CHECK_NUMBERS(node_counter("returns_nothing", "misuses"), ==, 2);
}
