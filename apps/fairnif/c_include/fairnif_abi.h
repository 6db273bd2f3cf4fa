/*
 * fairnif_abi.h - what the runtime and an author's library know of each other:
 * the structs they share, the table of the runtime's functions, and how a
 * library finds it.
 *
 * Part of fairnif.h, which includes it; no author reads or names what is here,
 * but for FAIR_NIF_INIT.  Its version is FAIR_ABI_MAJOR and
 * FAIR_ABI_MINOR.
 */
#ifndef FAIRNIF_ABI_H
#define FAIRNIF_ABI_H

struct fair__func;          /* the runtime's record of one function */
struct fair__ops;

/* One entry of the author's table, as the runtime wants it. */
struct fair__nif {
    fair_body body;
    const fair_options *options;
    const char *name;
    unsigned arity;
    unsigned mode;              /* enum fair_mode; until load with its flags */
    struct fair__lib *lib;
    /* filled in by the runtime at load */
    struct fair__func *func;
    uint64_t slice_ns;          /* 0: the runtime's */
    uint16_t stack_class;
    uint8_t may_wait, yields, cleans_up, prompt, unused[2];
    unsigned max_tasks;
    unsigned unused_too;
    uint64_t reserved[3];       /* zero */
};

/* One loaded instance of the author's library.  When the same file is loaded
 * again, for an upgrade or a reload, the VM has two or three instances of it
 * on one set of C statics; each has its own struct fair__lib. */
struct fair__lib {
    const struct fair__ops *ops;
    ErlNifResourceType *type;   /* of this instance's tasks; its own property,
                                   so the code stays mapped while one lives */
    volatile int state;         /* FAIR__FREE... */
    unsigned unused;
    uint64_t reserved[4];       /* zero */
};
enum { FAIR__FREE, FAIR__CLAIMED, FAIR__LOADED };

/* The part of a task that the inline functions below read.  The runtime's
 * own fields follow it. */
struct fair_task {
    uint64_t budget;            /* units left until the clock is read */
    const struct fair__ops *ops;
    ErlNifEnv *env;             /* of the current slice only */
    const ERL_NIF_TERM *argv;   /* of the current slice only */
    unsigned argc;
    unsigned env_used;          /* fair_env was called: terms may be made */
    uint64_t yields;
    unsigned cancelled;         /* FAIR_CLEANUP: it is to clean up */
};

/* How each struct begins with which the runtime object is called: in every
 * version.  What is appended to one is read by who finds it within its size. */
struct fair__question {
    uint32_t size;              /* of the whole struct */
    uint32_t kind;              /* no version of interface 1 or 2 says one of
                                   these here: */
};
#define FAIR__BINDS   0xFA170001u   /* struct fair__handshake */
#define FAIR__VISITS  0xFA170002u   /* struct fair__visitor */
#define FAIR__SEEKS   0xFA170003u   /* the runtime's own, nif.c */

/* What load and upgrade tell the runtime, and what it answers. */
struct fair__handshake {
    struct fair__question is;
    uint16_t abi_major, abi_minor;
    /* of what crosses, each as the library has it */
    uint32_t task_size, options_size, nif_size, lib_size, ops_size, bin_size,
             mutex_size;
    const char *module;
    struct fair__nif *nifs;
    unsigned nif_count;
    /* answers */
    int error;                  /* 0 or one of FAIR_E_... */
    const struct fair__ops *ops;
    ErlNifResourceType *type;
};

/* What a thread runs, for a watchdog. */
struct fair__running {
    uint32_t where;             /* 0 normal, 1 dirty CPU, 2 dirty I/O scheduler,
                                   3 a thread of the pool, 4 another */
    uint32_t number;            /* as in the thread's name: 1, 2, ... */
    int32_t tid;                /* the system's; where it has none, 0 */
    uint32_t arity;
    const char *module, *name;  /* the runtime's own: never freed */
    uint64_t since_ns;          /* CLOCK_MONOTONIC; up to 4 ms late of a call that
                                   has not yielded yet */
    uint64_t yields;
    ErlNifPid owner;            /* the caller */
};

