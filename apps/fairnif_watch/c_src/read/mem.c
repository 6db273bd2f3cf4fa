/*
 * mem.c - memory that may not be there, or is another process's: copied by the
 * kernel, which answers EFAULT where an access of ours would be a fault.  And
 * words to wait for.
 *
 * Called in the signal handler too: no lock, no allocation, errno kept.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <linux/futex.h>
#include <stdatomic.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <time.h>
#include <unistd.h>

#include "read/mem.h"
#include "read/source.h"

enum { PAGE = 4096, PIECES = 16 };

/* /proc/PID/mem, for where process_vm_readv is refused (seccomp filters of
 * container engines do).  Opened before it is needed. */
static _Atomic int mem_fd = -1;
static _Atomic bool refused;

/* Until *word is not `value`, or woken, or by a signal, or until then. */
void watch__futex_wait(_Atomic uint32_t *word, uint32_t value, uint64_t until)
{
    const struct timespec t = {(time_t)(until / 1000000000u),
                               (long)(until % 1000000000u)};

    syscall(SYS_futex, word, FUTEX_WAIT_BITSET_PRIVATE, value, &t, NULL,
            FUTEX_BITSET_MATCH_ANY);
}

void watch__futex_wake(_Atomic uint32_t *word)
{
    int error = errno;

    syscall(SYS_futex, word, FUTEX_WAKE_PRIVATE, 1, NULL, NULL, 0);
    errno = error;
}

void watch__read_start(void)
{
    if (atomic_load(&mem_fd) < 0)
        atomic_store(&mem_fd, watch__source_open("mem"));
}

void watch__read_stop(void)
{
    int fd = atomic_exchange(&mem_fd, -1);

    if (fd >= 0)
        close(fd);
}

/* For tests: as if the system refused. */
void watch__read_refuse(bool refuse)
{
    atomic_store(&refused, refuse);
}

static size_t read_file(char *to, uint64_t from, size_t size)
{
    int fd = atomic_load_explicit(&mem_fd, memory_order_relaxed);
    size_t done = 0;

    while (fd >= 0 && done < size) {
        /* Up to the end of the page: what is behind it may be missing, and the
         * whole of a larger request would fail. */
        size_t most = PAGE - (from + done) % PAGE;
        ssize_t n = pread(fd, to + done,
                          size - done < most ? size - done : most,
                          (off_t)(from + done));

        if (n <= 0)
            break;
        done += (size_t)n;
    }
    return done;
}

/* One element for each page: a transfer may be cut between elements only. */
static size_t read_vector(char *to, uint64_t from, size_t size)
{
    size_t done = 0;

    while (done < size) {
        struct iovec local = {.iov_base = to + done}, remote[PIECES];
        unsigned count = 0;
        ssize_t n;

        while (count < PIECES && done + local.iov_len < size) {
            uint64_t at = from + done + local.iov_len;
            size_t most = PAGE - at % PAGE, rest = size - done - local.iov_len;

            remote[count].iov_base = (void *)(uintptr_t)at;
            remote[count].iov_len = rest < most ? rest : most;
            local.iov_len += remote[count++].iov_len;
        }
        n = syscall(SYS_process_vm_readv, watch__source_pid(), &local, 1ul,
                    remote, (unsigned long)count, 0ul);
        if (n < 0 && errno != EFAULT && errno != EINTR && errno != ENOMEM) {
            atomic_store(&refused, true);
            return done + read_file(to + done, from + done, size - done);
        }
        if (n <= 0)
            break;
        done += (size_t)n;
        if ((size_t)n < local.iov_len)
            break;
    }
    return done;
}

size_t watch__read(void *to, uint64_t from, size_t size)
{
    const struct watch__source *source = watch__source();
    const void *laid;
    int saved = errno;
    size_t done;

    if (from + size < from)
        size = (size_t)-from;
    if (source && (laid = watch__source_laid(from, size))) {
        memcpy(to, laid, size);
        return size;
    }
    if (source && source->read)
        return source->read(to, from, size);
    done = atomic_load_explicit(&refused, memory_order_relaxed)
        ? read_file(to, from, size) : read_vector(to, from, size);
    errno = saved;
    return done;
}

bool watch__read_all(void *to, uint64_t from, size_t size)
{
    return watch__read(to, from, size) == size;
}

/* Not malloc: its locks may be held by the thread that is looked at. */
void *watch__pages(size_t size)
{
    void *p = mmap(NULL, size, PROT_READ | PROT_WRITE,
                   MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

    return p == MAP_FAILED ? NULL : p;
}

void watch__pages_free(void *p, size_t size)
{
    if (p)
        munmap(p, size);
}
