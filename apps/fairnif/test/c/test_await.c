/*
 * test_await.c - pending values: calls that wait in fairnif:await/1, in every
 * mode; what becomes of them when their caller dies at any point, releases
 * them, or asks for them in the wrong way.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define NEEDS_TASKS
#include "check.h"

/* -- bodies -------------------------------------------------------------- */

/* offloads(Term, Binary, List): passes the gate on a thread of the pool, and
 * has all of them, a root and a frame of its own before and after. */
static ERL_NIF_TERM offloads(fair_task *t)
{
    unsigned char frame[300];
    fair_bytes bin;
    fair_bin made;
    unsigned char byte;
    unsigned root;

    memset(frame, 0x5C, sizeof frame);
    if (!postpone(t) || !fair_get_bytes(t, fair_arg(t, 1), &bin)
        || !fair_new_bin(t, 100, &made))
        return fair_enomem(t);
    memset(made.data, 'x', made.size);
    byte = bin.data[bin.size - 1];
    /* Where the binary is short, enough roots that they travel in a tuple. */
    for (int i = 0; bin.size <= 64 && i < 40; i++)
        fair_root_new(t, fair_arg(t, 0));
    root = fair_root_new(t, enif_make_list1(fair_env(t), fair_arg(t, 2)));
    fair_tick(t, 1);
    fair_offload(t, FAIR_THREADED, 0, gate_pass, NULL);
    fair_tick(t, 1);
    for (size_t i = 0; i < sizeof frame; i++)
        if (frame[i] != 0x5C)
            return fair_badarg(t);
    if (bin.data[bin.size - 1] != byte || made.data[99] != 'x')
        return fair_badarg(t);
    if (root > 1
        && !enif_is_identical(fair_root_get(t, root - 1), fair_arg(t, 0)))
        return fair_badarg(t);
    return enif_make_tuple3(fair_env(t), fair_arg(t, 0), fair_root_get(t, root),
                            enif_make_ulong(fair_env(t),
                                            bin.size + made.size));
}

/* Raises after the wait, what it was given. */
static ERL_NIF_TERM raises(fair_task *t)
{
    fair_offload(t, FAIR_THREADED, 0, gate_pass, NULL);
    return fair_raise(t, fair_arg(t, 0));
}

/* sleeps(Ms) */
static ERL_NIF_TERM sleeps(fair_task *t)
{
    int ms, answer;

    if (!postpone(t) || !enif_get_int(fair_env(t), fair_arg(t, 0), &ms))
        return fair_badarg(t);
    answer = fair_sleep(t, ms);
    return enif_make_int(fair_env(t), answer);
}

/* naps(N): waits N times for no time at all; only one call at a time */
static ERL_NIF_TERM naps(fair_task *t)
{
    long inside = 0, n;

    if (!fair_get_long(t, fair_arg(t, 0), &n))
        return fair_badarg(t);
    for (long i = 0; i < n; i++) {
        CHECK_NUMBERS(__atomic_add_fetch(&inside, 1, __ATOMIC_RELAXED), ==, 1);
        __atomic_sub_fetch(&inside, 1, __ATOMIC_RELAXED);
        CHECK_NUMBERS(fair_sleep(t, 0), ==, 1);
    }
    return fair_arg(t, 0);
}

#ifdef VM_REAL
/* What the VM has, the stand-in not: {Ref, Integer, Integer, Binary, Monitor} */
static ERL_NIF_TERM asks_vm(fair_task *t)
{
    ErlNifEnv *env;
    ErlNifPid init, self;
    ErlNifBinary bin;
    ERL_NIF_TERM back = 0, answer;

    fair_offload(t, FAIR_THREADED, 0, gate_pass, NULL);
    env = fair_env(t);
    CHECK(enif_whereis_pid(env, enif_make_atom(env, "init"), &init));
    CHECK(enif_is_process_alive(env, &init));
    CHECK(enif_self(env, &self) && enif_send(env, &self, NULL,
                                             enif_make_atom(env, "sent")));
    CHECK(enif_is_ref(env, enif_make_ref(env)));
    answer = enif_make_tuple2(
        env, enif_make_unique_integer(env, ERL_NIF_UNIQUE_POSITIVE),
        enif_make_unique_integer(env, ERL_NIF_UNIQUE_MONOTONIC));
    CHECK(enif_term_to_binary(env, answer, &bin));
    CHECK(enif_binary_to_term(env, bin.data, bin.size, &back, 0));
    CHECK(enif_is_identical(back, answer));
    enif_release_binary(&bin);
    return enif_raise_exception(env, fair_arg(t, 0));
}
#endif