/* How another library gets one of the runtime's tables, from any NIF of its
 * own: it calls the runtime object of fairnif:load_info/0
 * (enif_dynamic_resource_call) with this.  It declares no functions.  Where the
 * versions do not fit `table` stays NULL, and the version is then the
 * runtime's. */
struct fair__visitor {
    struct fair__question is;
    uint16_t abi_major, abi_minor;  /* of the table that it was built with */
    const void *table;          /* the answer */
    uint64_t which;             /* one of FAIR__TABLE_... */
};
enum {
    FAIR__TABLE_OPS,            /* struct fair__ops: for a watchdog */
    FAIR__TABLE_PRIVATE         /* struct fair__private: fairnif_private.h */
};

/* The runtime's functions.  Appended to, never reordered, within a major
 * version. */
struct fair__ops {
    uint32_t size;
    uint16_t abi_major, abi_minor;
    unsigned (*running)(struct fair__running *list, size_t item_size,
                        unsigned most);
    ERL_NIF_TERM (*enter)(struct fair__nif *nif, ErlNifEnv *env, int argc,
                          const ERL_NIF_TERM argv[]);
    int (*tick)(fair_task *t, size_t units);
    int (*move)(fair_task *t, enum fair_mode where);
    enum fair_mode (*where)(const fair_task *t);
    int (*offload)(fair_task *t, enum fair_mode where, size_t units,
                   void (*fn)(void *), void *arg);
    int (*wait)(fair_task *t, int fd, unsigned events, int timeout_ms);
    ERL_NIF_TERM (*adopt_fd)(fair_task *t, int fd);
    int (*get_fd)(fair_task *t, ERL_NIF_TERM term, int *fd);
    int (*close_fd)(fair_task *t, ERL_NIF_TERM term);
    int (*lock)(fair_task *t, fair_mutex *m, int wait);
    int (*unlock)(fair_task *t, fair_mutex *m);
    void (*caller)(fair_task *t, ErlNifPid *pid);
    unsigned (*root_new)(fair_task *t, ERL_NIF_TERM term);
    void (*root_drop)(fair_task *t, unsigned root);
    void (*root_set)(fair_task *t, unsigned root, ERL_NIF_TERM term);
    ERL_NIF_TERM (*root_get)(fair_task *t, unsigned root);
    int (*get_resource)(fair_task *t, ERL_NIF_TERM term,
                        ErlNifResourceType *type, void **obj);
    int (*get_atom)(fair_task *t, ERL_NIF_TERM term, char *buf, size_t size,
                    enum fair_encoding encoding);
    int (*get_bytes)(fair_task *t, ERL_NIF_TERM term, fair_bytes *bytes);
    int (*get_iolist)(fair_task *t, ERL_NIF_TERM term, fair_bytes *bytes);
    int (*get_string)(fair_task *t, ERL_NIF_TERM term, char **chars,
                      size_t *length, enum fair_encoding encoding);
    int (*get_list_length)(fair_task *t, ERL_NIF_TERM term, size_t *length);
    int (*new_bin)(fair_task *t, size_t size, fair_bin *bin);
    int (*resize_bin)(fair_task *t, fair_bin *bin, size_t size);
    ERL_NIF_TERM (*make_bin)(fair_task *t, fair_bin *bin);
    ERL_NIF_TERM (*make_bytes)(fair_task *t, fair_bytes *bytes);
    void (*release_bin)(fair_task *t, fair_bin *bin);
    void (*release_bytes)(fair_task *t, fair_bytes *bytes);
    int (*list_next)(fair_task *t, unsigned root, ERL_NIF_TERM *head);
    void (*list_push)(fair_task *t, unsigned root, ERL_NIF_TERM head);
    int (*list_reverse)(fair_task *t, unsigned root);
    void *(*alloc)(fair_task *t, size_t size);
    void *(*realloc)(fair_task *t, void *ptr, size_t size);
    void (*free)(fair_task *t, void *ptr);
    int (*defer)(fair_task *t, void (*fn)(void *), void *ptr);
    int (*undefer)(fair_task *t, void (*fn)(void *), void *ptr);
    ERL_NIF_TERM (*raise)(fair_task *t, ERL_NIF_TERM reason);
    void (*held_lock)(int change);
    ERL_NIF_TERM (*seen_arg)(fair_task *t, ERL_NIF_TERM term);
    void *(*priv_data)(ErlNifEnv *env);
    ErlNifPid *(*self)(ErlNifEnv *env, ErlNifPid *pid);
    int (*is_alive)(ErlNifEnv *env);
    int (*consume)(ErlNifEnv *env, int percent);
    int (*send)(ErlNifEnv *env, const ErlNifPid *to, ErlNifEnv *msg_env,
                ERL_NIF_TERM msg);
    ErlNifTime (*monotonic_time)(ErlNifTimeUnit unit);
    fair_task *(*current)(void);
    void (*loaded)(int error);
    fair_resource_type *(*resource_open)(ErlNifEnv *env,
                                         const fair_resource_options *options,
                                         size_t size);  /* of the options */
    void *(*resource_new)(fair_resource_type *type, size_t size);
    void (*post)(fair_task *t, ERL_NIF_TERM to, ERL_NIF_TERM message,
                 int reply);
    int (*ask)(fair_task *t, const ERL_NIF_TERM *request, unsigned parts,
               ERL_NIF_TERM *answer);
    uint64_t (*alarm)(fair_task *t, void (*ring)(void *), void *arg);
    void (*seen_term)(ERL_NIF_TERM term);
    ERL_NIF_TERM (*copy)(fair_task *t, ErlNifEnv *to, ERL_NIF_TERM term);
};

