/*
 * vfs.c - SQLite's "unix" VFS for fair tasks: a query whose pages are in memory
 * never leaves its scheduler, and no disk ever blocks one.
 *
 * A shim: each method calls the one of "unix", which does the work, the locking
 * above all.  Where it may wait it runs on a thread of the runtime's pool, and
 * the task's caller waits meanwhile in fairnif:await/1.  A thread without one
 * (a destructor, a plain NIF, what runs in fair_offload) waits itself, as with
 * "unix".
 *
 *   vfs.c          the methods of the VFS: open, delete, does it exist
 *   vfs_file.c     the methods of a file: locks, sizes, syncing, shared memory
 *   vfs_read.c     reading: from the page cache, or on a thread
 *   vfs_write.c    writing: on a thread, some writes together
 *   vfs_thread.c   how a method comes to a thread, and the gate
 *
 * Why a shim, and not other system calls below "unix", which it allows to be
 * replaced: it makes most of them with a mutex held.  In SQLite 3.40.1
 *
 *   the big lock      stat, fstat (xOpen), close, munmap (xClose), open, fstat,
 *                     ftruncate, fcntl (xShmMap), unlink, munmap, close
 *                     (xShmUnmap); nothing (xShmBarrier)
 *   an inode's lock   fcntl (xLock, xUnlock, xCheckReservedLock), close
 *                     (xUnlock, xClose)
 *   a WAL-index's     fcntl (xShmLock), fstat, pwrite, mmap (xShmMap)
 *   temporary names   access (xOpen)
 *   none              pread, pwrite, ftruncate, fsync, fallocate; unlink, fsync
 *                     (xDelete); stat, access; fstat (xFileSize)
 *
 * A task that pauses in such a call would keep the mutex; the next task on its
 * scheduler that wants it would block for ever.  And around all of them "unix"
 * reads errno, whose address a compiler may keep across the pause, when
 * the thread is another one.  What is left to replace is pread, and it only
 * takes note of the descriptor (vfs_read.c).
 *
 * The core of SQLite holds none of its static mutexes when it calls these
 * methods, and those of a connection and of its caches do not exist with
 * SQLITE_OPEN_NOMUTEX.  Two things would change that, and must stay off: the
 * shared cache, and this VFS as the default one (PRNG mutex, xRandomness).
 *
 * A task whose caller dies must be resumed to leave SQLite in good order
 * (FAIR_CLEANUP): dropped in the middle of a method it would leave the
 * connection and its locks forever.  Its functions must be FAIR_MAY_WAIT.
 *
 * Halt: nothing is waited for, which is what a crash is to SQLite.  The library
 * is purged or loaded again: it stays mapped, once registered.
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/openat2.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "vfs.h"
#include "vfs_private.h"

static sqlite3_vfs *real_of(const sqlite3_vfs *vfs)
{
    return vfs->pAppData;
}

/* -- files ----------------------------------------------------------------- */

static void do_open(struct job *job)
{
    struct file *f = job->f;

    job->rc = job->vfs->xOpen(job->vfs, job->name, f->real, job->a,
                              job->flags);
    vfs_file_open(f, job->name, job->a);
}

static int x_open(sqlite3_vfs *vfs, const char *name, sqlite3_file *file,
                  int flags, int *out_flags)
{
    struct file *f = (struct file *)file;
    struct job job = {.f = f, .vfs = real_of(vfs), .name = name, .a = flags,
                      .flags = out_flags};

    memset(f, 0, (size_t)vfs->szOsFile);
    f->real = (sqlite3_file *)(f + 1);
    f->fd = -1;
    return vfs_on_thread(&job, do_open);
}

static void do_delete(struct job *job)
{
    job->rc = job->vfs->xDelete(job->vfs, job->name, job->a);
}

static int x_delete(sqlite3_vfs *vfs, const char *name, int sync)
{
    struct job job = {.vfs = real_of(vfs), .name = name, .a = sync};

    return vfs_on_thread(&job, do_delete);
}

/* Does the file exist, and not as an empty one?  Only as far as the kernel
 * knows without a disk: -1 where it does not.  A descriptor by O_PATH takes no
 * lock along when it is closed.  Before each read transaction SQLite asks so
 * for the journal.  Does not pause: errno is this thread's. */
static __attribute__((noinline)) int exists_cached(const char *name)
{
    struct open_how how = {.flags = O_PATH | O_CLOEXEC,
                           .resolve = RESOLVE_CACHED};
    struct stat st;
    int fd = (int)syscall(SYS_openat2, AT_FDCWD, name, &how, sizeof how);
    int known;

    if (fd < 0)
        return errno == ENOENT ? 0 : -1;
    known = fstat(fd, &st) != 0 ? -1 : !S_ISREG(st.st_mode) || st.st_size > 0;
    close(fd);
    return known;
}

