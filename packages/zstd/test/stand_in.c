/*
 * stand_in.c - packages/zstd on the VM's stand-in (apps/fairnif/test/c).  What it
 * answers is tested by its own tests.
 */
#include "package.h"

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

static const package_call calls[] = {compresses, decompresses, compresses_hard};
enum { CALLS = sizeof calls / sizeof *calls };

/* Not where libzstd asks for it: of malloc, past the stand-in. */
TEST(no_memory, "wherever memory runs out, zstd's functions say so")
{
    for (unsigned pause = 0; pause < 2; pause++) {
        node_set("pause_every_tick", pause);
        for (int i = 0; i < CALLS; i++)
            fail_each(calls[i], VM_F_ALLOC | VM_F_BINARY, 1);
    }
}

TEST(killed, "wherever its caller dies, nothing is left, and the next call has what "
     "it kept")
{
    for (int i = 0; i < CALLS; i++)
        kill_each(calls[i], true);
}
