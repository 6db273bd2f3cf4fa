/*
 * test_call.c - calls that end in their first slice: arguments, results,
 * errors, limits.
 */
#include "check.h"

static ERL_NIF_TERM nothing(fair_task *t)
{
    return enif_make_atom(fair_env(t), "ok");
}

static ERL_NIF_TERM add(fair_task *t)
{
    int a, b;

    if (!fair_get_int(t, fair_arg(t, 0), &a)
        || !fair_get_int(t, fair_arg(t, 1), &b))
        return fair_badarg(t);
    return enif_make_int(fair_env(t), a + b);
}

/* What every getter says of one argument. */
static ERL_NIF_TERM getters(fair_task *t)
{
    char got[16] = "", atom[8];
    int i;
    unsigned u;
    long l;
    unsigned long ul;
    ErlNifSInt64 i64;
    ErlNifUInt64 u64;
    double d;
    ErlNifPid pid;
    fair_bytes bin;
    char *chars;
    size_t length;

#define TRY(LETTER, CALL) strcat(got, (CALL) ? LETTER : "-")
    TRY("i", fair_get_int(t, fair_arg(t, 0), &i));
    TRY("u", fair_get_uint(t, fair_arg(t, 0), &u));
    TRY("l", fair_get_long(t, fair_arg(t, 0), &l));
    TRY("U", fair_get_ulong(t, fair_arg(t, 0), &ul));
    TRY("6", fair_get_int64(t, fair_arg(t, 0), &i64));
    TRY("9", fair_get_uint64(t, fair_arg(t, 0), &u64));
    TRY("d", fair_get_double(t, fair_arg(t, 0), &d));
    TRY("p", enif_get_local_pid(fair_env(t), fair_arg(t, 0), &pid));
    TRY("a", fair_get_atom(t, fair_arg(t, 0), atom, sizeof atom, FAIR_UTF8));
    TRY("b", fair_get_bytes(t, fair_arg(t, 0), &bin));
    TRY("o", fair_get_iolist(t, fair_arg(t, 0), &bin));
    TRY("s", fair_get_string(t, fair_arg(t, 0), &chars, &length, FAIR_LATIN1));
    TRY("n", fair_get_list_length(t, fair_arg(t, 0), &length));
    return enif_make_string(fair_env(t), got, ERL_NIF_LATIN1);
}

static ERL_NIF_TERM itself(fair_task *t)
{
    return enif_make_tuple2(fair_env(t), fair_arg(t, 0), fair_arg(t, 1));
}

static ERL_NIF_TERM raises(fair_task *t)
{
    return fair_raise(t, enif_make_tuple2(fair_env(t),
                                          enif_make_atom(fair_env(t), "bad"),
                                          fair_arg(t, 0)));
}

static ERL_NIF_TERM count_args(fair_task *t)
{
    int x;

    CHECK(!fair_get_int(t, fair_arg(t, fair_argc(t)), &x));
    return enif_make_uint(fair_env(t), fair_argc(t));
}

static ERL_NIF_TERM tick_forever(fair_task *t)
{
    fair_tick(t, 1);
    return enif_make_atom(fair_env(t), "ok");
}

static const fair_options two_at_once = {.body = tick_forever,
                                         .max_tasks = 2};

static ERL_NIF_TERM plain(ErlNifEnv *env, int argc, const ERL_NIF_TERM argv[])
{
    (void)argc;
    return enif_make_list1(env, argv[0]);
}

static ErlNifFunc nifs[] = {
    ALL_MODES("nothing", 0, nothing),
    ALL_MODES("add", 2, add),
    FAIR_NIF("getters", 1, getters, FAIR_AUTO),
    ALL_MODES("itself", 1, itself),
    ALL_MODES("raises", 1, raises),
    FAIR_NIF("count_args", 0, count_args, FAIR_AUTO),
    FAIR_NIF("count_args", 4, count_args, FAIR_DIRTY_CPU),
    FAIR_NIF_OPTIONS("limited", 0, &two_at_once, FAIR_NORMAL),
    ALL_MODES("tick_forever", 0, tick_forever),
    {"plain", 1, plain, 0},
    {"plain_dirty", 1, plain, ERL_NIF_DIRTY_JOB_CPU_BOUND},
};
FAIR_NIF_INIT(test_call, nifs, NULL, NULL, NULL)