static void do_access(struct job *job)
{
    job->rc = job->vfs->xAccess(job->vfs, job->name, job->a, job->out);
}

static int x_access(sqlite3_vfs *vfs, const char *name, int flags, int *is)
{
    struct job job = {.vfs = real_of(vfs), .name = name, .a = flags,
                      .out = is};

    if (flags == SQLITE_ACCESS_EXISTS && fair_current()) {
        int known = exists_cached(name);

        if (known >= 0) {
            *is = known;
            return SQLITE_OK;
        }
    }
    return vfs_on_thread(&job, do_access);
}

static void do_full_pathname(struct job *job)
{
    job->rc = job->vfs->xFullPathname(job->vfs, job->name, job->a, job->out);
}

/* Reads symbolic links. */
static int x_full_pathname(sqlite3_vfs *vfs, const char *name, int size,
                           char *to)
{
    struct job job = {.vfs = real_of(vfs), .name = name, .a = size,
                      .out = to};

    return vfs_on_thread(&job, do_full_pathname);
}

/* -- time, libraries, chance ----------------------------------------------- */

/* Of a task whose caller is dead it is no wait. */
static int x_sleep(sqlite3_vfs *vfs, int us)
{
    fair_task *t = fair_current();

    if (!t)
        return real_of(vfs)->xSleep(real_of(vfs), us);
    fair_sleep(t, us / 1000 + (us % 1000 > 0));
    return us;
}

struct dl_job {
    struct job job;
    void *handle;
};

static void do_dl_open(struct job *job)
{
    ((struct dl_job *)job)->handle = job->vfs->xDlOpen(job->vfs, job->name);
}

static void *x_dl_open(sqlite3_vfs *vfs, const char *name)
{
    struct dl_job job = {.job = {.vfs = real_of(vfs), .name = name}};

    vfs_on_thread(&job.job, do_dl_open);
    return job.handle;
}

/* dlerror is a thread's: the message may be that of an earlier failure. */
static void x_dl_error(sqlite3_vfs *vfs, int size, char *message)
{
    real_of(vfs)->xDlError(real_of(vfs), size, message);
}

static void (*x_dl_sym(sqlite3_vfs *vfs, void *handle, const char *name))(void)
{
    return real_of(vfs)->xDlSym(real_of(vfs), handle, name);
}

static void x_dl_close(sqlite3_vfs *vfs, void *handle)
{
    real_of(vfs)->xDlClose(real_of(vfs), handle);
}

static int x_randomness(sqlite3_vfs *vfs, int size, char *to)
{
    return real_of(vfs)->xRandomness(real_of(vfs), size, to);
}

static int x_current_time(sqlite3_vfs *vfs, double *now)
{
    return real_of(vfs)->xCurrentTime(real_of(vfs), now);
}

static int x_current_time_ms(sqlite3_vfs *vfs, sqlite3_int64 *now)
{
    return real_of(vfs)->xCurrentTimeInt64(real_of(vfs), now);
}

static int x_last_error(sqlite3_vfs *vfs, int size, char *message)
{
    return real_of(vfs)->xGetLastError(real_of(vfs), size, message);
}

/* -- registering ----------------------------------------------------------- */

static sqlite3_vfs fair = {
    .iVersion = 2, .zName = VFS_NAME,
    .xOpen = x_open, .xDelete = x_delete, .xAccess = x_access,
    .xFullPathname = x_full_pathname, .xDlOpen = x_dl_open,
    .xDlError = x_dl_error, .xDlSym = x_dl_sym, .xDlClose = x_dl_close,
    .xRandomness = x_randomness, .xSleep = x_sleep,
    .xCurrentTime = x_current_time, .xGetLastError = x_last_error,
    .xCurrentTimeInt64 = x_current_time_ms
};

/* From now on SQLite, which others of this process may use too, has pointers to
 * functions of this library. */
static bool stay_mapped(void)
{
    Dl_info here;

    return dladdr(&fair, &here) && here.dli_fname
        && dlopen(here.dli_fname, RTLD_NOW | RTLD_NOLOAD | RTLD_NODELETE);
}

int vfs_register(void)
{
    sqlite3_vfs *real = sqlite3_vfs_find("unix");
    int rc;

    if (fair.pAppData)
        return SQLITE_OK;
    if (!real || real->iVersion < 2 || !stay_mapped())
        return SQLITE_ERROR;
    fair.szOsFile = (int)sizeof(struct file) + real->szOsFile;
    fair.mxPathname = real->mxPathname;
    fair.pAppData = real;
    rc = vfs_learn_init(real);
    return rc == SQLITE_OK ? sqlite3_vfs_register(&fair, 0) : rc;
}
