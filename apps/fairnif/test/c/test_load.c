/*
 * test_load.c - loading, upgrading and purging authors' libraries.
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "check.h"
#ifndef VM_REAL
#include "resource/type.h"
#endif

ErlNifEntry *fairnif_nif_init(void);

static ERL_NIF_TERM nothing(fair_task *t)
{
    return enif_make_atom(fair_env(t), "ok");
}

static ErlNifFunc nifs[] = {FAIR_NIF("nothing", 0, nothing, FAIR_AUTO)};
FAIR_NIF_INIT(test_load, nifs, NULL, NULL, NULL)

/* -- what a header of another version would say -------------------------- */

static struct fair__nif the_nif;
static fair_options the_options;
static unsigned which_odd;
static int should_be;

/* Makes it odd in the nth way; the error that it should come to, -1 past the
 * last.  0 is not odd. */
static int make_odd(unsigned nth, struct fair__handshake *hs)
{
    switch (nth) {
    case 0: return 0;
    case 1: hs->options_size -= 8; return 0;
    case 2: hs->ops_size -= 8; return 0;
    case 3: hs->task_size -= 8; return 0;
    case 4: hs->abi_major++; return FAIR_E_ABI;
    case 5: hs->abi_major--; return FAIR_E_ABI;
    case 6: hs->abi_minor++; return FAIR_E_ABI;
    case 7: hs->task_size += 8; return FAIR_E_ABI;
    case 8: hs->nif_size -= 8; return FAIR_E_ABI;
    case 9: hs->options_size += 8; return FAIR_E_ABI;
    case 10: hs->ops_size += 8; return FAIR_E_ABI;
    case 11: hs->lib_size += 8; return FAIR_E_ABI;
    case 12: hs->bin_size -= 8; return FAIR_E_ABI;
    case 13: hs->mutex_size -= 8; return FAIR_E_ABI;
    case 14: hs->is.size -= 8; return FAIR_E_ABI;
    case 15: hs->is.size += 8; return 0;        /* a later header's */
    case 16: hs->is.kind = 2 | 5u << 16; return FAIR_E_ABI;     /* of 2.5 */
    case 17: the_nif.mode = 0; return FAIR_E_NIFS;
    case 18: the_nif.mode = FAIR_AUTO + 1; return FAIR_E_NIFS;
    case 19: the_nif.mode = 0xFF; return FAIR_E_NIFS;
    case 20: the_nif.mode = FAIR_AUTO | 0x4000; return FAIR_E_NIFS;
    case 21: the_nif.body = NULL; return FAIR_E_NIFS;
    case 22: the_nif.arity = 255; return FAIR_E_NIFS;
    }
    the_nif.options = &the_options;
    switch (nth) {
    case 23: return 0;
    case 24: the_options.stack_size = 1000; return FAIR_E_NIFS;
    case 25: the_options.stack_size = SIZE_MAX; return FAIR_E_NIFS;
    case 26: the_options.slice_us = 10000000; return FAIR_E_NIFS;
    }
    return -1;
}
enum { ODD_MODE = 18 };

static int odd_load(ErlNifEnv *env, void **priv, ERL_NIF_TERM info)
{
    struct fair__handshake hs;
    const ERL_NIF_TERM *elems;
    int arity;

    (void)priv;
    memset(&hs, 0, sizeof hs);
    the_nif = (struct fair__nif){.body = nothing, .name = "nothing",
                                 .mode = FAIR_AUTO};
    memset(&the_options, 0, sizeof the_options);
    the_options.body = nothing;
    hs.is = (struct fair__question){sizeof hs, FAIR__BINDS};
    hs.abi_major = FAIR_ABI_MAJOR;
    hs.abi_minor = FAIR_ABI_MINOR;
    hs.task_size = sizeof(struct fair_task);
    hs.options_size = sizeof(fair_options);
    hs.nif_size = sizeof(struct fair__nif);
    hs.lib_size = sizeof(struct fair__lib);
    hs.ops_size = sizeof(struct fair__ops);
    hs.bin_size = sizeof(fair_bin);
    hs.mutex_size = sizeof(fair_mutex);
    hs.module = "odd";
    hs.nifs = &the_nif;
    hs.nif_count = 1;
    should_be = make_odd(which_odd, &hs);
    enif_get_tuple(env, info, &arity, &elems);
    CHECK(enif_dynamic_resource_call(
        env, enif_make_atom(env, "fairnif"),
        enif_make_atom(env, "fairnif_runtime"), elems[2], &hs) == 0);
    return hs.error ? hs.error : hs.ops ? 0 : FAIR_E_ABI;
}

