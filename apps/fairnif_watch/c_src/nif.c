/*
 * nif.c - the face of the watchdog's native part, module fairnif_watch_native.
 */
#include <erl_nif.h>

static ERL_NIF_TERM interface(ErlNifEnv *env, int argc,
                              const ERL_NIF_TERM argv[])
{
    (void)argc, (void)argv;
    return enif_make_int(env, 1);
}

static ErlNifFunc nifs[] = {
    { "interface", 0, interface, 0 },
};

ERL_NIF_INIT(fairnif_watch_native, nifs, NULL, NULL, NULL, NULL)
