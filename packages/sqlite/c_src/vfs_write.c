/*
 * vfs_write.c - writes: on a thread, many at once where that is safe.
 *
 * A write into the page cache takes 2 to 5 us, and now and then it waits for
 * the disk: when the file system's journal is being written, or when more pages
 * are dirty than may be.  RWF_NOWAIT is of no help: ext4 does not know it for
 * writes.  So each write goes to a thread, which costs more than the write.
 * Some are therefore held back and done together:
 *
 *   APPENDED     What follows the last write directly, of two kinds of files.
 *                Temporary files: no one else reads them, and a crash may lose
 *                them.  Rollback journals, but for what begins at 0: nothing
 *                needs them before the database is changed, and each write to
 *                it is preceded by what is held of its journal.
 *   WAL_FRAMES   The WAL.  Frames of a transaction that is not committed count
 *                for nothing: another connection looks at none behind the last
 *                committed one, and after a crash they are not replayed.
 *
 * Of the WAL is held: the 24 bytes before a frame's page, and the page that
 * follows directly.  When that frame ends a transaction, it and all that is
 * held before it is written before xWrite returns.  So what SQLite reports as
 * committed is in the file, as with "unix".  A header that is written again,
 * with another checksum, has no page after it, so it is not held: it lies
 * before `high`.
 *
 * What is held is written, in the order of the calls, before anything else is
 * done with the file.  Where that fails it stays, and whatever comes next fails
 * as well: SQLite believes that it is in the file.  It is dropped when the
 * connection gives up its lock for writing: then it belongs to a transaction
 * that was rolled back, and another connection may write to that place.
 *
 * Of a database nothing is held: SQLite ignores errors of some calls that
 * follow its last write, and would not learn that it failed.
 */
#include <string.h>

#include "vfs_private.h"

enum {
    HOLD = 64 * 1024,
    FRAME_HEADER = 24, COMMIT_FIELD = 4     /* of SQLite's file format, 4.3 */
};

/* On a thread: writes what is held. */
int vfs_write_held(struct file *f)
{
    int rc;

    if (f->held_size == 0)
        return SQLITE_OK;
    rc = f->real->pMethods->xWrite(f->real, f->held, f->held_size, f->held_at);
    if (rc == SQLITE_OK)
        vfs_drop_held(f);
    return rc;
}

static void write_held(struct job *job)
{
    job->rc = vfs_write_held(job->f);
}

int vfs_flush(struct file *f)
{
    struct job job = {.f = f};

    return f->held_size > 0 ? vfs_on_thread(&job, write_held) : SQLITE_OK;
}

void vfs_drop_held(struct file *f)
{
    f->held_size = 0;
    f->after_header = f->commits = false;
}

/* -- holding --------------------------------------------------------------- */

static bool follows(const struct file *f, int size, sqlite3_int64 at)
{
    return f->held_size > 0 && at == f->held_at + f->held_size
        && size <= HOLD - f->held_size;
}

static bool has_room(struct file *f, int size)
{
    if (!f->held)
        f->held = sqlite3_malloc(HOLD);
    return f->held && size <= HOLD;
}

static void hold(struct file *f, const void *from, int size, sqlite3_int64 at)
{
    if (f->held_size == 0)
        f->held_at = at;
    memcpy(f->held + f->held_size, from, (size_t)size);
    f->held_size += size;
}

static bool ends_transaction(const unsigned char *header)
{
    static const unsigned char none[4];

    return memcmp(header + COMMIT_FIELD, none, sizeof none) != 0;
}

enum what { THROUGH, HELD, HELD_AND_WRITTEN };

static enum what wal_frame(struct file *f, int size, sqlite3_int64 at)
{
    bool next = follows(f, size, at);

    if (f->after_header && next)
        return f->commits ? HELD_AND_WRITTEN : HELD;
    return size == FRAME_HEADER && at >= f->high && (next || f->held_size == 0)
        ? HELD : THROUGH;
}

static enum what what_of(struct file *f, int size, sqlite3_int64 at)
{
    if (f->holds == NOTHING_HELD || !has_room(f, size))
        return THROUGH;
    if (f->holds == WAL_FRAMES)
        return wal_frame(f, size, at);
    return at > 0 && (f->held_size == 0 || follows(f, size, at)) ? HELD
        : THROUGH;
}

/* A WAL that is begun again has nothing behind its header. */
static void note_end(struct file *f, int size, sqlite3_int64 at)
{
    if (at == 0 || at + size > f->high)
        f->high = at + size;
}

/* -- xWrite ---------------------------------------------------------------- */

static void write_through(struct job *job)
{
    struct file *f = job->f;

    job->rc = vfs_write_held(f);
    if (job->rc == SQLITE_OK && f->journal)
        job->rc = vfs_write_held(f->journal);
    if (job->rc == SQLITE_OK)
        job->rc = f->real->pMethods->xWrite(f->real, job->in, job->a, job->at);
}

/* Where it fails this frame did not come: SQLite rolls back. */
static int write_commit(struct file *f, const void *page, int size,
                        sqlite3_int64 at)
{
    int before = f->held_size - FRAME_HEADER, rc;

    hold(f, page, size, at);
    f->after_header = f->commits = false;
    rc = vfs_flush(f);
    if (rc != SQLITE_OK)
        f->held_size = before;
    return rc;
}

static int hold_one(struct file *f, const void *from, int size,
                    sqlite3_int64 at)
{
    bool header = f->holds == WAL_FRAMES && !f->after_header;

    hold(f, from, size, at);
    f->after_header = header;
    f->commits = header && ends_transaction(from);
    return SQLITE_OK;
}

int vfs_write(sqlite3_file *file, const void *from, int size,
              sqlite3_int64 at)
{
    struct file *f = (struct file *)file;
    struct job job = {.f = f, .in = from, .a = size, .at = at};
    enum what what = what_of(f, size, at);

    note_end(f, size, at);
    return what == HELD ? hold_one(f, from, size, at)
        : what == HELD_AND_WRITTEN ? write_commit(f, from, size, at)
        : vfs_on_thread(&job, write_through);
}
