/*
 * test_vm_select.c - selected descriptors in the stand-in for the VM, as in the
 * real one.  Each answer here is one that OTP 25 gave.
 */
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "check.h"

/* -- the library --------------------------------------------------------- */

static ErlNifResourceType *type, *plain;
static long destroyed;

static void dtor(ErlNifEnv *env, void *obj)
{
    ErlNifPid pid;

    (void)obj;
    CHECK(enif_self(env, &pid) == NULL);
    __atomic_add_fetch(&destroyed, 1, __ATOMIC_RELEASE);
}

static void stop(ErlNifEnv *env, void *obj, ErlNifEvent fd, int direct)
{
    (void)env, (void)obj;
    note(" stop %d on %d", direct, enif_thread_type());
    close(fd);
}

static int load(ErlNifEnv *env, void **priv, ERL_NIF_TERM info)
{
    ErlNifResourceTypeInit all = {dtor, stop, NULL, 2, NULL};
    ErlNifResourceTypeInit one = {dtor, NULL, NULL, 1, NULL};

    (void)priv, (void)info;
    type = enif_init_resource_type(env, "all", &all, ERL_NIF_RT_CREATE, NULL);
    plain = enif_init_resource_type(env, "one", &one, ERL_NIF_RT_CREATE, NULL);
    return 0;
}

static void select_fails(ErlNifEnv *env);

static ERL_NIF_TERM fails(ErlNifEnv *env, int argc, const ERL_NIF_TERM argv[])
{
    (void)argc;
    select_fails(env);
    return argv[0];
}

static ErlNifFunc nifs[] = {{"fails", 1, fails, 0}};
FAIR_NIF_INIT(test_vm_select, nifs, load, NULL, NULL, NULL)

/* -- selected descriptors ------------------------------------------------ */

static int open_fd(void)
{
    return eventfd(0, EFD_NONBLOCK);
}

static void ring(int fd)
{
    eventfd_t one = 1;

    CHECK_NUMBERS(eventfd_write(fd, one), ==, 0);
}

static ERL_NIF_TERM undefined(void)
{
    return vm_parse(NULL, "undefined");
}

static int select_for(int fd, int flags, void *obj, vm_proc *p)
{
    ErlNifPid pid = pid_of(p);

    return enif_select(NULL, fd, (enum ErlNifSelectFlags)flags, obj, &pid,
                       undefined());
}

static int cancel(int fd, int flags, void *obj)
{
    return enif_select(NULL, fd, (enum ErlNifSelectFlags)
                       (flags | ERL_NIF_SELECT_CANCEL), obj, NULL,
                       undefined());
}

static int stop_select(int fd, void *obj)
{
    return enif_select(NULL, fd, ERL_NIF_SELECT_STOP, obj, NULL, undefined());
}

/* The messages that come within 100 ms, without their references. */
static const char *mail(vm_proc *p, int expected)
{
    static char text[512];
    ERL_NIF_TERM msg;

    text[0] = 0;
    for (int i = 0; i <= expected; i++) {
        size_t used = strlen(text);

        if (!vm_receive(p, NULL, i < expected ? 5000 : 30, &msg))
            break;
        vm_print(msg, text + used, sizeof text - used);
    }
    return text;
}

TEST(selects, "a selection gives one message, and stop answers what it took "
     "back")
{
    void *obj = enif_alloc_resource(type, 1);
    ErlNifEnv *env = enif_alloc_env();
    vm_proc *p = vm_spawn();
    ErlNifPid pid = pid_of(p);
    int fd = open_fd();

    CHECK_NUMBERS(enif_select_read(NULL, fd, obj, &pid,
                                   vm_parse(env, "{hello,[7]}"), env), ==, 0);
    CHECK_TEXT(mail(p, 0), "");
    ring(fd);
    CHECK_TEXT(mail(p, 1), "{hello,[7]}");
    CHECK_NUMBERS(cancel(fd, ERL_NIF_SELECT_READ, obj), ==, 0);
    CHECK_NUMBERS(select_for(fd, ERL_NIF_SELECT_WRITE, obj, p), ==, 0);
    CHECK(strstr(mail(p, 1), "undefined,ready_output}"));
    CHECK_NUMBERS(select_for(fd, ERL_NIF_SELECT_ERROR, obj, p), ==, 0);
    eventfd_read(fd, &(eventfd_t){0});
    CHECK_NUMBERS(select_for(fd, ERL_NIF_SELECT_READ, obj, p), ==, 0);
    CHECK_NUMBERS(cancel(fd, ERL_NIF_SELECT_WRITE, obj), ==, 0);
    CHECK_NUMBERS(cancel(fd, ERL_NIF_SELECT_READ, obj), ==, 16);
    CHECK_NUMBERS(select_for(fd, ERL_NIF_SELECT_READ, obj, p), ==, 0);
    enif_release_resource(obj);
    CHECK_NUMBERS(destroyed, ==, 0);
    CHECK_NUMBERS(stop_select(fd, obj), ==, 1 | 16 | 64);
    CHECK_TEXT(notes(), " stop 1 on 0");
    CHECK_TEXT(mail(p, 0), "");
    vm_free(p);                         /* has the object in a message */
    CHECK_NUMBERS(destroyed, ==, 1);
    enif_free_env(env);
}

