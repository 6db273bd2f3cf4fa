/*
 * test_list.c - lists, strings and iolists: the answers, and that none of
 * any length is walked in one go.
 */
#include <stdlib.h>

#define NEEDS_TASKS
#include "check.h"

/* copy(List): walked with fair_list_next, built with fair_list_push; an
 * improper tail comes back beside it */
static ERL_NIF_TERM copy(fair_task *t)
{
    unsigned left = fair_root_new(t, fair_arg(t, 0));
    unsigned made = fair_root_new(t, enif_make_list(fair_env(t), 0));
    ERL_NIF_TERM head;

    while (fair_list_next(t, left, &head)) {
        fair_list_push(t, made, head);
        fair_tick(t, 1);
    }
    if (!fair_list_reverse(t, made))
        return fair_badarg(t);
    if (enif_is_empty_list(fair_env(t), fair_root_get(t, left)))
        return fair_root_get(t, made);
    return enif_make_tuple2(fair_env(t), fair_root_get(t, made),
                            fair_root_get(t, left));
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
    unsigned root = fair_root_new(t, fair_arg(t, 0));
    int proper = fair_list_reverse(t, root);

    return enif_make_tuple2(fair_env(t), enif_make_int(fair_env(t), proper),
                            fair_root_get(t, root));
}

static ERL_NIF_TERM string(fair_task *t)
{
    size_t n;
    char *chars;
    unsigned root = fair_root_new(t, fair_arg(t, 0));

    if (!fair_get_string(t, fair_arg(t, 0), &chars, &n, FAIR_LATIN1))
        return fair_badarg(t);
    CHECK(chars[n] == 0);
    fair_tick(t, 1);
    /* The author's roots are his, and all that there are. */
    CHECK(enif_is_identical(fair_root_get(t, root), fair_arg(t, 0)));
    CHECK_NUMBERS(fair_root_new(t, fair_arg(t, 0)), ==, root + 1);
    return enif_make_tuple2(fair_env(t), enif_make_uint64(fair_env(t), n),
                            n > 100 ? enif_make_int(fair_env(t), chars[100])
                            : enif_make_string_len(fair_env(t), chars, n,
                                                   ERL_NIF_LATIN1));
}

static enum fair_encoding encoding_of(fair_task *t, ERL_NIF_TERM term)
{
    int number;

    return fair_get_int(t, term, &number) && number == 1 ? FAIR_LATIN1
        : FAIR_UTF8;
}

/* text(List, Encoding) -> its bytes */
static ERL_NIF_TERM text(fair_task *t)
{
    char *chars;
    size_t n;

    if (!fair_get_string(t, fair_arg(t, 0), &chars, &n,
                         encoding_of(t, fair_arg(t, 1))))
        return fair_badarg(t);
    CHECK(chars[n] == 0);
    return enif_make_string_len(fair_env(t), chars, n, ERL_NIF_LATIN1);
}

/* name(Latin1, Size, Encoding): the bytes of that atom's name */
static ERL_NIF_TERM name(fair_task *t)
{
    char buf[64], *chars;
    unsigned size;
    size_t n;

    memset(buf, 0x5C, sizeof buf);
    if (!fair_get_string(t, fair_arg(t, 0), &chars, &n, FAIR_LATIN1)
        || !fair_get_uint(t, fair_arg(t, 1), &size) || size >= sizeof buf)
        return fair_badarg(t);
    n = (size_t)fair_get_atom(t, enif_make_atom_len(fair_env(t), chars, n), buf,
                              size, encoding_of(t, fair_arg(t, 2)));
    CHECK(buf[size] == 0x5C && (n || buf[0] == 0x5C));
    return n ? enif_make_string(fair_env(t), buf, ERL_NIF_LATIN1)
        : fair_badarg(t);
}

