/*
 * test_name.c - what frames are called: by the table of NIFs, by the symbol that
 * covers them, or not at all.
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "check.h"
#include "thread.h"

static struct watch__snapshot snapshot;
static struct watch__frame frames[WATCH__FRAMES];

/* All frames of a thread in the library's chain, named.  It may be just in a
 * jump of the linker's, which on AArch64 has no table. */
static unsigned named(struct watch__maps *maps, struct runner *r)
{
    struct watch__regs last;
    enum watch__end end = END_NO_TABLE;
    unsigned n = 0;

    for (int i = 0; i < 100 && end == END_NO_TABLE; i++) {
        CHECK_NUMBERS(take(&snapshot, r), ==, TAKEN);
        n = watch__unwind(maps, &snapshot, frames, WATCH__FRAMES, &end, &last);
    }
    CHECK_NUMBERS(end, ==, END_WHOLE);
    for (unsigned i = 0; i < n; i++)
        watch__name(maps, &frames[i]);
    return n;
}

static const struct watch__frame *called(unsigned n, const char *symbol)
{
    static const struct watch__frame none;

    for (unsigned i = 0; i < n; i++)
        if (!strcmp(frames[i].symbol, symbol))
            return &frames[i];
    check_that(false, __FILE__, __LINE__, "%s is among the frames", symbol);
    return &none;
}

static unsigned of_library(unsigned n, const char *library)
{
    unsigned count = 0;

    for (unsigned i = 0; i < n; i++)
        count += frames[i].library && strstr(frames[i].library, library);
    return count;
}

TEST(symtab, "static functions are named by the symbols in the file")
{
    struct watch__maps *maps = watch__maps_new();
    struct runner r = {.chain = {.yields = true}};
    static const char *const chain[] = {
        "wait_here", "chain_inner", "chain_middle", "chain_aligned",
        "chain_outer"
    };

    CHECK_NUMBERS(watch__stack_start(true), ==, 0);
    runner_start(&r, "chain_nofp.so");
    for (int again = 0; again < 2; again++) {
        unsigned n = named(maps, &r);

        for (unsigned i = 0; i < 5; i++) {
            const struct watch__frame *f = called(n, chain[i]);

            CHECK_NUMBERS(f->named, ==, NAMED_SYMTAB);
            CHECK_NUMBERS(f->in, ==, IN_LIBRARY);
            CHECK_NUMBERS(f->symbol_offset, >, 0);
            CHECK_NUMBERS(f->symbol_offset, <=, f->symbol_size);
            CHECK_NUMBERS(f->pc - f->symbol_offset, ==, f->start);
            CHECK_TEXT(f->module, "");
        }
    }
    runner_stop(&r);
    CHECK(watch__stack_stop());
    watch__maps_free(maps);
}

TEST(stripped, "in a stripped library only what it exports is named, and never "
     "by the nearest symbol")
{
    struct watch__maps *maps = watch__maps_new();
    struct runner r = {.chain = {.yields = true}};
    unsigned n, without = 0;

    CHECK_NUMBERS(watch__stack_start(true), ==, 0);
    runner_start(&r, "chain_stripped.so");
    n = named(maps, &r);
    CHECK_NUMBERS(called(n, "chain_outer")->named, ==, NAMED_DYNSYM);
    CHECK_NUMBERS(of_library(n, "chain_stripped.so"), ==, 5);
    for (unsigned i = 0; i < n; i++)
        if (frames[i].library && strstr(frames[i].library, "stripped")
            && strcmp(frames[i].symbol, "chain_outer")) {
            CHECK_TEXT(frames[i].symbol, "");
            CHECK_NUMBERS(frames[i].named, ==, NAMED_NOT);
            CHECK_NUMBERS(frames[i].offset, >, 0);
            CHECK_NUMBERS(frames[i].offset, <, 1 << 20);
            without++;
        }
    CHECK_NUMBERS(without, ==, 4);
    runner_stop(&r);
    CHECK(watch__stack_stop());
    watch__maps_free(maps);
}

