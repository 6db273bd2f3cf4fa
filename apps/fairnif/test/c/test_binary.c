/*
 * test_binary.c - binaries: their bytes stay where they are over pauses, and
 * until the deferred functions have run, whatever becomes of the terms.
 */
#include <stdio.h>
#include <stdlib.h>

#include "check.h"

/* What the tests' binaries of a size contain. */
static unsigned char byte_at(size_t size, size_t i)
{
    return (unsigned char)(size * 31 + i * 7 + i / 256);
}

static unsigned char *bytes_of(size_t size)
{
    unsigned char *bytes = malloc(size + 1);

    for (size_t i = 0; i < size; i++)
        bytes[i] = byte_at(size, i);
    return bytes;
}

static bool intact(const unsigned char *data, size_t size)
{
    for (size_t i = 0; i < size; i++)
        if (data[i] != byte_at(size, i))
            return false;
    return true;
}

static bool term_intact(ErlNifEnv *env, ERL_NIF_TERM term, size_t size)
{
    ErlNifBinary seen;

    return enif_inspect_binary(env, term, &seen) && seen.size == size
        && intact(seen.data, size);
}

/* got(Bin): its bytes before and after pauses, and its term */
static ERL_NIF_TERM got(fair_task *t)
{
    fair_bytes bin, again;
    const unsigned char *data;

    fair_tick(t, 1);
    if (!fair_get_bytes(t, fair_arg(t, 0), &bin))
        return fair_badarg(t);
    data = bin.data;
    CHECK(intact(data, bin.size));
    for (int i = 0; i < 4; i++) {
        fair_tick(t, 1);
        CHECK(bin.data == data && intact(data, bin.size));
        CHECK(term_intact(fair_env(t), fair_make_bytes(t, &bin), bin.size));
    }
    CHECK(fair_get_bytes(t, fair_arg(t, 0), &again));
    fair_tick(t, 1);
    CHECK(again.size == bin.size && intact(again.data, again.size));
    fair_release_bytes(t, &again);
    fair_tick(t, 1);
    CHECK(intact(data, bin.size));
    return fair_make_bytes(t, &bin);
}

/* made(Size): a binary written in pieces, over pauses */
static ERL_NIF_TERM made(fair_task *t)
{
    unsigned long size;
    fair_bin bin;

    if (!fair_get_ulong(t, fair_arg(t, 0), &size))
        return fair_badarg(t);
    if (!fair_new_bin(t, size, &bin))
        return fair_enomem(t);
    CHECK_NUMBERS(bin.size, ==, size);
    for (size_t i = 0; i < size; i++) {
        bin.data[i] = byte_at(size, i);
        if (i % (size / 8 + 1) == 0)
            fair_tick(t, 1);
    }
    fair_tick(t, 1);
    CHECK(intact(bin.data, size));
    CHECK(term_intact(fair_env(t), fair_make_bin(t, &bin), size));
    CHECK(size <= 64 || !fair_resize_bin(t, &bin, size + 1));
    fair_tick(t, 1);            /* the term is gone, the bytes are not */
    CHECK(intact(bin.data, size));
    return fair_make_bin(t, &bin);
}

/* resized(From, To) */
static ERL_NIF_TERM resized(fair_task *t)
{
    unsigned long from, to;
    fair_bin bin;

    if (!fair_get_ulong(t, fair_arg(t, 0), &from)
        || !fair_get_ulong(t, fair_arg(t, 1), &to))
        return fair_badarg(t);
    if (!fair_new_bin(t, from, &bin))
        return fair_enomem(t);
    for (size_t i = 0; i < from; i++)
        bin.data[i] = byte_at(to, i);
    fair_tick(t, 1);
    if (!fair_resize_bin(t, &bin, to))
        return fair_enomem(t);
    CHECK_NUMBERS(bin.size, ==, to);
    fair_tick(t, 1);
    for (size_t i = 0; i < from && i < to; i++)
        if (bin.data[i] != byte_at(to, i))
            return fair_badarg(t);
    for (size_t i = from; i < to; i++)
        bin.data[i] = byte_at(to, i);
    fair_tick(t, 1);
    CHECK(intact(bin.data, to));
    CHECK(term_intact(fair_env(t), fair_make_bin(t, &bin), to));
    for (int i = 0; i < 2; i++) {
        fair_tick(t, 1);        /* the term is gone, the bytes are not */
        CHECK(intact(bin.data, to));
    }
    return fair_make_bin(t, &bin);
}

