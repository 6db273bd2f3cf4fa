/*
 * test_runtime.c - the runtime's own NIFs, as module fairnif uses them, and
 * its reloading.
 */
#include <signal.h>
#include <string.h>
#include <sys/eventfd.h>

#include "check.h"

static ERL_NIF_TERM work(fair_task *t)
{
    unsigned n;

    if (!fair_get_uint(t, fair_arg(t, 0), &n))
        return fair_badarg(t);
    for (unsigned i = 0; i < n; i++) {
        vm_work(1000);
        fair_tick(t, 1);
    }
    return enif_make_atom(fair_env(t), "ok");
}

/* makes(N): N list cells, by the runtime's functions */
static ERL_NIF_TERM makes(fair_task *t)
{
    unsigned n, list = fair_root_new(t, enif_make_list(fair_env(t), 0));

    if (!fair_get_uint(t, fair_arg(t, 0), &n))
        return fair_badarg(t);
    for (unsigned i = 0; i < n; i++) {
        fair_list_push(t, list, fair_arg(t, 0));
        fair_tick(t, 1);
    }
    return enif_make_atom(fair_env(t), "ok");
}

/* For a descriptor that it passes, and time. */
static ERL_NIF_TERM waits(fair_task *t)
{
    ERL_NIF_TERM term = fair_adopt_fd(t, eventfd(0, EFD_CLOEXEC));
    int fd;

    if (!term || !fair_get_fd(t, term, &fd))
        return fair_badarg(t);
    fair_root_new(t, term);
    fd = fair_wait(t, fd, FAIR_READ, 1);
    return enif_make_int(fair_env(t), fd == -ETIMEDOUT ? 0 : fd);
}

static ErlNifFunc nifs[] = {
    FAIR_NIF("waits", 0, waits, FAIR_AUTO | FAIR_MAY_WAIT),
    ALL_MODES("work", 1, work),
    ALL_MODES("makes", 1, makes),
};
FAIR_NIF_INIT(test_runtime, nifs, NULL, NULL, NULL)

static void check_nif(const char *name, const char *args, const char *should,
                      int line)
{
    const char *is = finished(node_spawn(name, args));

    check_that(!strcmp(is, should), __FILE__, line, "%s(%s) is %s, not %s",
               name, args, is, should);
}

TEST(settings, "settings are set within their bounds, and only those that are "
     "there")
{
    check_nif("nif_set", "slice_ns, 30000", "ok", __LINE__);
    check_nif("nif_set", "slice_ns, 0", "error:badarg", __LINE__);
    check_nif("nif_set", "slice_ns, -1", "error:badarg", __LINE__);
    check_nif("nif_set", "slice_ns, 18446744073709551615", "error:badarg",
              __LINE__);
    check_nif("nif_set", "pause_every_tick, 2", "error:badarg", __LINE__);
    check_nif("nif_set", "no_such_thing, 1", "error:badarg", __LINE__);
    check_nif("nif_set", "\"slice_ns\", 1", "error:badarg", __LINE__);
    check_nif("nif_set", "slice_ns, a", "error:badarg", __LINE__);
}

#ifdef FAIR_NO_TASKS
#  define HANDLER "none"
#  define REPLACED "none"
#else
#  define HANDLER "installed"
#  define REPLACED "replaced"
#endif

TEST(handler, "info says that another library has the handler of overflows")
{
    static char text[1 << 20];
    struct sigaction other = {.sa_handler = SIG_DFL}, ours;
    vm_proc *p;

    sigaction(SIGSEGV, &other, &ours);
    p = node_spawn("nif_info", "");
    CHECK(vm_finish(p) == VM_DONE);
    vm_print(vm_result(p), text, sizeof text);
    sigaction(SIGSEGV, &ours, NULL);
    vm_free(p);
    CHECK(strstr(text, "overflow_handler=>" REPLACED) != NULL);
}

TEST(info, "info shows settings, stacks and functions")
{
    static const char *const parts[] = {
        "slice_ns=>31000", "stack_guard=>", "stacks_idle=>",
        "stacks_mapped=>", "version=>", "overflow_handler=>" HANDLER,
        "function=>{test_runtime,work_auto,1}"
    };
    static char text[1 << 20];
    vm_proc *p;

    node_set("slice_ns", 31000);
    CHECK_CALL("work_auto", "10", "ok");
    p = node_spawn("nif_info", "");
    CHECK(vm_finish(p) == VM_DONE);
    vm_print(vm_result(p), text, sizeof text);
    for (unsigned i = 0; i < sizeof parts / sizeof *parts; i++)
        check_that(strstr(text, parts[i]), __FILE__, __LINE__, "no %s",
                   parts[i]);
    vm_free(p);
    CHECK_NUMBERS(node_counter("work_auto", "calls"), ==, 1);
    CHECK_NUMBERS(node_counter("work_auto", "slices"), >=, 1);
    CHECK_NUMBERS(node_counter("work_normal", "calls"), ==, 0);
    CHECK_NUMBERS(node_counter("no_such", "calls"), ==, -1);
}

