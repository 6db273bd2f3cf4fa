/*
 * test_pause.c - what survives a pause: C variables, arguments, roots,
 * resource objects; while the heap moves and the thread changes each time.
 */
#include <stdlib.h>

#define NEEDS_TASKS
#include "check.h"

static ErlNifResourceType *counted_type;
static long counted_alive;

static void counted_dtor(ErlNifEnv *env, void *obj)
{
    (void)env, (void)obj;
    __atomic_sub_fetch(&counted_alive, 1, __ATOMIC_RELAXED);
}

static int load(ErlNifEnv *env, void **priv, ERL_NIF_TERM info)
{
    char text[32] = "";

    *priv = &counted_alive;
    counted_type = enif_open_resource_type(env, NULL, "counted", counted_dtor,
                                           ERL_NIF_RT_CREATE, NULL);
    enif_get_atom(env, info, text, sizeof text, ERL_NIF_LATIN1);
    CHECK_TEXT(text, "undefined");
    return counted_type ? 0 : 1;
}

/* count(N): N ticks -> {Yields, Sum} */
static ERL_NIF_TERM count(fair_task *t)
{
    unsigned n, sum = 0;

    if (!fair_get_uint(t, fair_arg(t, 0), &n))
        return fair_badarg(t);
    for (unsigned i = 1; i <= n; i++) {
        sum += i;
        fair_tick(t, 1);
    }
    return enif_make_tuple2(fair_env(t), enif_make_uint64(fair_env(t),
                                                          fair_yields(t)),
                            enif_make_uint(fair_env(t), sum));
}

/* again(Any, ...): its arguments, read again after many pauses */
static ERL_NIF_TERM again(fair_task *t)
{
    ERL_NIF_TERM array[8];
    ERL_NIF_TERM before = fair_arg(t, 0);
    bool moved = false;

    for (int i = 0; i < 7; i++) {
        fair_tick(t, 1);
        CHECK_NUMBERS(fair_argc(t), <=, 8);
        moved |= before != fair_arg(t, 0);
    }
    /* The test means something only if terms do move; the real VM collects
     * when it wants to. */
#ifndef VM_REAL
    if (fair_yields(t) > 0 && (before & 3) != 3)
        CHECK(moved);
#else
    (void)moved;
#endif
    for (unsigned i = 0; i < fair_argc(t); i++)
        array[i] = fair_arg(t, i);
    return enif_make_tuple_from_array(fair_env(t), array, fair_argc(t));
}

enum { SOME = 8, MANY = 100 };  /* roots: inline, and allocated */

/* roots(X): what fair_root_set kept, over pauses */
static ERL_NIF_TERM roots(fair_task *t)
{
    unsigned root[SOME];
    ERL_NIF_TERM list;

    for (unsigned i = 0; i < SOME; i++) {
        root[i] = fair_root_new(t, enif_make_list(fair_env(t), 0));
        CHECK_NUMBERS(root[i], ==, i + 1);
    }
    CHECK(enif_is_empty_list(fair_env(t), fair_root_get(t, root[3])));
    fair_tick(t, 1);
    for (unsigned i = 0; i < SOME; i += 2) {
        fair_root_set(t, root[i], enif_make_tuple2(fair_env(t), fair_arg(t, 0),
                                               enif_make_uint(fair_env(t),
                                                              i)));
        fair_tick(t, 1);
    }
    for (unsigned i = SOME - 1; i > 0; i -= 2) {
        fair_root_set(t, root[i], fair_root_get(t, root[i - 1]));
        fair_tick(t, 1);
        fair_root_set(t, root[i - 1], enif_make_uint(fair_env(t), i));
        fair_tick(t, 1);
        if (i == 1)
            break;
    }
    list = enif_make_list(fair_env(t), 0);
    for (unsigned i = SOME; i-- > 0; )
        list = enif_make_list_cell(fair_env(t), fair_root_get(t, root[i]), list);
    return list;
}

static bool is_boxed(fair_task *t, unsigned root, unsigned n)
{
    const ERL_NIF_TERM *elems;
    unsigned is;
    int arity;

    return enif_get_tuple(fair_env(t), fair_root_get(t, root), &arity, &elems)
        && enif_get_uint(fair_env(t), elems[0], &is) && is == n;
}

