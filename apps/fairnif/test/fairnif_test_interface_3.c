/*
 * fairnif_test_interface_3.c - a library that was compiled for interface 3.0.
 *
 * It includes nothing of fairnif's: what the header of 3.0 put into a library is
 * written here once more, in few words.  It stays as it is as long as the major
 * version of the interface is 3.  Where it does not load, or answers otherwise,
 * so do libraries that are in use.
 *
 * With -DINTERFACE_2 it is one of 2.5 instead, which must be refused.
 */
#include <errno.h>
#include <stdint.h>
#include <string.h>

#include <erl_nif.h>

/* -- the structs ----------------------------------------------------------- */

struct ops;

struct task {
    uint64_t budget;
    const struct ops *ops;
    ErlNifEnv *env;
    const ERL_NIF_TERM *argv;
    unsigned argc, env_used;
    uint64_t yields;
    unsigned cancelled;
};

struct bytes {
    const unsigned char *data;
    size_t size;
    void *ref, *reserved;
};

struct bin {
    unsigned char *data;
    size_t size;
    void *ref, *reserved;
};

struct mutex {
    void *holder, *first, *last, *next, *reserved[2];
};

struct options {
    ERL_NIF_TERM (*body)(struct task *t);
    size_t stack_size;
    unsigned slice_us, max_tasks;
};

struct lib {
    const struct ops *ops;
    ErlNifResourceType *type;
    int state;
    unsigned unused;
    uint64_t reserved[4];
};

struct nif {
    ERL_NIF_TERM (*body)(struct task *t);
    const struct options *options;
    const char *name;
    unsigned arity, mode;
    struct lib *lib;
    void *func;
    uint64_t slice_ns;
    uint16_t stack_class;
    uint8_t awaited, yields, unwinds, unused[3];
    unsigned max_tasks, unused_too;
    uint64_t reserved[3];
};

struct handshake {
#ifdef INTERFACE_2
    uint32_t size;
    uint16_t abi_major, abi_minor;
    uint32_t task_size, options_size, nif_size, ops_size;
#else
    uint32_t size, kind;
    uint16_t abi_major, abi_minor;
    uint32_t task_size, options_size, nif_size, lib_size, ops_size, bin_size,
             mutex_size;
#endif
    const char *module;
    struct nif *nifs;
    unsigned nif_count;
    int error;
    const struct ops *ops;
    ErlNifResourceType *type;
};

/* -- the table ------------------------------------------------------------- */

enum {
    RUNNING, ENTER, TICK, MOVE, WHERE, CALL, WAIT, MAKE_FD, GET_FD, CLOSE_FD,
    LOCK, UNLOCK, CALLER, ROOT, UNROOT, KEEP, KEPT, GET_RESOURCE, GET_ATOM,
    GET_BYTES, GET_IOLIST, GET_STRING, GET_LIST_LENGTH, NEW_BIN, RESIZE_BIN,
    MAKE_BIN, MAKE_BYTES, RELEASE_BIN, RELEASE_BYTES, LIST_NEXT, LIST_PUSH,
    LIST_REVERSE, ALLOC, REALLOC, FREE, DEFER, UNDEFER, RAISE, HELD_LOCK,
    SEEN_ARG, PRIV_DATA, SELF, IS_ALIVE, CONSUME, SEND, MONOTONIC_TIME, CURRENT,
    LOADED, RESOURCE_OPEN, RESOURCE_NEW, POST, ASK, ALARM, SEEN_TERM, COPY,
    FUNCTIONS
};

struct ops {
    uint32_t size;
    uint16_t abi_major, abi_minor;
    void (*function[FUNCTIONS])(void);
};

#define OP(TYPE, PLACE, ...) \
    ((TYPE (*)(struct task *, __VA_ARGS__))t->ops->function[PLACE])

/* Inlined in each body. */
static int tick(struct task *t, size_t units)
{
    if (units < t->budget) {
        t->budget -= units + 1;
        return 1;
    }
    return OP(int, TICK, size_t)(t, units);
}

/* -- bodies ---------------------------------------------------------------- */

enum { NORMAL = 1, THREADED = 4, AUTO = 5, AWAITED = 0x80, LATIN1 = 1 };

static int deferred;

static void count(void *by)
{
    __atomic_add_fetch(&deferred, *(int *)by, __ATOMIC_RELAXED);
}

static ERL_NIF_TERM integer(struct task *t, long value)
{
    t->env_used = 1;
    return enif_make_long(t->env, value);
}

/* sum(Binary) -> {Sum, [Binary], <<Sum:8>>} */
static ERL_NIF_TERM sum(struct task *t)
{
    struct bytes in;
    struct bin out;
    unsigned long sum = 0;
    unsigned list;
    int *by;

    if (!OP(int, GET_BYTES, ERL_NIF_TERM, struct bytes *)(t, t->argv[0], &in))
        return OP(ERL_NIF_TERM, RAISE, ERL_NIF_TERM)(
            t, enif_make_atom(t->env, "badarg"));
    by = OP(void *, ALLOC, size_t)(t, sizeof *by);
    *by = 1;
    OP(int, DEFER, void (*)(void *), void *)(t, count, by);
    t->env_used = 1;
    list = OP(unsigned, ROOT, ERL_NIF_TERM)(t, enif_make_list(t->env, 0));
    for (size_t i = 0; i < in.size; i++) {
        sum += in.data[i];
        tick(t, 1);
    }
    OP(void, LIST_PUSH, unsigned, ERL_NIF_TERM)(
        t, list, OP(ERL_NIF_TERM, MAKE_BYTES, struct bytes *)(t, &in));
    OP(int, NEW_BIN, size_t, struct bin *)(t, 1, &out);
    out.data[0] = (unsigned char)sum;
    tick(t, 1);
    return enif_make_tuple3(t->env, integer(t, (long)sum),
                            OP(ERL_NIF_TERM, KEPT, unsigned)(t, list),
                            OP(ERL_NIF_TERM, MAKE_BIN, struct bin *)(t, &out));
}

