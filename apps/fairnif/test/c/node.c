/*
 * node.c - the node a test runs on: the VM's stand-in with the runtime and
 * the test file's library loaded, through the same doors as in a real node.
 */
#include <stdio.h>
#include <string.h>

#include "check.h"
#include "tools.h"
#include "task/stack.h"
#include "thread/pool.h"
#include "thread/thread.h"

ErlNifEntry *fairnif_nif_init(void);

vm_lib *lib;

static vm_lib *runtime;
static vm_proc *shell;          /* holds the author's load_info */
static struct vm_counts at_start;

/* -- start and stop ------------------------------------------------------ */

/* Calls a NIF of the runtime. */
static vm_term ask(vm_proc *p, const char *name, const char *args)
{
    vm_call(p, runtime, name, args);
    if (vm_finish(p) != VM_DONE)
        vm_misuse("fairnif:%s(%s): %s", name, args, outcome(p));
    return vm_result(p);
}

vm_term node_load_info(vm_proc *p, const char *info)
{
    vm_term object = ask(p, "nif_runtime", "");
    ErlNifEnv *env = vm_env(p);

    return enif_make_tuple4(env, enif_make_atom(env, "fairnif"),
                            enif_make_string(env, "0", ERL_NIF_LATIN1),
                            object, vm_parse(env, info));
}

void node_without_pool(void)
{
    vm_options.without_pool = true;
}

void node_start(vm_init_fn init)
{
    int error;

    vm_start(3, 2, 2);
    shell = vm_spawn();
    runtime = vm_load(shell, fairnif_nif_init, VM_NIL, NULL, &error);
    if (!runtime)
        vm_misuse("loading the runtime: %d", error);
    lib = vm_load(shell, init, node_load_info(shell, "undefined"), NULL,
                  &error);
    if (!lib)
        vm_misuse("loading the library: %d", error);
    if (!vm_options.without_pool) {
        ask(shell, "nif_start_pool", "");
        EVENTUALLY(fair__pool_counts().idle == 1);  /* it looks at the clock before */
    }
    vm_free(shell);
    shell = NULL;
    node_set("dirty_cpus", (uint64_t)vm_thread_count(VM_DIRTY_CPU));
    at_start = vm_counts();
}

vm_lib *node_upgrade(vm_init_fn init)
{
    vm_proc *p = vm_spawn();
    vm_lib *old = lib;
    int error;

    lib = vm_load(p, init, node_load_info(p, "x"), old, &error);
    CHECK_NUMBERS(error, ==, 0);
    vm_free(p);
    vm_purge(old);
    return old;
}

vm_lib *node_runtime_again(vm_proc *p, void (*between)(void), int *error)
{
    vm_lib *old = runtime, *again;
    vm_term object = ask(p, "nif_runtime", "");

    if (between) {
        vm_purge(old);
        between();
    }
    again = vm_load(p, fairnif_nif_init, object, between ? NULL : old, error);
    if (again && !between)
        vm_purge(old);
    if (again)
        runtime = again;
    return again;
}

static struct fair__visitor *visitor;

static int visitor_load(ErlNifEnv *env, void **priv, ERL_NIF_TERM info)
{
    const ERL_NIF_TERM *elems;
    int arity;

    (void)priv;
    enif_get_tuple(env, info, &arity, &elems);
    CHECK(enif_dynamic_resource_call(
        env, enif_make_atom(env, "fairnif"),
        enif_make_atom(env, "fairnif_runtime"), elems[2], visitor) == 0);
    return 0;
}

static ErlNifEntry *visitor_init(void)
{
    static ErlNifEntry entry = {
        .major = 2, .minor = 16, .name = "visitor", .load = visitor_load,
        .vm_variant = ERL_NIF_VM_VARIANT, .options = 1
    };

    return &entry;
}

void node_visit(struct fair__visitor *asks)
{
    vm_proc *p = vm_spawn();
    int error = -1;
    vm_lib *library;

    visitor = asks;
    library = vm_load(p, visitor_init, node_load_info(p, "x"), NULL, &error);
    CHECK(library != NULL && error == 0);
    if (library)
        vm_purge(library);
    vm_free(p);
}

const char *node_leftovers(void)
{
    static char buf[512];
    const char *differs = vm_differs(&at_start, buf, sizeof buf);

    return differs ? differs : "";
}

void node_stop(void)
{
    /* abandoned calls may still be at work */
    EVENTUALLY(fair__pool_counts().busy == 0);
    EVENTUALLY(!vm_selects_at_work());
    vm_run_destructors();
    EVENTUALLY(node_stacks() == 0);     /* large ones are trimmed by the pool */
    CHECK_TEXT(node_leftovers(), "");
    CHECK_NUMBERS(vm_counts().maps - at_start.maps, ==, node_stacks_mapped());
    vm_stop();
}

