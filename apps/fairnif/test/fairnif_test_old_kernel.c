/*
 * fairnif_test_old_kernel.c - preloaded into a node (LD_PRELOAD): madvise
 * does not know MADV_GUARD_INSTALL, as before Linux 6.13.  Nothing else
 * changes.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <stddef.h>
#include <sys/syscall.h>
#include <unistd.h>

enum { GUARD_INSTALL = 102 };

__attribute__((visibility("default")))
int madvise(void *addr, size_t length, int advice)
{
    if (advice == GUARD_INSTALL) {
        errno = EINVAL;
        return -1;
    }
    return (int)syscall(SYS_madvise, addr, length, advice);
}
