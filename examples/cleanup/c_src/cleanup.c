/*
 * cleanup.c - resource objects that take a given time to clean up: as a plain
 * destructor, and as a fair resource's.
 *
 * Three kinds of clean-up, as libraries have them: `works` computes and can tick
 * (a tree that is freed node by node), `computes` cannot (one call of a library),
 * `waits` sleeps in the system (a disk, a lock of the library's).
 */
#define _GNU_SOURCE
#include <stdbool.h>
#include <time.h>

#include <fairnif.h>

enum { STEP_US = 2, MOST_US = 10000000 };

enum kind { WORKS, COMPUTES, WAITS, KINDS };

struct object {
    enum kind kind;
    unsigned us;
};

static fair_resource_type *fair_type;
static ErlNifResourceType *plain_type;
static unsigned long cleaned;       /* of both, so far */

/* -- what is to be done ---------------------------------------------------- */

/* In CPU time of this thread: others do not shorten it. */
static void compute(unsigned us)
{
    struct timespec t;
    long end;

    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
    end = t.tv_sec * 1000000000 + t.tv_nsec + us * 1000L;
    do
        clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
    while (t.tv_sec * 1000000000 + t.tv_nsec < end);
}

static void wait(unsigned us)
{
    struct timespec t = {us / 1000000, us % 1000000 * 1000L};

    nanosleep(&t, NULL);
}

static void count(void)
{
    __atomic_add_fetch(&cleaned, 1, __ATOMIC_RELAXED);
}

/* -- fair ------------------------------------------------------------------ */

static void work(fair_task *t, unsigned us)
{
    for (unsigned done = 0; done < us; done += STEP_US) {
        compute(STEP_US);
        fair_tick(t, 1);
    }
}

static void clean_up(fair_task *t, void *obj)
{
    struct object *o = obj;

    switch (o->kind) {
    case WORKS:
        work(t, o->us);
        break;
    case COMPUTES:
        compute(o->us);
        break;
    default:
        wait(o->us);
    }
    count();
}

/* -- plain ----------------------------------------------------------------- */

static void destroy(ErlNifEnv *env, void *obj)
{
    struct object *o = obj;

    (void)env;
    if (o->kind == WAITS)
        wait(o->us);
    else
        compute(o->us);
    count();
}

/* -- NIFs ------------------------------------------------------------------ */

static bool get_object(ErlNifEnv *env, const ERL_NIF_TERM argv[],
                       struct object *o)
{
    static const char *const names[KINDS] = {"works", "computes", "waits"};
    char name[16];

    if (!enif_get_atom(env, argv[0], name, sizeof name, ERL_NIF_LATIN1)
        || !enif_get_uint(env, argv[1], &o->us) || o->us > MOST_US)
        return false;
    for (int kind = 0; kind < KINDS; kind++) {
        o->kind = (enum kind)kind;
        if (strcmp(name, names[kind]) == 0)
            return true;
    }
    return false;
}

/* fair(Kind, Us) -> reference() */
static ERL_NIF_TERM fair(ErlNifEnv *env, int argc, const ERL_NIF_TERM argv[])
{
    struct object given, *o;
    ERL_NIF_TERM term;

    (void)argc;
    if (!get_object(env, argv, &given))
        return enif_make_badarg(env);
    o = fair_resource_new(fair_type, sizeof *o);
    if (!o)
        return enif_raise_exception(env, enif_make_atom(env, "enomem"));
    *o = given;
    term = fair_resource_term(env, o);
    fair_resource_release(o);       /* the term has it */
    return term;
}

/* plain(Kind, Us) -> reference() */
static ERL_NIF_TERM plain(ErlNifEnv *env, int argc, const ERL_NIF_TERM argv[])
{
    struct object given, *o;
    ERL_NIF_TERM term;

    (void)argc;
    if (!get_object(env, argv, &given))
        return enif_make_badarg(env);
    o = enif_alloc_resource(plain_type, sizeof *o);
    *o = given;
    term = enif_make_resource(env, o);
    enif_release_resource(o);
    return term;
}

/* cleaned() -> non_neg_integer() */
static ERL_NIF_TERM cleaned_so_far(ErlNifEnv *env, int argc,
                                   const ERL_NIF_TERM argv[])
{
    (void)argc, (void)argv;
    return enif_make_ulong(env, __atomic_load_n(&cleaned, __ATOMIC_RELAXED));
}

static ErlNifFunc nifs[] = {
    {"fair", 2, fair, 0},
    {"plain", 2, plain, 0},
    {"cleaned", 0, cleaned_so_far, 0},
};

/* The VM wants one where a type is taken over. */
static void ignore_down(ErlNifEnv *env, void *obj, ErlNifPid *pid,
                        ErlNifMonitor *monitor)
{
    (void)env, (void)obj, (void)pid, (void)monitor;
}

static int load(ErlNifEnv *env, void **priv, ERL_NIF_TERM info)
{
    static const fair_resource_options options = {
        .name = "fair_object", .cleanup = clean_up
    };
    static const ErlNifResourceTypeInit calls = {
        .dtor = destroy, .down = ignore_down, .members = 3
    };
    fair_resource_type *fair = fair_resource_open(env, &options);
    ErlNifResourceType *plain = enif_init_resource_type(
        env, "plain_object", &calls,
        ERL_NIF_RT_CREATE | ERL_NIF_RT_TAKEOVER, NULL);

    (void)priv, (void)info;
    if (!fair || !plain)
        return FAIR_E_NOMEM;
    fair_type = fair;
    plain_type = plain;
    return 0;
}

static int upgrade(ErlNifEnv *env, void **priv, void **old_priv,
                   ERL_NIF_TERM info)
{
    (void)old_priv;
    return load(env, priv, info);
}

FAIR_NIF_INIT(cleanup, nifs, load, upgrade, NULL)