/* many(Most): roots come, change and go between pauses */
static ERL_NIF_TERM many(fair_task *t)
{
    enum { MOST = 2000, ROUNDS = 40 };
    unsigned is[MOST], n = 0, most, good = 0;

    if (!fair_get_uint(t, fair_arg(t, 0), &most) || most > MOST)
        return fair_badarg(t);
    for (unsigned round = 0; round < ROUNDS; round++) {
        unsigned wanted = most - round * 731 % most;

        if (n > wanted)
            fair_root_drop(t, wanted + 1);
        n = n > wanted ? wanted : n;
        for (; n < wanted; n++)
            fair_root_new(t, enif_make_tuple1(
                fair_env(t), enif_make_uint(fair_env(t), is[n] = n)));
        for (unsigned i = round; i < n; i += 1 + round * 97) {
            is[i] = round;
            fair_root_set(t, i + 1, enif_make_tuple1(
                fair_env(t), enif_make_uint(fair_env(t), round)));
        }
        fair_tick(t, 1);
        while (good < n && is_boxed(t, good + 1, is[good]))
            good++;
        CHECK_NUMBERS(good, ==, n);
        good = 0;
    }
    return enif_make_atom(fair_env(t), "ok");
}

/* depth(N): a helper with a root that calls itself; each sees its own, and lets
 * go of it and of one that it forgot */
static unsigned long nested(fair_task *t, unsigned n)
{
    unsigned root = fair_root_new(t, enif_make_tuple1(fair_env(t),
                                                  enif_make_uint(fair_env(t),
                                                                 n)));
    const ERL_NIF_TERM *elems;
    unsigned long sum;
    unsigned own = 0;
    int arity;

    fair_root_new(t, fair_arg(t, 0));
    fair_tick(t, 1);
    sum = n > 0 ? nested(t, n - 1) : 0;
    fair_tick(t, 1);
    CHECK(enif_get_tuple(fair_env(t), fair_root_get(t, root), &arity, &elems)
          && enif_get_uint(fair_env(t), elems[0], &own) && own == n);
    fair_root_drop(t, root);
    return sum + own;
}

static ERL_NIF_TERM helpers(fair_task *t)
{
    unsigned n;
    unsigned long sum;

    if (!fair_get_uint(t, fair_arg(t, 0), &n))
        return fair_badarg(t);
    sum = nested(t, n);
    CHECK_NUMBERS(fair_root_new(t, fair_arg(t, 0)), ==, 1);
    return enif_make_ulong(fair_env(t), sum);
}

static ERL_NIF_TERM new_counted(ErlNifEnv *env, int argc,
                                const ERL_NIF_TERM argv[])
{
    long *obj = enif_alloc_resource(counted_type, sizeof *obj);
    ERL_NIF_TERM term;

    (void)argc, (void)argv;
    *obj = 4711;
    __atomic_add_fetch(&counted_alive, 1, __ATOMIC_RELAXED);
    term = enif_make_resource(env, obj);
    enif_release_resource(obj);
    return term;
}

/* resource(Ref | Other): the object, over pauses */
static ERL_NIF_TERM resource(fair_task *t)
{
    void *obj, *same;

    fair_tick(t, 1);
    if (!fair_get_resource(t, fair_arg(t, 0), counted_type, &obj))
        return fair_badarg(t);
    fair_tick(t, 1);
    CHECK(fair_get_resource(t, fair_arg(t, 0), counted_type, &same)
          && same == obj);
    for (int i = 0; i < 5; i++) {
        CHECK_NUMBERS(*(long *)obj, ==, 4711);
        fair_tick(t, 1);
    }
    return enif_make_long(fair_env(t), *(long *)obj);
}

static void forget_resource(void *obj)
{
    note("%ld ", *(long *)obj);
}

/* Holds the object, and looks at it in a deferred function. */
static ERL_NIF_TERM last_holder(fair_task *t)
{
    void *obj;

    if (!fair_get_resource(t, fair_arg(t, 0), counted_type, &obj))
        return fair_badarg(t);
    fair_defer(t, forget_resource, obj);
    for (;;)
        fair_tick(t, 1);
}

