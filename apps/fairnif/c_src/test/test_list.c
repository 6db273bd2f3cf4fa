/*
 * test_list.c - lists, strings and iolists: the answers, and that none of
 * any length is walked in one go.
 */
#include <stdlib.h>

#include "check.h"

/* copy(List): walked with fair_list_next, built with fair_list_push; an
 * improper tail comes back beside it */
static ERL_NIF_TERM copy(fair_task *t)
{
    unsigned left = fair_root(t, fair_arg(t, 0));
    unsigned made = fair_root(t, enif_make_list(fair_env(t), 0));
    ERL_NIF_TERM head;

    while (fair_list_next(t, left, &head)) {
        fair_list_push(t, made, head);
        fair_tick(t, 1);
    }
    if (!fair_list_reverse(t, made))
        return fair_badarg(t);
    if (enif_is_empty_list(fair_env(t), fair_kept(t, left)))
        return fair_kept(t, made);
    return enif_make_tuple2(fair_env(t), fair_kept(t, made),
                            fair_kept(t, left));
}

static ERL_NIF_TERM length(fair_task *t)
{
    size_t n = 99;

    if (!fair_get_list_length(t, fair_arg(t, 0), &n)) {
        CHECK_NUMBERS(n, ==, 99);
        return fair_badarg(t);
    }
    return enif_make_uint64(fair_env(t), n);
}

/* reverse(List) -> {What it said, Root} */
static ERL_NIF_TERM reverse(fair_task *t)
{
    unsigned root = fair_root(t, fair_arg(t, 0));
    int proper = fair_list_reverse(t, root);

    return enif_make_tuple2(fair_env(t), enif_make_int(fair_env(t), proper),
                            fair_kept(t, root));
}

static ERL_NIF_TERM string(fair_task *t)
{
    size_t n;
    char *chars;
    unsigned root = fair_root(t, fair_arg(t, 0));

    if (!fair_get_string(t, fair_arg(t, 0), &chars, &n))
        return fair_badarg(t);
    CHECK(chars[n] == 0);
    fair_tick(t, 1);
    /* The author's roots are his, and all that there are. */
    CHECK(enif_is_identical(fair_kept(t, root), fair_arg(t, 0)));
    CHECK_NUMBERS(fair_root(t, fair_arg(t, 0)), ==, root + 1);
    return enif_make_tuple2(fair_env(t), enif_make_uint64(fair_env(t), n),
                            n > 100 ? enif_make_int(fair_env(t), chars[100])
                            : enif_make_string_len(fair_env(t), chars, n,
                                                   ERL_NIF_LATIN1));
}

static ERL_NIF_TERM iolist(fair_task *t)
{
    fair_bin bin;
    unsigned root = fair_root(t, fair_arg(t, 0));

    if (!fair_get_iolist(t, fair_arg(t, 0), &bin))
        return fair_badarg(t);
    fair_tick(t, 1);
    CHECK(enif_is_identical(fair_kept(t, root), fair_arg(t, 0)));
    CHECK_NUMBERS(fair_root(t, fair_arg(t, 0)), ==, root + 1);
    if (bin.size > 1000)
        return enif_make_tuple2(fair_env(t),
                                enif_make_uint64(fair_env(t), bin.size),
                                enif_make_uint(fair_env(t),
                                               bin.data[bin.size - 1]));
    return fair_make_bin(t, &bin);
}

static ERL_NIF_TERM binary(fair_task *t)
{
    fair_bin bin;

    if (!fair_get_bin(t, fair_arg(t, 0), &bin))
        return fair_badarg(t);
    return enif_make_tuple2(fair_env(t), enif_make_uint64(fair_env(t),
                                                          bin.size),
                            enif_make_uint(fair_env(t),
                                           bin.data[bin.size - 1]));
}

