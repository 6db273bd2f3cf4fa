/*
 * test_debug.c - the runtime's own watch over the rules of a body: a term
 * kept across a pause, a tick with a mutex held, a tick after an exception.
 */
#define FAIR_DEBUG
#include <pthread.h>

#define NEEDS_TASKS
#include "check.h"

/* Terms that do not move are not the rule's business. */
static ERL_NIF_TERM immediate(fair_task *t)
{
    ERL_NIF_TERM kept = fair_arg(t, 0);

    fair_tick(t, 1);
    return fair_root_get(t, fair_root_new(t, kept));
}

static ERL_NIF_TERM keeps_argument(fair_task *t)
{
    ERL_NIF_TERM kept = fair_arg(t, 0);

    fair_tick(t, 1);
    fair_root_new(t, kept);
    return fair_arg(t, 0);
}

/* The VM's own functions see it too. */
static ERL_NIF_TERM reads_argument(fair_task *t)
{
    ERL_NIF_TERM kept = fair_arg(t, 0);
    const ERL_NIF_TERM *parts;
    int arity;

    fair_tick(t, 1);
    enif_get_tuple(fair_env(t), fair_arg(t, 0), &arity, &parts);
    fair_tick(t, 1);
    enif_get_tuple(fair_env(t), kept, &arity, &parts);
    return fair_arg(t, 0);
}

/* Twice, by cells: those of the second time were in the root before. */
static ERL_NIF_TERM walks_twice(fair_task *t)
{
    unsigned all = fair_root_new(t, enif_make_list(fair_env(t), 0));
    unsigned left = fair_root_new(t, fair_arg(t, 0));
    ERL_NIF_TERM head, list;

    for (int i = 0; i < 500; i++)
        fair_list_push(t, all, enif_make_int(fair_env(t), i));
    for (int part = 110; part < 1000; part += 400) {
        fair_root_set(t, left, fair_root_get(t, all));
        while (!enif_is_empty_list(fair_env(t), fair_root_get(t, left))) {
            list = fair_root_get(t, left);
            for (int i = 0; i < part
                 && enif_get_list_cell(fair_env(t), list, &head, &list); i++)
                continue;
            fair_root_set(t, left, list);
            fair_tick(t, 1);
        }
    }
    return fair_arg(t, 0);
}

static ERL_NIF_TERM keeps_root(fair_task *t)
{
    unsigned root = fair_root_new(t, fair_arg(t, 0));
    unsigned list = fair_root_new(t, enif_make_list(fair_env(t), 0));
    ERL_NIF_TERM kept = fair_root_get(t, root);

    fair_tick(t, 1);
    fair_list_push(t, list, kept);
    return fair_arg(t, 0);
}

static ERL_NIF_TERM keeps_nothing(fair_task *t)
{
    unsigned root = fair_root_new(t, fair_arg(t, 0));
    unsigned list = fair_root_new(t, enif_make_list(fair_env(t), 0));

    for (int i = 0; i < 20; i++) {
        fair_root_set(t, root, fair_arg(t, 0));
        fair_list_push(t, list, fair_root_get(t, root));
        fair_tick(t, 1);
    }
    return fair_root_get(t, root);
}

#ifndef VM_REAL                 /* there are ports */
/* Sends to a port in the body, and in what fair_offload runs there. */
static void command(void *arg)
{
    static const ErlNifPort port;

    enif_port_command(fair_env(arg), &port, NULL, 0);
}

static ERL_NIF_TERM commands(fair_task *t)
{
    command(t);
    fair_offload(t, FAIR_DIRTY_IO, 1, command, t);
    return enif_make_atom(fair_env(t), "ok");
}

#endif

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

static ERL_NIF_TERM offloads(fair_task *t)
{
    fair_offload(t, FAIR_THREADED, 1, gate_pass, NULL);
    return enif_make_atom(fair_env(t), "ok");
}

static const fair_options on_own_stack = {
    .body = offloads, .stack_size = 16 << 20
};

