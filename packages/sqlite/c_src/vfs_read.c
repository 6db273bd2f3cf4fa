/*
 * vfs_read.c - reads: from the page cache in place, else on a thread.
 *
 * preadv2 with RWF_NOWAIT answers what is in memory, and EAGAIN where the disk
 * would be asked.  It wants the descriptor, which "unix" keeps to itself.  A
 * second one must not be had: when a process closes any descriptor of an inode
 * it loses all its POSIX locks there, also those of connections of which we
 * know nothing.  So the first read of each file tells: "unix" lets its system
 * calls be replaced, and `noted_pread` stands before its pread.  It sees with
 * which descriptor the read comes that we have asked for on this thread, and
 * changes nothing.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <linux/magic.h>
#include <sys/stat.h>
#include <sys/types.h>
#include <sys/uio.h>
#include <sys/vfs.h>
#include <unistd.h>

#include "vfs.h"
#include "vfs_private.h"

typedef ssize_t (*pread_fn)(int fd, void *to, size_t size, off_t at);

static pread_fn real_pread;

/* -- the descriptor -------------------------------------------------------- */

/* Where the descriptor is to be noted of the read under way on this thread.
 * Set and cleared within a job, which does not pause. */
static __thread int *wanted_fd;

static ssize_t noted_pread(int fd, void *to, size_t size, off_t at)
{
    if (__builtin_expect(wanted_fd != NULL, 0))
        *wanted_fd = fd;
    return real_pread(fd, to, size, at);
}

/* Which of the two it uses depends on how SQLite was built.  Where it uses
 * neither no descriptor is ever known, and all reads go to threads. */
int vfs_learn_init(sqlite3_vfs *real)
{
    static const char *const names[] = {"pread64", "pread"};

    if (real->iVersion < 3 || !real->xGetSystemCall)
        return SQLITE_OK;
    for (int i = 0; i < 2; i++) {
        real_pread = (pread_fn)real->xGetSystemCall(real, names[i]);
        if (real_pread)
            return real->xSetSystemCall(
                real, names[i], (sqlite3_syscall_ptr)noted_pread);
    }
    return SQLITE_OK;
}

static bool is_remote(const struct statfs *fs)
{
    switch ((unsigned)fs->f_type) {
    case NFS_SUPER_MAGIC: case SMB_SUPER_MAGIC: case CIFS_SUPER_MAGIC:
    case SMB2_SUPER_MAGIC: case CEPH_SUPER_MAGIC: case V9FS_MAGIC:
    case AFS_SUPER_MAGIC: case CODA_SUPER_MAGIC: case FUSE_SUPER_MAGIC:
        return true;
    }
    return false;
}

/* What can be done with the file, now that its descriptor is known.  Whether it
 * has RWF_NOWAIT its first use will tell. */
static void learn(struct file *f)
{
    struct stat st;
    struct statfs fs;

    if (f->fd < 0)
        return;
    if (fstat(f->fd, &st) != 0 || fstatfs(f->fd, &fs) != 0) {
        f->fd = -1;
        return;
    }
    f->inode = st.st_ino;
    f->disk = fs.f_type == TMPFS_MAGIC || fs.f_type == RAMFS_MAGIC ? MEMORY
        : is_remote(&fs) ? REMOTE : CACHED;
}

/* -- reading --------------------------------------------------------------- */

static void read_real(struct job *job)
{
    struct file *f = job->f;

    job->rc = vfs_write_held(f);
    if (job->rc != SQLITE_OK)
        return;
    if (f->fd < 0)
        wanted_fd = &f->fd;
    job->rc = f->real->pMethods->xRead(f->real, job->out, job->a, job->at);
    if (wanted_fd) {
        wanted_fd = NULL;
        learn(f);
    }
}

/* Everything or nothing.  Does not pause: errno is this thread's. */
static __attribute__((noinline))
bool read_cached(struct file *f, void *to, int size, sqlite3_int64 at)
{
    struct iovec part = {.iov_base = to, .iov_len = (size_t)size};
    ssize_t got = preadv2(f->fd, &part, 1, at, RWF_NOWAIT);

    if (got < 0 && (errno == EOPNOTSUPP || errno == ENOSYS
                    || errno == EINVAL))
        f->disk = UNCACHED;
    return got == size;
}

int vfs_read(sqlite3_file *file, void *to, int size, sqlite3_int64 at)
{
    struct file *f = (struct file *)file;
    struct job job = {.f = f, .out = to, .a = size, .at = at};
    fair_task *t;
    int rc = SQLITE_OK;

    if (f->held_size > 0)
        return vfs_on_thread(&job, read_real);
    if (f->disk == MEMORY) {
        read_real(&job);
        rc = job.rc;
    } else if (f->disk != CACHED || !read_cached(f, to, size, at)) {
        return vfs_on_thread(&job, read_real);
    }
    t = fair_current();
    if (t)
        fair_tick(t, VFS_READ_UNITS);
    return rc;
}
