/*
 * nif.c - the NIF library of module fairnif itself: loaded, upgraded, asked.
 *
 * The module may be loaded again, even from another file, while authors'
 * libraries are bound to this runtime.  So its NIFs go through the table that
 * priv_data points to, which an upgrade passes on; and the library is linked
 * with -z nodelete, so that the code behind the table stays.
 */
#include <stdio.h>

#include "base/config.h"
#include "base/os.h"
#include "base/type.h"
#include "wait/await.h"
#include "wait/park.h"
#include "nif/info.h"
#include "nif/load.h"
#include "nif/measure.h"
#include "nif/private.h"
#include "task/cancel.h"
#include "task/stack.h"
#include "term/binary.h"
#include "thread/thread.h"

/* What one loaded copy of this library offers to the module. */
struct runtime {
    uint32_t size;
    uint16_t abi_major, abi_minor;
    const char *version;
    void (*bind)(ErlNifEnv *env, struct fair__question *is);
    bool (*open_types)(ErlNifEnv *env);
    bool (*keep_types)(void);
    void (*visit)(struct fair__visitor *visitor);
    void (*halts)(void *priv);
#define NIF(NAME, ARITY, WHERE, FUNCTION) fair__nif_function *NAME;
#include "nif/nifs.def"
#undef NIF
};

struct runtime_object {
    const struct runtime *runtime;
};
static ErlNifResourceType *runtime_type;

/* Gives a library that is no author's the table that it asks for. */
static void visit(struct fair__visitor *visitor)
{
    const struct { const void *table; uint16_t major, minor; } tables[] = {
        [FAIR__TABLE_OPS] = {&fair__plain_ops, FAIR_ABI_MAJOR, FAIR_ABI_MINOR},
        [FAIR__TABLE_PRIVATE] = {&fair__private, FAIR_PRIVATE_MAJOR,
                                 FAIR_PRIVATE_MINOR}
    };
    uint64_t which = visitor->which;

    if (which >= sizeof tables / sizeof *tables)
        return;
    if (visitor->abi_major == tables[which].major
        && visitor->abi_minor <= tables[which].minor)
        visitor->table = tables[which].table;
    visitor->abi_major = tables[which].major;
    visitor->abi_minor = tables[which].minor;
}

enum { HALT_NS = 100000000 };   /* for bodies that run to come to a tick */

static bool one_runs(void)
{
    struct fair__func *func;
    uint64_t since, yields;
    ERL_NIF_TERM owner;

    for (struct fair__thread *th = fair__threads(); th; th = th->next)
        if (th->where != W_NORMAL
            && fair__slot_read(th, &func, &since, &yields, &owner))
            return true;
    return false;
}

/* Before the program exits, and the statics of C++ libraries are destroyed: a
 * body that uses them must not run meanwhile.  (Normal schedulers have stopped.) */
static void halts(void *priv)
{
    uint64_t until = fair__now() + HALT_NS;

    (void)priv;
    SET(fair__config.halts, true);
    while (one_runs() && fair__now() < until)
        fair__nap();            /* on a busy machine for longer than it says */
}

static const struct runtime this_runtime = {
    .size = sizeof this_runtime,
    .abi_major = FAIR_ABI_MAJOR,
    .abi_minor = FAIR_ABI_MINOR,
    .version = FAIRNIF_VERSION,
    .bind = fair__bind_library,
    .open_types = fair__await_open,
    .keep_types = fair__keep_types,
    .visit = visit,
    .halts = halts,
#define NIF(NAME, ARITY, WHERE, FUNCTION) .NAME = FUNCTION,
#include "nif/nifs.def"
#undef NIF
};

static const struct runtime *runtime_of(ErlNifEnv *env)
{
    return enif_priv_data(env);
}

#define NIF(NAME, ARITY, WHERE, FUNCTION)                                   \
    static ERL_NIF_TERM nif_##NAME(ErlNifEnv *env, int argc,                \
                                   const ERL_NIF_TERM argv[])               \
    {                                                                       \
        return runtime_of(env)->NAME(env, argc, argv);                      \
    }
#include "nif/nifs.def"
#undef NIF

static ERL_NIF_TERM nif_runtime(ErlNifEnv *env, int argc,
                                const ERL_NIF_TERM argv[])
{
    struct runtime_object *obj = NULL;
    ERL_NIF_TERM term;

    (void)argc, (void)argv;
    if (runtime_of(env)->keep_types())
        obj = enif_alloc_resource(runtime_type, sizeof *obj);
    if (!obj)
        return enif_raise_exception(env, enif_make_atom(env, "enomem"));
    obj->runtime = runtime_of(env);
    term = enif_make_resource(env, obj);
    enif_release_resource(obj);
    return term;
}