TASKS_TEST(in_one_slice, "a call that ends in its first slice allocates "
     "nothing")
{
    vm_thread *th = vm_nth_thread(VM_NORMAL, 0);
    static const char *const names[] = {"nothing_normal", "nothing_yielding",
                                        "nothing_auto"};

    vm_options.virtual_time = true;
    for (int i = 0; i < 3; i++) {
        for (int round = 0; round < 4; round++) {
            vm_proc *p = spawn_call(names[i], "");
            struct vm_counts before = vm_counts(), after;

            vm_post(th, (void (*)(void *))(void *)vm_slice, p);
            vm_wait(th);
            after = vm_counts();
            CHECK_TEXT(outcome(p), "ok");
            CHECK_TEXT(vm_kinds(p), "n");
            vm_free(p);
            if (round == 0)     /* the thread's first: its counters, a stack */
                continue;
            CHECK_NUMBERS(after.total_allocs, ==, before.total_allocs);
            CHECK_NUMBERS(after.envs, ==, before.envs);
            CHECK_NUMBERS(after.resources, ==, before.resources);
        }
    }
}

TEST(every_mode, "every mode gives the same result, on the right threads")
{
    vm_options.virtual_time = true;
    for (int i = 0; i < 6; i++) {
        vm_proc *p = spawn_call(in_mode("add", &modes[i]), "40, 2");

        CHECK_TEXT((vm_finish(p), outcome(p)), "42");
        CHECK_NUMBERS(vm_kinds(p)[vm_slices(p) - 1], ==, modes[i].first);
        CHECK_NUMBERS(vm_slices(p), ==, modes[i].queued ? 2 : 1);
        vm_free(p);
        CHECK_CALL(in_mode("add", &modes[i]), "40, a", "error:badarg");
        CHECK_CALL(in_mode("raises", &modes[i]), "[<<1>>]",
                   "error:{bad,[<<1>>]}");
        CHECK_CALL(in_mode("itself", &modes[i]), "#{k=>[1.5|{}]}",
                   "{#{k=>[1.5|{}]},badarg}");
    }
}

TEST(any_term, "getters take what fits and refuse any other term")
{
    static const struct { const char *term, *got; } terms[] = {
        {"0", "iulU69-------"},
        {"-1", "i-l-6--------"},
        {"2147483647", "iulU69-------"},
        {"2147483648", "-ulU69-------"},
        {"-2147483649", "--l-6--------"},
        {"4294967296", "--lU69-------"},
        {"9223372036854775807", "--lU69-------"},
        {"9223372036854775808", "---U-9-------"},
        {"-9223372036854775808", "--l-6--------"},
        {"18446744073709551615", "---U-9-------"},
        {"18446744073709551616", "-------------"},
        {"-100000000000000000000", "-------------"},
        {"1.5", "------d------"},
        {"atom", "--------a----"},
        {"longatom", "-------------"},      /* 9 bytes with its zero */
        {"<<>>", "---------bo--"},
        {"<<1,2,3>>", "---------bo--"},
        {"<<1,2,3/5>>", "---------bo--"},
        {"<<1,2,3:5>>", "-------------"},
        {"\"abc\"", "----------osn"},
        {"[]", "----------osn"},
        {"[1|<<2>>]", "----------o--"},
        {"[1,[2,<<3>>]]", "----------o-n"},
        {"[1|2]", "-------------"},
        {"[256]", "------------n"},
        {"[-1]", "------------n"},
        {"[a]", "------------n"},
        {"[[1|2]]", "------------n"},
        {"[[[[]]]]", "----------o-n"},
        {"{}", "-------------"},
        {"{1,2}", "-------------"},
        {"#{}", "-------------"},
        {"#{a=>1}", "-------------"},
        {"#Fun", "-------------"},
        {"#Ref", "-------------"},
    };
    char should[128], *p;

    for (unsigned pause = 0; pause < 2; pause++) {
        node_set("pause_every_tick", pause);
        for (unsigned i = 0; i < sizeof terms / sizeof *terms; i++) {
            p = should;
            for (const char *c = terms[i].got; *c; c++)
                p += sprintf(p, "%c%d", p == should ? '[' : ',', *c);
            strcpy(p, "]");
            CHECK_CALL("getters", terms[i].term, should);
        }
    }
}

