/*
 * chain.c - a library with a chain of calls that is known: outer, middle,
 * inner; inner spins, sleeps, or fills its stack.  Built several times, with
 * other options each.
 */
#define _GNU_SOURCE
#include <alloca.h>
#include <execinfo.h>
#include <sched.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "chain.h"

#define APART __attribute__((noipa))
/* A call in its place is not the last thing that a function does. */
#define NOT_A_TAIL() __asm__ volatile("" ::: "memory")

APART static void wait_here(struct chain *c)
{
    c->depth = backtrace(c->calls, CHAIN_CALLS);
    __atomic_store_n(&c->there, true, __ATOMIC_RELEASE);
    while (!__atomic_load_n(&c->leave, __ATOMIC_ACQUIRE)) {
        if (c->sleeps) {
            char byte;          /* not read(): sanitizers have one too */

            syscall(SYS_read, c->fd, &byte, 1);
        } else if (c->yields) {
            sched_yield();
        }
    }
    NOT_A_TAIL();
}

APART static void chain_inner(struct chain *c)
{
    if (c->deeper > 0) {
        char bytes[200];

        memset(bytes, c->deeper--, sizeof bytes);
        chain_inner(c);
        __asm__ volatile("" :: "r"(bytes) : "memory");
        return;
    }
    wait_here(c);
    NOT_A_TAIL();
}

/* With alloca its frame has no fixed size: the table goes by the frame
 * pointer, or by an expression. */
APART static void chain_middle(struct chain *c)
{
    char *some = alloca((size_t)c->alloca_size + 16);

    memset(some, 1, (size_t)c->alloca_size + 16);
    chain_inner(c);
    __asm__ volatile("" :: "r"(some) : "memory");
}

/* A stack that is aligned anew: the CFA is an expression. */
APART static void chain_aligned(struct chain *c)
{
    _Alignas(128) char some[256];
    char *more = alloca((size_t)c->alloca_size + 16);

    memset(some, 2, sizeof some);
    memset(more, 2, (size_t)c->alloca_size + 16);
    chain_middle(c);
    __asm__ volatile("" :: "r"(some), "r"(more) : "memory");
}

__attribute__((visibility("default"))) APART void chain_outer(struct chain *c)
{
    chain_aligned(c);
    NOT_A_TAIL();
}