TEST(replaced, "a file that is not the one that is mapped gives no names")
{
    char copy[1300], command[3000];
    struct watch__maps *maps = watch__maps_new();
    struct runner r = {.chain = {.yields = true}};
    unsigned n;

    snprintf(copy, sizeof copy, "%s", check_file("chain_gone.so"));
    snprintf(command, sizeof command, "cp '%s' '%s'",
             check_file("chain_nofp.so"), copy);
    CHECK_NUMBERS(system(command), ==, 0);
    CHECK_NUMBERS(watch__stack_start(true), ==, 0);
    runner_start(&r, "chain_gone.so");
    /* Another one is there now. */
    snprintf(command, sizeof command, "rm '%s' && cp '%s' '%s'", copy,
             check_file("chain_os.so"), copy);
    CHECK_NUMBERS(system(command), ==, 0);
    n = named(maps, &r);
    CHECK_NUMBERS(of_library(n, "chain_gone.so"), ==, 5);
    CHECK_NUMBERS(called(n, "chain_outer")->named, ==, NAMED_DYNSYM);
    for (unsigned i = 0; i < n; i++)
        CHECK(strcmp(frames[i].symbol, "chain_inner"));
    runner_stop(&r);
    unlink(copy);
    CHECK(watch__stack_stop());
    watch__maps_free(maps);
}

static void check_nifs(const char *library)
{
    struct watch__maps *maps = watch__maps_new();
    struct runner r = {.chain = {.yields = true}, .nif = "climb"};
    unsigned n, found = 0;

    CHECK_NUMBERS(watch__stack_start(true), ==, 0);
    runner_start(&r, library);
    n = named(maps, &r);
    CHECK_NUMBERS(of_library(n, library), ==, 7);
    for (unsigned i = 0; i < n; i++) {
        if (!frames[i].library || !strstr(frames[i].library, "chain_nifs"))
            continue;
        CHECK_TEXT(frames[i].module, "mountain");
        if (frames[i].named != NAMED_NIF_TABLE)
            continue;
        CHECK_TEXT(frames[i].function, "climb");
        CHECK_NUMBERS(frames[i].arity, ==, 3);
        found++;
    }
    CHECK_NUMBERS(found, ==, 1);
    runner_stop(&r);
    CHECK(watch__stack_stop());
    watch__maps_free(maps);
}

TEST(nifs, "a stripped NIF library tells module, function and arity, by the "
     "table that its entry points to")
{
    check_nifs("chain_nifs.so");
}

TEST(nifs_made, "also where that table is made when it is loaded")
{
    check_nifs("chain_nifs3.so");
}

/* The one frame that is a callback, and whose. */
static void check_callback(const char *library, const char *callback,
                           const char *module, const char *driver)
{
    struct watch__maps *maps = watch__maps_new();
    struct runner r = {.chain = {.yields = true}, .nif = "climb"};
    unsigned n, found = 0;

    CHECK_NUMBERS(watch__stack_start(true), ==, 0);
    runner_start(&r, library);
    n = named(maps, &r);
    for (unsigned i = 0; i < n; i++) {
        if (!frames[i].callback)
            continue;
        CHECK_TEXT(frames[i].callback, callback);
        CHECK_TEXT(frames[i].module, module);
        CHECK_TEXT(frames[i].driver, driver);
        CHECK_TEXT(frames[i].function, "");
        CHECK_NUMBERS(frames[i].named, ==, NAMED_NIF_TABLE);
        found++;
    }
    CHECK_NUMBERS(found, ==, 1);
    runner_stop(&r);
    CHECK(watch__stack_stop());
    watch__maps_free(maps);
}

TEST(callbacks, "a callback of a stripped library, or of a port driver, is told by "
     "the entry that has it")
{
    check_callback("chain_nifs4.so", "load", "mountain", "");
    check_callback("chain_nifs5.so", "output", "", "mountain_drv");
}

/* The loader often puts the second where the first one was. */
TEST(one_after_other, "a library in another one's place is not taken for it")
{
    static const char *const library[] = {"chain_nifs.so", "chain_nifs2.so"};
    static const char *const name[] = {"climb", "crawl"};
    struct watch__maps *maps = watch__maps_new();
    uint64_t places[2] = {0};

    CHECK_NUMBERS(watch__stack_start(true), ==, 0);
    for (unsigned i = 0; i < 40; i++) {
        struct runner r = {.chain = {.yields = true}, .nif = "climb"};
        unsigned n, found = 0;

        runner_start(&r, library[i % 2]);
        n = named(maps, &r);
        for (unsigned k = 0; k < n; k++)
            if (frames[k].function[0]) {
                CHECK_TEXT(frames[k].function, name[i % 2]);
                CHECK(strstr(frames[k].library, library[i % 2]));
                places[i % 2] = frames[k].pc - frames[k].offset;
                found++;
            }
        CHECK_NUMBERS(found, ==, 1);
        runner_stop(&r);
    }
    CHECK(check_emulated() || places[0] == places[1]);
    CHECK(watch__stack_stop());
    watch__maps_free(maps);
}
