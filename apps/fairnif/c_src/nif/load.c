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
 * tasks exists.  Each load opens one of its own; one taken over at upgrade
 * would let the old library be unmapped while its tasks still point into it.
 */
#include <stdarg.h>
#include <stdio.h>

#include "nif/load.h"

#include "base/type.h"
#include "life/end.h"
#include "resource/type.h"
#include "task/cancel.h"
#include "task/stack.h"

/* Of a module, at a time: new, old, one whose on_load runs; and some to spare. */
enum { INSTANCES_MOST = 8 };

/* The instance whose load or upgrade runs: the VM does one at a time. */
static struct {
    const char *module;
    const struct fair__lib *lib;
} loading;

void fair__library_loaded(int error)
{
    if (!error && loading.lib)
        fair__func_loaded(loading.module, loading.lib);
    loading.lib = NULL;
    fair__resource_loaded(error);
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

#define FLAGS (FAIR_NO_YIELD | FAIR_MAY_WAIT | FAIR_CLEANUP | FAIR_PROMPT)

/* What grows with minor versions may be smaller in the library, the rest is as it
 * is here. */
static int check_sizes(ErlNifEnv *env, const struct fair__handshake *hs)
{
    const struct { const char *what; size_t theirs, ours; bool grows; } all[] = {
        {"fair_task", hs->task_size, sizeof(struct fair_task), true},
        {"fair_options", hs->options_size, sizeof(fair_options), true},
        {"fair__ops", hs->ops_size, sizeof(struct fair__ops), true},
        {"fair__nif", hs->nif_size, sizeof(struct fair__nif), false},
        {"fair__lib", hs->lib_size, sizeof(struct fair__lib), false},
        {"fair_bin", hs->bin_size, sizeof(fair_bin), false},
        {"fair_mutex", hs->mutex_size, sizeof(fair_mutex), false},
    };

    for (size_t i = 0; i < sizeof all / sizeof *all; i++)
        if (all[i].grows ? all[i].theirs > all[i].ours
            : all[i].theirs != all[i].ours)
            return refuse(env, FAIR_E_ABI,
                          "%s was compiled for another layout of interface "
                          "%u.%u (%s of %lu bytes, here %lu): compile it again "
                          "with the same compiler and target as the runtime",
                          hs->module, FAIR_ABI_MAJOR, FAIR_ABI_MINOR,
                          all[i].what, (unsigned long)all[i].theirs,
                          (unsigned long)all[i].ours);
    return 0;
}

static int check_versions(ErlNifEnv *env, const struct fair__handshake *hs)
{
    if (hs->abi_major != FAIR_ABI_MAJOR || hs->abi_minor > FAIR_ABI_MINOR)
        return refuse(env, FAIR_E_ABI,
                      "%s was compiled with fairnif.h of interface %u.%u, the "
                      "loaded runtime has %u.%u: compile it again with the "
                      "header of this runtime", hs->module,
                      (unsigned)hs->abi_major, (unsigned)hs->abi_minor,
                      FAIR_ABI_MAJOR, FAIR_ABI_MINOR);
    return check_sizes(env, hs);
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
                      "up to %d are allowed", module, nif->name, nif->arity,
                      FAIR__MAX_ARITY);
    if (o && !fair__stack_size_is_valid(o->stack_size))
        return refuse(env, FAIR_E_NIFS, "%s:%s/%u asks for a stack of %lu "
                      "bytes: %d to %d are allowed", module, nif->name,
                      nif->arity, (unsigned long)o->stack_size,
                      FAIR__STACK_MIN, FAIR__STACK_MAX);
    if (o && o->slice_us > FAIR__SLICE_MAX_US)
        return refuse(env, FAIR_E_NIFS, "%s:%s/%u asks for slices of %u us: "
                      "up to %d are allowed", module, nif->name, nif->arity,
                      o->slice_us, FAIR__SLICE_MAX_US);
    return 0;
}

static int declare_functions(ErlNifEnv *env, struct fair__handshake *hs)
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
        nif->may_wait = (nif->mode & FAIR_MAY_WAIT) != 0;
        nif->cleans_up = (nif->mode & FAIR_CLEANUP) != 0;
        nif->prompt = (nif->mode & FAIR_PROMPT) != 0;
        nif->mode &= ~FLAGS;
        nif->may_wait |= nif->mode == FAIR_THREADED;
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

/* Under the first name that no instance of the module has: a name that is new
 * each time would be an atom each time, never freed. */
static ErlNifResourceType *open_own_type(ErlNifEnv *env)
{
    ErlNifResourceType *type = NULL;
    char name[32];

    for (unsigned i = 0; !type && i < INSTANCES_MOST; i++) {
        snprintf(name, sizeof name, "fairnif_task_%u", i);
        type = enif_open_resource_type(env, NULL, name, fair__handle_dtor,
                                       ERL_NIF_RT_CREATE, NULL);
    }
    return type;
}

/* From the author's load or upgrade, with his environment. */
void fair__bind_library(ErlNifEnv *env, struct fair__question *is)
{
    struct fair__handshake *hs = (struct fair__handshake *)is;

    if (is->kind != FAIR__BINDS || is->size < sizeof *hs) {
        /* `error` may lie elsewhere in his struct: it stays as it is, and he
         * finds no `ops`, which fair__bind takes for FAIR_E_ABI. */
        refuse(env, FAIR_E_ABI, "a library was compiled with a fairnif.h that "
               "this runtime does not know (handshake %#x of %u bytes, here "
               "%#x of %u): compile it again with the header of this runtime",
               is->kind, is->size, FAIR__BINDS, (unsigned)sizeof *hs);
        return;
    }
    hs->error = check_versions(env, hs);
    if (!hs->error)
        hs->error = declare_functions(env, hs);
    if (hs->error)
        return;
    hs->type = open_own_type(env);
    hs->ops = &fair__plain_ops;
    if (!hs->type)
        hs->error = refuse(env, FAIR_E_NOMEM,
                           "cannot open a resource type for %s", hs->module);
    else
        fair__resource_loading(hs->module, &fair__plain_ops, hs->type);
}
