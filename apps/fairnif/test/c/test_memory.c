/*
 * test_memory.c - memory that runs out, at every place in turn: an error,
 * and nothing lost.
 */
#include <stdio.h>

#include "check.h"

static ErlNifResourceType *type;

static int open_types(ErlNifEnv *env, void **priv, ERL_NIF_TERM info)
{
    (void)priv, (void)info;
    type = enif_open_resource_type(env, NULL, "object", NULL,
                                   ERL_NIF_RT_CREATE, NULL);
    return type ? 0 : 1;
}

/* What cannot be got raises badarg, which is enomem where memory was out.
 *
 * everything(Ref, Small, Large, Unaligned, IoList, String): uses whatever may
 * need memory */
static ERL_NIF_TERM everything(fair_task *t)
{
    fair_bytes bins[4];
    fair_bin made[3];
    void *block, *obj;
    unsigned root;
    char *chars;
    size_t length;

    for (int i = 0; i < 6; i++)
        if (!postpone(t))
            return fair_enomem(t);
    if (!fair_get_resource(t, fair_arg(t, 0), type, &obj))
        return fair_badarg(t);
    fair_tick(t, 1);
    for (unsigned i = 0; i < 3; i++) {
        if (!fair_get_bytes(t, fair_arg(t, i + 1), &bins[i]))
            return fair_badarg(t);
        fair_tick(t, 1);
    }
    if (!fair_get_iolist(t, fair_arg(t, 4), &bins[3]))
        return fair_badarg(t);
    if (!fair_get_string(t, fair_arg(t, 5), &chars, &length, FAIR_UTF8))
        return fair_badarg(t);
    CHECK_NUMBERS(length, ==, 3);
    for (unsigned i = 0; i < 3; i++) {
        size_t size = 40 + 40 * i;

        if (!fair_new_bin(t, size, &made[i]))
            return fair_enomem(t);
        memset(made[i].data, (int)i, size);
        if (!fair_resize_bin(t, &made[i], 2 * size)) {
            /* It must still be as it was. */
            CHECK(made[i].size == size && made[i].data[size - 1] == i);
            return fair_enomem(t);
        }
        fair_tick(t, 1);
    }
    block = fair_alloc(t, 100);
    if (!block)
        return fair_enomem(t);
    memset(block, 7, 100);
    if (!fair_realloc(t, block, 10000)) {
        CHECK(((char *)block)[99] == 7);
        return fair_enomem(t);
    }
    root = fair_root_new(t, fair_make_bin(t, &made[1]));
    for (unsigned i = 0; i < 30; i++)
        fair_root_new(t, fair_arg(t, 0));
    fair_tick(t, 1);
    fair_move(t, FAIR_DIRTY_IO);
    fair_tick(t, 1);
    fair_move(t, FAIR_NORMAL);
    return enif_make_tuple2(fair_env(t), fair_root_get(t, root),
                            fair_make_bytes(t, &bins[3]));
}

/* So that functions are new to a thread again and again. */
#define FOUR(NAME) \
    ALL_MODES(NAME "0", 6, everything), ALL_MODES(NAME "1", 6, everything), \
    ALL_MODES(NAME "2", 6, everything), ALL_MODES(NAME "3", 6, everything)

static ErlNifFunc nifs[] = {
    FOUR("everything"), FOUR("more")
};
FAIR_NIF_INIT(test_memory, nifs, open_types, NULL, NULL)

static vm_proc *spawn_everything(const char *name)
{
    vm_proc *p = vm_spawn();
    ErlNifEnv *env = vm_env(p);
    unsigned char bytes[200] = {1, 2, 3};
    void *obj = enif_alloc_resource(type, 1);
    vm_term args[6] = {
        enif_make_resource(env, obj), vm_binary(env, bytes, 20),
        vm_binary(env, bytes, 200), vm_bits(env, bytes, 200, 5),
        vm_parse(env, "[1,<<2>>,[<<3,4/5>>]]"), vm_parse(env, "\"abc\"")
    };

    enif_release_resource(obj);
    vm_call_array(p, lib, name, 6, args);
    return p;
}

static bool is_success(const char *text)
{
    return text[0] == '{' && strstr(text, ">>,<<1,2,3,4>>}");
}

/* Lets the nth allocation fail, for all n; answers how often the call did. */
static long each_fails(const char *name, unsigned kinds, bool and_on)
{
    long n = 0, refused = 0;
    bool failed;

    do {
        vm_proc *p = spawn_everything(name);
        const char *text;

        vm_fail(kinds, ++n, and_on);
        vm_finish(p);
        failed = vm_failed();
        vm_fail(0, 0, false);
        text = outcome(p);
        /* What is only for the counters does without. */
        check_that(!strcmp(text, "error:enomem") || is_success(text),
                   __FILE__, __LINE__, "%s, failure %ld: %s", name, n, text);
        refused += text[0] == 'e';
        vm_free(p);
        CHECK(all_undone());
        CHECK_NUMBERS(node_stacks(), ==, 0);
        CHECK_TEXT(node_leftovers(), "");
    } while (failed && n < 1000 && !check_failures());
    return refused;
}

static void in_turn(unsigned pause, unsigned kinds, bool and_on, long least)
{
    static unsigned set;

    node_set("pause_every_tick", pause);
    for (int i = 0; i < 6; i++) {
        char name[64];

        snprintf(name, sizeof name, "%s%u_%s",
                 set < 4 ? "everything" : "more", set % 4, modes[i].name);
        CHECK_NUMBERS(each_fails(name, kinds, and_on), >=, least);
    }
    set++;
}

TEST(once, "each allocation may fail: an error, and nothing is lost")
{
    in_turn(0, VM_F_MEMORY, false, 10);
    in_turn(1, VM_F_MEMORY, false, 10);
}

TEST(and_on, "all allocations from the nth on may fail")
{
    in_turn(0, VM_F_MEMORY, true, 10);
    in_turn(1, VM_F_MEMORY, true, 10);
}

TASKS_TEST(guards, "a stack that cannot be guarded is not used")
{
    enum { MANY = 200 };        /* more than are kept idle */
    vm_proc *p[MANY];

    /* Those that are pooled hide what fails: hold many at once. */
    node_set("pause_every_tick", 1);
    for (int round = 1; round < 20; round++) {
        int refused = 0;

        vm_fail(VM_F_MPROTECT | VM_F_MADVISE, round, true);
        for (int i = 0; i < MANY; i++) {
            p[i] = spawn_everything("everything0_yielding");
            refused += vm_step(p[i]) == VM_RAISED;
            if (vm_state(p[i]) == VM_RAISED)
                CHECK_TEXT(outcome(p[i]), "error:enomem");
        }
        CHECK(refused > 0);
        vm_fail(0, 0, false);
        for (int i = 0; i < MANY; i++) {
            if (vm_state(p[i]) == VM_READY) {
                vm_finish(p[i]);
                CHECK(is_success(outcome(p[i])));
            }
            vm_free(p[i]);
        }
        CHECK_NUMBERS(node_stacks(), ==, 0);
    }
}

TEST(known_thread, "a call that needs memory only for its stack is refused")
{
    vm_proc *p[100];

    node_set("pause_every_tick", 1);
    for (int i = 0; i < 100; i++) {
        p[i] = spawn_everything("everything0_yielding");
        vm_fail(VM_F_MMAP, 1, false);
        vm_step(p[i]);
        vm_fail(0, 0, false);
        CHECK(vm_state(p[i]) == VM_READY
              || !strcmp(outcome(p[i]), "error:enomem"));
    }
    for (int i = 0; i < 100; i++)
        vm_free(p[i]);
}
