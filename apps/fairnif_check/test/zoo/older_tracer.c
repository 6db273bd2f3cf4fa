/*
 * The checker's tracer as an older one may be loaded in a node when a newer one comes: its tables
 * are shorter (fairnif_check_tracer_tests).
 */
#include <erl_nif.h>
#include <string.h>

typedef struct { size_t writing, used, limit; void *events; } table;

static ErlNifResourceType *table_type;

static ERL_NIF_TERM new(ErlNifEnv *env, int argc, const ERL_NIF_TERM argv[])
{
    table *t = enif_alloc_resource(table_type, sizeof *t);
    ERL_NIF_TERM term;

    (void)argc, (void)argv;
    memset(t, 0, sizeof *t);
    term = enif_make_resource(env, t);
    enif_release_resource(t);
    return term;
}

static void ignore_down(ErlNifEnv *env, void *obj, ErlNifPid *pid, ErlNifMonitor *monitor)
{
    (void)env, (void)obj, (void)pid, (void)monitor;
}

static int load(ErlNifEnv *env, void **priv, ERL_NIF_TERM info)
{
    ErlNifResourceTypeInit init = {.down = ignore_down, .members = 3};

    (void)priv, (void)info;
    table_type = enif_init_resource_type(env, "fairnif_check_trace", &init, ERL_NIF_RT_CREATE,
                                         NULL);
    return table_type == NULL;
}

static ErlNifFunc nifs[] = {{"new", 1, new, 0}};

ERL_NIF_INIT(fairnif_check_tracer, nifs, load, NULL, NULL, NULL)