TEST(pids, "a pid comes through")
{
    vm_proc *p = vm_spawn();
    ErlNifPid self;
    vm_term pid;

    enif_self(vm_env(p), &self);
    pid = self.pid;
    vm_call_array(p, lib, "getters", 1, &pid);
    vm_finish(p);
    CHECK(strstr(outcome(p), "112") != NULL);       /* 'p' */
    vm_free(p);
}

TEST(arities, "functions of one name differ by arity")
{
    CHECK_CALL("count_args", "", "0");
    CHECK_CALL("count_args", "a, b, c, d", "4");
}

TEST(plain_nifs, "plain NIFs stand beside fair ones")
{
    CHECK_CALL("plain", "x", "[x]");
    CHECK_CALL("plain_dirty", "x", "[x]");
}

TEST(own_limit, "a call over its function's limit is refused")
{
    vm_proc *a, *b;

    node_set("pause_every_tick", 1);
    a = spawn_call("limited", "");
    b = spawn_call("limited", "");
    CHECK(vm_step(a) == VM_READY);
    CHECK(vm_step(b) == VM_READY);
    CHECK_CALL("limited", "", "error:overloaded");
    CHECK_TEXT(finished(a), "ok");
    CHECK_CALL("limited", "", "ok");
    vm_kill(b);
    vm_free(b);
    a = spawn_call("limited", "");
    CHECK(vm_step(a) == VM_READY);
    CHECK_CALL("limited", "", "ok");
    CHECK_TEXT(finished(a), "ok");
    CHECK_NUMBERS(node_counter("limited", "overloaded"), ==, 1);
    CHECK_NUMBERS(node_counter("limited", "calls"), ==, 5);
    CHECK_NUMBERS(node_counter("limited", "cancels"), ==, 1);
}

TEST(overall_limit, "a call over the overall limit is refused, in every mode")
{
    vm_proc *running[6];

    node_set("pause_every_tick", 1);
    node_set("max_tasks", 4);
    for (int i = 0; i < 4; i++) {
        running[i] = spawn_call("tick_forever_yielding", "");
        CHECK(vm_step(running[i]) == VM_READY);
    }
    for (int i = 0; i < 6; i++)
        CHECK_CALL(in_mode("nothing", &modes[i]), "", "error:overloaded");
    node_set("max_tasks", 0);   /* while some are counted */
    CHECK_CALL("nothing_auto", "", "ok");
    node_set("max_tasks", 4);
    vm_kill(running[0]);
    vm_free(running[0]);
    for (int i = 0; i < 6; i++)
        CHECK_CALL(in_mode("nothing", &modes[i]), "", "ok");
    for (int i = 1; i < 4; i++)
        CHECK_TEXT(finished(running[i]), "ok");
}

TEST(refused_first, "limits hold while calls wait for a dirty scheduler")
{
    vm_proc *queued[2];

    node_set("max_tasks", 2);
    for (int i = 0; i < 2; i++) {
        queued[i] = spawn_call("nothing_dirty_cpu", "");
        CHECK(vm_step(queued[i]) == VM_READY);
    }
    CHECK_CALL("nothing_dirty_cpu", "", "error:overloaded");
    CHECK_TEXT(finished(queued[0]), "ok");
    vm_kill(queued[1]);
    vm_free(queued[1]);
    CHECK_CALL("nothing_dirty_cpu", "", "ok");
}