/* It has a mutex while what is at the gate comes to its end. */
static ERL_NIF_TERM holds_meanwhile(fair_task *t)
{
    ErlNifMutex *mutex = enif_mutex_create("held");

    enif_mutex_lock(mutex);
    gate_open();
    for (int i = 0; i < 50; i++)
        nap();
    fair_tick(t, 1);
    enif_mutex_unlock(mutex);
    enif_mutex_destroy(mutex);
    return enif_make_atom(fair_env(t), "ok");
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

static ERL_NIF_TERM continue_after_badarg(fair_task *t)
{
    ERL_NIF_TERM answer = fair_badarg(t);

    fair_tick(t, 1);
    return answer;
}

/* Its exception waits until what it has sent is on its way. */
static ERL_NIF_TERM continue_after_sending(fair_task *t)
{
    fair_send(t, fair_self(t), enif_make_atom(fair_env(t), "sent"));
    fair_badarg(t);
    fair_tick(t, 1);
    return enif_make_atom(fair_env(t), "done");
}

static ERL_NIF_TERM returns_nothing(fair_task *t)
{
    fair_tick(t, 1);
    return 0;
}

/* What it was given before a pause it finds again in what it re-reads. */
static ERL_NIF_TERM looks_again(fair_task *t)
{
    unsigned one = fair_root_new(t, fair_arg(t, 0)), list;
    const ERL_NIF_TERM *parts;
    ERL_NIF_TERM head;
    int arity;

    list = fair_root_new(t, enif_make_list1(fair_env(t),
                                        enif_make_tuple2(fair_env(t),
                                                         fair_arg(t, 0),
                                                         fair_root_get(t, one))));
    fair_tick(t, 1);
    fair_list_next(t, list, &head);
    enif_get_tuple(fair_env(t), head, &arity, &parts);
    fair_root_set(t, one, parts[1]);
    return parts[1];
}

static ErlNifFunc nifs[] = {
    FAIR_NIF("immediate", 1, immediate, FAIR_NORMAL),
    FAIR_NIF("keeps_argument", 1, keeps_argument, FAIR_NORMAL),
    FAIR_NIF("reads_argument", 1, reads_argument, FAIR_NORMAL),
    FAIR_NIF("walks_twice", 1, walks_twice, FAIR_NORMAL),
    FAIR_NIF("keeps_root", 1, keeps_root, FAIR_NORMAL),
    FAIR_NIF("keeps_nothing", 1, keeps_nothing, FAIR_NORMAL),
    FAIR_NIF("looks_again", 1, looks_again, FAIR_NORMAL),
#ifndef VM_REAL
    AWAITED_MODES("commands", 0, commands),
#endif
    FAIR_NIF("holds_mutex", 0, holds_mutex, FAIR_NORMAL),
    FAIR_NIF("tries_locks", 0, tries_locks, FAIR_NORMAL),
    FAIR_NIF_OPTIONS("offloads", 0, &on_own_stack, FAIR_NORMAL | FAIR_MAY_WAIT),
    FAIR_NIF("holds_meanwhile", 0, holds_meanwhile, FAIR_NORMAL),
    FAIR_NIF("continues", 0, continue_after_badarg, FAIR_NORMAL),
    FAIR_NIF("continues_sent", 0, continue_after_sending,
             FAIR_NORMAL | FAIR_MAY_WAIT),
    FAIR_NIF("returns_nothing", 0, returns_nothing, FAIR_NORMAL),
};
FAIR_NIF_INIT(test_debug, nifs, NULL, NULL, NULL)

static void watch(void)
{
    node_set("check_terms", 1);
    node_set("pause_every_tick", 1);
}

struct report {
    const char *body, *args, *result;
    long rule_violations;
};

static void check_reports(const struct report *r)
{
    for (watch(); r->body; r++) {
        CHECK_CALL(r->body, r->args, r->result);
        check_that(node_counter(r->body, "rule_violations")
                       == r->rule_violations, __FILE__,
                   __LINE__, "%s: %ld rule_violations", r->body,
                   node_counter(r->body, "rule_violations"));
    }
}

TEST(rules, "a tick with a mutex held, however taken, or after an exception "
     "is reported, and does not pause; a body that follows the rules is not")
{
    static const struct report reports[] = {
        {"immediate", "atom", "atom", 0}, {"immediate", "[]", "[]", 0},
        {"keeps_nothing", "{1,<<2>>}", "{1,<<2>>}", 0},
        {"holds_mutex", "", "3", 3}, {"tries_locks", "", "4", 4},
        {"continues", "", "error:badarg", 1}, {0}
    };

    check_reports(reports);
}

TEST(not_its_thread, "what runs on the pool leaves alone what is known of the "
     "scheduler that the body was on: that one has a lock by now")
{
    vm_thread *same = vm_nth_thread(VM_NORMAL, 0);
    vm_proc *p = spawn_await("offloads", ""), *other;

    watch();
    vm_post(same, run_all_slices, p);
    vm_wait(same);
    EVENTUALLY(gate_waiting() == 1);
    other = spawn_call("holds_meanwhile", "");
    vm_post(same, run_all_slices, other);
    vm_wait(same);
    CHECK_TEXT(finished(other), "ok");
    CHECK_TEXT(finished(p), "ok");
    CHECK_MISUSES("holds_meanwhile", 1);
    CHECK_MISUSES("offloads", 0);
}

/* A stale term in a root ends the VM's stand-in when it collects: so it does not. */
TEST(kept, "an argument or a root kept in a C variable across a pause is reported, "
     "however it is read; a part of what was re-read, or of a root, is not")
{
    static const struct report reports[] = {
        {"looks_again", "{1,<<2>>}", "{1,<<2>>}", 0},
        {"keeps_argument", "{1}", "{1}", 1}, {"reads_argument", "{1}", "{1}", 1},
        {"walks_twice", "{1}", "{1}", 0}, {"keeps_root", "{1}", "{1}", 1}, {0}
    };

    vm_options.gc_every = 0;
    check_reports(reports);
}

#ifndef VM_REAL
TEST(commanded, "a command to a port is reported off a normal scheduler")
{
    for (int i = 0; i < MODES; i++) {
        const char *name = in_nth_mode("commands", i);
        bool normal = i < 2 || strstr(name, "auto");

        CHECK_AWAIT(name, "", "ok");
        check_that(node_counter(name, "rule_violations") == 2 - normal, __FILE__,
                   __LINE__, "%s: %ld rule_violations", name,
                   node_counter(name, "rule_violations"));
    }
}
#endif

static void *locks(void *mutex)
{
    enif_mutex_lock(mutex);
    enif_mutex_unlock(mutex);
    return NULL;
}

TEST(own_thread, "a thread of the author's that locks leaves no record behind")
{
    ErlNifMutex *mutex = enif_mutex_create("own");
    long before = node_records();
    pthread_t thread;

    CHECK(pthread_create(&thread, NULL, locks, mutex) == 0);
    pthread_join(thread, NULL);
    CHECK_NUMBERS(node_records(), ==, before);
    enif_mutex_destroy(mutex);
}

TEST(sent, "so is one after an exception that waits for what was sent, which "
     "arrives")
{
    vm_proc *p = spawn_await("continues_sent", "");

    watch();
    vm_finish(p);
    CHECK_TEXT(outcome(p), "error:badarg");
    CHECK_NUMBERS(vm_messages(p), ==, 1);
    CHECK_NUMBERS(node_counter("continues_sent", "rule_violations"), ==, 1);
    vm_free(p);
}

TEST(no_term, "a body that returns no term is reported")
{
    for (unsigned pause = 0; pause < 2; pause++) {
        node_set("pause_every_tick", pause);
        CHECK_CALL("returns_nothing", "", "error:badreturn");
    }
    CHECK_NUMBERS(node_counter("returns_nothing", "rule_violations"), ==, 2);
}
