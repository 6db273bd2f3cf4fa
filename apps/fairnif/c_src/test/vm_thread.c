/*
 * vm_thread.c - threads that a library makes, and the VM's conditions.
 *
 * Nothing of the VM's runs on them: their type is 0, they have no process,
 * and environments of processes are not theirs to use.  One that is never
 * joined is counted.
 */
#include <stdio.h>
#include <string.h>

#include "vm_int.h"

struct ErlDrvTid_ {
    pthread_t id;
    char name[32];
    void *(*fn)(void *);
    void *arg;
};

static __thread struct ErlDrvTid_ *self;

ErlNifThreadOpts *enif_thread_opts_create(char *name)
{
    ErlNifThreadOpts *opts = vm__malloc(sizeof *opts);

    (void)name;
    opts->suggested_stack_size = -1;
    return opts;
}

void enif_thread_opts_destroy(ErlNifThreadOpts *opts)
{
    vm__free(opts);
}

static void *serve(void *arg)
{
    self = arg;
    return self->fn(self->arg);
}

/* The size of its stack in words of 1024, as the real one takes it; more
 * under the tools, whose frames are larger. */
static void set_stack(pthread_attr_t *attributes, const ErlNifThreadOpts *opts)
{
    size_t words = opts ? (size_t)opts->suggested_stack_size : 0;

    if (!opts || opts->suggested_stack_size < 0)
        return;
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
    words *= 4;
#endif
    pthread_attr_setstacksize(attributes, (words + 16) * 1024 * sizeof(void *));
}

int enif_thread_create(char *name, ErlNifTid *tid, void *(*fn)(void *),
                       void *arg, ErlNifThreadOpts *opts)
{
    ErlNifTid t = vm__malloc(sizeof *t);
    pthread_attr_t attributes;
    int error;

    memset(t, 0, sizeof *t);
    snprintf(t->name, sizeof t->name, "%s", name ? name : "");
    t->fn = fn;
    t->arg = arg;
    pthread_attr_init(&attributes);
    set_stack(&attributes, opts);
    *tid = t;
    error = pthread_create(&t->id, &attributes, serve, t);
    pthread_attr_destroy(&attributes);
    if (error)
        vm__free(t);
    else
        COUNT(threads, 1);
    return error;
}

int enif_thread_join(ErlNifTid t, void **answer)
{
    int error;

    if (t == self)
        vm_misuse("a thread that joins itself");
    error = pthread_join(t->id, answer);
    if (!error) {
        vm__free(t);
        COUNT(threads, -1);
    }
    return error;
}

ErlNifTid enif_thread_self(void)
{
    return self;
}

int enif_equal_tids(ErlNifTid a, ErlNifTid b)
{
    return a == b;
}

char *enif_thread_name(ErlNifTid t)
{
    return t->name;
}

void enif_thread_exit(void *answer)
{
    if (!self)
        vm_misuse("enif_thread_exit: not a thread of enif_thread_create");
    pthread_exit(answer);
}