const char check_tool[] = TOOL ", switch " FAIR_SWITCH;

void check_run(const struct check_test *test)
{
    if (test->before)
        test->before();
    node_start(test->init);
    test->fn();
    node_stop();
}

const char *check_skip(const struct check_test *test)
{
    const char *slash = strrchr(test->file, '/');
    const char *file = slash ? slash + 1 : test->file;

    for (size_t i = 0; i < sizeof skips / sizeof *skips; i++)
        if (!strcmp(skips[i].where, TOOL)
            && (!strcmp(skips[i].test, test->sentence)
                || !strcmp(skips[i].test, file)))
            return skips[i].why;
#ifdef FAIR_NO_TASKS
    if (test->needs_tasks)
        return "there are no tasks";
#endif
    return NULL;
}

/* -- settings and figures ------------------------------------------------ */

void node_set(const char *name, uint64_t value)
{
    vm_proc *p = vm_spawn();
    char args[64];

    snprintf(args, sizeof args, "%s, %lu", name, (unsigned long)value);
    ask(p, "nif_set", args);
    vm_free(p);
}

long node_stacks(void)
{
    struct fair__stack_counts c = fair__stack_counts();

    return (long)(c.mapped - c.pooled);
}

long node_stacks_mapped(void)
{
    return (long)fair__stack_counts().mapped;
}

const char *node_tasks(char *buf, size_t size)
{
    vm_proc *p = vm_spawn();

    vm_print(ask(p, "nif_tasks", ""), buf, size);
    vm_free(p);
    return buf;
}

long node_counter(const char *function, const char *counter)
{
    vm_proc *p = vm_spawn();
    ErlNifEnv *env = vm_env(p);
    vm_term list, head, value;
    const vm_term *elems;
    char name[128];
    long n, sum = -1;
    int arity;

    enif_get_tuple(env, ask(p, "nif_info", ""), &arity, &elems);
    list = elems[1];
    while (enif_get_list_cell(env, list, &head, &list)) {
        if (!enif_get_map_value(env, head, vm_parse(env, "function"), &value)
            || !enif_get_tuple(env, value, &arity, &elems))
            continue;
        enif_get_atom(env, elems[1], name, sizeof name, ERL_NIF_LATIN1);
        if (strcmp(name, function))
            continue;
        if (enif_get_map_value(env, head, vm_parse(env, counter), &value)
            && enif_get_long(env, value, &n))
            sum = (sum < 0 ? 0 : sum) + n;
    }
    vm_free(p);
    return sum;
}

void node_forget(const char *function)
{
    for (unsigned i = 0; i < fair__func_count(); i++) {
        struct fair__func *f = fair__func_nth(i);

        if (strcmp(f->name, function) != 0)
            continue;
        SET(f->unit_ns, 0);
        SET(f->call_ns, 0);
        SET(f->peak_ns, 0);
        SET(f->mean_ns, 0);
        SET(f->first_budget, 0);
        SET(f->warm_calls, 0);
        SET(f->suspect, 0);
        SET(f->long_gaps, 0);
    }
}

long node_records(void)
{
    long n = 0;

    for (struct fair__thread *th = fair__threads(); th; th = th->next)
        n++;
    return n;
}

long node_info(const char *key)
{
    vm_proc *p = vm_spawn();
    ErlNifEnv *env = vm_env(p);
    const vm_term *elems;
    vm_term value;
    long n = -1;
    int arity;

    enif_get_tuple(env, ask(p, "nif_info", ""), &arity, &elems);
    if (enif_get_map_value(env, elems[0], vm_parse(env, key), &value))
        enif_get_long(env, value, &n);
    vm_free(p);
    return n;
}

/* -- calls --------------------------------------------------------------- */

vm_proc *spawn_await(const char *name, const char *args)
{
    vm_proc *p = vm_spawn();

    vm_await(p, lib, name, args, runtime);
    return p;
}

void node_await(vm_proc *p, const char *name, int argc, const vm_term argv[])
{
    vm_await_array(p, lib, name, argc, argv, runtime);
}

void node_await_term(vm_proc *p, vm_term term)
{
    vm_await_term(p, term, runtime);
}

void until_waiting(vm_proc *p)
{
    enum vm_state state = vm_state(p);

    while (state == VM_READY)
        state = vm_step(p);
}

void step_by_step(void)
{
}

void run_all_slices(void *p)
{
    while (vm_slice(p) == VM_READY)
        ;
}

bool still_waits(vm_proc *p)
{
    return vm_step(p) == VM_WAITING;
}

void node_call(vm_proc *p, const char *name, int argc, const vm_term argv[])
{
    vm_call_array(p, runtime, name, argc, argv);
}

vm_proc *node_spawn(const char *name, const char *args)
{
    vm_proc *p = vm_spawn();

    vm_call(p, runtime, name, args);
    return p;
}
