/*
 * test_maps.c - what is mapped: which of it is kept, and whose it is.
 */
#define _GNU_SOURCE
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "check.h"

static struct watch__image *image_of(struct watch__maps *maps,
                                     const void *address)
{
    uint64_t pc = (uint64_t)(uintptr_t)address;

    return watch__image_of(maps, watch__map_of(maps, pc));
}

static enum watch__in in(struct watch__maps *maps, const void *address)
{
    struct watch__image *image = image_of(maps, address);

    return image ? image->in : IN_UNKNOWN;
}

TEST(files, "a thousand mapped files of data are not kept")
{
    enum { FILES = 1000, SIZE = 4096 };
    char dir[] = "/tmp/watch_maps_XXXXXX", path[sizeof dir + 16];
    struct watch__maps *maps = watch__maps_new();
    unsigned before = maps->count;

    CHECK(mkdtemp(dir) != NULL);
    for (int i = 0; i < FILES; i++) {
        void *p;
        int fd;

        snprintf(path, sizeof path, "%s/%d", dir, i);
        fd = open(path, O_RDWR | O_CREAT, 0600);
        CHECK_NUMBERS(ftruncate(fd, SIZE), ==, 0);
        p = mmap(NULL, SIZE, PROT_READ, MAP_SHARED, fd, 0);
        CHECK(p != MAP_FAILED);
        close(fd);
        unlink(path);
    }
    rmdir(dir);
    watch__maps_changed(maps);
    CHECK_NUMBERS(maps->count, <=, before + 10);
    CHECK_NUMBERS(in(maps, (void *)(uintptr_t)in), !=, IN_UNKNOWN);
    CHECK_NUMBERS(in(maps, (void *)(uintptr_t)read), !=, IN_UNKNOWN);
    watch__maps_free(maps);
}

/* As lld links: headers and code of a small library are in one page of the file. */
TEST(small, "code in a file's first page belongs to the headers mapped before it")
{
    enum { PAGE = 4096 };
    struct watch__maps *maps;
    int fd = open("/proc/self/exe", O_RDONLY);
    char *headers = mmap(NULL, 2 * PAGE, PROT_READ, MAP_PRIVATE, fd, 0);
    struct watch__image *image;

    CHECK(headers != MAP_FAILED);
    CHECK(mmap(headers + PAGE, PAGE, PROT_READ | PROT_EXEC,
               MAP_PRIVATE | MAP_FIXED, fd, 0) != MAP_FAILED);
    close(fd);
    maps = watch__maps_new();
    image = image_of(maps, headers + PAGE);
    CHECK(image && image->start == (uintptr_t)headers);
    watch__maps_free(maps);
    munmap(headers, 2 * PAGE);
}

/* In a copy of this program, which removes itself. */
static void check_gone(void)
{
    struct watch__maps *maps;
    char exe[1024] = "";

    CHECK(readlink("/proc/self/exe", exe, sizeof exe - 1) > 0);
    CHECK_NUMBERS(unlink(exe), ==, 0);
    maps = watch__maps_new();
    CHECK(image_of(maps, (void *)(uintptr_t)check_gone)->deleted);
    CHECK_NUMBERS(in(maps, (void *)(uintptr_t)check_gone), ==, IN_EMULATOR);
    watch__maps_free(maps);
}

TEST(emulator_gone, "the emulator is known after its file was replaced")
{
    char command[4096];
    int status;

    if (getenv("WATCH_GONE")) {
        check_gone();
        return;
    }
    snprintf(command, sizeof command, "d=$(mktemp -d) && cp %s $d/t && "
             "WATCH_GONE=1 $d/t 'emulator is known' >&2; s=$?; rm -r $d; "
             "exit $s", check_file("watch_test"));
    status = system(command);
    CHECK(WIFEXITED(status));
    CHECK_NUMBERS(WEXITSTATUS(status), ==, 0);
}