/* The VM's clock, in each unit. */
static bool same_clock(void)
{
    static const struct {
        ErlNifTimeUnit unit;
        ErlNifTime ns;
    } units[] = {{ERL_NIF_SEC, 1000000000}, {ERL_NIF_MSEC, 1000000},
                 {ERL_NIF_USEC, 1000}};
    ErlNifTime now = enif_monotonic_time(ERL_NIF_NSEC);

    for (size_t i = 0; i < 3; i++) {
        ErlNifTime then = enif_monotonic_time(units[i].unit) * units[i].ns;

        if (then <= now - units[i].ns || then > now + 20 * units[0].ns)
            return false;
    }
    return true;
}

/* Waits twice, and says who called. */
static ERL_NIF_TERM twice(fair_task *t)
{
    ErlNifPid pid, self;
    long *count = enif_priv_data(fair_env(t));

    fair_offload(t, FAIR_THREADED, 0, gate_pass, NULL);
    fair_offload(t, FAIR_THREADED, 0, gate_pass, NULL);
    fair_caller(t, &pid);
    if (!enif_self(fair_env(t), &self) || self.pid != pid.pid)
        return fair_badarg(t);
    if (enif_priv_data(fair_env(t)) != count || *count != 4711)
        return fair_badarg(t);
    if (!enif_is_current_process_alive(fair_env(t)) || !same_clock())
        return fair_badarg(t);
    enif_consume_timeslice(fair_env(t), 1);
    return enif_make_pid(fair_env(t), &pid);
}

static ERL_NIF_TERM ends_at_once(fair_task *t)
{
    return fair_arg(t, 0);
}

static ErlNifFunc nifs[] = {
    AWAITED_MODES("offloads", 3, offloads),
    AWAITED_MODES("raises", 1, raises),
    AWAITED_MODES("sleeps", 1, sleeps),
    AWAITED_MODES("twice", 0, twice),
    AWAITED_MODES("ends", 1, ends_at_once),
    AWAITED_MODES("naps", 1, naps),
#ifdef VM_REAL
    AWAITED_MODES("asks_vm", 1, asks_vm),
#endif
    FAIR_NIF("not_awaited", 3, offloads, FAIR_AUTO),
};

FAIR_NIF_INIT(test_await, nifs, load_private, upgrade_private, NULL)

/* -- calls --------------------------------------------------------------- */

#define ARGS "{a,[1,<<2>>]}, <<1,2,3>>, \"abc\""
#define ANSWER "{{a,[1,<<2>>]},[[97,98,99]],103}"

/* The arguments of offloads(), with a large binary. */
static vm_proc *spawn_offloads(const char *name)
{
    vm_proc *p = vm_spawn();
    unsigned char bytes[300] = {0};
    vm_term args[3];

    bytes[299] = 77;
    args[0] = vm_parse(vm_env(p), "{a,[1,<<2>>]}");
    args[1] = vm_bits(vm_env(p), bytes, sizeof bytes, 0);
    args[2] = vm_parse(vm_env(p), "\"abc\"");
    node_await(p, name, 3, args);
    return p;
}
#define LARGE_ANSWER "{{a,[1,<<2>>]},[[97,98,99]],400}"

/* -- it waits, and continues --------------------------------------------- */

TEST(all_modes, "a call that offloads comes to the same in every mode")
{
    for (int ticks = 0; ticks < 2; ticks++) {
        node_set("pause_every_tick", (uint64_t)ticks);
        for (int i = 0; i < MODES; i++) {
            const char *name = in_nth_mode("offloads", i);

            gate_shut();
            vm_proc *p = spawn_await(name, ARGS);
            vm_proc *q = spawn_offloads(name);
            until_waiting(p);
            until_waiting(q);
            EVENTUALLY(gate_waiting() == 2);
            CHECK(still_waits(p));
            gate_open();
            vm_finish(p);
            CHECK_TEXT(finished(p), ANSWER);
            CHECK_TEXT(finished(q), LARGE_ANSWER);
        }
    }
    after_all();
    CHECK_NUMBERS(node_counter("offloads_auto", "waits"), >=, 4);
    CHECK_NUMBERS(node_counter("offloads_auto", "thread_offloads"), ==, 4);
}