/* many(List): the binaries in a list, all kept at once; of their terms none */
static ERL_NIF_TERM many(fair_task *t)
{
    enum { MANY = 64 };
    fair_bytes *bins = fair_alloc(t, MANY * sizeof *bins);
    ERL_NIF_TERM head, list;
    unsigned n = 0, left = fair_root_new(t, fair_arg(t, 0));

    while (n < MANY && fair_list_next(t, left, &head)) {
        if (!fair_get_bytes(t, head, &bins[n]))
            return fair_badarg(t);
        n++;
        if (n % 3 == 0)
            fair_tick(t, 1);
    }
    fair_root_drop(t, left);
    fair_tick(t, 1);
    for (unsigned i = 0; i < n; i += 5)
        fair_release_bytes(t, &bins[i]);
    list = enif_make_list(fair_env(t), 0);
    fair_tick(t, 1);
    list = enif_make_list(fair_env(t), 0);
    for (unsigned i = n; i-- > 0; ) {
        if (i % 5 == 0)
            continue;
        CHECK(intact(bins[i].data, bins[i].size));
        list = enif_make_list_cell(fair_env(t), fair_make_bytes(t, &bins[i]),
                                   list);
    }
    return list;
}

/* again(Bin): got 5,000 times; answers how often it paused. */
static ERL_NIF_TERM again(fair_task *t)
{
    fair_bytes bin;

    for (int i = 0; i < 5000; i++) {
        if (!fair_get_bytes(t, fair_arg(t, 0), &bin))
            return fair_badarg(t);
        fair_tick(t, 1);
    }
    return enif_make_uint64(fair_env(t), t->yields);
}

struct bytes {
    const unsigned char *data;
    size_t size;
};

static void look_at(void *arg)
{
    struct bytes *b = arg;

    note("%s%zu ", intact(b->data, b->size) ? "" : "BAD ", b->size);
}

static void look_later(fair_task *t, const unsigned char *data, size_t size)
{
    struct bytes *b = fair_alloc(t, sizeof *b);

    CHECK(b != NULL);
    *b = (struct bytes){data, size};
    fair_defer(t, look_at, b);
}

static bool holding;            /* a body that never ends came so far */

/* held(Bin, Size, How): a got, a new and a made binary are there when the
 * deferred function runs; ends as How says, or never */
static ERL_NIF_TERM held(fair_task *t)
{
    unsigned long size;
    fair_bytes got;
    fair_bin bins[2];
    char how[16];

    if (!fair_get_bytes(t, fair_arg(t, 0), &got)
        || !fair_get_ulong(t, fair_arg(t, 1), &size)
        || !fair_get_atom(t, fair_arg(t, 2), how, sizeof how, FAIR_UTF8))
        return fair_badarg(t);
    look_later(t, got.data, got.size);
    for (int i = 0; i < 2; i++) {
        if (!fair_new_bin(t, size, &bins[i]))
            return fair_enomem(t);
        for (size_t j = 0; j < size; j++)
            bins[i].data[j] = byte_at(size, j);
        look_later(t, bins[i].data, size);
    }
    fair_make_bin(t, &bins[1]);
    if (!strcmp(how, "return"))
        return fair_make_bin(t, &bins[0]);
    if (!strcmp(how, "badarg"))
        return fair_badarg(t);
    fair_tick(t, 1);
    if (!strcmp(how, "kill"))
        vm_kill(vm_current());
    __atomic_store_n(&holding, true, __ATOMIC_RELEASE);
    for (;;)
        fair_tick(t, 1);
}