static ErlNifEntry *odd_init(void)
{
    static ErlNifEntry entry = {
        .major = 2, .minor = 16, .name = "odd", .load = odd_load,
        .vm_variant = ERL_NIF_VM_VARIANT, .options = 1
    };

    return &entry;
}

static int load_odd(unsigned nth)
{
    vm_proc *p = vm_spawn();
    int error = -1;
    vm_lib *odd;

    which_odd = nth;
    odd = vm_load(p, odd_init, node_load_info(p, "x"), NULL, &error);
    CHECK((odd == NULL) == (error != 0));
    if (odd)
        vm_purge(odd);
    vm_free(p);
    return error;
}

TEST(odd_ones, "a library made for another interface does not load, nor one "
     "with an unknown mode or a bad option")
{
    for (unsigned nth = 0; ; nth++) {
        int error = load_odd(nth);

        if (should_be < 0)
            break;
        check_that(error == should_be, __FILE__, __LINE__,
                   "odd in way %u: %d, not %d", nth, error, should_be);
    }
    CHECK_NUMBERS(which_odd, ==, 27);
}

static int load_with(const char *info)
{
    vm_proc *p = vm_spawn();
    int error = 0;

    CHECK(!vm_load(p, nif_init, vm_parse(vm_env(p), info), NULL, &error));
    vm_free(p);
    return error;
}

TEST(wrong_info, "load_info that is not fairnif's is refused")
{
    CHECK_NUMBERS(load_with("0"), ==, FAIR_E_LOAD_INFO);
    CHECK_NUMBERS(load_with("[]"), ==, FAIR_E_LOAD_INFO);
    CHECK_NUMBERS(load_with("{fairnif,a,b}"), ==, FAIR_E_LOAD_INFO);
    CHECK_NUMBERS(load_with("{other,a,b,c}"), ==, FAIR_E_LOAD_INFO);
    CHECK_NUMBERS(load_with("{fairnif,a,#Ref,c}"), ==, FAIR_E_RUNTIME);
    CHECK_NUMBERS(load_with("{fairnif,a,b,c}"), ==, FAIR_E_RUNTIME);
    CHECK_CALL("nothing", "", "ok");
}

TEST(no_memory, "a library loads or does not when memory runs out")
{
    int error = 0, n = 0;

    do {
        vm_proc *p = vm_spawn();
        vm_term info = node_load_info(p, "x");
        vm_lib *odd;

        which_odd = 0;
        vm_fail(VM_F_MEMORY, ++n, true);
        odd = vm_load(p, odd_init, info, NULL, &error);
        vm_fail(0, 0, false);
        CHECK(error == 0 || error == FAIR_E_NOMEM);
        if (odd)
            vm_purge(odd);
        vm_free(p);
    } while (error && n < 100);
    CHECK_NUMBERS(n, >, 1);
}

/* -- real libraries ------------------------------------------------------ */

void author_note(const char *text);
void author_note(const char *text)
{
    note("%s", text);
}

/* The shared object beside this executable. */
static void *open_author(int version, vm_init_fn *init)
{
    char path[1024], file[64];
    ssize_t n = readlink("/proc/self/exe", path, sizeof path - 64);
    void *handle, *symbol;

    path[n] = 0;
    snprintf(file, sizeof file, "/author_%d.so", version);
    strcpy(strrchr(path, '/'), file);
    handle = dlopen(path, RTLD_NOW | RTLD_LOCAL);
    if (!handle)
        vm_misuse("%s", dlerror());
    symbol = dlsym(handle, "nif_init");
    memcpy(init, &symbol, sizeof *init);
    return handle;
}

static bool is_mapped(int version)
{
    char line[1024], name[64];
    FILE *f = fopen("/proc/self/maps", "r");
    bool found = false;

    snprintf(name, sizeof name, "/author_%d.so", version);
    while (fgets(line, sizeof line, f))
        found = found || strstr(line, name);
    fclose(f);
    return found;
}