/* Roots that hold no list, or an empty one. */
static ERL_NIF_TERM odd_roots(fair_task *t)
{
    unsigned empty = fair_root(t, enif_make_list(fair_env(t), 0));
    unsigned other = fair_root(t, enif_make_int(fair_env(t), 7));
    ERL_NIF_TERM head;

    CHECK(!fair_list_next(t, empty, &head));
    CHECK(fair_list_reverse(t, empty));
    CHECK(enif_is_empty_list(fair_env(t), fair_kept(t, empty)));
    CHECK(!fair_list_next(t, other, &head));
    CHECK(!fair_list_reverse(t, other));
    CHECK(enif_is_empty_list(fair_env(t), fair_kept(t, other)));
    fair_list_push(t, other, fair_arg(t, 0));
    fair_tick(t, 1);
    fair_list_push(t, other, fair_arg(t, 0));
    return fair_kept(t, other);
}

static ErlNifFunc nifs[] = {
    ALL_MODES("copy", 1, copy),
    ALL_MODES("length", 1, length),
    ALL_MODES("reverse", 1, reverse),
    ALL_MODES("string", 1, string),
    ALL_MODES("iolist", 1, iolist),
    ALL_MODES("binary", 1, binary),
    ALL_MODES("odd_roots", 1, odd_roots),
};
FAIR_NIF_INIT(test_list, nifs, NULL, NULL, NULL, NULL)

TEST(walked, "lists are walked and built with a pause at each element")
{
    CHECK_EVERYWHERE("copy", "[]", "[]");
    CHECK_EVERYWHERE("copy", "[1,{2},<<3>>,[4]]", "[1,{2},<<3>>,[4]]");
    CHECK_EVERYWHERE("copy", "[1,2|three]", "{[1,2],three}");
    CHECK_EVERYWHERE("copy", "atom", "{[],atom}");
    CHECK_EVERYWHERE("odd_roots", "<<1>>", "[<<1>>,<<1>>]");
}

TEST(reversed, "proper lists are reversed, others are not")
{
    CHECK_EVERYWHERE("reverse", "[]", "{1,[]}");
    CHECK_EVERYWHERE("reverse", "[a]", "{1,[a]}");
    CHECK_EVERYWHERE("reverse", "[1,{2},[3]]", "{1,[[3],{2},1]}");
    CHECK_EVERYWHERE("reverse", "[1,2|3]", "{0,[]}");
    CHECK_EVERYWHERE("reverse", "{}", "{0,[]}");
}

TEST(measured, "only proper lists have a length")
{
    CHECK_EVERYWHERE("length", "[]", "0");
    CHECK_EVERYWHERE("length", "[a,b,c]", "3");
    CHECK_EVERYWHERE("length", "[a,b|c]", "error:badarg");
    CHECK_EVERYWHERE("length", "<<>>", "error:badarg");
}

TEST(strings, "strings are lists of bytes")
{
    CHECK_EVERYWHERE("string", "[]", "{0,[]}");
    CHECK_EVERYWHERE("string", "[0,255,128]", "{3,[0,255,128]}");
    CHECK_EVERYWHERE("string", "[0,256]", "error:badarg");
    CHECK_EVERYWHERE("string", "[-1]", "error:badarg");
    CHECK_EVERYWHERE("string", "[1|2]", "error:badarg");
    CHECK_EVERYWHERE("string", "[1.0]", "error:badarg");
    CHECK_EVERYWHERE("string", "[[1]]", "error:badarg");
    CHECK_EVERYWHERE("string", "<<1>>", "error:badarg");
}

TEST(iolists, "iolists of any shape become one binary")
{
    CHECK_EVERYWHERE("iolist", "<<1,2>>", "<<1,2>>");
    CHECK_EVERYWHERE("iolist", "[]", "<<>>");
    CHECK_EVERYWHERE("iolist", "[[[]],[[[[]]]]]", "<<>>");
    CHECK_EVERYWHERE("iolist", "[1,[2,[3,<<4,5>>],6],<<7>>|<<8>>]",
                     "<<1,2,3,4,5,6,7,8>>");
    CHECK_EVERYWHERE("iolist", "[<<1,2/3>>|<<3,4/7>>]", "<<1,2,3,4>>");
    CHECK_EVERYWHERE("iolist", "[[<<>>|<<1>>]|<<>>]", "<<1>>");
    CHECK_EVERYWHERE("iolist", "[[1|<<2>>],3]", "<<1,2,3>>");
    CHECK_EVERYWHERE("iolist", "[1|2]", "error:badarg");
    CHECK_EVERYWHERE("iolist", "[[1|2],3]", "error:badarg");
    CHECK_EVERYWHERE("iolist", "[256]", "error:badarg");
    CHECK_EVERYWHERE("iolist", "[a]", "error:badarg");
    CHECK_EVERYWHERE("iolist", "[<<1:3>>]", "error:badarg");
    CHECK_EVERYWHERE("iolist", "[{}]", "error:badarg");
    CHECK_EVERYWHERE("iolist", "{}", "error:badarg");
}