TEST(fast, "a call that ends without waiting is not pending, but on a thread")
{
    for (int i = 0; i < MODES - 1; i++)
        CHECK_CALL(in_nth_mode("ends", i), "{x}", "{x}");
    CHECK_AWAIT("ends_threaded", "{x}", "{x}");
    CHECK_AWAIT("ends_threaded", "7", "7");
}

TEST(identity, "after a wait the body knows its caller, its library and the time")
{
    gate_open();
    for (int i = 0; i < MODES; i++) {
        vm_proc *p = spawn_await(in_nth_mode("twice", i), "");
        char pid[64];

        vm_print(vm_pid(p), pid, sizeof pid);
        CHECK_TEXT(finished(p), pid);
    }
}

TEST(slept, "a sleep ends by await's clock, not before its time")
{
    for (int i = 0; i < MODES; i++) {
        uint64_t begin = vm_now();
        vm_proc *p = spawn_await(in_nth_mode("sleeps", i), "30");

        CHECK_TEXT(finished(p), "1");
        CHECK_NUMBERS(vm_now() - begin, >=, 30 * 1000000);
        CHECK_AWAIT(in_nth_mode("sleeps", i), "0", "1");
    }
    after_all();
}

TEST(napping, "a body that waits again and again for no time runs on one thread at a "
     "time")
{
    enum { EACH = 4 };
    vm_proc *p[EACH * MODES];

    for (int i = 0; i < EACH * MODES; i++) {
        p[i] = spawn_await(in_nth_mode("naps", i % MODES), "300");
        vm_run(p[i], 1);
    }
    for (int i = 0; i < EACH * MODES; i++)
        CHECK_TEXT(finished(p[i]), "300");
    after_all();
}

#ifdef VM_REAL
TEST(vm_functions, "what the VM offers a NIF answers after a wait, in every mode")
{
    gate_open();
    for (int i = 0; i < MODES; i++) {
        vm_proc *p = spawn_await(in_nth_mode("asks_vm", i), "reason");

        vm_finish(p);
        CHECK_TEXT(outcome(p), "error:reason");
        CHECK_NUMBERS(vm_messages(p), ==, 1);
        vm_free(p);
    }
}
#endif

TEST(mailbox, "await leaves the other messages, and none of its own")
{
    gate_shut();
    for (int i = 0; i < MODES; i++) {
        vm_proc *p = spawn_await(in_nth_mode("offloads", i), ARGS);
        ErlNifPid pid = {vm_pid(p)};
        ErlNifEnv *m = enif_alloc_env();

        enif_send(NULL, &pid, m, vm_parse(m, "{other,go}"));
        until_waiting(p);
        enif_send(NULL, &pid, m, vm_parse(m, "{#Ref,go}"));
        enif_free_env(m);
        gate_open();
        vm_finish(p);
        CHECK_TEXT(outcome(p), ANSWER);
        CHECK_NUMBERS(vm_messages(p), ==, 2);
        vm_free(p);
        gate_shut();
    }
    gate_open();
    after_all();
}

TEST(plain, "a function that is not awaited raises where it would wait")
{
    CHECK_AWAIT("not_awaited", ARGS,
                "error:{fairnif,{not_awaited,{test_await,not_awaited,3}}}");
    after_all();
}

/* -- the caller dies ----------------------------------------------------- */

enum point {
    QUEUED, RUNNING, ARMED, READY, NOT_ASKED, ENDED_NOT_ASKED, POINTS
};

static const char *const point_names[POINTS] = {
    "queued", "running", "waiting", "ready", "not asked", "ended, not asked"
};

