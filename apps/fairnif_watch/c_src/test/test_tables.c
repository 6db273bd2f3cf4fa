/*
 * test_tables.c - unwind tables that are broken, and the machines that run
 * them: nothing crashes, nothing goes on for ever, nothing is read out of
 * bounds (the sanitizers look).
 */
#define _GNU_SOURCE
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "unwind/expression.h"
#include "check.h"
#include "thread.h"

static struct watch__snapshot snapshot;
static struct watch__frame frames[WATCH__FRAMES];

static uint32_t random_state = 4711;

static uint32_t dice(uint32_t sides)
{
    random_state = random_state * 1664525 + 1013904223;
    return (uint32_t)((uint64_t)random_state * sides >> 32);
}

/* -- expressions --------------------------------------------------------- */

static bool evaluate(const unsigned char *bytes, size_t size, uint64_t *result)
{
    struct watch__regs regs = {.known = 1 << 3 | 1 << 6};
    struct watch__rule rule = {
        .size = (uint16_t)size, .n = (int64_t)(uintptr_t)bytes
    };
    uint64_t cfa = 1000;

    regs.value[3] = 33;
    regs.value[6] = snapshot.regs.sp + 8;
    return watch__expression(&snapshot, &regs, &rule, &cfa, result);
}

#define EXPRESSION(SHOULD, ...)                                             \
    do {                                                                    \
        static const unsigned char bytes__[] = {__VA_ARGS__};               \
        uint64_t is__ = 0;                                                  \
        CHECK(evaluate(bytes__, sizeof bytes__, &is__));                    \
        CHECK_NUMBERS(is__, ==, SHOULD);                                    \
    } while (0)
#define REFUSED(...)                                                        \
    do {                                                                    \
        static const unsigned char bytes__[] = {__VA_ARGS__};               \
        uint64_t is__ = 0;                                                  \
        CHECK(!evaluate(bytes__, sizeof bytes__, &is__));                   \
    } while (0)

static void put_stack(void)
{
    uint64_t words[2] = {7, UINT64_C(0xfedcba9876543210)};

    snapshot.from = snapshot.regs.sp = 1 << 20;
    snapshot.size = sizeof words;
    memcpy(snapshot.stack, words, sizeof words);
}

TEST(expressions, "DWARF's expressions give what the standard says")
{
    put_stack();
    EXPRESSION(1000, 0x96);                             /* nop: the CFA */
    EXPRESSION(5, 0x35);                                /* lit5 */
    EXPRESSION(-2, 0x09, 0xfe);                         /* const1s */
    EXPRESSION(0x1234, 0x0a, 0x34, 0x12);               /* const2u */
    EXPRESSION(-3, 0x11, 0x7d);                         /* consts */
    EXPRESSION(300, 0x10, 0xac, 0x02);                  /* constu */
    EXPRESSION(30, 0x73, 0x7d);                         /* breg3 -3 */
    EXPRESSION(34, 0x92, 0x03, 0x01);                   /* bregx 3, 1 */
    EXPRESSION(0xfedcba9876543210, 0x76, 0x00, 0x06);   /* breg6 0; deref */
    EXPRESSION(7, 0x76, 0x78, 0x06);                    /* breg6 -8; deref */
    EXPRESSION(0x3210, 0x76, 0x00, 0x94, 0x02);         /* deref_size 2 */
    EXPRESSION(1007, 0x23, 0x07);                       /* plus_uconst 7 */
    EXPRESSION(2, 0x35, 0x33, 0x1c);                    /* 5 - 3 */
    EXPRESSION(-3, 0x09, 0xf9, 0x32, 0x1b);             /* -7 / 2 */
    EXPRESSION(1, 0x37, 0x32, 0x1d);                    /* 7 % 2 */
    EXPRESSION(-2, 0x09, 0xf8, 0x32, 0x26);             /* -8 shra 2 */
    EXPRESSION(20, 0x35, 0x32, 0x24);                   /* 5 << 2 */
    EXPRESSION(1, 0x09, 0xff, 0x31, 0x2d);              /* -1 < 1 */
    EXPRESSION(5, 0x34, 0x35, 0x16, 0x13, 0x12, 0x13);  /* swap drop dup drop */
    EXPRESSION(9, 0x39, 0x31, 0x28, 0x01, 0x00, 0x30);  /* bra over lit0 */
    EXPRESSION(8, 0x38, 0x2f, 0x01, 0x00, 0x30);        /* skip over lit0 */
    EXPRESSION(1, 0x31, 0x32, 0x33, 0x17, 0x13);        /* rot: 3 1 2; drop */
    EXPRESSION(7, 0x37, 0x38, 0x14, 0x16, 0x13, 0x16, 0x13);
    /* What a PLT's table says: rsp + 8 + (pc & 15 >= 11) << 3. */
    EXPRESSION(41, 0x73, 0x08, 0x3d, 0x3f, 0x1a, 0x3b, 0x2a, 0x33, 0x24, 0x22,
               0x38, 0x1c);
}

