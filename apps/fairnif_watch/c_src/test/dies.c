/*
 * dies.c - a process that dies of SIGSEGV in a function that is known, beside a
 * thread that sleeps.  Without sanitizers: they write no core.
 */
#include <pthread.h>
#include <unistd.h>

__attribute__((noipa)) void dies_inner(volatile char *nowhere)
{
    *nowhere = 1;
}

__attribute__((noipa)) void dies_outer(volatile char *nowhere)
{
    dies_inner(nowhere);
    __asm__ volatile("" ::: "memory");
}

static void *sleeps(void *arg)
{
    pause();
    return arg;
}

int main(void)
{
    pthread_t thread;

    pthread_create(&thread, NULL, sleeps, NULL);
    usleep(20000);
    dies_outer((volatile char *)16);
    return 0;
}