/* Takes a call in its nth mode to that point, and kills. */
static void kill_at(int mode, enum point at)
{
    const char *name = in_nth_mode("offloads", mode);
    vm_proc *blocker = NULL, *p;
    int before;

    gate_shut();
    before = gate_waiting();
    if (at == QUEUED) {
        node_set("threads", 1);
        blocker = spawn_await("offloads_auto", ARGS);
        until_waiting(blocker);
        EVENTUALLY(gate_waiting() == 1);
        before = 1;
    }
    p = at == NOT_ASKED || at == ENDED_NOT_ASKED ? spawn_call(name, ARGS)
        : spawn_await(name, ARGS);
    if (at == RUNNING) {            /* not yet in the receive */
        while (gate_waiting() == before && vm_state(p) == VM_READY)
            A_SLICE(p);
    } else {
        until_waiting(p);
    }
    if (at != QUEUED)
        EVENTUALLY(gate_waiting() == before + 1);
    if (at == READY || at == ENDED_NOT_ASKED) {
        gate_open();
        EVENTUALLY(gate_waiting() == 0 && node_info("threads_busy") == 0);
    }
    vm_kill(p);
    if (at == QUEUED)
        ONCE_FREED(node_info("jobs_queued") == 0);
    vm_free(p);
    gate_open();
    if (blocker) {
        CHECK_TEXT(finished(blocker), ANSWER);
        node_set("threads", 16);
    }
    EVENTUALLY(all_undone());
    ALL_OVER();
    check_that(!check_failures(), __FILE__, __LINE__, "%s, killed while %s",
               name, point_names[at]);
}

TEST(kills, "a caller that dies at any point of waiting leaves nothing")
{
    for (int kind = 1; kind <= VM_WAYS; kind++) {
        VM_WORSE(dead_heaps_on, kind);
        for (int i = 0; i < MODES && !check_failures(); i++)
            for (int at = 0; at < POINTS && !check_failures(); at++)
                kill_at(i, (enum point)at);
    }
}

TEST(work_continues, "what a thread works at when the caller dies keeps its "
     "stack and its binaries to the end")
{
    vm_proc *p = spawn_offloads("offloads_auto");

    gate_shut();
    until_waiting(p);
    EVENTUALLY(gate_waiting() == 1);
    vm_free(p);
    usleep(10000);
    CHECK_NUMBERS(node_stacks(), ==, 1);
    CHECK(!all_undone());
    gate_open();
    after_all();
    CHECK_NUMBERS(node_counter("offloads_auto", "cancels"), ==, 1);
}

/* -- the pending value itself -------------------------------------------- */

TEST(abandoned, "a pending value that is not awaited goes with its task when "
     "it is garbage")
{
    for (int i = 0; i < MODES; i++) {
        vm_proc *p = spawn_call(in_nth_mode("offloads", i), ARGS);

        gate_shut();
        vm_finish(p);
        CHECK(strstr(outcome(p), "{fairnif_pending,"));
        EVENTUALLY(gate_waiting() == 1);
        vm_call(p, lib, "ends_auto", "[]");
        vm_finish(p);
        vm_gc(p);
        gate_open();
        EVENTUALLY(all_undone());
        vm_free(p);
    }
    after_all();
}

/* A pending value in p, of a call to offloads_MODE. */
static vm_term pending(vm_proc *p, int mode)
{
    vm_call(p, lib, in_nth_mode("offloads", mode), ARGS);
    vm_finish(p);
    return vm_result(p);
}

TEST(again, "a pending value is awaited once")
{
    gate_open();
    for (int i = 0; i < MODES; i++) {
        vm_proc *p = vm_spawn();
        ErlNifEnv *env = vm_env(p);
        ErlNifEnv *kept = enif_alloc_env();
        vm_term copy = enif_make_copy(kept, pending(p, i));

        node_await_term(p, vm_result(p));
        vm_finish(p);
        CHECK_TEXT(outcome(p), ANSWER);
        node_await_term(p, enif_make_copy(env, copy));
        vm_finish(p);
        CHECK_TEXT(outcome(p), "error:{fairnif,awaited_before}");
        vm_free(p);
        enif_free_env(kept);
    }
    after_all();
}

/* The last root, of enough that they travel in a tuple. */
TEST(changed, "a pending value whose roots were changed is refused, and stays "
     "good itself")
{
    gate_open();
    for (int i = 0; i < MODES - 1; i++) {
        static const char *const others[] = {"none", "{}", "{1}", "{{1,2}}"};
        vm_proc *p = vm_spawn();
        ErlNifEnv *env = vm_env(p), *kept = enif_alloc_env();
        vm_term copy = enif_make_copy(kept, pending(p, i)), many[5000];
        const vm_term *elems;
        int arity;

        for (int k = 0; k < 5000; k++)
            many[k] = VM_NIL;
        for (int k = 0; k < 5; k++) {
            vm_term terms[64];

            enif_get_tuple(kept, copy, &arity, &elems);
            for (int j = 0; j < arity; j++)
                terms[j] = enif_make_copy(env, elems[j]);
            terms[arity - 1] = k < 4 ? vm_parse(env, others[k])
                : enif_make_tuple_from_array(env, many, 5000);
            node_await_term(p, enif_make_tuple_from_array(env, terms,
                                                          (unsigned)arity));
            vm_finish(p);
            CHECK_TEXT(outcome(p), "error:{fairnif,not_pending}");
        }
        node_await_term(p, enif_make_copy(env, copy));
        vm_finish(p);
        CHECK_TEXT(outcome(p), ANSWER);
        vm_free(p);
        enif_free_env(kept);
    }
    after_all();
}

