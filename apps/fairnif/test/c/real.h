/*
 * real.h - between real.c, which stands for vm_*.c where the tests run in the
 * real emulator, and real_only.c.
 */
#ifndef REAL_H
#define REAL_H

/* Ends the test: it needs what only the stand-in can do.  On the test's own
 * thread; elsewhere it ends the program. */
__attribute__((noreturn)) void real_skip(const char *why);

#endif
