/*
 * sqlite_faults.c - a disk that fails, is full or is slow, for the tests: to be
 * put before libc (LD_PRELOAD) in a node of its own.
 *
 * Files whose names begin with $FAULTS_DIR are on that disk.  What it does is
 * in the file $FAULTS_CONTROL, which the test writes (sqlite_faults.erl) and
 * this has mapped: `struct control`.
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/magic.h>
#include <signal.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <sys/vfs.h>
#include <time.h>
#include <unistd.h>

enum {
    READ = 1, WRITE = 2, SYNC = 4, TRUNCATE = 8, OPEN = 16, UNLINK = 32,
    LOCK = 64, MAP = 128, STAT = 256,
    WAL = 512, JOURNAL = 1024   /* writes to it; they are WRITE as well */
};

enum { SHORT = -1, DIE = -2 };  /* in the place of an error number */

struct control {
    _Atomic int32_t left;       /* the call that brings it to 0 fails */
    int32_t kinds;              /* which calls count */
    int32_t error;              /* with what it fails; or SHORT, half of it is
                                   done; or DIE, the node ends here */
    int32_t lasting;            /* and all that follow, too */
    int32_t slow_kinds, slow_us;
    int32_t cold;               /* nothing is in the page cache */
    int32_t lazy;               /* syncing does nothing, at once */
    _Atomic int32_t failed;     /* how many calls failed */
};

static struct control off, *control = &off;
static const char *dir;
static _Atomic unsigned short on_disk[65536];   /* by descriptor: what a write
                                                   to it is; 0: elsewhere */

#define REAL(RESULT, NAME, ...)                                             \
    static RESULT (*real)(__VA_ARGS__);                                     \
    if (!real)                                                              \
        real = (RESULT (*)(__VA_ARGS__))dlsym(RTLD_NEXT, #NAME)

static __attribute__((constructor)) void begin(void)
{
    const char *name = getenv("FAULTS_CONTROL");
    int fd = name ? open(name, O_RDWR | O_CLOEXEC) : -1;
    void *at;

    dir = getenv("FAULTS_DIR");
    if (fd < 0)
        return;
    at = mmap(NULL, sizeof *control, PROT_READ | PROT_WRITE, MAP_SHARED, fd,
              0);
    if (at != MAP_FAILED)
        control = at;
    close(fd);
}

static bool is_path(const char *path)
{
    return dir && path && strncmp(path, dir, strlen(dir)) == 0;
}

static bool is_known(int fd)
{
    return fd >= 0 && fd < (int)(sizeof on_disk / sizeof *on_disk);
}

static bool is_fd(int fd)
{
    return is_known(fd) && on_disk[fd];
}

static int opened(const char *path, int fd)
{
    if (is_known(fd))
        on_disk[fd] = !is_path(path) ? 0 : strstr(path, "-wal") ? WRITE | WAL
            : strstr(path, "-journal") ? WRITE | JOURNAL : WRITE;
    return fd;
}

/* What becomes of a call: 0, it is done; else an error number, or SHORT. */
static int fate(unsigned kind)
{
    if (control->slow_kinds & kind) {
        struct timespec time = {control->slow_us / 1000000,
                                control->slow_us % 1000000 * 1000};

        nanosleep(&time, NULL);
    }
    if (!(control->kinds & kind) || atomic_load(&control->left) <= 0)
        return 0;
    if (atomic_fetch_sub(&control->left, 1) != 1)
        return 0;
    atomic_fetch_add(&control->failed, 1);
    if (control->error == DIE)
        kill(getpid(), SIGKILL);
    if (control->lasting)
        atomic_store(&control->left, 1);
    return control->error;
}

#define FAIL_AS(KIND) do {                                                  \
        int error = fate(KIND);                                             \
                                                                            \
        if (error > 0) {                                                    \
            errno = error;                                                  \
            return -1;                                                      \
        }                                                                   \
    } while (0)

/* -- data ------------------------------------------------------------------ */

static bool cut(unsigned kind, size_t *size, int *error)
{
    *error = fate(kind);
    if (*error == SHORT)
        *size /= 2;
    return *error > 0;
}

