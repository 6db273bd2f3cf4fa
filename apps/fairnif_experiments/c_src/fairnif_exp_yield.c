/*
 * fairnif_exp_yield.c - preloaded into a peer: counts the calls of sched_yield,
 * and with FAIRNIF_EXP_NO_YIELD in the environment does nothing else there.
 *
 * fairnif_exp_nif finds the counter by its name.
 */
#define _GNU_SOURCE
#include <stdbool.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <unistd.h>

#define SHOWN __attribute__((visibility("default")))

extern unsigned long fairnif_exp_yields;
SHOWN unsigned long fairnif_exp_yields;

static bool yields = true;

__attribute__((constructor)) static void begin(void)
{
    yields = getenv("FAIRNIF_EXP_NO_YIELD") == NULL;
}

SHOWN int sched_yield(void)
{
    __atomic_fetch_add(&fairnif_exp_yields, 1, __ATOMIC_RELAXED);
    return yields ? (int)syscall(SYS_sched_yield) : 0;
}