/* musl's dlclose unmaps nothing. */
static bool is_gone(int version)
{
#if defined(__GLIBC__)
    return !is_mapped(version);
#else
    return version > 0;
#endif
}

static void unmap(void *handle)
{
    dlclose(handle);
}

static vm_lib *load_author(int version, vm_lib *old, const char *info,
                           int *error)
{
    vm_proc *p = vm_spawn();
    vm_init_fn init;
    void *handle = open_author(version, &init);
    vm_lib *author = vm_load(p, init, node_load_info(p, info), old, error);

    if (author)
        vm_on_unmap(author, unmap, handle);
    else
        dlclose(handle);
    vm_free(p);
    return author;
}

static const char *call_author(vm_lib *author, const char *name,
                               const char *args)
{
    vm_proc *p = vm_spawn();

    vm_call(p, author, name, args);
    return finished(p);
}

static vm_proc *start_author(vm_lib *author, const char *name, int slices)
{
    vm_proc *p = vm_spawn();

    vm_call(p, author, name, "10");
    while (slices-- > 0)
        vm_step(p);
    return p;
}

TEST(own_state, "load, upgrade, unload and priv_data stay the author's")
{
    int error;
    vm_lib *one = load_author(1, NULL, "x", &error), *two;

    CHECK_TEXT(call_author(one, "plain", ""), "101");
    CHECK_TEXT(call_author(one, "version", ""), "1");
    two = load_author(2, one, "x", &error);
    CHECK_TEXT(call_author(two, "plain", ""), "102");
    vm_purge(one);
    CHECK_TEXT(notes(), "unload-one ");
    CHECK_TEXT(call_author(two, "plain", ""), "102");
    vm_purge(two);
    CHECK_TEXT(notes(), "unload-one unload-two ");
}

TEST(refused_load, "an author's load may fail, and nothing of it stays")
{
    int error = 0;
    vm_lib *one = load_author(1, NULL, "77", &error);

    CHECK(one == NULL);
    CHECK_NUMBERS(error, ==, 77);
    CHECK(is_gone(1));
    one = load_author(1, NULL, "x", &error);
    CHECK_TEXT(call_author(one, "version", ""), "1");
    CHECK(load_author(2, one, "78", &error) == NULL);
    CHECK_NUMBERS(error, ==, 78);
    CHECK(is_gone(2));
    CHECK_TEXT(call_author(one, "version", ""), "1");
    vm_purge(one);
    CHECK(is_gone(1));
}

TASKS_TEST(upgrade, "tasks continue in the old code after an upgrade")
{
    int error;
    vm_lib *one = load_author(1, NULL, "x", &error), *two;
    vm_proc *suspended, *queued, *fresh;
    char buf[1024];

    node_set("pause_every_tick", 1);
    suspended = start_author(one, "waits", 3);
    queued = start_author(one, "waits_dirty", 1);
    two = load_author(2, one, "x", &error);
    fresh = start_author(two, "waits", 3);
    CHECK_TEXT(finished(suspended), "{1,10}");
    CHECK_TEXT(finished(queued), "{1,10}");
    CHECK_TEXT(finished(fresh), "{2,10}");
    CHECK_TEXT(notes(), "one one two ");
    CHECK_TEXT(call_author(two, "new_in_two", ""), "2");
    CHECK_TEXT(node_tasks(buf, sizeof buf), "[]");
    vm_purge(one);
    CHECK(vm_unmapped(one) && is_gone(1));
    CHECK_NUMBERS(node_counter("waits", "calls"), ==, 2);
    vm_purge(two);
    CHECK(is_gone(2));
    CHECK_NUMBERS(node_counter("waits", "calls"), ==, 2);
}

TASKS_TEST(purge, "a purge ends its tasks, runs their deferred functions and "
     "unmaps the library")
{
    for (int kind = VM_NORMAL; kind < VM_KINDS; kind++) {
        int error;
        vm_lib *one = load_author(1, NULL, "x", &error), *two;
        vm_proc *p[4];

        vm_options.dead_heaps_on = kind;
        clear_notes();
        node_set("pause_every_tick", 1);
        p[0] = start_author(one, "waits", 1);
        p[1] = start_author(one, "waits", 5);
        p[2] = start_author(one, "waits_dirty", 1);     /* not begun */
        p[3] = start_author(one, "waits_dirty", 2);
        two = load_author(2, one, "x", &error);
        vm_purge(one);
        CHECK_TEXT(notes(), "one one one unload-one ");
        CHECK(is_gone(1));
        CHECK_NUMBERS(node_stacks(), ==, 0);
        for (int i = 0; i < 4; i++) {
            CHECK(vm_state(p[i]) == VM_DEAD);
            vm_free(p[i]);
        }
        vm_purge(two);
    }
}