ssize_t pread64(int fd, void *to, size_t size, off64_t at)
{
    REAL(ssize_t, pread64, int, void *, size_t, off64_t);
    int error;

    if (is_fd(fd) && cut(READ, &size, &error)) {
        errno = error;
        return -1;
    }
    return size > 0 ? real(fd, to, size, at) : 0;
}

/* A read that finds half of it in the cache, or an error of the disk's. */
ssize_t preadv2(int fd, const struct iovec *parts, int n, off_t at, int flags)
{
    REAL(ssize_t, preadv2, int, const struct iovec *, int, off_t, int);
    struct iovec part = parts[0];
    int error;

    if (!is_fd(fd))
        return real(fd, parts, n, at, flags);
    if (control->cold) {
        errno = EAGAIN;
        return -1;
    }
    if (cut(READ, &part.iov_len, &error)) {
        errno = error;
        return -1;
    }
    return real(fd, &part, 1, at, flags);
}

ssize_t pwrite64(int fd, const void *from, size_t size, off64_t at)
{
    REAL(ssize_t, pwrite64, int, const void *, size_t, off64_t);
    int error;

    if (is_fd(fd) && cut(on_disk[fd], &size, &error)) {
        errno = error;
        return -1;
    }
    return size > 0 ? real(fd, from, size, at) : 0;
}

int ftruncate64(int fd, off64_t size)
{
    REAL(int, ftruncate64, int, off64_t);

    if (is_fd(fd))
        FAIL_AS(TRUNCATE);
    return real(fd, size);
}

int fsync(int fd)
{
    REAL(int, fsync, int);

    if (is_fd(fd))
        FAIL_AS(SYNC);
    return is_fd(fd) && control->lazy ? 0 : real(fd);
}

int fdatasync(int fd)
{
    REAL(int, fdatasync, int);

    if (is_fd(fd))
        FAIL_AS(SYNC);
    return is_fd(fd) && control->lazy ? 0 : real(fd);
}

void *mmap64(void *at, size_t size, int protection, int flags, int fd,
             off64_t offset)
{
    REAL(void *, mmap64, void *, size_t, int, int, int, off64_t);
    int error = is_fd(fd) ? fate(MAP) : 0;

    if (error > 0) {
        errno = error;
        return MAP_FAILED;
    }
    return real(at, size, protection, flags, fd, offset);
}

/* -- names, locks ---------------------------------------------------------- */

int open64(const char *path, int flags, ...)
{
    REAL(int, open64, const char *, int, ...);
    va_list args;
    mode_t mode;

    va_start(args, flags);
    mode = va_arg(args, mode_t);
    va_end(args);
    if (is_path(path))
        FAIL_AS(OPEN);
    return opened(path, real(path, flags, mode));
}

int close(int fd)
{
    REAL(int, close, int);

    if (is_known(fd))
        on_disk[fd] = 0;
    return real(fd);
}

int unlink(const char *path)
{
    REAL(int, unlink, const char *);

    if (is_path(path))
        FAIL_AS(UNLINK);
    return real(path);
}

int stat64(const char *path, struct stat64 *st)
{
    REAL(int, stat64, const char *, struct stat64 *);

    if (is_path(path))
        FAIL_AS(STAT);
    return real(path, st);
}

int fstat64(int fd, struct stat64 *st)
{
    REAL(int, fstat64, int, struct stat64 *);

    if (is_fd(fd))
        FAIL_AS(STAT);
    return real(fd, st);
}

/* Wherever the tests put it. */
int fstatfs(int fd, struct statfs *fs)
{
    REAL(int, fstatfs, int, struct statfs *);
    int rc = real(fd, fs);

    if (rc == 0 && is_fd(fd))
        fs->f_type = EXT4_SUPER_MAGIC;
    return rc;
}

/* To unlock never fails. */
static bool may_fail(int op, const struct flock *lock)
{
    return op == F_GETLK || (op == F_SETLK && lock->l_type != F_UNLCK);
}

int fcntl64(int fd, int op, ...)
{
    REAL(int, fcntl64, int, int, ...);
    va_list args;
    void *arg;

    va_start(args, op);
    arg = va_arg(args, void *);
    va_end(args);
    if (is_fd(fd) && may_fail(op, arg))
        FAIL_AS(LOCK);
    return real(fd, op, arg);
}