/* Long ones: no slice longer than twice the slice, and no single call of
 * the VM that walks far.  In virtual time: what the VM is asked for costs. */

enum { LENGTH = 200000, SLICE_NS = 25000, MOST_WORK = 16384 };

static void check_long(const char *name, vm_proc *p, vm_term arg,
                       const char *should, int line)
{
    vm_options.virtual_time = true;
    vm_options.gc_every = 40;
    node_set("slice_ns", SLICE_NS);
    vm_reset_maxima();
    vm_call_array(p, lib, name, 1, &arg);
    vm_finish(p);
    check_that(!strcmp(outcome(p), should), __FILE__, line,
               "%s: %.100s, not %s", name, outcome(p), should);
    check_that(vm_counts().max_slice_ns <= 2 * SLICE_NS, __FILE__, line,
               "%s: a slice of %ld ns", name, vm_counts().max_slice_ns);
    check_that(vm_counts().max_work <= MOST_WORK, __FILE__, line,
               "%s: one call of the VM went over %ld words", name,
               vm_counts().max_work);
    vm_free(p);
}

#define CHECK_LONG(NAME, PROC, ARG, SHOULD)                                 \
    check_long((NAME), (PROC), (ARG), (SHOULD), __LINE__)

TEST(long_lists, "a long list is walked, built, measured and reversed in "
     "slices")
{
    static const char *const names[] = {"length_yielding", "length_auto"};
    vm_proc *p;

    for (int i = 0; i < 2; i++) {
        p = vm_spawn();
        CHECK_LONG(names[i], p, vm_byte_list(vm_env(p), LENGTH, VM_NIL),
                   "200000");
    }
    p = vm_spawn();
    CHECK_LONG("length_auto", p,
               vm_byte_list(vm_env(p), LENGTH, vm_parse(vm_env(p), "x")),
               "error:badarg");
    p = vm_spawn();
    CHECK_LONG("reverse_auto", p,
               vm_byte_list(vm_env(p), LENGTH, vm_parse(vm_env(p), "x")),
               "{0,[]}");
}

TEST(long_copy, "a long list is copied in slices")
{
    vm_proc *p = vm_spawn();
    vm_term list = vm_byte_list(vm_env(p), LENGTH, VM_NIL), head;
    unsigned length;

    vm_options.virtual_time = true;
    vm_options.gc_every = 100;
    vm_reset_maxima();
    vm_call_array(p, lib, "copy_auto", 1, &list);
    vm_finish(p);
    CHECK_NUMBERS(vm_counts().max_slice_ns, <=, 2 * SLICE_NS);
    CHECK_NUMBERS(vm_counts().max_work, <=, MOST_WORK);
    CHECK(enif_get_list_length(vm_env(p), vm_result(p), &length));
    CHECK_NUMBERS(length, ==, LENGTH);
    list = vm_result(p);
    for (int i = 0; enif_get_list_cell(vm_env(p), list, &head, &list); i++) {
        int n = -1;

        enif_get_int(vm_env(p), head, &n);
        if (n != (i & 255)) {
            CHECK_NUMBERS(n, ==, i & 255);
            break;
        }
    }
    vm_free(p);
}

TEST(long_strings, "a long string is read in slices")
{
    vm_proc *p = vm_spawn();

    CHECK_LONG("string_auto", p, vm_byte_list(vm_env(p), LENGTH, VM_NIL),
               "{200000,100}");
    p = vm_spawn();
    CHECK_LONG("string_auto", p,
               vm_byte_list(vm_env(p), LENGTH, vm_parse(vm_env(p), "[a]")),
               "error:badarg");
}

