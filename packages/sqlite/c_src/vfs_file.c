/*
 * vfs_file.c - the methods of an open file, but for reading and writing.
 *
 * Which of them run where:
 *
 *   in place   What asks the kernel's memory: locks (fcntl), the size (fstat),
 *              and what "unix" keeps to itself.  On a network file system, and
 *              until the file system is known: on a thread.
 *   thread     What may ask a disk: syncing, truncating, closing, extending
 *              (SQLITE_FCNTL_SIZE_HINT), the shared memory of the WAL, whose
 *              file is opened, extended and deleted by these methods.
 *
 * Not offered: xFetch.  In a mapped file a page that is not in memory is read
 * by a fault, on the scheduler.
 */
#include <stdatomic.h>
#include <sys/stat.h>

#include "vfs.h"
#include "vfs_private.h"

enum { WAL_WRITE_LOCK = 0 };    /* of SQLite's file format: the WAL-index */

static const sqlite3_io_methods *real_of(const struct file *f)
{
    return f->real->pMethods;
}

/* -- open, close ----------------------------------------------------------- */

static void do_close(struct job *job)
{
    struct file *f = job->f;

    vfs_close_gate(f);
    job->rc = real_of(f)->xClose(f->real);
    vfs_open_gate(f);
}

/* No file may point to one that is closed. */
static void part(struct file *f)
{
    if (f->wal)
        f->wal->db = NULL;
    if (f->journal)
        f->journal->db = NULL;
    if (f->db && f->db->wal == f)
        f->db->wal = NULL;
    if (f->db && f->db->journal == f)
        f->db->journal = NULL;
}

/* What is still held belongs to no transaction that was committed.  An error
 * cannot be reported here, but SQLite does not ask. */
static int x_close(sqlite3_file *file)
{
    struct file *f = (struct file *)file;
    struct job job = {.f = f};
    int rc = vfs_on_thread(&job, do_close);

    sqlite3_free(f->held);
    f->held = NULL;
    f->held_size = 0;
    part(f);
    f->base.pMethods = NULL;
    return rc;
}

/* -- size, sync ------------------------------------------------------------ */

static void do_sync(struct job *job)
{
    job->rc = vfs_write_held(job->f);
    if (job->rc == SQLITE_OK)
        job->rc = real_of(job->f)->xSync(job->f->real, job->a);
}

static int x_sync(sqlite3_file *file, int flags)
{
    struct job job = {.f = (struct file *)file, .a = flags};

    return vfs_on_thread(&job, do_sync);
}

static void do_truncate(struct job *job)
{
    job->rc = vfs_write_held(job->f);
    if (job->rc == SQLITE_OK && job->f->journal)
        job->rc = vfs_write_held(job->f->journal);
    if (job->rc == SQLITE_OK)
        job->rc = real_of(job->f)->xTruncate(job->f->real, job->at);
}

static int x_truncate(sqlite3_file *file, sqlite3_int64 size)
{
    struct job job = {.f = (struct file *)file, .at = size};

    return vfs_on_thread(&job, do_truncate);
}

static void do_file_size(struct job *job)
{
    job->rc = vfs_write_held(job->f);
    if (job->rc == SQLITE_OK)
        job->rc = real_of(job->f)->xFileSize(job->f->real, job->out);
}

static int x_file_size(sqlite3_file *file, sqlite3_int64 *size)
{
    struct file *f = (struct file *)file;
    struct job job = {.f = f, .out = size};

    return f->held_size > 0 ? vfs_on_thread(&job, do_file_size)
        : vfs_in_place_or_thread(&job, do_file_size);
}

/* -- locks ----------------------------------------------------------------- */

static void do_lock(struct job *job)
{
    job->rc = real_of(job->f)->xLock(job->f->real, job->a);
}

static int x_lock(sqlite3_file *file, int level)
{
    struct job job = {.f = (struct file *)file, .a = level};

    return vfs_in_place_or_thread(&job, do_lock);
}

static void do_unlock(struct job *job)
{
    job->rc = real_of(job->f)->xUnlock(job->f->real, job->a);
}

/* To SQLITE_LOCK_SHARED or NONE: the transaction is over. */
static int x_unlock(sqlite3_file *file, int level)
{
    struct file *f = (struct file *)file;
    struct job job = {.f = f, .a = level};

    if (f->journal)
        vfs_drop_held(f->journal);
    return vfs_in_place_or_thread(&job, do_unlock);
}

static void do_check_reserved(struct job *job)
{
    job->rc = real_of(job->f)->xCheckReservedLock(job->f->real, job->out);
}

static int x_check_reserved(sqlite3_file *file, int *is)
{
    struct job job = {.f = (struct file *)file, .out = is};

    return vfs_in_place_or_thread(&job, do_check_reserved);
}

/* -- control --------------------------------------------------------------- */

static void do_control(struct job *job)
{
    job->rc = vfs_write_held(job->f);
    if (job->rc == SQLITE_OK)
        job->rc = real_of(job->f)->xFileControl(job->f->real, job->a,
                                                job->out);
}

/* The name of a VFS that stands before another one is both. */
static void name_both(int rc, char **name)
{
    if (rc == SQLITE_OK)
        *name = sqlite3_mprintf(VFS_NAME "/%z", *name);
}

