/*
 * os.c - what differs between operating systems: clocks, what a thread is
 * called, how a library stays.
 */
#define _GNU_SOURCE
#include <stdlib.h>
#include <time.h>

#include "rt.h"

#if defined(__linux__)
#  include <sys/prctl.h>
#  include <sys/syscall.h>
#  include <unistd.h>
#elif defined(_WIN32)
#  include <windows.h>
#elif defined(__APPLE__)
#  include <dlfcn.h>
#endif

#ifndef CLOCK_MONOTONIC_COARSE
#  define CLOCK_MONOTONIC_COARSE CLOCK_MONOTONIC
#endif

static uint64_t read_clock(clockid_t id)
{
    struct timespec ts;

    clock_gettime(id, &ts);
    return (uint64_t)ts.tv_sec * 1000000000u + (uint64_t)ts.tv_nsec;
}

uint64_t fair__now(void)
{
    return read_clock(CLOCK_MONOTONIC);
}

uint64_t fair__now_coarse(void)
{
    return read_clock(CLOCK_MONOTONIC_COARSE);
}

uint64_t fair__cpu_now(void)
{
    return read_clock(CLOCK_THREAD_CPUTIME_ID);
}

/* As the operating system knows it; 0 where that is of no use. */
int fair__thread_id(void)
{
#if defined(__linux__)
    return (int)syscall(SYS_gettid);
#elif defined(_WIN32)
    return (int)GetCurrentThreadId();
#else
    return 0;
#endif
}

static void name_of_thread(char *name, size_t size)
{
#if defined(__linux__)
    char comm[17] = "";

    prctl(PR_GET_NAME, comm);
    snprintf(name, size, "%s", comm);
#elif defined(__APPLE__)
    pthread_getname_np(pthread_self(), name, size);
#else
    (void)name, (void)size;
#endif
}

/* "1_scheduler", "1_dirty_cpu_sch" (OTP 25); "erts_sched_1", "erts_dcpus_1"
 * (OTP 26 on): the only number in the name.  0 where it has none. */
unsigned fair__thread_number(void)
{
    char name[64] = "";
    const char *p = name;

    name_of_thread(name, sizeof name);
    while (*p && (*p < '0' || *p > '9'))
        p++;
    return (unsigned)strtoul(p, NULL, 10);
}

/* This library stays mapped whatever happens to the module: authors' libraries
 * keep pointing here.  ELF has a linker flag for it (-z nodelete). */
bool fair__stay_loaded(void)
{
#if defined(_WIN32)
    HMODULE self;

    return GetModuleHandleExA(GET_MODULE_HANDLE_EX_FLAG_PIN
                              | GET_MODULE_HANDLE_EX_FLAG_FROM_ADDRESS,
                              (LPCSTR)(uintptr_t)fair__stay_loaded, &self);
#elif defined(__APPLE__)
    Dl_info self;

    return dladdr((void *)(uintptr_t)fair__stay_loaded, &self)
        && dlopen(self.dli_fname, RTLD_NOW | RTLD_NODELETE);
#else
    return true;
#endif
}
