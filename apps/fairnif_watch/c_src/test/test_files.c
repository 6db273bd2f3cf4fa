/*
 * test_files.c - libraries with any bytes in them, in memory and as files: no
 * read outside, and an end.
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <elf.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include "unwind/niftable.h"
#include "unwind/symbol.h"
#include "check.h"

enum { SIZE_MOST = 1 << 20 };
#define SLOW_NS UINT64_C(5000000000)    /* one look, on a busy machine */

static uint32_t dice(uint32_t sides)
{
    static uint64_t state = 42;

    state = state * 6364136223846793005u + 1442695040888963407u;
    return (uint32_t)(state >> 33) % sides;
}

/* Mostly where the tables are, and numbers that are at an end of something. */
static void spoil(unsigned char *bytes, size_t size, size_t tables)
{
    static const uint64_t ends[] = {
        0, 1, UINT64_MAX, UINT64_MAX - 7, INT64_MAX, UINT32_MAX, INT32_MAX,
        0x80000000u, 1 << 20, 4096
    };

    for (uint32_t k = dice(6) + 1; k > 0; k--) {
        size_t at = dice(3) ? dice((uint32_t)tables) : dice((uint32_t)size - 8);
        uint64_t end = ends[dice(sizeof ends / sizeof *ends)];

        if (dice(2))
            bytes[at] = (unsigned char)dice(256);
        else
            memcpy(bytes + at, &end, dice(2) ? 4 : 8);
    }
}

static uint64_t slowest(uint64_t since, uint64_t so_far)
{
    uint64_t took = watch__now() - since;

    return took > so_far ? took : so_far;
}

static struct watch__image *find_image(struct watch__maps *maps,
                                       const char *library)
{
    for (int i = 0; i < WATCH__IMAGES; i++)
        if (maps->image[i].serial && maps->image[i].path
            && strstr(maps->image[i].path, library)) {
            watch__image_load(&maps->image[i]);
            return &maps->image[i];
        }
    return NULL;
}

/* -- in memory ----------------------------------------------------------- */

/* As it lies in memory, but with addresses as in the file: so it may lie
 * anywhere. */
static size_t copy_library(const char *library, unsigned char *to,
                           struct watch__image *image, size_t *dynamic)
{
    void *loaded = dlopen(check_file(library), RTLD_NOW);
    struct watch__maps *maps = watch__maps_new();
    size_t size;

    CHECK(loaded != NULL);
    *image = *find_image(maps, library);
    size = (size_t)(image->high - image->low);
    CHECK_NUMBERS(size, <, SIZE_MOST);
    for (size_t at = 0; at < size; at += 8)
        watch__read(to + at, image->low + at, 8);
    for (size_t at = 0; at + 8 <= size; at += 8) {
        uint64_t word;

        memcpy(&word, to + at, 8);
        if (word >= image->low && word < image->high)
            word -= image->bias;
        memcpy(to + at, &word, 8);
    }
    *dynamic = (size_t)(image->dynamic - image->low);
    watch__maps_free(maps);
    dlclose(loaded);
    return size;
}

static unsigned look(struct watch__maps *maps, uint64_t start, size_t size)
{
    struct watch__image image = {.serial = 1, .start = start};
    struct watch__frame frame = {0};
    unsigned rows = 0;

    watch__image_load(&image);
    if (image.state != IMAGE_GOOD)
        return 0;
    for (int i = 0; i < 8; i++) {
        const struct watch__row *row;

        image.serial++;
        frame.offset = dice((uint32_t)size);
        row = watch__row_of(maps, &image, image.bias + frame.offset);
        rows += row != NULL;
        frame.start = row ? row->start : 0;
        watch__symbol_of(&image, frame.offset, &frame);
        watch__nif_of(maps, &image, &frame);
    }
    watch__image_same(&image);
    return rows;
}

TEST(memory_storm, "no bytes in a library's memory do harm")
{
    static unsigned char whole[SIZE_MOST];
    struct watch__maps *maps = watch__maps_new();
    struct watch__image image;
    size_t dynamic, size = copy_library("chain_nifs.so", whole, &image,
                                        &dynamic);
    size_t room = (size + 8191) & ~(size_t)4095;
    unsigned char *copy = mmap(NULL, room, PROT_READ | PROT_WRITE,
                               MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    int count = (int)(6000 * check_storm());
    uint64_t slow = 0;
    unsigned rows = 0;

    for (int i = 0; i < count; i++) {
        uint64_t since = watch__now();

        memcpy(copy, whole, size);
        if (dice(2))
            spoil(copy, size, 0x600);
        else
            spoil(copy + dynamic, size - dynamic, 0x200);
        rows += look(maps, (uint64_t)(uintptr_t)copy, size);
        slow = slowest(since, slow);
    }
    CHECK_NUMBERS(rows, >, count / 100);
    CHECK_NUMBERS(slow, <, SLOW_NS);
    munmap(copy, room);
    watch__maps_free(maps);
}

/* -- as a file ----------------------------------------------------------- */

TEST(file_storm, "no bytes in a library's file do harm")
{
    static unsigned char whole[SIZE_MOST], bytes[SIZE_MOST];
    char path[] = "/tmp/watch_files_XXXXXX";
    int fd = open(check_file("chain_nofp.so"), O_RDONLY), to = mkstemp(path);
    ssize_t size = read(fd, whole, sizeof whole);
    int count = (int)(6000 * check_storm()), named = 0;
    uint64_t slow = 0;
    Elf64_Ehdr h;

    CHECK_NUMBERS(size, >, sizeof h);
    memcpy(&h, whole, sizeof h);
    for (int i = 0; i < count; i++) {
        struct watch__frame frame = {.offset = 0x1000 + dice(0x800)};
        struct watch__image image = {.serial = 1, .path = path};
        size_t cut = dice(8) ? (size_t)size : dice((uint32_t)size);
        uint64_t since = watch__now();
        struct stat st;

        memcpy(bytes, whole, (size_t)size);
        if (dice(2))            /* the table of sections, at the end */
            spoil(bytes + h.e_shoff, (size_t)size - h.e_shoff,
                  (size_t)size - h.e_shoff - 8);
        else
            spoil(bytes, (size_t)size, sizeof h);
        CHECK_NUMBERS(pwrite(to, bytes, cut, 0), ==, cut);
        CHECK_NUMBERS(ftruncate(to, (off_t)cut), ==, 0);
        fstat(to, &st);
        image.ino = st.st_ino;
        image.dev = (uint64_t)major(st.st_dev) << 32 | minor(st.st_dev);
        named += watch__symbol_of(&image, frame.offset, &frame);
        slow = slowest(since, slow);
    }
    CHECK_NUMBERS(named, >, count / 100);
    CHECK_NUMBERS(slow, <, SLOW_NS);
    unlink(path);
}