/* Asks a runtime object, maybe of another copy of this library, what runs. */
struct query {
    struct fair__question is;
    const struct runtime *runtime;
};

/* A struct may be larger than it is known here.  One that is not known, or is
 * smaller, keeps what it has, and so finds no answer. */
static void asked(ErlNifEnv *env, void *obj, void *data)
{
    const struct runtime *runtime = ((struct runtime_object *)obj)->runtime;
    const struct fair__question *is = data;

    switch (is->kind) {
    case FAIR__SEEKS:
        if (is->size >= sizeof(struct query))
            ((struct query *)data)->runtime = runtime;
        break;
    case FAIR__VISITS:
        if (is->size >= sizeof(struct fair__visitor))
            runtime->visit(data);
        break;
    default:
        runtime->bind(env, data);
    }
}

static int open_types(ErlNifEnv *env, const struct runtime *runtime)
{
    ErlNifResourceTypeInit init = {.dyncall = asked};
    ErlNifResourceType *type = fair__open_type(env, "fairnif_runtime", init);

    if (!type || !runtime->open_types(env))
        return FAIR_E_NOMEM;
    runtime_type = type;
    return 0;
}

/* From OTP 26 on; this is compiled for any. */
static void ask_for_halt(ErlNifEnv *env, const struct runtime *runtime)
{
    enum { ON_HALT = 2 };
    int (*set_option)(ErlNifEnv *env, int option, ...) =
        (int (*)(ErlNifEnv *, int, ...))(uintptr_t)
            fair__os_find("enif_set_option");

    if (set_option)
        set_option(env, ON_HALT, runtime->halts);
}

/* The runtime that is loaded stays: authors' libraries point to it. */
static int adopt(ErlNifEnv *env, void **priv, const struct runtime *old)
{
    if (old->abi_major != FAIR_ABI_MAJOR || old->size != sizeof *old
        || strcmp(old->version, FAIRNIF_VERSION) != 0) {
        fprintf(stderr, "fairnif: runtime %s (interface %u.%u) is loaded and "
                "cannot be replaced by %s (%u.%u) in a running node: restart "
                "the node\n", old->version, (unsigned)old->abi_major,
                (unsigned)old->abi_minor, FAIRNIF_VERSION, FAIR_ABI_MAJOR,
                FAIR_ABI_MINOR);
        return FAIR_E_ABI;
    }
    ask_for_halt(env, old);
    *priv = (void *)(uintptr_t)old;
    return open_types(env, old);
}

/* load_info: the runtime object of an earlier load, which outlives the module,
 * or something else when there was none. */
static int load(ErlNifEnv *env, void **priv, ERL_NIF_TERM load_info)
{
    struct query query = {.is = {sizeof query, FAIR__SEEKS}};
    int error;

    if (enif_dynamic_resource_call(env, enif_make_atom(env, "fairnif"),
                                   enif_make_atom(env, "fairnif_runtime"), load_info,
                                   &query) == 0 && query.runtime)
        return adopt(env, priv, query.runtime);
    if ((error = fair__stack_init()) != 0) {
        fprintf(stderr, "fairnif: cannot prepare stacks: %s\n",
                strerror(error));
        return FAIR_E_NOMEM;
    }
    if (!fair__stay_loaded()) {
        fprintf(stderr, "fairnif: cannot keep the runtime loaded\n");
        return FAIR_E_RUNTIME;
    }
    ask_for_halt(env, &this_runtime);
    fair__bins_init();
    *priv = (void *)(uintptr_t)&this_runtime;
    return open_types(env, &this_runtime);
}

static int upgrade(ErlNifEnv *env, void **priv, void **old_priv,
                   ERL_NIF_TERM load_info)
{
    (void)load_info;
    return adopt(env, priv, *old_priv);
}

static ErlNifFunc nifs[] = {
    {"nif_runtime", 0, nif_runtime, 0},
#define NIF(NAME, ARITY, WHERE, FUNCTION)                                   \
    {"nif_" #NAME, ARITY, nif_##NAME, WHERE},
#include "nif/nifs.def"
#undef NIF
};

ERL_NIF_INIT(fairnif, nifs, load, NULL, upgrade, NULL)