static ERL_NIF_TERM iolist(fair_task *t)
{
    fair_bytes bin;
    unsigned root = fair_root_new(t, fair_arg(t, 0));

    if (!fair_get_iolist(t, fair_arg(t, 0), &bin))
        return fair_badarg(t);
    fair_tick(t, 1);
    CHECK(enif_is_identical(fair_root_get(t, root), fair_arg(t, 0)));
    CHECK_NUMBERS(fair_root_new(t, fair_arg(t, 0)), ==, root + 1);
    if (bin.size > 1000)
        return enif_make_tuple2(fair_env(t),
                                enif_make_uint64(fair_env(t), bin.size),
                                enif_make_uint(fair_env(t),
                                               bin.data[bin.size - 1]));
    return fair_make_bytes(t, &bin);
}

static ERL_NIF_TERM binary(fair_task *t)
{
    fair_bytes bin;

    if (!fair_get_bytes(t, fair_arg(t, 0), &bin))
        return fair_badarg(t);
    return enif_make_tuple2(fair_env(t), enif_make_uint64(fair_env(t),
                                                          bin.size),
                            enif_make_uint(fair_env(t),
                                           bin.data[bin.size - 1]));
}

/* Roots that hold no list, or an empty one. */
static ERL_NIF_TERM odd_roots(fair_task *t)
{
    unsigned empty = fair_root_new(t, enif_make_list(fair_env(t), 0));
    unsigned other = fair_root_new(t, enif_make_int(fair_env(t), 7));
    ERL_NIF_TERM head;

    CHECK(!fair_list_next(t, empty, &head));
    CHECK(fair_list_reverse(t, empty));
    CHECK(enif_is_empty_list(fair_env(t), fair_root_get(t, empty)));
    CHECK(!fair_list_next(t, other, &head));
    CHECK(!fair_list_reverse(t, other));
    CHECK(enif_is_empty_list(fair_env(t), fair_root_get(t, other)));
    fair_list_push(t, other, fair_arg(t, 0));
    fair_tick(t, 1);
    fair_list_push(t, other, fair_arg(t, 0));
    return fair_root_get(t, other);
}

static ErlNifFunc nifs[] = {
    ALL_MODES("copy", 1, copy),
    ALL_MODES("length", 1, length),
    ALL_MODES("reverse", 1, reverse),
    ALL_MODES("string", 1, string),
    ALL_MODES("text", 2, text),
    ALL_MODES("name", 3, name),
    ALL_MODES("iolist", 1, iolist),
    ALL_MODES("binary", 1, binary),
    ALL_MODES("odd_roots", 1, odd_roots),
};
FAIR_NIF_INIT(test_list, nifs, NULL, NULL, NULL)