/* What the inline functions read of a fair resource's type, and of the words
 * before an object: appended to at its end, and before their begin.  In the VM's
 * object is the address of the author's. */
struct fair_resource_type {
    ErlNifResourceType *vm;
    size_t size;                /* fair_resource_options' */
    uint64_t *refused;
};
struct fair__object_head {
    size_t size, unused;
    fair_resource_type *type;
    void *vm;
};

/* A number given for a term (0 for argument 0) would be read as an address.  No
 * term is a constant, so an optimising compiler refuses those that are.  What
 * translates C (zig translate-c) cannot read that: it defines FAIR_TRANSLATED. */
#if defined(__has_attribute) && !defined(FAIR_TRANSLATED)
#  if __has_attribute(error)
__attribute__((error("a number where a term belongs: fair_arg(t, 0), not 0")))
void fair__not_a_term(void);
#    define FAIR__TERM(TERM)                                                \
    (__builtin_constant_p(TERM) ? (fair__not_a_term(), (TERM)) : (TERM))
#  endif
#endif
#ifndef FAIR__TERM
#  define FAIR__TERM(TERM) (TERM)
#endif

/* enif_make_pid is a macro whose cast C++ compilers warn of. */
static inline ERL_NIF_TERM fair__pid_term(ErlNifEnv *env, const ErlNifPid *pid)
{
#ifdef __GNUC__
#  pragma GCC diagnostic push
#  pragma GCC diagnostic ignored "-Wignored-qualifiers"
#endif
    return enif_make_pid(env, pid);
#ifdef __GNUC__
#  pragma GCC diagnostic pop
#endif
}

/* An atom that is made once: each time costs a look into the VM's table, under
 * its lock. */
static inline ERL_NIF_TERM fair__atom(ErlNifEnv *env, ERL_NIF_TERM *made,
                                      const char *name)
{
    ERL_NIF_TERM atom = __atomic_load_n(made, __ATOMIC_RELAXED);

    if (__builtin_expect(!atom, 0)) {
        atom = enif_make_atom(env, name);
        __atomic_store_n(made, atom, __ATOMIC_RELAXED);
    }
    return atom;
}

/* In fair_offload's function there may be no environment. */
static inline ERL_NIF_TERM fair__list(fair_task *t, const ERL_NIF_TERM *terms,
                                      unsigned count)
{
    return t->env ? enif_make_list_from_array(t->env, terms, count) : 0;
}

