/*
 * test_none.c - a runtime built without tasks (FAIRNIF_SWITCH=none): the same
 * bodies run as plain dirty NIFs, and still end when their caller dies.
 */
#include <stdio.h>

#include "check.h"

#ifdef FAIR_NO_TASKS

static volatile long rounds;

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

    fair_call(t, FAIR_AUTO, 1, count_round, &n);
    fair_call(t, FAIR_AUTO, 1000000000, count_round, &n);
    fair_call(t, FAIR_DIRTY_IO, 0, count_round, &n);
    return enif_make_int(fair_env(t), n);
}

static ERL_NIF_TERM endless(fair_task *t)
{
    fair_bin bin;
    void *block = fair_alloc(t, 100);

    CHECK(block != NULL && fair_new_bin(t, 1000, &bin));
    fair_defer(t, note_defer, "a");
    fair_defer(t, note_defer, "b");
    while (fair_argc(t) == 0) {
        __atomic_add_fetch(&rounds, 1, __ATOMIC_RELAXED);
        fair_tick(t, 1);
    }
    return fair_badarg(t);
}

static void die(void *arg)
{
    (void)arg;
    vm_kill(vm_current());
}

static ERL_NIF_TERM dies_in_call(fair_task *t)
{
    fair_defer(t, note_defer, "a");
    fair_call(t, FAIR_AUTO, 1, die, NULL);
    note("went on:");
    return enif_make_atom(fair_env(t), "ok");
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
    ALL_MODES("endless", 0, endless),
    ALL_MODES("dies_in_call", 0, dies_in_call),
};
FAIR_NIF_INIT(test_none, nifs, NULL, NULL, NULL, NULL)

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

static vm_proc *doomed;

static void run_doomed(void *arg)
{
    (void)arg;
    vm_slice(doomed);
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

TEST(killed, "without tasks a killed call ends at a tick, and what it held is "
     "let go")
{
    node_set("dirty_slice_ns", 100000);
    for (int i = 0; i < 6; i++) {
        vm_thread *th = vm_nth_thread(modes[i].first == 'i' ? VM_DIRTY_IO
                                      : VM_DIRTY_CPU, 0);

        clear_notes();
        doomed = spawn_call(in_mode("endless", &modes[i]), "");
        vm_step(doomed);
        rounds = 0;
        vm_post(th, run_doomed, NULL);
        while (__atomic_load_n(&rounds, __ATOMIC_RELAXED) < 10)
            ;
        vm_kill(doomed);
        vm_wait(th);
        CHECK(vm_state(doomed) == VM_DEAD);
        CHECK_TEXT(notes(), "ba");
        CHECK_NUMBERS(node_stacks(), ==, 0);
        CHECK_NUMBERS(node_counter(in_mode("endless", &modes[i]), "cancels"),
                      ==, 1);
        vm_free(doomed);
    }
}

TEST(killed_in_call, "without tasks a body whose caller died during fair_call "
     "goes no further")
{
    for (int i = 0; i < 6; i++) {
        vm_proc *p = spawn_call(in_mode("dies_in_call", &modes[i]), "");

        clear_notes();
        vm_step(p);
        vm_step(p);
        CHECK(vm_state(p) == VM_DEAD);
        CHECK_TEXT(notes(), "a");
        vm_free(p);
    }
}

TEST(queued, "without tasks a call killed while queued never begins")
{
    for (int i = 0; i < 6; i++) {
        vm_proc *p = spawn_call(in_mode("endless", &modes[i]), "");

        rounds = 0;
        CHECK(vm_step(p) == VM_READY);
        vm_kill(p);
        CHECK_NUMBERS(node_stacks(), ==, 0);
        CHECK_NUMBERS(rounds, ==, 0);
        vm_free(p);
    }
}

#else

/* The file is empty otherwise, which C does not allow. */
typedef int test__with_tasks;

#endif