/* Heap blocks over pauses: grown, freed in another order, left to the end. */
static ERL_NIF_TERM memory(fair_task *t)
{
    unsigned char *a = fair_alloc(t, 10), *b = fair_alloc(t, 0), *c = NULL;

    if (!a || !b)
        return fair_enomem(t);
    CHECK(((uintptr_t)a & 15) == 0 && ((uintptr_t)b & 15) == 0);
    for (size_t size = 10; size < 3000; size *= 3) {
        memset(a, (int)size & 255, size);
        fair_tick(t, 1);
        a = fair_realloc(t, a, 3 * size);
        if (!a)
            return fair_enomem(t);
        for (size_t i = 0; i < size; i++)
            CHECK_NUMBERS(a[i], ==, size & 255);
        CHECK(((uintptr_t)a & 15) == 0);
        fair_tick(t, 1);
        c = fair_realloc(t, c, size);
        if (!c)
            return fair_enomem(t);
    }
    fair_free(t, b);
    fair_tick(t, 1);
    fair_free(t, a);
    fair_free(t, NULL);
    CHECK(fair_alloc(t, SIZE_MAX - 8) == NULL);
    CHECK(fair_realloc(t, c, SIZE_MAX - 8) == NULL);
    c[0] = 1;
    return enif_make_atom(fair_env(t), "ok");
}

/* wide(A1, ..., A240): the sum, with more roots than are arguments of their
 * own */
static ERL_NIF_TERM wide(fair_task *t)
{
    long sum = 0, root;

    for (unsigned i = 0; i < MANY; i++)
        fair_root_new(t, fair_arg(t, i));
    for (unsigned i = 0; i < fair_argc(t); i++) {
        const ERL_NIF_TERM *elems;
        int arity;
        size_t length;

        fair_tick(t, 1);
        CHECK(enif_get_tuple(fair_env(t), fair_arg(t, i), &arity, &elems));
        CHECK(enif_get_long(fair_env(t), elems[0], &root) && root == i);
        sum += root;
        CHECK(!fair_get_list_length(t, fair_arg(t, i), &length));
    }
    for (unsigned i = 0; i < MANY; i++)
        CHECK(enif_is_identical(fair_root_get(t, i + 1), fair_arg(t, i)));
    return enif_make_long(fair_env(t), sum);
}

static ErlNifFunc nifs[] = {
    ALL_MODES("count", 1, count),
    ALL_MODES("again", 1, again),
    ALL_MODES("again", 8, again),
    ALL_MODES("roots", 1, roots),
    ALL_MODES("many", 1, many),
    ALL_MODES("helpers", 1, helpers),
    ALL_MODES("resource", 1, resource),
    ALL_MODES("memory", 0, memory),
    ALL_MODES("wide", 240, wide),
    FAIR_NIF("count_io", 1, count, FAIR_DIRTY_IO),
    FAIR_NIF("last_holder", 1, last_holder, FAIR_NORMAL),
    {"new_counted", 0, new_counted, 0},
};
FAIR_NIF_INIT(test_pause, nifs, load, NULL, NULL)

static const char eight[] = "<<1,2,3>>, [1,2|x], {a,{b,<<4/3>>}}, 1.5, "
    "#{k=>[v]}, 123456789012345678901234567890, \"text\", #{}";

TEST(yields, "a body pauses at every tick when set to, and says how often")
{
    const struct mode io = {"io", modes[4].yields, 'i', true};

    vm_options.virtual_time = true;
    for (unsigned pause = 0; pause < 2; pause++) {
        node_set("pause_every_tick", pause);
        for (int i = 0; i < 7; i++) {
            const struct mode *m = i < 6 ? &modes[i] : &io;
            vm_proc *p = spawn_call(in_mode("count", m), "100");
            bool yields = m->yields && pause;

            vm_finish(p);
            CHECK_TEXT(outcome(p), yields ? "{100,5050}" : "{0,5050}");
            CHECK_NUMBERS(vm_slices(p), ==,
                          1 + m->queued + (yields ? 100 : 0));
            CHECK_NUMBERS(vm_kinds(p)[m->queued], ==, m->first);
            vm_free(p);
        }
    }
}

TEST(roots_nest, "roots nest: each helper releases its own")
{
    CHECK_EVERYWHERE("helpers", "60", "1830");
}

