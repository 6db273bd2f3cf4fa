/*
 * test_move.c - fair_move, fair_offload: on the right kind of
 * thread, and back.
 */
#define NEEDS_TASKS
#include "check.h"

static char here(fair_task *t)
{
    static const char letters[] = {
        [FAIR_NORMAL] = 'n', [FAIR_DIRTY_CPU] = 'c', [FAIR_DIRTY_IO] = 'i'
    };
    char letter = letters[fair_where(t)];

    CHECK_NUMBERS(letter, ==, "?nci"[enif_thread_type()]);
    return letter;
}

/* moves("nci..."): goes there, one after the other */
static ERL_NIF_TERM moves(fair_task *t)
{
    char *to;
    size_t n;

    if (!fair_get_string(t, fair_arg(t, 0), &to, &n, FAIR_UTF8))
        return fair_badarg(t);
    for (size_t i = 0; i < n; i++) {
        fair_move(t, to[i] == 'n' ? FAIR_NORMAL
                  : to[i] == 'c' ? FAIR_DIRTY_CPU
                  : FAIR_DIRTY_IO);
        CHECK_NUMBERS(here(t), ==, to[i]);
        fair_tick(t, 1);
        CHECK_NUMBERS(here(t), ==, to[i]);
    }
    return enif_make_tuple2(fair_env(t), enif_make_uint64(fair_env(t),
                                                          fair_yields(t)),
                            fair_arg(t, 0));
}

/* What a called function finds. */
struct found {
    char kind;
    uintptr_t frame;
    int calls;
};

static __attribute__((noinline)) void look_around(void *arg)
{
    struct found *found = arg;
    char frame;

    found->kind = "?nci"[enif_thread_type()];
    found->frame = (uintptr_t)&frame;
    found->calls++;
    vm_work(1000);
}

static void work_long(void *arg)
{
    look_around(arg);
    vm_work(10000000);
}

/* calls(N, Units): fair_offload n times; where it ran each time */
static ERL_NIF_TERM calls(fair_task *t)
{
    struct found found = {0};
    unsigned long n, units;
    char before = here(t), kinds[64];

    if (!fair_get_ulong(t, fair_arg(t, 0), &n)
        || !fair_get_ulong(t, fair_arg(t, 1), &units) || n > 60)
        return fair_badarg(t);
    for (unsigned long i = 0; i < n; i++) {
        fair_offload(t, FAIR_AUTO, units,
                  units < 1000 ? look_around : work_long, &found);
        kinds[i] = found.kind;
        CHECK_NUMBERS(here(t), ==, before);
        /* Not on the task's own small stack, which ends at the task. */
        CHECK((uintptr_t)t - found.frame > 128 * 1024);
        fair_tick(t, 1);
    }
    CHECK_NUMBERS(found.calls, ==, n);
    return enif_make_string_len(fair_env(t), kinds, n, ERL_NIF_LATIN1);
}

static ERL_NIF_TERM blocks(fair_task *t)
{
    struct found found = {0};
    char before = here(t);

    for (int i = 0; i < 5; i++) {
        fair_offload(t, FAIR_DIRTY_IO, 0, look_around, &found);
        CHECK_NUMBERS(found.kind, ==, 'i');
        CHECK_NUMBERS(found.calls, ==, i + 1);
        CHECK_NUMBERS(here(t), ==, before);
        fair_tick(t, 1);
    }
    fair_move(t, FAIR_DIRTY_CPU);
    fair_offload(t, FAIR_DIRTY_IO, 0, look_around, &found);
    CHECK_NUMBERS(found.kind, ==, 'i');
    CHECK_NUMBERS(here(t), ==, 'c');
    fair_move(t, FAIR_DIRTY_IO);
    fair_offload(t, FAIR_DIRTY_IO, 0, look_around, &found);
    CHECK_NUMBERS(here(t), ==, 'i');
    return enif_make_atom(fair_env(t), "ok");
}

/* Moves, and ends there. */
static ERL_NIF_TERM ends_on_dirty(fair_task *t)
{
    fair_bytes got;
    fair_bin bin;

    if (!fair_new_bin(t, 100, &bin))
        return fair_enomem(t);
    memset(bin.data, 'x', 100);
    fair_defer(t, note_defer, "d");
    fair_move(t, FAIR_DIRTY_CPU);
    if (fair_get_bytes(t, fair_arg(t, 0), &got))
        return fair_raise(t, fair_make_bytes(t, &got));
    return enif_make_list1(fair_env(t), fair_arg(t, 0));
}

/* Works 20 ms in ticks on normal, on dirty and on normal schedulers. */
static ERL_NIF_TERM there_and_back(fair_task *t)
{
    static const enum fair_mode route[] = {FAIR_NORMAL, FAIR_DIRTY_CPU,
                                           FAIR_NORMAL};

    for (int i = 0; i < 3; i++) {
        fair_move(t, route[i]);
        for (int j = 0; j < 20000; j++) {
            vm_work(1000);
            fair_tick(t, 1);
        }
    }
    return enif_make_atom(fair_env(t), "ok");
}

