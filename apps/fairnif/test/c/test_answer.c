/*
 * test_answer.c - what becomes of a body's requests to its caller when that dies
 * at any point, memory runs out, or a request is changed, forgotten or answered
 * twice.
 */
#define FAIR_DEBUG              /* arguments are looked after, too */
#include "asks.h"
#include "unwind.h"

/* -- bodies ---------------------------------------------------------------- */

/* talks(Term, Binary): a little of everything, with its own process */
static ERL_NIF_TERM talks(fair_task *t)
{
    unsigned list = fair_root_new(t, enif_make_list(fair_env(t), 0));
    fair_bytes arg, bin;
    ERL_NIF_TERM message;

    if (!postpone(t) || !fair_get_bytes(t, fair_arg(t, 1), &arg))
        return fair_badarg(t);
    for (int i = 0; i < 3; i++) {
        tell_self(t, fair_arg(t, 1));
        tell_self(t, fair_arg(t, 0));
        CHECK_NUMBERS(fair_receive(t, -1, &message), ==, 1);
        if (!fair_get_bytes(t, message, &bin))
            return fair_badarg(t);
        CHECK(bin.size == arg.size && !memcmp(bin.data, arg.data, arg.size));
        CHECK_NUMBERS(fair_receive_tagged(t, fair_arg(t, 0), -1, &message), ==,
                      1);
        fair_list_push(t, list, message);
        for (int k = 0; i == 1 && k < 14; k++)
            fair_root_new(t, message);
        fair_tick(t, 1);
    }
    CHECK(fair_apply(t, "erlang", "list_to_tuple",
                     enif_make_list1(fair_env(t), fair_root_get(t, list)),
                     &message) == 1);
    CHECK_NUMBERS(fair_receive(t, 0, &message), ==, -ETIMEDOUT);
    CHECK(bin.size == arg.size && !memcmp(bin.data, arg.data, arg.size));
    tell_self(t, atom(t, "bye"));
    return fair_root_get(t, list);
}

/* unwinds(Any): frees what it has itself, wherever it is left */
static ERL_NIF_TERM unwinds(fair_task *t)
{
    char *own = malloc(100);
    ERL_NIF_TERM message;

    __atomic_add_fetch(&rounds, 1, __ATOMIC_RELAXED);
    fair_root_new(t, atom(t, "root"));
    tell_self(t, atom(t, "hello"));
    fair_tick(t, 1);
    if (!fair_cancelled(t) && fair_receive(t, -1, &message) > 0)
        CHECK(is_atom(t, message, "hello"));
    if (fair_cancelled(t)) {
        tell_self(t, atom(t, "lost"));
        CHECK_NUMBERS(fair_receive(t, -1, &message), ==, -ECANCELED);
        CHECK_NUMBERS(fair_apply(t, "erlang", "self",
                                 enif_make_list(t->env, 0), &message), ==,
                      -ECANCELED);
    }
    tell_self(t, atom(t, "bye"));
    free(own);
    note("cleaned");
    return atom(t, "ok");
}

static ErlNifFunc nifs[] = {
    AWAITED_MODES("serves", 2, serves),
    AWAITED_MODES("waits", 1, waits),
    AWAITED_MODES("talks", 2, talks),
    UNWINDING("unwinds", unwinds, FAIR_MAY_WAIT),
};

FAIR_NIF_INIT(test_answer, nifs, NULL, NULL, NULL)

static vm_proc *spawn_talks(const char *name, size_t size)
{
    vm_proc *p = vm_spawn();
    unsigned char bytes[300] = {0};
    vm_term args[2];

    bytes[size - 1] = 77;
    args[0] = vm_parse(vm_env(p), "{a,[1]}");
    args[1] = vm_binary(vm_env(p), bytes, size);
    node_await(p, name, 2, args);
    return p;
}
#define TALKED "[{a,[1]},{a,[1]},{a,[1]}]"

TEST(talking, "a body receives, sends and calls in turn, with binaries of all sizes")
{
    for (int ticks = 0; ticks < 2; ticks++) {
        node_set("pause_every_tick", (uint64_t)ticks);
        for (int i = 0; i < 2 * MODES; i++)
            CHECK_TEXT(finished(spawn_talks(in_nth_mode("talks", i / 2),
                                            i % 2 ? 200 : 20)), TALKED);
    }
    after_all();
}

#ifndef VM_REAL
/* -- the caller dies ------------------------------------------------------- */

/* n slices, each when it can come. */
static bool steps(vm_proc *p, int n)
{
    for (int i = 0; i < n; i++) {
        enum vm_state state = vm_state(p);

        if (state != VM_READY && state != VM_WAITING)
            return false;
        for (int k = 0; k < 20 && vm_step(p) == VM_WAITING
             && state == VM_WAITING; k++)
            usleep(50);
    }
    return true;
}