TEST(many_roots, "of many roots a pause rebuilds what changed")
{
    for (int most = 10; most <= 20; most++) {
        char text[8];

        snprintf(text, sizeof text, "%d", most);
        CHECK_EVERYWHERE("many", text, "ok");
    }
    CHECK_EVERYWHERE("many", "256", "ok");
#ifndef VM_REAL
    vm_reset_maxima();
#endif
    CHECK_EVERYWHERE("many", "2000", "ok");
#ifndef VM_REAL
    CHECK_NUMBERS(vm_counts().max_work, <=, 300);
#endif
}

TEST(same_answers, "with a pause at every tick the answers stay the same")
{
    CHECK_EVERYWHERE("again", "{x,[<<1,2,3>>|y]}", "{{x,[<<1,2,3>>|y]}}");
    CHECK_EVERYWHERE("again", eight,
                     "{<<1,2,3>>,[1,2|x],{a,{b,<<4>>}},1.5,#{k=>[v]},"
                     "123456789012345678901234567890,[116,101,120,116],"
                     "#{}}");
    CHECK_EVERYWHERE("roots", "<<7>>",
                     "[1,{<<7>>,0},3,{<<7>>,2},5,{<<7>>,4},7,{<<7>>,6}]");
    CHECK_EVERYWHERE("memory", "", "ok");
}

TEST(threads, "each slice runs on another thread, and takes its place there")
{
    vm_proc *p = spawn_call("count_yielding", "4");
    char buf[512];

    vm_options.virtual_time = true;
    node_set("pause_every_tick", 1);
    vm_step(p);
    vm_step(p);
    node_tasks(buf, sizeof buf);
    CHECK(strstr(buf, "function=>{test_pause,count_yielding,1}") != NULL);
    CHECK(strstr(buf, "state=>suspended") != NULL);
    CHECK(strstr(buf, "yields=>2") != NULL);
    CHECK_TEXT((vm_finish(p), vm_kinds(p)), "nnnnn");
    vm_free(p);
    CHECK_TEXT(node_tasks(buf, sizeof buf), "[]");
}

/* A process that calls name(Ref) with a new object. */
static vm_proc *with_resource(const char *name)
{
    vm_proc *p = spawn_call("new_counted", "");
    vm_term ref;

    vm_finish(p);
    ref = vm_result(p);
    vm_call_array(p, lib, name, 1, &ref);
    return p;
}

TEST(resources, "a resource object stays until its task ends")
{
    for (unsigned pause = 0; pause < 2; pause++) {
        node_set("pause_every_tick", pause);
        for (int i = 0; i < 6; i++) {
            CHECK_TEXT(finished(with_resource(in_mode("resource",
                                                      &modes[i]))), "4711");
            ONCE_FREED(__atomic_load_n(&counted_alive, __ATOMIC_ACQUIRE) == 0);
            CHECK_CALL(in_mode("resource", &modes[i]), "#Ref",
                       "error:badarg");
            CHECK_CALL(in_mode("resource", &modes[i]), "x", "error:badarg");
        }
    }
}

TEST(resource_killed, "deferred functions still find the resource objects")
{
    vm_proc *p = with_resource("last_holder");

    node_set("pause_every_tick", 1);
    vm_step(p);
    vm_step(p);
    CHECK_NUMBERS(counted_alive, ==, 1);
    vm_free(p);
    CHECK_TEXT(notes(), "4711 ");
    CHECK_NUMBERS(counted_alive, ==, 0);
}

TEST(widest, "a function of the most arguments keeps them, and all roots")
{
    for (unsigned pause = 0; pause < 2; pause++) {
        node_set("pause_every_tick", pause);
        for (int i = 0; i < 6; i++) {
            vm_proc *p = vm_spawn();
            ErlNifEnv *env = vm_env(p);
            vm_term args[240];

            for (int a = 0; a < 240; a++)
                args[a] = enif_make_tuple1(env, enif_make_int(env, a));
            vm_call_array(p, lib, in_mode("wide", &modes[i]), 240, args);
            CHECK_TEXT((vm_finish(p), outcome(p)), "28680");
            vm_free(p);
        }
    }
}
