/*
 * runtime.c - finds fairnif's runtime for this library.
 */
#include "runtime.h"

const struct fair__private *drv__runtime;

/* load_info: fairnif:load_info/0's. */
int drv__bind(ErlNifEnv *env, ERL_NIF_TERM load_info)
{
    struct fair__visitor visitor = {
        .is = {sizeof visitor, FAIR__VISITS}, .abi_major = FAIR_PRIVATE_MAJOR,
        .abi_minor = FAIR_PRIVATE_MINOR, .which = FAIR__TABLE_PRIVATE
    };
    const ERL_NIF_TERM *elems;
    int arity;

    if (!enif_get_tuple(env, load_info, &arity, &elems) || arity != 4)
        return FAIR_E_LOAD_INFO;
    if (enif_dynamic_resource_call(env, enif_make_atom(env, "fairnif"),
                                   enif_make_atom(env, "fairnif_runtime"),
                                   elems[2], &visitor) != 0)
        return FAIR_E_RUNTIME;
    if (!visitor.table) {
        fprintf(stderr, "fairnif_driver: built with fairnif_private.h of "
                "version %u.%u, the loaded runtime has %u.%u: build both "
                "applications of one version, and restart the node\n",
                FAIR_PRIVATE_MAJOR, FAIR_PRIVATE_MINOR,
                (unsigned)visitor.abi_major, (unsigned)visitor.abi_minor);
        return FAIR_E_ABI;
    }
    if (!drv__runtime)          /* else others read it */
        drv__runtime = visitor.table;
    return 0;
}