static void kill_each(const char *name, vm_proc *(*start)(const char *),
                      int threaded)
{
    bool alive = true;

    for (int n = 0; alive && n < 200 && !check_failures(); n++) {
        vm_proc *p = start(name);

        alive = steps(p, n);
        if (threaded && n % 3 == 0)
            usleep(200);
        vm_kill(p);
        vm_free(p);
        EVENTUALLY(all_undone());
        EVENTUALLY(node_stacks() == 0);
        ALL_OVER();
        check_that(!check_failures(), __FILE__, __LINE__, "%s, killed after %d "
                   "slices", name, n);
    }
    CHECK(!alive);
}

static vm_proc *start_talks(const char *name)
{
    return spawn_talks(name, 200);
}

TEST(killed, "a caller that dies at any point of asking leaves nothing")
{
    for (int kind = 1; kind <= 3; kind++) {
        VM_WORSE(dead_heaps_on, kind);
        node_set("pause_every_tick", kind == 2);
        for (int i = 0; i < MODES; i++)
            kill_each(in_nth_mode("talks", i), start_talks, i == 6);
    }
}

static vm_proc *start_unwinds(const char *name)
{
    return spawn_await(name, "[]");
}

TEST(unwound, "a body that cleans up does so once wherever its caller dies, also "
     "after it has returned, when what it sent last is not yet sent")
{
    for (int kind = 1; kind <= 3; kind++) {
        VM_WORSE(dead_heaps_on, kind);
        node_set("pause_every_tick", kind == 2);
        for (int i = 0; i < UNWINDING_MODES; i++) {
            long before = rounds;
            size_t cleaned = 0;

            clear_notes();
            kill_each(named("unwinds", i), start_unwinds, i == THREADED);
            for (const char *at = notes(); (at = strstr(at, "cleaned")); at++)
                cleaned++;
            CHECK_NUMBERS(cleaned, ==, rounds - before);
        }
    }
}

TEST(killed_waiting, "a caller that dies while its body waits for a message leaves "
     "nothing, however much the body had received")
{
    for (int i = 0; i < MODES; i++) {
        for (int n = 0; n < 3; n++) {
            vm_proc *p = listener(in_nth_mode("serves", i), "{a}, 15");

            for (int k = 0; k < n; k++)
                say_bytes(known, 200, k);
            vm_run(p, 2);
            vm_free(p);
            EVENTUALLY(all_undone());
            ALL_OVER();
        }
    }
    after_all();
}

/* -- memory ---------------------------------------------------------------- */

TEST(memory, "a body that receives and sends when memory or threads run out ends "
     "with what it should or with enomem")
{
    for (int i = 0; i < MODES; i++)
        check_without_memory(in_nth_mode("talks", i), start_talks, TALKED);
    for (int i = 0; i < UNWINDING_MODES; i++)
        check_without_memory(named("unwinds", i), start_unwinds, "ok");
    after_all();
}

/* -- the value that asks --------------------------------------------------- */

static const char *call_runtime(vm_proc *p, const char *name, int argc,
                                const vm_term argv[])
{
    node_call(p, name, argc, argv);
    vm_finish(p);
    return outcome(p);
}

static bool has_one_that_asks(void)
{
    char text[1024];

    return strstr(node_tasks(text, sizeof text), "caller") != NULL;
}

/* A threaded call's value is pending until then. */
static bool until_asks(vm_proc *p)
{
    ErlNifEnv *kept = enif_alloc_env();
    vm_term pending = enif_make_copy(kept, vm_result(p)), argv[2];

    if (begins(p, "{fairnif_pending,")) {
        EVENTUALLY(has_one_that_asks());
        argv[0] = enif_make_copy(vm_env(p), pending);
        argv[1] = enif_make_ref(vm_env(p));
        call_runtime(p, "nif_await", 2, argv);
    }
    enif_free_env(kept);
    return begins(p, "{fairnif_asks,");
}

static vm_proc *that_asks(const char *name, const char *args)
{
    vm_proc *p = spawn_call(name, args);

    vm_finish(p);
    CHECK(until_asks(p));
    return p;
}

/* nif_answer(Asks, 1, Answer) */
static const char *answer(vm_proc *p, vm_term asks, const char *text)
{
    vm_term argv[3];

    argv[0] = enif_make_copy(vm_env(p), asks);
    argv[1] = enif_make_int(vm_env(p), 1);
    argv[2] = vm_parse(vm_env(p), text);
    return call_runtime(p, "nif_answer", 3, argv);
}

static const char *asked(vm_proc *p, vm_term asks)
{
    vm_term argv[2];

    argv[0] = enif_make_copy(vm_env(p), asks);
    argv[1] = enif_make_atom(vm_env(p), "caller");
    return call_runtime(p, "nif_asked", 2, argv);
}

#define BEFORE "error:{fairnif,awaited_before}"
#define NOT_PENDING "error:{fairnif,not_pending}"
#define NOT_OWNER "error:{fairnif,not_owner}"