TASKS_TEST(late_purge, "a library stays mapped until the last of its tasks is "
     "gone")
{
    int error;
    vm_lib *one = load_author(1, NULL, "x", &error), *two;
    vm_proc *p;

    node_set("pause_every_tick", 1);
    p = start_author(one, "waits", 3);
    vm_options.late_destructors = true;
    two = load_author(2, one, "x", &error);
    vm_purge(one);
    vm_free(p);
    CHECK_TEXT(notes(), "unload-one ");
    CHECK(is_mapped(1));
    vm_run_destructors();
    CHECK_TEXT(notes(), "unload-one one ");
    CHECK(is_gone(1));
    vm_options.late_destructors = false;
    CHECK_TEXT(call_author(two, "waits", "3"), "{2,3}");
    vm_purge(two);
}

/* The same file again: the same statics, in use. */
TASKS_TEST(same_file, "a library is upgraded to itself while its tasks run")
{
    int error;
    vm_lib *one = load_author(1, NULL, "x", &error), *again;
    vm_proc *old, *new;

    node_set("pause_every_tick", 1);
    old = start_author(one, "waits", 3);
    again = load_author(1, one, "x", &error);
    CHECK(again != NULL);
    new = start_author(again, "waits", 3);
    CHECK_TEXT(finished(old), "{1,10}");
    old = start_author(one, "waits", 3);        /* still runs old code */
    vm_purge(one);
    CHECK_TEXT(notes(), "one one unload-one ");
    CHECK(is_mapped(1));
    vm_free(old);
    CHECK_TEXT(finished(new), "{1,10}");
    vm_purge(again);
    CHECK(is_gone(1));
}

/* -- fair resources -------------------------------------------------------- */

static vm_proc *with_thing(vm_lib *author)
{
    vm_proc *p = vm_spawn();

    vm_call(p, author, "make", "");
    CHECK(vm_finish(p) == VM_DONE);
    return p;
}

TEST(cleans_purged, "a library that was purged stays mapped until its objects "
     "have cleaned up")
{
    int error;
    vm_lib *one = load_author(1, NULL, "x", &error);
    vm_proc *p = with_thing(one);

    gate_shut();
    node_set("pause_every_tick", 1);
    vm_purge(one);
    CHECK_TEXT(notes(), "unload-one ");
    CHECK(is_mapped(1));
    vm_free(p);
    EVENTUALLY(gate_waiting() == 1);
    CHECK(is_mapped(1));
    gate_open();
    EVENTUALLY(is_noted("unload-one clean-one "));
    EVENTUALLY(is_gone(1));
    one = load_author(1, NULL, "x", &error);
    vm_free(with_thing(one));
    EVENTUALLY(is_noted("unload-one clean-one clean-one "));
    vm_purge(one);
    EVENTUALLY(is_gone(1));
}

TEST(down_purged, "a library that was purged stays mapped while its objects are "
     "notified of a death")
{
    int error;
    vm_lib *one = load_author(1, NULL, "x", &error);
    vm_proc *owner = with_thing(one), *other = vm_spawn();
    vm_term thing = enif_make_copy(vm_env(other), vm_result(owner));

    gate_shut();
    node_set("pause_every_tick", 1);
    vm_call_array(other, one, "monitored", 1, &thing);
    CHECK(vm_finish(other) == VM_DONE);
    vm_free(other);
    EVENTUALLY(gate_waiting() == 1);
    vm_purge(one);
    vm_free(owner);                     /* only `down` refers to it now */
    CHECK_TEXT(notes(), "unload-one ");
    CHECK(is_mapped(1));
    gate_open();
    EVENTUALLY(is_noted("unload-one down-one clean-one "));
    EVENTUALLY(is_gone(1));
}

