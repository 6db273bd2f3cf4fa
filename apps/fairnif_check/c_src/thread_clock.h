/*
 * The times of the calling thread that the kernel keeps: shared by the checker's NIFs.
 *
 * A file that includes this defines _GNU_SOURCE first.
 */
#ifndef FAIRNIF_LAB_THREAD_CLOCK_H
#define FAIRNIF_LAB_THREAD_CLOCK_H

#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <unistd.h>

/* How long this thread was ready to run while another had its processor, in ns,
 * ever. Half a microsecond; 0 where the kernel does not say. The descriptor is
 * the thread's own, and scheduler threads live as long as the VM: nothing has
 * to close it. */
static int64_t thread_waited(void)
{
    static __thread int schedstat = -2;         /* -1: there is none, or no more */
    char text[96];
    long long ran, wait;
    ssize_t n;

    if (schedstat == -2)
        schedstat = open("/proc/thread-self/schedstat", O_RDONLY | O_CLOEXEC);
    if (schedstat < 0)
        return 0;
    n = pread(schedstat, text, sizeof text - 1, 0);
    text[n > 0 ? n : 0] = '\0';
    if (sscanf(text, "%lld %lld", &ran, &wait) == 2)
        return wait;
    /* It was closed. From 0 back to its value would look like a long wait. */
    schedstat = -1;
    return 0;
}

#endif