TEST(late_stop, "a stop that comes late comes from the polling thread, and "
     "keeps the object until then")
{
    void *obj = enif_alloc_resource(type, 1);
    vm_proc *p = vm_spawn();
    int fd = open_fd();

    vm_options.late_stops = true;
    CHECK_NUMBERS(select_for(fd, ERL_NIF_SELECT_READ, obj, p), ==, 0);
    CHECK_NUMBERS(stop_select(fd, obj), ==, 2 | 16);
    enif_release_resource(obj);
    while (!__atomic_load_n(&destroyed, __ATOMIC_ACQUIRE))
        usleep(1000);
    CHECK_TEXT(notes(), " stop 0 on 0");
    vm_free(p);
}

TEST(unknown_stop, "a descriptor that was never selected is stopped at once")
{
    void *obj = enif_alloc_resource(type, 1);
    int fd = open_fd();

    vm_options.late_stops = true;
    CHECK_NUMBERS(cancel(fd, ERL_NIF_SELECT_READ, obj), ==, 0);
    CHECK_NUMBERS(stop_select(fd, obj), ==, 1);
    CHECK_NUMBERS(stop_select(-1, obj), ==,
                  INT_MIN | ERL_NIF_SELECT_INVALID_EVENT);
    enif_release_resource(obj);
}

TEST(late_event, "what cancel came too late for is still delivered")
{
    void *obj = enif_alloc_resource(type, 1);
    vm_proc *p = vm_spawn();
    int fd = open_fd(), taken_back = 0, rounds = 0;

    vm_options.late_events_us = 20000;
    do {
        eventfd_read(fd, &(eventfd_t){0});
        taken_back = 0;
        CHECK_NUMBERS(select_for(fd, ERL_NIF_SELECT_READ, obj, p), ==, 0);
        ring(fd);
        usleep(5000);
        taken_back = cancel(fd, ERL_NIF_SELECT_READ, obj);
    } while (taken_back && ++rounds < 100);
    CHECK_NUMBERS(taken_back, ==, 0);
    CHECK(strstr(mail(p, 1), "ready_input"));
    stop_select(fd, obj);
    enif_release_resource(obj);
    vm_free(p);
}

TEST(dead_select, "a selection for a dead process is forgotten")
{
    void *obj = enif_alloc_resource(type, 1);
    vm_proc *p = vm_spawn();
    ErlNifPid pid = pid_of(p);
    int fd = open_fd();

    ring(fd);
    vm_free(p);
    do {
        CHECK_NUMBERS(enif_select(NULL, fd, ERL_NIF_SELECT_READ, obj, &pid,
                                  undefined()), ==, 0);
        usleep(1000);
    } while (cancel(fd, ERL_NIF_SELECT_READ, obj));
    CHECK_NUMBERS(stop_select(fd, obj), ==, 1);
    enif_release_resource(obj);
}

static void select_fails(ErlNifEnv *env)
{
    void *obj = enif_alloc_resource(type, 1);
    int fd = open_fd();

    vm_fail(VM_F_SELECT, 1, false);
    CHECK_NUMBERS(enif_select(env, fd, ERL_NIF_SELECT_READ, obj, NULL,
                              undefined()), ==,
                  INT_MIN | ERL_NIF_SELECT_FAILED);
    CHECK(vm_failed());
    vm_fail(0, 0, false);
    enif_release_resource(obj);
    close(fd);
}

TEST(select_fault, "selecting fails when told to")
{
    CHECK_CALL("fails", "1", "1");
}

TEST_DIES(stolen, "a descriptor that a second object selects is caught",
          "stealing descriptor")
{
    vm_proc *p = vm_spawn();
    int fd = open_fd();

    select_for(fd, ERL_NIF_SELECT_READ, enif_alloc_resource(type, 1), p);
    select_for(fd, ERL_NIF_SELECT_READ, enif_alloc_resource(type, 1), p);
}

TEST_DIES(closed, "closing a selected descriptor is caught",
          "which is selected")
{
    vm_proc *p = vm_spawn();
    int fd = open_fd();
    void *obj = enif_alloc_resource(type, 1);

    select_for(fd, ERL_NIF_SELECT_READ, obj, p);
    cancel(fd, ERL_NIF_SELECT_READ, obj);
    close(fd);
}

TEST_DIES(stopless, "selecting with a type without a stop callback is caught",
          "no stop callback")
{
    vm_proc *p = vm_spawn();

    select_for(open_fd(), ERL_NIF_SELECT_READ, enif_alloc_resource(plain, 1),
               p);
}
