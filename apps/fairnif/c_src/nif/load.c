/*
 * load.c - how an author's library finds the runtime.
 *
 * fairnif:load_info/0 carries a resource object of module fairnif.  In its
 * load and upgrade the author's library calls that object
 * (enif_dynamic_resource_call) with a struct fair__handshake, and gets the
 * table of functions, records for its own functions, and a resource type.
 *
 * The type is opened here but from the author's environment: it belongs to
 * his library, so that the VM keeps the library mapped as long as one of its
 * tasks exists.  Each load opens a new one, under a name never used before;
 * one taken over at upgrade would let the old library be unmapped while its
 * tasks still point into it.
 */
#include <stdarg.h>
#include <stdio.h>

#include "nif/load.h"

#include "base/type.h"
#include "life/end.h"
#include "life/life.h"
#include "life/park.h"
#include "life/resource.h"
#include "life/resource_type.h"
#include "task/call.h"
#include "task/debug.h"
#include "task/env.h"
#include "task/slice.h"
#include "task/stack.h"
#include "term/binary.h"
#include "term/hold.h"
#include "term/list.h"
#include "thread/thread.h"
#include "wait/ask.h"
#include "wait/lock.h"
#include "wait/wait.h"

/* The instance whose load or upgrade runs: the VM does one at a time. */
static struct {
    const char *module;
    const struct fair__lib *lib;
} loading;

static void loaded(int error)
{
    if (!error && loading.lib)
        fair__func_loaded(loading.module, loading.lib);
    loading.lib = NULL;
    fair__resource_loaded(error);
}

static const struct fair__ops ops = {
    .size = sizeof ops,
    .abi_major = FAIR_ABI_MAJOR,
    .abi_minor = FAIR_ABI_MINOR,
    .running = fair__running,
    .enter = fair__enter,
    .tick = fair__tick,
    .move = fair__move,
    .where = fair__where,
    .call = fair__call,
    .wait = fair__wait,
    .make_fd = fair__make_fd,
    .get_fd = fair__get_fd,
    .close_fd = fair__close_fd,
    .lock = fair__lock,
    .unlock = fair__unlock,
    .caller = fair__caller,
    .root = fair__root,
    .unroot = fair__unroot,
    .keep = fair__keep,
    .kept = fair__kept,
    .get_resource = fair__get_resource,
    .get_bin = fair__get_bin,
    .get_iolist = fair__get_iolist,
    .get_string = fair__get_string,
    .get_list_length = fair__get_list_length,
    .new_bin = fair__new_bin,
    .resize_bin = fair__resize_bin,
    .make_bin = fair__make_bin,
    .release_bin = fair__release_bin,
    .list_next = fair__list_next,
    .list_push = fair__list_push,
    .list_reverse = fair__list_reverse,
    .alloc = fair__alloc,
    .realloc = fair__realloc,
    .free = fair__free,
    .defer = fair__defer,
    .undefer = fair__undefer,
    .raise = fair__raise,
    .held_lock = fair__held_lock,
    .seen_arg = fair__seen_arg,
    .priv_data = fair__env_priv_data,
    .self = fair__env_self,
    .is_alive = fair__env_is_alive,
    .consume = fair__env_consume,
    .send = fair__env_send,
    .monotonic_time = fair__env_monotonic_time,
    .current = fair__current,
    .loaded = loaded,
    .resource_open = fair__resource_open,
    .resource_new = fair__resource_new,
    .post = fair__post,
    .ask = fair__ask,
    .alarm = fair__alarm,
};

const struct fair__ops *fair__ops(void)
{
    return &ops;
}

/* load_nif can only say a number: the words go to stderr, and to the log when
 * there is one. */
static int refuse(ErlNifEnv *env, int error, const char *format, ...)
{
    char text[512];
    va_list args;
    ErlNifPid logger;

    va_start(args, format);
    vsnprintf(text, sizeof text, format, args);
    va_end(args);
    fprintf(stderr, "fairnif: %s\n", text);
    if (enif_whereis_pid(env, enif_make_atom(env, "logger"), &logger)) {
        /* What the VM itself sends: {log, Level, Format, Args, Meta}. */
        ERL_NIF_TERM message = enif_make_tuple5(
            env, enif_make_atom(env, "log"), enif_make_atom(env, "error"),
            enif_make_string(env, "fairnif: ~ts", ERL_NIF_LATIN1),
            enif_make_list1(env, enif_make_string(env, text, ERL_NIF_LATIN1)),
            enif_make_new_map(env));

        enif_send(env, &logger, NULL, message);
    }
    return error;
}

#define FLAGS (FAIR_NO_YIELD | FAIR_AWAITED | FAIR_UNWINDS)