/* One for all the files of a library, and for all libraries of an emulator into
 * which they are linked: they have one runtime. */
__attribute__((weak, visibility("hidden")))
const struct fair__ops *fair__lib_ops;

/* Called once when a load of this library ends: what was opened may be used
 * from then on if it succeeded, else is gone.  Set by what opens it
 * (fairnif_resource.hpp). */
__attribute__((weak, visibility("hidden")))
void (*fair__lib_loaded)(int error);

/* -- the instances of a library, and their entries ------------------------ */

/* How many instances of one library file there may be at once: the current
 * one, the old one, one whose on_load runs, one that waits for its last task
 * to be destroyed. */
#define FAIR__INSTANCES 4

/* In the flags of an entry: 16 bits tell it from a plain one, 16 are its mode's;
 * of these the runtime gets all, and refuses those that it does not know. */
#define FAIR__MARK      0xFA170000u
#define FAIR__MARK_MASK 0xFFFF0000u
#define FAIR__OPTIONS   0x00008000u

typedef ERL_NIF_TERM (*fair__entry)(ErlNifEnv *, int, const ERL_NIF_TERM[]);

/* The VM calls a NIF without saying which one it is, nor of which instance of
 * the library: so each entry of each instance needs a C function of its own.
 * The compiler drops those that the library has no entry for. */