TEST(counted, "calls, slices and time are counted where they were used")
{
    vm_options.virtual_time = true;
    for (int i = 0; i < 6; i++) {
        const char *name = in_mode("work", &modes[i]);
        bool normal = modes[i].first == 'n';
        vm_proc *p = spawn_call(name, "10000");      /* 10 ms */
        long on, off;

        vm_finish(p);
        CHECK_NUMBERS(node_counter(name, "calls"), ==, 1);
        on = node_counter(name, normal ? "normal_ns" : "dirty_ns");
        off = node_counter(name, normal ? "dirty_ns" : "normal_ns");
        CHECK_NUMBERS(on, >=, 9500000);
        CHECK_NUMBERS(on, <=, 11000000);
        CHECK_NUMBERS(off, <=, 10000);
        CHECK_NUMBERS(node_counter(name, "yields"), <=, vm_slices(p));
        CHECK_NUMBERS(node_counter(name, "slices"), <=, vm_slices(p));
        vm_free(p);
    }
}

TASKS_TEST(cpu_time, "slices are measured in CPU time when set to")
{
    vm_options.virtual_time = true;
    node_set("measure_cpu", 1);
    for (int i = 0; i < 6; i++)
        CHECK_CALL(in_mode("work", &modes[i]), "1000", "ok");
    CHECK_NUMBERS(node_counter("work_auto", "longest_slice_ns"), >, 0);
    CHECK_NUMBERS(node_counter("work_auto", "longest_slice_ns"), <=, 50000);
}

TEST(measured, "what a reschedule and a dirty call cost is measured")
{
    for (int i = 0; i < 2; i++) {
        const char *name = i ? "nif_dirty_round_trip_ns" : "nif_reschedule_ns";
        vm_proc *p = node_spawn(name, "10");
        unsigned long ns = 0;

        CHECK(vm_finish(p) == VM_DONE);
        CHECK(enif_get_ulong(vm_env(p), vm_result(p), &ns) && ns > 0);
        CHECK_TEXT(vm_kinds(p), i ? "nncncncncncncncncncncn" : "nnnnnnnnnnnn");
        vm_free(p);
        check_nif(name, "0", "error:badarg", __LINE__);
        check_nif(name, "a", "error:badarg", __LINE__);
    }
}

/* Cells of 16 bytes: 1 MiB of them is where a dirty task passes a normal
 * scheduler, however long its slices are. */
TASKS_TEST(garbage, "a dirty task that makes many terms does so in pieces")
{
    vm_proc *p = spawn_call("makes_yielding_dirty", "200000");
    long hops = 0;

    vm_options.virtual_time = true;
    node_set("dirty_slice_ns", 1000000000);
    vm_finish(p);
    CHECK_TEXT(outcome(p), "ok");
    for (const char *k = vm_kinds(p) + 1; *k; k++)
        hops += *k == 'n';
    CHECK_NUMBERS(hops, >=, 2);
    CHECK_NUMBERS(hops, <=, 5);
    vm_free(p);
}

/* Its pending value, and its descriptor, are objects of the module. */
static vm_proc *waiter;

static void begin_to_wait(void)
{
    waiter = spawn_call("waits", "");
    CHECK(vm_finish(waiter) == VM_DONE);
#ifdef FAIR_NO_TASKS
    CHECK_TEXT(outcome(waiter), "0");   /* it has waited on its dirty scheduler */
#else
    CHECK(strncmp(outcome(waiter), "{fairnif_pending,", 17) == 0);
#endif
}

static void load_again(void (*between)(void))
{
    static long calls;
    vm_proc *p = vm_spawn(), *task;
    int error;

    node_set("pause_every_tick", 1);
    task = spawn_call("work_yielding", "10");
    vm_step(task);
    vm_step(task);
    CHECK(node_runtime_again(p, between, &error));
    CHECK_TEXT(finished(task), "ok");
    CHECK_CALL("work_auto", "10", "ok");
    if (between) {
        node_await_term(waiter, vm_result(waiter));
        CHECK_TEXT(finished(waiter), "0");
    }
    CHECK_TEXT(finished(spawn_await("waits", "")), "0");
    CHECK_NUMBERS(node_counter("work_yielding", "calls"), ==, ++calls);
    vm_free(p);
}

TEST(upgraded, "module fairnif may be upgraded under its authors")
{
    load_again(NULL);
}

TEST(reloaded, "fairnif may be purged and reloaded under its authors, whose "
     "calls begin to wait meanwhile")
{
    load_again(begin_to_wait);
    load_again(begin_to_wait);
}
