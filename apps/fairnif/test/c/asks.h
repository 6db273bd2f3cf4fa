/*
 * asks.h - bodies that have their caller receive and send, and calls of them: what
 * test_ask.c and test_answer.c share.
 */
#ifndef FAIR_TEST_ASKS_H
#define FAIR_TEST_ASKS_H

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define NEEDS_TASKS
#include "check.h"

static ErlNifPid known;         /* of who last sent its pid */
static int is_known;

static inline void publish(fair_task *t)
{
    fair_caller(t, &known);
    __atomic_store_n(&is_known, 1, __ATOMIC_RELEASE);
}

static inline ERL_NIF_TERM atom(fair_task *t, const char *name)
{
    return enif_make_atom(fair_env(t), name);
}

static inline bool is_atom(fair_task *t, ERL_NIF_TERM term, const char *name)
{
    return enif_is_identical(term, atom(t, name));
}

static inline ERL_NIF_TERM number(fair_task *t, long n)
{
    return enif_make_long(fair_env(t), n);
}

/* All of the bytes of what was received are its number. */
static inline bool is_intact(const fair_bytes *bin)
{
    for (size_t i = 1; i < bin->size; i++)
        if (bin->data[i] != bin->data[0])
            return false;
    return true;
}

/* serves(Arg, Roots) -> {Arg, Messages, Bytes}: receives until it is `stop`.
 * Binaries are in no root, but kept as fair_bytes. */
static inline ERL_NIF_TERM serves(fair_task *t)
{
    enum { BINS = 64 };
    unsigned char frame[300];
    fair_bytes bins[BINS];
    unsigned count = 0, list, first;
    long roots, bytes = 0;
    ERL_NIF_TERM message;

    memset(frame, 0x5C, sizeof frame);
    if (!postpone(t) || !fair_get_long(t, fair_arg(t, 1), &roots))
        return fair_badarg(t);
    list = first = fair_root_new(t, enif_make_list(fair_env(t), 0));
    for (long i = 0; i < roots; i++)
        first = fair_root_new(t, enif_make_tuple2(fair_env(t), fair_arg(t, 0),
                                              number(t, i)));
    publish(t);
    while (fair_receive(t, -1, &message) > 0 && !is_atom(t, message, "stop")) {
        if (count < BINS && fair_get_bytes(t, message, &bins[count]))
            count++;
        else
            fair_list_push(t, list, message);
        fair_tick(t, 1);
    }
    for (size_t i = 0; i < sizeof frame; i++)
        CHECK(frame[i] == 0x5C);
    for (unsigned i = 0; i < count; i++) {
        CHECK(is_intact(&bins[i]));
        bytes += (long)bins[i].size;
    }
    for (; first > list; first--)
        CHECK(enif_is_identical(
            fair_root_get(t, first),
            enif_make_tuple2(fair_env(t), fair_arg(t, 0),
                             number(t, (long)(first - list - 1)))));
    CHECK(fair_list_reverse(t, list));
    return enif_make_tuple3(fair_env(t), fair_arg(t, 0), fair_root_get(t, list),
                            number(t, bytes));
}

/* waits(Ms) -> {Outcome, Term} */
static inline ERL_NIF_TERM waits(fair_task *t)
{
    ERL_NIF_TERM message;
    int ms, got;

    if (!postpone(t) || !fair_get_int(t, fair_arg(t, 0), &ms))
        return fair_badarg(t);
    got = fair_receive(t, ms, &message);
    CHECK(got == fair_receive_tagged(t, fair_arg(t, 0), ms, &message));
    return enif_make_tuple2(fair_env(t), number(t, got == -ETIMEDOUT ? 0 : got),
                            message);
}

static inline void tell_self(fair_task *t, ERL_NIF_TERM message)
{
    fair_send(t, fair_self(t), message);
}

/* -- calls ----------------------------------------------------------------- */

/* A call that has sent its pid, and gets messages from now on. */
static inline vm_proc *listener(const char *name, const char *args)
{
    vm_proc *p;

    is_known = 0;
    p = spawn_await(name, args);
    for (int i = 0; i < 20000
         && !__atomic_load_n(&is_known, __ATOMIC_ACQUIRE); i++)
        vm_run(p, 1);
    CHECK(is_known);
    return p;
}

static inline void say(ErlNifPid to, const char *text)
{
    ErlNifEnv *env = enif_alloc_env();

    enif_send(NULL, &to, env, vm_parse(env, text));
    enif_free_env(env);
}

/* A binary of that many bytes, all the same. */
static inline void say_bytes(ErlNifPid to, size_t size, int byte)
{
    ErlNifEnv *env = enif_alloc_env();
    unsigned char bytes[500];

    memset(bytes, byte, sizeof bytes);
    enif_send(NULL, &to, env, vm_binary(env, bytes, size));
    enif_free_env(env);
}

#ifndef VM_REAL
static inline bool begins(vm_proc *p, const char *text)
{
    return !strncmp(outcome(p), text, strlen(text));
}
#endif

#endif