#define FAIR__X16(M, I, P)                                                  \
    M(I, P##0) M(I, P##1) M(I, P##2) M(I, P##3)                             \
    M(I, P##4) M(I, P##5) M(I, P##6) M(I, P##7)                             \
    M(I, P##8) M(I, P##9) M(I, P##A) M(I, P##B)                             \
    M(I, P##C) M(I, P##D) M(I, P##E) M(I, P##F)
#define FAIR__X256(M, I, P)                                                 \
    FAIR__X16(M, I, P##0) FAIR__X16(M, I, P##1) FAIR__X16(M, I, P##2)       \
    FAIR__X16(M, I, P##3) FAIR__X16(M, I, P##4) FAIR__X16(M, I, P##5)       \
    FAIR__X16(M, I, P##6) FAIR__X16(M, I, P##7) FAIR__X16(M, I, P##8)       \
    FAIR__X16(M, I, P##9) FAIR__X16(M, I, P##A) FAIR__X16(M, I, P##B)       \
    FAIR__X16(M, I, P##C) FAIR__X16(M, I, P##D) FAIR__X16(M, I, P##E)       \
    FAIR__X16(M, I, P##F)
#define FAIR__X1024(M, I, P0, P1, P2, P3)                                   \
    FAIR__X256(M, I, P0) FAIR__X256(M, I, P1) FAIR__X256(M, I, P2)          \
    FAIR__X256(M, I, P3)
#if FAIR_MAX_NIFS <= 256
#  define FAIR__EACH(M, I) FAIR__X256(M, I, 0x0)
#elif FAIR_MAX_NIFS <= 1024
#  define FAIR__EACH(M, I) FAIR__X1024(M, I, 0x0, 0x1, 0x2, 0x3)
#elif FAIR_MAX_NIFS <= 4096
#  define FAIR__EACH(M, I)                                                  \
    FAIR__X1024(M, I, 0x0, 0x1, 0x2, 0x3)                                   \
    FAIR__X1024(M, I, 0x4, 0x5, 0x6, 0x7)                                   \
    FAIR__X1024(M, I, 0x8, 0x9, 0xA, 0xB)                                   \
    FAIR__X1024(M, I, 0xC, 0xD, 0xE, 0xF)
#else
#  error "FAIR_MAX_NIFS can be up to 4096"
#endif
#define FAIR__ENTRY(I, N)                                                   \
    static ERL_NIF_TERM fair__entry_##I##_##N(ErlNifEnv *env, int argc,     \
                                              const ERL_NIF_TERM argv[])    \
    {                                                                       \
        return fair__libs[I].ops->enter(                                    \
            &fair__nifs[I][N < fair__count ? N : 0], env, argc, argv);      \
    }
#define FAIR__ENTRY_SET(I, N)                                               \
    if (N < fair__count)                                                    \
        entries[N] = fair__entry_##I##_##N;
#ifdef __cplusplus
#  define FAIR__ASSERT static_assert
#else
#  define FAIR__ASSERT __extension__ _Static_assert
#endif

typedef int (*fair__load_fn)(ErlNifEnv *, void **, ERL_NIF_TERM);
typedef int (*fair__upgrade_fn)(ErlNifEnv *, void **, void **, ERL_NIF_TERM);
typedef void (*fair__unload_fn)(ErlNifEnv *, void *);

/* Takes {fairnif, Version, Runtime, AuthorsInfo} apart and binds the library
 * to the runtime; 0 or an error number. */
static inline int fair__bind(ErlNifEnv *env, ERL_NIF_TERM load_info,
                             const char *module, struct fair__nif *nifs,
                             unsigned nif_count, struct fair__handshake *hs,
                             ERL_NIF_TERM *authors_info)
{
    const ERL_NIF_TERM *elems;
    int arity;
    ERL_NIF_TERM fairnif = enif_make_atom(env, "fairnif");

    memset(hs, 0, sizeof *hs);
    if (!enif_get_tuple(env, load_info, &arity, &elems) || arity != 4
        || !enif_is_identical(elems[0], fairnif)) {
        fprintf(stderr, "fairnif: %s: the second argument of load_nif is not "
                "what fairnif:load_info/0 returned: call "
                "erlang:load_nif(fairnif:path(?MODULE), "
                "fairnif:load_info())\n", module);
        return FAIR_E_LOAD_INFO;
    }
    hs->is.size = (uint32_t)sizeof *hs;
    hs->is.kind = FAIR__BINDS;
    hs->abi_major = FAIR_ABI_MAJOR;
    hs->abi_minor = FAIR_ABI_MINOR;
    hs->task_size = (uint32_t)sizeof(struct fair_task);
    hs->options_size = (uint32_t)sizeof(fair_options);
    hs->nif_size = (uint32_t)sizeof(struct fair__nif);
    hs->lib_size = (uint32_t)sizeof(struct fair__lib);
    hs->ops_size = (uint32_t)sizeof(struct fair__ops);
    hs->bin_size = (uint32_t)sizeof(fair_bin);
    hs->mutex_size = (uint32_t)sizeof(fair_mutex);
    hs->module = module;
    hs->nifs = nifs;
    hs->nif_count = nif_count;
    *authors_info = elems[3];
    if (enif_dynamic_resource_call(env, fairnif,
                                   enif_make_atom(env, "fairnif_runtime"),
                                   elems[2], hs) != 0) {
        fprintf(stderr, "fairnif: %s: the runtime of this load_info is not "
                "there: call fairnif:load_info/0 in the node, and when the "
                "library is loaded\n", module);
        return FAIR_E_RUNTIME;
    }
    if (!hs->error && hs->ops)
        fair__lib_ops = hs->ops;    /* load may open types of resources */
    return hs->error ? hs->error : hs->ops ? 0 : FAIR_E_ABI;
}

/* What erl_nif.h's own macro fills in, in that release of it. */
#pragma push_macro("ERL_NIF_INIT_GLOB")
#pragma push_macro("ERL_NIF_INIT_DECL")
#pragma push_macro("ERL_NIF_INIT_BODY")
#undef ERL_NIF_INIT_GLOB
#undef ERL_NIF_INIT_DECL
#undef ERL_NIF_INIT_BODY
#define ERL_NIF_INIT_GLOB static ErlNifFunc fair__no_funcs[1];
#define ERL_NIF_INIT_DECL(NAME) static inline ErlNifEntry *fair__vm_entry(void)
#define ERL_NIF_INIT_BODY do { } while (0)
ERL_NIF_INIT(fairnif, fair__no_funcs, NULL, NULL, NULL, NULL)
#pragma pop_macro("ERL_NIF_INIT_GLOB")
#pragma pop_macro("ERL_NIF_INIT_DECL")
#pragma pop_macro("ERL_NIF_INIT_BODY")

/* The entries and callbacks of one instance. */
#define FAIR__INSTANCE(I)                                                   \
FAIR__EACH(FAIR__ENTRY, I)                                                  \
static void fair__entries_##I(fair__entry *entries)                         \
{                                                                           \
    FAIR__EACH(FAIR__ENTRY_SET, I)                                          \
}                                                                           \
static int fair__load_##I(ErlNifEnv *env, void **priv, ERL_NIF_TERM info)   \
{                                                                           \
    struct fair__handshake hs;                                              \
    int error = fair__bind(env, info, fair__module, fair__nifs[I],          \
                           fair__count, &hs, &info);                        \
    if (!error && fair__authors_load)                                       \
        error = fair__authors_load(env, priv, info);                        \
    return fair__loaded(&fair__libs[I], &hs, error);                        \
}                                                                           \
static int fair__upgrade_##I(ErlNifEnv *env, void **priv, void **old_priv,  \
                             ERL_NIF_TERM info)                             \
{                                                                           \
    struct fair__handshake hs;                                              \
    int error = fair__bind(env, info, fair__module, fair__nifs[I],          \
                           fair__count, &hs, &info);                        \
    if (!error && fair__authors_upgrade)                                    \
        error = fair__authors_upgrade(env, priv, old_priv, info);           \
    return fair__loaded(&fair__libs[I], &hs, error);                        \
}                                                                           \
static void fair__unload_##I(ErlNifEnv *env, void *priv)                    \
{                                                                           \
    if (fair__authors_unload)                                               \
        fair__authors_unload(env, priv);                                    \
    fair__libs[I].state = FAIR__FREE;                                       \
}

/* No name of the author's is used where a name of ours could hide it. */
#define FAIR_NIF_INIT(NAME, FUNCS, LOAD, UPGRADE, UNLOAD)                   \
enum { fair__count = sizeof(FUNCS) / sizeof(*FUNCS) };                      \
FAIR__ASSERT(fair__count <= FAIR_MAX_NIFS, "more entries than "             \
             "FAIR_MAX_NIFS: define it before fairnif.h is included");      \
static struct fair__lib fair__libs[FAIR__INSTANCES];                        \
static struct fair__nif fair__nifs[FAIR__INSTANCES][fair__count];           \
static ErlNifFunc fair__funcs[FAIR__INSTANCES][fair__count];                \
static const ErlNifFunc *const fair__table = FUNCS;                         \
static const char *const fair__module = #NAME;                              \
static const fair__load_fn fair__authors_load = LOAD;                       \
static const fair__upgrade_fn fair__authors_upgrade = UPGRADE;              \
static const fair__unload_fn fair__authors_unload = UNLOAD;                 \
FAIR__INSTANCE(0) FAIR__INSTANCE(1) FAIR__INSTANCE(2) FAIR__INSTANCE(3)     \
static void (*const fair__entries[])(fair__entry *) = {                     \
    fair__entries_0, fair__entries_1, fair__entries_2, fair__entries_3      \
};                                                                          \
static const fair__load_fn fair__loads[] = {                                \
    fair__load_0, fair__load_1, fair__load_2, fair__load_3                  \
};                                                                          \
static const fair__upgrade_fn fair__upgrades[] = {                          \
    fair__upgrade_0, fair__upgrade_1, fair__upgrade_2, fair__upgrade_3      \
};                                                                          \
static const fair__unload_fn fair__unloads[] = {                            \
    fair__unload_0, fair__unload_1, fair__unload_2, fair__unload_3          \
};                                                                          \
static ErlNifEntry *fair__init(void)                                        \
{                                                                           \
    static ErlNifEntry library[FAIR__INSTANCES];                            \
    fair__entry entries[fair__count];                                       \
    int i = fair__claim(fair__libs);                                        \
    ErlNifEntry *entry = &library[i < 0 ? 0 : i];                           \
    if (i < 0)                                                              \
        return NULL;                                                        \
    fair__entries[i](entries);                                              \
    fair__fill(&fair__libs[i], fair__nifs[i], fair__funcs[i], entries,      \
               fair__table, fair__count);                                   \
    *entry = *fair__vm_entry();                                             \
    entry->name = fair__module;                                             \
    entry->num_of_funcs = fair__count;                                      \
    entry->funcs = fair__funcs[i];                                          \
    entry->load = fair__loads[i];                                           \
    entry->upgrade = fair__authors_upgrade || !fair__authors_load           \
        ? fair__upgrades[i] : NULL;                                         \
    entry->unload = fair__unloads[i];                                       \
    return entry;                                                           \
}                                                                           \
ERL_NIF_INIT_PROLOGUE                                                       \
ERL_NIF_INIT_GLOB                                                           \
ERL_NIF_INIT_DECL(NAME);                                                    \
ERL_NIF_INIT_DECL(NAME)                                                     \
{                                                                           \
    ERL_NIF_INIT_BODY;                                                      \
    return fair__init();                                                    \
}                                                                           \
ERL_NIF_INIT_EPILOGUE

/* ------------------------------------------------------------------------
 * Compiled with -DFAIR_DEBUG, a library reports ticks and pauses while one of the
 * VM's mutexes is held, commands to ports off normal schedulers, and with
 * fairnif:debug/1's check_terms also arguments kept across a tick and given to a
 * fair_ function or to one of these.  (The
 * switches of fairnif:debug/1 need no compilation.)
 * ------------------------------------------------------------------------ */
#ifdef FAIR_DEBUG
static inline void fair__locked(int change)
{
    if (fair__lib_ops)
        fair__lib_ops->held_lock(change);
}
static inline int fair__tried(int error)
{
    if (!error)
        fair__locked(1);
    return error;
}
/* Of a lock no change: the command is what counts. */
static inline int fair__port_command(ErlNifEnv *env, const ErlNifPort *port,
                                     ErlNifEnv *msg_env, ERL_NIF_TERM msg)
{
    if (enif_thread_type() != ERL_NIF_THR_NORMAL_SCHEDULER)
        fair__locked(0);
    return enif_port_command(env, port, msg_env, msg);
}
#  undef enif_port_command
#  define enif_port_command(E, P, M, T) fair__port_command(E, P, M, T)
#  define enif_mutex_lock(M) (enif_mutex_lock(M), fair__locked(1))
#  define enif_mutex_trylock(M) fair__tried(enif_mutex_trylock(M))
#  define enif_mutex_unlock(M) (fair__locked(-1), enif_mutex_unlock(M))
#  define enif_rwlock_rlock(L) (enif_rwlock_rlock(L), fair__locked(1))
#  define enif_rwlock_tryrlock(L) fair__tried(enif_rwlock_tryrlock(L))
#  define enif_rwlock_runlock(L) (fair__locked(-1), enif_rwlock_runlock(L))
#  define enif_rwlock_rwlock(L) (enif_rwlock_rwlock(L), fair__locked(1))
#  define enif_rwlock_tryrwlock(L) fair__tried(enif_rwlock_tryrwlock(L))
#  define enif_rwlock_rwunlock(L) (fair__locked(-1), enif_rwlock_rwunlock(L))

static inline ERL_NIF_TERM fair__seen(ERL_NIF_TERM term)
{
    if (fair__lib_ops)
        fair__lib_ops->seen_term(term);
    return term;
}
/* enif_get_int64 is a macro, for enif_get_long where that has 64 bits. */
#  define enif_get_atom(E, T, B, N, C) \
    enif_get_atom(E, fair__seen(T), B, N, C)
#  define enif_get_double(E, T, D) enif_get_double(E, fair__seen(T), D)
#  define enif_get_int(E, T, I) enif_get_int(E, fair__seen(T), I)
#  define enif_get_list_cell(E, T, H, R) \
    enif_get_list_cell(E, fair__seen(T), H, R)
#  define enif_get_list_length(E, T, N) \
    enif_get_list_length(E, fair__seen(T), N)
#  define enif_get_local_pid(E, T, P) enif_get_local_pid(E, fair__seen(T), P)
#  define enif_get_long(E, T, I) enif_get_long(E, fair__seen(T), I)
#  define enif_get_map_size(E, T, N) enif_get_map_size(E, fair__seen(T), N)
#  define enif_get_map_value(E, T, K, V) \
    enif_get_map_value(E, fair__seen(T), fair__seen(K), V)
#  define enif_get_resource(E, T, Y, O) \
    enif_get_resource(E, fair__seen(T), Y, O)
#  define enif_get_string(E, T, B, N, C) \
    enif_get_string(E, fair__seen(T), B, N, C)
#  define enif_get_tuple(E, T, N, A) enif_get_tuple(E, fair__seen(T), N, A)
#  define enif_get_uint(E, T, I) enif_get_uint(E, fair__seen(T), I)
#  define enif_get_ulong(E, T, I) enif_get_ulong(E, fair__seen(T), I)
#  define enif_inspect_binary(E, T, B) \
    enif_inspect_binary(E, fair__seen(T), B)
#  define enif_inspect_iolist_as_binary(E, T, B) \
    enif_inspect_iolist_as_binary(E, fair__seen(T), B)
#  define enif_is_binary(E, T) enif_is_binary(E, fair__seen(T))
#  define enif_is_list(E, T) enif_is_list(E, fair__seen(T))
#  define enif_is_map(E, T) enif_is_map(E, fair__seen(T))
#  define enif_is_tuple(E, T) enif_is_tuple(E, fair__seen(T))
#  define enif_make_copy(E, T) enif_make_copy(E, fair__seen(T))
#  define enif_make_list_cell(E, H, T) \
    enif_make_list_cell(E, fair__seen(H), fair__seen(T))
#  define enif_map_iterator_create(E, T, I, A) \
    enif_map_iterator_create(E, fair__seen(T), I, A)
#  define enif_term_type(E, T) enif_term_type(E, fair__seen(T))
#endif

/* Loads are serialised by the VM.  An instance that is claimed still was
 * refused by the VM before its load was called. */
static inline int fair__claim(struct fair__lib *libs)
{
    int i;

    for (i = 0; i < FAIR__INSTANCES; i++) {
        if (libs[i].state != FAIR__LOADED) {
            libs[i].state = FAIR__CLAIMED;
            return i;
        }
    }
    fprintf(stderr, "fairnif: this library file is loaded %d times already: "
            "let the old code's calls end and purge it\n", FAIR__INSTANCES);
    return -1;
}

/* `ops` and `type` are set when nothing can fail any more. */
static inline int fair__loaded(struct fair__lib *lib,
                               const struct fair__handshake *hs, int error)
{
    if (!error) {
        lib->ops = hs->ops;
        lib->type = hs->type;
    }
    if (fair__lib_loaded)
        fair__lib_loaded(error);
    fair__lib_loaded = NULL;
    if (hs->ops)
        hs->ops->loaded(error);
    lib->state = error ? FAIR__FREE : FAIR__LOADED;
    return error;
}

/* The VM's table of one instance, and ours of its fair functions, from the
 * author's. */
static inline void fair__fill(struct fair__lib *lib, struct fair__nif *nifs,
                              ErlNifFunc *funcs, const fair__entry *entries,
                              const ErlNifFunc *table, int count)
{
    int i;

    memset(nifs, 0, (size_t)count * sizeof *nifs);
    for (i = 0; i < count; i++) {
        struct fair__nif *nif = &nifs[i];

        funcs[i] = table[i];
        if ((table[i].flags & FAIR__MARK_MASK) != FAIR__MARK)
            continue;
        if (table[i].flags & FAIR__OPTIONS) {
            nif->options = (const fair_options *)(uintptr_t)table[i].fptr;
            nif->body = nif->options->body;
        } else {
            nif->body = (fair_body)(void (*)(void))table[i].fptr;
        }
        nif->name = table[i].name;
        nif->arity = table[i].arity;
        nif->mode = table[i].flags & ~(FAIR__MARK_MASK | FAIR__OPTIONS);
        nif->lib = lib;
        funcs[i].fptr = entries[i];
        funcs[i].flags = 0;
    }
}

#endif /* FAIRNIF_ABI_H */
