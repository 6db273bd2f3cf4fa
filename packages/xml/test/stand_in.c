/*
 * stand_in.c - packages/xml on the VM's stand-in (apps/fairnif/test/c).  What it
 * answers is tested by its own tests.
 */
#include <stdio.h>

#include "package.h"

/* Text with all that the parser and the writer know, of some blocks. */
static const unsigned char *document(size_t *size)
{
    static unsigned char text[12000];
    static const char part[] =
        "<item id='1' name=\"a &lt; b\" xml:lang='en'>text &amp; more\n"
        "<![CDATA[<raw>]]><empty/><!-- no --><?pi no?>\303\244</item>";
    size_t n = 0;

    n += (size_t)sprintf((char *)text, "<?xml version='1.0'?><doc>");
    while (n + sizeof part + 10 < sizeof text) {
        memcpy(text + n, part, sizeof part - 1);
        n += sizeof part - 1;
    }
    n += (size_t)sprintf((char *)text + n, "</doc>");
    *size = n;
    return text;
}

/* On a process of its own: nif_parse, which takes limits of depth and of
 * attributes; to_binary of what that made. */
static vm_proc *parses(void)
{
    vm_proc *p = vm_spawn();
    size_t size;
    const unsigned char *text = document(&size);
    vm_term args[] = {
        vm_binary(vm_env(p), text, size), enif_make_int(vm_env(p), 100),
        enif_make_int(vm_env(p), 100)
    };

    vm_call_array(p, lib, "nif_parse", 3, args);
    return p;
}

static vm_proc *writes(void)
{
    vm_proc *p = parses();
    vm_term tree;

    vm_finish(p);
    tree = vm_result(p);
    vm_call_array(p, lib, "to_binary", 1, &tree);
    return p;
}

static void fail_all(void)
{
    fail_each(parses, VM_F_ALLOC, 3);
    fail_each(parses, VM_F_BINARY, 1);
    fail_each(writes, VM_F_ALLOC, 3);
    fail_each(writes, VM_F_BINARY, 1);
}

TEST(no_memory, "wherever memory runs out, expat's parser and writer say so")
{
    fail_all();
}

TEST(no_memory_paused, "the same with a pause at every tick")
{
    node_set("pause_every_tick", 1);
    fail_all();
}

TEST(killed, "wherever its caller dies, nothing is left")
{
    kill_each(parses, false);
    kill_each(writes, false);
}