static int x_control(sqlite3_file *file, int op, void *arg)
{
    struct file *f = (struct file *)file;
    struct job job = {.f = f, .a = op, .out = arg};

    switch (op) {
    case SQLITE_FCNTL_MMAP_SIZE:
        *(sqlite3_int64 *)arg = 0;
        return SQLITE_OK;
    case SQLITE_FCNTL_SIZE_HINT: case SQLITE_FCNTL_HAS_MOVED:
    case SQLITE_FCNTL_TEMPFILENAME: case SQLITE_FCNTL_EXTERNAL_READER:
    case SQLITE_FCNTL_BEGIN_ATOMIC_WRITE:
    case SQLITE_FCNTL_COMMIT_ATOMIC_WRITE:
    case SQLITE_FCNTL_ROLLBACK_ATOMIC_WRITE:
        return vfs_on_thread(&job, do_control);
    }
    job.rc = real_of(f)->xFileControl(f->real, op, arg);
    if (op == SQLITE_FCNTL_VFSNAME)
        name_both(job.rc, arg);
    return job.rc;
}

static int x_sector_size(sqlite3_file *file)
{
    struct file *f = (struct file *)file;

    return real_of(f)->xSectorSize(f->real);
}

static int x_characteristics(sqlite3_file *file)
{
    struct file *f = (struct file *)file;

    return real_of(f)->xDeviceCharacteristics(f->real);
}

/* -- the WAL's shared memory ----------------------------------------------- */

static void do_shm_map(struct job *job)
{
    struct file *f = job->f;

    vfs_close_gate(f);
    job->rc = real_of(f)->xShmMap(f->real, job->a, job->b, job->c, job->out);
    vfs_open_gate(f);
}

/* SQLite asks once for each part of 32 KiB. */
static int x_shm_map(sqlite3_file *file, int part, int size, int extend,
                     void volatile **to)
{
    struct job job = {.f = (struct file *)file, .a = part, .b = size,
                      .c = extend, .out = (void *)to};

    return vfs_on_thread(&job, do_shm_map);
}

static void do_shm_lock(struct job *job)
{
    job->rc = real_of(job->f)->xShmLock(job->f->real, job->a, job->b, job->c);
}

static int x_shm_lock(sqlite3_file *file, int at, int n, int flags)
{
    struct file *f = (struct file *)file;
    struct job job = {.f = f, .a = at, .b = n, .c = flags};

    if (f->wal && at == WAL_WRITE_LOCK
        && flags == (SQLITE_SHM_UNLOCK | SQLITE_SHM_EXCLUSIVE)) {
        vfs_drop_held(f->wal);
        f->wal->high = 0;
    }
    return vfs_in_place_or_thread(&job, do_shm_lock);
}

/* "unix" also takes the mutex of all its files, which others hold while they
 * open one: only to be sure of the barrier. */
static void x_shm_barrier(sqlite3_file *file)
{
    (void)file;
    atomic_thread_fence(memory_order_seq_cst);
}

static void do_shm_unmap(struct job *job)
{
    struct file *f = job->f;

    vfs_close_gate(f);
    job->rc = real_of(f)->xShmUnmap(f->real, job->a);
    vfs_open_gate(f);
}

static int x_shm_unmap(sqlite3_file *file, int delete)
{
    struct job job = {.f = (struct file *)file, .a = delete};

    return vfs_on_thread(&job, do_shm_unmap);
}

/* -- a file that was opened ------------------------------------------------ */

#define METHODS                                                             \
    .xClose = x_close, .xRead = vfs_read, .xWrite = vfs_write,              \
    .xTruncate = x_truncate, .xSync = x_sync, .xFileSize = x_file_size,     \
    .xLock = x_lock, .xUnlock = x_unlock,                                   \
    .xCheckReservedLock = x_check_reserved, .xFileControl = x_control,      \
    .xSectorSize = x_sector_size,                                           \
    .xDeviceCharacteristics = x_characteristics

static const sqlite3_io_methods plain_methods = {.iVersion = 1, METHODS};
static const sqlite3_io_methods shm_methods = {
    .iVersion = 2, METHODS,
    .xShmMap = x_shm_map, .xShmLock = x_shm_lock,
    .xShmBarrier = x_shm_barrier, .xShmUnmap = x_shm_unmap
};

/* A WAL or a journal is opened by way of its database, which says when what is
 * held counts for nothing, or must be written.  Without it nothing is held. */
static void join(struct file *f, const char *name, int flags)
{
    struct file *db = (struct file *)sqlite3_database_file_object(name);
    bool ours = db && (db->base.pMethods == &shm_methods
                       || db->base.pMethods == &plain_methods);

    if (!ours)
        return;
    if (flags & SQLITE_OPEN_WAL && !db->wal) {
        db->wal = f;
        f->holds = WAL_FRAMES;
        f->db = db;
    } else if (flags & SQLITE_OPEN_MAIN_JOURNAL && !db->journal) {
        db->journal = f;
        f->holds = APPENDED;
        f->db = db;
    }
}

/* After the real file was opened, or could not be.  On a thread. */
void vfs_file_open(struct file *f, const char *name, int flags)
{
    const sqlite3_io_methods *real = f->real->pMethods;
    struct stat st;

    if (!real)
        return;
    f->base.pMethods = real->iVersion >= 2 && real->xShmMap ? &shm_methods
        : &plain_methods;
    if (flags & SQLITE_OPEN_DELETEONCLOSE)
        f->holds = APPENDED;
    else if (flags & (SQLITE_OPEN_WAL | SQLITE_OPEN_MAIN_JOURNAL))
        join(f, name, flags);
    else if (flags & SQLITE_OPEN_MAIN_DB && name && stat(name, &st) == 0)
        f->inode = st.st_ino;
}