TEST(elsewhere, "a pending value is awaited by its own process only, which "
     "then gets it")
{
    gate_open();
    for (int i = 0; i < MODES; i++) {
        vm_proc *p = vm_spawn(), *q = vm_spawn();

        node_await_term(q, enif_make_copy(vm_env(q), pending(p, i)));
        CHECK_TEXT(finished(q), "error:{fairnif,not_owner}");
        node_await_term(p, vm_result(p));
        CHECK_TEXT(finished(p), ANSWER);
    }
    after_all();
}

TEST(outlived, "a pending value that another process holds does not keep its "
     "task when the caller is gone")
{
    vm_proc *p = vm_spawn(), *q = vm_spawn();

    gate_open();
    node_await_term(q, enif_make_copy(vm_env(q), pending(p, 5)));
    vm_finish(q);
    vm_free(p);
    vm_free(q);
    after_all();
}

/* {fairnif_pending, Object, Terms...} with other terms than it came with. */
static const char *await_forged(int mode, int arity)
{
    vm_proc *p = vm_spawn();
    const vm_term *elems;
    vm_term forged[300];
    int had;

    pending(p, mode);
    enif_get_tuple(vm_env(p), vm_result(p), &had, &elems);
    for (int i = 0; i < arity; i++)
        forged[i] = i < had && i < 2 ? elems[i]
            : vm_parse(vm_env(p), "\"forged\"");
    node_await_term(p, enif_make_tuple_from_array(vm_env(p), forged,
                                                  (unsigned)arity));
    return finished(p);
}

TEST(forged, "a pending value with other terms does not break the node")
{
    static const int arities[] = {2, 3, 4, 5, 6, 8, 9, 20, 300};

    gate_open();
    for (int i = 0; i < MODES; i++)
        for (size_t k = 0; k < sizeof arities / sizeof *arities; k++) {
            const char *is = await_forged(i, arities[k]);

            check_that(strstr(is, "error:") == is || strstr(is, "forged")
                       || strstr(is, "102,111,114,103")
                       || !strcmp(is, ANSWER), __FILE__, __LINE__,
                       "%s with %d terms: %s", in_nth_mode("", i),
                       arities[k], is);
        }
    after_all();
}

/* -- upgrades ------------------------------------------------------------ */

TEST(upgraded, "calls wait on while their library is upgraded and purged, and "
     "end in the old code")
{
    for (int i = 0; i < MODES; i++) {
        vm_proc *p, *q;
        vm_lib *old;

        gate_shut();
        p = spawn_await(in_nth_mode("offloads", i), ARGS);
        q = spawn_await(in_nth_mode("offloads", i), ARGS);
        until_waiting(p);
        until_waiting(q);
        EVENTUALLY(gate_waiting() == 2);
        old = node_upgrade(nif_init);
        CHECK(!vm_unmapped(old));
        vm_free(q);
        CHECK(!vm_unmapped(old));
        gate_open();
        CHECK_TEXT(finished(p), ANSWER);
        EVENTUALLY(all_undone());
        EVENTUALLY(vm_unmapped(old));
        CHECK_AWAIT(in_nth_mode("offloads", i), ARGS, ANSWER);
    }
    after_all();
}

/* -- memory -------------------------------------------------------------- */

static vm_proc *spawn_with_1(const char *name)
{
    return spawn_await(name, "1");
}

TEST(memory, "a call that waits when memory or threads run out ends with what "
     "it should or with enomem")
{
    gate_open();
    for (int i = 0; i < MODES; i++) {
        check_without_memory(in_nth_mode("offloads", i), spawn_offloads,
                             LARGE_ANSWER);
        check_without_memory(in_nth_mode("sleeps", i), spawn_with_1, "1");
        check_without_memory(in_nth_mode("raises", i), spawn_with_1, "error:1");
    }
}