TEST(long_iolists, "a long iolist is read in slices")
{
    vm_proc *p = vm_spawn();

    CHECK_LONG("iolist_auto", p, vm_byte_list(vm_env(p), LENGTH, VM_NIL),
               "{200000,63}");
    p = vm_spawn();
    CHECK_LONG("iolist_auto", p,
               vm_byte_list(vm_env(p), LENGTH, vm_parse(vm_env(p), "[a]")),
               "error:badarg");
}

TEST(deep_iolists, "an iolist nested deep is read in slices")
{
    vm_proc *p = vm_spawn();
    ErlNifEnv *env = vm_env(p);
    vm_term left = VM_NIL, right = vm_parse(env, "<<9>>");

    for (int i = 0; i < LENGTH / 2; i++) {     /* [[[... | 1] | 1] | 1] */
        left = enif_make_list2(env, left, vm_parse(env, "1"));
        right = enif_make_list1(env, right);
    }
    CHECK_LONG("iolist_auto", p, enif_make_list2(env, left, right),
               "{100001,9}");
}

TEST(big_iolists, "an iolist of 64 MB in binaries is read in slices")
{
    enum { PART = 4 << 20 };
    vm_proc *p = vm_spawn();
    ErlNifEnv *env = vm_env(p);
    unsigned char *bytes = calloc(1, PART);
    vm_term part, list = VM_NIL;

    bytes[PART - 1] = 5;
    part = vm_binary(env, bytes, PART);
    for (int i = 0; i < 16; i++)
        list = enif_make_list_cell(env, part, list);
    CHECK_LONG("iolist_auto", p, list, "{67108864,5}");
    free(bytes);
}

TEST(middling_iolists, "an iolist of thousands of middling binaries is read "
     "in slices")
{
    enum { PART = 16000, PARTS = 2000 };
    vm_proc *p = vm_spawn();
    ErlNifEnv *env = vm_env(p);
    unsigned char *bytes = calloc(1, PART);
    vm_term part, list = VM_NIL;

    bytes[PART - 1] = 5;
    part = vm_binary(env, bytes, PART);
    for (int i = 0; i < PARTS; i++)
        list = enif_make_list_cell(env, part, list);
    CHECK_LONG("iolist_auto", p, list, "{32000000,5}");
    free(bytes);
}

/* The VM copies such a binary whole whenever it is asked for its bytes, and
 * the runtime once more: that much in one slice, and no more. */
TEST(unaligned, "a binary that begins within a byte is copied no more than it "
     "must")
{
    enum { SIZE = 4 << 20, ONE_COPY = SIZE / 8 };
    static const char *const names[] = {"binary_auto", "iolist_auto"};
    unsigned char *bytes = calloc(1, SIZE);

    bytes[SIZE - 1] = 5;
    vm_options.virtual_time = true;
    for (int i = 0; i < 2; i++) {
        vm_proc *p = vm_spawn();
        vm_term arg = vm_bits(vm_env(p), bytes, SIZE, 3);

        if (i == 1)
            arg = enif_make_list1(vm_env(p), arg);
        vm_reset_maxima();
        vm_call_array(p, lib, names[i], 1, &arg);
        vm_finish(p);
        CHECK_TEXT(outcome(p), "{4194304,5}");
        CHECK_NUMBERS(vm_counts().max_work, <=, ONE_COPY + MOST_WORK);
        CHECK_NUMBERS(vm_counts().max_slice_ns, <=,
                      2 * ONE_COPY + 2 * SLICE_NS);
        vm_free(p);
    }
    free(bytes);
}

TEST(all_modes_long, "in modes that do not yield long lists come out the same")
{
    for (int i = 0; i < 6; i++) {
        vm_proc *p = vm_spawn();
        vm_term list = vm_byte_list(vm_env(p), 100000, VM_NIL);

        vm_options.gc_every = 10;
        vm_call_array(p, lib, in_mode("iolist", &modes[i]), 1, &list);
        CHECK_TEXT((vm_finish(p), outcome(p)), "{100000,159}");
        vm_free(p);
    }
}