static ErlNifFunc nifs[] = {
    ALL_MODES("moves", 1, moves),
    ALL_MODES("calls", 2, calls),
    ALL_MODES("blocks", 0, blocks),
    ALL_MODES("ends_on_dirty", 1, ends_on_dirty),
    ALL_MODES("there_and_back", 0, there_and_back),
};
FAIR_NIF_INIT(test_move, nifs, NULL, NULL, NULL)

TEST(moving, "fair_move goes to the right kind of thread, in every mode")
{
    static const char *const routes[] = {"", "n", "c", "i", "ncncn", "icnic",
                                         "nnccii"};

    for (unsigned pause = 0; pause < 2; pause++) {
        node_set("pause_every_tick", pause);
        for (int i = 0; i < 6; i++) {
            for (unsigned r = 0; r < sizeof routes / sizeof *routes; r++) {
                char args[32];
                vm_proc *p;

                sprintf(args, "\"%s\"", routes[r]);
                p = spawn_call(in_mode("moves", &modes[i]), args);
                CHECK(vm_finish(p) == VM_DONE);
                vm_free(p);
            }
        }
    }
}

TEST(route, "a move takes one slice there, and ends on that kind of thread")
{
    vm_proc *p = spawn_call("moves_yielding", "\"cin\"");

    vm_options.virtual_time = true;
    CHECK_TEXT((vm_finish(p), vm_kinds(p)), "ncin");
    CHECK_TEXT(outcome(p), "{3,[99,105,110]}");
    vm_free(p);
    p = spawn_call("moves_dirty_io", "\"i\"");
    CHECK_TEXT((vm_finish(p), vm_kinds(p)), "ni");
    vm_free(p);
}

TEST(ending, "a body may end where it moved, with a result or an exception")
{
    for (int i = 0; i < 6; i++) {
        CHECK_CALL(in_mode("ends_on_dirty", &modes[i]), "{1}", "[{1}]");
        CHECK_CALL(in_mode("ends_on_dirty", &modes[i]), "<<5>>",
                   "error:<<5>>");
    }
    CHECK_TEXT(notes(), "dddddddddddd");
}

TEST(slices, "slices are as long as the present kind of thread wants")
{
    for (int i = 0; i < 6; i++) {
        vm_proc *p = spawn_call(in_mode("there_and_back", &modes[i]), "");
        char last = 0, seen[8] = "";
        int run = 0, shortest = 1 << 30;

        vm_options.virtual_time = true;
        vm_finish(p);
        CHECK_TEXT(outcome(p), "ok");
        for (const char *k = vm_kinds(p); *k; k++) {
            if (*k != last && strlen(seen) < 7)
                seen[strlen(seen)] = *k;
            run = *k == last ? run + 1 : 1;
            last = *k;
            if (*k == 'c' && k[1] != 'c')
                shortest = run;
        }
        if (modes[i].yields && modes[i].first == 'n') {
            CHECK_TEXT(seen, "ncn");
            CHECK_NUMBERS(shortest, >=, 18);    /* dirty slices of 1 ms */
            CHECK_NUMBERS(shortest, <=, 26);
            CHECK_NUMBERS(vm_slices(p), >=, 1400);
        }
        vm_free(p);
    }
}

static bool ends_in(const char *text, const char *end)
{
    size_t length = strlen(text), of_end = strlen(end);

    return length >= of_end && !strcmp(text + length - of_end, end);
}

TEST(calling, "fair_offload runs short functions in place, long ones on a dirty "
     "scheduler")
{
    static const char *const last_two[] = {
        ['n'] = ",110,110]", ['c'] = ",99,99]", ['i'] = ",105,105]"
    };

    vm_options.virtual_time = true;
    for (int i = 0; i < 6; i++) {
        const char *name = in_mode("calls", &modes[i]);
        char first = modes[i].first;
        bool stays = first != 'n' || !modes[i].yields;

        /* Its first run is an unknown quantity; then 1 us is not worth a
         * trip. */
        CHECK(ends_in(finished(spawn_call(name, "20, 1")),
                      last_two[(int)first]));
        CHECK(ends_in(finished(spawn_call(name, "20, 1000")),
                      last_two[stays ? (int)first : 'c']));
    }
    CHECK_NUMBERS(node_counter("calls_auto", "inline_offloads"), >=, 18);
    CHECK_NUMBERS(node_counter("calls_auto", "dirty_offloads"), >=, 18);
}

TEST(blocking, "fair_offload in FAIR_DIRTY_IO runs its function there")
{
    CHECK_EVERYWHERE("blocks", "", "ok");
}