TEST(answers, "lists, strings and iolists of any shape are walked, built, reversed, "
     "measured and read, with a pause at each element, or refused")
{
    static const struct { const char *name, *arg, *should; } calls[] = {
        {"copy", "[]", "[]"},
        {"copy", "[1,{2},<<3>>,[4]]", "[1,{2},<<3>>,[4]]"},
        {"copy", "[1,2|three]", "{[1,2],three}"}, {"copy", "atom", "{[],atom}"},
        {"odd_roots", "<<1>>", "[<<1>>,<<1>>]"},
        {"reverse", "[]", "{1,[]}"}, {"reverse", "[a]", "{1,[a]}"},
        {"reverse", "[1,{2},[3]]", "{1,[[3],{2},1]}"},
        {"reverse", "[1,2|3]", "{0,[]}"}, {"reverse", "{}", "{0,[]}"},
        {"length", "[]", "0"}, {"length", "[a,b,c]", "3"},
        {"length", "[a,b|c]", NULL}, {"length", "<<>>", NULL},
        {"string", "[]", "{0,[]}"},
        {"string", "[0,255,128]", "{3,[0,255,128]}"},
        {"string", "[0,256]", NULL}, {"string", "[-1]", NULL},
        {"string", "[1|2]", NULL}, {"string", "[1.0]", NULL},
        {"string", "[[1]]", NULL}, {"string", "<<1>>", NULL},
        {"text", "[65,0,127],0", "[65,0,127]"},
        {"text", "[128,233,2047],0", "[194,128,195,169,223,191]"},
        {"text", "[2048,8364,65535],0",
         "[224,160,128,226,130,172,239,191,191]"},
        {"text", "[65536,1114111],0", "[240,144,128,128,244,143,191,191]"},
        {"text", "[55295,57344],0", "[237,159,191,238,128,128]"},
        {"text", "[55296],0", NULL}, {"text", "[65,57343],0", NULL},
        {"text", "[1114112],0", NULL}, {"text", "[4294967295],0", NULL},
        {"text", "[233,255],1", "[233,255]"}, {"text", "[256],1", NULL},
        {"name", "[97,98],3,0", "[97,98]"}, {"name", "[97,98],2,0", NULL},
        {"name", "[97,98],0,0", NULL}, {"name", "[],1,0", "[]"},
        {"name", "[233],2,1", "[233]"}, {"name", "[233],2,0", NULL},
        {"name", "[233],3,0", "[195,169]"},
        {"name", "[65,255,66,128],7,0", "[65,195,191,66,194,128]"},
        {"name", "[65,255,66,128],6,0", NULL},
        {"iolist", "<<1,2>>", "<<1,2>>"}, {"iolist", "[]", "<<>>"},
        {"iolist", "[[[]],[[[[]]]]]", "<<>>"},
        {"iolist", "[1,[2,[3,<<4,5>>],6],<<7>>|<<8>>]", "<<1,2,3,4,5,6,7,8>>"},
        {"iolist", "[<<1,2/3>>|<<3,4/7>>]", "<<1,2,3,4>>"},
        {"iolist", "[[<<>>|<<1>>]|<<>>]", "<<1>>"},
        {"iolist", "[[1|<<2>>],3]", "<<1,2,3>>"}, {"iolist", "[1|2]", NULL},
        {"iolist", "[[1|2],3]", NULL}, {"iolist", "[256]", NULL},
        {"iolist", "[a]", NULL}, {"iolist", "[<<1:3>>]", NULL},
        {"iolist", "[{}]", NULL}, {"iolist", "{}", NULL},
    };

    for (size_t i = 0; i < sizeof calls / sizeof *calls; i++)
        CHECK_EVERYWHERE(calls[i].name, calls[i].arg,
                         calls[i].should ? calls[i].should : "error:badarg");
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

TEST(long_lists, "a long list, string or iolist is walked, measured, reversed and "
     "read in slices")
{
    static const struct { const char *name, *tail, *should; } calls[] = {
        {"length_yielding", "[]", "200000"}, {"length_auto", "[]", "200000"},
        {"length_auto", "x", "error:badarg"}, {"reverse_auto", "x", "{0,[]}"},
        {"string_auto", "[]", "{200000,100}"},
        {"string_auto", "[a]", "error:badarg"},
        {"iolist_auto", "[]", "{200000,63}"},
        {"iolist_auto", "[a]", "error:badarg"},
    };

    for (size_t i = 0; i < sizeof calls / sizeof *calls; i++) {
        vm_proc *p = vm_spawn();

        CHECK_LONG(calls[i].name, p,
                   vm_byte_list(vm_env(p), LENGTH,
                                vm_parse(vm_env(p), calls[i].tail)),
                   calls[i].should);
    }
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

TEST(big_iolists, "an iolist of 64 MB in binaries is read in slices, as one of "
     "thousands of middling ones")
{
    static const struct { int size, count; const char *should; } parts[] = {
        {4 << 20, 16, "{67108864,5}"}, {16000, 2000, "{32000000,5}"}
    };

    for (int k = 0; k < 2; k++) {
        vm_proc *p = vm_spawn();
        unsigned char *bytes = calloc(1, (size_t)parts[k].size);
        vm_term part, list = VM_NIL;

        bytes[parts[k].size - 1] = 5;
        part = vm_binary(vm_env(p), bytes, (size_t)parts[k].size);
        for (int i = 0; i < parts[k].count; i++)
            list = enif_make_list_cell(vm_env(p), part, list);
        CHECK_LONG("iolist_auto", p, list, parts[k].should);
        free(bytes);
    }
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
