/*
 * type.h - resource types of module fairnif.
 */
#ifndef FAIR_TYPE_H
#define FAIR_TYPE_H

#include "base/base.h"

FAIR_HIDDEN ErlNifResourceType *fair__open_type(ErlNifEnv *env,
                                                const char *name,
                                                ErlNifResourceTypeInit init);
/* One of which authors' calls make objects, also while module fairnif is not
 * there: opened once, and then it stays.  In load and upgrade. */
FAIR_HIDDEN bool fair__open_kept_type(ErlNifEnv *env, const char *name,
                                      ErlNifResourceTypeInit init,
                                      ErlNifResourceType **type);
/* After load, in a NIF of the module; false when out of memory. */
FAIR_HIDDEN bool fair__keep_types(void);

#endif
