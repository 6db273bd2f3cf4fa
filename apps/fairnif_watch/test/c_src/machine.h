/*
 * machine.h - blocks the thread in machine code that belongs to no file, as
 * libraries with a compiler do (LuaJIT, XLA).
 */
#ifndef MACHINE_H
#define MACHINE_H

#include <errno.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

/* Counts down its argument.  The second one also loses the register in which the
 * emulator has its process, while it does. */
#if defined(__x86_64__)
static const unsigned char machine_counts[] = {
    0x48, 0xff, 0xcf,           /* 1: dec %rdi */
    0x75, 0xfb,                 /*    jnz 1b */
    0xc3                        /*    ret */
}, machine_loses[] = {
    0x41, 0x55,                 /*    push %r13 */
    0x4d, 0x31, 0xed,           /*    xor %r13, %r13 */
    0x48, 0xff, 0xcf, 0x75, 0xfb,
    0x41, 0x5d,                 /*    pop %r13 */
    0xc3
};
#elif defined(__aarch64__)
static const unsigned machine_counts[] = {
    0xf1000400,                 /* 1: subs x0, x0, #1 */
    0x54ffffe1,                 /*    b.ne 1b */
    0xd65f03c0                  /*    ret */
}, machine_loses[] = {
    0xf81f0ff5,                 /*    str x21, [sp, #-16]! */
    0xaa1f03f5,                 /*    mov x21, xzr */
    0xf1000400, 0x54ffffe1,
    0xf84107f5,                 /*    ldr x21, [sp], #16 */
    0xd65f03c0
};
#endif

/* For that many ms.  Named: in a mapping that has the name of the emulator's
 * own, and without its process; else in an anonymous one. 0 or an errno. */
static int machine_code(int named, long ms)
{
    enum { SIZE = 4096 };
    int fd = named ? memfd_create("vmem", 0) : -1, error = 0;
    char *page;
    void (*function)(unsigned long);
    struct timespec end, now;

    if (named && (fd < 0 || ftruncate(fd, SIZE)))
        error = errno;
    page = error ? MAP_FAILED
        : mmap(NULL, SIZE, PROT_READ | PROT_WRITE | PROT_EXEC,
               named ? MAP_SHARED : MAP_PRIVATE | MAP_ANONYMOUS, fd, 0);
    if (page == MAP_FAILED && !error)
        error = errno;
    if (fd >= 0)
        close(fd);
    if (error)
        return error;
    if (named)
        memcpy(page, machine_loses, sizeof machine_loses);
    else
        memcpy(page, machine_counts, sizeof machine_counts);
    __builtin___clear_cache(page, page + SIZE);
    memcpy(&function, &page, sizeof function);
    clock_gettime(CLOCK_MONOTONIC, &end);
    end.tv_sec += ms / 1000;
    end.tv_nsec += ms % 1000 * 1000000;
    do {
        function(1000000);
        clock_gettime(CLOCK_MONOTONIC, &now);
    } while ((now.tv_sec - end.tv_sec) * 1000000000 + now.tv_nsec - end.tv_nsec < 0);
    munmap(page, SIZE);
    return 0;
}

#endif