TEST(refusals, "an expression that is broken, or needs what is not known, has "
     "no value")
{
    put_stack();
    REFUSED(0x13, 0x13);                        /* drop: there is one */
    REFUSED(0x22);                              /* plus: so */
    REFUSED(0x70, 0x00);                        /* breg0: not known */
    REFUSED(0x92, 0xff, 0x7f, 0x00);            /* bregx: no such one */
    REFUSED(0x30, 0x06);                        /* deref 0 */
    REFUSED(0x76, 0x0c, 0x06);                  /* deref: beyond the copy */
    REFUSED(0x73, 0x00, 0x94, 0x03);            /* deref_size 3 */
    REFUSED(0x31, 0x30, 0x1b);                  /* 1 / 0 */
    REFUSED(0x31, 0x30, 0x1d);                  /* 1 % 0 */
    REFUSED(0x31, 0x3f, 0x24, 0x13, 0x13);
    REFUSED(0x2f, 0xfd, 0xff);                  /* skip: for ever */
    REFUSED(0x2f, 0x10, 0x00);                  /* skip: out of it */
    REFUSED(0x2f, 0x00, 0x80);
    REFUSED(0x12, 0x2f, 0xfc, 0xff);            /* dup for ever */
    REFUSED(0x0c, 0x01);                        /* cut short */
    REFUSED(0x10, 0x80);
    REFUSED(0xe0);                              /* unknown */
}

TEST(expression_storm, "no bytes as an expression do harm")
{
    int count = (int)(300000 * check_storm()), valued = 0;

    put_stack();
    for (int i = 0; i < count; i++) {
        unsigned char bytes[24];
        size_t size = dice(sizeof bytes + 1);
        uint64_t result;

        for (size_t k = 0; k < size; k++)
            bytes[k] = (unsigned char)(dice(3) ? 0x06 + dice(0x92) : dice(256));
        valued += evaluate(bytes, size, &result);
    }
    CHECK_NUMBERS(valued, >, count / 1000);
}

/* -- tables -------------------------------------------------------------- */

static struct watch__image *chain_image(struct watch__maps *maps)
{
    for (int i = 0; i < WATCH__IMAGES; i++)
        if (maps->image[i].serial && maps->image[i].path
            && strstr(maps->image[i].path, "chain_")
            && maps->image[i].state == IMAGE_GOOD)
            return &maps->image[i];
    return NULL;
}

/* Of the library's header of tables and the tables, which follow it; the code
 * may be in the same pages. */
static unsigned char *open_tables(struct watch__image *image, size_t *size)
{
    size_t page = (size_t)sysconf(_SC_PAGESIZE);
    uint64_t from = image->frame_hdr & -page;
    uint64_t to = image->high;

    for (unsigned i = 0; i < image->data_count; i++)
        if (image->data[i].start > from && image->data[i].start < to)
            to = image->data[i].start & -page;
    CHECK_NUMBERS(mprotect((void *)(uintptr_t)from, to - from,
                           PROT_READ | PROT_WRITE | PROT_EXEC), ==, 0);
    /* What is in use of them, more or less. */
    *size = image->frame_hdr_size + 900;
    return (unsigned char *)(uintptr_t)image->frame_hdr;
}

static void forget_rows(struct watch__maps *maps, struct watch__image *image)
{
    memset(maps->rows, 0, sizeof maps->rows);
    image->state = IMAGE_NEW;
}

static void storm(const char *library, bool stack_too, bool sleeps)
{
    struct runner r = {.chain = {.yields = !sleeps, .sleeps = sleeps}};
    struct watch__maps *maps;
    struct watch__snapshot whole;
    unsigned char before[8192], *tables;
    struct watch__image *image;
    struct watch__regs last;
    enum watch__end end;
    size_t size;
    int count = (int)(20000 * check_storm()), whole_ones = 0;

    CHECK_NUMBERS(watch__stack_start(true), ==, 0);
    runner_start(&r, library);
    CHECK_NUMBERS(take(&whole, &r), ==, TAKEN);
    maps = watch__maps_new();
    watch__unwind(maps, &whole, frames, WATCH__FRAMES, &end, &last);
    CHECK_NUMBERS(end, ==, END_WHOLE);
    image = chain_image(maps);
    tables = open_tables(image, &size);
    memcpy(before, tables, size);
    for (int i = 0; i < count; i++) {
        unsigned n;

        snapshot = whole;
        for (uint32_t k = dice(4) + 1; k > 0; k--) {
            tables[dice((uint32_t)size)] = (unsigned char)dice(256);
            if (stack_too)
                snapshot.stack[dice((uint32_t)snapshot.size)] =
                    (unsigned char)dice(256);
        }
        forget_rows(maps, image);
        n = watch__unwind(maps, &snapshot, frames, WATCH__FRAMES, &end, &last);
        CHECK_NUMBERS(n, >, 0);
        CHECK_NUMBERS(n, <=, WATCH__FRAMES);
        whole_ones += end == END_WHOLE;
        memcpy(tables, before, size);
    }
    /* Most bytes matter to other functions only. */
    CHECK_NUMBERS(whole_ones, >, count / 100);
    CHECK_NUMBERS(whole_ones, <, count);
    forget_rows(maps, image);
    watch__unwind(maps, &whole, frames, WATCH__FRAMES, &end, &last);
    CHECK_NUMBERS(end, ==, END_WHOLE);
    CHECK(watch__stack_stop());
    watch__maps_free(maps);
    runner_stop(&r);
}

TEST(table_storm, "no bytes in a library's unwind tables do harm")
{
    storm("chain_nofp.so", false, false);
    storm("chain_fp.so", false, false);
}

TEST(stack_storm, "nor together with any bytes on the stack")
{
    storm("chain_o0.so", true, false);
    if (!check_emulated())
        storm("chain_fp.so", true, true);
}