TEST(cleans_upgraded, "an upgraded library cleans up its predecessor's objects, "
     "a refused one does not")
{
    int error;
    vm_lib *one = load_author(1, NULL, "x", &error), *two;
    vm_proc *p = with_thing(one), *refused = with_thing(one);

    gate_open();
    CHECK(load_author(2, one, "78", &error) == NULL);
    vm_free(refused);
    EVENTUALLY(is_noted("clean-one "));
    EVENTUALLY(node_stacks() == 0);
    two = load_author(2, one, "x", &error);
    vm_purge(one);
    EVENTUALLY(is_gone(1));
    vm_free(p);
    EVENTUALLY(is_noted("clean-one unload-one clean-two "));
    vm_purge(two);
    EVENTUALLY(is_gone(2));
}

#ifndef VM_REAL
static uint64_t refused(void)
{
    struct fair__seen_type all[8];
    unsigned n = fair__resource_types(all, 8);

    for (unsigned i = 0; i < n; i++)
        if (!strcmp(all[i].module, "author"))
            return all[i].refused;
    return 0;
}

/* In a process of its own, which then ends. */
static void monitor(vm_lib *author, vm_proc *owner, const char *expected)
{
    vm_proc *p = vm_spawn();
    vm_term thing = enif_make_copy(vm_env(p), vm_result(owner));

    vm_call_array(p, author, "monitored", 1, &thing);
    CHECK_TEXT(finished(p), expected);
}

TEST(grown, "an object smaller than an upgraded library reads is refused by its "
     "functions and its callbacks, and counted; older code still works with it")
{
    int error;
    vm_lib *one = load_author(1, NULL, "sized", &error), *two;
    vm_proc *small = with_thing(one), *large;
    uint64_t before = refused();

    gate_open();
    two = load_author(2, one, "sized", &error);
    large = with_thing(two);
    monitor(two, small, "error:badarg");
    CHECK_NUMBERS(refused(), ==, before + 1);
    monitor(one, small, "0");           /* and dies: no `down' either */
    monitor(two, large, "0");
    EVENTUALLY(is_noted("down-two "));
    CHECK_NUMBERS(refused(), ==, before + 2);
    vm_purge(one);
    vm_free(small);
    CHECK_NUMBERS(refused(), ==, before + 3);
    vm_free(large);
    EVENTUALLY(is_noted("down-two unload-one clean-two "));
    vm_purge(two);
    EVENTUALLY(is_gone(2));
}

TEST(refused_type, "a type that a refused library opened is not shown")
{
    struct fair__seen_type all[8];
    int error;
    unsigned before = fair__resource_types(all, 8);
    vm_lib *one;

    CHECK(load_author(1, NULL, "78", &error) == NULL);
    CHECK_NUMBERS(fair__resource_types(all, 8), ==, before);
    one = load_author(1, NULL, "x", &error);
    CHECK_NUMBERS(fair__resource_types(all, 8), ==, before + 1);
    vm_purge(one);
    EVENTUALLY(is_gone(1));
}
#endif

TEST(cleans_meanwhile, "clean-ups that have begun, and such as wait for their "
     "turn, continue in the library that they began in")
{
    int error;
    vm_lib *one = load_author(1, NULL, "x", &error), *two;
    unsigned n = (unsigned)node_info("dirty_cpus") + 2;

    gate_shut();
    for (unsigned i = 0; i < n; i++)
        vm_free(with_thing(one));
    EVENTUALLY(gate_waiting() == (int)n - 2);
    two = load_author(2, one, "x", &error);
    vm_purge(one);
    CHECK(is_mapped(1));
    vm_free(with_thing(two));
    gate_open();
    EVENTUALLY(is_gone(1));
    EVENTUALLY(is_noted("clean-two "));
    vm_purge(two);
    EVENTUALLY(is_gone(2));
}

TASKS_TEST(runtime_again, "libraries bind to a runtime that was upgraded")
{
    vm_proc *p = vm_spawn(), *task;
    int error;
    vm_lib *one = load_author(1, NULL, "x", &error);

    node_set("pause_every_tick", 1);
    task = start_author(one, "waits", 3);
    CHECK(node_runtime_again(p, NULL, &error) != NULL);
    CHECK_TEXT(finished(task), "{1,10}");
    CHECK_TEXT(call_author(one, "version", ""), "1");
    vm_purge(one);
    one = load_author(1, NULL, "x", &error);
    CHECK_TEXT(call_author(one, "version", ""), "1");
    vm_purge(one);
    vm_free(p);
}
