/*
 * test_destructor.c - the VM's ring of resource types, as it might be made, and
 * while it changes.
 */
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "unwind/destructor.h"
#include "check.h"

/* Not the VM's: what is learned must not depend on it. */
struct type {
    struct type *next, *previous;
    void *owner;
    uint64_t more[3], destructor, down;
    uint64_t count, module, name;
};

enum { OURS = 0x1000, THEIRS = 0x2000, MODULE = 0x10b, NAME = 0x20b };

static void link_types(struct type *types, unsigned n)
{
    for (unsigned i = 0; i < n; i++) {
        types[i].next = &types[(i + 1) % n];
        types[i].previous = &types[(i + n - 1) % n];
        types[i].destructor = i == 0 ? OURS : THEIRS + i;
        types[i].module = MODULE + 0x40 * i;
        types[i].name = NAME + 0x40 * i;
    }
}

static struct watch__types learned(const struct type *own)
{
    struct watch__types t;

    watch__types_learn(&t, own, OURS, MODULE, NAME);
    return t;
}

TEST(types, "of our own type it is learned how types are made, and others are "
     "found by their destructor")
{
    struct type types[5] = {{0}};
    struct watch__types t;
    ERL_NIF_TERM module, name;

    link_types(types, 5);
    t = learned(&types[0]);
    CHECK_NUMBERS(t.own, ==, (uintptr_t)&types[0]);
    for (unsigned i = 1; i < 5; i++) {
        module = name = 0;
        CHECK(watch__type_of(&t, THEIRS + i, &module, &name));
        CHECK_NUMBERS(module, ==, MODULE + 0x40 * i);
        CHECK_NUMBERS(name, ==, NAME + 0x40 * i);
    }
    CHECK(watch__type_of(&t, OURS, &module, &name));
    CHECK(!watch__type_of(&t, THEIRS + 5, &module, &name));
    CHECK(!watch__type_of(&t, 0, &module, &name));
}

TEST(not_learned, "where ours is in no ring, or not as expected, nothing is said")
{
    struct type types[3] = {{0}};
    struct watch__types t = learned(&types[0]);
    ERL_NIF_TERM module, name;

    CHECK_NUMBERS(t.own, ==, 0);
    CHECK(!watch__type_of(&t, THEIRS + 1, &module, &name));
    link_types(types, 3);
    types[0].destructor++;
    t = learned(&types[0]);
    CHECK_NUMBERS(t.own, ==, 0);
    t = learned(NULL);
    CHECK_NUMBERS(t.own, ==, 0);
}

TEST(shared, "a destructor of several types tells none of them")
{
    struct type types[5] = {{0}};
    struct watch__types t;
    ERL_NIF_TERM module, name;

    link_types(types, 5);
    t = learned(&types[0]);
    types[4].destructor = THEIRS + 2;
    CHECK(watch__type_of(&t, THEIRS + 2, &module, &name) && name == 0);
    CHECK(watch__type_of(&t, THEIRS + 3, &module, &name) && name != 0);
    /* One that is gone is none. */
    types[3].next = &types[0];
    types[0].previous = &types[3];
    CHECK(watch__type_of(&t, THEIRS + 2, &module, &name) && name != 0);
}

TEST(unlinked, "a type that its neighbours do not know, since it goes just now, is "
     "none")
{
    struct type types[4] = {{0}};
    struct watch__types t;
    ERL_NIF_TERM module, name;

    link_types(types, 4);
    t = learned(&types[0]);
    types[3].next = &types[1];
    CHECK(!watch__type_of(&t, THEIRS + 3, &module, &name));
    CHECK(watch__type_of(&t, THEIRS + 2, &module, &name));
}

TEST(bad_ring, "a ring that leads nowhere, or in a circle without ours, ends")
{
    struct type types[4] = {{0}};
    size_t page = (size_t)sysconf(_SC_PAGESIZE);
    struct watch__types t;
    ERL_NIF_TERM module, name;
    char *gone;

    link_types(types, 4);
    t = learned(&types[0]);
    types[3].next = &types[1];
    CHECK(!watch__type_of(&t, 1, &module, &name));
    gone = mmap(NULL, 2 * page, PROT_READ | PROT_WRITE,
                MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    munmap(gone + page, page);
    types[2].next = (struct type *)(void *)(gone + page);
    CHECK(!watch__type_of(&t, THEIRS + 3, &module, &name));
    types[2].next = (struct type *)(void *)((char *)&types[3] + 1);
    CHECK(!watch__type_of(&t, THEIRS + 3, &module, &name));
    /* One that ends where its page does. */
    types[2].next = (struct type *)(void *)(gone + page) - 1;
    *types[2].next = types[3];
    types[2].next->previous = &types[2];
    types[0].previous = types[2].next;
    types[2].next->next = &types[0];
    CHECK(watch__type_of(&t, THEIRS + 3, &module, &name));
    munmap(gone, page);
    CHECK(!watch__type_of(&t, THEIRS + 3, &module, &name));
}
