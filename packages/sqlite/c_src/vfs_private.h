/*
 * vfs_private.h - what the files of the VFS know of each other.
 */
#ifndef VFS_PRIVATE_H
#define VFS_PRIVATE_H

#include <stdbool.h>

#include <sqlite3.h>

#include <fairnif.h>

/* What may be done with a file where it is, without a thread of the pool. */
enum disk {
    UNKNOWN,        /* nothing: its descriptor is not known yet */
    CACHED,         /* reads from the page cache (RWF_NOWAIT); locks */
    UNCACHED,       /* locks: the file system does not know RWF_NOWAIT */
    MEMORY,         /* reads and locks: there is no disk under it */
    REMOTE          /* nothing: every call may go over a network */
};

/* What is held back of writes, and when it is written: vfs_write.c. */
enum holds { NOTHING_HELD, APPENDED, WAL_FRAMES };

struct file {
    sqlite3_file base;          /* the core's: our methods */
    sqlite3_file *real;         /* of the "unix" VFS, behind this in memory */
    int fd;                     /* its descriptor, as soon as known, or -1 */
    enum disk disk;
    unsigned long inode;        /* 0: not known yet */
    enum holds holds;
    unsigned char *held;        /* writes that are not done yet, or NULL */
    int held_size;
    sqlite3_int64 held_at;
    sqlite3_int64 high;         /* of a WAL: where what was written since the
                                   right to write was taken ends, or before */
    bool after_header;          /* the last write held is a WAL frame header */
    bool commits;               /* and one that ends a transaction */
    struct file *db;            /* of a WAL or rollback journal: its database */
    struct file *wal, *journal; /* of a database; NULL: none, or not known */
};

/* One call of a method of "unix".  It may lie on the stack of the task. */
struct job {
    void (*fn)(struct job *);
    struct file *f;
    sqlite3_vfs *vfs;           /* "unix" */
    const char *name;
    const void *in;
    void *out;
    int *flags;
    int a, b, c;
    sqlite3_int64 at;
    int rc;
};

/* vfs_thread.c */
int vfs_on_thread(struct job *job, void (*fn)(struct job *));
int vfs_in_place_or_thread(struct job *job, void (*fn)(struct job *));
void vfs_close_gate(const struct file *f);
void vfs_open_gate(const struct file *f);

/* vfs_read.c */
int vfs_learn_init(sqlite3_vfs *real);
int vfs_read(sqlite3_file *file, void *to, int size, sqlite3_int64 at);

/* vfs_write.c */
int vfs_write(sqlite3_file *file, const void *from, int size,
              sqlite3_int64 at);
int vfs_write_held(struct file *f);
int vfs_flush(struct file *f);
void vfs_drop_held(struct file *f);

/* vfs_file.c */
void vfs_file_open(struct file *f, const char *name, int flags);

#endif
