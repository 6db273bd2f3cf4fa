/*
 * test_memory.c - reading memory that is not there.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "check.h"

enum { PAGES = 40 };

static void check_edges(void)
{
    size_t page = (size_t)sysconf(_SC_PAGESIZE);
    static unsigned char to[PAGES * 65536];
    unsigned char *map = mmap(NULL, PAGES * page, PROT_READ | PROT_WRITE,
                              MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

    for (size_t i = 0; i < PAGES * page; i++)
        map[i] = (unsigned char)(i * 7 / 3);
    munmap(map + 30 * page, 10 * page);
    for (size_t from = 0; from < 31 * page; from += 997)
        for (size_t size = 1; size < 12 * page; size = size * 3 + 1) {
            size_t left = from < 30 * page ? 30 * page - from : 0;
            size_t should = size < left ? size : left;

            errno = 17;
            CHECK_NUMBERS(watch__read(to, (uintptr_t)map + from, size), ==,
                          should);
            CHECK_NUMBERS(errno, ==, 17);
            CHECK(!memcmp(to, map + from, should));
        }
    CHECK_NUMBERS(watch__read(to, 0, 100), ==, 0);
    CHECK_NUMBERS(watch__read(to, UINT64_MAX - 10, 100), ==, 0);
    CHECK_NUMBERS(watch__read(to, UINT64_MAX / 2, 100), ==, 0);
    munmap(map, 30 * page);
}

TEST(edges, "what is mapped is read, up to where nothing is")
{
    check_edges();
}

TEST(refused, "where process_vm_readv is refused /proc/self/mem serves")
{
    unsigned char byte;

    watch__read_stop();
    watch__read_refuse(true);
    CHECK_NUMBERS(watch__read(&byte, (uintptr_t)&check_edges, 1), ==, 0);
    watch__read_start();
    CHECK_NUMBERS(watch__read(&byte, (uintptr_t)&check_edges, 1), ==, 1);
    check_edges();
    watch__read_stop();
}
