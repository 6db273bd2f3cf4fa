/*
 * vfs.h - the VFS "fair": SQLite's "unix" VFS for callers that may not wait for
 * a disk.  How, and why so: vfs.c.
 */
#ifndef VFS_H
#define VFS_H

/* Registers the VFS under its name; connections ask for it when they are opened
 * (sqlite3_open_v2).  Answers an SQLite code.  To be called when the library is
 * loaded, after sqlite3_initialize; again is nothing.  The library that calls
 * it stays mapped from then on, since SQLite keeps pointers into it. */
int vfs_register(void);

#define VFS_NAME "fair"

/* What a read from the page cache counts for in fair_tick, against one
 * instruction of SQLite's virtual machine. */
#ifndef VFS_READ_UNITS
#  define VFS_READ_UNITS 64
#endif

#endif
