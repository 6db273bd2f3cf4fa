/*
 * test_copy.c - the VM copies a term in one go: a large one on a dirty
 * scheduler, of whatever shape.
 */
#define NEEDS_TASKS
#include "check.h"

/* To an environment of its own and back, across a pause. */
static ERL_NIF_TERM there_and_back(fair_task *t)
{
    ErlNifEnv *env = enif_alloc_env();
    ERL_NIF_TERM copy = fair_copy(t, env, fair_arg(t, 0));

    fair_tick(t, 1);
    copy = fair_copy(t, NULL, copy);
    enif_free_env(env);
    return enif_make_tuple1(fair_env(t), copy);
}

static ERL_NIF_TERM take(fair_task *t)
{
    return enif_make_atom(fair_env(t), "ok");
}

static ErlNifFunc nifs[] = {
    FAIR_NIF("there_and_back", 1, there_and_back, FAIR_NORMAL),
    FAIR_NIF("take", 1, take, FAIR_THREADED)
};
FAIR_NIF_INIT(test_copy, nifs, NULL, NULL, NULL)

enum shape { SMALL, LIST, TUPLE, TAIL, MAP_TAIL, FUN, INTEGER, SHAPES };

static vm_term make(ErlNifEnv *env, enum shape shape)
{
    enum { MANY = 5000 };
    vm_term elements[MANY], tuple, tail, map;

    for (int i = 0; i < MANY; i++)
        elements[i] = enif_make_int(env, i);
    tuple = enif_make_tuple_from_array(env, elements, MANY);
    tail = enif_make_list_cell(env, elements[0], tuple);
    switch (shape) {
    case SMALL:
        return vm_parse(env, "{a,[1|2],#{b=>1.5},18446744073709551615,<<1>>}");
    case LIST:
        return vm_byte_list(env, MANY, VM_NIL);
    case TUPLE:
        return tuple;
    case TAIL:
        return tail;
    case MAP_TAIL:
        map = enif_make_new_map(env);
        enif_make_map_put(env, map, elements[0], tail, &map);
        return map;
    case FUN:
        return vm_parse(env, "#Fun");
    default:
        return vm_parse(env, "18446744073709551616");
    }
}

TEST(arguments, "arguments for a thread are copied on a dirty scheduler, where "
     "they are large or their size cannot be seen")
{
    for (enum shape shape = SMALL; shape < SHAPES; shape++) {
        vm_proc *p = vm_spawn();
        vm_term term = make(vm_env(p), shape);

        node_await(p, "take", 1, &term);
        vm_finish(p);
        CHECK_TEXT(outcome(p), "ok");
        CHECK((strchr(vm_kinds(p), 'c') != NULL) == (shape != SMALL));
        vm_free(p);
    }
}

TEST(copies, "so does fair_copy, and the body stays on its scheduler")
{
    for (int every = 0; every < 2; every++)
        for (enum shape shape = SMALL; shape < SHAPES; shape++) {
            vm_proc *p = vm_spawn();
            vm_term term = make(vm_env(p), shape);
            const char *kinds;

            node_set("pause_every_tick", (uint64_t)every);
            vm_call_array(p, lib, "there_and_back", 1, &term);
            vm_finish(p);
            kinds = vm_kinds(p);
            CHECK((strchr(kinds, 'c') != NULL) == (shape != SMALL));
            CHECK_NUMBERS(kinds[vm_slices(p) - 1], ==, 'n');
            if (shape == SMALL)
                CHECK_TEXT(outcome(p), "{{a,[1|2],#{b=>1.5},"
                           "18446744073709551615,<<1>>}}");
            if (shape == TAIL)
                CHECK(strncmp(outcome(p), "{[0|{0,1,2,3,", 13) == 0);
            vm_free(p);
        }
}
