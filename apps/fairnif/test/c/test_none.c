/*
 * test_none.c - a runtime built without tasks (FAIRNIF_SWITCH=none): the same
 * bodies run as plain dirty NIFs.  How they end is in test_defer.c, as in others.
 */
#include <stdio.h>

#include "check.h"

#ifdef FAIR_NO_TASKS

/* Where it runs after each attempt to go elsewhere, and how often it paused. */
static ERL_NIF_TERM moves(fair_task *t)
{
    char where[8] = "";

    for (unsigned i = 0; i < 4; i++) {
        static const enum fair_mode to[] = {FAIR_NORMAL, FAIR_DIRTY_IO,
                                            FAIR_DIRTY_CPU, FAIR_NORMAL};

        fair_move(t, to[i]);
        fair_tick(t, 1000000);
        where[i] = fair_where(t) == FAIR_DIRTY_CPU ? 'c'
            : fair_where(t) == FAIR_DIRTY_IO ? 'i' : 'n';
    }
    return enif_make_tuple2(fair_env(t), enif_make_atom(fair_env(t), where),
                            enif_make_uint64(fair_env(t), fair_yields(t)));
}

static void count_round(void *arg)
{
    ++*(int *)arg;
}

/* calls() -> how often the functions given to the runtime ran */
static ERL_NIF_TERM calls(fair_task *t)
{
    int n = 0;

    fair_offload(t, FAIR_AUTO, 1, count_round, &n);
    fair_offload(t, FAIR_AUTO, 1000000000, count_round, &n);
    fair_offload(t, FAIR_DIRTY_IO, 0, count_round, &n);
    return enif_make_int(fair_env(t), n);
}

static ERL_NIF_TERM receives(fair_task *t)
{
    ERL_NIF_TERM message;

    fair_receive(t, 0, &message);
    return message;
}

static ERL_NIF_TERM sends(fair_task *t)
{
    fair_send(t, fair_self(t), fair_self(t));
    return fair_self(t);
}

static ErlNifFunc nifs[] = {
    AWAITED_MODES("receives", 0, receives),
    AWAITED_MODES("sends", 0, sends),
    ALL_MODES("moves", 0, moves),
    ALL_MODES("calls", 0, calls),
};
FAIR_NIF_INIT(test_none, nifs, NULL, NULL, NULL)

TEST(stays, "without tasks a call runs on one dirty scheduler, whatever it "
     "asks for")
{
    for (unsigned pause = 0; pause < 2; pause++) {
        node_set("pause_every_tick", pause);
        for (int i = 0; i < 6; i++) {
            const char *name = in_mode("moves", &modes[i]);
            vm_proc *p = spawn_call(name, "");

            vm_finish(p);
            CHECK_TEXT(outcome(p), modes[i].first == 'i' ? "{iiii,0}"
                       : "{cccc,0}");
            CHECK_NUMBERS(vm_slices(p), ==, 2);
            CHECK_NUMBERS(vm_kinds(p)[1], ==, modes[i].first);
            vm_free(p);
            CHECK_CALL(in_mode("calls", &modes[i]), "", "3");
        }
    }
}

TEST(no_caller, "without tasks a call can neither receive nor send")
{
    static const char *const names[] = {"receives", "sends"};

    for (int k = 0; k < 2; k++)
        for (int i = 0; i < MODES; i++) {
            const char *name = in_nth_mode(names[k], i);
            char error[128];

            snprintf(error, sizeof error, "error:{fairnif,{no_caller,{test_none,"
                     "%s,0}}}", name);
            CHECK_TEXT(finished(spawn_await(name, "")), error);
        }
}

#else

/* The file is empty otherwise, which C does not allow. */
typedef int test__with_tasks;

#endif
