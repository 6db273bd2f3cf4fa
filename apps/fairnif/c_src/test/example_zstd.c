/*
 * example_zstd.c - examples/zstd on the stand-in: memory that runs out anywhere,
 * a caller that dies anywhere, under the sanitizers.  What it answers is tested
 * by its own tests.
 */
#include <string.h>

#include "check.h"

enum { SIZE = 300000 };

/* Half of it repeats. */
static vm_term data(vm_proc *p)
{
    static unsigned char bytes[SIZE];
    uint32_t x = 1;

    for (int i = 0; i < SIZE; i++) {
        x = x * 1664525 + 1013904223;
        bytes[i] = (unsigned char)(i % 200 < 100 ? i % 200
                                   : (int)(x >> 24));
    }
    return vm_binary(vm_env(p), bytes, SIZE);
}

static vm_proc *compresses_at(int level)
{
    vm_proc *p = vm_spawn();
    vm_term args[] = {data(p), enif_make_int(vm_env(p), level)};

    vm_call_array(p, lib, "compress", 2, args);
    return p;
}

static vm_proc *compresses(void)
{
    return compresses_at(3);
}

/* On a dirty scheduler, with a context that is not kept. */
static vm_proc *compresses_hard(void)
{
    return compresses_at(15);
}

static vm_proc *decompresses(void)
{
    vm_proc *p = compresses();
    vm_term args[2];

    vm_finish(p);
    args[0] = vm_result(p);
    args[1] = enif_make_uint64(vm_env(p), 1 << 30);
    vm_call_array(p, lib, "decompress", 2, args);
    return p;
}

static vm_proc *(*const calls[])(void) = {
    compresses, decompresses, compresses_hard
};

/* Not where libzstd asks for it: of malloc, past the stand-in. */
TEST(no_memory, "wherever memory runs out, zstd's functions say so")
{
    for (unsigned pause = 0; pause < 2; pause++) {
        node_set("pause_every_tick", pause);
        for (unsigned i = 0; i < sizeof calls / sizeof *calls; i++) {
            bool failed = true;

            for (long n = 1; failed; n++) {
                vm_proc *p = calls[i]();
                const char *answer;

                vm_fail(VM_F_ALLOC | VM_F_BINARY, n, false);
                vm_finish(p);
                failed = vm_failed();
                vm_fail(0, 0, false);
                answer = outcome(p);
                if (strncmp(answer, "error:", 6) == 0)
                    check_that(failed && strcmp(answer, "error:enomem") == 0,
                               __FILE__, __LINE__, "%s", answer);
                vm_free(p);
            }
        }
    }
}

TEST(killed, "wherever its caller dies, nothing is left, and the next call has what "
     "it kept")
{
    node_set("pause_every_tick", 1);
    for (unsigned i = 0; i < sizeof calls / sizeof *calls; i++) {
        int steps = 0;

        for (bool over = false; !over; steps++) {
            vm_proc *p = calls[i]();

            for (int n = 0; n < steps && !over; n++)
                over = vm_step(p) == VM_DONE;
            vm_kill(p);
            vm_free(p);
            EVENTUALLY(node_stacks() == 0);
        }
        CHECK_NUMBERS(steps, >, modes[1].yields ? 3 : 0);
    }
}
