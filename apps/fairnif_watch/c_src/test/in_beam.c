/*
 * in_beam.c - the parts of stack.h as NIFs, so that they can be tried on a real
 * VM's threads (in_beam.erl).
 */
#define _GNU_SOURCE
#include <erl_nif.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "read/mem.h"
#include "read/task.h"
#include "unwind/capture.h"
#include "unwind/name.h"
#include "unwind/unwind.h"

static struct watch__maps *maps;
static struct watch__snapshot snapshot;
static struct watch__frame frames[WATCH__FRAMES];

static ERL_NIF_TERM start(ErlNifEnv *env, int argc, const ERL_NIF_TERM argv[])
{
    (void)argc, (void)argv;
    maps = watch__maps_new();
    return enif_make_int(env, watch__stack_start(true));
}

static ERL_NIF_TERM stop(ErlNifEnv *env, int argc, const ERL_NIF_TERM argv[])
{
    (void)argc, (void)argv;
    watch__maps_free(maps);
    maps = NULL;
    return enif_make_atom(env, watch__stack_stop() ? "true" : "false");
}

/* {The thread's id, the term as a number} */
static ERL_NIF_TERM here(ErlNifEnv *env, int argc, const ERL_NIF_TERM argv[])
{
    (void)argc;
    return enif_make_tuple2(env, enif_make_int(env, (int)syscall(SYS_gettid)),
                            enif_make_uint64(env, argv[0]));
}

static ERL_NIF_TERM text(ErlNifEnv *env, const char *s)
{
    const char *slash = s ? strrchr(s, '/') : NULL;
    size_t n = s ? strlen(slash ? slash + 1 : s) : 0;
    ERL_NIF_TERM term;

    memcpy(enif_make_new_binary(env, n, &term), slash ? slash + 1 : s ? s : "",
           n);
    return term;
}

/* {In, Library, Symbol, {Module, Function, Arity}, Offset, SymbolOffset} */
static ERL_NIF_TERM frame_term(ErlNifEnv *env, const struct watch__frame *f)
{
    static const char *const in[] = {
        "unknown", "emulator", "jit", "libc", "watch", "fairnif", "library"
    };

    return enif_make_tuple6(
        env, enif_make_atom(env, in[f->in]), text(env, f->library),
        text(env, f->symbol),
        enif_make_tuple3(env, text(env, f->module), text(env, f->function),
                         enif_make_uint(env, f->arity)),
        enif_make_uint64(env, f->offset),
        enif_make_uint64(env, f->symbol_offset));
}

static ERL_NIF_TERM ns(ErlNifEnv *env, uint64_t *since)
{
    uint64_t now = watch__now();
    ERL_NIF_TERM term = enif_make_uint64(env, now - *since);

    *since = now;
    return term;
}

/* look(Tid): {End, Slept, Process, Frames, {Take, Unwind, Again, Name} in ns},
 * or an atom: it was not taken. */
static ERL_NIF_TERM look(ErlNifEnv *env, int argc, const ERL_NIF_TERM argv[])
{
    static const char *const taken[] = {
        "taken", "gone", "busy", "late", "off", "denied"
    };
    static const char *const ends[] = {
        "whole", "jit", "machine", "no_table", "no_register", "copied", "frames"
    };
    ERL_NIF_TERM times[4], list = enif_make_list(env, 0);
    struct watch__regs last;
    enum watch__taken is;
    enum watch__end end;
    uint64_t since;
    unsigned n;
    int tid;

    (void)argc;
    if (!enif_get_int(env, argv[0], &tid))
        return enif_make_badarg(env);
    since = watch__now();
    is = watch__take_running(&snapshot, tid, 100000000);
    if (is == TAKEN_BUSY)
        is = watch__take_sleeping(&snapshot, tid);
    times[0] = ns(env, &since);
    if (is != TAKEN)
        return enif_make_atom(env, taken[is]);
    n = watch__unwind(maps, &snapshot, frames, WATCH__FRAMES, &end, &last);
    times[1] = ns(env, &since);
    n = watch__unwind(maps, &snapshot, frames, WATCH__FRAMES, &end, &last);
    times[2] = ns(env, &since);
    for (unsigned i = 0; i < n; i++)
        watch__name(maps, &frames[i]);
    times[3] = ns(env, &since);
    while (n > 0)
        list = enif_make_list_cell(env, frame_term(env, &frames[--n]), list);
    return enif_make_tuple5(
        env, enif_make_atom(env, ends[end]),
        enif_make_atom(env, snapshot.slept ? "true" : "false"),
        enif_make_uint64(env, watch__process_of(&last)), list,
        enif_make_tuple_from_array(env, times, 4));
}

static ErlNifFunc functions[] = {
    {"start", 0, start, 0},
    {"stop", 0, stop, ERL_NIF_DIRTY_JOB_IO_BOUND},
    {"here", 1, here, 0},
    {"look", 1, look, ERL_NIF_DIRTY_JOB_IO_BOUND}
};

static int load(ErlNifEnv *env, void **data, ERL_NIF_TERM info)
{
    (void)env, (void)data, (void)info;
    return 0;
}

static void unload(ErlNifEnv *env, void *data)
{
    (void)env, (void)data;
}

ERL_NIF_INIT(in_beam, functions, load, NULL, NULL, unload)