static struct mutex mutex;

/* waits(Atom) -> {Name in Latin-1, Answers}: all that may wait, under a lock */
static ERL_NIF_TERM waits(struct task *t)
{
    int answers[6], by = 1;
    char name[16] = "";
    ERL_NIF_TERM terms[6], message, timeout;

    OP(int, GET_ATOM, ERL_NIF_TERM, char *, size_t, int)(
        t, t->argv[0], name, sizeof name, LATIN1);
    answers[0] = OP(int, LOCK, struct mutex *, int)(t, &mutex, 1);
    answers[1] = OP(int, WAIT, int, unsigned, int)(t, -1, 0, 1);
    answers[2] = OP(int, CALL, int, size_t, void (*)(void *), void *)(
        t, THREADED, 0, count, &by);
    timeout = integer(t, 0);
    answers[3] = OP(int, ASK, const ERL_NIF_TERM *, unsigned, ERL_NIF_TERM *)(
        t, &timeout, 1, &message) == -ETIMEDOUT;
    answers[4] = OP(int, UNLOCK, struct mutex *)(t, &mutex);
    answers[5] = tick(t, 1000000000);
    for (int i = 0; i < 6; i++)
        terms[i] = integer(t, answers[i]);
    return enif_make_tuple2(t->env,
                            enif_make_string(t->env, name, ERL_NIF_LATIN1),
                            enif_make_list_from_array(t->env, terms, 6));
}

/* -- the library ----------------------------------------------------------- */

static struct lib lib;
static const struct options options = {waits, 65536, 100, 1000};
static struct nif fair[] = {
    {.body = sum, .name = "sum", .arity = 1, .mode = AUTO, .lib = &lib},
    {.body = waits, .options = &options, .name = "nif_waits", .arity = 1,
     .mode = NORMAL | AWAITED, .lib = &lib}
};
enum { FAIR = sizeof fair / sizeof *fair };

static ERL_NIF_TERM enter(int nth, ErlNifEnv *env, int argc,
                          const ERL_NIF_TERM argv[])
{
    return ((ERL_NIF_TERM (*)(struct nif *, ErlNifEnv *, int,
                              const ERL_NIF_TERM *))lib.ops->function[ENTER])(
        &fair[nth], env, argc, argv);
}

static ERL_NIF_TERM enter_sum(ErlNifEnv *env, int argc,
                              const ERL_NIF_TERM argv[])
{
    return enter(0, env, argc, argv);
}

static ERL_NIF_TERM enter_waits(ErlNifEnv *env, int argc,
                                const ERL_NIF_TERM argv[])
{
    return enter(1, env, argc, argv);
}

/* deferred() -> how many functions have run */
static ERL_NIF_TERM has_deferred(ErlNifEnv *env, int argc,
                                 const ERL_NIF_TERM argv[])
{
    (void)argc, (void)argv;
    return enif_make_int(env, __atomic_load_n(&deferred, __ATOMIC_RELAXED));
}

static int load(ErlNifEnv *env, void **priv, ERL_NIF_TERM info)
{
    struct handshake hs = {
        .size = sizeof hs,
#ifdef INTERFACE_2
        .abi_major = 2, .abi_minor = 5,
#else
        .kind = 0xFA170001u, .abi_major = 3, .abi_minor = 0,
        .lib_size = sizeof lib, .bin_size = sizeof(struct bin),
        .mutex_size = sizeof mutex,
#endif
        .task_size = sizeof(struct task), .options_size = sizeof options,
        .nif_size = sizeof *fair, .ops_size = sizeof(struct ops),
        .module = "fairnif_test_interface_3", .nifs = fair, .nif_count = FAIR
    };
    const ERL_NIF_TERM *elems;
    int arity;

    (void)priv;
    if (!enif_get_tuple(env, info, &arity, &elems) || arity != 4
        || enif_dynamic_resource_call(env, enif_make_atom(env, "fairnif"),
                                      enif_make_atom(env, "fairnif_runtime"),
                                      elems[2], &hs) != 0)
        return 4701;
    if (hs.error || !hs.ops)
        return hs.error ? hs.error : 4703;
    lib = (struct lib){.ops = hs.ops, .type = hs.type, .state = 2};
    ((void (*)(int))hs.ops->function[LOADED])(0);
    return 0;
}

static __attribute__((unused)) ErlNifFunc nifs[] = {
    {"sum", 1, enter_sum, 0}, {"nif_waits", 1, enter_waits, 0},
    {"deferred", 0, has_deferred, 0}
};
#ifdef INTERFACE_2
static ErlNifFunc refused[] = {{"f", 0, has_deferred, 0}};
ERL_NIF_INIT(fairnif_test_refused, refused, load, NULL, NULL, NULL)
#else
ERL_NIF_INIT(fairnif_test_interface_3, nifs, load, NULL, NULL, NULL)
#endif