static ErlNifFunc nifs[] = {
    ALL_MODES("got", 1, got),
    ALL_MODES("made", 1, made),
    ALL_MODES("resized", 2, resized),
    ALL_MODES("many", 1, many),
    FAIR_NIF("again", 1, again, FAIR_NORMAL),
    ALL_MODES("held", 3, held),
};
FAIR_NIF_INIT(test_binary, nifs, NULL, NULL, NULL)

static const size_t sizes[] = {0, 1, 7, 63, 64, 65, 128, 1000, 70000};
enum { SIZES = sizeof sizes / sizeof *sizes };

/* The ways in which a process may have a binary. */
static const char *const ways[] = {
    "as it is made", "from enif_alloc_binary", "part of a larger one",
    "in the middle of a byte", "part of one in the middle of a byte"
};
enum { WAYS = sizeof ways / sizeof *ways };

static vm_term in_way(ErlNifEnv *env, int way, const unsigned char *bytes,
                      size_t size)
{
    unsigned char *larger;
    ErlNifBinary bin;
    vm_term t;

    switch (way) {
    case 0:
        return vm_binary(env, bytes, size);
    case 1:
        enif_alloc_binary(size, &bin);
        memcpy(bin.data, bytes, size);
        return enif_make_binary(env, &bin);
    case 3:
        return vm_bits(env, bytes, size, 3);
    default:
        larger = calloc(1, size + 100);
        memcpy(larger + 50, bytes, size);
        t = way == 2 ? vm_binary(env, larger, size + 100)
            : vm_bits(env, larger, size + 100, 5);
        free(larger);
        return enif_make_sub_binary(env, t, 50, size);
    }
}

static void check_way(const char *name, int way, size_t size)
{
    unsigned char *bytes = bytes_of(size);
    vm_proc *p = vm_spawn();
    vm_term bin = in_way(vm_env(p), way, bytes, size);

    vm_call_array(p, lib, name, 1, &bin);
    vm_finish(p);
    if (vm_state(p) != VM_DONE
        || !term_intact(vm_env(p), vm_result(p), size))
        check_that(false, __FILE__, __LINE__, "%s of %zu bytes %s: %.100s",
                   name, size, ways[way], outcome(p));
    vm_free(p);
    free(bytes);
}

static void check_in_and_out(void)
{
    for (unsigned pause = 0; pause < 2; pause++) {
        node_set("pause_every_tick", pause);
        for (int i = 0; i < 6; i++)
            for (int way = 0; way < WAYS; way++)
                for (int s = 0; s < SIZES; s++)
                    check_way(in_mode("got", &modes[i]), way, sizes[s]);
    }
}

TEST(in_and_out, "any binary comes in and goes out the same, in every mode")
{
    check_in_and_out();
}

static void check_made(const char *name, size_t from, size_t to)
{
    char args[64];
    vm_proc *p;

    if (from == SIZE_MAX)
        snprintf(args, sizeof args, "%zu", to);
    else
        snprintf(args, sizeof args, "%zu, %zu", from, to);
    p = spawn_call(name, args);
    vm_finish(p);
    if (vm_state(p) != VM_DONE
        || !term_intact(vm_env(p), vm_result(p), to))
        check_that(false, __FILE__, __LINE__, "%s(%s): %.100s", name, args,
                   outcome(p));
    vm_free(p);
}

static void check_new_binaries(void)
{
    for (unsigned pause = 0; pause < 2; pause++) {
        node_set("pause_every_tick", pause);
        for (int i = 0; i < 6; i++) {
            for (int s = 0; s < SIZES; s++) {
                check_made(in_mode("made", &modes[i]), SIZE_MAX, sizes[s]);
                for (int r = 0; r < SIZES; r++)
                    check_made(in_mode("resized", &modes[i]), sizes[s],
                               sizes[r]);
            }
        }
    }
}

TEST(new_binaries, "new binaries are written, grown and shrunk over pauses")
{
    check_new_binaries();
    CHECK_CALL("made_auto", "18446744073709551615", "error:enomem");
    CHECK_CALL("resized_auto", "1, 18446744073709551615", "error:enomem");
    CHECK_CALL("resized_auto", "100, 18446744073709551615", "error:enomem");
}