static int check_versions(ErlNifEnv *env, const struct fair__handshake *hs)
{
    if (hs->abi_major != FAIR_ABI_MAJOR || hs->abi_minor > FAIR_ABI_MINOR)
        return refuse(env, FAIR_E_ABI,
                      "%s was compiled with fairnif.h of interface %u.%u, the "
                      "loaded runtime has %u.%u: compile it again with the "
                      "header of this runtime", hs->module,
                      (unsigned)hs->abi_major, (unsigned)hs->abi_minor,
                      FAIR_ABI_MAJOR, FAIR_ABI_MINOR);
    if (hs->task_size > sizeof(struct fair_task)
        || hs->nif_size != sizeof(struct fair__nif)
        || hs->options_size > sizeof(fair_options)
        || hs->ops_size > sizeof(struct fair__ops))
        return refuse(env, FAIR_E_ABI,
                      "%s was compiled for another layout of interface %u.%u "
                      "(task %u bytes, runtime %u; entry %u, runtime %u): "
                      "compile it again with the same compiler and target as "
                      "the runtime", hs->module, FAIR_ABI_MAJOR,
                      FAIR_ABI_MINOR, hs->task_size,
                      (unsigned)sizeof(struct fair_task), hs->nif_size,
                      (unsigned)sizeof(struct fair__nif));
    return 0;
}

static int check_nif(ErlNifEnv *env, const char *module,
                     const struct fair__nif *nif)
{
    const fair_options *o = nif->options;
    unsigned mode = nif->mode & ~FLAGS;

    if (mode < FAIR_NORMAL || mode > FAIR_AUTO)
        return refuse(env, FAIR_E_NIFS, "%s:%s/%u has the unknown mode %u: "
                      "use one of enum fair_mode", module, nif->name,
                      nif->arity, mode);
    if (!nif->body)
        return refuse(env, FAIR_E_NIFS, "%s:%s/%u has no body: set "
                      "fair_options.body", module, nif->name, nif->arity);
    if (nif->arity > FAIR__MAX_ARITY)
        return refuse(env, FAIR_E_NIFS, "%s:%s/%u has too many arguments: "
                      "at most %d", module, nif->name, nif->arity,
                      FAIR__MAX_ARITY);
    if (o && !fair__stack_size_is_valid(o->stack_size))
        return refuse(env, FAIR_E_NIFS, "%s:%s/%u wants a stack of %lu bytes: "
                      "from %d to %d are possible", module, nif->name,
                      nif->arity, (unsigned long)o->stack_size,
                      FAIR__STACK_MIN, FAIR__STACK_MAX);
    if (o && o->slice_us > FAIR__SLICE_MAX_US)
        return refuse(env, FAIR_E_NIFS, "%s:%s/%u wants slices of %u us: at "
                      "most %d", module, nif->name, nif->arity, o->slice_us,
                      FAIR__SLICE_MAX_US);
    return 0;
}

static int declare(ErlNifEnv *env, struct fair__handshake *hs)
{
    for (unsigned i = 0; i < hs->nif_count; i++) {
        struct fair__nif *nif = &hs->nifs[i];
        int error;

        if (!nif->name)
            continue;                   /* a plain NIF */
        error = check_nif(env, hs->module, nif);
        if (error)
            return error;
    }
    for (unsigned i = 0; i < hs->nif_count; i++) {
        struct fair__nif *nif = &hs->nifs[i];

        if (!nif->name)
            continue;
        nif->yields = !(nif->mode & FAIR_NO_YIELD);
        nif->awaited = (nif->mode & FAIR_AWAITED) != 0;
        nif->unwinds = (nif->mode & FAIR_UNWINDS) != 0;
        nif->mode &= ~FLAGS;
        nif->awaited |= nif->mode == FAIR_THREADED;
        nif->stack_class = fair__stack_class(
            nif->options && nif->options->stack_size
            ? nif->options->stack_size : FAIR__STACK_DEFAULT);
        if (nif->options) {
            nif->slice_ns = (uint64_t)nif->options->slice_us * FAIR__NS_PER_US;
            nif->max_tasks = nif->options->max_tasks;
        }
        nif->func = fair__func_declare(hs->module, nif);
        loading.module = hs->module;
        loading.lib = nif->lib;
        if (!nif->func)
            return refuse(env, FAIR_E_NOMEM, "no memory to load %s",
                          hs->module);
    }
    return 0;
}

/* From the author's load or upgrade, with his environment. */
void fair__bind_library(ErlNifEnv *env, struct fair__handshake *hs)
{
    static _Atomic unsigned loads;
    char name[64];

    if (hs->size != sizeof *hs) {
        /* `error` may lie elsewhere in his struct: it stays as it is, and he
         * finds no `ops`, which fair__bind takes for FAIR_E_ABI. */
        refuse(env, FAIR_E_ABI, "a library was compiled with a fairnif.h that "
               "this runtime does not know (handshake of %u bytes, not %u): "
               "compile it again", hs->size, (unsigned)sizeof *hs);
        return;
    }
    hs->error = check_versions(env, hs);
    if (!hs->error)
        hs->error = declare(env, hs);
    if (hs->error)
        return;
    snprintf(name, sizeof name, "fairnif_task_%u", atomic_fetch_add(&loads, 1));
    hs->type = enif_open_resource_type(env, NULL, name, fair__handle_dtor,
                                       ERL_NIF_RT_CREATE, NULL);
    hs->ops = &ops;
    if (!hs->type)
        hs->error = refuse(env, FAIR_E_NOMEM,
                           "cannot open a resource type for %s", hs->module);
    else
        fair__resource_loading(hs->module, &ops, hs->type);
}