TEST(stale, "a request is answered once, and then the next one is")
{
    for (int i = 0; i < MODES; i++) {
        ErlNifEnv *kept = enif_alloc_env();
        vm_proc *p = that_asks(in_nth_mode("serves", i), "{a}, 3");
        vm_term first, second;

        first = enif_make_copy(kept, vm_result(p));
        CHECK_TEXT(asked(p, first), "-1");
        answer(p, first, "{one}");
        vm_gc(p);
        CHECK(until_asks(p));
        second = enif_make_copy(kept, vm_result(p));
        CHECK_TEXT(answer(p, first, "{lost}"), BEFORE);
        CHECK_TEXT(asked(p, first), BEFORE);
        CHECK_TEXT(asked(p, second), "-1");
        node_await_term(p, enif_make_copy(vm_env(p), second));
        say(pid_of(p), "stop");
        vm_finish(p);
        CHECK_TEXT(outcome(p), "{{a},[{one}],0}");
        CHECK_TEXT(answer(p, second, "{lost}"), BEFORE);
        vm_free(p);
        enif_free_env(kept);
    }
    after_all();
}

/* With `count` of its elements, the last one replaced. */
static vm_term changed(vm_proc *p, vm_term asks, int count, const char *last)
{
    const vm_term *elems;
    vm_term terms[64];
    int arity;

    enif_get_tuple(vm_env(p), asks, &arity, &elems);
    for (int i = 0; i < arity + count; i++)
        terms[i] = i < arity ? enif_make_copy(vm_env(p), elems[i]) : VM_NIL;
    if (last)
        terms[arity + count - 1] = vm_parse(vm_env(p), last);
    return enif_make_tuple_from_array(vm_env(p), terms,
                                      (unsigned)(arity + count));
}

TEST(forged, "a request that was changed is refused, and stays good itself")
{
    for (int i = 0; i < MODES; i++) {
        static const char *const others[] = {"none", "{}", "{1}"};
        ErlNifEnv *kept = enif_alloc_env();
        vm_proc *p = that_asks(in_nth_mode("serves", i), "{a}, 30");
        vm_proc *q = vm_spawn();
        vm_term asks;

        asks = enif_make_copy(kept, vm_result(p));
        CHECK_TEXT(answer(q, asks, "x"), NOT_OWNER);
        CHECK_TEXT(asked(q, asks), NOT_OWNER);
        for (int k = 0; k < 3 && i < MODES - 1; k++)
            CHECK_TEXT(answer(p, changed(p, asks, 0, others[k]), "x"),
                       NOT_PENDING);
        CHECK_TEXT(answer(p, changed(p, asks, 1, NULL), "x"), NOT_PENDING);
        CHECK_TEXT(answer(p, changed(p, asks, -1, NULL), "x"), NOT_PENDING);
        CHECK_TEXT(answer(p, vm_parse(vm_env(p), "{fairnif_asks,#Ref,1}"),
                          "x"), NOT_PENDING);
        CHECK_TEXT(answer(p, vm_parse(vm_env(p), "{fairnif_asks}"), "x"),
                   NOT_PENDING);
        node_await_term(p, enif_make_copy(vm_env(p), asks));
        say(pid_of(p), "{x}");
        say(pid_of(p), "stop");
        CHECK_TEXT(finished(p), "{{a},[{x}],0}");
        vm_free(q);
        enif_free_env(kept);
    }
    after_all();
}

TEST(abandoned, "a request that is not answered goes with its task when it is "
     "garbage")
{
    for (int i = 0; i < MODES; i++) {
        vm_proc *p = that_asks(in_nth_mode("serves", i), "{a}, 30");

        vm_call(p, lib, "waits_auto", "0");
        vm_finish(p);
        vm_call(p, lib, "waits_auto", "none");
        vm_finish(p);
        vm_gc(p);
        EVENTUALLY(node_stacks() == 0);
        vm_free(p);
    }
    after_all();
}

/* -- upgrades -------------------------------------------------------------- */

TEST(upgraded, "bodies wait for messages while their library is upgraded and "
     "purged, which is unmapped after the last")
{
    for (int i = 0; i < MODES; i++) {
        vm_proc *p = listener(in_nth_mode("serves", i), "{a}, 3");
        ErlNifPid pid = known;
        vm_proc *q = listener(in_nth_mode("serves", i), "{b}, 12");
        vm_lib *old;

        say(pid, "{x}");
        vm_run(p, 2);
        old = node_upgrade(nif_init);
        CHECK(!vm_unmapped(old));
        vm_free(q);
        CHECK(!vm_unmapped(old));
        say(pid, "{y}");
        vm_run(p, 2);
        CHECK(!vm_unmapped(old));
        say(pid, "stop");
        CHECK_TEXT(finished(p), "{{a},[{x},{y}],0}");
        EVENTUALLY(all_undone());
        EVENTUALLY(vm_unmapped(old));
    }
    after_all();
}
#endif