static void keep_longer_ones_on_heaps(void)
{
    vm_options.heap_bin = 200;
}

TEST_WITH(other_limit, "how long a binary on a heap may be is learned of the VM",
          NULL, keep_longer_ones_on_heaps)
{
    check_in_and_out();
    check_new_binaries();
}

TEST(many_held, "many binaries are kept at once, and some released")
{
    for (unsigned pause = 0; pause < 2; pause++) {
        node_set("pause_every_tick", pause);
        for (int i = 0; i < 6; i++) {
            vm_proc *p = vm_spawn();
            ErlNifEnv *env = vm_env(p);
            vm_term list = VM_NIL, head, tail;
            int n = 0;

            for (int j = 0; j < 45; j++) {
                size_t size = sizes[j % SIZES] / 10 + (size_t)j;
                unsigned char *bytes = bytes_of(size);

                list = enif_make_list_cell(env, in_way(env, j % WAYS, bytes,
                                                       size), list);
                free(bytes);
            }
            vm_call_array(p, lib, in_mode("many", &modes[i]), 1, &list);
            CHECK(vm_finish(p) == VM_DONE);
            for (list = vm_result(p);
                 enif_get_list_cell(env, list, &head, &tail); list = tail) {
                ErlNifBinary bin;

                CHECK(enif_inspect_binary(env, head, &bin)
                      && intact(bin.data, bin.size));
                n++;
            }
            CHECK_NUMBERS(n, ==, 36);
            vm_free(p);
        }
    }
}

TASKS_TEST(kept_by_and_by, "a slice ends before it has got more binaries "
     "than can be kept quickly")
{
    unsigned char *bytes = bytes_of(1000);
    vm_proc *p = vm_spawn();
    vm_term arg = in_way(vm_env(p), 1, bytes, 1000);

    vm_options.virtual_time = true;
    vm_call_array(p, lib, "again", 1, &arg);
    vm_finish(p);
    CHECK_TEXT(outcome(p), "5");
    vm_free(p);
    free(bytes);
}

/* Ends the call in each way; what the deferred functions saw. */
static void check_held(const struct mode *mode, int way, size_t size,
                       const char *how)
{
    char should[64];
    unsigned char *bytes = bytes_of(size);
    vm_proc *p = vm_spawn();
    vm_term args[3] = {in_way(vm_env(p), way, bytes, size),
                       enif_make_uint64(vm_env(p), size),
                       enif_make_atom(vm_env(p), how)};

    clear_notes();
    holding = false;
    vm_call_array(p, lib, in_mode("held", mode), 3, args);
    if (!strcmp(how, "drop"))
        EVENTUALLY((vm_run(p, 1),
                    __atomic_load_n(&holding, __ATOMIC_ACQUIRE)));
    else
        vm_finish(p);
    vm_free(p);
    snprintf(should, sizeof should, "%zu %zu %zu ", size, size, size);
    check_that(!strcmp(notes(), should), __FILE__, __LINE__,
               "%s of %zu bytes %s, %s: %s", mode->name, size, ways[way], how,
               notes());
    free(bytes);
}

TEST(until_the_end, "binaries are there until the deferred functions have run")
{
    for (unsigned pause = 0; pause < 2; pause++) {
        node_set("pause_every_tick", pause);
        node_set("slice_ns", 1000);
        node_set("dirty_slice_ns", 10000);
        for (int i = 0; i < 6; i++) {
            for (int way = 0; way < WAYS; way++) {
                for (int s = 0; s < SIZES; s++) {
                    const struct mode *m = &modes[i];

                    check_held(m, way, sizes[s], "return");
                    check_held(m, way, sizes[s], "badarg");
                    if (m->yields && pause)
                        check_held(m, way, sizes[s], "drop");
                    /* On a normal scheduler a process learns of its death
                     * only when it yields. */
                    if (m->first != 'n' || m->yields)
                        check_held(m, way, sizes[s], "kill");
                }
            }
        }
    }
}

